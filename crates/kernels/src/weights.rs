//! How much examples count. A weight of 2 is what the same example twice would be, one of 0 is as if it were not there:
//! it is given a cluster and moves none.

use compflow_api::{Error, Result, plural};

/// Below this mean weight, those of examples that count are not taken for numbers of examples.
const COUNTS: f64 = 0.25;

/// Refuses weights that examples cannot have; returns the others, unless all are 1, which is as good as none.
///
/// # Errors
/// If there is not one for each of `rows` examples, if one is below 0, infinite or not a number, and if all are 0.
pub fn check(weights: Option<&[f32]>, rows: usize) -> Result<Option<&[f32]>> {
    let Some(weights) = weights else { return Ok(None) };
    if weights.len() != rows {
        return Err(Error::data(format!("{} weights were given for {rows} examples", weights.len())));
    }
    if let Some(row) = weights.iter().position(|weight| !(*weight >= 0.0 && weight.is_finite())) {
        return Err(Error::data(format!(
            "example {row} has the weight {}; weights are numbers from 0 on",
            weights[row]
        )));
    }
    if weights.iter().all(|weight| *weight == 0.0) {
        return Err(Error::data("all weights are 0, so there is nothing to cluster"));
    }
    Ok(Some(weights).filter(|weights| weights.iter().any(|weight| *weight != 1.0)))
}

/// How much `row` counts: 1 without weights.
#[inline(always)]
pub fn weight(weights: Option<&[f32]>, row: usize) -> f64 {
    weights.map_or(1.0, |weights| f64::from(weights[row]))
}

/// How many of `rows` examples count at all.
pub fn count(weights: Option<&[f32]>, rows: usize) -> usize {
    weights.map_or(rows, |weights| weights.iter().filter(|weight| **weight > 0.0).count())
}

/// What to say to whoever weighs the examples against something known beforehand, if weights are so small on average
/// that they were hardly meant as numbers of examples: most often they add up to 1.
pub fn warning(weights: &[f32]) -> Option<String> {
    let counting = count(Some(weights), weights.len());
    let total: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
    let mean = total / counting as f64;
    (mean < COUNTS).then(|| {
        format!(
            "weights say how often examples are there, and these are {mean:.1e} on average, so that {counting} examples are \
             as little evidence as {} would be: multiply them by {:.0} if an example is to count once",
            plural(total.ceil() as usize, "example"),
            1.0 / mean
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_a_weight_is_named() {
        let refused = |weights: &[f32]| check(Some(weights), 2).unwrap_err().to_string();
        assert_eq!(refused(&[1.0]), "1 weights were given for 2 examples");
        assert_eq!(refused(&[1.0, -2.0]), "example 1 has the weight -2; weights are numbers from 0 on");
        assert_eq!(refused(&[f32::NAN, 1.0]), "example 0 has the weight NaN; weights are numbers from 0 on");
        assert_eq!(refused(&[1.0, f32::INFINITY]), "example 1 has the weight inf; weights are numbers from 0 on");
        assert_eq!(refused(&[0.0, 0.0]), "all weights are 0, so there is nothing to cluster");
        assert_eq!(check(Some(&[0.0, 0.5]), 2), Ok(Some(&[0.0, 0.5][..])));
        assert_eq!((check(Some(&[1.0, 1.0]), 2), check(None, 2)), (Ok(None), Ok(None)));
    }

    #[test]
    fn weights_that_are_no_numbers_of_examples_are_told() {
        for (weights, factor) in [([0.25, 0.25, 0.25, 0.249], 4), ([0.01; 4], 100), ([0.01, 0.0, 0.0, 0.03], 50)] {
            let text = warning(&weights).unwrap();
            let counting = count(Some(&weights), 4);
            assert!(
                text.contains(&format!("{counting} examples are as little evidence as 1 example would be")),
                "{text}"
            );
            assert!(text.contains(&format!("multiply them by {factor} ")), "{text}");
        }
        for weights in [[0.25; 4], [0.0, 0.0, 0.0, 0.5], [0.0, 0.0, 1.0, 9.0], [1.0, 0.1, 0.1, 0.1]] {
            assert_eq!(warning(&weights), None);
        }
    }

    #[test]
    fn without_weights_every_example_counts_once() {
        assert_eq!((weight(None, 7), count(None, 8)), (1.0, 8));
        assert_eq!((weight(Some(&[0.0, 0.5]), 1), count(Some(&[0.0, 0.5]), 2)), (0.5, 1));
    }
}
