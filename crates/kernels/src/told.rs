//! What is told of examples beside where they lie: how much each counts, and the sets that are known beforehand.
//!
//! A pass looks it up by the number of an example among all, whether it is told of all examples, by the task, or of a batch of
//! them, where the examples are.

use std::borrow::Cow;

use compflow_api::{Batch, Result, Sets};
use serde::{Deserialize, Serialize};

use crate::known::Known;
use crate::weights::weight;

/// What is told of some examples, one after the other.
#[derive(Debug, Default)]
pub struct Told<'a> {
    /// The number of the first of them among all.
    first: usize,
    /// How much each counts, unless all count once.
    pub weights: Option<&'a [f32]>,
    /// The same without those whose sets are known, which count for nothing where the others are assigned.
    others: Option<Cow<'a, [f32]>>,
    /// Whose sets are known.
    pub known: Known,
}

/// Which of a batch's weights and seeds a pass goes by.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Heeded {
    weights: bool,
    seeds: bool,
}

impl Heeded {
    /// For a pass in which all examples are alike, whatever is known of them.
    pub fn without_seeds(self) -> Self {
        Self { seeds: false, ..self }
    }
}

impl<'a> Told<'a> {
    /// Of all of `rows` examples; `sets` are all compositions.
    ///
    /// # Errors
    /// If a known set is none of them.
    pub fn new(rows: usize, weights: Option<&'a [f32]>, seeds: Option<&Sets>, sets: &Sets) -> Result<Self> {
        Self::from(0, rows, weights, seeds, sets)
    }

    /// Of a batch, as far as a pass goes by it.
    ///
    /// # Errors
    /// If a known set is none of `sets`.
    pub fn of_batch(batch: &Batch<'a>, heeded: Heeded, sets: impl FnOnce() -> Sets) -> Result<Self> {
        let weights = batch.weights.filter(|_| heeded.weights);
        let (first, rows) = (batch.first as usize, batch.examples.len());
        match batch.seeds.filter(|_| heeded.seeds) {
            None => Self::from(first, rows, weights, None, &Sets::default()),
            seeds => Self::from(first, rows, weights, seeds, &sets()),
        }
    }

    fn from(
        first: usize,
        rows: usize,
        weights: Option<&'a [f32]>,
        seeds: Option<&Sets>,
        sets: &Sets,
    ) -> Result<Self> {
        let known = Known::new(seeds, first, sets)?;
        let others = match known.is_empty() {
            true => weights.map(Cow::Borrowed),
            false => {
                let mut others = weights.map_or_else(|| vec![1.0; rows], <[f32]>::to_vec);
                known.within(first, rows).for_each(|(at, _)| others[at] = 0.0);
                Some(Cow::Owned(others))
            }
        };
        Ok(Self { first, weights, others, known })
    }

    /// What somebody has to go by who has the examples.
    pub fn heeded(&self) -> Heeded {
        Heeded { weights: self.weights.is_some(), seeds: !self.known.is_empty() }
    }

    /// How much an example counts.
    #[inline(always)]
    pub fn weight(&self, row: usize) -> f64 {
        weight(self.weights, row - self.first)
    }

    /// How much each of `count` examples from `row` on counts, those with known sets not at all. `None` if all count once.
    pub fn others(&self, row: usize, count: usize) -> Option<&[f32]> {
        self.others.as_deref().map(|others| &others[row - self.first..][..count])
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::Embeddings;

    use super::*;

    #[test]
    fn of_a_batch_the_same_is_told_as_of_all_as_far_as_a_pass_goes_by_it() {
        let sets = || Sets::all_up_to(3, 2);
        let seeds = Sets::from_iter([vec![], vec![2], vec![], vec![0, 2], vec![1]]);
        let weights = [2.0, 0.5, 3.0, 4.0, 5.0];
        let all = Told::new(5, Some(&weights), Some(&seeds), &sets()).unwrap();
        assert_eq!(all.others(0, 5), Some(&[2.0, 0.0, 3.0, 0.0, 0.0][..]));

        let (values, later) = ([0.0; 3], seeds.iter().skip(2).collect::<Sets>());
        let mut batch = Batch::new(2, Embeddings::new(&values, 1));
        (batch.weights, batch.seeds) = (Some(&weights[2..]), Some(&later));
        let told = Told::of_batch(&batch, all.heeded(), sets).unwrap();
        for row in 2..5 {
            assert_eq!((told.weight(row), told.known.label(row)), (all.weight(row), all.known.label(row)));
            assert_eq!(told.others(row, 5 - row), all.others(row, 5 - row));
        }
        let nothing = Told::of_batch(&batch, Told::default().heeded(), sets).unwrap();
        assert_eq!((nothing.weight(3), nothing.others(3, 2), nothing.known.label(3)), (1.0, None, None));
        let unweighted = Told::new(5, None, Some(&seeds), &sets()).unwrap();
        assert_eq!(unweighted.others(0, 5), Some(&[1.0, 0.0, 1.0, 0.0, 0.0][..]));
        let error = Told::of_batch(&batch, all.heeded(), || Sets::all_up_to(3, 1)).unwrap_err();
        assert_eq!(error.to_string(), "the seed [0, 2] of example 3 is no composition of up to 1");
    }
}
