//! Examples of a trial that are taken out of it: at random, in halves, or replaced by evenly spread ones.

use std::collections::{BTreeMap, BTreeSet};

use compflow_api::{Column, Embeddings, Result, Sets, StreamTask, Table, Task};
use rand::seq::{SliceRandom, index};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Examples in memory, with everything that a clusterer may know about them.
#[derive(Debug)]
pub(super) struct Pool {
    dim: usize,
    embeddings: Vec<f32>,
    truth: Option<Sets>,
    preferences: Option<Vec<f32>>,
    weights: Option<Vec<f32>>,
    /// Known sets, empty where they are not known.
    seeds: Option<Sets>,
    columns: Table,
}

impl Pool {
    /// At most so many examples of a task, drawn at random and in their order; and apart from that of those whose sets are
    /// known.
    ///
    /// # Errors
    /// If the examples cannot be read.
    pub(super) fn draw(task: &StreamTask<'_>, most: usize, seed: u64) -> Result<Self> {
        let (total, dim) = (task.rows.len(), task.rows.dim());
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut some = |of: Vec<usize>| match of.len() <= most {
            true => of,
            false => index::sample(&mut random, of.len(), most).iter().map(|at| of[at]).collect(),
        };
        let is_known = |row: &usize| task.seeds.is_some_and(|seeds| !seeds[*row].is_empty());
        let (known, unknown) = (0..total).partition(is_known);
        let mut rows = [some(unknown), some(known)].concat();
        rows.sort_unstable();
        let mut embeddings = Vec::with_capacity(rows.len() * dim);
        let (mut wanted, mut first) = (rows.iter().peekable(), 0);
        task.rows.pass(&mut |batch| {
            let end = first + batch.len();
            while let Some(row) = wanted.next_if(|row| **row < end) {
                embeddings.extend_from_slice(&batch[row - first]);
            }
            first = end;
            Ok(())
        })?;
        Ok(Self {
            dim,
            embeddings,
            truth: task.truth.map(|truth| taken_sets(truth, &rows)),
            preferences: task.preferences.map(|values| taken(values, &rows)),
            weights: task.weights.map(|values| taken(values, &rows)),
            seeds: task.seeds.map(|seeds| renumbered(&taken_sets(seeds, &rows))),
            columns: task
                .columns
                .iter()
                .map(|(name, column)| (name.clone(), taken_column(column, &rows)))
                .collect(),
        })
    }

    /// How many examples.
    pub(super) fn len(&self) -> usize {
        self.embeddings.len() / self.dim
    }

    /// The rows whose sets are known, or not.
    fn rows(&self, known: bool) -> Vec<usize> {
        let is_known = |row: usize| self.seeds.as_ref().is_some_and(|seeds| !seeds[row].is_empty());
        (0..self.len()).filter(|row| is_known(*row) == known).collect()
    }

    /// How many are in a half.
    pub(super) fn half(&self) -> usize {
        self.rows(false).len() / 2 + self.rows(true).len()
    }

    /// Two halves of the examples whose sets are not known, drawn at random, each with all those whose sets are and in the
    /// order of the pool; an odd example is in neither.
    pub(super) fn halves(&self, seed: u64) -> [Self; 2] {
        let (mut rows, known) = (self.rows(false), self.rows(true));
        rows.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        let half = rows.len() / 2;
        let (left, rest) = rows.split_at_mut(half);
        [&*left, &rest[..half]].map(|half| {
            let mut rows = [half, &known[..]].concat();
            rows.sort_unstable();
            self.taken(&rows)
        })
    }

    /// Only the examples whose sets are not known.
    pub(super) fn unknown(&self) -> Self {
        Self { seeds: None, ..self.taken(&self.rows(false)) }
    }

    /// Of something for every example what belongs to those whose sets are not known.
    pub(super) fn of_unknown(&self, sets: &Sets) -> Sets {
        taken_sets(sets, &self.rows(false))
    }

    fn taken(&self, rows: &[usize]) -> Self {
        let embeddings = Embeddings::new(&self.embeddings, self.dim);
        let column = |(name, column): &(String, Column)| (name.clone(), taken_column(column, rows));
        Self {
            dim: self.dim,
            embeddings: rows.iter().flat_map(|row| embeddings.row(*row)).copied().collect(),
            truth: self.truth.as_ref().map(|truth| taken_sets(truth, rows)),
            preferences: self.preferences.as_deref().map(|values| taken(values, rows)),
            weights: self.weights.as_deref().map(|values| taken(values, rows)),
            seeds: self.seeds.as_ref().map(|seeds| taken_sets(seeds, rows)),
            columns: self.columns.iter().map(column).collect(),
        }
    }

    /// Every dimension drawn anew, evenly between its least and its greatest value: as far and wide, and nothing to be found.
    #[must_use]
    pub(super) fn evenly_spread(mut self, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        for column in 0..self.dim {
            let values = || self.embeddings.iter().skip(column).step_by(self.dim).copied();
            let (low, high) = (values().fold(f32::INFINITY, f32::min), values().fold(f32::NEG_INFINITY, f32::max));
            for value in self.embeddings.iter_mut().skip(column).step_by(self.dim) {
                // In two parts, as their difference may be too large for a number.
                let part: f32 = random.random();
                *value = low * (1.0 - part) + high * part;
            }
        }
        self
    }

    /// The task of clustering them, in the setting of another.
    pub(super) fn task<'a>(&'a self, of: &Task<'a>) -> Task<'a> {
        Task {
            embeddings: Embeddings::new(&self.embeddings, self.dim),
            truth: self.truth.as_ref(),
            preferences: self.preferences.as_deref(),
            weights: self.weights.as_deref(),
            seeds: self.seeds.as_ref(),
            columns: &self.columns,
            ..*of
        }
    }
}

/// The sets with members counted from 0 without a gap, in their order: where not all were drawn, some have no example.
fn renumbered(sets: &Sets) -> Sets {
    let members: BTreeSet<u32> = sets.values().iter().copied().collect();
    let numbers: BTreeMap<u32, u32> = members.into_iter().zip(0..).collect();
    sets.iter().map(|set| set.iter().map(|member| numbers[member]).collect::<Vec<u32>>()).collect()
}

fn taken<T: Clone>(values: &[T], rows: &[usize]) -> Vec<T> {
    rows.iter().map(|row| values[*row].clone()).collect()
}

pub(super) fn taken_sets(sets: &Sets, rows: &[usize]) -> Sets {
    rows.iter().map(|row| &sets[*row]).collect()
}

pub(super) fn taken_column(column: &Column, rows: &[usize]) -> Column {
    match column {
        Column::Sets(sets) => Column::Sets(taken_sets(sets, rows)),
        Column::Vectors { width, values } => {
            let values = rows.iter().flat_map(|row| &values[row * width..][..*width]).copied().collect();
            Column::Vectors { width: *width, values }
        }
        Column::Floats(values) => Column::Floats(taken(values, rows)),
        Column::Integers(values) => Column::Integers(taken(values, rows)),
        Column::Flags(values) => Column::Flags(taken(values, rows)),
        Column::Texts(values) => Column::Texts(taken(values, rows)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize) -> Vec<f32> {
        (0..count).map(|at| at as f32).collect()
    }

    fn pool(values: &[f32], most: usize) -> Pool {
        let weights: Vec<f32> = values.chunks_exact(2).map(|row| row[0] + 0.5).collect();
        let task = Task { weights: Some(&weights), ..Task::new(Embeddings::new(values, 2)) };
        Pool::draw(&task.stream(), most, 7).unwrap()
    }

    #[test]
    fn halves_share_nothing_and_everything_goes_with_its_example() {
        let values = numbers(22);
        let pool = pool(&values, 100);
        assert_eq!(pool.len(), 11);
        let [left, right] = pool.halves(3);
        assert_eq!((left.len(), right.len()), (5, 5));
        for half in [&left, &right] {
            let firsts: Vec<f32> = half.embeddings.chunks_exact(2).map(|row| row[0]).collect();
            assert!(firsts.is_sorted());
            let weights: Vec<f32> = firsts.iter().map(|first| first + 0.5).collect();
            assert_eq!(half.weights.as_ref(), Some(&weights));
        }
        assert!(left.embeddings.iter().all(|value| !right.embeddings.contains(value)));
        assert_ne!(pool.halves(4)[0].embeddings, left.embeddings);
    }

    #[test]
    fn what_is_known_is_in_both_halves_and_nobody_is_judged_by_it() {
        let values = numbers(40);
        let seeds: Sets = (0..20).map(|at| if at % 5 == 0 { vec![at / 5] } else { vec![] }).collect();
        let task = Task { seeds: Some(&seeds), ..Task::new(Embeddings::new(&values, 2)) };
        let pool = Pool::draw(&task.stream(), 100, 7).unwrap();
        let [left, right] = pool.halves(3);
        assert_eq!((left.len(), right.len(), pool.half()), (12, 12, 12));
        for half in [&left, &right] {
            let known: Vec<f32> = half.rows(true).iter().map(|row| half.embeddings[2 * row]).collect();
            assert_eq!(known, [0.0, 10.0, 20.0, 30.0]);
            assert_eq!(half.seeds.as_ref().unwrap().values(), [0, 1, 2, 3]);
        }
        let unknown = left.unknown();
        assert!(unknown.len() == 8 && unknown.seeds.is_none());
        assert!(unknown.embeddings.iter().all(|value| !right.unknown().embeddings.contains(value)));
        assert_eq!(left.of_unknown(left.seeds.as_ref().unwrap()), Sets::from_iter(vec![Vec::<u32>::new(); 8]));
        // Of those that are drawn, names are counted anew.
        let drawn = Pool::draw(&task.stream(), 2, 7).unwrap();
        let mut left_over = drawn.seeds.as_ref().unwrap().values().to_vec();
        left_over.sort_unstable();
        assert_eq!((drawn.len(), left_over), (4, vec![0, 1]));
    }

    #[test]
    fn a_large_trial_is_drawn_from() {
        let values = numbers(200);
        let drawn = pool(&values, 10);
        assert_eq!(drawn.len(), 10);
        assert!(drawn.embeddings.is_sorted());
        assert_ne!(drawn.embeddings, values[..20]);
    }

    #[test]
    fn evenly_spread_examples_stay_within_the_bounds() {
        let values: Vec<f32> =
            numbers(40).iter().map(|value| if value % 2.0 == 0.0 { 3.0 } else { *value }).collect();
        let spread = pool(&values, 100).evenly_spread(1).embeddings;
        let column = |at: usize| spread.iter().skip(at).step_by(2);
        assert!(column(0).all(|value| (value - 3.0).abs() < 1e-6), "what was constant still is");
        assert!(column(1).all(|value| (1.0..=39.0).contains(value)));
        let below = column(1).filter(|value| **value < 20.0).count();
        assert!((3..=17).contains(&below), "{below} of 20 are below the middle");
    }
}
