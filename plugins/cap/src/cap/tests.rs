use std::collections::BTreeMap;

use compflow_api::{Composer, Distance, ForeignClusterer, Registration, Services, Sets, Shape};
use compflow_kernels::preference::{MedianPerExample, PerExample, Target};
use compflow_kernels::testing::composers::Plain;
use compflow_kernels::testing::examples;
use compflow_kernels::testing::watcher::Watcher;
use proptest::prelude::*;
use rand::seq::SliceRandom;

use super::*;
use crate::messages::literal;

/// Both together are their sum.
struct Sum;

impl Composer for Sum {
    fn compose(&self, _: usize, left: &[f32], right: &[f32], out: &mut [f32], _: &Services<'_>) -> Result<()> {
        out.iter_mut().zip(left.iter().zip(right)).for_each(|(out, (left, right))| *out = left + right);
        Ok(())
    }
}

fn task<'a>(values: &'a [f32], dim: usize, degree: usize) -> Task<'a> {
    Task { degree, composer: Some(&Sum), ..Task::new(Embeddings::new(values, dim)) }
}

fn at(preference: f64) -> Params {
    Params { preference: Preference::Value(preference), ..Params::default() }
}

fn target(k: usize) -> Params {
    Params { preference: Preference::Target(Target { k }), ..Params::default() }
}

fn cluster(task: &Task<'_>, params: Params, services: &Services<'_>) -> Result<Clustering> {
    let found = Cap::new(params, services)?.cluster(task, services)?;
    found.check(task)?;
    assert_feasible(task, &found);
    Ok(found)
}

fn found(task: &Task<'_>, params: Params) -> Clustering {
    cluster(task, params, &Services::none()).unwrap()
}

/// Every member of a composition that is used is its own exemplar, and no set is larger than the degree.
fn assert_feasible(task: &Task<'_>, found: &Clustering) {
    let exemplars: BTreeMap<&[u32], &[u32]> =
        found.clusters.iter().zip(found.exemplars.iter().map(Vec::as_slice)).collect();
    for set in found.assignments.iter() {
        assert!((1..=task.degree).contains(&set.len()));
        for (at, &member) in set.iter().enumerate() {
            let exemplar = exemplars[&[member][..]][0];
            assert_eq!(found.assignments[exemplar as usize], [member]);
            assert_eq!(exemplars[set][at], exemplar);
        }
    }
}

/// Σ S(i, c_i) from its definition.
fn objective(task: &Task<'_>, found: &Clustering, preference: f64) -> f64 {
    let exemplars: BTreeMap<&[u32], &Vec<u32>> = found.clusters.iter().zip(&found.exemplars).collect();
    let points = task.points();
    let dim = task.embeddings.dim();
    let value = |(row, set): (usize, &[u32])| {
        let rows = exemplars[set];
        if rows[..] == [row as u32] {
            return preference;
        }
        let composed = task.compose_sets(task.embeddings, &Sets::from_iter([rows]), &Services::none()).unwrap();
        -task.space.distance(&points[row * dim..][..dim], &composed)
    };
    found.assignments.iter().enumerate().map(value).sum()
}

/// The highest objective that there is, over all sets of exemplars.
fn optimum(task: &Task<'_>, preference: f64) -> f64 {
    let (n, dim, points) = (task.embeddings.len(), task.embeddings.dim(), task.points());
    let mut best = f64::NEG_INFINITY;
    for chosen in 1u32..1 << n {
        let exemplars: Vec<u32> = (0..n as u32).filter(|row| chosen >> row & 1 == 1).collect();
        let sets: Sets = Sets::all_up_to(exemplars.len(), task.degree)
            .iter()
            .map(|set| set.iter().map(|&at| exemplars[at as usize]).collect::<Vec<_>>())
            .collect();
        let composed = task.compose_sets(task.embeddings, &sets, &Services::none()).unwrap();
        let nearest = |row: usize| {
            let distances =
                composed.chunks_exact(dim).map(|c| task.space.distance(&points[row * dim..][..dim], c));
            -distances.fold(f64::INFINITY, f64::min)
        };
        let others = (0..n).filter(|row| chosen >> row & 1 == 0).map(nearest);
        best = best.max(exemplars.len() as f64 * preference + others.sum::<f64>());
    }
    best
}

/// Rectangles, circles, both together, and triangles, which are as far from both together as `height`, in turns; and who
/// is what. What triangles differ in is nearly the same for all rectangles and circles, and varies by `spread` for others.
fn shapes(height: f32, noise: f32, spread: f32, seed: u64) -> (Vec<f32>, Vec<Vec<u32>>) {
    let centres = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, height]];
    let truth = [vec![0], vec![1], vec![0, 1], vec![2]];
    let noises = examples::uniform(80, 3, seed);
    let noise = |class: usize, axis: usize| match (class, axis) {
        (0 | 1, 2) => 0.1 * noise,
        (_, 2) => spread,
        _ => noise,
    };
    let value = |at: usize| centres[at / 3 % 4][at % 3] + noise(at / 3 % 4, at % 3) * noises[at];
    ((0..240).map(value).collect(), (0..80).map(|row| truth[row % 4].clone()).collect())
}

/// The share of ordered pairs of which both say the same: whether the set of one has all of the other's.
fn agreement(found: &Sets, truth: &[Vec<u32>]) -> f64 {
    let inside = |a: &[u32], b: &[u32]| a.iter().all(|member| b.contains(member));
    let pairs = (0..truth.len()).flat_map(|i| (0..truth.len()).map(move |j| (i, j)));
    let same = pairs.filter(|&(i, j)| inside(&found[i], &found[j]) == inside(&truth[i], &truth[j])).count();
    same as f64 / (truth.len() * truth.len()) as f64
}

#[test]
fn a_composition_that_overlaps_a_third_class_is_told_apart_and_not_by_affinity_propagation() {
    // Scenario 2 of the paper's figure 1.
    for seed in 0..5 {
        let (values, truth) = shapes(0.3, 0.05, 0.14, seed);
        let cap = found(&task(&values, 3, 2), target(3));
        assert!(agreement(&cap.assignments, &truth) > 0.95, "{seed}: {:?}", cap.clusters);
        // Affinity propagation with as many exemplars has one cluster for both together and triangles.
        let ap = found(&task(&values, 3, 1), target(3));
        assert_eq!(ap.clusters.len(), 3);
        assert!((0..20).all(|row| ap.assignments[4 * row + 2] == ap.assignments[3]));
        assert!((0..20).all(|row| ap.assignments[4 * row + 3] == ap.assignments[3]));
    }
}

#[test]
fn the_optimum_is_reached_most_of_the_time() {
    let (mut reached, mut tried, mut gap) = (0, 0, 0.0);
    for seed in 0..200 {
        let (n, degree) = (4 + seed as usize % 4, 1 + seed as usize % 3);
        let values = examples::uniform(n, 3, seed);
        let task = task(&values, 3, degree);
        for preference in [-0.3, -0.8, -2.0] {
            let found = found(&task, at(preference));
            let (best, objective) = (optimum(&task, preference), objective(&task, &found, preference));
            assert!((found.diagnostics.objective - objective).abs() < 1e-6);
            assert!(objective <= best + 1e-6, "{objective} {best}");
            tried += 1;
            reached += usize::from(objective > best - 1e-6);
            gap += (best - objective) / best.abs();
        }
    }
    let share = f64::from(reached as u32) / f64::from(tried);
    println!(
        "optimum reached in {:.1} % of {tried}, mean gap {:.2} %",
        100.0 * share,
        100.0 * gap / f64::from(tried)
    );
    assert!(share > 0.95, "{share}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_result_is_feasible_and_its_objective_true(
        n in 1usize..40, dim in 1usize..4, degree in 1usize..4, seed in 0u64..1000, preference in -3.0..0.5f64,
        euclidean: bool, way in 0..5, damping in 0.0..0.9f64, max_iter in 1usize..60,
    ) {
        let values = examples::uniform(n, dim, seed);
        let mut task = task(&values, dim, degree);
        task.space.distance = if euclidean { Distance::Euclidean } else { Distance::SqEuclidean };
        let mut params = Params { damping, max_iter, ..at(preference) };
        match way {
            0 => (),
            1 => params.candidates = Some(n.div_ceil(2)),
            2 => params.subset = Some(n.div_ceil(2)),
            3 => (params.subset, params.extension) = (Some(n.div_ceil(2)), Extension::NearestInferred),
            _ => (params.subset, params.extension) = (Some(n.div_ceil(2)), Extension::NearestMember),
        }
        let found = found(&task, params);
        let expected = objective(&task, &found, preference);
        prop_assert!((found.diagnostics.objective - expected).abs() <= 1e-5 * expected.abs().max(1.0));
        prop_assert_eq!(found.diagnostics.trace.len() as u64, found.diagnostics.iterations);
        let of_all = way < 2 || n == 1;
        prop_assert!(!of_all || found.diagnostics.trace.last() == Some(&found.diagnostics.objective));
    }
}

/// The rows in another order, and where each row went.
fn permuted(values: &[f32], dim: usize, seed: u64) -> (Vec<f32>, Vec<usize>) {
    let n = values.len() / dim;
    let mut moved: Vec<usize> = (0..n).collect();
    moved.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let mut other = vec![0.0; values.len()];
    for row in 0..n {
        other[moved[row] * dim..][..dim].copy_from_slice(&values[row * dim..][..dim]);
    }
    (other, moved)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_rows_changes_nothing_but_numbers(
        n in 2usize..40, dim in 1usize..4, degree in 1usize..4, seed in 0u64..1000, way in 0..6,
        composer in 0usize..3, euclidean: bool,
    ) {
        // Few values, so that there are ties between sets of examples that differ.
        let grid = |value: &f32| if seed % 2 == 0 { (value * 8.0).round() / 8.0 } else { *value };
        let values: Vec<f32> = examples::uniform(n, dim, seed).iter().map(grid).collect();
        let (other, moved) = permuted(&values, dim, seed);
        let composer = [Plain::Sum, Plain::Max, Plain::bilinear(dim, seed)][composer].clone();
        let mut task = Task { composer: Some(&composer), ..task(&values, dim, degree) };
        task.space.distance = if euclidean { Distance::Euclidean } else { Distance::SqEuclidean };
        let params = match way {
            0 => Params::default(),
            1 => at(-0.5),
            2 => target(n.div_ceil(3)),
            3 => Params { candidates: Some(n.div_ceil(2)), ..Params::default() },
            4 => Params { subset: Some(n.div_ceil(2)), ..Params::default() },
            _ => Params { preference: Preference::Percentile("median".to_owned()), ..Params::default() },
        };
        let before = found(&task, params.clone());
        let after = found(&Task { embeddings: Embeddings::new(&other, dim), ..task }, params);
        prop_assert_eq!(&before.diagnostics, &after.diagnostics);
        prop_assert_eq!(&before.resolved, &after.resolved);
        // Equal rows may stand for each other, so exemplars are told by their values.
        let told = |clustering: &Clustering, values: &[f32], row: usize| {
            let at = clustering.clusters.iter().position(|set| *set == clustering.assignments[row]).unwrap();
            let value = |&row: &u32| values[row as usize * dim..][..dim].iter().map(|v| v.to_bits()).collect();
            let mut exemplars: Vec<Vec<u32>> = clustering.exemplars[at].iter().map(value).collect();
            exemplars.sort_unstable();
            exemplars
        };
        for row in 0..n {
            let first = (0..row).find(|other| values[row * dim..][..dim] == values[other * dim..][..dim]);
            if first.is_none() && !(row + 1..n).any(|other| values[row * dim..][..dim] == values[other * dim..][..dim]) {
                prop_assert_eq!(told(&before, &values, row), told(&after, &other, moved[row]), "{}", row);
            }
        }
    }
}

#[test]
fn neither_threads_nor_the_way_similarities_are_kept_change_anything() {
    for (n, degree) in [(130, 2), (40, 3), (24, 4)] {
        for distance in [Distance::SqEuclidean, Distance::Euclidean] {
            let values = examples::uniform(n, 5, 3);
            let mut task = task(&values, 5, degree);
            task.space.distance = distance;
            let size = Size { rows: n, candidates: n, dim: 5, degree };
            let some = size.memory(0) + (size.memory(n) - size.memory(0)) / 2;
            assert!(
                size.kept(size.memory(0)) == 0 && (1..n).contains(&size.kept(some)) && size.kept(u64::MAX) == n
            );
            let with = |threads, memory| {
                cluster(&task, at(-4.0), &Services { threads, memory, ..Services::none() }).unwrap()
            };
            let alone = with(1, u64::MAX);
            assert!(alone.clusters.len() > 3);
            assert_eq!(with(2, u64::MAX), alone);
            assert_eq!(with(3, size.memory(n) - 1), alone);
            assert_eq!(with(2, some), alone);
            assert_eq!(with(1, size.memory(0)), alone);
        }
    }
}

#[test]
fn equal_examples_stay_together() {
    let (values, truth) = shapes(1.0, 0.1, 0.1, 1);
    let (twice, truth) = ([&values[..], &values].concat(), [&truth[..], &truth].concat());
    for seed in 0..5 {
        let services = Services { seed, ..Services::none() };
        let found = cluster(&task(&twice, 3, 2), at(-4.0), &services).unwrap();
        assert!(agreement(&found.assignments, &truth) == 1.0, "{seed}: {:?}", found.clusters);
        assert!(found.diagnostics.converged);
    }
}

#[test]
fn a_number_of_singletons_is_reached() {
    let (values, truth) = shapes(1.0, 0.1, 0.1, 2);
    let three = found(&task(&values, 3, 2), target(3));
    assert!(agreement(&three.assignments, &truth) == 1.0);
    for k in [1, 2, 5, 9] {
        let singletons = |found: &Clustering| found.clusters.iter().filter(|set| set.len() == 1).count();
        assert_eq!(singletons(&found(&task(&values, 3, 2), target(k))), k);
    }
}

#[test]
fn preferences_may_grow_with_the_examples() {
    let (values, _) = shapes(1.0, 0.1, 0.1, 3);
    let params = Params { preference: Preference::PerExample(PerExample { per_example: -2.0 / 80.0 }), ..at(0.0) };
    let of_all = found(&task(&values, 3, 2), params.clone());
    assert_eq!(Clustering { resolved: vec![], ..of_all }, found(&task(&values, 3, 2), at(-2.0)));
    // Only those that pass messages count.
    let of_subset = found(&task(&values, 3, 2), Params { subset: Some(40), ..params });
    let expected = found(&task(&values, 3, 2), Params { subset: Some(40), ..at(-1.0) });
    assert_eq!(Clustering { resolved: vec![], ..of_subset }, expected);
}

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

#[test]
fn a_number_of_singletons_is_reached_even_where_messages_do_not_lead_there() {
    let singletons = |found: &Clustering| found.clusters.iter().filter(|set| set.len() == 1).count();
    for seed in 0..2 {
        let values = examples::uniform(20, 3, seed);
        for degree in [1, 2, 3] {
            for k in [1, 2, 7, 19, 20] {
                // One iteration leads nowhere.
                let params = Params { max_iter: 1, ..target(k) };
                let found = found(&task(&values, 3, degree), params);
                assert_eq!(singletons(&found), k, "{seed} {degree} {k}");
                // With degree 1 messages have the last word, if they lead there.
                assert!(found.diagnostics.converged || degree == 1, "{seed} {k}");
            }
        }
    }
}

#[test]
fn a_number_of_singletons_that_is_not_reached_is_said() {
    let host = Watcher::new(usize::MAX);
    let services = Services { host: &host, ..Services::none() };
    let values = examples::uniform(30, 3, 1);
    let params = Params { max_iter: 1, finish: Finish::Move, ..target(7) };
    let found = cluster(&task(&values, 3, 2), params, &services).unwrap();
    let has = found.clusters.iter().filter(|set| set.len() == 1).count();
    assert!(has != 7 && !found.diagnostics.converged && found.resolved.is_empty());
    let said = format!("cap found no preference that gives 7 singletons, and has {has}");
    assert_eq!(host.warnings().last().unwrap(), &said);
}

#[test]
fn percentiles_do_not_depend_on_who_may_become_an_exemplar() {
    let values = examples::uniform(60, 3, 2);
    let short = || Params { max_iter: 1, finish: Finish::Move, ..Params::default() };
    let preference = |params: Params| found(&task(&values, 3, 2), params).resolved[0].1.parse::<f64>().unwrap();
    let of = |text: &str| Params { preference: Preference::Percentile(text.to_owned()), ..short() };
    for text in ["median", "p10"] {
        let exact = preference(of(text));
        assert!(exact < 0.0);
        assert_eq!(preference(Params { candidates: Some(20), ..of(text) }), exact);
    }
    let share = |share| Preference::MedianPerExample(MedianPerExample { median_per_example: share });
    let (shared, median) = (preference(Params { preference: share(0.02), ..short() }), preference(of("median")));
    assert!((shared - 0.02 * 60.0 * median).abs() < 1e-9 * shared.abs());
    // Of more examples than that some are compared, and say nearly the same.
    let many = examples::uniform(2500, 2, 3);
    let mut distances: Vec<f64> = many
        .chunks_exact(2)
        .flat_map(|a| many.chunks_exact(2).map(move |b| f64::from((a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2))))
        .collect();
    let middle = distances.len() / 2;
    let expected = -*distances.select_nth_unstable_by(middle, f64::total_cmp).1;
    let found = found(&task(&many, 2, 1), Params { candidates: Some(3), ..of("median") });
    let found = found.resolved[0].1.parse::<f64>().unwrap();
    assert!((found / expected - 1.0).abs() < 0.03, "{found} {expected}");
}

#[test]
fn by_default_an_exemplar_costs_a_share_of_the_median_or_what_its_examples_are_away_but_never_below_a_tenth() {
    let price = |values: &[f32], preference: Preference| {
        let found = found(&task(values, 3, 2), Params { preference, ..Params::default() });
        (-found.resolved[0].1.parse::<f64>().unwrap(), found)
    };
    let share = || Preference::MedianPerExample(MedianPerExample { median_per_example: 0.02 });
    let auto = || Params::default().preference;
    // Wide classes, narrow ones, and ones that are hardly wider than a point.
    let [wide, narrow, points] = [0.3, 0.1, 1e-3].map(|noise| shapes(1.0, noise, noise, 8).0);
    assert_eq!(price(&wide, auto()).0, price(&wide, share()).0);
    let ((most, _), (lower, found)) = (price(&narrow, share()), price(&narrow, auto()));
    let distances = -found.diagnostics.objective - 3.0 * lower;
    let members: usize = found.assignments.iter().map(<[u32]>::len).sum();
    let away = distances * members as f64 / 80.0 / 3.0;
    assert!(lower < most && (lower / away - 1.0).abs() < 1e-3, "{most} {lower} {away}");
    let ((most, _), (least, _)) = (price(&points, share()), price(&points, auto()));
    assert!((10.0 * least / most - 1.0).abs() < 1e-6, "{most} {least}");
}

#[test]
fn by_default_any_scale_and_number_of_examples_has_its_classes() {
    let (values, truth) = shapes(1.0, 0.1, 0.1, 8);
    for (unit, times) in [(1.0, 1), (1e-3, 1), (1e4, 1), (1.0, 2)] {
        let values: Vec<f32> = values.iter().map(|value| value * unit).collect();
        // Copies that differ a little.
        let copies =
            (0..times).flat_map(|copy| values.iter().map(move |value| value * (1.0 + 1e-3 * copy as f32)));
        let values: Vec<f32> = copies.collect();
        let found = found(&task(&values, 3, 2), Params::default());
        assert!(
            agreement(&found.assignments, &vec![truth.clone(); times].concat()) == 1.0,
            "{unit} {times}: {:?}",
            found.clusters
        );
    }
    // Most pairs are equal, and the median distance is 0.
    let values: Vec<f32> = [vec![0.0; 30], vec![5.0; 4], vec![9.0; 3]].concat();
    assert_eq!(found(&task(&values, 1, 2), Params::default()).clusters.len(), 3);
}

#[test]
fn preferences_may_come_from_the_data() {
    let (values, truth) = shapes(1.0, 0.1, 0.1, 6);
    let params = || Params { preference: Preference::Percentile("column".to_owned()), ..Params::default() };
    let refused = cluster(&task(&values, 3, 2), params(), &Services::none()).unwrap_err().to_string();
    assert_eq!(refused, "`preference` = \"column\", but the data's `columns` name no `preference`");
    let equal = [-2.0; 80];
    let with = Task { preferences: Some(&equal), ..task(&values, 3, 2) };
    assert_eq!(found(&with, params()), found(&with, at(-2.0)));
    // Only one of each class may be an exemplar.
    let mut few = [-100.0; 80];
    (4..8).for_each(|row| few[row] = -2.0);
    let with = Task { preferences: Some(&few), ..with };
    let some = found(&with, params());
    assert!(agreement(&some.assignments, &truth) == 1.0);
    assert_eq!(some.exemplars.concat().iter().filter(|row| !(4..8).contains(*row)).count(), 0);
    let of_subset = found(&with, Params { subset: Some(79), ..params() });
    assert!(agreement(&of_subset.assignments, &truth) > 0.9);
}

#[test]
fn a_preference_too_high_or_too_low_is_warned_of() {
    let values = examples::uniform(30, 2, 6);
    let task = task(&values, 2, 2);
    let with = |preference: f64| {
        let host = Watcher::new(usize::MAX);
        let found = cluster(&task, at(preference), &Services { host: &host, ..Services::none() }).unwrap();
        (found.clusters.len(), host.warnings())
    };
    assert_eq!(with(1.0), (30, vec!["every example is an exemplar of its own; lower `preference`".to_owned()]));
    for huge in [-1e4, -1e9] {
        // The one that is nearest to all others.
        let row = |at: usize| &values[2 * at..][..2];
        let to_all = |one: usize| (0..30).map(|other| task.space.distance(row(one), row(other))).sum::<f64>();
        let least = (0..30).map(to_all).fold(f64::INFINITY, f64::min);
        assert!((found(&task, at(huge)).diagnostics.objective - (huge - least)).abs() < 1e-5, "{huge}");
    }
    for huge in [-1e4, -1e30, -1e300] {
        let (clusters, warnings) = with(huge);
        assert_eq!(clusters, 1);
        assert_eq!(warnings.last().unwrap(), "there is one exemplar for all; raise `preference`");
    }
}

#[test]
fn what_did_not_converge_is_usable_and_says_so() {
    let host = Watcher::new(usize::MAX);
    let services = Services { host: &host, ..Services::none() };
    let values = examples::uniform(40, 2, 6);
    for (preference, max_iter) in [(-1000.0, 1), (-0.1, 14)] {
        let params = Params { max_iter, finish: Finish::Move, ..at(preference) };
        let found = cluster(&task(&values, 2, 2), params, &services).unwrap();
        assert!(!found.diagnostics.converged);
    }
    let warnings = host.warnings();
    assert_eq!(
        warnings[0],
        "cap did not converge in 1 iterations, and found no exemplar; raise `damping` or `max_iter`"
    );
    assert!(warnings.contains(&"cap did not converge in 14 iterations; raise `damping` or `max_iter`".to_owned()));
}

#[test]
fn few_or_equal_examples_are_clustered() {
    let count = |values: &[f32], degree, params| found(&task(values, 1, degree), params).clusters.len();
    assert_eq!(count(&[3.0], 1, Params::default()), 1);
    assert_eq!(count(&[3.0], 5, Params::default()), 1);
    assert_eq!(count(&[3.0; 6], 2, Params::default()), 1);
    assert_eq!(count(&[3.0; 6], 2, at(0.5)), 6);
    assert_eq!(count(&[0.0, 1.0], 7, at(-2.0)), 1);
    assert_eq!(count(&[0.0, 1.0], 2, at(-0.1)), 2);
    assert_eq!(count(&[0.0, 1.0, 5.0], 9, at(-0.1)), 3);
    assert_eq!(count(&[3.0; 6], 2, target(5)), 5);
    assert_eq!(count(&[0.0, 1.0, 5.0], 2, Params { candidates: Some(1), ..at(-0.1) }), 1);
}

#[test]
fn huge_and_tiny_values_do_not_overflow() {
    let (values, truth) = shapes(1.0, 0.1, 0.1, 7);
    for unit in [1e-25, 1e35] {
        let values: Vec<f32> = values.iter().map(|value| value * unit).collect();
        let found = found(&task(&values, 3, 2), target(3));
        assert!(agreement(&found.assignments, &truth) == 1.0);
        assert!(found.diagnostics.objective < 0.0 && found.diagnostics.objective.is_finite());
    }
}

#[test]
fn a_composer_that_fails_names_the_set() {
    struct Broken;
    impl Composer for Broken {
        fn compose(
            &self,
            dim: usize,
            left: &[f32],
            right: &[f32],
            out: &mut [f32],
            services: &Services<'_>,
        ) -> Result<()> {
            Sum.compose(dim, left, right, out, services)?;
            out[0] = f32::NAN;
            Ok(())
        }
    }
    let values = examples::uniform(5, 2, 8);
    let broken = Task { composer: Some(&Broken), ..task(&values, 2, 2) };
    let refused = cluster(&broken, at(-1.0), &Services::none()).unwrap_err().to_string();
    assert_eq!(refused, "composing the set [0, 1] gave NaN");
    let refused =
        cluster(&Task { composer: None, ..broken }, at(-1.0), &Services::none()).unwrap_err().to_string();
    assert_eq!(refused, "composing several needs a composer, and the pipeline has no [composer]");
    assert_eq!(found(&Task { composer: None, degree: 1, ..broken }, at(-100.0)).clusters.len(), 1);
}

#[test]
fn too_little_memory_is_refused_with_both_remedies() {
    let values = examples::uniform(100, 4, 9);
    let services = Services { memory: 50_000, ..Services::none() };
    let refused = cluster(&task(&values, 4, 2), at(-1.0), &services).unwrap_err().to_string();
    assert!(refused.ends_with("cluster a `subset`, or let only some `candidates` become exemplars"), "{refused}");
}

#[test]
fn work_that_is_no_longer_wanted_stops() {
    let values = examples::uniform(100, 3, 8);
    for (threads, patience) in [(1, 1), (2, 3)] {
        let host = Watcher::new(patience);
        let services = Services { host: &host, threads, ..Services::none() };
        let params = Params { max_iter: 1_000_000, convergence_iter: 1_000_000, ..at(-1.0) };
        assert_eq!(cluster(&task(&values, 3, 2), params, &services).unwrap_err(), Error::Cancelled);
        assert_eq!(host.reports.lock().unwrap().len(), patience);
    }
}

#[test]
fn what_is_asked_for_is_done_whatever_it_costs() {
    let approach = |params: Params, rows, degree| {
        Cap::new(params, &Services::none()).unwrap().approach(Shape { rows, dim: 32, degree })
    };
    assert_eq!(approach(Params::default(), 7500, 2), Approach::Candidates(150));
    assert_eq!(approach(target(200), 7500, 2), Approach::Candidates(400));
    assert_eq!(approach(Params { candidates: Some(7500), ..Params::default() }, 7500, 2), Approach::Exact);
    assert_eq!(approach(Params { candidates: Some(40), ..Params::default() }, 7500, 2), Approach::Candidates(40));
    assert_eq!(approach(Params { subset: Some(150), ..Params::default() }, 7500, 2), Approach::Subset(150));
}

#[test]
fn works_across_the_boundary() {
    let component = Registration::clusterer::<Cap>().component().unwrap();
    let create = |params: &str, memory: u64| component.create(params, &Services { memory, ..Services::none() });
    let cap = |memory| {
        let params = r#"{"preference": -2, "candidates": 1500}"#;
        ForeignClusterer::try_from(create(params, memory).unwrap()).unwrap()
    };
    let values = examples::uniform(60, 3, 9);
    let alone = Task { composer: None, ..task(&values, 3, 1) };
    assert_eq!(cap(u64::MAX).cluster(&alone, &Services::none()).unwrap(), found(&alone, at(-2.0)));
    // Kept, 1500 × 1.1 million similarities; or the composed vectors, and as many similarities as there is room for.
    assert!(
        (6_800_000_000..7_000_000_000)
            .contains(&cap(u64::MAX).memory(Shape { rows: 1500, dim: 32, degree: 2 }, &Services::none()).unwrap())
    );
    assert!(
        (150_000_000..450_000_000).contains(
            &cap(400_000_000).memory(Shape { rows: 1500, dim: 32, degree: 2 }, &Services::none()).unwrap()
        )
    );
    assert!((800_000_000..1_000_000_000).contains(
        &cap(1_000_000_000).memory(Shape { rows: 1500, dim: 32, degree: 2 }, &Services::none()).unwrap()
    ));

    let refused = |params: &str| create(params, u64::MAX).unwrap_err().to_string();
    assert_eq!(refused(r#"{"damping": 1.0}"#), "`damping` must be a number at least 0.0 and below 1.0, found 1.0");
    assert_eq!(refused(r#"{"subset": 0}"#), "`subset` must be a whole number at least 1, found 0");
    assert_eq!(
        refused(r#"{"subset": 2, "candidates": 2}"#),
        "`subset` and `candidates` exclude each other, found both"
    );
    assert!(refused(r#"{"preference": "low"}"#).starts_with("`preference` must be \"auto\", a finite number, "));
    assert!(refused(r#"{"preset": "mine"}"#).contains(r#"`preset` must be "paper" or "authors-code""#));
    let many = ForeignClusterer::try_from(create(r#"{"preference": {"k": 61}}"#, u64::MAX).unwrap()).unwrap();
    assert_eq!(
        many.cluster(&alone, &Services::none()).unwrap_err().to_string(),
        "`preference.k` = 61 is more than the 60 examples"
    );
}

#[test]
fn a_preference_that_was_found_is_told_and_leads_to_the_same() {
    let (values, _) = shapes(1.0, 0.1, 0.1, 6);
    let n = values.len() as f64 / 3.0;
    let task = task(&values, 3, 2);
    let median = Params { preference: Preference::Percentile("median".to_owned()), ..Params::default() };
    let per_example =
        Params { preference: Preference::PerExample(PerExample { per_example: -0.05 }), ..Params::default() };
    for params in [Params::default(), median, target(3), per_example] {
        let first = found(&task, params.clone());
        let [(name, value)] = &first.resolved[..] else { panic!("{:?}", first.resolved) };
        assert_eq!(name, "preference");
        let value: f64 = value.parse().unwrap();
        if matches!(params.preference, Preference::PerExample(_)) {
            assert!((value + 0.05 * n).abs() < 1e-6 * n, "{value}");
        }
        // A search also settles the damping, and what it found may not come back with another.
        if !matches!(params.preference, Preference::Target(_)) {
            assert_eq!(found(&task, at(value)).assignments, first.assignments);
        }
        let of_subset = found(&task, Params { subset: Some(40), ..params });
        assert_eq!(of_subset.resolved.len(), 1);
    }
    assert!(found(&task, at(-2.0)).resolved.is_empty());
}
