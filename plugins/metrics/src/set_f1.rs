//! How well the sets themselves are found, once predicted clusters are named after true ones.
//!
//! Names are given by the best [`matching`](crate::matching). Then `set_f1` = 2 Σ_i |c_i ∩ y_i| / Σ_i (|c_i| + |y_i|),
//! the F1 of all decisions whether an example has a member, and `set_accuracy` is the share of examples with c_i = y_i.
//! Members left without a partner are never right. The empty set is right where the true one is empty as well; it takes
//! part in no decision of `set_f1`, which is 1 if there is none to be made. `set_f1` is the same for all best matchings;
//! `set_accuracy` need not be, and is that of one of them.
//! Cost: that of the matching. No limit on the size of sets.

use compflow_api::{Component, Evaluation, Evaluator, Flags, Metric, NoParams, Result, Services};

use crate::contingency::{Contingency, labels};
use crate::matching::Matching;

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
        let matching = Matching::best(&table, services)?;
        let decided = truth.values().len() + predicted.values().len();
        let f1 = if decided == 0 { 1.0 } else { (2 * matching.overlap) as f64 / decided as f64 };
        let exact: u64 = matching.exact(&table).map(|cell| cell.count).sum();
        Ok(vec![f1, exact as f64 / table.n() as f64])
    }
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
            prop_assert!(best.iter().any(|best| *best == *found), "{:?} is not among {:?}", found, best);
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
}
