//! Sets that are known beforehand.

use super::*;

/// The true sets of the rows that `known` says, with other numbers for the singletons.
fn some(planted: &Planted, numbers: &[u32], known: impl Fn(usize, &[u32]) -> bool) -> Sets {
    let renumbered = |set: &[u32]| set.iter().map(|at| numbers[*at as usize]).collect::<Vec<u32>>();
    let of = |(row, set)| if known(row, set) { renumbered(set) } else { vec![] };
    planted.truth.iter().enumerate().map(of).collect()
}

fn seeded(planted: &Planted, seeds: &Sets, params: Params) -> Clustering {
    let task = Task { seeds: Some(seeds), ..planted.task(Normalize::None) };
    let found = cluster(&task, params, &Services::none()).unwrap();
    found.check_seeds(seeds).unwrap();
    found
}

#[test]
fn examples_get_the_names_of_what_is_known() {
    let planted = plant(Plain::Sum, 4, 2, 5, 12, 0.1, 1);
    let numbers = [2, 0, 3, 1];
    let expected = some(&planted, &numbers, |_, _| true);
    for init in [Start::Random, Start::PlusPlus] {
        let params = || Params { init: Init::Start(init), ..params(4) };
        for (what, seeds) in [
            ("one of each", some(&planted, &numbers, |row, set| row < 10 && set.len() == 1)),
            ("every seventh", some(&planted, &numbers, |row, _| row % 7 == 0)),
            ("all", expected.clone()),
            ("unions only", some(&planted, &numbers, |row, set| row < 40 && set.len() == 2)),
        ] {
            let found = seeded(&planted, &seeds, params());
            assert_eq!(found.assignments, expected, "{what}");
            assert_eq!(found.singletons.numbers, [0, 1, 2, 3]);
        }
    }
}

#[test]
fn singletons_without_a_name_have_the_numbers_behind() {
    let planted = plant(Plain::Sum, 4, 2, 5, 12, 0.1, 2);
    // 3 is called 0, and nothing else has a name.
    let seeds: Sets = planted.truth.iter().map(|set| if set == [3] { vec![0] } else { vec![] }).collect();
    let found = seeded(&planted, &seeds, params(4));
    assert_eq!(cri(&found.assignments, &planted.truth), 1.0);
}

#[test]
fn what_is_known_holds_against_the_examples_and_the_ssd_never_rises() {
    let planted = plant(Plain::Max, 5, 2, 6, 12, 0.3, 3);
    // A tenth is said to be something else.
    let sets = Sets::all_up_to(5, 2);
    let wrong = |row: usize| if row % 10 == 3 { &sets[(row / 10) % sets.len()] } else { &[][..] };
    let seeds: Sets = (0..planted.truth.len()).map(wrong).collect();
    for refine in [false, true] {
        let found = seeded(&planted, &seeds, Params { refine, restarts: 30, ..params(5) });
        assert!(
            found.diagnostics.trace.is_sorted_by(|a, b| *b <= a * (1.0 + 1e-6)),
            "{:?}",
            found.diagnostics.trace
        );
        let task = planted.task(Normalize::None);
        let expected = ssd(&task, &found);
        assert!((found.diagnostics.objective - expected).abs() < 1e-4 * expected, "{expected}");
    }
}

#[test]
fn swaps_leave_names_alone() {
    // So many singletons that restarts alone do not find them.
    let planted = plant(Plain::Sum, 12, 2, 16, 4, 0.05, 4);
    let seeds = some(&planted, &[11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0], |row, set| {
        row < 12 && set.len() == 1 && set[0] > 8
    });
    let found = seeded(&planted, &seeds, Params { restarts: 50, init: Init::default(), ..params(12) });
    assert!(cri(&found.assignments, &planted.truth) > 0.99, "{}", cri(&found.assignments, &planted.truth));
}

#[test]
fn streams_threads_and_weights_change_nothing() {
    let planted = plant(Plain::Sum, 4, 2, 5, 12, 0.4, 5);
    let seeds = some(&planted, &[1, 0, 3, 2], |row, _| row % 7 == 0);
    let task = Task { seeds: Some(&seeds), ..planted.task(Normalize::L2) };
    let ckm = Ckm::new(params(4), &Services::none()).unwrap();
    let whole = ckm.cluster(&task, &Services::none()).unwrap();
    let services = Services { threads: 3, ..Services::none() };
    assert_eq!(ckm.cluster_stream(&task.stream(), &services).unwrap(), whole);
    // What is known and counts for nothing has its set all the same.
    let weights: Vec<f32> = (0..planted.truth.len()).map(|row| if row % 7 == 0 { 0.0 } else { 1.0 }).collect();
    let found = ckm.cluster(&Task { weights: Some(&weights), ..task }, &services).unwrap();
    found.check_seeds(&seeds).unwrap();
}

#[test]
fn more_names_than_singletons_and_sets_beyond_the_degree_are_refused() {
    let planted = plant(Plain::Sum, 4, 2, 5, 3, 0.1, 1);
    let refused = |seeds: &Sets, degree: usize, k: usize| {
        let task = Task { seeds: Some(seeds), degree, ..planted.task(Normalize::None) };
        cluster(&task, params(k), &Services::none()).unwrap_err().to_string()
    };
    let all = some(&planted, &[0, 1, 2, 3], |_, _| true);
    assert_eq!(refused(&all, 2, 3), "`k` = 3 is less than the 4 singletons that seeds name; set it to at least 4");
    assert_eq!(refused(&all, 1, 4), "the seed [0, 1] of example 4 is no composition of up to 1");
}
