//! Affinity propagation as plain loops in f64, message by message, for tests to compare with.

/// The messages after some iterations, row-major.
pub struct Messages {
    /// r(i, k).
    pub responsibilities: Vec<f64>,
    /// a(i, k).
    pub availabilities: Vec<f64>,
}

/// Passes messages along the similarities of `n` examples.
pub fn pass(s: &[f64], n: usize, damping: f64, iterations: usize) -> Messages {
    let (mut r, mut a) = (vec![0.0; n * n], vec![0.0; n * n]);
    let damp = |old: f64, new: f64| damping * old + (1.0 - damping) * new;
    for _ in 0..iterations {
        for i in 0..n {
            for k in 0..n {
                let others = (0..n).filter(|&j| j != k).map(|j| a[i * n + j] + s[i * n + j]);
                r[i * n + k] = damp(r[i * n + k], s[i * n + k] - others.fold(f64::NEG_INFINITY, f64::max));
            }
        }
        for i in 0..n {
            for k in 0..n {
                let supporters = (0..n).filter(|&j| j != i && j != k).map(|j| r[j * n + k].max(0.0));
                let new = match i == k {
                    true => supporters.sum(),
                    false => (r[k * n + k] + supporters.sum::<f64>()).min(0.0),
                };
                a[i * n + k] = damp(a[i * n + k], new);
            }
        }
    }
    Messages { responsibilities: r, availabilities: a }
}
