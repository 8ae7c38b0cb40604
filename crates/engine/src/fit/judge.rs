//! How good a composition function is on labelled data.
//!
//! - *error*: the mean of ‖g - x̄‖² over unions, as points of the space.
//! - *miss*: √(error - σ²/n) in units of σ, where σ² is the variance within unions: the mean of n examples would itself lie
//!   σ²/n from where it belongs. 0 is exact; at 1 a prediction is as far off as an example is.
//! - *explained*: 1 - error / the same for the common centre of the other unions of as many members in the group.
//! - *nearest*: the share of unions whose own prediction is nearest to their mean, among those of all sets of labels.
//! - *accuracy*: the share of examples whose own set is nearest if every label is known from one example only.
//! - *central*: the same if that is the label's most central example, as it is for methods that choose examples.
//! - *p*: how often predictions that are exchanged among the unions of a group come as near as the unions' own, with the luckiest of
//!   all composition functions.

use std::collections::{BTreeMap, HashMap};

use compflow_api::{Composer, Embeddings, Services, Sets, compose_sets};
use ndarray::{Array2, Axis};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::bilinear::Bilinear;
use super::design::predict;
use super::folds::Folds;
use super::labelled::{Group, LabelSet, Labelled, squared};
use crate::error::Result;

/// Unions that are judged; more tell nothing new.
const MOST_UNIONS: usize = 1000;
/// Examples that are given to sets, and how often they are at most if there are few.
const EXAMPLES: usize = 4000;
const MOST_DRAWS: usize = 5;
/// Sets that a union or an example may be taken for.
const MOST_SETS: usize = 2000;
/// Exchanges that are tried.
const EXCHANGES: usize = 999;

/// A composition function that is judged.
pub(super) enum Judged<'a> {
    /// One that has seen none of the data.
    One(&'a dyn Composer),
    /// One for every fold, which has not seen what the fold holds out.
    Fitted(Vec<Bilinear>),
}

impl Judged<'_> {
    fn of(&self, fold: usize) -> &dyn Composer {
        match self {
            Self::One(composer) => *composer,
            Self::Fitted(fitted) => &fitted[fold],
        }
    }
}

/// What was found, union by union.
#[derive(Debug)]
pub(super) struct Found {
    /// ‖g - x̄‖² of every union that is judged.
    pub(super) errors: Vec<f64>,
    pub(super) nearest: f64,
    pub(super) accuracy: Option<f64>,
    pub(super) central: Option<f64>,
    /// How many examples the accuracy is of.
    pub(super) examples: usize,
    /// Where every union was predicted, as points of the space.
    predictions: Vec<f32>,
}

/// What all composition functions are judged on.
pub(super) struct Judge<'a> {
    labelled: &'a Labelled,
    folds: &'a Folds,
    unions: Vec<(usize, usize)>,
    /// For every fold the unions that are judged.
    tests: Vec<Vec<usize>>,
    /// For every group the sets that are told apart, and where each stands.
    sets: Vec<(Sets, HashMap<Vec<u32>, usize>)>,
    seed: u64,
}

impl<'a> Judge<'a> {
    pub(super) fn new(labelled: &'a Labelled, folds: &'a Folds, seed: u64) -> Self {
        let unions = labelled.unions();
        let total: usize = folds.folds.iter().map(|fold| fold.test.len()).sum();
        let every = total.div_ceil(MOST_UNIONS).max(1);
        let mut count = 0;
        let mut wanted = || {
            count += 1;
            (count - 1) % every == 0
        };
        let tests: Vec<Vec<usize>> =
            folds.folds.iter().map(|fold| fold.test.iter().copied().filter(|_| wanted()).collect()).collect();
        let judged: Vec<(usize, usize)> = tests.iter().flatten().map(|&at| unions[at]).collect();
        let sets = labelled.groups.iter().enumerate().map(|(at, group)| {
            let own = judged.iter().filter(|(of, _)| *of == at).map(|(_, set)| &group.sets[*set]);
            told_apart(group, own, labelled.degree)
        });
        Self { labelled, folds, unions, tests, sets: sets.collect(), seed }
    }

    /// The unions that are judged, in the order of [`Found::errors`].
    pub(super) fn judged(&self) -> impl Iterator<Item = (usize, &LabelSet)> {
        self.tests.iter().flatten().map(|&at| {
            let (group, set) = self.unions[at];
            (group, &self.labelled.groups[group].sets[set])
        })
    }

    /// Judges a composition function.
    ///
    /// # Errors
    /// Those of the composer.
    pub(super) fn judge(&self, judged: &Judged<'_>) -> Result<Found> {
        let (mut errors, mut hits, mut predictions) = (Vec::new(), 0, Vec::new());
        for (fold, tests) in self.tests.iter().enumerate() {
            for tests in tests.chunk_by(|a, b| self.unions[*a].0 == self.unions[*b].0) {
                let at = self.unions[tests[0]].0;
                let (group, (sets, places)) = (&self.labelled.groups[at], &self.sets[at]);
                let mut predicted = predict(judged.of(fold), group, sets, self.labelled.dim)?;
                self.labelled.space.enter(&mut predicted, self.labelled.dim);
                let own: Vec<&LabelSet> = tests.iter().map(|&at| &group.sets[self.unions[at].1]).collect();
                let points: Vec<f32> = own.iter().flat_map(|set| &set.point).map(|&value| value as f32).collect();
                let distances = distances(&points, &predicted, self.labelled.dim)?;
                for (set, distances) in own.iter().zip(distances.axis_iter(Axis(0))) {
                    let place = places[&set.members];
                    let prediction = &predicted[place * self.labelled.dim..][..self.labelled.dim];
                    errors.push(squared(prediction, &set.point));
                    hits += usize::from(nearest(distances.iter()) == Some(place));
                    predictions.extend_from_slice(prediction);
                }
            }
        }
        let nearest = f64::from(u32::try_from(hits).unwrap_or(u32::MAX)) / errors.len().max(1) as f64;
        let (accuracy, examples) = self.accuracy(judged, false)?;
        let (central, _) = self.accuracy(judged, true)?;
        Ok(Found { errors, nearest, accuracy, central, examples, predictions })
    }

    /// For every composition function, how often predictions that are exchanged among unions of a group with as many members come
    /// as near as the unions' own; `None` if there are so few unions that chance could do it once in twenty times.
    ///
    /// What is exchanged is what was predicted of each union by a g that had not seen it: one that had would lie farther from all
    /// others. The same exchanges are tried with all functions, and the luckiest counts, since the best of them is believed in.
    pub(super) fn exchanged(&self, found: &[Found]) -> Result<Option<Vec<f64>>> {
        let mut blocks: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for (at, (group, set)) in self.judged().enumerate() {
            blocks.entry((group, set.members.len())).or_default().push(at);
        }
        let blocks: Vec<Vec<usize>> = blocks.into_values().collect();
        let arrangements: f64 =
            blocks.iter().map(|block| (2..=block.len()).map(|k| (k as f64).ln()).sum::<f64>()).sum();
        if arrangements < 20f64.ln() {
            return Ok(None);
        }
        let dim = self.labelled.dim;
        let points: Vec<f32> = self.judged().flat_map(|(_, set)| &set.point).map(|&value| value as f32).collect();
        let rows = |values: &[f32], block: &[usize]| -> Vec<f32> {
            block.iter().flat_map(|&at| &values[at * dim..][..dim]).copied().collect()
        };
        // By function and block: of every union the distances to the predictions of all.
        let mut tables = Vec::new();
        for found in found {
            let of = |block: &Vec<usize>| distances(&rows(&points, block), &rows(&found.predictions, block), dim);
            tables.push(blocks.iter().map(of).collect::<Result<Vec<_>>>()?);
        }
        let mut order: Vec<Vec<usize>> = blocks.iter().map(|block| (0..block.len()).collect()).collect();
        let sums = |order: &[Vec<usize>]| -> Vec<f64> {
            let of_block = |(table, order): (&Array2<f64>, &Vec<usize>)| -> f64 {
                order.iter().enumerate().map(|(row, &other)| table[[row, other]]).sum()
            };
            tables.iter().map(|blocks| blocks.iter().zip(order).map(of_block).sum()).collect()
        };
        let own = sums(&order);
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let others: Vec<Vec<f64>> = (0..EXCHANGES)
            .map(|_| {
                order.iter_mut().for_each(|block| block.shuffle(&mut rng));
                sums(&order)
            })
            .collect();
        Ok(Some(luckiest(&own, &others)))
    }

    /// The share of examples that are nearest to their own set if every label is known from one example, any or the most central
    /// one, and how many they are.
    fn accuracy(&self, judged: &Judged<'_>, central: bool) -> Result<(Option<f64>, usize)> {
        let dim = self.labelled.dim;
        let queries = |fold: usize| {
            let unions = self.tests[fold].iter().map(|&at| self.unions[at]);
            unions.chain(self.folds.folds[fold].labels.iter().copied())
        };
        let rows_of = |(group, set): (usize, usize)| self.labelled.groups[group].sets[set].rows.len();
        let total: usize = (0..self.tests.len()).flat_map(queries).map(rows_of).sum();
        let most_draws = if central { 1 } else { MOST_DRAWS };
        let (every, draws) = (total.div_ceil(EXAMPLES).max(1), (EXAMPLES / total.max(1)).clamp(1, most_draws));
        let (mut count, mut right, mut asked) = (0, 0u32, 0u32);
        for fold in 0..self.tests.len() {
            let mut sets: Vec<(usize, usize)> = queries(fold).collect();
            sets.sort_unstable();
            for sets in sets.chunk_by(|a, b| a.0 == b.0) {
                let at = sets[0].0;
                let (group, (candidates, places)) = (&self.labelled.groups[at], &self.sets[at]);
                for draw in 0..draws {
                    let labels = group.sets.iter().take(group.names.len());
                    let known: Vec<usize> = labels
                        .map(|label| match central {
                            true => group.most_central(label, dim),
                            false => label.rows[(fold + draw) % label.rows.len()],
                        })
                        .collect();
                    let mut points = Vec::new();
                    let mut truth = Vec::new();
                    for set in sets.iter().map(|(_, set)| &group.sets[*set]) {
                        for &row in &set.rows {
                            count += 1;
                            if (count - 1) % every == 0 && !known.contains(&row) {
                                points.extend_from_slice(&group.points[row * dim..][..dim]);
                                truth.push(places[&set.members]);
                            }
                        }
                    }
                    if truth.is_empty() {
                        continue;
                    }
                    let references: Vec<f32> =
                        known.iter().flat_map(|&row| group.row(row, dim)).copied().collect();
                    let references = Embeddings::new(&references, dim);
                    let mut predicted = compose_sets(judged.of(fold), references, candidates, &Services::none())?;
                    self.labelled.space.enter(&mut predicted, dim);
                    let distances = distances(&points, &predicted, dim)?;
                    for (truth, distances) in truth.iter().zip(distances.axis_iter(Axis(0))) {
                        right += u32::from(nearest(distances.iter()) == Some(*truth));
                        asked += 1;
                    }
                }
            }
        }
        Ok(((asked > 0).then(|| f64::from(right) / f64::from(asked)), asked as usize / draws))
    }

    /// How far unions lie from the centre of the others, squared, on average.
    pub(super) fn between(&self) -> f64 {
        let distances: Vec<f64> = self.distances_from_centre().into_iter().flatten().collect();
        distances.iter().sum::<f64>() / distances.len().max(1) as f64
    }

    /// For every union that is judged, ‖x̄ - the centre of the other unions of as many members in its group‖²; `None`
    /// where there is no other.
    pub(super) fn distances_from_centre(&self) -> Vec<Option<f64>> {
        let mut sums: HashMap<(usize, usize), (Vec<f64>, f64)> = HashMap::new();
        let dim = self.labelled.dim;
        for (group, set) in self.judged() {
            let (sum, count) = sums.entry((group, set.members.len())).or_insert_with(|| (vec![0.0; dim], 0.0));
            sum.iter_mut().zip(&set.point).for_each(|(sum, value)| *sum += value);
            *count += 1.0;
        }
        self.judged()
            .map(|(group, set)| {
                let (sum, count) = &sums[&(group, set.members.len())];
                let of_others = |(sum, own): (&f64, &f64)| own - (sum - own) / (count - 1.0);
                let offsets = sum.iter().zip(&set.point).map(of_others);
                (*count > 1.0).then(|| offsets.map(|offset| offset * offset).sum())
            })
            .collect()
    }
}

/// All sets of labels of a group; those that occur if that would be too many, and of these some.
fn told_apart<'s>(
    group: &Group,
    judged: impl Iterator<Item = &'s LabelSet>,
    degree: usize,
) -> (Sets, HashMap<Vec<u32>, usize>) {
    let labels = group.names.len();
    let mut count = 0.0;
    let mut of_size = 1.0;
    for size in 1..=degree.min(labels) {
        of_size *= (labels + 1 - size) as f64 / size as f64;
        count += of_size;
    }
    let sets = if count <= MOST_SETS as f64 {
        Sets::all_up_to(labels, degree)
    } else {
        let mut sets: Vec<&[u32]> = judged.map(|set| &set.members[..]).collect();
        let every = group.sets.len().div_ceil(MOST_SETS);
        sets.extend(group.sets.iter().step_by(every).map(|set| &set.members[..]));
        sets.extend(group.sets.iter().take(labels).map(|set| &set.members[..]));
        sets.sort_unstable();
        sets.dedup();
        sets.into_iter().collect()
    };
    let places = sets.iter().map(<[u32]>::to_vec).zip(0..).collect();
    (sets, places)
}

/// All squared distances of rows of `a` to rows of `b`.
fn distances(a: &[f32], b: &[f32], dim: usize) -> Result<Array2<f64>> {
    let wide = |rows: &[f32]| {
        let values = rows.iter().map(|value| f64::from(*value)).collect();
        Array2::from_shape_vec((rows.len() / dim, dim), values)
    };
    let shapes = |error: ndarray::ShapeError| compflow_api::Error::new(error);
    let (mut a, mut b) = (wide(a).map_err(shapes)?, wide(b).map_err(shapes)?);
    // Of points that lie far from zero and near one another, ‖a‖² + ‖b‖² - 2ab would leave rounding errors.
    if let Some(centre) = b.mean_axis(Axis(0)) {
        a -= &centre;
        b -= &centre;
    }
    let squares = |rows: &Array2<f64>| rows.map_axis(Axis(1), |row| row.dot(&row));
    let products = a.dot(&b.t());
    Ok(products.mapv(|value| -2.0 * value) + squares(&b) + squares(&a).insert_axis(Axis(1)))
}

/// The first of the smallest.
fn nearest<'v>(distances: impl Iterator<Item = &'v f64>) -> Option<usize> {
    distances.enumerate().min_by(|a, b| a.1.total_cmp(b.1)).map(|(at, _)| at)
}

/// Of every column, how often the largest gain of a row of `others`, over all columns, comes up to what `own` gains. Gains are
/// counted in standard deviations of the column.
fn luckiest(own: &[f64], others: &[Vec<f64>]) -> Vec<f64> {
    let count = others.len() as f64;
    let scales: Vec<(f64, f64)> = (0..own.len())
        .map(|at| {
            let mean = others.iter().map(|row| row[at]).sum::<f64>() / count;
            let variance = others.iter().map(|row| (row[at] - mean).powi(2)).sum::<f64>() / count;
            // Rounding is no gain.
            (mean, variance.sqrt().max(1e-6 * mean.abs()))
        })
        .collect();
    let gain = |row: &[f64], at: usize| match scales[at] {
        (mean, deviation) if deviation > 0.0 => (mean - row[at]) / deviation,
        _ => 0.0,
    };
    let best: Vec<f64> =
        others.iter().map(|row| (0..own.len()).map(|at| gain(row, at)).fold(f64::MIN, f64::max)).collect();
    let as_lucky = |at: usize| best.iter().filter(|best| **best >= gain(own, at) - 1e-6).count();
    (0..own.len()).map(|at| (as_lucky(at) + 1) as f64 / (count + 1.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_luckiest_of_all_functions_counts() {
        // Nineteen exchanges; the second function is lucky in one of them, the first in none.
        let others: Vec<Vec<f64>> =
            (0..19).map(|at| vec![10.0 + f64::from(at % 3), if at == 0 { 0.0 } else { 20.0 }]).collect();
        let p = luckiest(&[8.0, 20.0], &others);
        assert!((p[0] - 2.0 / 20.0).abs() < 1e-12, "{p:?}");
        assert!((p[1] - 1.0).abs() < 1e-12, "{p:?}");
        let p = luckiest(&[0.0, 20.0], &others);
        assert!((p[0] - 1.0 / 20.0).abs() < 1e-12, "{p:?}");
    }

    #[test]
    fn distances_are_exact_far_from_zero_and_at_any_scale() {
        for (offset, scale) in [(0.0, 1.0), (10_000.0, 1.0), (0.0, 1e-25), (0.0, 1e25)] {
            let points: Vec<f32> = [[1.0, 0.0], [0.0, 0.5]].map(|row| row.map(|x| offset + scale * x)).concat();
            let found = distances(&points, &points, 2).unwrap() / f64::from(scale).powi(2);
            let expected = [0.0, 1.25, 1.25, 0.0];
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{offset} {scale}: {found}");
        }
        // A large number that all have, beside small ones that differ.
        let found = distances(&[5000.0, 0.1], &[5000.0, 0.2, 5000.0, 0.1], 2).unwrap();
        assert!((found[[0, 0]] - 0.01).abs() < 1e-6 && found[[0, 1]] == 0.0, "{found}");
    }

    #[test]
    fn where_nothing_differs_nothing_is_gained() {
        assert_eq!(luckiest(&[0.0], &vec![vec![0.0]; 9]), [1.0]);
    }
}
