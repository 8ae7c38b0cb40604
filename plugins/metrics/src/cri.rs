//! The Compositional Rand Index, and the same corrected for chance.
//!
//! Li, He & Whitehill 2023, section 6.1, doi:10.1016/j.patcog.2023.109829. The share of ordered pairs of examples
//! for which the predicted sets c and the true sets y agree about whether the first contains the second:
//! CRI = 1/(n(n-1)) Σ_{i≠j} [[c_i ⊇ c_j] = [y_i ⊇ y_j]].
//! By the same definition every set contains the empty one, "none of them", which contains only itself: predicting it
//! where the truth is not empty claims that all other examples' sets contain this one's.
//! Most pairs contain each other in neither labelling, so that CRI is high for any labels: every example alone
//! reaches 0.85 on data with 15 sets. `acri` is Cohen's κ of the same pairs, 0 for labels that are right by chance
//! only; if all sets are singletons, `cri` is the Rand index and `acri` is the adjusted Rand index.
//!
//! With P = #{c_i ⊇ c_j}, T = #{y_i ⊇ y_j} and TP = #{both}, all over i ≠ j,
//! CRI = (n(n-1) - P - T + 2 TP) / (n(n-1)).
//! These are sums over distinct sets and their subsets that occur: O(u 4^d) for u distinct pairs of sets with at
//! most d members, in whole numbers. There is no limit on d; large sets cost more only if many contain each other.

use compflow_api::{Component, Evaluation, Evaluator, Flags, Metric, NoParams, Result, Services};

use crate::contingency::{Cell, Contingency, Distinct, labels};
use crate::pair_table::PairTable;
use crate::subsets::Subsets;

pub(crate) struct Cri;
compflow_api::register!(evaluator Cri);

impl Component for Cri {
    const NAME: &'static str = "cri";
    const SUMMARY: &'static str = "Compositional Rand Index, plain and corrected for chance";
    const DOCUMENTATION: &'static str = "\
The Compositional Rand Index: over all ordered pairs of examples, how often prediction and truth agree on whether the
set of the one contains the set of the other. `cri` is that share; `acri` is the same agreement corrected for chance
(Cohen's kappa of the 2×2 table), 0 for guessing, which equals the adjusted Rand index if every set has one member.
Raw CRI is badly scaled: giving every example a cluster of its own already scores about 0.85 on the paper's data.";
    const FLAGS: Flags = Flags::NEEDS_TRUTH;
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Evaluator for Cri {
    fn metrics(&self) -> Vec<Metric> {
        vec![Metric::share("cri"), Metric::share("acri").between(-1.0, 1.0)]
    }

    fn evaluate(&self, evaluation: &Evaluation<'_>, services: &Services<'_>) -> Result<Vec<f64>> {
        let (truth, predicted) = labels(evaluation)?;
        let table = containment(&Contingency::new(truth, predicted), services)?;
        Ok(vec![table.agreement(), table.kappa()])
    }
}

/// Counts the ordered pairs of examples by whether the first one's set contains the second one's.
fn containment(table: &Contingency<'_>, services: &Services<'_>) -> Result<PairTable> {
    let predicted = Subsets::new(&table.predicted.sets, services)?;
    let truth = Subsets::new(&table.truth.sets, services)?;
    let mut both = 0;
    for cell in &table.cells {
        services.check_cancelled()?;
        let true_subsets = truth.of(cell.truth);
        let contained: u64 = predicted
            .of(cell.predicted)
            .iter()
            .map(|&subset| count_among(&table.cells[table.row(subset as usize)], true_subsets))
            .sum();
        both += cell.count * (contained - 1);
    }
    Ok(PairTable::new(
        table.pairs(),
        contained_pairs(&table.predicted, &predicted),
        contained_pairs(&table.truth, &truth),
        both,
    ))
}

/// Ordered pairs of two examples of which the first contains the second.
fn contained_pairs(distinct: &Distinct<'_>, subsets: &Subsets) -> u64 {
    let contained = |set| subsets.of(set).iter().map(|&subset| distinct.counts[subset as usize]).sum::<u64>();
    // Without the example itself.
    distinct.counts.iter().zip(0..).map(|(&count, set)| count * (contained(set) - 1)).sum()
}

/// The examples in `row` whose true set is among `truth`; both ascend. The shorter side is looked up in the longer
/// one: either may have thousands of entries while the other has a few.
fn count_among(row: &[Cell], truth: &[u32]) -> u64 {
    if row.len() < truth.len() {
        row.iter().filter(|cell| truth.binary_search(&cell.truth).is_ok()).map(|cell| cell.count).sum()
    } else {
        let found = truth.iter().filter_map(|set| row.binary_search_by_key(set, |cell| cell.truth).ok());
        found.map(|at| row[at].count).sum()
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::{ForeignEvaluator, Registration, Sets};
    use proptest::prelude::*;

    use super::*;
    use crate::naive::{self, labels};

    fn scores(truth: &Sets, predicted: &Sets) -> Vec<f64> {
        naive::score(&Cri, truth, predicted)
    }

    /// The data of the paper: `n` examples, equally many of each set of at most `d` of 5 classes.
    fn experiment(d: usize, n: usize) -> Sets {
        let sets = Sets::all_up_to(5, d);
        (0..n).map(|row| sets[row % sets.len()].to_vec()).collect()
    }

    fn percent(value: f64) -> String {
        format!("{:.2}", 100.0 * value)
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition((truth, predicted) in labels()) {
            prop_assert_eq!(scores(&truth, &predicted), naive::cri(&truth, &predicted));
        }
    }

    #[test]
    fn the_papers_data_gives_the_closed_forms() {
        for (d, n, oracle, alone, together) in [
            (2, 150, "91.05", "85.01", "14.99"),
            (2, 1500, "91.11", "84.50", "15.50"),
            (3, 250, "87.15", "83.53", "16.47"),
            (3, 2500, "87.19", "83.23", "16.77"),
        ] {
            let truth = experiment(d, n);
            let sets = Sets::all_up_to(5, d);
            // Every set found, and each taken for a cluster of its own.
            let singletons: Vec<u32> = (0..n).map(|row| (row % sets.len()) as u32).collect();
            let [osc, acri] = scores(&truth, &Sets::singletons(&singletons))[..] else { unreachable!() };
            assert_eq!(percent(osc), oracle, "d = {d}, n = {n}");
            let each = n / sets.len();
            let contains = |a: &[u32], b: &[u32]| a != b && b.iter().all(|member| a.contains(member));
            let contained: usize = sets.iter().map(|a| sets.iter().filter(|b| contains(a, b)).count()).sum();
            let closed_form = 1.0 - (contained * each * each) as f64 / (n * (n - 1)) as f64;
            assert!((osc - closed_form).abs() < 1e-15);
            assert!(acri > 0.3 && acri < osc, "{acri}");

            let numbers: Vec<u32> = (0..n as u32).collect();
            assert_eq!(percent(scores(&truth, &Sets::singletons(&numbers))[0]), alone);
            let one = Sets::singletons(&vec![0; n]);
            let [cri, acri] = scores(&truth, &one)[..] else { unreachable!() };
            assert_eq!(percent(cri), together);
            assert_eq!(acri, 0.0);
        }
    }

    #[test]
    fn works_across_the_boundary() -> Result<()> {
        let component = Registration::evaluator::<Cri>().component()?;
        assert_eq!(component.name, "cri");
        let cri = ForeignEvaluator::try_from(component.create("{}", &Services::none())?)?;
        assert_eq!(cri.metrics(), [Metric::share("cri"), Metric::share("acri").between(-1.0, 1.0)]);
        // {0,1} contains both others; the prediction misses that it contains the second one: 2 of 6 pairs hold in
        // truth, 1 in both, so κ = (5/6 - 11/18) / (1 - 11/18).
        let truth = Sets::from_iter([vec![0], vec![1], vec![0, 1]]);
        let predicted = Sets::from_iter([vec![4], vec![5], vec![4, 9]]);
        let found = cri.evaluate(&Evaluation::new(&predicted, &truth), &Services::none())?;
        assert_eq!(found[0], 5.0 / 6.0);
        assert!((found[1] - 4.0 / 7.0).abs() < 1e-15, "{}", found[1]);
        Ok(())
    }

    #[test]
    fn none_of_them_is_contained_in_every_set() {
        let truth = Sets::from_iter([vec![], vec![0], vec![0]]);
        let predicted = Sets::from_iter([vec![], vec![0], vec![1]]);
        // 4 of 6 ordered pairs hold in truth, 2 as predicted, these 2 in both: κ = 2·(2·2)/(4·4 + 2·2).
        assert_eq!(scores(&truth, &predicted), [4.0 / 6.0, 8.0 / 20.0]);
        assert_eq!(scores(&predicted, &truth), [4.0 / 6.0, 8.0 / 20.0]);
    }

    #[test]
    fn a_single_example_is_a_perfect_match() {
        assert_eq!(scores(&Sets::singletons(&[3]), &Sets::from_iter([[1, 2]])), [1.0, 1.0]);
    }
}
