//! Labelled examples as g sees them: for every set of labels that occurs its mean, its spread and its examples.
//!
//! Labels mean something only within a *group*: a trial, or everything if there are no trials.

use std::collections::{BTreeMap, HashMap};

use compflow_api::{Embeddings, Sets, Space};

use crate::data::Dataset;
use crate::error::{Error, Result};

/// Composing a set costs more than its subsets together, of which there are 2ⁿ.
const MOST_MEMBERS: usize = 8;

/// All groups, and what they are seen in.
#[derive(Debug)]
pub(super) struct Labelled {
    pub(super) dim: usize,
    pub(super) space: Space,
    pub(super) groups: Vec<Group>,
    /// The most members that a set has.
    pub(super) degree: usize,
    /// What was left out, in words.
    pub(super) left_out: Vec<String>,
}

/// Examples whose labels are the same names for the same things.
#[derive(Debug)]
pub(super) struct Group {
    /// What the labels are called; all of them have examples of their own.
    pub(super) names: Vec<String>,
    /// The mean of every label's own examples, as they are: what composers take.
    pub(super) singles: Vec<f32>,
    /// The examples, as they are.
    pub(super) rows: Vec<f32>,
    /// The examples as points of the space.
    pub(super) points: Vec<f32>,
    /// By size, then by members; the first are the labels.
    pub(super) sets: Vec<LabelSet>,
}

/// A set of labels that occurs.
#[derive(Debug)]
pub(super) struct LabelSet {
    pub(super) members: Vec<u32>,
    /// Its examples.
    pub(super) rows: Vec<usize>,
    /// Their mean as they are.
    pub(super) mean: Vec<f64>,
    /// Their mean as points of the space.
    pub(super) point: Vec<f64>,
    /// Σw‖x - x̄‖² of the points.
    pub(super) scatter: f64,
    /// Σw - Σw²/Σw, what the scatter is of: n - 1 if all count the same, in units of a weight.
    pub(super) freedom: f64,
    /// (Σw)²/Σw², how many examples that count the same would tell as much.
    pub(super) count: f64,
}

impl LabelSet {
    pub(super) fn is_union(&self) -> bool {
        self.members.len() > 1
    }
}

impl Group {
    /// The set with these members, ascending, if it occurs.
    pub(super) fn find(&self, members: &[u32]) -> Option<&LabelSet> {
        let at =
            self.sets.binary_search_by(|set| (set.members.len(), &set.members[..]).cmp(&(members.len(), members)));
        at.ok().map(|at| &self.sets[at])
    }

    /// One row as it is.
    pub(super) fn row(&self, at: usize, dim: usize) -> &[f32] {
        &self.rows[at * dim..][..dim]
    }

    /// The example of a set that is nearest to its mean, as points of the space.
    pub(super) fn most_central(&self, set: &LabelSet, dim: usize) -> usize {
        let distance = |row: &usize| squared(&self.points[*row * dim..][..dim], &set.point);
        let nearest = set.rows.iter().copied().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        nearest.expect("a set that is kept has examples")
    }

    /// The sets with more than one label.
    pub(super) fn unions(&self) -> impl Iterator<Item = (usize, &LabelSet)> {
        self.sets.iter().enumerate().filter(|(_, set)| set.is_union())
    }
}

/// What is collected of a group.
#[derive(Debug, Default, Clone)]
struct Collected {
    numbers: HashMap<String, u32>,
    names: Vec<String>,
    rows: Vec<f32>,
    weights: Vec<f64>,
    sets: BTreeMap<(usize, Vec<u32>), Vec<usize>>,
}

/// Collects data sets.
#[derive(Debug, Clone)]
pub(super) struct Collector {
    pub(super) space: Space,
    dim: usize,
    /// What the first data set was called.
    first: String,
    groups: BTreeMap<(usize, u32), Collected>,
}

impl Collector {
    pub(super) fn new(space: Space) -> Self {
        Self { space, dim: 0, first: String::new(), groups: BTreeMap::new() }
    }

    /// The same examples in another space.
    pub(super) fn within(&self, space: Space) -> Self {
        Self { space, ..self.clone() }
    }

    /// Adds the data set that is the `at`-th. If it has trials, the labels of each mean something only there.
    ///
    /// # Errors
    /// If its embeddings have another length than those before.
    pub(super) fn add(&mut self, at: usize, name: &str, dataset: &Dataset, has_trials: bool) -> Result<()> {
        if self.dim == 0 {
            (self.dim, self.first) = (dataset.dim, name.to_owned());
        }
        if dataset.dim != self.dim {
            return Err(Error::request(format!(
                "{name} has embeddings of length {}, and {} of length {}: they are not of one model",
                dataset.dim, self.first, self.dim
            )));
        }
        for trial in &dataset.trials {
            let key = if has_trials { (at + 1, trial.number) } else { (0, 0) };
            let rows = Embeddings::new(&trial.embeddings, self.dim).rows();
            for (at, (set, row)) in trial.truth.iter().flat_map(Sets::iter).zip(rows).enumerate() {
                let weight = trial.weights.as_ref().map_or(1.0, |weights| f64::from(weights[at]));
                self.push(key, row, weight, set.iter().map(|&label| dataset.classes[label as usize].as_str()));
            }
        }
        Ok(())
    }

    /// Adds an example of a group; one that counts for nothing is as good as none.
    pub(super) fn push<'n>(
        &mut self,
        key: (usize, u32),
        row: &[f32],
        weight: f64,
        labels: impl Iterator<Item = &'n str>,
    ) {
        self.dim = row.len();
        if weight == 0.0 {
            return;
        }
        let group = self.groups.entry(key).or_default();
        let at = group.rows.len() / self.dim;
        group.rows.extend_from_slice(row);
        group.weights.push(weight);
        let mut members: Vec<u32> = labels.map(|label| group.number(label)).collect();
        members.sort_unstable();
        // "None of them" says nothing about composition.
        if !members.is_empty() {
            group.sets.entry((members.len(), members)).or_default().push(at);
        }
    }

    /// The groups with all that can be used.
    ///
    /// # Errors
    /// If there are no unions, or none whose members have examples of their own.
    pub(super) fn finish(self) -> Result<Labelled> {
        let (mut unions, mut alone, mut large) = (0, Vec::new(), Vec::new());
        let mut groups = Vec::new();
        for (_, collected) in self.groups {
            let mut kept = BTreeMap::new();
            for ((size, members), rows) in collected.sets.iter().filter(|((size, _), _)| *size > 1) {
                unions += 1;
                let single = |label: &&u32| !collected.sets.contains_key(&(1, vec![**label]));
                if let Some(missing) = members.iter().find(single) {
                    alone.push((collected.text(members), collected.names[*missing as usize].clone()));
                } else if *size > MOST_MEMBERS {
                    large.push(collected.text(members));
                } else {
                    kept.insert((*size, members.clone()), rows.clone());
                }
            }
            let labels: Vec<u32> =
                collected.sets.keys().filter(|(size, _)| *size == 1).map(|(_, members)| members[0]).collect();
            let number: HashMap<u32, u32> = labels.iter().copied().zip(0..).collect();
            let singles = labels.iter().filter_map(|label| {
                let key = (1, vec![*label]);
                Some((key.clone(), collected.sets.get(&key)?.clone()))
            });
            kept.extend(singles);
            let mut points = collected.rows.clone();
            self.space.enter(&mut points, self.dim);
            let sets: Vec<LabelSet> = kept
                .into_iter()
                .map(|((_, members), rows)| {
                    let members = members.iter().map(|label| number[label]).collect();
                    set_of(members, rows, &collected, &points, self.dim)
                })
                .collect();
            let singles = sets.iter().take(labels.len()).flat_map(|set| &set.mean).map(|&x| x as f32).collect();
            let names = labels.iter().map(|label| collected.names[*label as usize].clone()).collect();
            groups.push(Group { names, singles, rows: collected.rows, points, sets });
        }
        if unions == 0 {
            return Err(Error::request(
                "there are no unions: every example has one label at most, so there is nothing to learn a composition \
                 from; add examples that have two labels or more",
            ));
        }
        let usable = groups.iter().flat_map(Group::unions).count();
        let mut left_out = Vec::new();
        if let Some((set, label)) = alone.first() {
            let text = format!("for example of {set}, `{label}` has no example that has this label alone");
            if usable == 0 && large.is_empty() {
                return Err(Error::request(format!(
                    "of {unions} {} none can be used: {text}; add such examples",
                    plural(unions, "union")
                )));
            }
            left_out.push(format!("{} of {unions} unions are left out: {text}", alone.len()));
        }
        if let Some(set) = large.first() {
            left_out.push(format!(
                "{} of {unions} unions are left out: they have more than {MOST_MEMBERS} members, as {set} has",
                large.len()
            ));
        }
        if usable < 2 {
            return Err(Error::request(format!(
                "there is only {} that can be used, so nothing can be said about unions that were not seen; give at \
                 least two, better one for every pair of five labels or more{}",
                if usable == 1 { "one union" } else { "no union" },
                left_out.iter().map(|text| format!(" ({text})")).collect::<String>()
            )));
        }
        let degree = groups.iter().flat_map(Group::unions).map(|(_, set)| set.members.len()).max().unwrap_or(2);
        groups.retain(|group| group.unions().next().is_some());
        Ok(Labelled { dim: self.dim, space: self.space, groups, degree, left_out })
    }
}

impl Collected {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    fn text(&self, members: &[u32]) -> String {
        let names: Vec<&str> = members.iter().map(|label| self.names[*label as usize].as_str()).collect();
        format!("{{{}}}", names.join(", "))
    }
}

pub(super) fn plural(count: usize, word: &str) -> String {
    format!("{word}{}", if count == 1 { "" } else { "s" })
}

fn set_of(members: Vec<u32>, rows: Vec<usize>, of: &Collected, points: &[f32], dim: usize) -> LabelSet {
    let weights = || rows.iter().map(|&row| of.weights[row]);
    let (total, squares) = (weights().sum::<f64>(), weights().map(|weight| weight * weight).sum::<f64>());
    let mean = |values: &[f32]| {
        let values = Embeddings::new(values, dim);
        let mut mean = vec![0.0f64; dim];
        for (&row, weight) in rows.iter().zip(weights()) {
            mean.iter_mut().zip(values.row(row)).for_each(|(sum, &value)| *sum += weight * f64::from(value));
        }
        mean.iter_mut().for_each(|sum| *sum /= total);
        mean
    };
    let (raw, point) = (mean(&of.rows), mean(points));
    let from_mean = |(&row, weight): (&usize, f64)| weight * squared(&points[row * dim..][..dim], &point);
    let scatter = rows.iter().zip(weights()).map(from_mean).sum();
    // Of a single example rounding may leave something.
    let freedom = if rows.len() > 1 { total - squares / total } else { 0.0 };
    LabelSet { members, rows, mean: raw, point, scatter, freedom, count: total * total / squares }
}

/// ‖a - b‖².
pub(super) fn squared(a: &[f32], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - b).powi(2)).sum()
}

impl Labelled {
    /// All unions: group and position in it.
    pub(super) fn unions(&self) -> Vec<(usize, usize)> {
        let groups = self.groups.iter().enumerate();
        groups.flat_map(|(at, group)| group.unions().map(move |(set, _)| (at, set))).collect()
    }

    /// Columns that have the same value, but for rounding, in all examples, and that value. Zeros are as well as not there, and
    /// where nothing varies everything is as it is.
    pub(super) fn constants(&self) -> Vec<(usize, f32)> {
        let mut ranges = vec![(f32::INFINITY, f32::NEG_INFINITY); self.dim];
        for row in self.groups.iter().flat_map(|group| group.rows.chunks_exact(self.dim)) {
            for ((least, most), value) in ranges.iter_mut().zip(row) {
                (*least, *most) = (least.min(*value), most.max(*value));
            }
        }
        let equal = |(at, (least, most)): (usize, (f32, f32))| {
            (most - least <= 1e-6 * least.abs().max(most.abs())).then_some((at, most))
        };
        let mut equal: Vec<(usize, f32)> = ranges.into_iter().enumerate().filter_map(equal).collect();
        if equal.len() == self.dim {
            return Vec::new();
        }
        equal.retain(|(_, value)| *value != 0.0);
        equal
    }

    /// The variance of examples within their sets, summed over dimensions; `None` if no set has two that differ.
    pub(super) fn spread(&self, wanted: impl Fn(&LabelSet) -> bool) -> Option<f64> {
        let sets = self.groups.iter().flat_map(|group| &group.sets).filter(|set| wanted(set));
        let (scatter, freedom) =
            sets.fold((0.0, 0.0), |(scatter, freedom), set| (scatter + set.scatter, freedom + set.freedom));
        (freedom > 0.0 && scatter > 0.0).then(|| scatter / freedom)
    }
}
