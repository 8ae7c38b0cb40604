//! How well unions, the sets of two and more members, are recognised, once predicted clusters are named after true ones.
//!
//! Names are given by the best [`matching`](crate::matching) of all members, as for `set_f1`. Of the examples with
//! |c_i| ≥ 2, `union_precision` is the share with c_i = y_i; of those with |y_i| ≥ 2, `union_recall` is. A union with a
//! member too many or too few is not found, nor is one with a member that has no partner. The empty set is no union:
//! one said of an example that is in none of the clusters costs precision.
//!
//! Where no example is truly a union, none was missed, and recall is 1. Where none is said to be one, precision is 1 if
//! none is, and 0 otherwise: methods that know no unions would lead in it if it were 1. Both are those of one of the best
//! matchings. Cost: that of the matching. No limit on the size of sets.

use compflow_api::{Component, Evaluation, Evaluator, Flags, Metric, NoParams, Result, Services};

use crate::contingency::{Contingency, Distinct, labels};
use crate::matching::Matching;

pub(crate) struct Unions;
compflow_api::register!(evaluator Unions);

impl Component for Unions {
    const NAME: &'static str = "unions";
    const SUMMARY: &'static str = "precision and recall of the unions after matching their members one to one";
    const DOCUMENTATION: &'static str = "\
Predicted singletons are matched one to one with true ones so that they share as many examples as possible. Of the examples
said to be unions, sets of two and more singletons, `union_precision` is the share whose true set is exactly that union; of
those that truly are unions, `union_recall` is the share found exactly. Without true unions recall is 1. If none are said,
precision is 1 where there are none, and 0 where there are some.";
    const FLAGS: Flags = Flags::NEEDS_TRUTH;
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Evaluator for Unions {
    fn metrics(&self) -> Vec<Metric> {
        ["union_precision", "union_recall"].map(Metric::share).to_vec()
    }

    fn evaluate(&self, evaluation: &Evaluation<'_>, services: &Services<'_>) -> Result<Vec<f64>> {
        let (truth, predicted) = labels(evaluation)?;
        let table = Contingency::new(truth, predicted);
        let matching = Matching::best(&table, services)?;
        let (so, said) = (unions(&table.truth), unions(&table.predicted));
        let exact = matching.exact(&table).filter(|cell| is_union(table.sets(cell).1));
        let exact: u64 = exact.map(|cell| cell.count).sum();
        let share = |of: u64, without: f64| if of == 0 { without } else { exact as f64 / of as f64 };
        Ok(vec![share(said, if so == 0 { 1.0 } else { 0.0 }), share(so, 1.0)])
    }
}

fn is_union(set: &[u32]) -> bool {
    set.len() >= 2
}

/// How many examples have a union.
fn unions(distinct: &Distinct<'_>) -> u64 {
    distinct.sets.iter().zip(&distinct.counts).filter(|(set, _)| is_union(set)).map(|(_, &count)| count).sum()
}

#[cfg(test)]
mod tests {
    use compflow_api::Sets;
    use proptest::prelude::*;

    use super::*;
    use crate::naive::{self, labels};

    fn scores(truth: &Sets, predicted: &Sets) -> Vec<f64> {
        naive::score(&Unions, truth, predicted)
    }

    proptest! {
        #[test]
        fn agrees_with_trying_all_matchings((truth, predicted) in labels()) {
            let best = naive::unions(&truth, &predicted);
            let found = scores(&truth, &predicted);
            prop_assert!(best.iter().any(|best| *best == *found), "{:?} is not among {:?}", found, best);
        }
    }

    #[test]
    fn only_the_whole_union_counts() {
        let truth = [vec![0], vec![1], vec![2], vec![0, 1], vec![0, 1], vec![0, 2], vec![0, 1, 2], vec![2]];
        let said = [vec![7], vec![4], vec![5], vec![4, 7], vec![7], vec![4, 7], vec![4, 7], vec![4, 5]];
        // 7, 4 and 5 are 0, 1 and 2. Four are said to be unions and four are; one is the same.
        assert_eq!(scores(&Sets::from_iter(truth), &Sets::from_iter(said)), [0.25, 0.25]);
    }

    #[test]
    fn said_too_often_costs_precision_and_too_seldom_recall() {
        let truth = Sets::from_iter([vec![0], vec![0], vec![1], vec![1], vec![0, 1]]);
        let often = Sets::from_iter([vec![8], vec![3, 8], vec![3], vec![3, 8], vec![3, 8]]);
        assert_eq!(scores(&truth, &often), [1.0 / 3.0, 1.0]);
        assert_eq!(scores(&often, &truth), [1.0, 1.0 / 3.0]);
    }

    #[test]
    fn without_unions_there_are_none_to_be_missed() {
        let (alone, together) = (Sets::from_iter([vec![0], vec![1]]), Sets::from_iter([vec![0], vec![0, 1]]));
        assert_eq!(scores(&alone, &alone), [1.0, 1.0]);
        assert_eq!(scores(&alone, &together), [0.0, 1.0]);
        // And who says none where there are some is not right about all that were said.
        assert_eq!(scores(&together, &alone), [0.0, 0.0]);
    }

    #[test]
    fn none_of_them_is_no_union() {
        let truth = Sets::from_iter([vec![0], vec![1], vec![0, 1], vec![0, 1], vec![], vec![]]);
        let predicted = Sets::from_iter([vec![0], vec![1], vec![0, 1], vec![], vec![0, 1], vec![]]);
        assert_eq!(scores(&truth, &predicted), [0.5, 0.5]);
    }

    #[test]
    fn unions_of_clusters_without_a_partner_are_never_right() {
        let truth = Sets::from_iter([vec![0], vec![0], vec![1], vec![1], vec![0, 1], vec![0, 1]]);
        // The first cluster is split: 9 is what is left of it.
        let split = Sets::from_iter([vec![5], vec![5], vec![6], vec![6], vec![5, 6], vec![6, 9]]);
        assert_eq!(scores(&truth, &split), [0.5, 0.5]);
        assert_eq!(scores(&split, &truth), [0.5, 0.5]);
    }
}
