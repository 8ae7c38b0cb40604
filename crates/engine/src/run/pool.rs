//! Examples of a trial that are taken out of it: at random, in halves, or replaced by evenly spread ones.

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
    columns: Table,
}

impl Pool {
    /// At most so many examples of a task, drawn at random and in their order.
    ///
    /// # Errors
    /// If the examples cannot be read.
    pub(super) fn draw(task: &StreamTask<'_>, most: usize, seed: u64) -> Result<Self> {
        let (total, dim) = (task.rows.len(), task.rows.dim());
        let mut rows: Vec<usize> = match total <= most {
            true => (0..total).collect(),
            false => index::sample(&mut ChaCha8Rng::seed_from_u64(seed), total, most).into_vec(),
        };
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

    /// Two halves, drawn at random, each in the order of the pool; an odd example is in neither.
    pub(super) fn halves(&self, seed: u64) -> [Self; 2] {
        let mut rows: Vec<usize> = (0..self.len()).collect();
        rows.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        let half = rows.len() / 2;
        let (left, rest) = rows.split_at_mut(half);
        let right = &mut rest[..half];
        left.sort_unstable();
        right.sort_unstable();
        [self.taken(left), self.taken(right)]
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
            columns: &self.columns,
            ..*of
        }
    }
}

fn taken<T: Clone>(values: &[T], rows: &[usize]) -> Vec<T> {
    rows.iter().map(|row| values[*row].clone()).collect()
}

fn taken_sets(sets: &Sets, rows: &[usize]) -> Sets {
    rows.iter().map(|row| &sets[*row]).collect()
}

fn taken_column(column: &Column, rows: &[usize]) -> Column {
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
