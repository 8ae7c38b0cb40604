//! Predicted speakers of a recording named after true ones: the one-to-one matching with which both speak together for
//! the longest time. By the Hungarian algorithm, as in [`matching`](crate::matching), but over seconds.
//!
//! Speakers who are never heard together are no pair. Of equally good matchings it is any. For k and k' speakers, k ≤ k',
//! memory for k k' numbers and O(k² k') steps.

use std::collections::BTreeMap;

use compflow_api::{Result, Services};
use pathfinding::kuhn_munkres::kuhn_munkres;
use pathfinding::matrix::Matrix;

use crate::conversation::Segment;

/// The matching is over whole numbers: so many stand for the longest time that two are heard together.
const STEPS: f64 = (1u64 << 40) as f64;

/// How long everybody speaks.
pub(crate) type Seconds = BTreeMap<u32, f64>;

/// A true speaker and a predicted one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pair {
    pub(crate) truth: u32,
    pub(crate) predicted: u32,
    /// How long they are heard together.
    pub(crate) seconds: f64,
}

/// How long everybody speaks, in truth and as predicted.
pub(crate) fn speech(recording: &[Segment<'_>]) -> (Seconds, Seconds) {
    let (mut truth, mut predicted) = (Seconds::new(), Seconds::new());
    for segment in recording {
        segment.truth.iter().for_each(|&speaker| *truth.entry(speaker).or_default() += segment.seconds);
        segment.predicted.iter().for_each(|&speaker| *predicted.entry(speaker).or_default() += segment.seconds);
    }
    (truth, predicted)
}

/// The best matching.
///
/// # Errors
/// If memory does not suffice, or the work is cancelled.
pub(crate) fn pairs(
    recording: &[Segment<'_>],
    (truth, predicted): (&Seconds, &Seconds),
    services: &Services<'_>,
) -> Result<Vec<Pair>> {
    services.check_cancelled()?;
    if truth.is_empty() || predicted.is_empty() {
        return Ok(Vec::new());
    }
    let places = |speakers: &Seconds| -> BTreeMap<u32, usize> { speakers.keys().copied().zip(0..).collect() };
    let (true_at, predicted_at) = (places(truth), places(predicted));
    // The algorithm wants no more rows than columns.
    let upright = truth.len() <= predicted.len();
    let (rows, columns) = if upright { (truth.len(), predicted.len()) } else { (predicted.len(), truth.len()) };
    let bytes = (3 * size_of::<f64>() * rows).saturating_mul(columns);
    services.require_memory(bytes as u64, "it grows with the number of predicted times that of true speakers")?;
    let mut together = Matrix::new(rows, columns, 0.0f64);
    for segment in recording {
        for speaker in segment.truth.iter().map(|speaker| true_at[speaker]) {
            for said in segment.predicted.iter().map(|speaker| predicted_at[speaker]) {
                together[if upright { (speaker, said) } else { (said, speaker) }] += segment.seconds;
            }
        }
    }
    let longest = together.values().copied().fold(0.0, f64::max);
    if longest == 0.0 {
        return Ok(Vec::new());
    }
    let steps = together.clone().map(|seconds| (seconds / longest * STEPS).round() as i64);
    let (_, column_of) = kuhn_munkres(&steps);
    let (truth, predicted): (Vec<u32>, Vec<u32>) =
        (truth.keys().copied().collect(), predicted.keys().copied().collect());
    let pair = |(row, column): (usize, usize)| {
        let (speaker, said) = if upright { (row, column) } else { (column, row) };
        Pair { truth: truth[speaker], predicted: predicted[said], seconds: together[(row, column)] }
    };
    Ok(column_of.into_iter().enumerate().map(pair).filter(|pair| pair.seconds > 0.0).collect())
}
