//! What the paper and the authors do.

use super::*;

#[test]
fn many_examples_follow_a_subset_or_candidates() {
    let (values, truth) = shapes(1.0, 0.1, 0.1, 4);
    let task = task(&values, 3, 2);
    let subset = found(&task, Params { subset: Some(40), ..at(-1.0) });
    assert!(agreement(&subset.assignments, &truth) == 1.0);
    let candidates = found(&task, Params { candidates: Some(20), ..at(-2.0) });
    assert!(agreement(&candidates.assignments, &truth) == 1.0);
    // With all of them, nothing is approximated.
    let exact = found(&task, at(-2.0));
    assert_eq!(found(&task, Params { candidates: Some(80), ..at(-2.0) }), exact);
    assert_eq!(found(&task, Params { subset: Some(1000), ..at(-2.0) }), exact);
}

#[test]
fn the_nearest_member_decides_if_asked_for() {
    // A subset of all but a few, so that whoever is outside has its nearest example in it.
    let values: Vec<f32> = (0..30).flat_map(|row| [(row % 3) as f32 * 10.0 + row as f32 / 100.0, 0.0]).collect();
    let extension = Extension::NearestMember;
    let of_subset = found(&task(&values, 2, 1), Params { subset: Some(12), extension, ..at(-5.0) });
    let by_class = |row: usize| &of_subset.assignments[row % 3];
    assert!((0..30).all(|row| &of_subset.assignments[row] == by_class(row)));
    assert_eq!(of_subset.clusters.len(), 3);
}

#[test]
fn presets_give_way_to_what_is_given() {
    let component = Registration::clusterer::<Cap>().component().unwrap();
    let read = |params: &str| -> Params { serde_json::from_str(&component.effective(params)).unwrap() };
    let from = |params: &str| {
        let Params { damping, damped, max_iter, fixed_iterations, finish, extension, .. } = read(params);
        (damping, damped, max_iter, fixed_iterations, finish, extension)
    };
    let (ours, theirs) = (Damped::Responsibilities, Damped::Clipped);
    let (exemplar, inferred, member) =
        (Extension::NearestExemplar, Extension::NearestInferred, Extension::NearestMember);
    assert_eq!(from("{}"), (0.65, ours, 200, false, Finish::Exchange, exemplar));
    assert_eq!(from(r#"{"preset": "paper"}"#), (0.65, theirs, 200, false, Finish::Choices, inferred));
    assert_eq!(from(r#"{"preset": "authors-code"}"#), (0.85, theirs, 60, true, Finish::Choices, member));
    assert_eq!(
        from(r#"{"preset": "authors-code", "damping": 0.7, "finish": "move"}"#),
        (0.7, theirs, 60, true, Finish::Move, member)
    );

    let (values, _) = shapes(1.0, 0.1, 0.1, 5);
    let diagnostics =
        found(&task(&values, 3, 2), read(r#"{"preset": "authors-code", "preference": -2}"#)).diagnostics;
    assert_eq!((diagnostics.iterations, diagnostics.converged), (60, true));
}

/// S(i, c) of all examples and sets, as the paper's listing takes it.
fn similarities(task: &Task<'_>, compositions: &Sets, preference: f64) -> Vec<f64> {
    let (n, dim, points) = (task.embeddings.len(), task.embeddings.dim(), task.points());
    let composed = task.compose_sets(task.embeddings, compositions, &Services::none()).unwrap();
    let similarity = |i: usize, (c, set): (&[f32], &[u32])| match set {
        [k] if *k as usize == i => preference,
        _ if set.contains(&(i as u32)) => f64::NEG_INFINITY,
        _ => -task.space.distance(&points[i * dim..][..dim], c),
    };
    (0..n)
        .flat_map(|i| composed.chunks_exact(dim).zip(compositions.iter()).map(move |set| (i, set)))
        .map(|(i, set)| similarity(i, set))
        .collect()
}

/// The examples that every example's exemplars are.
fn chosen(found: &Clustering) -> Vec<Vec<u32>> {
    let rows: BTreeMap<&[u32], &Vec<u32>> = found.clusters.iter().zip(&found.exemplars).collect();
    found.assignments.iter().map(|set| rows[set].clone()).collect()
}

#[test]
fn presets_return_what_the_papers_listing_does_at_their_own_damping() {
    let mut unfaithful = 0;
    for (degree, n) in [(1, 14), (2, 14), (3, 9)] {
        for seed in 0..6 {
            for (preset, damping) in [("paper", 0.65), ("authors-code", 0.85)] {
                for iterations in [1, 3, 6] {
                    let values = examples::uniform(n, 3, 100 * degree as u64 + seed);
                    let task = task(&values, 3, degree);
                    let compositions = Sets::all_up_to(n, degree);
                    let s = similarities(&task, &compositions, -0.8);
                    let mut listing = literal::Cap::new(&s, &compositions, n, damping);
                    (0..iterations).for_each(|_| listing.iterate());
                    let component = Registration::clusterer::<Cap>().component().unwrap();
                    let params = format!(
                        r#"{{"preset": "{preset}", "preference": -0.8, "max_iter": {iterations}, "convergence_iter": 100}}"#
                    );
                    let params: Params = serde_json::from_str(&component.effective(&params)).unwrap();
                    let found = Cap::new(params, &Services::none()).unwrap();
                    let found = found.cluster(&task, &Services::none()).unwrap();
                    found.check(&task).unwrap();
                    assert_eq!(chosen(&found), listing.choices(), "{degree} {seed} {preset} {iterations}");
                    assert_eq!(found.diagnostics.iterations, iterations);
                    let value = |(i, set): (usize, &[u32])| {
                        s[i * compositions.len() + compositions.iter().position(|c| c == set).unwrap()]
                    };
                    let objective: f64 = listing.choices().into_iter().enumerate().map(value).sum();
                    assert!((found.diagnostics.objective - objective).abs() < 1e-5);
                    unfaithful += usize::from(
                        chosen(&found).concat().iter().any(|&row| chosen(&found)[row as usize] != [row]),
                    );
                }
            }
        }
    }
    assert!(unfaithful > 0, "what the listing does with those that do not choose themselves was not seen");
}

#[test]
fn with_the_papers_preset_others_follow_what_the_subset_inferred() {
    let component = Registration::clusterer::<Cap>().component().unwrap();
    let params = r#"{"preset": "paper", "preference": -1.0, "subset": 40}"#;
    let params: Params = serde_json::from_str(&component.effective(params)).unwrap();
    let (values, _) = shapes(1.0, 0.1, 0.1, 4);
    // One of the 81 is a rectangle with a triangle, which nobody in the subset is.
    let values = [&values[..], &[2.0, 1.0, 1.0]].concat();
    let task = task(&values, 3, 2);
    let mut others = 0;
    for seed in 0..8 {
        let services = Services { seed, ..Services::none() };
        let paper = Cap::new(params.clone(), &services).unwrap().cluster(&task, &services).unwrap();
        let all = Params { extension: Extension::NearestExemplar, ..params.clone() };
        let all = Cap::new(all, &services).unwrap().cluster(&task, &services).unwrap();
        assert!(paper.diagnostics.objective <= all.diagnostics.objective + 1e-6);
        others += usize::from(chosen(&paper)[80] != chosen(&all)[80]);
    }
    assert!(others > 0);
}
