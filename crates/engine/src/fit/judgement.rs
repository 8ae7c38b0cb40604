//! What was found out about composition in some data, and what follows from it.

use serde::{Deserialize, Serialize};

/// Everything that is known after fitting; it is kept inside the file of weights.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Judgement {
    /// The version of compflow.
    pub compflow: String,
    /// What it was learned from.
    pub data: Vec<String>,
    /// `l2` or `none`.
    pub normalize: compflow_api::Normalize,
    /// How many examples it has.
    pub examples: usize,
    /// The length of the embeddings.
    pub dim: usize,
    /// Trials; 1 if there are none.
    pub trials: usize,
    /// Labels with examples of their own, over all trials.
    pub labels: usize,
    /// How many classes they seem to be: labels of different trials may be the same.
    pub classes: usize,
    /// Unions that could be used.
    pub unions: usize,
    /// The most members that one has.
    pub degree: usize,
    /// Whether unions were predicted by a g that had seen none of their labels, or only not the union itself.
    pub labels_unseen: bool,
    /// How often something was held out.
    pub folds: usize,
    /// λ, relative to the mean of the diagonal of FᵀF; `None` is infinity, which is the scaled sum.
    pub lambda: Option<f64>,
    /// Every λ that was tried.
    pub curve: Vec<Tried>,
    /// c of the scaled sum.
    pub scale: f64,
    /// √(variance within unions); `None` if no union has two examples.
    pub spread: Option<f64>,
    /// All composition functions that were judged, the simplest first.
    pub composers: Vec<Composed>,
    /// The one to take.
    pub take: String,
    /// The one to take for methods that compose examples and not centres, if that is another.
    pub take_for_examples: Option<String>,
    /// Whether unions lie where their members say; `None` if there are too few to tell.
    pub holds: Option<bool>,
    /// What should be known.
    pub warnings: Vec<String>,
    /// Which of them the file of weights holds.
    pub written: String,
}

/// A λ and what it led to.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Tried {
    /// `None` is infinity.
    pub lambda: Option<f64>,
    /// The mean of ‖g - x̄‖² over unions that were held out.
    pub error: f64,
}

/// A composition function and how good it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Composed {
    /// A component's name, [`SCALED`] or [`FITTED`].
    pub name: String,
    /// The mean of ‖g - x̄‖² over unions.
    pub error: f64,
    /// How far unions lie from where they are predicted, in units of the spread within unions.
    pub miss: Option<f64>,
    /// The share of what distinguishes unions that is predicted; below 0 it is worse than their common centre, and `None` if
    /// unions do not differ beyond what chance does to means.
    pub explained: Option<f64>,
    /// The share of unions whose own prediction is the nearest.
    pub nearest: f64,
    /// The share of examples whose own set is the nearest if every label is known from one example.
    pub accuracy: Option<f64>,
    /// The same if that is the most central example of the label.
    #[serde(default)]
    pub central: Option<f64>,
    /// How often exchanged predictions are as good, those of the luckiest of all composition functions.
    pub p: Option<f64>,
}

/// The name of c·(a + b).
pub const SCALED: &str = "scaled sum";
/// The name of the g that was fitted.
pub const FITTED: &str = "fitted bilinear";

/// Chance is believed in up to here.
const LEVEL: f64 = 0.05;
/// The share of unions that must be nearest to their own prediction: where it is less, most are taken for something else.
pub(super) const LEAST_NEAREST: f64 = 0.5;

/// How much of what distinguishes unions may be predicted worse for the sake of a simpler g: what a table with shares in percent
/// hardly shows.
const SLACK: f64 = 0.01;

/// The first, hence simplest, whose errors are not worse than the best's by more than the standard error of the difference, or a
/// hundredth of how far unions lie from one another, squared.
pub(super) fn simplest(errors: &[Vec<f64>], between: f64) -> usize {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let means: Vec<f64> = errors.iter().map(|errors| mean(errors)).collect();
    let best = (0..means.len()).min_by(|a, b| means[*a].total_cmp(&means[*b])).unwrap_or(0);
    let as_good = |at: &usize| {
        let more: Vec<f64> = errors[*at].iter().zip(&errors[best]).map(|(a, b)| a - b).collect();
        let (mean, count) = (mean(&more), more.len() as f64);
        let variance = more.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        // Rounding is no difference.
        mean <= (variance / count).sqrt().max(SLACK * between) + 1e-6 * means[best]
    };
    (0..errors.len()).find(as_good).unwrap_or(best)
}

/// For methods that compose examples, and choose which: the one with the best accuracy by central examples, if it beats that of
/// `taken` by more than two standard errors of a share of so many examples.
pub(super) fn better_for_examples(composers: &[Composed], taken: usize, examples: usize) -> Option<usize> {
    let accuracy = |at: usize| composers[at].central.unwrap_or(0.0);
    let best = (0..composers.len()).rev().max_by(|a, b| accuracy(*a).total_cmp(&accuracy(*b)))?;
    is_clearly_more(accuracy(best), accuracy(taken), examples).then_some(best)
}

/// Whether a share of so many examples is more than another by more than two standard errors of that.
pub(super) fn is_clearly_more(share: f64, than: f64, examples: usize) -> bool {
    share > than + 2.0 * (than * (1.0 - than) / examples.max(1) as f64).sqrt()
}

/// Whether composition holds with this g: its own predictions are better than exchanged ones and than the common centre, and most
/// unions are nearest to theirs. A union that lies by one of its members passes the first two, and nobody would find it.
pub(super) fn holds(composed: &Composed) -> Option<bool> {
    let p = composed.p?;
    let explains = composed.explained.is_some_and(|explained| explained > 0.0);
    Some(p < LEVEL && explains && composed.nearest >= LEAST_NEAREST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn composed(p: Option<f64>, explained: Option<f64>, accuracy: f64) -> Composed {
        let central = Some(accuracy);
        Composed {
            name: String::new(),
            error: 1.0,
            miss: None,
            explained,
            nearest: 0.5,
            accuracy: None,
            central,
            p,
        }
    }

    #[test]
    fn the_simplest_of_those_that_are_as_good_is_taken() {
        let bad = vec![3.0, 3.1, 2.9, 3.2];
        let good = vec![1.0, 1.3, 0.8, 1.1];
        let as_good = vec![1.1, 1.2, 0.7, 1.2];
        assert_eq!(simplest(&[bad.clone(), as_good.clone(), good.clone()], 0.0), 1);
        assert_eq!(simplest(&[bad.clone(), good.clone(), as_good], 0.0), 1);
        assert_eq!(simplest(&[bad.clone(), bad], 0.0), 0);
        assert_eq!(simplest(&[vec![2.0], vec![1.0]], 0.0), 1);
        assert_eq!(simplest(&[vec![1.02], vec![1.0]], 3.0), 0);
        assert_eq!(simplest(&[vec![1.04], vec![1.0]], 3.0), 1);
    }

    #[test]
    fn composition_holds_only_if_neither_exchange_nor_the_centre_does_as_well() {
        assert_eq!(holds(&composed(Some(0.001), Some(0.4), 0.0)), Some(true));
        assert_eq!(holds(&composed(Some(0.3), Some(0.4), 0.0)), Some(false));
        assert_eq!(holds(&composed(Some(0.001), Some(-0.1), 0.0)), Some(false));
        assert_eq!(holds(&composed(Some(0.001), None, 0.0)), Some(false));
        assert_eq!(holds(&composed(None, Some(0.9), 0.0)), None);
        assert_eq!(holds(&Composed { nearest: 0.4, ..composed(Some(0.001), Some(0.4), 0.0) }), Some(false));
    }

    #[test]
    fn another_is_advised_for_examples_only_if_it_is_clearly_better() {
        let composers = [composed(None, None, 0.80), composed(None, None, 0.81), composed(None, None, 0.70)];
        assert_eq!(better_for_examples(&composers, 0, 100), None);
        assert_eq!(better_for_examples(&composers, 0, 100_000), Some(1));
        assert_eq!(better_for_examples(&composers, 1, 100_000), None);
    }
}
