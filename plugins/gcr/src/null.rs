//! Whether clusters lie nearer to compositions than those do that are none: a rotation test.
//!
//! The distances d_j always part somewhere, so where they part says nothing by itself. Compared are clusters that have
//! the same mean and the same covariance and no unions. With M the k×p matrix of the means, c their mean, and Q a random
//! orthogonal k×k matrix with Q·1 = 1,
//!
//! ```text
//! M' = 1·cᵀ + Q·(M - 1·cᵀ)
//! ```
//!
//! are means mixed at random. If the means come from any normal distribution, M' and M are equally likely, however few
//! clusters there are, whatever their covariance (also one of low rank) and whatever g. (Numbers permuted between clusters
//! would do only if coordinates were independent.)
//!
//! How well they do is how far they stay below the threshold, Σ (τ - d_j) over the j with d_j < τ, in Euclidean distances.
//! As τ is one that parts the distances of M and not those of M', M has a small advantage: where the share of M' that do as
//! well is at most 5 %, unions are found where there are none in about 6 % of the cases. With a threshold of its own for
//! every M' the share would be an exact p-value.
//!
//! Clusters that may be [parts](crate::parts) of one count as that one, M being what the base would have found without
//! splitting any: else they would lie near compositions that contain the other part, and mixed means never do.
//!
//! Of many clusters, or of clusters with many compositions, some are looked at, drawn at random: of M as of M'.
//!
//! Q = U·Bᵀ with B the Helmert basis of the vectors orthogonal to 1 and U a random one: normal vectors, made orthogonal to
//! 1 and to one another. Rows are taken in the order of their values, so that the numbers of clusters do not matter.

use std::cmp::Ordering;

use compflow_api::{Distance, Embeddings, Result, Services};
use rand::SeedableRng;
use rand::seq::index;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::compositions::{Compositions, Near};

/// How often the means are mixed.
const DRAWS: usize = 39;
/// Of these as many, and the clusters themselves, may do as well: a p-value of 2 in 40.
const MOST: usize = 1;

/// Clusters are looked at until so many numbers are compared for one draw …
const BUDGET: usize = 1 << 26;
/// … but at least so many clusters.
const FEWEST: usize = 32;

/// How the clusters compare with clusters without unions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Null {
    /// How often the means were mixed.
    pub(crate) draws: usize,
    /// How often that did as well.
    pub(crate) as_well: usize,
}

impl Null {
    /// Whether so few do as well that the clusters have unions.
    pub(crate) fn rejected(&self) -> bool {
        self.as_well <= MOST
    }

    /// The share of those that do as well, the clusters themselves among them.
    pub(crate) fn chance(&self) -> f64 {
        (1 + self.as_well) as f64 / (1 + self.draws) as f64
    }
}

/// Compares clusters, with their nearest compositions, at a threshold. Ends as soon as the outcome is known.
pub(crate) fn compare(
    compositions: &Compositions<'_>,
    nearest: &[Option<Near>],
    threshold: f64,
    services: &Services<'_>,
) -> Result<Null> {
    let (means, kind) = (compositions.means(), compositions.distance());
    let rotation = Rotation::new(means);
    let mut rng = ChaCha8Rng::seed_from_u64(services.seed);
    let compared = (BUDGET / compositions.width().max(1)).max(FEWEST).min(nearest.len());
    let own = index::sample(&mut rng, nearest.len(), compared).into_iter().map(|at| nearest[rotation.order[at]]);
    let own = below(own, threshold, kind);
    let mut null = Null { draws: 0, as_well: 0 };
    while null.draws < DRAWS && null.rejected() {
        let mixed = rotation.draw(&mut rng);
        let nearest = compositions.of(Embeddings::new(&mixed, means.dim()), compared).nearest(services)?;
        null.draws += 1;
        null.as_well += usize::from(below(nearest.into_iter(), threshold, kind) >= own);
    }
    Ok(null)
}

/// How far the distances stay below the threshold.
fn below(nearest: impl Iterator<Item = Option<Near>>, threshold: f64, kind: Distance) -> f64 {
    let euclidean = |distance: f64| match kind {
        Distance::SqEuclidean => distance.sqrt(),
        Distance::Euclidean => distance,
    };
    let near = nearest.flatten().map(|near| near.distance).filter(|distance| *distance < threshold);
    let mut below: Vec<f64> = near.map(|distance| euclidean(threshold) - euclidean(distance)).collect();
    // Added up in an order that numbers have no part in.
    below.sort_by(f64::total_cmp);
    below.iter().sum()
}

/// What all mixtures of the same means share.
struct Rotation {
    dim: usize,
    /// The clusters in the order of their values.
    order: Vec<usize>,
    mean: Vec<f64>,
    /// Bᵀ(M - 1·cᵀ): one row less than M.
    contrasts: Vec<f64>,
}

impl Rotation {
    fn new(means: Embeddings<'_>) -> Self {
        let rows: Vec<&[f32]> = means.rows().collect();
        let (k, dim) = (rows.len(), means.dim());
        let mut order: Vec<usize> = (0..k).collect();
        order.sort_by(|&a, &b| {
            let values = rows[a].iter().zip(rows[b]);
            values.map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        });
        // Row i of Bᵀ compares row i with the mean of those before it, so c falls out.
        let (mut before, mut contrasts) = (vec![0.0; dim], Vec::with_capacity((k - 1) * dim));
        for (at, row) in order.iter().map(|&cluster| rows[cluster]).enumerate() {
            if at > 0 {
                let count = at as f64;
                let scale = (count / (count + 1.0)).sqrt();
                contrasts
                    .extend(before.iter().zip(row).map(|(sum, &value)| scale * (sum / count - f64::from(value))));
            }
            before.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
        }
        Self { dim, order, mean: before.iter().map(|sum| sum / k as f64).collect(), contrasts }
    }

    /// Means mixed at random, row-major.
    fn draw(&self, rng: &mut ChaCha8Rng) -> Vec<f32> {
        let k = self.contrasts.len() / self.dim + 1;
        let basis = basis(k, rng);
        let mut rows: Vec<f64> = self.mean.repeat(k);
        for (direction, contrast) in basis.iter().zip(self.contrasts.chunks_exact(self.dim)) {
            for (row, weight) in rows.chunks_exact_mut(self.dim).zip(direction) {
                row.iter_mut().zip(contrast).for_each(|(value, contrast)| *value += weight * contrast);
            }
        }
        rows.iter().map(|&value| value as f32).collect()
    }
}

/// k-1 random vectors of k numbers, of length 1 and orthogonal to one another and to 1.
fn basis(k: usize, rng: &mut ChaCha8Rng) -> Vec<Vec<f64>> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut basis = vec![vec![(k as f64).sqrt().recip(); k]];
    while basis.len() < k {
        let mut vector: Vec<f64> = StandardNormal.sample_iter(&mut *rng).take(k).collect();
        // Twice, as rounding leaves something of what was taken away.
        for earlier in basis.iter().chain(&basis) {
            let along = dot(&vector, earlier);
            vector.iter_mut().zip(earlier).for_each(|(value, earlier)| *value -= along * earlier);
        }
        let length = dot(&vector, &vector).sqrt();
        vector.iter_mut().for_each(|value| *value /= length);
        basis.push(vector);
    }
    basis.split_off(1)
}

#[cfg(test)]
mod tests {
    use compflow_api::Task;
    use compflow_kernels::testing::examples;

    use super::*;
    use crate::testing;

    #[test]
    fn mixed_means_have_the_same_mean_and_covariance_and_are_others() {
        let (k, dim) = (7, 3);
        let values = examples::uniform(k, dim, 8);
        let mixed = Rotation::new(Embeddings::new(&values, dim)).draw(&mut ChaCha8Rng::seed_from_u64(1));
        let moments = |rows: &[f32]| -> (Vec<f64>, Vec<f64>) {
            let column = |at: usize| rows.iter().skip(at).step_by(dim).map(|&value| f64::from(value));
            let products = |a: usize, b: usize| column(a).zip(column(b)).map(|(a, b)| a * b).sum();
            let pairs = (0..dim).flat_map(|a| (0..dim).map(move |b| (a, b)));
            ((0..dim).map(|at| column(at).sum()).collect(), pairs.map(|(a, b)| products(a, b)).collect())
        };
        let ((sums, products), (expected_sums, expected_products)) = (moments(&mixed), moments(&values));
        for (found, expected) in sums.iter().chain(&products).zip(expected_sums.iter().chain(&expected_products)) {
            assert!((found - expected).abs() < 1e-5, "{found} {expected}");
        }
        assert!(mixed.iter().zip(&values).any(|(mixed, value)| (mixed - value).abs() > 0.1));
    }

    #[test]
    fn the_order_of_clusters_does_not_matter() {
        let values = examples::uniform(5, 4, 9);
        let backwards: Vec<f32> = values.chunks_exact(4).rev().flatten().copied().collect();
        let draw = |rows: &[f32]| Rotation::new(Embeddings::new(rows, 4)).draw(&mut ChaCha8Rng::seed_from_u64(2));
        assert_eq!(draw(&values), draw(&backwards));
    }

    #[test]
    fn of_many_clusters_some_are_looked_at() {
        let (k, dim) = (60, 5);
        let composer = testing::max();
        let values = examples::uniform(k, dim, 4);
        let means = Embeddings::new(&values, dim);
        let task = Task { degree: 2, composer: Some(&composer), ..Task::new(means) };
        let compositions = Compositions::new(task, means, &Services::none()).unwrap();
        let nearest = compositions.nearest(&Services::none()).unwrap();
        let some = compositions.of(means, 7).nearest(&Services::none()).unwrap();
        assert_eq!(some, nearest[..7]);
    }

    #[test]
    fn the_basis_is_one() {
        let basis = basis(30, &mut ChaCha8Rng::seed_from_u64(3));
        assert_eq!(basis.len(), 29);
        for (at, vector) in basis.iter().enumerate() {
            assert!(vector.iter().sum::<f64>().abs() < 1e-12);
            for (other, earlier) in basis.iter().enumerate() {
                let product: f64 = vector.iter().zip(earlier).map(|(a, b)| a * b).sum();
                assert!((product - f64::from(u8::from(at == other))).abs() < 1e-12);
            }
        }
    }
}
