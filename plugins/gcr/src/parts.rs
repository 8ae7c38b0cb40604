//! Which clusters look like parts of one that the base has split.

use crate::compositions::Near;

/// The clusters put together that lie near one another: the nearest pairs first, as long as all clusters of a group are near
/// all of the other. `alike` has for every cluster those that are near it.
pub(crate) fn joined(alike: &[Vec<Near>]) -> Vec<Vec<usize>> {
    let is_near = |a: usize, b: usize| alike[a].iter().any(|near| near.set == b);
    let pairs =
        alike.iter().enumerate().flat_map(|(a, list)| list.iter().map(move |near| (near.distance, a, near.set)));
    let mut pairs: Vec<(f64, usize, usize)> = pairs.filter(|(_, a, b)| a < b).collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut groups: Vec<Vec<usize>> = (0..alike.len()).map(|cluster| vec![cluster]).collect();
    let mut group_of: Vec<usize> = (0..alike.len()).collect();
    for (_, a, b) in pairs {
        let (into, from) = (group_of[a], group_of[b]);
        if into != from && groups[into].iter().all(|&a| groups[from].iter().all(|&b| is_near(a, b))) {
            let moved = std::mem::take(&mut groups[from]);
            moved.iter().for_each(|&cluster| group_of[cluster] = into);
            groups[into].extend(moved);
        }
    }
    groups.retain(|group| !group.is_empty());
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_group_are_near_one_another() {
        let positions = [0.0f64, 10.0, 1.0, 2.0, 10.5, 20.0];
        let alike = |limit: f64| -> Vec<Vec<Near>> {
            let near = |at: usize| {
                let others = positions.iter().enumerate().filter(move |(other, _)| *other != at);
                let near = others.map(move |(set, other)| Near { set, distance: (other - positions[at]).abs() });
                near.filter(|near| near.distance < limit).collect()
            };
            (0..positions.len()).map(near).collect()
        };
        assert_eq!(joined(&alike(0.3)), [[0], [1], [2], [3], [4], [5]]);
        // 2 is as near to 3, and comes too late: 3 is not near 0.
        assert_eq!(joined(&alike(1.5)), [vec![0, 2], vec![1, 4], vec![3], vec![5]]);
        assert_eq!(joined(&alike(2.5)), [vec![0, 2, 3], vec![1, 4], vec![5]]);
        assert_eq!(joined(&[]), Vec::<Vec<usize>>::new());
    }
}
