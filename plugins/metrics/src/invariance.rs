//! What holds for all metrics: a perfect match is 1, and names and order of examples do not matter.

use compflow_api::{Evaluation, Evaluator, Services, Sets};
use proptest::prelude::*;

use crate::ami::Ami;
use crate::ari::Ari;
use crate::bcubed::Bcubed;
use crate::cri::Cri;
use crate::naive::{self, labels};
use crate::nmi::Nmi;
use crate::omega::Omega;
use crate::set_f1::SetF1;
use crate::unions::Unions;

const ALL: [&dyn Evaluator; 8] = [&Cri, &Ari, &Nmi, &Ami, &Omega, &Bcubed, &SetF1, &Unions];

/// Those that two equally good matchings may disagree about.
const TIED: [&str; 3] = ["set_accuracy", "union_precision", "union_recall"];

/// All metrics by name, with or without those that ties may change.
fn scores(truth: &Sets, predicted: &Sets, ties_agree: bool) -> Vec<(String, f64)> {
    let of = |evaluator: &&dyn Evaluator| {
        let values = naive::score(*evaluator, truth, predicted);
        let metrics = evaluator.metrics();
        assert_eq!(metrics.len(), values.len());
        metrics.into_iter().map(|metric| metric.name).zip(values).collect::<Vec<_>>()
    };
    ALL.iter().flat_map(of).filter(|(name, _)| ties_agree || !TIED.contains(&name.as_str())).collect()
}

/// Whether all best matchings have the same scores.
fn ties_agree(truth: &Sets, predicted: &Sets) -> bool {
    let agree = |scores: Vec<[f64; 2]>| scores.iter().all(|other| *other == scores[0]);
    agree(naive::set_f1(truth, predicted)) && agree(naive::unions(truth, predicted))
}

/// The sets with 0 to 4 renamed, which also changes the order of members.
fn renamed(sets: &Sets) -> Sets {
    let names = [17, 4, 900_000, 0, 5];
    sets.iter().map(|set| set.iter().map(|&member| names[member as usize]).collect::<Vec<_>>()).collect()
}

proptest! {
    #[test]
    fn labels_match_themselves_under_any_name((truth, _) in labels()) {
        for evaluator in ALL {
            let perfect = naive::score(evaluator, &truth, &renamed(&truth));
            prop_assert_eq!(perfect, vec![1.0; evaluator.metrics().len()]);
        }
    }

    #[test]
    fn names_do_not_matter((truth, predicted) in labels()) {
        let agree = ties_agree(&truth, &predicted);
        let expected = scores(&truth, &predicted, agree);
        prop_assert_eq!(&scores(&renamed(&truth), &predicted, agree), &expected);
        prop_assert_eq!(&scores(&truth, &renamed(&predicted), agree), &expected);
    }

    #[test]
    fn the_order_of_examples_does_not_matter((truth, predicted) in labels(), start in 0..40usize) {
        let order = (0..truth.len()).rev().cycle().skip(start).take(truth.len());
        let reordered = |sets: &Sets| order.clone().map(|row| sets[row].to_vec()).collect::<Sets>();
        let agree = ties_agree(&truth, &predicted);
        let found = scores(&reordered(&truth), &reordered(&predicted), agree);
        prop_assert_eq!(found, scores(&truth, &predicted, agree));
    }

    #[test]
    fn every_value_is_within_its_range((truth, predicted) in labels()) {
        for evaluator in ALL {
            for (metric, value) in evaluator.metrics().iter().zip(naive::score(evaluator, &truth, &predicted)) {
                let (least, most) = metric.range;
                prop_assert!((least - 1e-15..=most + 1e-15).contains(&value), "{} = {}", metric.name, value);
            }
        }
    }

    #[test]
    fn singletons_make_acri_and_omega_the_adjusted_rand_index(
        rows in prop::collection::vec((0..6u32, 0..6u32), 1..60)
    ) {
        let (truth, predicted): (Vec<u32>, Vec<u32>) = rows.into_iter().unzip();
        let (truth, predicted) = (Sets::singletons(&truth), Sets::singletons(&predicted));
        let ari = naive::score(&Ari, &truth, &predicted)[0];
        prop_assert_eq!(naive::score(&Cri, &truth, &predicted)[1], ari);
        let omega = naive::score(&Omega, &truth, &predicted)[0];
        prop_assert!((omega - ari).abs() < 1e-14);
    }
}

#[test]
fn without_the_truth_they_say_so() {
    let sets = Sets::singletons(&[0, 1]);
    for evaluator in ALL {
        let evaluation = Evaluation { truth: None, ..Evaluation::new(&sets, &sets) };
        let error = evaluator.evaluate(&evaluation, &Services::none()).unwrap_err();
        assert_eq!(error.to_string(), "needs true sets, and the data has none");
    }
}

#[test]
fn none_of_them_everywhere_is_a_perfect_match() {
    let none = Sets::from_iter([[]; 3]);
    for evaluator in ALL {
        assert_eq!(naive::score(evaluator, &none, &none), vec![1.0; evaluator.metrics().len()]);
    }
}

#[test]
fn no_examples_are_a_perfect_match() {
    for evaluator in ALL {
        let found = naive::score(evaluator, &Sets::default(), &Sets::default());
        assert_eq!(found, vec![1.0; evaluator.metrics().len()]);
    }
}

#[test]
fn one_example_with_sets_of_the_same_size_is_a_perfect_match() {
    for evaluator in ALL {
        let (truth, predicted) = (Sets::from_iter([[3, 4]]), Sets::from_iter([[1, 9]]));
        let found = naive::score(evaluator, &truth, &predicted);
        assert_eq!(found, vec![1.0; evaluator.metrics().len()]);
    }
}
