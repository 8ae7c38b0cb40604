//! `told`: what somebody reaches who is told all other labels.
//!
//! | symbol | here |
//! | --- | --- |
//! | xᵢ, ĉᵢ | a point of the space, the true set it is given to |
//! | μ_c | [`Means`], without i where c is its own set |
//! | W, M = FᵀF | `scatter` of the other sets, [`Told::factor`] |
//! | λ | `shrinkage` |
//!
//! Every example goes to the true set whose mean is nearest, its own set's mean taken without it:
//!
//! ```text
//! ĉᵢ = argmin_c (xᵢ - μ_c)ᵀ M (xᵢ - μ_c),    μ_c the mean of the examples of c other than i
//! ```
//!
//! With i in the mean of its own set, ten examples a set flatter the figure by up to 10 points of ARI. In a space that
//! normalises, means are normalised as examples are. M is the identity, or the inverse of what examples vary by around
//! the means of their sets,
//!
//! ```text
//! W = Σ_{c'≠c} Σ_{j in c'} (xⱼ - μ_c')(xⱼ - μ_c')ᵀ / Σ_{c'≠c} (|c'| - 1),    M = ((1-λ)W + λ tr(W)/p · I)⁻¹
//! ```
//!
//! c being the set of i: its own set has no say in the metric that it is judged by. λ keeps M finite where sets are
//! small. Cost: n·s·p for s sets, and s·p³ for the metrics.
//!
//! # Weaknesses
//!
//! It is no bound: a method that looks at compositions knows more than the examples of one set say, which are ten in the
//! smallest data sets here, and may do better. Nor does it look at how many examples a set has. A set with one example
//! has no mean without it, so that example goes elsewhere.

use compflow_api::{
    Clusterer, Clustering, Component, Flags, Level, Normalize, Result, Services, Sets, Shape, Task, register,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::truth::Truth;
use compflow_kernels::cholesky::inverse_factor;
use compflow_kernels::pairs::squared;
use compflow_kernels::workers::Workers;

/// Below this many products, starting threads is not worth it.
const TINY: usize = 1 << 18;

/// What somebody reaches who is told all other labels: every example goes to the true set with the nearest mean, its own
/// set's mean taken without it.
///
/// It is given the truth, so it is no method but a yardstick: what a method without labels should come near to. In a space
/// that normalises, means are normalised. Clusters are the true sets, with their means as centroids. Sets with more
/// members than the pipeline's degree are left out, with a warning.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// How distances from means are taken.
    pub metric: Metric,
    /// By how much the covariance within sets is drawn towards a sphere of the same size, from 0 (as it is) to 1, for
    /// `metric = "whitened"`.
    #[schemars(extend("minimum" = 0, "maximum" = 1))]
    pub shrinkage: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { metric: Metric::Plain, shrinkage: 0.3 }
    }
}

/// How distances from means are taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// As they are.
    #[default]
    Plain,
    /// In units of what examples vary by within the other sets.
    Whitened,
}

/// The clusterer `told`.
#[derive(Debug)]
pub struct Told(Params);
register!(clusterer Told);

impl Component for Told {
    const NAME: &'static str = "told";
    const SUMMARY: &'static str =
        "the nearest true mean, without the example itself: what knowing all other labels is worth";
    const FLAGS: Flags = Flags::NEEDS_TRUTH.and(Flags::ASSIGNS_NONE);
    type Params = Params;

    fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
        Ok(Self(params))
    }
}

impl Clusterer for Told {
    fn memory(&self, shape: Shape, services: &Services<'_>) -> Result<u64> {
        let Shape { rows, dim, .. } = shape;
        let (rows, dim) = (rows as u64, dim as u64);
        // The points twice, and if there are as many sets as examples, sums, means, those of each thread and centroids.
        let threads = services.threads as u64;
        let points = rows.saturating_mul(4 * dim + 8 * dim + 64);
        let sets = rows.saturating_mul(dim).saturating_mul(8 * (3 + threads));
        let matrices = dim.saturating_mul(dim).saturating_mul(8 * (1 + 4 * threads));
        Ok(points.saturating_add(sets).saturating_add(matrices))
    }

    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        let truth = Truth::new(task)?;
        services.require_memory(self.memory(task.shape(), services)?, "cluster fewer examples")?;
        let (n, dim) = (task.embeddings.len(), task.embeddings.dim());
        let means = Means::new(task, &truth);
        let possible: Vec<usize> =
            (0..truth.sets.len()).filter(|&set| truth.sets[set].len() <= task.degree).collect();
        let left_out = truth.sets.len() - possible.len();
        if left_out > 0 {
            let text = format!("{left_out} true sets have more members than the degree, {}", task.degree);
            services.log(Level::Warn, format!("{text}: their examples are given to others"));
        }
        let mut rows = vec![Vec::new(); truth.sets.len()];
        truth.labels.iter().enumerate().for_each(|(row, &set)| rows[set].push(row));
        let scatter = self.whitens().then(|| {
            let mut scatter = vec![0.0; dim * dim];
            (0..truth.sets.len()).for_each(|set| means.add_scatter(set, &rows[set], 1.0, &mut scatter));
            scatter
        });

        let products = n.saturating_mul(truth.sets.len()).saturating_mul(dim);
        let workers = Workers::new(if products < TINY { 1 } else { services.threads })?;
        let found = workers.map(0..truth.sets.len(), |set| {
            services.check_cancelled()?;
            let factor = scatter.as_ref().and_then(|scatter| {
                let mut scatter = scatter.clone();
                means.add_scatter(set, &rows[set], -1.0, &mut scatter);
                let degrees = (n - rows[set].len()) - (truth.sets.len() - 1);
                self.factor(scatter, degrees, dim)
            });
            Ok((means.nearest(set, &rows[set], &possible, factor.as_deref()), factor.is_some()))
        })?;
        let without = found.iter().filter(|(_, whitened)| !whitened).count();
        if self.whitens() && without > 0 {
            let text = "others do not vary, so distances from them are taken as they are";
            services.log(Level::Warn, format!("told: for {without} of {} sets the {text}", truth.sets.len()));
        }
        let mut labels = vec![0; n];
        for (rows, (nearest, _)) in rows.iter().zip(found) {
            rows.iter().zip(nearest).for_each(|(&row, nearest)| labels[row] = nearest);
        }
        let clusters = || possible.iter().filter(|&&set| !truth.sets[set].is_empty());
        Ok(Clustering {
            assignments: labels.iter().map(|&set| truth.sets[set]).collect::<Sets>(),
            clusters: clusters().map(|&set| truth.sets[set]).collect(),
            centroids: clusters().flat_map(|&set| means.mean(set)).map(|&value| value as f32).collect(),
            ..Clustering::default()
        })
    }
}

impl Told {
    fn whitens(&self) -> bool {
        self.0.metric == Metric::Whitened
    }

    /// The factor F of M = FᵀF, unless nothing varies.
    fn factor(&self, mut scatter: Vec<f64>, degrees: usize, dim: usize) -> Option<Vec<f64>> {
        let shrinkage = self.0.shrinkage;
        let sphere = scatter.iter().step_by(dim + 1).sum::<f64>() / dim as f64;
        scatter.iter_mut().for_each(|value| *value *= 1.0 - shrinkage);
        scatter.iter_mut().step_by(dim + 1).for_each(|value| *value += shrinkage * sphere);
        // The size is no matter: it is the same for all sets that an example is compared with.
        (degrees > 0).then(|| inverse_factor(&scatter, dim)).flatten()
    }
}

/// The points and what each set's add up to.
struct Means {
    points: Vec<f64>,
    dim: usize,
    normalize: Normalize,
    sums: Vec<f64>,
    counts: Vec<usize>,
    /// Normalised if the space normalises.
    means: Vec<f64>,
}

impl Means {
    fn new(task: &Task<'_>, truth: &Truth<'_>) -> Self {
        let (dim, normalize) = (task.embeddings.dim(), task.space.normalize);
        let points: Vec<f64> = task.points().iter().map(|&value| f64::from(value)).collect();
        let (mut sums, mut counts) = (vec![0.0; truth.sets.len() * dim], vec![0; truth.sets.len()]);
        for (point, &set) in points.chunks_exact(dim).zip(&truth.labels) {
            counts[set] += 1;
            sums[set * dim..][..dim].iter_mut().zip(point).for_each(|(sum, value)| *sum += value);
        }
        let mut means = sums.clone();
        for (mean, &count) in means.chunks_exact_mut(dim).zip(&counts) {
            mean.iter_mut().for_each(|value| *value /= count as f64);
            enter(mean, normalize);
        }
        Self { points, dim, normalize, sums, counts, means }
    }

    fn point(&self, row: usize) -> &[f64] {
        &self.points[row * self.dim..][..self.dim]
    }

    fn mean(&self, set: usize) -> &[f64] {
        &self.means[set * self.dim..][..self.dim]
    }

    /// Adds what a set's examples vary by around their mean, `times` so much.
    fn add_scatter(&self, set: usize, rows: &[usize], times: f64, scatter: &mut [f64]) {
        let sum = &self.sums[set * self.dim..][..self.dim];
        let mut difference = vec![0.0; self.dim];
        for &row in rows {
            for ((to, x), sum) in difference.iter_mut().zip(self.point(row)).zip(sum) {
                *to = x - sum / rows.len() as f64;
            }
            for (line, a) in scatter.chunks_exact_mut(self.dim).zip(&difference) {
                line.iter_mut().zip(&difference).for_each(|(value, b)| *value += times * a * b);
            }
        }
    }

    /// For each example of `set` the nearest of the sets that are possible, the first of equally near ones; its own if
    /// there is no other.
    fn nearest(&self, set: usize, rows: &[usize], possible: &[usize], factor: Option<&[f64]>) -> Vec<usize> {
        let others: Vec<(usize, Vec<f64>)> = possible
            .iter()
            .filter(|&&other| other != set)
            .map(|&other| (other, whiten(self.mean(other).to_vec(), factor)))
            .collect();
        let own = possible.contains(&set) && self.counts[set] > 1;
        let alone = |row: usize| {
            let sum = self.sums[set * self.dim..][..self.dim].iter().zip(self.point(row));
            let mut mean: Vec<f64> = sum.map(|(sum, x)| (sum - x) / (self.counts[set] - 1) as f64).collect();
            enter(&mut mean, self.normalize);
            whiten(mean, factor)
        };
        let mut nearest = Vec::with_capacity(rows.len());
        for &row in rows {
            let point = whiten(self.point(row).to_vec(), factor);
            let mut best = (f64::INFINITY, set);
            for (other, mean) in &others {
                let found = (squared(&point, mean), *other);
                if found.0 < best.0 {
                    best = found;
                }
            }
            if own && (squared(&point, &alone(row)), set) < best {
                best.1 = set;
            }
            nearest.push(best.1);
        }
        nearest
    }
}

/// Brings a mean to where the points of the space are.
fn enter(mean: &mut [f64], normalize: Normalize) {
    let length = mean.iter().map(|value| value * value).sum::<f64>().sqrt();
    if normalize == Normalize::L2 && length > 0.0 {
        mean.iter_mut().for_each(|value| *value /= length);
    }
}

/// Fx, F lower triangular.
fn whiten(point: Vec<f64>, factor: Option<&[f64]>) -> Vec<f64> {
    let Some(factor) = factor else { return point };
    let row = |(at, row): (usize, &[f64])| row[..=at].iter().zip(&point).map(|(f, x)| f * x).sum();
    factor.chunks_exact(point.len()).enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use compflow_api::{Embeddings, ForeignClusterer, Registration};
    use compflow_kernels::testing::examples;
    use compflow_kernels::testing::watcher::Watcher;

    use super::*;

    fn told(metric: Metric) -> Told {
        Told(Params { metric, ..Params::default() })
    }

    /// Two classes and their union, and a third class.
    fn truth(n: usize) -> Sets {
        (0..n).map(|row| [&[0][..], &[1], &[0, 1], &[2]][row % 4]).collect()
    }

    /// The definition, set by set and example by example.
    fn naive(values: &[f32], dim: usize, truth: &Sets, params: Params, normalize: Normalize) -> Vec<Vec<u32>> {
        let mut task = Task::new(Embeddings::new(values, dim));
        task.space.normalize = normalize;
        let points: Vec<Vec<f64>> =
            task.points().chunks_exact(dim).map(|row| row.iter().map(|&x| f64::from(x)).collect()).collect();
        let mut sets: Vec<&[u32]> = truth.iter().collect();
        sets.sort_by_key(|set| (set.len(), *set));
        sets.dedup();
        let mean = |rows: &[usize]| -> Vec<f64> {
            let mean = |axis: usize| rows.iter().map(|&row| points[row][axis]).sum::<f64>() / rows.len() as f64;
            (0..dim).map(mean).collect()
        };
        let of = |set: &[u32], without: usize| -> Vec<usize> {
            (0..points.len()).filter(|&row| &truth[row] == set && row != without).collect()
        };
        (0..points.len())
            .map(|row| {
                let own = &truth[row];
                let mut metric = vec![0.0; dim * dim];
                let mut degrees = 0.0;
                for rows in sets.iter().filter(|set| **set != own).map(|set| of(set, usize::MAX)) {
                    let centre = mean(&rows);
                    degrees += rows.len() as f64 - 1.0;
                    for row in rows {
                        for (at, value) in metric.iter_mut().enumerate() {
                            let (a, b) = (at / dim, at % dim);
                            *value += (points[row][a] - centre[a]) * (points[row][b] - centre[b]);
                        }
                    }
                }
                metric.iter_mut().for_each(|value| *value /= degrees);
                let sphere = (0..dim).map(|at| metric[at * dim + at]).sum::<f64>() / dim as f64;
                for (at, value) in metric.iter_mut().enumerate() {
                    let one = f64::from(u8::from(at / dim == at % dim));
                    *value = match params.metric {
                        Metric::Plain => one,
                        Metric::Whitened => (1.0 - params.shrinkage) * *value + params.shrinkage * sphere * one,
                    };
                }
                let factor = inverse_factor(&metric, dim).unwrap();
                let distance = |set: &&[u32]| {
                    let mut mean = mean(&of(set, row));
                    enter(&mut mean, normalize);
                    let difference: Vec<f64> = points[row].iter().zip(&mean).map(|(x, mean)| x - mean).collect();
                    let line = |line: &[f64]| line.iter().zip(&difference).map(|(f, d)| f * d).sum::<f64>();
                    factor.chunks_exact(dim).map(|row| line(row).powi(2)).sum::<f64>()
                };
                sets.iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap().to_vec()
            })
            .collect()
    }

    #[test]
    fn it_does_what_it_says() {
        let (n, dim) = (60, 5);
        let (values, truth) = (examples::uniform(n, dim, 3), truth(n));
        for metric in [Metric::Plain, Metric::Whitened] {
            for normalize in [Normalize::None, Normalize::L2] {
                let mut task = Task { truth: Some(&truth), degree: 2, ..Task::new(Embeddings::new(&values, dim)) };
                task.space.normalize = normalize;
                let found = told(metric).cluster(&task, &Services::none()).unwrap();
                found.check(&task).unwrap();
                let expected = naive(&values, dim, &truth, Params { metric, ..Params::default() }, normalize);
                assert_eq!(found.assignments, expected.iter().collect(), "{metric:?} {normalize:?}");
                assert!(found.assignments != truth, "uniform points are not told apart");
                let services = Services { threads: 3, ..Services::none() };
                assert_eq!(told(metric).cluster(&task, &services).unwrap().assignments, found.assignments);
            }
        }
    }

    #[test]
    fn an_example_has_no_say_in_its_own_mean() {
        // With it, the third would be nearest to its own set's mean, 4; without, to that of the others.
        let values = [0.0, 0.0, 12.0, 15.0, 17.0];
        let truth = Sets::singletons(&[0, 0, 0, 1, 1]);
        let task = Task { truth: Some(&truth), ..Task::new(Embeddings::new(&values, 1)) };
        let found = told(Metric::Plain).cluster(&task, &Services::none()).unwrap();
        assert_eq!(found.assignments, Sets::singletons(&[0, 0, 1, 1, 1]));
        assert_eq!((found.clusters, found.centroids), (Sets::singletons(&[0, 1]), vec![4.0, 16.0]));
    }

    #[test]
    fn whitening_looks_along_what_varies_little() {
        // Sets differ in the first dimension, and vary far more in the second.
        let values: Vec<f32> = (0..40)
            .flat_map(|row| [(row % 2) as f32 + 0.1 * ((row / 2) % 3) as f32, 10.0 * (row as f32 * 7.0).sin()])
            .collect();
        let truth: Sets = (0..40).map(|row| [row % 2]).collect();
        let task = Task { truth: Some(&truth), ..Task::new(Embeddings::new(&values, 2)) };
        let right = |metric: Metric, shrinkage: f64| {
            let found = Told(Params { metric, shrinkage }).cluster(&task, &Services::none()).unwrap();
            found.assignments.iter().zip(truth.iter()).filter(|(found, truth)| found == truth).count()
        };
        assert_eq!(right(Metric::Whitened, 0.0), 40);
        assert!(right(Metric::Plain, 0.0) < 40);
        assert_eq!(right(Metric::Whitened, 1.0), right(Metric::Plain, 0.0));
    }

    #[test]
    fn small_and_impossible_sets_are_no_obstacle() {
        let host = Watcher::new(usize::MAX);
        let services = Services { host: &host, ..Services::none() };
        let values = [0.0, 0.1, 5.0, 5.1, 9.0, 20.0, 20.1];
        // One example alone, two without any class, and two of a set beyond the degree.
        let truth = Sets::from_iter([vec![0], vec![0], vec![], vec![], vec![1], vec![0, 1], vec![0, 1]]);
        let task = Task { truth: Some(&truth), ..Task::new(Embeddings::new(&values, 1)) };
        for metric in [Metric::Plain, Metric::Whitened] {
            let component = Registration::clusterer::<Told>().component().unwrap();
            let params =
                format!(r#"{{"metric": "{}"}}"#, if metric == Metric::Plain { "plain" } else { "whitened" });
            let told = ForeignClusterer::try_from(component.create(&params, &services).unwrap()).unwrap();
            let found = told.cluster(&task, &services).unwrap();
            let expected = [vec![0], vec![0], vec![], vec![], vec![], vec![1], vec![1]];
            assert_eq!(found.assignments, Sets::from_iter(expected));
        }
        let expected = "1 true sets have more members than the degree, 1: their examples are given to others";
        assert_eq!(host.warnings()[0], expected);
        // Nothing varies, and a single example.
        let truth = Sets::singletons(&[0, 0, 1]);
        let task = Task { truth: Some(&truth), ..Task::new(Embeddings::new(&[1.0, 1.0, 2.0], 1)) };
        let found = told(Metric::Whitened).cluster(&task, &services).unwrap();
        assert_eq!(found.assignments, Sets::singletons(&[0, 0, 0]));
        let truth = Sets::singletons(&[7]);
        let task = Task { truth: Some(&truth), ..Task::new(Embeddings::new(&[1.0], 1)) };
        assert_eq!(told(Metric::Plain).cluster(&task, &services).unwrap().assignments, truth);
    }
}
