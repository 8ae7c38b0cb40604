//! Predicted members named after true ones: the one-to-one matching with the largest total overlap, the number of
//! examples whose sets have both. By the Hungarian algorithm: Kuhn 1955, doi:10.1002/nav.3800020109.
//!
//! Where one side has more members than the other, those too many are left without a partner. Of equally good
//! matchings it is any.
//!
//! For k and k' distinct members, k ≤ k', memory for k k' counts and O(k² k') steps.

use compflow_api::{Result, Services};
use pathfinding::kuhn_munkres::kuhn_munkres;
use pathfinding::matrix::Matrix;

use crate::contingency::{Cell, Contingency};

/// Which true member each predicted one stands for.
pub(crate) struct Matching {
    /// The predicted members, ascending.
    members: Vec<u32>,
    /// The true member of each, if it has one.
    partners: Vec<Option<u32>>,
    /// Σ_i |c_i ∩ y_i| after renaming.
    pub(crate) overlap: i64,
}

impl Matching {
    /// The best one.
    ///
    /// # Errors
    /// If memory does not suffice, or the work is cancelled.
    pub(crate) fn best(table: &Contingency<'_>, services: &Services<'_>) -> Result<Self> {
        let (predicted, truth) = (members(&table.predicted.sets), members(&table.truth.sets));
        if predicted.is_empty() || truth.is_empty() {
            return Ok(Self { partners: vec![None; predicted.len()], members: predicted, overlap: 0 });
        }
        // The algorithm wants no more rows than columns.
        let upright = predicted.len() <= truth.len();
        let (rows, columns) =
            if upright { (predicted.len(), truth.len()) } else { (truth.len(), predicted.len()) };
        let bytes = (size_of::<i64>() * rows).saturating_mul(columns);
        services
            .require_memory(bytes as u64, "it grows with the number of predicted times that of true clusters")?;
        let mut overlaps = Matrix::new(rows, columns, 0i64);
        let (predicted_at, true_at) =
            (positions(&table.predicted.sets, &predicted), positions(&table.truth.sets, &truth));
        for cell in &table.cells {
            for &p in &predicted_at[cell.predicted as usize] {
                for &t in &true_at[cell.truth as usize] {
                    overlaps[if upright { (p, t) } else { (t, p) }] += cell.count as i64;
                }
            }
        }
        services.check_cancelled()?;
        let (overlap, column_of) = kuhn_munkres(&overlaps);
        let mut partners = vec![None; predicted.len()];
        for (row, column) in column_of.into_iter().enumerate() {
            let (p, t) = if upright { (row, column) } else { (column, row) };
            partners[p] = Some(truth[t]);
        }
        Ok(Self { members: predicted, partners, overlap })
    }

    /// The cells of the table whose predicted set is exactly the true one after renaming.
    pub(crate) fn exact<'t>(&self, table: &'t Contingency<'_>) -> impl Iterator<Item = &'t Cell> {
        let renamed: Vec<Option<Vec<u32>>> = positions(&table.predicted.sets, &self.members)
            .into_iter()
            .map(|set| {
                let mut renamed = set.into_iter().map(|at| self.partners[at]).collect::<Option<Vec<u32>>>()?;
                renamed.sort_unstable();
                Some(renamed)
            })
            .collect();
        table
            .cells
            .iter()
            .filter(move |cell| renamed[cell.predicted as usize].as_deref() == Some(table.sets(cell).1))
    }
}

/// The distinct members, ascending.
fn members(sets: &[&[u32]]) -> Vec<u32> {
    let mut members = sets.concat();
    members.sort_unstable();
    members.dedup();
    members
}

/// Each set with its members replaced by their places among `members`.
fn positions(sets: &[&[u32]], members: &[u32]) -> Vec<Vec<usize>> {
    let position = |member: &u32| members.partition_point(|other| other < member);
    sets.iter().map(|set| set.iter().map(position).collect()).collect()
}

#[cfg(test)]
mod tests {
    use compflow_api::Sets;

    use super::*;

    #[test]
    fn refuses_a_matrix_over_the_budget() {
        let numbers: Vec<u32> = (0..100).collect();
        let alone = Sets::singletons(&numbers);
        let table = Contingency::new(&alone, &alone);
        let with = |memory| Matching::best(&table, &Services { memory, ..Services::none() });
        assert_eq!(with(80_000).unwrap().overlap, 100);
        let refused = with(79_999).err().unwrap().to_string();
        assert!(refused.contains("number of predicted times that of true clusters"), "{refused}");
    }
}
