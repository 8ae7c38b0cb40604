//! The examples in an order that depends on what they are, and not on their rows.
//!
//! Noise against ties, random draws, sums that are rounded and who comes first of equally good ones all go by the order
//! of the examples. So they are sorted by their values before anything else is done: rows that come in another order
//! lead to the same clusters to the last digit.

use std::cmp::Ordering;

use compflow_api::{Embeddings, Task};

/// Sorted examples.
pub(crate) struct Sorted {
    /// The row of each.
    pub(crate) rows: Vec<u32>,
    values: Vec<f32>,
    preferences: Option<Vec<f32>>,
}

impl Sorted {
    /// How many bytes it takes.
    pub(crate) fn memory(n: usize, dim: usize) -> u64 {
        (n as u64).saturating_mul(4 * dim as u64 + 8)
    }

    /// Sorts a task's examples by their coordinates, equal ones by their preferences.
    pub(crate) fn new(task: &Task<'_>) -> Self {
        let preference = |row: u32| task.preferences.map_or(0.0, |given| given[row as usize]);
        let compare = |a: &u32, b: &u32| {
            let rows = task.embeddings.row(*a as usize).iter().zip(task.embeddings.row(*b as usize));
            let coordinates = rows.map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne());
            coordinates.unwrap_or(Ordering::Equal).then_with(|| preference(*a).total_cmp(&preference(*b)))
        };
        let mut rows: Vec<u32> = (0..task.embeddings.len() as u32).collect();
        rows.sort_by(compare);
        let values = rows.iter().flat_map(|&row| task.embeddings.row(row as usize)).copied().collect();
        let preferences = task.preferences.map(|_| rows.iter().map(|&row| preference(row)).collect());
        Self { rows, values, preferences }
    }

    /// The task with its examples sorted.
    pub(crate) fn task<'a>(&'a self, task: &Task<'a>) -> Task<'a> {
        let embeddings = Embeddings::new(&self.values, task.embeddings.dim());
        Task { embeddings, truth: None, preferences: self.preferences.as_deref(), ..*task }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_any_order_become_the_same_and_keep_what_belongs_to_them() {
        let values = [2.0, 1.0, -1.0, 5.0, 2.0, 0.5, 2.0, 1.0];
        let preferences = [3.0, 0.0, 1.0, 2.0];
        let task = Task { preferences: Some(&preferences), ..Task::new(Embeddings::new(&values, 2)) };
        let sorted = Sorted::new(&task);
        assert_eq!(sorted.rows, [1, 2, 3, 0]);
        assert_eq!(sorted.values, [-1.0, 5.0, 2.0, 0.5, 2.0, 1.0, 2.0, 1.0]);
        assert_eq!(sorted.task(&task).preferences, Some(&[0.0, 1.0, 2.0, 3.0][..]));
    }
}
