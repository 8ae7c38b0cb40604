//! The metrics written down as they are defined, over all pairs of examples: what the tests compare with.

use std::collections::BTreeSet;

use compflow_api::{Evaluation, Evaluator, Services, Sets};
use proptest::prelude::*;

/// What an evaluator says of these sets.
pub(crate) fn score(evaluator: &dyn Evaluator, truth: &Sets, predicted: &Sets) -> Vec<f64> {
    evaluator.evaluate(&Evaluation::new(predicted, truth), &Services::none()).unwrap()
}

/// True and predicted labels of 1 to 40 examples, with none to 4 of 5 members each.
pub(crate) fn labels() -> impl Strategy<Value = (Sets, Sets)> {
    let set = || prop::collection::btree_set(0..5u32, 0..=4).prop_map(|set| set.into_iter().collect::<Vec<_>>());
    prop::collection::vec((set(), set()), 1..=40).prop_map(|rows| {
        let (truth, predicted): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        (Sets::from_iter(truth), Sets::from_iter(predicted))
    })
}

fn pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(move |i| (0..n).filter(move |&j| i != j).map(move |j| (i, j)))
}

fn shared(a: &[u32], b: &[u32]) -> usize {
    a.iter().filter(|member| b.contains(member)).count()
}

/// Rand index and Cohen's κ of a relation between two sets.
fn agreement(truth: &Sets, predicted: &Sets, holds: impl Fn(&[u32], &[u32]) -> bool) -> [f64; 2] {
    let [mut tp, mut fp, mut fn_, mut tn] = [0i64; 4];
    for (i, j) in pairs(truth.len()) {
        match (holds(&predicted[i], &predicted[j]), holds(&truth[i], &truth[j])) {
            (true, true) => tp += 1,
            (true, false) => fp += 1,
            (false, true) => fn_ += 1,
            (false, false) => tn += 1,
        }
    }
    if fp + fn_ == 0 {
        return [1.0, 1.0];
    }
    let kappa = 2.0 * (tp * tn - fn_ * fp) as f64 / ((tp + fn_) * (fn_ + tn) + (tp + fp) * (fp + tn)) as f64;
    [(tp + tn) as f64 / (tp + fp + fn_ + tn) as f64, kappa]
}

pub(crate) fn cri(truth: &Sets, predicted: &Sets) -> Vec<f64> {
    agreement(truth, predicted, |a, b| b.iter().all(|member| a.contains(member))).to_vec()
}

pub(crate) fn ari(truth: &Sets, predicted: &Sets) -> f64 {
    agreement(truth, predicted, |a, b| a == b)[1]
}

pub(crate) fn omega(truth: &Sets, predicted: &Sets) -> f64 {
    let n = truth.len();
    let level = |sets: &Sets, (i, j): (usize, usize)| shared(&sets[i], &sets[j]);
    let all = pairs(n).count() as f64;
    let share = |holds: &dyn Fn((usize, usize)) -> bool| pairs(n).filter(|&pair| holds(pair)).count() as f64 / all;
    if n < 2 {
        return 1.0;
    }
    let observed = share(&|pair| level(truth, pair) == level(predicted, pair));
    let expected: f64 = (0..=5)
        .map(|shared| {
            share(&|pair| level(truth, pair) == shared) * share(&|pair| level(predicted, pair) == shared)
        })
        .sum();
    if observed == 1.0 { 1.0 } else { (observed - expected) / (1.0 - expected) }
}

pub(crate) fn bcubed(truth: &Sets, predicted: &Sets) -> [f64; 3] {
    let n = truth.len();
    let mean_over_pairs = |c: &Sets, y: &Sets| -> f64 {
        let of_example = |i: usize| {
            let others = (0..n).filter(|&j| shared(&c[i], &c[j]) > 0);
            let multiplicity = |j: usize| {
                let clusters = shared(&c[i], &c[j]);
                clusters.min(shared(&y[i], &y[j])) as f64 / clusters as f64
            };
            others.clone().map(multiplicity).sum::<f64>() / others.count() as f64
        };
        let examples = (0..n).filter(|&i| !c[i].is_empty());
        match examples.clone().count() {
            0 => 1.0,
            count => examples.map(of_example).sum::<f64>() / count as f64,
        }
    };
    let (precision, recall) = (mean_over_pairs(predicted, truth), mean_over_pairs(truth, predicted));
    let f1 = if precision + recall > 0.0 { 2.0 * precision * recall / (precision + recall) } else { 0.0 };
    [f1, precision, recall]
}

/// Whether the predicted set of each example is the true one, and how many members all of them share with the true
/// ones, for all matchings where these are most.
fn best_matchings(truth: &Sets, predicted: &Sets) -> Vec<(usize, Vec<bool>)> {
    let mut best: Vec<(usize, Vec<bool>)> = Vec::new();
    let mut names = Vec::new();
    each_naming(&mut names, &mut |names| {
        let renamed =
            |i: usize| predicted[i].iter().map(|&member| names[member as usize]).collect::<BTreeSet<u32>>();
        let of_truth = |i: usize| truth[i].iter().copied().collect::<BTreeSet<u32>>();
        let n = truth.len();
        let overlap = (0..n).map(|i| renamed(i).intersection(&of_truth(i)).count()).sum();
        if best.first().is_some_and(|&(other, _)| other < overlap) {
            best.clear();
        }
        if best.first().is_none_or(|&(other, _)| other == overlap) {
            best.push((overlap, (0..n).map(|i| renamed(i) == of_truth(i)).collect()));
        }
    });
    best
}

/// `set_f1` and `set_accuracy` of all best matchings.
pub(crate) fn set_f1(truth: &Sets, predicted: &Sets) -> Vec<[f64; 2]> {
    let decided = truth.values().len() + predicted.values().len();
    let f1 = |overlap: usize| if decided == 0 { 1.0 } else { 2.0 * overlap as f64 / decided as f64 };
    let accuracy = |exact: &[bool]| exact.iter().filter(|&&exact| exact).count() as f64 / exact.len() as f64;
    best_matchings(truth, predicted).iter().map(|(overlap, exact)| [f1(*overlap), accuracy(exact)]).collect()
}

/// `union_precision` and `union_recall` of all best matchings.
pub(crate) fn unions(truth: &Sets, predicted: &Sets) -> Vec<[f64; 2]> {
    let unions = |sets: &Sets| (0..sets.len()).filter(|&i| sets[i].len() >= 2).collect::<Vec<usize>>();
    let (so, said) = (unions(truth), unions(predicted));
    let share = |exact: &[bool], of: &[usize]| of.iter().filter(|&&i| exact[i]).count() as f64 / of.len() as f64;
    let scores = |exact: &[bool]| match (said.is_empty(), so.is_empty()) {
        (true, true) => [1.0, 1.0],
        (true, false) => [0.0, 0.0],
        (false, true) => [0.0, 1.0],
        (false, false) => [share(exact, &said), share(exact, &so)],
    };
    best_matchings(truth, predicted).iter().map(|(_, exact)| scores(exact)).collect()
}

/// All ways to name five members by five different true members.
fn each_naming(names: &mut Vec<u32>, visit: &mut impl FnMut(&[u32])) {
    if names.len() == 5 {
        return visit(names);
    }
    for name in 0..5 {
        if !names.contains(&name) {
            names.push(name);
            each_naming(names, visit);
            names.pop();
        }
    }
}
