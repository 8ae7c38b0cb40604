//! How many singletons there are.

use compflow_api::Normalize;
use compflow_kernels::testing::planted::{Planted, cri};

use super::*;

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
fn by_default_many_singletons_are_found_though_each_explains_little() {
    let singletons = |found: &Clustering| found.clusters.iter().filter(|set| set.len() == 1).count();
    let share = Preference::MedianPerExample(MedianPerExample { median_per_example: 0.02 });
    for (k, degree, each) in [(40, 1, 5), (24, 2, 1), (30, 2, 3)] {
        let planted = Planted::new(Plain::Sum, (k, degree, 24), each, |_| 0.3, 3);
        let task = planted.task(Normalize::None);
        let auto = found(&task, Params::default());
        assert!(singletons(&found(&task, Params { preference: share.clone(), ..Params::default() })) < k);
        assert_eq!((singletons(&auto), cri(&auto.assignments, &planted.truth)), (k, 1.0));
    }
    // Without noise they are worth any price, down to none.
    let planted = Planted::new(Plain::Sum, (30, 2, 24), 3, |_| 0.0, 3);
    let exact = found(&planted.task(Normalize::None), Params::default());
    assert_eq!((singletons(&exact), cri(&exact.assignments, &planted.truth)), (30, 1.0));
    // Where there are no clusters, a lower price only makes ever more of them.
    let even = examples::uniform(120, 2, 4);
    let first = found(&task(&even, 2, 2), Params { preference: share, ..Params::default() });
    assert_eq!(singletons(&found(&task(&even, 2, 2), Params::default())), singletons(&first));
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
    assert_eq!(with(0.0), (30, vec!["every example is an exemplar of its own; lower `preference`".to_owned()]));
    let (clusters, warnings) = with(5.0);
    assert!(clusters == 30 && warnings.len() == 1, "{warnings:?}");
    assert!(
        warnings[0].contains("above 0 every example is an exemplar; `preference = { k = 5 }`"),
        "{warnings:?}"
    );
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
