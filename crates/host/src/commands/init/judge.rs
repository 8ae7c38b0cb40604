//! Which composer, in which space: where labels say which examples are unions, every candidate predicts where their
//! centres lie from the means of single examples, and the share of unions' examples that are nearest to the prediction
//! of their own set, of all sets, says how good it is.

use std::collections::BTreeMap;

use compflow_engine::data::Trial;

use super::found::Found;

/// Enough to tell candidates apart.
const MAX_TRIALS: usize = 5;
const MAX_EXAMPLES: usize = 1000;
const MAX_SETS: usize = 300;

/// A composer in a space, and the share of unions that it predicts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Candidate {
    pub(super) composer: &'static str,
    pub(super) normalize: &'static str,
    pub(super) share: f64,
}

/// All candidates, the best first.
#[derive(Debug, Clone)]
pub(super) struct Judgement {
    pub(super) candidates: Vec<Candidate>,
}

impl Judgement {
    pub(super) fn best(&self) -> Candidate {
        self.candidates[0]
    }

    /// Whether some candidate of the other space is as good as the best.
    pub(super) fn is_either_space_best(&self) -> bool {
        let best = self.best();
        self.candidates.iter().any(|other| other.normalize != best.normalize && other.share == best.share)
    }

    /// A candidate in words.
    fn words(candidate: Candidate) -> String {
        let Candidate { composer, normalize, share } = candidate;
        let space = if normalize == "l2" { "normalised" } else { "as they are" };
        format!("{composer} of vectors {space} {:.0} %", 100.0 * share)
    }

    pub(super) fn summary(&self) -> String {
        let words: Vec<String> = self.candidates.iter().map(|candidate| Self::words(*candidate)).collect();
        format!("examples of unions that are nearest to where their set is predicted: {}", words.join(", "))
    }
}

/// `sum` comes before `mean`, which in a space that normalises is the same.
const CANDIDATES: [(&str, &str); 5] =
    [("sum", "l2"), ("max", "l2"), ("max", "none"), ("sum", "none"), ("mean", "none")];

/// Judges composers by the unions of labelled data; `None` if there are none whose members have single examples.
pub(super) fn judge(found: &[Found]) -> Option<Judgement> {
    let mut right = [0usize; CANDIDATES.len()];
    let mut unions = 0;
    for found in found {
        for trial in found.data.trials.iter().take(MAX_TRIALS) {
            // What a data set without labels says is nothing; another may say something.
            let Some((hits, tried)) = judge_trial(trial, found.data.dim) else { continue };
            unions += tried;
            right.iter_mut().zip(hits).for_each(|(right, hits)| *right += hits);
        }
    }
    if unions == 0 {
        return None;
    }
    let mut candidates: Vec<Candidate> = CANDIDATES
        .iter()
        .zip(right)
        .map(|(&(composer, normalize), right)| Candidate {
            composer,
            normalize,
            share: right as f64 / unions as f64,
        })
        .collect();
    candidates.sort_by(|a, b| b.share.total_cmp(&a.share));
    Some(Judgement { candidates })
}

/// How many examples of unions every candidate is right about, and how many there are. Labels that only some examples have say
/// the same of these.
fn judge_trial(trial: &Trial, dim: usize) -> Option<([usize; CANDIDATES.len()], usize)> {
    let truth = trial.truth.as_ref().or(trial.seeds.as_ref().map(|seeds| &seeds.sets))?;
    let rows: Vec<&[f32]> = trial.embeddings.chunks_exact(dim.max(1)).collect();
    let mut sums: BTreeMap<u32, (Vec<f64>, usize)> = BTreeMap::new();
    let mut sets: BTreeMap<&[u32], usize> = BTreeMap::new();
    for (set, row) in truth.iter().zip(&rows) {
        let next = sets.len();
        sets.entry(set).or_insert(next);
        if let [class] = set {
            let (sum, count) = sums.entry(*class).or_insert_with(|| (vec![0.0; dim], 0));
            sum.iter_mut().zip(*row).for_each(|(sum, value)| *sum += f64::from(*value));
            *count += 1;
        }
    }
    let means: BTreeMap<u32, Vec<f64>> = sums
        .into_iter()
        .map(|(class, (sum, count))| (class, sum.into_iter().map(|value| value / count as f64).collect()))
        .collect();
    // Sets whose members all have single examples; the others cannot be predicted.
    let sets: Vec<&[u32]> = sets
        .into_keys()
        .filter(|set| !set.is_empty() && set.iter().all(|class| means.contains_key(class)))
        .take(MAX_SETS)
        .collect();
    let unions: Vec<(&[u32], &[f32])> =
        truth.iter().zip(rows).filter(|(set, _)| set.len() > 1 && sets.contains(set)).take(MAX_EXAMPLES).collect();
    let mut right = [0; CANDIDATES.len()];
    for (right, (composer, normalize)) in right.iter_mut().zip(CANDIDATES) {
        let centres: Vec<Vec<f64>> = sets
            .iter()
            .map(|set| {
                let members: Vec<&Vec<f64>> = set.iter().filter_map(|class| means.get(class)).collect();
                in_space(compose(composer, &members), normalize)
            })
            .collect();
        for (set, row) in &unions {
            let row = in_space(row.iter().map(|value| f64::from(*value)).collect(), normalize);
            let distance = |centre: &[f64]| centre.iter().zip(&row).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
            let distances: Vec<f64> = centres.iter().map(|centre| distance(centre)).collect();
            let nearest = (0..sets.len()).min_by(|a, b| distances[*a].total_cmp(&distances[*b]));
            *right += usize::from(nearest.is_some_and(|nearest| sets[nearest] == *set));
        }
    }
    Some((right, unions.len()))
}

fn compose(composer: &str, members: &[&Vec<f64>]) -> Vec<f64> {
    let Some((first, others)) = members.split_first() else { return Vec::new() };
    let mut composed = (*first).clone();
    for other in others {
        for (value, other) in composed.iter_mut().zip(*other) {
            *value = if composer == "max" { value.max(*other) } else { *value + other };
        }
    }
    if composer == "mean" {
        composed.iter_mut().for_each(|value| *value /= members.len() as f64);
    }
    composed
}

fn in_space(mut vector: Vec<f64>, normalize: &str) -> Vec<f64> {
    let length = vector.iter().map(|value| value * value).sum::<f64>().sqrt();
    if normalize == "l2" && length > 0.0 {
        vector.iter_mut().for_each(|value| *value /= length);
    }
    vector
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_compose_as_the_composers_do() {
        let (a, b) = (vec![1.0, 4.0], vec![3.0, 0.0]);
        assert_eq!(compose("max", &[&a, &b]), [3.0, 4.0]);
        assert_eq!(compose("sum", &[&a, &b]), [4.0, 4.0]);
        assert_eq!(compose("mean", &[&a, &b]), [2.0, 2.0]);
        assert_eq!(compose("mean", &[&a]), a);
        assert_eq!(in_space(vec![3.0, 4.0], "l2"), [0.6, 0.8]);
        assert_eq!(in_space(vec![0.0, 0.0], "l2"), [0.0, 0.0], "the zero vector stays");
    }
}
