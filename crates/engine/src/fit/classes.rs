//! Which labels of different groups are probably one class.
//!
//! Trials are often drawn from the same few classes and number them anew. What is fitted to one trial has then seen the
//! classes of the next, and whoever judges it there finds it better than it is. So labels whose means are no further
//! apart than means of equal examples are taken for one class when data is held out, and only then:
//!
//! ```text
//! ‖m_a - m_b‖² ≤ (1 + 3√(2/ν))·σ²(1/n_a + 1/n_b),    ν = (tr Σ)²/tr Σ²
//! ```
//!
//! with Σ the covariance of examples within labels and σ² its trace. ν is how many equal dimensions would spread as much, so
//! the bound is three standard deviations above what is expected. tr Σ² is the mean of (z·z')² over pairs of examples of
//! different labels, each taken from its mean.

use super::labelled::{Group, LabelSet, Labelled, squared};

/// Pairs of examples from which tr Σ² is taken.
const PAIRS: usize = 20_000;

/// For every group the class of each label; classes are numbered from 0.
pub(super) fn classes(labelled: &Labelled) -> Vec<Vec<usize>> {
    let groups = &labelled.groups;
    let labels: Vec<(usize, &LabelSet)> = groups
        .iter()
        .enumerate()
        .flat_map(|(at, group)| group.sets.iter().take(group.names.len()).map(move |set| (at, set)))
        .collect();
    let mut class: Vec<usize> = (0..labels.len()).collect();
    if groups.len() > 1
        && let Some(spread) = labelled.spread(|set| !set.is_union())
    {
        let bound = 1.0 + 3.0 * (2.0 / freedom(groups, labelled.dim, spread)).sqrt();
        let points: Vec<Vec<f32>> =
            labels.iter().map(|(_, set)| set.point.iter().map(|&value| value as f32).collect()).collect();
        for (a, (group, set)) in labels.iter().enumerate() {
            for (b, (other, compared)) in labels[..a].iter().enumerate() {
                let noise = spread * (1.0 / set.count + 1.0 / compared.count);
                if group != other && squared(&points[b], &set.point) <= bound * noise {
                    let (a, b) = (root(&class, a), root(&class, b));
                    class[a.max(b)] = a.min(b);
                }
            }
        }
    }
    let roots: Vec<usize> = (0..labels.len()).map(|label| root(&class, label)).collect();
    let mut distinct = roots.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let mut numbers = roots.iter().map(|root| distinct.binary_search(root).unwrap_or_default());
    groups.iter().map(|group| numbers.by_ref().take(group.names.len()).collect()).collect()
}

fn root(class: &[usize], mut at: usize) -> usize {
    while class[at] != at {
        at = class[at];
    }
    at
}

/// ν.
fn freedom(groups: &[Group], dim: usize, spread: f64) -> f64 {
    let mut rows: Vec<(&Group, &LabelSet, usize)> = Vec::new();
    for group in groups {
        for set in group.sets.iter().take(group.names.len()).filter(|set| set.rows.len() > 1) {
            rows.extend(set.rows.iter().map(|&row| (group, set, row)));
        }
    }
    let deviation = |&(group, set, row): &(&Group, &LabelSet, usize)| -> Vec<f64> {
        let point = &group.points[row * dim..][..dim];
        // Less than the true deviation, as the mean was taken of the example, too.
        let shrunk = (1.0 - 1.0 / set.count).sqrt();
        point.iter().zip(&set.point).map(|(&x, mean)| (f64::from(x) - mean) / shrunk).collect()
    };
    let (mut sum, mut count) = (0.0, 0);
    // Steps of many lengths, so that no regular order of the rows matters.
    for step in (1..rows.len()).rev().step_by((rows.len() * rows.len() / PAIRS).max(1)) {
        for (a, b) in rows.iter().zip(&rows[step..]) {
            if !std::ptr::eq(a.1, b.1) {
                let dot: f64 = deviation(a).iter().zip(deviation(b)).map(|(a, b)| a * b).sum();
                sum += dot * dot;
                count += 1;
            }
        }
    }
    if count == 0 || sum == 0.0 { 1.0 } else { (spread * spread * f64::from(count) / sum).max(1.0) }
}
