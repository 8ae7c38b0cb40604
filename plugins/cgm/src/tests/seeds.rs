//! Sets that are known beforehand.

use compflow_api::Column;

use super::*;
use crate::Assignment;

/// The true sets of every so many rows, with other numbers for the singletons.
fn some(planted: &Planted, every: usize, numbers: &[u32]) -> Sets {
    let renumbered = |set: &[u32]| set.iter().map(|at| numbers[*at as usize]).collect::<Vec<u32>>();
    planted
        .truth
        .iter()
        .enumerate()
        .map(|(row, set)| if row % every == 0 { renumbered(set) } else { vec![] })
        .collect()
}

fn posterior(found: &Clustering) -> &[f64] {
    match &found.extra[0] {
        (name, Column::Floats(values)) if name == "posterior" => values,
        other => panic!("{other:?}"),
    }
}

#[test]
fn known_examples_are_certain_and_the_others_follow_their_names() {
    let planted = plant(Plain::Sum, 3, 2, 4, 12, 0.15, 1.3, 1);
    let seeds = some(&planted, 5, &[2, 0, 1]);
    let expected = some(&planted, 1, &[2, 0, 1]);
    for assignment in [Assignment::Hard, Assignment::Soft] {
        for outliers in [false, true] {
            let task = Task { seeds: Some(&seeds), ..planted.task(Normalize::None) };
            let params = Params { assignment, outliers, ..Params::new(3) };
            // It begins with other numbers than the names have.
            let found = cluster(&task, params, &planted.start, &Services::none()).unwrap();
            found.check_seeds(&seeds).unwrap();
            assert_eq!(found.assignments, expected, "{assignment:?} {outliers}");
            for (row, seed) in seeds.iter().enumerate().filter(|(_, seed)| !seed.is_empty()) {
                assert_eq!(posterior(&found)[row], 1.0);
                let shares = &found.memberships[3 * row..][..3];
                assert!(
                    (0..3).all(|at| shares[at as usize] == f32::from(u8::from(seed.contains(&at)))),
                    "{shares:?}"
                );
            }
        }
    }
}

#[test]
fn what_is_known_holds_against_the_evidence_and_the_bound_rises() {
    let planted = plant(Plain::Sum, 3, 2, 4, 12, 0.15, 1.3, 2);
    // The first row is said to be what the second is; a known example is no outlier either.
    let mut values = planted.values.clone();
    values[4 * 7..][..4].fill(40.0);
    let seeds: Sets = (0..planted.truth.len())
        .map(|row| match row {
            0 | 1 => &planted.truth[1],
            7 => &planted.truth[7],
            _ => &[][..],
        })
        .collect();
    for assignment in [Assignment::Hard, Assignment::Soft] {
        for outliers in [false, true] {
            let task = Task {
                embeddings: Embeddings::new(&values, 4),
                seeds: Some(&seeds),
                ..planted.task(Normalize::None)
            };
            let params = Params { assignment, outliers, ..Params::new(3) };
            let found = cluster(&task, params, &planted.start, &Services::none()).unwrap();
            found.check_seeds(&seeds).unwrap();
            let later = &found.diagnostics.trace[1..];
            assert!(later.is_sorted_by(|a, b| *b >= a - 1e-6 * (a.abs() + 72.0)), "{later:?}");
        }
    }
}

#[test]
fn more_names_than_singletons_are_refused() {
    let planted = plant(Plain::Sum, 3, 2, 4, 4, 0.1, 1.0, 1);
    let seeds = some(&planted, 1, &[0, 1, 2]);
    let task = Task { seeds: Some(&seeds), ..planted.task(Normalize::None) };
    let error = cluster(&task, Params::new(2), &planted.start, &Services::none()).unwrap_err();
    assert_eq!(error.to_string(), "`k` = 2 is less than the 3 singletons that seeds name; set it to at least 3");
}
