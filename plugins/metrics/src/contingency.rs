//! The counts that all evaluators work on: the distinct true sets, the distinct predicted sets, and how often each
//! pair of them occurs. One pass over the examples; everything after it depends on the distinct sets alone.

use compflow_api::{Error, Evaluation, Result, Sets};
use rustc_hash::FxHashMap;

/// The true and the predicted sets.
///
/// # Errors
/// If there is no truth, or there are too many examples to count their pairs.
pub(crate) fn labels<'a>(evaluation: &Evaluation<'a>) -> Result<(&'a Sets, &'a Sets)> {
    let (truth, predicted) = (evaluation.truth()?, evaluation.predicted);
    if truth.len() != predicted.len() {
        return Err(Error::data(format!(
            "{} true sets are not those of {} predicted ones",
            truth.len(),
            predicted.len()
        )));
    }
    if u32::try_from(truth.len()).is_err() {
        return Err(Error::data(format!("{} examples are more than can be compared, {}", truth.len(), u32::MAX)));
    }
    Ok((truth, predicted))
}

/// The distinct sets of one side, numbered in the order of their first appearance.
pub(crate) struct Distinct<'a> {
    /// The sets.
    pub(crate) sets: Vec<&'a [u32]>,
    /// How many examples have each.
    pub(crate) counts: Vec<u64>,
}

/// A pair of sets that some example has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    /// Which of the distinct predicted sets.
    pub(crate) predicted: u32,
    /// Which of the distinct true sets.
    pub(crate) truth: u32,
    /// How many examples have the pair; at least 1.
    pub(crate) count: u64,
}

/// Examples by their predicted and their true set, without those pairs that nobody has.
pub(crate) struct Contingency<'a> {
    /// The distinct true sets.
    pub(crate) truth: Distinct<'a>,
    /// The distinct predicted sets.
    pub(crate) predicted: Distinct<'a>,
    /// Ascending by `predicted`, then by `truth`.
    pub(crate) cells: Vec<Cell>,
    /// Where the cells of each predicted set begin, and one more for the end.
    starts: Vec<usize>,
    n: u64,
}

impl<'a> Distinct<'a> {
    /// Also returns the number of each example's set.
    pub(crate) fn new(labels: &'a Sets) -> (Self, Vec<u32>) {
        let mut distinct = Self { sets: Vec::new(), counts: Vec::new() };
        let mut numbers: FxHashMap<&[u32], u32> = FxHashMap::default();
        let of_rows = labels.iter().map(|set| {
            let number = *numbers.entry(set).or_insert_with(|| {
                distinct.sets.push(set);
                distinct.counts.push(0);
                distinct.sets.len() as u32 - 1
            });
            distinct.counts[number as usize] += 1;
            number
        });
        let of_rows = of_rows.collect();
        (distinct, of_rows)
    }

    /// How many distinct sets.
    pub(crate) fn len(&self) -> usize {
        self.sets.len()
    }
}

impl<'a> Contingency<'a> {
    /// Counts labels of the same examples. Their number is below 2^32, which [`labels`] sees to, so that the number of
    /// ordered pairs of examples fits 64 bits and a product of two such numbers 128 bits.
    pub(crate) fn new(truth: &'a Sets, predicted: &'a Sets) -> Self {
        let (truth, true_rows) = Distinct::new(truth);
        let (predicted, predicted_rows) = Distinct::new(predicted);
        let mut counts: FxHashMap<(u32, u32), u64> = FxHashMap::default();
        for pair in predicted_rows.iter().copied().zip(true_rows.iter().copied()) {
            *counts.entry(pair).or_default() += 1;
        }
        let mut cells: Vec<Cell> =
            counts.into_iter().map(|((predicted, truth), count)| Cell { predicted, truth, count }).collect();
        cells.sort_unstable_by_key(|cell| (cell.predicted, cell.truth));

        let mut starts = vec![0; predicted.len() + 1];
        for cell in &cells {
            starts[cell.predicted as usize + 1] += 1;
        }
        for number in 0..predicted.len() {
            starts[number + 1] += starts[number];
        }
        Self { truth, predicted, cells, starts, n: true_rows.len() as u64 }
    }

    /// How many examples.
    pub(crate) fn n(&self) -> u64 {
        self.n
    }

    /// How many ordered pairs of two different examples.
    pub(crate) fn pairs(&self) -> u64 {
        self.n * self.n.saturating_sub(1)
    }

    /// Where in `cells` those of a predicted set are.
    pub(crate) fn row(&self, predicted: usize) -> std::ops::Range<usize> {
        self.starts[predicted]..self.starts[predicted + 1]
    }

    /// The sets of a cell, the predicted one first.
    pub(crate) fn sets(&self, cell: &Cell) -> (&'a [u32], &'a [u32]) {
        (self.predicted.sets[cell.predicted as usize], self.truth.sets[cell.truth as usize])
    }

    /// Whether two examples have the same true set exactly if they have the same predicted set.
    pub(crate) fn is_bijection(&self) -> bool {
        self.cells.len() == self.truth.len() && self.cells.len() == self.predicted.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted_and_ordered() {
        let truth = Sets::from_iter([vec![0], vec![0, 1], vec![0], vec![0, 1]]);
        let predicted = Sets::from_iter([vec![7], vec![3], vec![3], vec![3]]);
        let table = Contingency::new(&truth, &predicted);
        assert_eq!(table.truth.sets, [&[0][..], &[0, 1]]);
        assert_eq!(table.truth.counts, [2, 2]);
        assert_eq!(table.predicted.sets, [[7], [3]]);
        assert_eq!(table.predicted.counts, [1, 3]);
        let cell = |predicted, truth, count| Cell { predicted, truth, count };
        assert_eq!(table.cells, [cell(0, 0, 1), cell(1, 0, 1), cell(1, 1, 2)]);
        assert_eq!(table.row(1), 1..3);
        assert_eq!(table.sets(&table.cells[1]), (&[3][..], &[0][..]));
        assert_eq!(table.pairs(), 12);
        assert!(!table.is_bijection());
    }
}
