//! What is held out when g is judged: unions whose labels, or which themselves, were not seen.
//!
//! What clustering meets is new classes, so a union is predicted by a g that has seen no union with any of its labels. Every
//! set of classes that occurs is held out once, together with all that share a class with it; where that would be too much work,
//! some classes at random are held out together. If there are so few classes that less than a quarter of the unions would be
//! left to learn from, only the union itself is held out.

use std::collections::{BTreeMap, BTreeSet};

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::classes::classes;
use super::labelled::Labelled;

/// The least mean share of unions that must be left to learn from.
const LEAST_SHARE: f64 = 0.25;

/// The share of classes that is held out together if single sets would be too much work: about half of the unions of two have
/// none of them.
const BLOCK: f64 = 0.3;

/// Multiplications that cross-validation may take, and the fewest folds whatever they take.
const WORK: f64 = 1.5e10;
const FEWEST: usize = 8;
const MOST: usize = 400;

/// Some unions, and what they are predicted from. All are positions among the unions.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) train: Vec<usize>,
    pub(super) test: Vec<usize>,
    /// Labels whose own examples are judged with this fold: group and position.
    pub(super) labels: Vec<(usize, usize)>,
}

/// All folds.
#[derive(Debug)]
pub(super) struct Folds {
    pub(super) folds: Vec<Fold>,
    /// Whether the labels of what is predicted were not seen, and not only the unions.
    pub(super) labels_unseen: bool,
    /// How many classes there seem to be.
    pub(super) classes: usize,
    /// How many different sets of them are unions.
    pub(super) different: usize,
}

impl Folds {
    pub(super) fn new(labelled: &Labelled, seed: u64) -> Self {
        let (unions, classes) = (labelled.unions(), classes(labelled));
        let count = classes.iter().flatten().max().map_or(0, |most| most + 1);
        let class_sets: Vec<BTreeSet<usize>> = unions
            .iter()
            .map(|&(group, set)| {
                let members = &labelled.groups[group].sets[set].members;
                members.iter().map(|&label| classes[group][label as usize]).collect()
            })
            .collect();
        let most = most(unions.len(), labelled.dim);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let held_out = held_out(&class_sets, count, labelled.degree, most, &mut rng);
        let mut tested = vec![false; unions.len()];
        let mut folds = Vec::new();
        for held in &held_out {
            let test = |at: &usize| !tested[*at] && class_sets[*at].is_subset(held);
            let test: Vec<usize> = (0..unions.len()).filter(test).collect();
            let train = (0..unions.len()).filter(|&at| class_sets[at].is_disjoint(held));
            test.iter().for_each(|&at| tested[at] = true);
            folds.push((Fold { train: train.collect(), test, labels: Vec::new() }, Some(held)));
        }
        folds.retain(|(fold, _)| !fold.test.is_empty());
        let tests: usize = folds.iter().map(|(fold, _)| fold.test.len()).sum();
        let left: usize = folds.iter().map(|(fold, _)| fold.test.len() * fold.train.len()).sum();
        let labels_unseen = folds.iter().all(|(fold, _)| !fold.train.is_empty())
            && left as f64 >= LEAST_SHARE * (tests * unions.len()) as f64;
        if !labels_unseen {
            folds = leaving_unions(&class_sets, most, &mut rng).into_iter().map(|fold| (fold, None)).collect();
        }
        let all_labels = classes.iter().enumerate().flat_map(|(group, labels)| {
            labels.iter().enumerate().map(move |(label, class)| ((group, label), *class))
        });
        for (at, (label, class)) in all_labels.enumerate() {
            let of_class = folds.iter().position(|(_, held)| held.is_some_and(|held| held.contains(&class)));
            let fold = if labels_unseen { of_class } else { Some(at % folds.len().max(1)) };
            if let Some((fold, _)) = fold.and_then(|fold| folds.get_mut(fold)) {
                fold.labels.push(label);
            }
        }
        let different = class_sets.iter().collect::<BTreeSet<_>>().len();
        let folds = folds.into_iter().map(|(fold, _)| fold).collect();
        Self { folds, labels_unseen, classes: count, different }
    }
}

/// How many folds are not too much work.
fn most(unions: usize, dim: usize) -> usize {
    let (unions, p, q) = (unions as f64, dim as f64, (2 * dim + 1) as f64);
    let rows = unions.min(q);
    let work = super::search::GRID.len() as f64 * (rows.powi(3) / 3.0 + 2.0 * rows * rows * p) + unions * q * rows;
    ((WORK / work) as usize).clamp(FEWEST, MOST)
}

/// The sets of classes that are held out, one after the other.
fn held_out(
    class_sets: &[BTreeSet<usize>],
    classes: usize,
    degree: usize,
    most: usize,
    rng: &mut ChaCha8Rng,
) -> Vec<BTreeSet<usize>> {
    let distinct: BTreeSet<&BTreeSet<usize>> = class_sets.iter().collect();
    if distinct.len() <= most {
        let mut sets: Vec<BTreeSet<usize>> = distinct.into_iter().cloned().collect();
        // The smallest first, each is tested when it is held out itself and not as a part of a larger one.
        sets.sort_by_key(BTreeSet::len);
        return sets;
    }
    let size = ((BLOCK * classes as f64).round() as usize).max(degree).min(classes);
    let mut all: Vec<usize> = (0..classes).collect();
    (0..most)
        .map(|_| {
            all.shuffle(rng);
            all[..size].iter().copied().collect()
        })
        .collect()
}

/// Folds that hold out the union itself, wherever it occurs.
fn leaving_unions(class_sets: &[BTreeSet<usize>], most: usize, rng: &mut ChaCha8Rng) -> Vec<Fold> {
    let mut positions: BTreeMap<&BTreeSet<usize>, Vec<usize>> = BTreeMap::new();
    for (at, set) in class_sets.iter().enumerate() {
        positions.entry(set).or_default().push(at);
    }
    let mut sets: Vec<Vec<usize>> = positions.into_values().collect();
    // Unions that all seem to be one are still different ones.
    if sets.len() == 1 {
        sets = (0..class_sets.len()).map(|at| vec![at]).collect();
    }
    sets.shuffle(rng);
    let folds = sets.len().min(most);
    let mut fold_of = vec![0; class_sets.len()];
    for (at, set) in sets.iter().enumerate() {
        set.iter().for_each(|&union| fold_of[union] = at % folds);
    }
    let of = |fold: usize| {
        let (test, train) = (0..class_sets.len()).partition(|&at| fold_of[at] == fold);
        Fold { train, test, labels: Vec::new() }
    };
    (0..folds).map(of).collect()
}
