//! What changes nothing.

use super::*;

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

/// Clusters rows in two orders, one of so many ways, and compares.
fn in_two_orders(
    (n, dim, degree): (usize, usize, usize),
    seed: u64,
    way: usize,
    composer: &Plain,
    euclidean: bool,
) -> std::result::Result<(), TestCaseError> {
    // Few values, so that there are ties between sets of examples that differ.
    let grid = |value: &f32| if seed.is_multiple_of(2) { (value * 8.0).round() / 8.0 } else { *value };
    let values: Vec<f32> = examples::uniform(n, dim, seed).iter().map(grid).collect();
    let (other, moved) = permuted(&values, dim, seed);
    let mut task = Task { composer: Some(composer), ..task(&values, dim, degree) };
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
        if first.is_none() && !(row + 1..n).any(|other| values[row * dim..][..dim] == values[other * dim..][..dim])
        {
            prop_assert_eq!(told(&before, &values, row), told(&after, &other, moved[row]), "{}", row);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_rows_changes_nothing_but_numbers(
        n in 2usize..40, dim in 1usize..4, degree in 1usize..4, seed in 0u64..1000, way in 0usize..6,
        composer in 0usize..3, euclidean: bool,
    ) {
        let composer = [Plain::Sum, Plain::Max, Plain::bilinear(dim, seed)][composer].clone();
        in_two_orders((n, dim, degree), seed, way, &composer, euclidean)?;
    }

    /// A bilinear g of three depends on which of them comes last.
    #[test]
    fn nor_does_it_where_three_are_composed_by_a_bilinear_g(
        n in 4usize..30, dim in 1usize..4, seed in 0u64..1000, way in 0usize..6, euclidean: bool,
    ) {
        in_two_orders((n, dim, 3), seed, way, &Plain::bilinear(dim, seed), euclidean)?;
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
