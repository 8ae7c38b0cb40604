//! What it finds.

use super::*;
use crate::{Assignment, Kind, Weights};

#[test]
fn shapes_that_spheres_miss_are_found() {
    // Noise in the last dimensions is a hundred times that in the first, and hides the centres from plain distances.
    let mut better = 0;
    for seed in 0..5 {
        let planted = plant(Plain::Sum, 3, 2, 5, 60, 0.02, 4.0, seed);
        let task = planted.task(Normalize::None);
        let services = Services { seed, ..Services::none() };
        let run = |covariance| {
            let params = Params { covariance, ..Params::new(3) };
            cri(&cluster(&task, params, &planted.start, &services).unwrap().assignments, &planted.truth)
        };
        let (before, after) = (run(Kind::Spherical), run(Kind::Tied));
        assert!(after >= before, "seed {seed}: {after} after {before}");
        better += usize::from(after > before + 0.01);
    }
    assert!(better >= 3, "{better}");
}

#[test]
fn unions_off_their_compositions_are_followed() {
    // A composer that says the sum where unions lie at 1.15 of it.
    let mut planted = plant(Plain::Sum, 4, 2, 8, 100, 0.4, 1.0, 3);
    for (row, set) in planted.values.chunks_exact_mut(8).zip(planted.truth.iter()) {
        if set.len() == 2 {
            row.iter_mut().for_each(|value| *value *= 1.15);
        }
    }
    let found = planted.cluster(Params::new(4));
    let trusting = planted.cluster(Params { residual: Residual::Value(0.0), ..Params::new(4) });
    assert!(resolved(&found, "residual") > 0.005, "{}", resolved(&found, "residual"));
    assert_eq!(resolved(&trusting, "residual"), 0.0);
    assert!(scalar(&found, "log_likelihood") > scalar(&trusting, "log_likelihood"));
    let exact = plant(Plain::Sum, 4, 2, 8, 100, 0.4, 1.0, 3).cluster(Params::new(4));
    assert_eq!(resolved(&exact, "residual"), 0.0);
}

#[test]
fn what_belongs_nowhere_is_an_outlier() {
    let mut planted = plant(Plain::Sum, 4, 2, 8, 40, 0.3, 1.0, 5);
    let n = planted.truth.len();
    let far = examples::uniform(20, 8, 9);
    planted.values.extend(far.iter().map(|value| 8.0 * value));
    (0..20).for_each(|_| planted.truth.push(&[]));
    let found = planted.cluster(Params { outliers: true, ..Params::new(4) });
    let wrong = (0..n + 20).filter(|&row| found.assignments[row].is_empty() != (row >= n)).count();
    assert!(wrong <= 4, "{wrong}");
    let share = scalar(&found, "outliers");
    assert!((share - 20.0 / (n + 20) as f64).abs() < 0.02, "{share}");
    let without = planted.cluster(Params::new(4));
    assert!(without.assignments.iter().all(|set| !set.is_empty()));
}

#[test]
fn posteriors_and_memberships_are_probabilities() {
    let planted = plant(Plain::Max, 4, 2, 4, 30, 1.5, 1.0, 2);
    for assignment in [Assignment::Hard, Assignment::Soft] {
        let found = planted.cluster(Params { assignment, ..Params::new(4) });
        let compflow_api::Column::Floats(posteriors) = &found.extra[0].1 else { panic!("{:?}", found.extra) };
        let mut unsure = 0;
        for (row, (set, &posterior)) in found.assignments.iter().zip(posteriors).enumerate() {
            assert!(posterior > 0.1 - 1e-9 && posterior <= 1.0, "{posterior}");
            unsure += usize::from(posterior < 0.9);
            for (singleton, &membership) in found.memberships[row * 4..][..4].iter().enumerate() {
                assert!((0.0..=1.0).contains(&membership));
                if set.contains(&(singleton as u32)) {
                    assert!(f64::from(membership) >= posterior - 1e-6, "{membership} {posterior}");
                }
            }
        }
        assert!(unsure > 10, "{unsure}");
    }
}

#[test]
fn rare_unions_are_learnt_to_be_rare() {
    let mut planted = plant(Plain::Sum, 3, 2, 4, 100, 0.9, 1.0, 7);
    let (mut values, mut truth) = (Vec::new(), Sets::default());
    for (row, set) in planted.truth.iter().enumerate().filter(|(row, set)| set.len() == 1 || row % 40 < 6) {
        values.extend_from_slice(&planted.values[row * 4..][..4]);
        truth.push(set);
    }
    (planted.values, planted.truth) = (values, truth);
    let unions = |weights| {
        let found = planted.cluster(Params { weights, ..Params::new(3) });
        found.assignments.iter().filter(|set| set.len() == 2).count()
    };
    let (learnt, equal) = (unions(Weights::Sizes), unions(Weights::Equal));
    assert!(learnt < equal, "{learnt} {equal}");
}

/// Says the right singletons to the seeds after the first, and those of the first example to that.
struct FirstMisses(Vec<f32>);

impl Clusterer for FirstMisses {
    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        let Self(right) = self;
        let missed = || task.embeddings.row(0).repeat(right.len() / task.embeddings.dim());
        Given(if services.seed == 0 { missed() } else { right.clone() }).cluster(task, services)
    }
}

#[test]
fn the_likeliest_of_several_starts_is_kept() {
    let planted = plant(Plain::Sum, 4, 2, 8, 40, 0.3, 1.0, 5);
    let task = planted.task(Normalize::None);
    let run = |starts, sample| {
        let params = Params { starts, sample, ..Params::new(4) };
        let clusterer = Cgm::beginning_with(params, Box::new(FirstMisses(planted.start.clone())));
        cri(&clusterer.cluster(&task, &Services::none()).unwrap().assignments, &planted.truth)
    };
    let n = planted.truth.len();
    assert!(run(1, n) < 0.9, "{}", run(1, n));
    assert!(run(2, n) > 0.99, "{}", run(2, n));
    // Among the starts of a sample, too.
    assert!(run(1, n / 2) < 0.9 && run(2, n / 2) > 0.99);
}

#[test]
fn the_few_examples_of_rare_unions_are_no_outliers() {
    let (each, sets) = (40, 10);
    let planted = plant(Plain::Sum, 4, 2, 8, each, 0.3, 1.0, 3);
    // All examples of singletons, and two of every union.
    let is_kept = |row: &usize| planted.truth[*row].len() == 1 || *row < 2 * sets;
    let kept: Vec<usize> = (0..each * sets).filter(is_kept).collect();
    let values: Vec<f32> = kept.iter().flat_map(|&row| &planted.values[8 * row..][..8]).copied().collect();
    let task = Task { embeddings: Embeddings::new(&values, 8), ..planted.task(Normalize::None) };
    let params = Params { outliers: true, ..Params::new(4) };
    let found = cluster(&task, params, &planted.start, &Services::none()).unwrap();
    let right =
        kept.iter().zip(found.assignments.iter()).filter(|&(&row, set)| planted.truth[row].len() == set.len());
    assert_eq!(right.count(), kept.len());
}
