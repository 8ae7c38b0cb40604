//! The last pass: the likeliest set of every example, how likely it is, and what the example's memberships are.

use compflow_api::{Partial, Result, Sets};
use compflow_kernels::source::Preparation;
use compflow_kernels::told::Heeded;
use serde::{Deserialize, Serialize};

use crate::densities::Densities;
use crate::mixture::Mixture;
use crate::statistics::{About, Posterior, rows_together, wide};

/// The tag of the pass.
pub(crate) const LAST: u8 = 3;

/// What the pass needs to know.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LastPass {
    pub(crate) preparation: Preparation,
    pub(crate) mixture: Mixture,
    pub(crate) k: usize,
    pub(crate) degree: usize,
    pub(crate) heeded: Heeded,
}

impl LastPass {
    /// What a batch of prepared points adds up to.
    pub(crate) fn partial(&self, about: &About<'_>, first: usize, batch: &[f32]) -> Result<Partial> {
        let densities = Densities::new(&self.mixture, about.dim)?;
        let ending = Ending { densities: &densities, sets: &Sets::all_up_to(self.k, self.degree), k: self.k };
        Ok(ending.counted(first, &ending.judge(about, first, batch)?))
    }
}

/// What examples are judged by.
pub(crate) struct Ending<'a> {
    pub(crate) densities: &'a Densities,
    pub(crate) sets: &'a Sets,
    pub(crate) k: usize,
}

/// What was found of the examples of a piece.
#[derive(Default)]
pub(crate) struct Judged {
    /// The likeliest set of each; the number of sets for an outlier.
    pub(crate) sets: Vec<usize>,
    pub(crate) probabilities: Vec<f64>,
    /// k for each.
    pub(crate) members: Vec<f32>,
    /// Σ w log-density.
    log_likelihood: f64,
    /// Σ w of outliers.
    outliers: f64,
}

impl Ending<'_> {
    /// Judges a batch of prepared points, piece by piece.
    pub(crate) fn judge(&self, about: &About<'_>, first: usize, batch: &[f32]) -> Result<Vec<Judged>> {
        let (dim, k) = (about.dim, self.k);
        about.pieces(dim + k, first, batch, |first, piece| {
            let mut out = Judged::default();
            let rows = rows_together(self.sets.len());
            for (at, chunk) in piece.chunks(rows * dim).enumerate() {
                let mut joint = self.densities.log_joint(&wide(chunk, dim)?);
                for (row, mut logs) in (first + at * rows..).zip(joint.outer_iter_mut()) {
                    let posterior = match about.told.known.label(row) {
                        None => Posterior::of(logs.as_slice().unwrap_or(&[])),
                        Some(set) => {
                            let known = Posterior::certain(set as usize, logs[set as usize]);
                            logs.fill(f64::NEG_INFINITY);
                            logs[set as usize] = known.log_total;
                            known
                        }
                    };
                    out.sets.push(posterior.set);
                    out.probabilities.push(posterior.probability());
                    let mut member = vec![0.0; k];
                    for (set, share) in self.sets.iter().zip(logs.iter().map(|log| posterior.share(*log))) {
                        set.iter().for_each(|&singleton| member[singleton as usize] += share);
                    }
                    out.members.extend(member.into_iter().map(|share| share.min(1.0) as f32));
                    let weight = about.told.weight(row);
                    out.log_likelihood += weight * posterior.log_total;
                    out.outliers += if posterior.set < self.sets.len() { 0.0 } else { weight };
                }
            }
            Ok(out)
        })
    }

    /// What the examples of a batch add up to: the log-likelihood, how many each set has, and the weight of outliers; and in
    /// place of the greatest number of any the least, negated.
    pub(crate) fn counted(&self, first: usize, judged: &[Judged]) -> Partial {
        let count = self.sets.len() + 1;
        let (mut sums, mut largest) = (vec![0.0; count + 1], vec![f64::NEG_INFINITY; count]);
        sums[0] = judged.iter().map(|piece| piece.log_likelihood).sum();
        sums[count] = judged.iter().map(|piece| piece.outliers).sum();
        for (row, &set) in (first..).zip(judged.iter().flat_map(|piece| &piece.sets)) {
            if set < self.sets.len() {
                sums[set + 1] += 1.0;
            }
            largest[set] = largest[set].max(-(row as f64));
        }
        Partial { sums, largest, ..Partial::default() }
    }
}
