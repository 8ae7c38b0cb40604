//! What is too far from everything to belong to it.

use compflow_api::Embeddings;

use super::candidates::Training;
use crate::error::{Error, Result};

/// The distance within which this share of the cell's own examples is from their clusters. Those that belong to nothing do
/// not count.
///
/// # Errors
/// If the share is none, or the distances are not known and cannot be computed.
pub(super) fn limit(training: &mut Training<'_>, share: f64) -> Result<f64> {
    if !(share > 0.0 && share <= 1.0) {
        return Err(Error::request(format!("--novel takes a share above 0 and at most 1, found {share}")));
    }
    quantile(distances(training)?, share).ok_or_else(|| {
        Error::request(format!("{}: no example has a distance; leave out --novel", training.cell.about()))
    })
}

/// The distances of the cell's own examples from their clusters, without those that belong to nothing.
///
/// # Errors
/// If they are not known and cannot be computed.
pub(super) fn distances(training: &mut Training<'_>) -> Result<Vec<f32>> {
    let origin = training.origin;
    let mut distances = origin.distances(training.cell)?;
    if distances.is_empty() {
        // The method has no representatives, so the run measured nothing.
        let means = training.means()?;
        let trial = training.trial()?;
        let (space, dim) = (origin.space(), trial.dim);
        let points = space.points(Embeddings::new(&trial.embeddings, dim));
        for (point, set) in points.chunks_exact(dim).zip(means.assignments.iter()) {
            if let Some(mean) = means.of(set) {
                distances.push(space.distance(point, mean) as f32);
            }
        }
    }
    Ok(distances)
}

/// The smallest value that this share of the values does not exceed.
fn quantile(mut values: Vec<f32>, share: f64) -> Option<f64> {
    values.sort_unstable_by(f32::total_cmp);
    let rank = (share * values.len() as f64).ceil() as usize;
    values.get(rank.saturating_sub(1)).copied().map(f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_values_is_not_beyond() {
        let values: Vec<f32> = (1..=100).rev().map(|value| value as f32).collect();
        assert_eq!(quantile(values.clone(), 0.99), Some(99.0));
        assert_eq!(quantile(values.clone(), 1.0), Some(100.0));
        assert_eq!(quantile(values, 0.001), Some(1.0));
        assert_eq!(quantile(Vec::new(), 0.5), None);
    }
}
