//! Examples that have no others near them.
//!
//! Far from everything else, a single example is worth a centre of its own to whoever sums up squared distances, and a few of them take all
//! centres away. Where there may be outliers, those that look for centres are better not shown them. An example is lonely if its third
//! nearest neighbour is more than three times as far as that of the median example: the third, so that two of them do not vouch for each other. Equal examples are one neighbour, however often they occur and whatever they weigh.
//! Cost: n·m·p, with at most 2048 neighbours m to choose from.

use compflow_api::{Result, Services};

use crate::pairs::Axes;

/// Which neighbour is looked at.
const NEIGHBOUR: usize = 3;
/// How many times as far as usual is too far, and that of squared distances.
const FAR: f32 = 3.0 * 3.0;
/// Neighbours there are to choose from.
const NEIGHBOURS: usize = 2048;
/// One in so many is few.
const FEW: usize = 20;
/// Rows between two looks at whether the work is still wanted.
const ROWS: usize = 256;

/// For every point, row-major, whether it is lonely. The median is one by weight.
///
/// # Errors
/// If the work is no longer wanted.
pub fn lonely(points: &[f32], weights: Option<&[f32]>, dim: usize, services: &Services<'_>) -> Result<Vec<bool>> {
    let n = points.len() / dim;
    if n <= NEIGHBOUR {
        return Ok(vec![false; n]);
    }
    let every = n.div_ceil(NEIGHBOURS);
    let axes = Axes::new(points.chunks_exact(dim).step_by(every), dim);
    let m = n.div_ceil(every);
    let (mut similarities, mut found) = (vec![0.0; m], Vec::with_capacity(n));
    for (at, point) in points.chunks_exact(dim).enumerate() {
        if at.is_multiple_of(ROWS) {
            services.check_cancelled()?;
        }
        axes.similarities(point, false, &mut similarities, m);
        // Nobody is a neighbour of his own, and who is equal tells nothing.
        let equals = similarities.iter_mut().filter(|similarity| **similarity == 0.0);
        equals.for_each(|similarity| *similarity = f32::NEG_INFINITY);
        let (_, nearest, _) = similarities.select_nth_unstable_by(NEIGHBOUR.min(m) - 1, |a, b| b.total_cmp(a));
        found.push(-*nearest);
    }
    Ok(far(&found, weights))
}

/// Of squared distances, which are more than three times as far as the median, by weight.
pub fn far(distances: &[f32], weights: Option<&[f32]>) -> Vec<bool> {
    let weight = |at: usize| weights.map_or(1.0, |weights| f64::from(weights[at]));
    let mut order: Vec<usize> = (0..distances.len()).collect();
    order.sort_unstable_by(|&a, &b| distances[a].total_cmp(&distances[b]));
    let half = 0.5 * order.iter().map(|&at| weight(at)).sum::<f64>();
    let mut below = 0.0;
    let median = order.into_iter().find(|&at| {
        below += weight(at);
        below >= half
    });
    let median = median.map_or(f32::INFINITY, |at| distances[at]);
    distances.iter().map(|&distance| distance > FAR * median).collect()
}

/// What to say if a few of the points, which are centred, hold most of all squared distances: whoever sums these up looks at nothing else.
pub fn warning(points: &[f32], dim: usize) -> Option<String> {
    let mut squares: Vec<f64> =
        points.chunks_exact(dim).map(|point| point.iter().map(|&value| f64::from(value).powi(2)).sum()).collect();
    let (n, few) = (squares.len(), squares.len() / FEW);
    let all: f64 = squares.iter().sum();
    squares.sort_unstable_by(|a, b| b.total_cmp(a));
    let held: f64 = squares.iter().take(few).sum();
    (held > 0.5 * all).then(|| {
        format!(
            "{few} of {n} examples hold {:.0} % of all squared distances from the mean, and draw singletons to themselves: leave \
             out what is no example, or take `cgm` with `outliers = true`",
            100.0 * held / all
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::examples;

    #[test]
    fn those_far_from_all_others_are_lonely_even_in_pairs() {
        for n in [50, 5000] {
            let mut points = examples::uniform(n, 4, 1);
            points.extend([9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 8.0, -30.0, 0.0, 0.0, 0.0]);
            let found = lonely(&points, None, 4, &Services::none()).unwrap();
            assert!(found[n..].iter().all(|lonely| *lonely), "{n}: {:?}", &found[n..]);
            let others = found[..n].iter().filter(|lonely| **lonely).count();
            assert!(others * 50 <= n, "{others} of {n}");
        }
    }

    #[test]
    fn what_few_points_hold_is_told() {
        let mut points = examples::uniform(100, 4, 1);
        assert_eq!(warning(&points, 4), None);
        points[0] = 1e6;
        assert!(warning(&points, 4).unwrap().contains("5 of 100 examples hold 100 %"));
        assert_eq!(warning(&[0.0; 80], 4), None);
        assert_eq!(warning(&[1.0, 2.0, 900.0], 1), None, "three points are what they are");
    }

    #[test]
    fn few_points_equal_ones_and_groups_are_not() {
        for points in
            [vec![1.0, 2.0, 900.0], vec![5.0; 40], (0..12).flat_map(|at| [(at / 4) as f32 * 100.0; 1]).collect()]
        {
            assert!(
                lonely(&points, None, 1, &Services::none()).unwrap().iter().all(|lonely| !lonely),
                "{points:?}"
            );
        }
    }
}
