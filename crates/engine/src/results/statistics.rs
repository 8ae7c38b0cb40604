//! Means over trials, their standard errors, and comparisons of matched pairs.

use std::collections::BTreeMap;

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Scores of one clusterer on one data set, by trial.
pub type Scores = BTreeMap<usize, f64>;

/// The mean over trials.
pub fn mean(scores: &Scores) -> f64 {
    scores.values().sum::<f64>() / scores.len() as f64
}

/// s/√n with the sample's standard deviation s.
pub fn standard_error(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some((variance / n).sqrt())
}

/// Two-sided p of the paired t-test on the trials that both have: t = mean(Δ) / se(Δ) with n-1 degrees of freedom.
pub fn matched_pairs(a: &Scores, b: &Scores) -> Option<f64> {
    let differences: Vec<f64> = a.iter().filter_map(|(trial, value)| Some(value - b.get(trial)?)).collect();
    let se = standard_error(&differences)?;
    let mean = differences.iter().sum::<f64>() / differences.len() as f64;
    if se == 0.0 {
        return Some(if mean == 0.0 { 1.0 } else { 0.0 });
    }
    let distribution = StudentsT::new(0.0, 1.0, differences.len() as f64 - 1.0).ok()?;
    Some(2.0 * distribution.sf((mean / se).abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(values: &[f64]) -> Scores {
        values.iter().copied().enumerate().collect()
    }

    #[test]
    fn the_standard_error_is_that_of_the_mean() {
        assert_eq!(standard_error(&[1.0]), None);
        let se = standard_error(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert!((se - 0.645_497_224_367_902_8).abs() < 1e-15, "{se}");
    }

    /// Reference: scipy.stats.ttest_rel([30, 31, 34, 40, 36], [30, 29, 29, 31, 30]).pvalue.
    #[test]
    fn the_matched_pair_test_agrees_with_scipy() {
        let p = matched_pairs(&scores(&[30.0, 31.0, 34.0, 40.0, 36.0]), &scores(&[30.0, 29.0, 29.0, 31.0, 30.0]));
        assert!((p.unwrap() - 0.048_546_820_372_036_975).abs() < 1e-12, "{p:?}");
    }

    #[test]
    fn equal_and_constantly_shifted_scores_have_p_one_and_zero() {
        assert_eq!(matched_pairs(&scores(&[1.0, 2.0]), &scores(&[1.0, 2.0])), Some(1.0));
        assert_eq!(matched_pairs(&scores(&[1.0, 2.0]), &scores(&[2.0, 3.0])), Some(0.0));
        assert_eq!(matched_pairs(&scores(&[1.0]), &scores(&[2.0])), None);
    }
}
