//! The messages as plain loops over all sets in f64, damped.

use compflow_api::Sets;

/// ρ and δ after some iterations, row-major.
pub(super) struct Messages {
    pub(super) responsibilities: Vec<f64>,
    pub(super) availabilities: Vec<f64>,
}

/// Passes messages of `n` examples whose similarity to composition c of `compositions` is `s[i * |C| + c]`.
pub(super) fn pass(s: &[f64], compositions: &Sets, n: usize, damping: f64, iterations: usize) -> Messages {
    let size = compositions.len();
    let (mut rho, mut delta) = (vec![0.0; n * n], vec![0.0; n * n]);
    let damp = |old: f64, new: f64| damping * old + (1.0 - damping) * new;
    for _ in 0..iterations {
        for i in 0..n {
            let value = |c: usize| {
                s[i * size + c] + compositions[c].iter().map(|&k| delta[i * n + k as usize]).sum::<f64>()
            };
            let values: Vec<f64> = (0..size).map(value).collect();
            for k in 0..n {
                let highest = |with: bool| {
                    let sets = (0..size).filter(|&c| compositions[c].contains(&(k as u32)) == with);
                    sets.map(|c| values[c]).fold(f64::NEG_INFINITY, f64::max)
                };
                rho[i * n + k] = damp(rho[i * n + k], highest(true) - delta[i * n + k] - highest(false));
            }
        }
        for k in 0..n {
            let positive = |i: usize| f64::max(0.0, rho[i * n + k]);
            let support: f64 = (0..n).filter(|&i| i != k).map(positive).sum();
            for i in 0..n {
                let new = match i == k {
                    true => support,
                    false => f64::min(0.0, rho[k * n + k] + support - positive(i)),
                };
                delta[i * n + k] = damp(delta[i * n + k], new);
            }
        }
    }
    Messages { responsibilities: rho, availabilities: delta }
}
