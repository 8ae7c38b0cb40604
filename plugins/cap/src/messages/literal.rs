//! The paper's Algorithms 1 and 2 as they are printed, in f64. The names are the paper's.

use compflow_api::Sets;

/// The state of Algorithm 1 between two iterations.
pub(super) struct Cap<'a> {
    /// S(i, c), row-major.
    s: &'a [f64],
    compositions: &'a Sets,
    n: usize,
    pub(super) a: Vec<f64>,
    pub(super) a_bar: Vec<f64>,
    q: Vec<f64>,
}

impl<'a> Cap<'a> {
    pub(super) fn new(s: &'a [f64], compositions: &'a Sets, n: usize) -> Self {
        let (a, a_bar) = (vec![0.0; n * n], vec![0.0; n * n]);
        Self { s, compositions, n, a, a_bar, q: vec![0.0; n * compositions.len()] }
    }

    pub(super) fn iterate(&mut self) {
        let (b, b_bar, h) = self.compute_rho_stats();
        self.compute_alpha_stats(&b, &b_bar, &h);
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

    fn compute_alpha_stats(&mut self, b: &[f64], b_bar: &[f64], h: &[f64]) {
        let (n, size) = (self.n, self.compositions.len());
        let over_others = |of: &[f64], k: usize| (0..n).filter(|&i| i != k).map(|i| of[i * n + k]).sum::<f64>();
        let e: Vec<f64> = (0..n).map(|k| over_others(b, k)).collect();
        let e_bar: Vec<f64> = (0..n).map(|k| over_others(b_bar, k)).collect();
        for i in 0..n {
            for k in 0..n {
                let at = i * n + k;
                if i == k {
                    (self.a[at], self.a_bar[at]) = (e[k], e_bar[k]);
                } else {
                    self.a[at] = h[k] + e[k] - b[at];
                    self.a_bar[at] = f64::max(b_bar[k * n + k] + e_bar[k] - b_bar[at], h[k] + e[k] - b[at]);
                }
            }
        }
        for i in 0..n {
            let q_star: f64 = self.a_bar[i * n..][..n].iter().sum();
            for (c, members) in self.compositions.iter().enumerate() {
                let differences =
                    members.iter().map(|&k| self.a[i * n + k as usize] - self.a_bar[i * n + k as usize]);
                self.q[i * size + c] = q_star + differences.sum::<f64>();
            }
        }
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
