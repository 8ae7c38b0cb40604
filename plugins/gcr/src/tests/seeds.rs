//! Sets that are known beforehand. The boundary refuses a result that does not keep them.

use super::*;

/// The unions of three things, with the sets of some rows known.
fn found(known: &[(usize, &[u32])], params: Value) -> Clustering {
    let (values, sets) = unions();
    let seeds: Sets = (0..sets.len())
        .map(|row| known.iter().find(|(at, _)| *at == row).map_or(&[][..], |(_, set)| set))
        .collect();
    Run { seeds: Some(&seeds), ..Run::new(&values, 3) }.on(&sets, params).unwrap()
}

#[test]
fn names_are_kept_and_unions_composed_of_them() {
    // Of 3, 1 and 2, in this order.
    for method in ["search", "greedy", "exhaustive"] {
        let params = json!({ "threshold": 0.3, "method": method });
        let found = found(&[(6, &[0]), (1, &[1]), (3, &[2])], params);
        let expected: [&[u32]; 12] =
            [&[1, 2], &[1], &[1], &[2], &[2], &[1, 2], &[0], &[0, 2], &[0, 2], &[0, 1], &[0, 1], &[0]];
        assert_eq!(found.assignments, expected.iter().copied().collect(), "{method}");
        assert_eq!(found.singletons.numbers, [0, 1, 2]);
    }
}

#[test]
fn those_that_nobody_named_have_the_numbers_behind() {
    let found = found(&[(3, &[0])], json!({ "threshold": 0.3 }));
    assert_eq!(
        (&found.assignments[3], &found.assignments[1], &found.assignments[6]),
        (&[0][..], &[1][..], &[2][..])
    );
    assert_eq!(&found.assignments[0], [0, 1]);
}

#[test]
fn a_known_union_is_one_although_nothing_else_says_so() {
    // With this threshold nothing is composed.
    let found = found(&[(0, &[0, 1])], json!({ "threshold": 0.0 }));
    assert_eq!(
        (&found.assignments[0], &found.assignments[5]),
        (&[0, 1][..], &[0, 1][..]),
        "it takes its cluster along"
    );
    // Its members are those of which it is composed.
    let (one, other) = (&found.assignments[1], &found.assignments[3]);
    assert!([one, other] == [[0], [1]] || [one, other] == [[1], [0]], "{one:?} {other:?}");
}

#[test]
fn names_of_unions_are_told_apart_by_several_of_them() {
    let found = found(&[(0, &[1, 2]), (7, &[0, 2])], json!({ "threshold": 0.0 }));
    assert_eq!([1, 3, 6].map(|row| found.assignments[row].to_vec()), [vec![1], vec![2], vec![0]]);
}

#[test]
fn a_name_without_a_cluster_has_no_vector() {
    // Everything is known to be the union.
    let rows: Vec<(usize, &[u32])> = (0..12).map(|row| (row, &[0, 1][..])).collect();
    let found = found(&rows, json!({ "threshold": 0.0 }));
    assert_eq!((found.clusters.len(), found.singletons.numbers.len()), (1, 0));
    assert_eq!(found.centroids.len(), 3, "the mean of its examples");
}

#[test]
fn one_name_for_two_clusters_makes_them_one_and_two_names_in_one_split_it() {
    let found = found(&[(1, &[0]), (3, &[0]), (7, &[0]), (8, &[1])], json!({ "threshold": 0.0 }));
    let of = |row: usize| found.assignments[row].to_vec();
    assert_eq!([of(1), of(2), of(3), of(4)], [vec![0], vec![0], vec![0], vec![0]]);
    assert_eq!((of(7), of(8)), (vec![0], vec![1]));
}

#[test]
fn known_sets_that_are_all_empty_are_none() {
    let (values, sets) = unions();
    let seeds: Sets = (0..sets.len()).map(|_| &[][..]).collect();
    let params = json!({ "threshold": 0.3 });
    let with = Run { seeds: Some(&seeds), ..Run::new(&values, 3) }.on(&sets, params.clone()).unwrap();
    assert_eq!(with, Run::new(&values, 3).on(&sets, params).unwrap());
}
