//! `ac`: agglomerative clustering. Every example begins as a group of its own, and the two nearest groups become one
//! until a single group is left; the tree of these merges is then cut.
//!
//! | Ward; Müllner | here |
//! | --- | --- |
//! | subsets A, B; nodes I, J | groups, `a` and `b` of a [`Merge`] |
//! | loss Z, dissimilarity d(I, J) | `height`; Ward's loss is half its square |
//! | stepwise dendrogram | [`Dendrogram`] |
//! | error sum of squares, ESS | the objective |
//!
//! How far two groups A and B are from one another is the linkage:
//!
//! ```text
//! ward      √(2|A||B| / (|A|+|B|)) · ‖μ_A - μ_B‖     μ the means
//! average   mean of ‖a - b‖ over all pairs
//! complete  largest ‖a - b‖
//! single    smallest ‖a - b‖
//! ```
//!
//! The distance at which two groups merge is the height of the merge. For all four a merge brings no group nearer to
//! another than its parts were, so the order of merges does not matter as long as each joins mutual nearest
//! neighbours ([`chain`]); sorting by height gives the tree ([`dendrogram`]).
//!
//! | linkage | time | memory | |
//! | --- | --- | --- | --- |
//! | ward | n²·p | n·p | means and sizes say everything: [`centroids`] |
//! | single | n²·p | n·p | the merges are a minimum spanning tree: [`spanning_tree`] |
//! | average, complete | n²·p | n² | all pairs are kept: [`matrix`] |
//!
//! Ward, "Hierarchical grouping to optimize an objective function", JASA 58(301), 1963,
//! doi:10.1080/01621459.1963.10500845. Müllner, "Modern hierarchical, agglomerative clustering algorithms",
//! arXiv:1109.2378, 2011. Murtagh and Legendre, "Ward's hierarchical agglomerative clustering method: which algorithms
//! implement Ward's criterion?", Journal of Classification 31, 2014, doi:10.1007/s00357-014-9161-z (heights are those
//! of their Ward2). Heights, cuts and the choice between equally near groups are as in SciPy and scikit-learn.
//!
//! # Weaknesses
//!
//! A merge is never taken back, so one that joins two clusters early stays. The height at which Ward's clusters
//! merge grows with the root of the number of examples in them: `distance_threshold = { per_example = … }` stays right for
//! more of the same examples, a number does not. Ward prefers clusters of equal size; single linkage follows chains of
//! examples from one cluster into the next; complete linkage is decided by the farthest examples. Time grows with n².

mod centroids;
mod chain;
mod dendrogram;
mod matrix;
#[cfg(test)]
mod naive;
#[cfg(test)]
mod reference;
mod spanning_tree;

use compflow_api::{
    Clusterer, Clustering, Component, Diagnostics, Error, Result, Services, Sets, Shape, Task, register,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::centroids::Centroids;
use self::dendrogram::{Dendrogram, Merge};
use self::matrix::{Matrix, Update};
use crate::means::{means, singletons};
use compflow_kernels::workers::Workers;

/// Agglomerative clustering: the two nearest groups are joined again and again, and the tree of these merges is cut
/// where it has `k` groups, or where merges reach `distance_threshold`; exactly one of the two is given.
///
/// Heights are Euclidean distances, whatever the pipeline's distance; if its space normalises, examples are
/// normalised. Ward's height is √(2|A||B|/(|A|+|B|))·‖μ_A-μ_B‖, so two single examples merge at their distance. The
/// trace lists the heights of all merges in ascending order; the objective is the sum of squared distances from the
/// cluster means (ward), or the greatest height below the cut (other linkages). Average and complete linkage keep the
/// distances of all pairs of examples.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How far two groups are from one another.
    pub linkage: Linkage,
    /// Number of clusters, or "auto", which selects it for every trial.
    #[schemars(range(min = 1), example = 15, extend("x-select" = { "from": 2, "to": 30 }))]
    pub k: Option<usize>,
    /// Groups at least this far from one another stay apart: there is one cluster more than merges of this height or
    /// above.
    /// With ward linkage, `{ per_example = 0.007 }` says it in a way that holds for more of the same examples: where the
    /// square of the distance is so much for each of them.
    #[schemars(extend("instead_of" = "k"))]
    pub distance_threshold: Option<Threshold>,
    /// Values for what is not given.
    pub preset: Option<Preset>,
}

/// How far groups are from one another that stay apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Threshold {
    /// This distance.
    Distance(#[schemars(range(min = 0))] f64),
    /// A squared distance for every example that is clustered.
    PerExample(PerExample),
}

/// A threshold that grows with the data. The square of ward's distance is twice what a merge adds to the sum of squared
/// distances from the means, a sum over all examples, so this is what remains right for more of the same examples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PerExample {
    /// What is multiplied with the number of examples.
    #[schemars(range(min = 0))]
    pub per_example: f64,
}

/// How far two groups are from one another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Linkage {
    /// By how much joining them would raise the sum of squared distances from the means.
    #[default]
    Ward,
    /// The mean distance between their examples.
    Average,
    /// The largest distance between their examples.
    Complete,
    /// The smallest distance between their examples.
    Single,
}

/// Parameters of published experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// As in the paper, if `k` is not given.
    #[schemars(extend("values" = { "distance_threshold": 1.0 }))]
    Paper,
    /// As in the authors' code, which is the same.
    #[schemars(extend("values" = { "distance_threshold": 1.0 }))]
    AuthorsCode,
}

/// Where the tree is cut.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cut {
    Clusters(usize),
    Height(f64),
    /// Its square, for each example.
    HeightPerExample(f64),
}

/// The clusterer `ac`.
#[derive(Debug)]
pub struct Ac {
    linkage: Linkage,
    cut: Cut,
}
register!(clusterer Ac);

impl Component for Ac {
    const NAME: &'static str = "ac";
    const SUMMARY: &'static str = "agglomerative clustering with ward, average, complete or single linkage";
    type Params = Params;

    fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
        let cut = match (params.k, params.distance_threshold) {
            (Some(k), None) => Cut::Clusters(k),
            (None, Some(Threshold::Distance(height))) => Cut::Height(check(height, "distance_threshold")?),
            (None, Some(Threshold::PerExample(PerExample { per_example }))) => {
                if params.linkage != Linkage::Ward {
                    let text = "is for `linkage` = \"ward\": the distances of other linkages do not grow with the \
                                number of examples, so give a number";
                    return Err(Error::parameter("distance_threshold.per_example", text));
                }
                Cut::HeightPerExample(check(per_example, "distance_threshold.per_example")?)
            }
            (None, None) => {
                return Err(Error::parameter("k", "or `distance_threshold` must be given, found neither"));
            }
            (Some(k), Some(threshold)) => {
                let found = match threshold {
                    Threshold::Distance(height) => height.to_string(),
                    Threshold::PerExample(PerExample { per_example }) => {
                        format!("{{ per_example = {per_example} }}")
                    }
                };
                let text = format!("and `distance_threshold` exclude one another, found {k} and {found}");
                return Err(Error::parameter("k", text));
            }
        };
        Ok(Self { linkage: params.linkage, cut })
    }
}

/// Refuses what no height can be.
fn check(value: f64, parameter: &str) -> Result<f64> {
    match value.is_finite() && value >= 0.0 {
        true => Ok(value),
        false => Err(Error::parameter(parameter, format!("must be a finite number at least 0, found {value}"))),
    }
}

impl Clusterer for Ac {
    fn memory(&self, shape: Shape, _services: &Services<'_>) -> Result<u64> {
        let Shape { rows, dim, .. } = shape;
        let state = match self.linkage {
            Linkage::Ward => Centroids::memory(rows, dim),
            Linkage::Single => spanning_tree::memory(rows, dim),
            Linkage::Average | Linkage::Complete => Matrix::memory(rows, dim),
        };
        // Of an example: a normalised copy, its merge twice while they are sorted, its height in the trace, its label
        // and set, and the mean of its cluster, in the space and as it is before.
        let rest = (rows as u64).saturating_mul(4 * dim as u64 + 2 * 16 + 8 + 16 + 24 * dim as u64);
        Ok(state.saturating_add(rest))
    }

    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        let (n, dim) = (task.embeddings.len(), task.embeddings.dim());
        if let Cut::Clusters(k) = self.cut {
            task.require_k(k)?;
        }
        let remedy = match self.linkage {
            Linkage::Ward | Linkage::Single => "lower the number of examples",
            Linkage::Average | Linkage::Complete => {
                "set `linkage` to \"ward\" or \"single\", which need no distances of all pairs, or lower the number of \
                 examples"
            }
        };
        services.require_memory(self.memory(task.shape(), services)?, remedy)?;

        let points = task.points();
        let tree = Dendrogram::new(n, self.merges(&points, dim, services)?);
        services.progress(n - 1, n - 1)?;
        let per_example = |value: f64| (value * n as f64).sqrt();
        let clusters = match self.cut {
            Cut::Clusters(k) => k,
            Cut::Height(height) => tree.clusters_below(height),
            Cut::HeightPerExample(value) => tree.clusters_below(per_example(value)),
        };
        let labels = tree.labels(clusters);
        let done = &tree.heights()[..n - clusters];
        let objective = match self.linkage {
            // A merge raises the sum of squares by half its squared height.
            Linkage::Ward => done.iter().map(|height| height * height / 2.0).sum(),
            _ => done.last().copied().unwrap_or(0.0),
        };
        let mut clustering = Clustering {
            assignments: Sets::singletons(&labels),
            clusters: Sets::all_up_to(clusters, 1),
            centroids: means(&points, dim, None, &labels, clusters),
            singletons: singletons(task, None, &labels, clusters),
            diagnostics: Diagnostics {
                iterations: tree.heights().len() as u64,
                converged: true,
                objective,
                trace: tree.into_heights(),
            },
            ..Clustering::default()
        };
        if let Cut::HeightPerExample(value) = self.cut {
            clustering.resolve("distance_threshold", per_example(value));
        }
        Ok(clustering)
    }
}

impl Ac {
    fn merges(&self, points: &[f32], dim: usize, services: &Services<'_>) -> Result<Vec<Merge>> {
        let n = points.len() / dim;
        let threads = if self.shared(n, dim) { services.threads } else { 1 };
        let workers = Workers::new(threads)?;
        let from_pairs = |update| {
            let mut matrix = Matrix::new(points, dim, update, &workers, services)?;
            chain::merges(n, &mut matrix, services)
        };
        match self.linkage {
            // A search is short: threads that have to be woken for each would cost more than they save.
            Linkage::Ward => {
                workers.enter(|| chain::merges(n, &mut Centroids::new(points, dim, &workers), services))
            }
            Linkage::Average => from_pairs(Update::Mean),
            Linkage::Complete => from_pairs(Update::Largest),
            Linkage::Single => spanning_tree::merges(points, dim, services),
        }
    }

    /// Whether starting threads is worth it.
    fn shared(&self, n: usize, dim: usize) -> bool {
        match self.linkage {
            Linkage::Ward => n.saturating_mul(dim) >= centroids::SHARED,
            Linkage::Average | Linkage::Complete => n.saturating_mul(n).saturating_mul(dim) >= matrix::SHARED,
            Linkage::Single => false,
        }
    }
}

#[cfg(test)]
mod tests;
