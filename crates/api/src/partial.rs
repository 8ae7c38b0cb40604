//! What examples add up to, batch by batch, so that the sum is the same however the batches are divided among processes.
//!
//! Floating-point numbers do not add up to the same in every order, so the order is fixed: every batch is summed up from
//! zero, and batches are the leaves of a tree. A node of level l stands for the 2ˡ batches from a multiple of 2ˡ on, and is
//! the sum of its two halves. What is left over when all batches are in, at most one node of each level, is added up from
//! the right. A process that has some of the batches knows all nodes that lie within them; whoever puts the nodes of several
//! processes together finds those that remain.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// What some examples add up to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Partial {
    /// Numbers that are added up.
    pub sums: Vec<f64>,
    /// Numbers of which the greater is taken.
    pub largest: Vec<f64>,
    /// Numbers that are put behind one another, such as examples of a sample.
    pub rows: Vec<f32>,
}

impl Partial {
    /// Adds what later examples add up to.
    ///
    /// # Errors
    /// If these are other numbers.
    pub fn add(&mut self, later: &Self) -> Result<()> {
        if (self.sums.len(), self.largest.len()) != (later.sums.len(), later.largest.len()) {
            return Err(Error::new(format!(
                "{} and {} numbers cannot be added to {} and {}",
                later.sums.len(),
                later.largest.len(),
                self.sums.len(),
                self.largest.len()
            )));
        }
        self.sums.iter_mut().zip(&later.sums).for_each(|(sum, later)| *sum += later);
        self.largest.iter_mut().zip(&later.largest).for_each(|(most, later)| *most = most.max(*later));
        self.rows.extend_from_slice(&later.rows);
        Ok(())
    }
}

/// Some batches, as nodes of the tree: as few as they can be.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Fold {
    /// In order of their batches.
    nodes: Vec<Node>,
}

/// The sum of 2^level batches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Node {
    /// The number of the first batch, a multiple of 2^level.
    first: u64,
    level: u32,
    partial: Partial,
}

impl Node {
    /// The number behind the last batch.
    fn end(&self) -> Option<u64> {
        self.first.checked_add(1_u64.checked_shl(self.level)?)
    }

    /// Whether both are halves of one.
    fn is_left_of(&self, right: &Self) -> bool {
        self.level == right.level
            && self.end() == Some(right.first)
            && (self.first >> self.level).is_multiple_of(2)
    }
}

impl Fold {
    /// Of no batches.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the batch with this number, behind all that are there.
    ///
    /// # Errors
    /// If it is not behind them, or has other numbers.
    pub fn push(&mut self, batch: u64, partial: Partial) -> Result<()> {
        self.append(Node { first: batch, level: 0, partial })
    }

    fn append(&mut self, mut node: Node) -> Result<()> {
        if self.nodes.last().is_some_and(|last| last.end().is_none_or(|end| end > node.first)) {
            return Err(Error::new(format!("batch {} was summed up twice", node.first)));
        }
        while let Some(mut left) = self.nodes.pop_if(|last| last.is_left_of(&node)) {
            left.partial.add(&node.partial)?;
            node = Node { level: left.level + 1, ..left };
        }
        self.nodes.push(node);
        Ok(())
    }

    /// Puts folds of different batches together, whatever their order.
    ///
    /// # Errors
    /// If a batch is in two of them, or they have different numbers.
    pub fn merge(folds: impl IntoIterator<Item = Self>) -> Result<Self> {
        let mut nodes: Vec<Node> = folds.into_iter().flat_map(|fold| fold.nodes).collect();
        nodes.sort_by_key(|node| node.first);
        let mut merged = Self::new();
        nodes.into_iter().try_for_each(|node| merged.append(node))?;
        Ok(merged)
    }

    /// What all batches, which are so many, add up to.
    ///
    /// # Errors
    /// If a batch is missing.
    pub fn finish(mut self, batches: u64) -> Result<Partial> {
        let mut expected = 0;
        for node in &self.nodes {
            if node.first != expected {
                return Err(Error::new(format!("batch {expected} of {batches} is missing")));
            }
            expected = node.end().unwrap_or(u64::MAX);
        }
        if expected != batches {
            return Err(Error::new(format!("{expected} batches were summed up, and there are {batches}")));
        }
        let Some(mut total) = self.nodes.pop().map(|node| node.partial) else { return Ok(Partial::default()) };
        while let Some(Node { mut partial, .. }) = self.nodes.pop() {
            partial.add(&total)?;
            total = partial;
        }
        Ok(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that add up to something else in every other order.
    fn batch(at: u64) -> Partial {
        let value = 1.0 / (at as f64 + 3.0);
        let size = 10f64.powi((at % 7) as i32 * 3);
        Partial { sums: vec![value * size, value], largest: vec![-(at as f64), size], rows: vec![at as f32] }
    }

    fn fold(batches: std::ops::Range<u64>) -> Fold {
        let mut fold = Fold::new();
        batches.for_each(|at| fold.push(at, batch(at)).unwrap());
        fold
    }

    #[test]
    fn however_batches_are_divided_they_add_up_to_the_same_bits() {
        for count in [1, 2, 3, 7, 8, 21, 64, 100] {
            let whole = fold(0..count).finish(count).unwrap();
            assert_eq!(whole.rows, (0..count).map(|at| at as f32).collect::<Vec<_>>());
            assert_eq!(whole.largest[0], 0.0);
            for step in [1, 2, 3, 5, 8, 13, 64] {
                let mut parts: Vec<Fold> =
                    (0..count).step_by(step).map(|at| fold(at..count.min(at + step as u64))).collect();
                // In another order, and some of them put together before.
                parts.reverse();
                let half = parts.split_off(parts.len() / 2);
                let merged = Fold::merge([Fold::merge(parts).unwrap(), Fold::merge(half).unwrap()]).unwrap();
                assert_eq!(merged.finish(count).unwrap(), whole, "{count} batches in parts of {step}");
            }
        }
        let one_by_one = (0..21).map(batch).reduce(|mut sum, next| sum.add(&next).map(|()| sum).unwrap()).unwrap();
        assert_ne!(one_by_one.sums, fold(0..21).finish(21).unwrap().sums, "the order does matter");
    }

    #[test]
    fn batches_that_are_missing_or_there_twice_are_noticed() {
        let missing = Fold::merge([fold(0..2), fold(3..5)]).unwrap().finish(5).unwrap_err();
        assert_eq!(missing.to_string(), "batch 2 of 5 is missing");
        let short = fold(0..4).finish(5).unwrap_err();
        assert_eq!(short.to_string(), "4 batches were summed up, and there are 5");
        let twice = Fold::merge([fold(0..3), fold(2..5)]).unwrap_err();
        assert_eq!(twice.to_string(), "batch 2 was summed up twice");
        assert!(fold(0..3).push(1, batch(1)).is_err());
        assert!(fold(0..3).push(3, Partial::default()).is_err(), "other numbers");
    }

    #[test]
    fn few_nodes_are_left_of_many_batches() {
        assert_eq!(fold(0..1000).nodes.len(), 6);
        assert_eq!(fold(1..1000).nodes.len(), 14);
    }
}
