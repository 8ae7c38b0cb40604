//! The work of an iteration on one tile of examples: from distances to memberships and their powers.

use pulp::NullaryFnOnce;

use crate::tiles::{LANES, ROWS, Tile, lanes, live};

/// Distances and memberships below this, and distances below this part of an example's largest, are raised to it.
pub(super) const LEAST: f64 = f64::EPSILON;
/// Weights uᵐ below this are raised to it, so that for huge m not all of a cluster's weights vanish.
pub(super) const LEAST_WEIGHT: f64 = 1e-280;
/// The largest q whose power is taken by products: more of them would take longer than a logarithm.
const MOST_PRODUCTS: u32 = 32;

/// How powers r^q are taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Power {
    /// By this many products.
    Products(u32),
    /// For any q.
    Any(f64),
}

impl Power {
    pub(super) fn new(m: f64) -> Self {
        let q = 1.0 / (m - 1.0);
        // m = 1.2 is no number that f64 has, so q is not quite 5 either.
        let whole = q.round();
        match (q - whole).abs() < 1e-12 * q && (1.0..=f64::from(MOST_PRODUCTS)).contains(&whole) {
            true => Self::Products(whole as u32 - 1),
            false => Self::Any(q),
        }
    }

    #[inline(always)]
    pub(super) fn of(self, ratio: [f64; LANES]) -> [f64; LANES] {
        match self {
            Self::Products(products) => {
                let mut power = ratio;
                for _ in 0..products {
                    for lane in 0..LANES {
                        power[lane] *= ratio[lane];
                    }
                }
                power
            }
            Self::Any(q) => ratio.map(|ratio| libm::pow(ratio, q)),
        }
    }
}

/// The work on one tile, as a type because a closure would not be compiled for the processor's vectors.
pub(super) struct Pass<'a> {
    pub(super) tile: Tile<'a>,
    pub(super) centres: &'a [f64],
    pub(super) u: &'a mut [f64],
    pub(super) powers: &'a mut [f64],
    pub(super) power: Power,
    pub(super) m: f64,
}

impl NullaryFnOnce for Pass<'_> {
    /// Σ uᵐd² of the memberships from before, and Σ of the squared changes of u.
    type Output = (f64, f64);

    #[inline(always)]
    fn call(self) -> (f64, f64) {
        let Self { tile, centres, u, powers, power, m } = self;
        let k = u.len() / ROWS;
        let dim = tile.values.len() / ROWS;
        let least_weight = libm::pow(LEAST, m).max(LEAST_WEIGHT);
        let (mut objective, mut change) = ([0.0; LANES], [0.0; LANES]);
        let mut squares = vec![[0.0; LANES]; k];
        for start in (0..tile.rows).step_by(LANES) {
            let live = live(start, tile.rows);
            distances(tile.values, start, centres, dim, &mut squares);

            let (mut least, mut most) = ([f64::INFINITY; LANES], [0.0f64; LANES]);
            for (squares, old) in squares.iter_mut().zip(powers.chunks_exact(ROWS)) {
                let old = lanes(old, start);
                for lane in 0..LANES {
                    squares[lane] = squares[lane].max(LEAST * LEAST);
                    objective[lane] += old[lane] * squares[lane];
                    least[lane] = least[lane].min(squares[lane]);
                    most[lane] = most[lane].max(squares[lane]);
                }
            }
            let floor = most.map(|most| most * (LEAST * LEAST));
            for lane in 0..LANES {
                least[lane] = least[lane].max(floor[lane]);
            }

            // Of d² only r is needed from here on; r^q waits in the place of u^m.
            let mut total = [0.0; LANES];
            for (squares, powers) in squares.iter_mut().zip(powers.chunks_exact_mut(ROWS)) {
                for lane in 0..LANES {
                    squares[lane] = least[lane] / squares[lane].max(floor[lane]);
                }
                let power = power.of(*squares);
                for lane in 0..LANES {
                    total[lane] += power[lane];
                }
                powers[start..start + LANES].copy_from_slice(&power);
            }
            let scale = total.map(|total| libm::pow(total, -m));
            for ((ratio, u), powers) in
                squares.iter().zip(u.chunks_exact_mut(ROWS)).zip(powers.chunks_exact_mut(ROWS))
            {
                let (old, power) = (lanes(u, start), lanes(powers, start));
                let (mut new, mut weight) = ([0.0; LANES], [0.0; LANES]);
                for lane in 0..LANES {
                    new[lane] = power[lane] / total[lane] * live[lane];
                    change[lane] += (new[lane] - old[lane]) * (new[lane] - old[lane]);
                    let exact = power[lane] * ratio[lane] * scale[lane];
                    let floored = if new[lane] < LEAST { least_weight } else { exact.max(LEAST_WEIGHT) };
                    weight[lane] = floored * live[lane];
                }
                u[start..start + LANES].copy_from_slice(&new);
                powers[start..start + LANES].copy_from_slice(&weight);
            }
        }
        (objective.iter().sum(), change.iter().sum())
    }
}

/// ‖x - c‖² of the examples from `start` on with every centre. Two centres at a time, so that an example is read half
/// as often.
#[inline(always)]
fn distances(values: &[f64], start: usize, centres: &[f64], dim: usize, squares: &mut [[f64; LANES]]) {
    let axis = |axis: usize| lanes(values, axis * ROWS + start);
    let mut pairs = centres.chunks_exact(2 * dim);
    let mut at = 0;
    for pair in &mut pairs {
        let (first, second) = pair.split_at(dim);
        let (mut a, mut b) = ([0.0; LANES], [0.0; LANES]);
        for (at, (first, second)) in first.iter().zip(second).enumerate() {
            let x = axis(at);
            for lane in 0..LANES {
                a[lane] += (x[lane] - first) * (x[lane] - first);
                b[lane] += (x[lane] - second) * (x[lane] - second);
            }
        }
        (squares[at], squares[at + 1]) = (a, b);
        at += 2;
    }
    if !pairs.remainder().is_empty() {
        let mut a = [0.0; LANES];
        for (at, centre) in pairs.remainder().iter().enumerate() {
            let x = axis(at);
            for lane in 0..LANES {
                a[lane] += (x[lane] - centre) * (x[lane] - centre);
            }
        }
        squares[at] = a;
    }
}
