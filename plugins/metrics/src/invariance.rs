//! What holds for all metrics: a perfect match is 1, and names and order of examples do not matter.

use compflow_api::{Evaluator, Services, Sets};
use proptest::prelude::*;

use crate::ami::Ami;
use crate::ari::Ari;
use crate::bcubed::Bcubed;
use crate::cri::Cri;
use crate::naive::labels;
use crate::nmi::Nmi;
use crate::omega::Omega;
use crate::set_f1::SetF1;

const ALL: [&dyn Evaluator; 7] = [&Cri, &Ari, &Nmi, &Ami, &Omega, &Bcubed, &SetF1];

/// All metrics by name, but for the one that ties may change.
fn scores(truth: &Sets, predicted: &Sets) -> Vec<(String, f64)> {
    let of = |evaluator: &&dyn Evaluator| {
        let values = evaluator.evaluate(truth, predicted, &Services::none()).unwrap();
        let metrics = evaluator.metrics();
        assert_eq!(metrics.len(), values.len());
        metrics.into_iter().map(|metric| metric.name).zip(values).collect::<Vec<_>>()
    };
    ALL.iter().flat_map(of).filter(|(name, _)| name != "set_accuracy").collect()
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
            let perfect = evaluator.evaluate(&truth, &renamed(&truth), &Services::none()).unwrap();
            prop_assert_eq!(perfect, vec![1.0; evaluator.metrics().len()]);
        }
    }

    #[test]
    fn names_do_not_matter((truth, predicted) in labels()) {
        let expected = scores(&truth, &predicted);
        prop_assert_eq!(&scores(&renamed(&truth), &predicted), &expected);
        prop_assert_eq!(&scores(&truth, &renamed(&predicted)), &expected);
    }

    #[test]
    fn the_order_of_examples_does_not_matter((truth, predicted) in labels(), start in 0..40usize) {
        let order = (0..truth.len()).rev().cycle().skip(start).take(truth.len());
        let reordered = |sets: &Sets| order.clone().map(|row| sets[row].to_vec()).collect::<Sets>();
        prop_assert_eq!(scores(&reordered(&truth), &reordered(&predicted)), scores(&truth, &predicted));
    }

    #[test]
    fn every_value_is_at_most_one((truth, predicted) in labels()) {
        for (name, value) in scores(&truth, &predicted) {
            prop_assert!((-1.0..=1.0 + 1e-15).contains(&value), "{} = {}", name, value);
        }
    }

    #[test]
    fn singletons_make_acri_and_omega_the_adjusted_rand_index(
        rows in prop::collection::vec((0..6u32, 0..6u32), 1..60)
    ) {
        let (truth, predicted): (Vec<u32>, Vec<u32>) = rows.into_iter().unzip();
        let (truth, predicted) = (Sets::singletons(&truth), Sets::singletons(&predicted));
        let ari = Ari.evaluate(&truth, &predicted, &Services::none()).unwrap()[0];
        prop_assert_eq!(Cri.evaluate(&truth, &predicted, &Services::none()).unwrap()[1], ari);
        let omega = Omega.evaluate(&truth, &predicted, &Services::none()).unwrap()[0];
        prop_assert!((omega - ari).abs() < 1e-14);
    }
}

#[test]
fn no_examples_are_a_perfect_match() {
    for evaluator in ALL {
        let found = evaluator.evaluate(&Sets::default(), &Sets::default(), &Services::none()).unwrap();
        assert_eq!(found, vec![1.0; evaluator.metrics().len()]);
    }
}

#[test]
fn one_example_with_sets_of_the_same_size_is_a_perfect_match() {
    for evaluator in ALL {
        let (truth, predicted) = (Sets::from_iter([[3, 4]]), Sets::from_iter([[1, 9]]));
        let found = evaluator.evaluate(&truth, &predicted, &Services::none()).unwrap();
        assert_eq!(found, vec![1.0; evaluator.metrics().len()]);
    }
}
