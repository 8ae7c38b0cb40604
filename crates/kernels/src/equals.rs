//! Which examples are equal.

/// For every example the first one that is equal to it; nothing if all differ.
pub fn first_equals(points: &[f32], dim: usize) -> Option<Vec<u32>> {
    // Adding 0 makes -0 equal to 0.
    let key = |row: u32| points[row as usize * dim..][..dim].iter().map(|value| (value + 0.0).to_bits());
    let mut firsts: Vec<u32> = (0..(points.len() / dim) as u32).collect();
    let mut order = firsts.clone();
    order.sort_by(|&a, &b| key(a).cmp(key(b)));
    let mut found = false;
    for pair in 1..order.len() {
        let (before, row) = (order[pair - 1], order[pair]);
        if key(before).eq(key(row)) {
            firsts[row as usize] = firsts[before as usize];
            found = true;
        }
    }
    found.then_some(firsts)
}

/// How many different examples there are.
pub fn distinct(points: &[f32], dim: usize) -> usize {
    let firsts = first_equals(points, dim);
    firsts.map_or(points.len() / dim, |firsts| (0..).zip(&firsts).filter(|(row, first)| row == *first).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_examples_is_found() {
        assert_eq!(first_equals(&[1.0, 2.0, 3.0], 1), None);
        let points = [0.0, 1.0, 2.0, 2.0, -0.0, 1.0, 2.0, 2.0, 0.0, 1.0];
        assert_eq!(first_equals(&points, 2), Some(vec![0, 1, 0, 1, 0]));
        assert_eq!((distinct(&points, 2), distinct(&points, 1)), (2, 3));
    }
}
