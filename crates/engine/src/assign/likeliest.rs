//! The likeliest set of an example, and how likely it is:
//!
//! ```text
//! log π_c + log-density_c(x) = offset_c - ½‖F_c(x - u_c)‖²
//! ```
//!
//! Examples are multiplied with each F once, in f64, as by the mixture that the densities are from.

use compflow_api::{Densities, Result, Sets, Space};
use ndarray::{Array1, Array2, ArrayView2};

use super::assigner::{Choice, NOTHING};

/// Rows that are multiplied at a time.
const AT_ONCE: usize = 256;

/// Sets with densities.
pub(super) struct Likeliest {
    groups: Vec<Group>,
    /// What is subtracted from everything, so that data far from the origin keep their digits.
    shift: Vec<f64>,
    /// Which sets are "none of them".
    is_none: Vec<bool>,
    dim: usize,
}

/// Sets that have a factor in common.
struct Group {
    /// Fᵀ.
    factor: Array2<f64>,
    /// Which sets.
    sets: Vec<usize>,
    /// Fu of each, one per column.
    centres: Array2<f64>,
    /// ‖Fu‖² of each.
    norms: Array1<f64>,
    offsets: Vec<f64>,
}

impl Likeliest {
    /// Densities that were checked, of at least one set.
    pub(super) fn new(densities: &Densities, dim: usize) -> Result<Self> {
        let Densities { sets, centres, offsets, factor_of, factors } = densities;
        let mut shift = vec![0.0; dim];
        for centre in centres.chunks_exact(dim) {
            shift.iter_mut().zip(centre).for_each(|(sum, &value)| *sum += f64::from(value) / sets.len() as f64);
        }
        let mut groups = Vec::new();
        for (number, lower) in factors.chunks_exact(Densities::factor_len(dim)).enumerate() {
            let members: Vec<usize> = (0..sets.len()).filter(|&at| factor_of[at] as usize == number).collect();
            if members.is_empty() {
                continue;
            }
            let mut factor = Array2::zeros((dim, dim));
            let mut values = lower.iter();
            for row in 0..dim {
                for (column, &value) in (0..=row).zip(values.by_ref()) {
                    factor[(column, row)] = f64::from(value);
                }
            }
            let rows: Vec<f64> = members
                .iter()
                .flat_map(|&at| centres[at * dim..][..dim].iter().zip(&shift))
                .map(|(&value, shift)| f64::from(value) - shift)
                .collect();
            let white = ArrayView2::from_shape((members.len(), dim), &rows)?.dot(&factor);
            groups.push(Group {
                norms: white.outer_iter().map(|row| row.dot(&row)).collect(),
                centres: white.t().to_owned(),
                offsets: members.iter().map(|&at| offsets[at]).collect(),
                sets: members,
                factor,
            });
        }
        Ok(Self { groups, shift, is_none: sets.iter().map(<[u32]>::is_empty).collect(), dim })
    }

    /// What becomes of examples that are points of the space.
    pub(super) fn choose(
        &self,
        examples: &[f32],
        points: &[f32],
        space: Space,
        out: &mut Vec<Choice>,
    ) -> Result<()> {
        let (dim, count) = (self.dim, self.is_none.len());
        for chunk in examples.chunks(AT_ONCE * dim) {
            let shifted = chunk.chunks_exact(dim).flat_map(|row| row.iter().zip(&self.shift));
            let shifted: Vec<f64> = shifted.map(|(&value, shift)| f64::from(value) - shift).collect();
            let rows = ArrayView2::from_shape((chunk.len() / dim, dim), &shifted)?;
            let mut logs = Array2::zeros((rows.nrows(), count));
            for group in &self.groups {
                let white = rows.dot(&group.factor);
                let products = white.dot(&group.centres);
                for ((row, products), mut logs) in
                    white.outer_iter().zip(products.outer_iter()).zip(logs.outer_iter_mut())
                {
                    let own = row.dot(&row);
                    for (at, &set) in group.sets.iter().enumerate() {
                        let squared = (own - 2.0 * products[at] + group.norms[at]).max(0.0);
                        logs[set] = group.offsets[at] - 0.5 * squared;
                    }
                }
            }
            for (example, logs) in chunk.chunks_exact(dim).zip(logs.outer_iter()) {
                let distance = |set: usize| match self.is_none[set] {
                    true => f64::NAN,
                    false => space.distance(example, &points[set * dim..][..dim]),
                };
                out.push(choice(logs.iter().copied(), distance));
            }
        }
        Ok(())
    }
}

/// The likeliest by log-densities; the first of equally likely ones.
fn choice(logs: impl Iterator<Item = f64> + Clone, distance: impl Fn(usize) -> f64) -> Choice {
    let (mut best, mut next) = ((0, f64::NEG_INFINITY), (NOTHING as usize, f64::NEG_INFINITY));
    for (at, log) in logs.clone().enumerate() {
        if log > best.1 {
            next = if best.1 > f64::NEG_INFINITY { best } else { next };
            best = (at, log);
        } else if log > next.1 {
            next = (at, log);
        }
    }
    let total: f64 = logs.map(|log| (log - best.1).exp()).sum();
    let has_next = next.0 != NOTHING as usize;
    Choice {
        set: best.0 as u32,
        runner_up: next.0 as u32,
        distance: distance(best.0),
        runner_up_distance: if has_next { distance(next.0) } else { f64::NAN },
        margin: if has_next { best.1 - next.1 } else { f64::NAN },
        posterior: total.recip(),
        log_density: best.1 + total.ln(),
    }
}

/// Only the densities of some sets.
pub(super) fn restricted(densities: &Densities, keep: impl Fn(&[u32]) -> bool, dim: usize) -> Densities {
    let kept: Vec<usize> =
        densities.sets.iter().enumerate().filter(|(_, set)| keep(set)).map(|(at, _)| at).collect();
    Densities {
        sets: kept.iter().map(|&at| &densities.sets[at]).collect::<Sets>(),
        centres: kept.iter().flat_map(|&at| &densities.centres[at * dim..][..dim]).copied().collect(),
        offsets: kept.iter().map(|&at| densities.offsets[at]).collect(),
        factor_of: kept.iter().map(|&at| densities.factor_of[at]).collect(),
        factors: densities.factors.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sets with one shape, and "none of them" with a wider one, in two dimensions.
    fn densities() -> Densities {
        Densities {
            sets: Sets::from_iter([vec![], vec![0], vec![1]]),
            centres: vec![100.0, 100.0, 100.0, 100.0, 102.0, 100.0],
            offsets: vec![-6.0, -1.0, -1.0],
            factor_of: vec![1, 0, 0],
            factors: vec![2.0, 1.0, 1.0, 0.1, 0.0, 0.1],
        }
    }

    #[test]
    fn logs_and_posteriors_are_those_of_the_formula() {
        let densities = densities();
        let examples = [100.3, 99.5, 101.9, 100.0, 120.0, 80.0];
        let mut found = Vec::new();
        let likeliest = Likeliest::new(&densities, 2).unwrap();
        likeliest.choose(&examples, &densities.centres, Space::default(), &mut found).unwrap();
        for (x, choice) in examples.chunks_exact(2).zip(&found) {
            let log = |set: usize| {
                let factor = &densities.factors[densities.factor_of[set] as usize * 3..][..3];
                let rest: Vec<f64> =
                    (0..2).map(|axis| f64::from(x[axis]) - f64::from(densities.centres[set * 2 + axis])).collect();
                let (a, b, c) = (f64::from(factor[0]), f64::from(factor[1]), f64::from(factor[2]));
                let white = [a * rest[0], b * rest[0] + c * rest[1]];
                densities.offsets[set] - 0.5 * (white[0].powi(2) + white[1].powi(2))
            };
            let logs: Vec<f64> = (0..3).map(log).collect();
            let mut order: Vec<usize> = (0..3).collect();
            order.sort_by(|a, b| logs[*b].total_cmp(&logs[*a]));
            assert_eq!((choice.set as usize, choice.runner_up as usize), (order[0], order[1]));
            let total: f64 = logs.iter().map(|log| log.exp()).sum();
            assert!((choice.posterior - logs[order[0]].exp() / total).abs() < 1e-9);
            assert!((choice.margin - (logs[order[0]] - logs[order[1]])).abs() < 1e-9);
            assert!((choice.log_density - total.ln()).abs() < 1e-9);
        }
        // Far from both sets, and at no distance from nothing.
        assert!(found[2].set == 0 && found[2].distance.is_nan() && found[2].runner_up_distance > 100.0);
    }

    #[test]
    fn sets_that_are_left_out_have_no_part_in_posteriors() {
        let kept = restricted(&densities(), |set| set == [1], 2);
        let mut found = Vec::new();
        Likeliest::new(&kept, 2)
            .unwrap()
            .choose(&[0.0, 0.0], &kept.centres, Space::default(), &mut found)
            .unwrap();
        assert_eq!((found[0].set, found[0].runner_up, found[0].posterior), (0, NOTHING, 1.0));
    }
}
