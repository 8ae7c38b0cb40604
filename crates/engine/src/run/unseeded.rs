//! What scores are of: examples whose sets nobody was told.
//!
//! A method that keeps known sets has them right without having found anything, so whatever compares with the truth would
//! flatter it. Methods that take no notice of them are scored on the same examples, or they could not be compared.

use compflow_api::{BATCH_ROWS, Column, Embeddings, Result, Rows, Sets, Table};

use super::pool::{taken_column, taken_sets};
use crate::data::Trial;

/// The examples of a trial that are compared with the truth.
#[derive(Debug)]
pub(crate) struct Unseeded {
    rows: Vec<usize>,
}

/// What an evaluator sees of them.
#[derive(Debug)]
pub(crate) struct Compared {
    pub(crate) predicted: Sets,
    pub(crate) truth: Option<Sets>,
    pub(crate) columns: Table,
}

impl Unseeded {
    /// None if no set is known beforehand, which leaves all of them.
    pub(crate) fn of(trial: &Trial) -> Option<Self> {
        let sets = &trial.seeds.as_ref()?.sets;
        Some(Self { rows: (0..sets.len()).filter(|row| sets[*row].is_empty()).collect() })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Of what is known of all examples.
    pub(crate) fn compared(&self, predicted: &Sets, truth: Option<&Sets>, columns: &Table) -> Compared {
        let column = |(name, column): &(String, Column)| (name.clone(), taken_column(column, &self.rows));
        Compared {
            predicted: taken_sets(predicted, &self.rows),
            truth: truth.map(|truth| taken_sets(truth, &self.rows)),
            columns: columns.iter().map(column).collect(),
        }
    }

    pub(crate) fn examples<'a>(&'a self, of: &'a dyn Rows) -> impl Rows + 'a {
        Subset { of, rows: &self.rows }
    }
}

/// Some of the examples, in their order.
struct Subset<'a> {
    of: &'a dyn Rows,
    rows: &'a [usize],
}

impl Rows for Subset<'_> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn dim(&self) -> usize {
        self.of.dim()
    }

    fn pass(&self, each: &mut dyn FnMut(Embeddings<'_>) -> Result<()>) -> Result<()> {
        let (dim, mut wanted, mut first) = (self.dim(), self.rows.iter().peekable(), 0);
        let mut batch = Vec::new();
        self.of.pass(&mut |found| {
            let end = first + found.len();
            while let Some(row) = wanted.next_if(|row| **row < end) {
                batch.extend_from_slice(&found[row - first]);
                if batch.len() == BATCH_ROWS * dim {
                    each(Embeddings::new(&batch, dim))?;
                    batch.clear();
                }
            }
            first = end;
            Ok(())
        })?;
        if batch.is_empty() { Ok(()) } else { each(Embeddings::new(&batch, dim)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wanted_rows_come_in_whole_batches() {
        let values: Vec<f32> = (0..2 * BATCH_ROWS + 10).map(|at| at as f32).collect();
        let rows: Vec<usize> = (0..values.len()).filter(|row| row % 8 != 0).collect();
        let (mut sizes, mut seen) = (Vec::new(), Vec::new());
        Subset { of: &Embeddings::new(&values, 1), rows: &rows }
            .pass(&mut |batch| {
                sizes.push(batch.len());
                seen.extend_from_slice(batch.values());
                Ok(())
            })
            .unwrap();
        assert_eq!(sizes, [BATCH_ROWS, rows.len() - BATCH_ROWS]);
        assert!(seen.iter().zip(&rows).all(|(seen, row)| *seen == *row as f32) && seen.len() == rows.len());
    }
}
