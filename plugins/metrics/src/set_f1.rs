//! How well the sets themselves are found, once predicted clusters are named after true ones.
//!
//! Names are given by the one-to-one matching of predicted and true members with the largest total overlap (the
//! number of examples whose sets have both), by the Hungarian algorithm: Kuhn 1955, doi:10.1002/nav.3800020109.
//! Then `set_f1` = 2 Σ_i |c_i ∩ y_i| / Σ_i (|c_i| + |y_i|), the F1 of all decisions whether an example has a
//! member, and `set_accuracy` is the share of examples with c_i = y_i. Members left without a partner are never
//! right. The empty set is right where the true one is empty as well; it takes part in no decision of `set_f1`, which is 1
//! if there is none to be made. `set_f1` is the same for all best matchings; `set_accuracy` need not be, and is that of one of them.
//!
//! For k and k' distinct members, k ≤ k', memory for k k' counts and O(k² k') steps. No limit on the size of sets.

use compflow_api::{Component, Evaluation, Evaluator, Flags, Metric, NoParams, Result, Services};
use pathfinding::kuhn_munkres::kuhn_munkres;
use pathfinding::matrix::Matrix;

use crate::contingency::{Cell, Contingency, labels};

pub(crate) struct SetF1;
compflow_api::register!(evaluator SetF1);

impl Component for SetF1 {
    const NAME: &'static str = "set_f1";
    const SUMMARY: &'static str = "F1 and exact accuracy of the sets after matching their members one to one";
    const DOCUMENTATION: &'static str = "\
Predicted singletons are matched one to one with true ones so that they share as many examples as possible. `set_f1` is
the F1 of all decisions whether an example belongs to a singleton, `set_accuracy` the share of examples whose whole set
is right.";
    const FLAGS: Flags = Flags::NEEDS_TRUTH;
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Evaluator for SetF1 {
    fn metrics(&self) -> Vec<Metric> {
        ["set_f1", "set_accuracy"].map(Metric::share).to_vec()
    }

    fn evaluate(&self, evaluation: &Evaluation<'_>, services: &Services<'_>) -> Result<Vec<f64>> {
        let (truth, predicted) = labels(evaluation)?;
        if truth.is_empty() {
            return Ok(vec![1.0, 1.0]);
        }
        let table = Contingency::new(truth, predicted);
        let matching = best_matching(&table, services)?;
        let decided = truth.values().len() + predicted.values().len();
        let f1 = if decided == 0 { 1.0 } else { (2 * matching.overlap) as f64 / decided as f64 };
        Ok(vec![f1, exact(&table, &matching) as f64 / table.n() as f64])
    }
}

/// Which true member each predicted one stands for.
struct Matching {
    /// The predicted members, ascending.
    members: Vec<u32>,
    /// The true member of each, if it has one.
    partners: Vec<Option<u32>>,
    /// Σ_i |c_i ∩ y_i| after renaming.
    overlap: i64,
}

fn best_matching(table: &Contingency<'_>, services: &Services<'_>) -> Result<Matching> {
    let (predicted, truth) = (members(&table.predicted.sets), members(&table.truth.sets));
    if predicted.is_empty() || truth.is_empty() {
        return Ok(Matching { partners: vec![None; predicted.len()], members: predicted, overlap: 0 });
    }
    // The algorithm wants no more rows than columns.
    let upright = predicted.len() <= truth.len();
    let (rows, columns) = if upright { (predicted.len(), truth.len()) } else { (truth.len(), predicted.len()) };
    let bytes = (size_of::<i64>() * rows).saturating_mul(columns);
    services.require_memory(bytes as u64, "it grows with the number of predicted times that of true clusters")?;
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
    Ok(Matching { members: predicted, partners, overlap })
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

/// How many examples have exactly their true set after renaming.
fn exact(table: &Contingency<'_>, matching: &Matching) -> u64 {
    let renamed: Vec<Option<Vec<u32>>> = positions(&table.predicted.sets, &matching.members)
        .into_iter()
        .map(|set| {
            let mut renamed = set.into_iter().map(|at| matching.partners[at]).collect::<Option<Vec<u32>>>()?;
            renamed.sort_unstable();
            Some(renamed)
        })
        .collect();
    let is_exact = |cell: &&Cell| renamed[cell.predicted as usize].as_deref() == Some(table.sets(cell).1);
    table.cells.iter().filter(is_exact).map(|cell| cell.count).sum()
}

#[cfg(test)]
mod tests {
    use compflow_api::Sets;
    use proptest::prelude::*;

    use super::*;
    use crate::naive::{self, labels};

    fn scores(truth: &Sets, predicted: &Sets) -> Vec<f64> {
        naive::score(&SetF1, truth, predicted)
    }

    proptest! {
        #[test]
        fn agrees_with_trying_all_matchings((truth, predicted) in labels()) {
            let best = naive::set_f1(&truth, &predicted);
            let found = scores(&truth, &predicted);
            prop_assert!(best.contains(&(found[0], found[1])), "{:?} is not among {:?}", found, best);
        }
    }

    #[test]
    fn a_wrong_member_costs_the_set_but_not_all_its_members() {
        let truth = Sets::from_iter([vec![0], vec![0], vec![1], vec![1], vec![0, 1]]);
        let predicted = Sets::from_iter([vec![8], vec![8], vec![3], vec![3], vec![3]]);
        assert_eq!(scores(&truth, &predicted), [2.0 * 5.0 / 11.0, 0.8]);
    }

    #[test]
    fn clusters_too_many_to_be_matched_are_never_right() {
        let (truth, predicted) = (Sets::singletons(&[0, 0, 0, 0]), Sets::singletons(&[1, 1, 2, 3]));
        assert_eq!(scores(&truth, &predicted), [0.5, 0.5]);
        assert_eq!(scores(&predicted, &truth), [0.5, 0.5]);
    }

    #[test]
    fn none_of_them_is_right_where_it_is_so() {
        let (truth, predicted) =
            (Sets::from_iter([vec![0], vec![], vec![]]), Sets::from_iter([vec![7], vec![], vec![7]]));
        assert_eq!(scores(&truth, &predicted), [2.0 / 3.0, 2.0 / 3.0]);
        let none = Sets::from_iter([[]; 3]);
        assert_eq!(scores(&truth, &none), [0.0, 2.0 / 3.0]);
        assert_eq!(scores(&none, &predicted), [0.0, 1.0 / 3.0]);
    }

    #[test]
    fn refuses_a_matrix_over_the_budget() {
        let numbers: Vec<u32> = (0..100).collect();
        let alone = Sets::singletons(&numbers);
        let services = Services { memory: 79_999, ..Services::none() };
        let refused = SetF1.evaluate(&Evaluation::new(&alone, &alone), &services).unwrap_err().to_string();
        assert!(refused.contains("number of predicted times that of true clusters"), "{refused}");
    }
}
