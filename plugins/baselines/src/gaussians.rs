//! Gaussian components, and how much each is responsible for every example: the E-step.
//!
//! ```text
//! log ρᵢⱼ = oⱼ - ½‖Fⱼ(xᵢ - μⱼ)‖²,    rᵢⱼ = ρᵢⱼ / Σₗ ρᵢₗ
//! ```
//!
//! with Fⱼ from [`inverse_factor`](compflow_kernels::cholesky::inverse_factor) and all that does not depend on x in the
//! offset oⱼ. An example of weight w counts w times in all sums. Several examples and several rows of F are taken at a
//! time, and only what lies below F's diagonal. Cost: n·k·p²/2
//! for full and tied covariances, n·k·p for the others, in f64.

use compflow_api::{Densities, Result, Services, Sets};
use pulp::{Arch, Simd, WithSimd};

use crate::tiles::{LANES, ROWS, Tile, Tiles, lanes, live};
use compflow_kernels::workers::Workers;

/// Rows of a factor taken at a time: with [`LANES`] examples they fill half of the vector registers.
const GROUP: usize = 4;

/// Numbers of factors that are handed on at most: 64 MiB.
pub(crate) const MOST_HANDED_ON: usize = 1 << 24;

/// The components of a mixture.
pub(crate) struct Gaussians {
    /// Row-major, in the coordinates of the tiles.
    pub(crate) means: Vec<f64>,
    pub(crate) factors: Factors,
    /// What is added to every component's logarithm.
    pub(crate) offsets: Vec<f64>,
}

/// The factors F of the components, or one for all of them.
pub(crate) enum Factors {
    /// Lower triangular.
    Matrices(Vec<Triangle>),
    /// The diagonals, row-major.
    Diagonals(Vec<f64>),
}

/// A lower triangular matrix in the order in which [`Triangle::square`] reads it.
pub(crate) struct Triangle {
    /// [`GROUP`] rows after the other, and of these one column after the other up to the diagonal.
    values: Vec<[f64; GROUP]>,
}

impl Triangle {
    /// From row-major numbers.
    pub(crate) fn new(matrix: &[f64], dim: usize) -> Self {
        let mut values = Vec::new();
        for first in (0..dim).step_by(GROUP) {
            for column in 0..dim.min(first + GROUP) {
                let row = |at| if first + at < dim { matrix[(first + at) * dim + column] } else { 0.0 };
                values.push(std::array::from_fn(row));
            }
        }
        Self { values }
    }

    /// Row by row without what is above the diagonal.
    fn lower(&self, dim: usize) -> impl Iterator<Item = f64> + '_ {
        // The columns of all groups before a row's own.
        let before = |group: usize| (1..=group).map(|group| group * GROUP).sum::<usize>();
        (0..dim).flat_map(move |row| {
            let start = before(row / GROUP);
            (0..=row).map(move |column| self.values[start + column][row % GROUP])
        })
    }

    /// ‖Fz‖² for several z; `FUSED` where the processor multiplies and adds in one step.
    #[inline(always)]
    fn square<const FUSED: bool>(&self, z: &[[f64; LANES]]) -> [f64; LANES] {
        let mut squares = [0.0; LANES];
        let mut rest = &self.values[..];
        for first in (0..z.len()).step_by(GROUP) {
            let z = &z[..z.len().min(first + GROUP)];
            let (group, behind) = rest.split_at(z.len());
            rest = behind;
            let mut products = [[0.0; LANES]; GROUP];
            for (column, z) in group.iter().zip(z) {
                for row in 0..GROUP {
                    for lane in 0..LANES {
                        products[row][lane] = match FUSED {
                            true => column[row].mul_add(z[lane], products[row][lane]),
                            false => column[row] * z[lane] + products[row][lane],
                        };
                    }
                }
            }
            for product in products {
                for lane in 0..LANES {
                    squares[lane] += product[lane] * product[lane];
                }
            }
        }
        squares
    }
}

/// What an E-step finds, besides the responsibilities.
pub(crate) struct Expectation {
    /// Σᵢ wᵢ log Σⱼ ρᵢⱼ.
    pub(crate) log_likelihood: f64,
    /// -Σ wr log r.
    pub(crate) entropy: f64,
    /// Σᵢ wᵢrᵢⱼ of every component.
    pub(crate) totals: Vec<f64>,
    /// Σᵢ wᵢrᵢⱼ xᵢ of every component, row-major.
    pub(crate) sums: Vec<f64>,
}

impl Expectation {
    fn zero(k: usize, dim: usize) -> Self {
        Self { log_likelihood: 0.0, entropy: 0.0, totals: vec![0.0; k], sums: vec![0.0; k * dim] }
    }

    fn add(&mut self, other: &Self) {
        self.log_likelihood += other.log_likelihood;
        self.entropy += other.entropy;
        self.totals.iter_mut().zip(&other.totals).for_each(|(total, other)| *total += other);
        self.sums.iter_mut().zip(&other.sums).for_each(|(sum, other)| *sum += other);
    }

    /// What given responsibilities add up to.
    pub(crate) fn given(tiles: &Tiles, responsibilities: &[f64]) -> Self {
        let (columns, dim) = (responsibilities.len() / tiles.len().next_multiple_of(ROWS), tiles.dim());
        let mut total = Self::zero(columns, dim);
        for (tile, part) in tiles.pieces().flatten().zip(responsibilities.chunks_exact(columns * ROWS)) {
            tile.weigh(part, &mut total.sums, &mut total.totals);
        }
        total
    }
}

impl Gaussians {
    /// log ρ of single components in the coordinates that the examples came in, for new ones. None if so many factors are
    /// more than anybody would keep, or 32 bits do not hold them.
    pub(crate) fn handed_on(&self, tiles: &Tiles) -> Densities {
        let (k, dim) = (self.offsets.len(), tiles.dim());
        let count = match &self.factors {
            Factors::Matrices(triangles) => triangles.len(),
            Factors::Diagonals(_) => k,
        };
        if Densities::factor_len(dim).saturating_mul(count) > MOST_HANDED_ON {
            return Densities::default();
        }
        let factors: Vec<f32> = match &self.factors {
            Factors::Matrices(triangles) => {
                triangles.iter().flat_map(|triangle| triangle.lower(dim)).map(|value| value as f32).collect()
            }
            Factors::Diagonals(diagonals) => {
                let row = |(row, &value): (usize, &f64)| {
                    std::iter::repeat_n(0.0, row % dim).chain(std::iter::once(value as f32))
                };
                diagonals.iter().enumerate().flat_map(row).collect()
            }
        };
        let centres: Vec<f32> = tiles.restore(&self.means).iter().map(|&value| value as f32).collect();
        let finite = factors.iter().chain(&centres).all(|value| value.is_finite());
        match finite && self.offsets.iter().all(|offset| offset.is_finite()) {
            true => Densities {
                sets: Sets::singletons(&(0..k as u32).collect::<Vec<u32>>()),
                centres,
                offsets: self.offsets.clone(),
                factor_of: (0..k).map(|at| (at % count) as u32).collect(),
                factors,
            },
            false => Densities::default(),
        }
    }

    /// Fills in the responsibilities times the examples' weights, a table like the examples.
    pub(crate) fn expect(
        &self,
        tiles: &Tiles,
        responsibilities: &mut [f64],
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<Expectation> {
        self.pass(tiles, true, responsibilities, workers, services)
    }

    /// Fills in the responsibilities as they are.
    pub(crate) fn memberships(
        &self,
        tiles: &Tiles,
        responsibilities: &mut [f64],
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<()> {
        self.pass(tiles, false, responsibilities, workers, services).map(drop)
    }

    fn pass(
        &self,
        tiles: &Tiles,
        weighted: bool,
        responsibilities: &mut [f64],
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<Expectation> {
        let (k, dim, arch) = (self.offsets.len(), tiles.dim(), Arch::new());
        let pieces = tiles.pieces().map(Iterator::collect).zip(responsibilities.chunks_mut(tiles.piece_of(k)));
        let partial = workers.map(pieces, |(tiles, table): (Vec<Tile<'_>>, _)| {
            let mut found = Expectation::zero(k, dim);
            for (tile, part) in tiles.into_iter().zip(table.chunks_exact_mut(k * ROWS)) {
                services.check_cancelled()?;
                let (log_likelihood, entropy) =
                    arch.dispatch(Pass { gaussians: self, tile, weighted, table: &mut *part });
                found.log_likelihood += log_likelihood;
                found.entropy += entropy;
                tile.weigh(part, &mut found.sums, &mut found.totals);
            }
            Ok(found)
        })?;
        let mut found = Expectation::zero(k, dim);
        partial.iter().for_each(|partial| found.add(partial));
        Ok(found)
    }
}

/// The work on one tile, as a type because a closure would not be compiled for the processor's vectors.
struct Pass<'a> {
    gaussians: &'a Gaussians,
    tile: Tile<'a>,
    weighted: bool,
    table: &'a mut [f64],
}

impl WithSimd for Pass<'_> {
    /// Σ w log Σ ρ, and -Σ wr log r.
    type Output = (f64, f64);

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> (f64, f64) {
        // All processors whose vectors pulp uses have the fused instruction; elsewhere it would be a slow function.
        match S::F64_LANES > 1 {
            true => self.pass::<true>(),
            false => self.pass::<false>(),
        }
    }
}

impl Pass<'_> {
    #[inline(always)]
    fn pass<const FUSED: bool>(self) -> (f64, f64) {
        let Self { gaussians: Gaussians { means, factors, offsets }, tile, weighted, table } = self;
        let dim = tile.values.len() / ROWS;
        let mut z = vec![[0.0; LANES]; dim];
        let mut logs = vec![[0.0; LANES]; offsets.len()];
        let (mut log_likelihood, mut entropy) = ([0.0; LANES], [0.0; LANES]);
        for start in (0..tile.rows).step_by(LANES) {
            let weights = if weighted { lanes(tile.weights, start) } else { live(start, tile.rows) };
            let mut most = [f64::NEG_INFINITY; LANES];
            for (at, (log, mean)) in logs.iter_mut().zip(means.chunks_exact(dim)).enumerate() {
                for (axis, (z, mean)) in z.iter_mut().zip(mean).enumerate() {
                    let x = lanes(tile.values, axis * ROWS + start);
                    for lane in 0..LANES {
                        z[lane] = x[lane] - mean;
                    }
                }
                let squares = match factors {
                    Factors::Matrices(triangles) => triangles[at % triangles.len()].square::<FUSED>(&z),
                    Factors::Diagonals(diagonals) => {
                        let mut squares = [0.0; LANES];
                        for (z, factor) in z.iter().zip(&diagonals[at * dim..][..dim]) {
                            for lane in 0..LANES {
                                squares[lane] += (z[lane] * factor) * (z[lane] * factor);
                            }
                        }
                        squares
                    }
                };
                for lane in 0..LANES {
                    log[lane] = offsets[at] - 0.5 * squares[lane];
                    most[lane] = most[lane].max(log[lane]);
                }
            }
            let mut total = [0.0; LANES];
            for (log, part) in logs.iter_mut().zip(table.chunks_exact_mut(ROWS)) {
                for lane in 0..LANES {
                    log[lane] -= most[lane];
                    let value = libm::exp(log[lane]);
                    total[lane] += value;
                    part[start + lane] = value;
                }
            }
            let log_total = total.map(f64::ln);
            for (log, part) in logs.iter().zip(table.chunks_exact_mut(ROWS)) {
                for lane in 0..LANES {
                    let value = part[start + lane] / total[lane] * weights[lane];
                    // What is 0 contributes nothing, although its logarithm may be infinite.
                    let term = if value > 0.0 { value * (log_total[lane] - log[lane]) } else { 0.0 };
                    entropy[lane] += term;
                    part[start + lane] = value;
                }
            }
            for lane in 0..LANES {
                log_likelihood[lane] += (most[lane] + log_total[lane]) * weights[lane];
            }
        }
        (log_likelihood.iter().sum(), entropy.iter().sum())
    }
}
