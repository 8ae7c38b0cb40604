//! Sizes, means and covariances of components from their responsibilities: the M-step.
//!
//! ```text
//! nⱼ = Σᵢ rᵢⱼ + 10ε,    x̄ⱼ = Σᵢ rᵢⱼ xᵢ / nⱼ,    Sⱼ = Σᵢ rᵢⱼ (xᵢ - x̄ⱼ)(xᵢ - x̄ⱼ)ᵀ / nⱼ + reg·I
//! ```
//!
//! If examples have weights, r stands for wᵢrᵢⱼ here, as if every example were there wᵢ times.
//!
//! A tied covariance is Σⱼ nⱼSⱼ / Σⱼ nⱼ, for which Σ xxᵀ, summed once, is enough; a diagonal one is the diagonal of Sⱼ, a
//! spherical one its mean. Cost: n·k·p² for full covariances, k·p² for a tied one, n·k·p for the others, in f64.

use compflow_api::{Result, Services};
use pulp::{Arch, NullaryFnOnce};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::gaussians::Expectation;
use crate::tiles::{LANES, ROWS, Tile, Tiles, lanes, multiply};
use compflow_kernels::workers::Workers;

/// Added to every component's size, so that an empty one can be divided by.
const LEAST_SIZE: f64 = 10.0 * f64::EPSILON;

/// What covariances look like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Covariance {
    /// Every component has a matrix of its own.
    #[default]
    Full,
    /// All components have the same matrix.
    Tied,
    /// Every component has a variance for each dimension.
    Diag,
    /// Every component has one variance.
    Spherical,
}

impl Covariance {
    /// How many numbers a component's scatter has.
    pub(crate) fn numbers(self, dim: usize) -> usize {
        match self {
            Self::Full => dim.saturating_mul(dim),
            // The scatter around components' means follows from that around the overall mean.
            Self::Tied => 0,
            Self::Diag | Self::Spherical => dim,
        }
    }
}

/// Sizes, means and covariances.
pub(crate) struct Moments {
    pub(crate) sizes: Vec<f64>,
    /// Row-major, in the coordinates of the tiles.
    pub(crate) means: Vec<f64>,
    /// Full: a row-major matrix per component; tied: one; diagonal: a row per component; spherical: a number each.
    pub(crate) covariances: Vec<f64>,
}

/// Finds moments again and again.
pub(crate) struct Estimator<'a> {
    pub(crate) tiles: &'a Tiles,
    pub(crate) covariance: Covariance,
    pub(crate) reg_covar: f64,
    /// Σ wxxᵀ of all examples.
    scatter: Vec<f64>,
}

impl<'a> Estimator<'a> {
    pub(crate) fn new(tiles: &'a Tiles, covariance: Covariance, reg_covar: f64) -> Self {
        let mut scatter = vec![0.0; tiles.dim() * tiles.dim()];
        let mut weighted = vec![0.0; tiles.dim() * ROWS];
        for tile in tiles.pieces().flatten() {
            for (to, from) in weighted.chunks_exact_mut(ROWS).zip(tile.values.chunks_exact(ROWS)) {
                to.iter_mut().zip(from).zip(tile.weights).for_each(|((to, from), weight)| *to = from * weight);
            }
            multiply(&weighted, tile.values, &mut scatter);
        }
        Self { tiles, covariance, reg_covar, scatter }
    }

    /// Of all dimensions.
    pub(crate) fn largest_variance(&self) -> f64 {
        let sums = self.scatter.iter().step_by(self.tiles.dim() + 1);
        sums.fold(0.0, |largest: f64, sum| largest.max(*sum)) / self.tiles.total()
    }

    /// The covariance of all examples, of the kind that components have; 0 if there is only one.
    pub(crate) fn overall(&self) -> Vec<f64> {
        let (dim, degrees) = (self.tiles.dim(), (self.tiles.total() - 1.0).max(1.0));
        let variances = self.scatter.iter().step_by(dim + 1).map(|sum| sum / degrees);
        match self.covariance {
            Covariance::Full | Covariance::Tied => self.scatter.iter().map(|sum| sum / degrees).collect(),
            Covariance::Diag => variances.collect(),
            Covariance::Spherical => vec![variances.sum::<f64>() / dim as f64],
        }
    }

    /// The moments of weighted responsibilities, a table like the examples, of which the sums are known.
    pub(crate) fn estimate(
        &self,
        expectation: &Expectation,
        responsibilities: &[f64],
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<Moments> {
        let (tiles, dim) = (self.tiles, self.tiles.dim());
        let sizes: Vec<f64> = expectation.totals.iter().map(|total| total + LEAST_SIZE).collect();
        // Responsibilities that add up to next to nothing draw the mean towards the origin of the examples as they
        // came, which is at -mean here.
        let rows = expectation.sums.chunks_exact(dim).zip(&sizes);
        let means: Vec<f64> = rows
            .flat_map(|(sums, size)| {
                sums.iter().zip(tiles.mean()).map(move |(sum, m)| (sum - LEAST_SIZE * m) / size)
            })
            .collect();
        let k = sizes.len();
        let mut covariances = match self.covariance {
            Covariance::Tied => {
                let mut scatter = self.scatter.clone();
                for (mean, size) in means.chunks_exact(dim).zip(&sizes) {
                    for (row, a) in scatter.chunks_exact_mut(dim).zip(mean) {
                        row.iter_mut().zip(mean).for_each(|(value, b)| *value -= size * a * b);
                    }
                }
                let size: f64 = sizes.iter().sum();
                scatter.iter_mut().for_each(|value| *value /= size);
                scatter
            }
            Covariance::Full | Covariance::Diag | Covariance::Spherical => {
                let mut scatter = self.scatter_around(&means, responsibilities, workers, services)?;
                let components = means.chunks_exact(dim).zip(&sizes);
                for (scatter, (mean, size)) in
                    scatter.chunks_exact_mut(self.covariance.numbers(dim)).zip(components)
                {
                    if self.covariance != Covariance::Full {
                        // E[x²] - μ², which scikit-learn has in place of the mean of (x - μ)², also counts what was
                        // added to the size, at the origin of the examples as they came.
                        for (value, (mean, shift)) in scatter.iter_mut().zip(mean.iter().zip(tiles.mean())) {
                            *value += LEAST_SIZE * (mean + shift).powi(2);
                        }
                    }
                    scatter.iter_mut().for_each(|value| *value /= size);
                }
                scatter
            }
        };
        if self.covariance == Covariance::Spherical {
            covariances = covariances.chunks_exact(dim).map(|row| row.iter().sum::<f64>() / dim as f64).collect();
        }
        add_to_diagonal(&mut covariances, self.covariance, dim, self.reg_covar);
        debug_assert!(covariances.len().is_multiple_of(k) || self.covariance == Covariance::Tied);
        Ok(Moments { sizes, means, covariances })
    }

    /// Σᵢ rᵢⱼ (xᵢ - μⱼ)(xᵢ - μⱼ)ᵀ of every component, or its diagonal.
    fn scatter_around(
        &self,
        means: &[f64],
        responsibilities: &[f64],
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<Vec<f64>> {
        let (dim, full, arch) = (self.tiles.dim(), self.covariance == Covariance::Full, Arch::new());
        let k = means.len() / dim;
        let numbers = self.covariance.numbers(dim);
        let tables = responsibilities.chunks(self.tiles.piece_of(k));
        let pieces = self.tiles.pieces().map(Iterator::collect).zip(tables);
        let partial = workers.map(pieces, |(tiles, table): (Vec<Tile<'_>>, _)| {
            let mut sums = vec![0.0; k * numbers];
            let (mut z, mut weighted) = (vec![0.0; dim * ROWS], vec![0.0; dim * ROWS]);
            for (tile, part) in tiles.into_iter().zip(table.chunks_exact(k * ROWS)) {
                services.check_cancelled()?;
                let components = means.chunks_exact(dim).zip(part.chunks_exact(ROWS));
                for (sums, (mean, weights)) in sums.chunks_exact_mut(numbers).zip(components) {
                    if weights.iter().all(|weight| *weight == 0.0) {
                        continue;
                    }
                    arch.dispatch(Centre { tile, mean, weights, z: &mut z, weighted: &mut weighted });
                    if full {
                        multiply(&weighted, &z, sums);
                    } else {
                        arch.dispatch(Variances { z: &z, weighted: &weighted, sums });
                    }
                }
            }
            Ok(sums)
        })?;
        let mut sums = vec![0.0; k * numbers];
        for partial in &partial {
            sums.iter_mut().zip(partial).for_each(|(sum, partial)| *sum += partial);
        }
        Ok(sums)
    }
}

/// Adds to the diagonals of covariances.
pub(crate) fn add_to_diagonal(covariances: &mut [f64], kind: Covariance, dim: usize, value: f64) {
    match kind {
        Covariance::Full | Covariance::Tied => {
            for matrix in covariances.chunks_exact_mut(dim * dim) {
                matrix.iter_mut().step_by(dim + 1).for_each(|entry| *entry += value);
            }
        }
        Covariance::Diag | Covariance::Spherical => covariances.iter_mut().for_each(|entry| *entry += value),
    }
}

/// A tile's differences from a mean, as they are and weighted; types because closures would not be compiled for the
/// processor's vectors.
struct Centre<'a> {
    tile: Tile<'a>,
    mean: &'a [f64],
    weights: &'a [f64],
    z: &'a mut [f64],
    weighted: &'a mut [f64],
}

impl NullaryFnOnce for Centre<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let columns = self.z.chunks_exact_mut(ROWS).zip(self.weighted.chunks_exact_mut(ROWS));
        for ((z, weighted), (x, mean)) in columns.zip(self.tile.values.chunks_exact(ROWS).zip(self.mean)) {
            for (((z, weighted), x), weight) in z.iter_mut().zip(weighted).zip(x).zip(self.weights) {
                *z = x - mean;
                *weighted = weight * *z;
            }
        }
    }
}

/// Σ of the products of differences and weighted differences, dimension by dimension.
struct Variances<'a> {
    z: &'a [f64],
    weighted: &'a [f64],
    sums: &'a mut [f64],
}

impl NullaryFnOnce for Variances<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let columns = self.z.chunks_exact(ROWS).zip(self.weighted.chunks_exact(ROWS));
        for (sum, (z, weighted)) in self.sums.iter_mut().zip(columns) {
            let mut products = [0.0; LANES];
            for start in (0..ROWS).step_by(LANES) {
                let (z, weighted) = (lanes(z, start), lanes(weighted, start));
                for lane in 0..LANES {
                    products[lane] += z[lane] * weighted[lane];
                }
            }
            *sum += products.iter().sum::<f64>();
        }
    }
}
