//! The paper's Algorithms 1 and 2 as they are printed, in f64, with everything that ComputeRhoStats and ComputeAlphaStats
//! return damped, as its appendix says. The names are the paper's.

use compflow_api::Sets;

/// The state of Algorithm 1 between two iterations.
pub(crate) struct Cap<'a> {
    /// S(i, c), row-major.
    s: &'a [f64],
    compositions: &'a Sets,
    n: usize,
    lambda: f64,
    pub(crate) b: Vec<f64>,
    pub(crate) b_bar: Vec<f64>,
    pub(crate) h: Vec<f64>,
    pub(crate) a: Vec<f64>,
    pub(crate) a_bar: Vec<f64>,
    q: Vec<f64>,
}

impl<'a> Cap<'a> {
    pub(crate) fn new(s: &'a [f64], compositions: &'a Sets, n: usize, lambda: f64) -> Self {
        let zeros = || vec![0.0; n * n];
        let (h, q) = (vec![0.0; n], vec![0.0; n * compositions.len()]);
        Self { s, compositions, n, lambda, b: zeros(), b_bar: zeros(), h, a: zeros(), a_bar: zeros(), q }
    }

    pub(crate) fn iterate(&mut self) {
        let (b, b_bar, h) = self.compute_rho_stats();
        let damp = |old: &mut Vec<f64>, new: Vec<f64>| {
            old.iter_mut().zip(new).for_each(|(old, new)| *old = *old * self.lambda + new * (1.0 - self.lambda));
        };
        damp(&mut self.b, b);
        damp(&mut self.b_bar, b_bar);
        damp(&mut self.h, h);
        let (a, a_bar, q) = self.compute_alpha_stats();
        damp(&mut self.a, a);
        damp(&mut self.a_bar, a_bar);
        damp(&mut self.q, q);
    }

    /// argmax over c of q(i, c) + S(i, c).
    pub(crate) fn choices(&self) -> Vec<&'a [u32]> {
        let size = self.compositions.len();
        let value = |i: usize, c: usize| self.q[i * size + c] + self.s[i * size + c];
        let best = |i: usize| (0..size).reduce(|best, c| if value(i, c) > value(i, best) { c } else { best });
        (0..self.n).map(|i| &self.compositions[best(i).unwrap()]).collect()
    }

    fn compute_rho_stats(&self) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let (n, size) = (self.n, self.compositions.len());
        let (mut b, mut b_bar) = (vec![0.0; n * n], vec![0.0; n * n]);
        for i in 0..n {
            let sum: Vec<f64> = (0..size).map(|c| self.s[i * size + c] + self.q[i * size + c]).collect();
            let (r, s) = find_all_maxes(&sum, self.compositions, n);
            for k in 0..n {
                let at = i * n + k;
                b[at] = f64::max(r[k] - self.a[at], s[k] - self.a_bar[at]);
                b_bar[at] = s[k] - self.a_bar[at];
            }
        }
        let alone = |k: usize| self.compositions.iter().position(|c| c == [k as u32]).unwrap();
        let h = (0..n)
            .map(|k| self.s[k * size + alone(k)] + self.q[k * size + alone(k)] - self.a[k * n + k])
            .collect();
        (b, b_bar, h)
    }

    fn compute_alpha_stats(&self) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let (n, size, Self { b, b_bar, h, .. }) = (self.n, self.compositions.len(), self);
        let (mut a, mut a_bar, mut q) = (vec![0.0; n * n], vec![0.0; n * n], vec![0.0; n * size]);
        let over_others = |of: &[f64], k: usize| (0..n).filter(|&i| i != k).map(|i| of[i * n + k]).sum::<f64>();
        let e: Vec<f64> = (0..n).map(|k| over_others(b, k)).collect();
        let e_bar: Vec<f64> = (0..n).map(|k| over_others(b_bar, k)).collect();
        for i in 0..n {
            for k in 0..n {
                let at = i * n + k;
                if i == k {
                    (a[at], a_bar[at]) = (e[k], e_bar[k]);
                } else {
                    a[at] = h[k] + e[k] - b[at];
                    a_bar[at] = f64::max(b_bar[k * n + k] + e_bar[k] - b_bar[at], h[k] + e[k] - b[at]);
                }
            }
        }
        for i in 0..n {
            let q_star: f64 = a_bar[i * n..][..n].iter().sum();
            for (c, members) in self.compositions.iter().enumerate() {
                let differences = members.iter().map(|&k| a[i * n + k as usize] - a_bar[i * n + k as usize]);
                q[i * size + c] = q_star + differences.sum::<f64>();
            }
        }
        (a, a_bar, q)
    }
}

/// Algorithm 2: for every k, the maxima of q over the compositions with and without k.
fn find_all_maxes(q: &[f64], compositions: &Sets, n: usize) -> (Vec<f64>, Vec<f64>) {
    let with = |k: usize| (0..q.len()).filter(move |&c| compositions[c].contains(&(k as u32)));
    let r = (0..n).map(|k| with(k).map(|c| q[c]).fold(f64::NEG_INFINITY, f64::max)).collect();
    let mut s = vec![f64::NEG_INFINITY; n];
    // The compositions come by size and in lexicographic order, so those that share all but their last member do.
    let all: Vec<usize> = (0..q.len()).collect();
    let prefix = |c: usize| &compositions[c][..compositions[c].len() - 1];
    for psi in all.chunk_by(|&a, &b| prefix(a) == prefix(b)) {
        let mut best: Vec<usize> = psi.to_vec();
        best.sort_by(|&a, &b| q[b].total_cmp(&q[a]));
        for (k, s) in s.iter_mut().enumerate() {
            if let Some(&c) = best.iter().take(2).find(|&&c| !compositions[c].contains(&(k as u32))) {
                *s = s.max(q[c]);
            }
        }
    }
    (r, s)
}
