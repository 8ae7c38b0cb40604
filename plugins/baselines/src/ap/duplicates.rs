//! Equal examples stay together.
//!
//! Nothing tells equal examples apart but noise, and messages may end with several of them as exemplars, or with equal
//! examples at two exemplars that are equally far. Joining them costs nothing, and saves a preference per exemplar.

use super::refine::Clusters;

/// Of equal exemplars only the first remains, and equal examples go where their exemplar is, or their first.
pub(crate) fn join(clusters: Clusters, firsts: &[u32]) -> Clusters {
    // Of every group of equal examples: its exemplar.
    let mut exemplar_of = vec![None; firsts.len()];
    for &exemplar in &clusters.exemplars {
        exemplar_of[firsts[exemplar as usize] as usize].get_or_insert(exemplar);
    }
    let of_group = |row: u32| exemplar_of[firsts[row as usize] as usize];
    let exemplars: Vec<u32> =
        clusters.exemplars.iter().copied().filter(|&exemplar| of_group(exemplar) == Some(exemplar)).collect();
    let label = |exemplar: u32| exemplars.partition_point(|&other| other < exemplar) as u32;
    let labels = firsts
        .iter()
        .map(|&first| {
            let given = clusters.exemplars[clusters.labels[first as usize] as usize];
            label(of_group(first).or(of_group(given)).unwrap_or(given))
        })
        .collect();
    Clusters { labels, exemplars }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_exemplars_become_one_and_equal_examples_follow_their_first() {
        // 0, 2 and 4 are equal, 2 and 4 exemplars; 1 and 3 are equal; 5 is an exemplar, 6 with 4.
        let clusters = Clusters { labels: vec![0, 2, 0, 1, 1, 2, 1], exemplars: vec![2, 4, 5] };
        let joined = join(clusters, &[0, 1, 0, 1, 0, 5, 6]);
        assert_eq!((joined.labels, joined.exemplars), (vec![0, 1, 0, 1, 0, 1, 0], vec![2, 5]));
    }
}
