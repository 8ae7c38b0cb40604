//! Settling selections: for every trial, the value whose clusters are worth most.
//!
//! What a value is worth is how much of what its clusters say can be reproduced. With s the mean agreement of two halves
//! (see [`stability`](super::stability)) and I = ln(V / D), where D is the mean squared distance of examples to the nearest
//! representative found in the *other* half and V that to the other half's mean,
//!
//! ```text
//! worth = s·(I - I₀),
//! ```
//!
//! I₀ being the same of examples that are spread evenly over the range of every dimension. Too few clusters are stable and
//! say little, too many say hardly more and are not stable; what any clusters would say is taken off. Chosen are the fewest clusters that are
//! worth as much as the best up to its standard error, s's times I - I₀: where there is no structure to speak of, worth is nearly the same
//! for many values, and its largest is chance.
//!
//! As a second opinion there is the gap statistic of Tibshirani, Walther and Hastie, "Estimating the number of clusters in
//! a data set via the gap statistic", JRSS B 63(2), 2001, doi:10.1111/1467-9868.00293: with W the mean squared distance of
//! examples to their own half's representatives, Gap = E₀[ln(W/V)] - E[ln(W/V)], and it takes the first value, by number of
//! clusters, whose gap is not exceeded by the next one's less its standard error.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use compflow_api::{Error, Level, Result, plural};
use serde::{Deserialize, Serialize};

use super::cache::Cache;
use super::compute::Job;
use super::row::Row;
use super::stability::{PIECES, Split, Stability, key, measure};
use crate::files::plain;
use crate::observer::Observer;
use crate::plan::Plan;
use crate::plan::cell::Cell;

/// D and W are not taken to be smaller than this part of V, so that examples that are there twice do not say everything.
const LEAST_PART: f64 = 1e-9;

/// What was selected from, and what it came to.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Selection {
    /// One for every option, in their order; the reason for those that could not be measured.
    pub(crate) candidates: Vec<std::result::Result<Candidate, String>>,
    /// The option that was chosen.
    pub(crate) chosen: usize,
    /// The option that the gap statistic would have chosen.
    pub(crate) by_gap: usize,
}

/// A value that can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Candidate {
    /// Mean agreement of two halves, and its standard error.
    pub(crate) stability: f64,
    pub(crate) stability_se: f64,
    /// The logarithm of how many times nearer examples are to the representatives of the other half than to its mean.
    pub(crate) information: f64,
    /// Both for evenly spread examples.
    pub(crate) null_stability: f64,
    pub(crate) null_information: f64,
    /// What is chosen by.
    pub(crate) worth: f64,
    /// The gap statistic and the standard error that Tibshirani gives it.
    pub(crate) gap: f64,
    pub(crate) gap_se: f64,
    /// Mean number of clusters in a half.
    pub(crate) clusters: f64,
}

impl Candidate {
    fn new(measured: &Stability) -> Self {
        let Stability { splits, references } = measured;
        let agreement = |split: &Split| split.agreement;
        let (stability, deviation) = moments(splits, agreement);
        let (null_stability, _) = moments(references, agreement);
        let (information, null_information) = (information(splits), information(references));
        let within = |split: &Split| part(split.within, split.spread).ln();
        let (reference, reference_deviation) = moments(references, within);
        Self {
            stability,
            stability_se: deviation / (splits.len() as f64).sqrt(),
            information,
            null_stability,
            null_information,
            worth: stability * (information - null_information),
            gap: reference - moments(splits, within).0,
            gap_se: reference_deviation * (1.0 + 1.0 / references.len() as f64).sqrt(),
            clusters: moments(splits, |split| split.clusters).0,
        }
    }

    /// The standard error of what it is worth.
    fn worth_se(&self) -> f64 {
        self.stability_se * (self.information - self.null_information).abs()
    }
}

/// What part of the spread is left.
fn part(left: f64, spread: f64) -> f64 {
    if spread > 0.0 { (left / spread).max(LEAST_PART) } else { 1.0 }
}

/// ln(V / D), not less than 0.
fn information(splits: &[Split]) -> f64 {
    let sum = |value: fn(&Split) -> f64| splits.iter().map(value).sum::<f64>();
    (-part(sum(|split| split.held_out), sum(|split| split.spread)).ln()).max(0.0)
}

/// Mean and standard deviation.
fn moments(splits: &[Split], value: impl Fn(&Split) -> f64) -> (f64, f64) {
    let count = splits.len() as f64;
    let mean = splits.iter().map(&value).sum::<f64>() / count;
    let squares = splits.iter().map(|split| (value(split) - mean).powi(2)).sum::<f64>();
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}

impl Selection {
    /// `None` if no option could be measured.
    fn new(candidates: Vec<std::result::Result<Candidate, String>>) -> Option<Self> {
        let mut measured: Vec<(usize, Candidate)> =
            candidates.iter().enumerate().filter_map(|(at, one)| Some((at, *one.as_ref().ok()?))).collect();
        measured.sort_by(|(_, left), (_, right)| left.clusters.total_cmp(&right.clusters));
        // Worth nothing may be -0, which is no less; of equals the last is taken, so they are gone through backwards.
        let by_worth = |left: &&(usize, Candidate), right: &&(usize, Candidate)| {
            (left.1.worth + 0.0).total_cmp(&(right.1.worth + 0.0))
        };
        let (_, most) = measured.iter().rev().max_by(by_worth)?;
        let enough: Vec<&(usize, Candidate)> =
            measured.iter().filter(|(_, one)| one.worth >= most.worth - most.worth_se()).collect();
        let (_, fewest) = enough.first()?;
        let (chosen, _) =
            enough.iter().rev().filter(|(_, one)| one.clusters == fewest.clusters).copied().max_by(by_worth)?;
        let chosen = *chosen;
        let follows = |pair: &&[(usize, Candidate)]| matches!(pair, [(_, this), (_, next)] if this.gap >= next.gap - next.gap_se);
        let by_gap = measured.windows(2).find(follows).and_then(|pair| pair.first());
        let (by_gap, _) = *by_gap.or(measured.last())?;
        Some(Self { candidates, chosen, by_gap })
    }

    /// Whether the chosen value says more than the same value says about evenly spread examples.
    pub(crate) fn is_better_than_chance(&self) -> bool {
        self.candidates
            .get(self.chosen)
            .is_some_and(|chosen| chosen.as_ref().is_ok_and(|chosen| chosen.worth > 0.0))
    }
}

/// How many times as long as its clustering a cell takes: all that its parameters are selected from is clustered in pieces.
pub(super) fn pieces(plan: &Plan, cell: Cell) -> f64 {
    match cell.variant(plan).options.len() {
        0 | 1 => 1.0,
        options => (1 + options * PIECES) as f64,
    }
}

/// Settles what a cell selects from: the cell with its option, and what was compared. A cell that selects nothing stays as it
/// is.
///
/// # Errors
/// If none of the values can be measured, with the reason of the first.
pub(super) fn select(job: &Job<'_>, cell: Cell) -> Result<(Cell, Option<Selection>)> {
    let plan = job.plan;
    let options = plan_options(plan, cell);
    if options == 1 {
        return Ok((cell, None));
    }
    let about = cell.about(plan);
    let observer = &*job.factory.observer;
    let progress = observer.work(&format!("{about}: selecting"));
    let (done, total) = (AtomicU64::new(0), (options * PIECES) as u64);
    let advance = |pieces: u64| progress.advance(done.fetch_add(pieces, Ordering::Relaxed) + pieces, total);
    let mut candidates = Vec::new();
    for option in 0..options {
        let cell = Cell { option, ..cell };
        let key = key(plan, cell);
        let kept = if job.fresh { None } else { job.cache.load_stability(&key) };
        let started = done.load(Ordering::Relaxed);
        let measured = match kept {
            Some(kept) => Ok(kept),
            None => measure(job, cell, &about, &|| advance(1)).inspect(|measured| {
                if let Err(error) = job.cache.store_stability(&key, measured) {
                    let text = format!("what was measured cannot be kept: {}", plain(&error));
                    observer.log(Level::Warn, &about, &text);
                }
            }),
        };
        advance((started + PIECES as u64).saturating_sub(done.load(Ordering::Relaxed)));
        let measured = match measured {
            Ok(measured) => {
                job.cache.forget_failure(&key);
                measured
            }
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(error) => {
                let error = error.to_string();
                // Nobody depends on it: what failed is tried again.
                let _ = job.cache.note_failure(&key, &about, &error);
                Err(error)
            }
        };
        candidates.push(measured.map(|measured| Candidate::new(&measured)));
    }
    let mut refused =
        candidates.iter().enumerate().filter_map(|(at, one)| Some((at, one.as_ref().err()?.clone())));
    let (option, first) = refused.next().unwrap_or_default();
    if !first.is_empty() {
        let choice = choice(plan, Cell { option, ..cell });
        let what = match refused.count() {
            0 => format!("{choice} is not selected from"),
            others => format!("{} of {options} values are not selected from, {choice} first", others + 1),
        };
        observer.log(Level::Warn, &about, &format!("{what}: {first}"));
    }
    let selection = Selection::new(candidates).ok_or_else(|| {
        Error::data(format!("nothing can be selected, as every value fails: {first}{}", wider(plan, cell)))
    })?;
    let cell = Cell { option: selection.chosen, ..cell };
    if !selection.is_better_than_chance() {
        let text = "no value finds more than in evenly spread examples: there may be no clusters";
        observer.log(Level::Warn, &about, text);
    }
    let by_gap = Cell { option: selection.by_gap, ..cell };
    let opinion = match by_gap == cell {
        true => "as the gap statistic does".to_owned(),
        false => format!("the gap statistic would take {}", choice(plan, by_gap)),
    };
    observer.log(Level::Info, &about, &format!("selected {}; {opinion}", choice(plan, cell)));
    Ok((cell, Some(selection)))
}

/// If the trial's seeds name more singletons than any value of the only parameter that is selected, values that would do.
fn wider(plan: &Plan, cell: Cell) -> String {
    /// As many values as "auto" tries.
    const VALUES: usize = 9;
    let names = cell.seeds(plan).map_or(0, |seeds| seeds.names.len());
    let options = &cell.variant(plan).options;
    let largest = options.iter().filter_map(|option| match &option.choices[..] {
        [(_, value)] => value.parse::<usize>().ok(),
        _ => None,
    });
    match (options.first().and_then(|option| option.choices.first()), largest.max()) {
        (Some((name, _)), Some(largest)) if largest < names => {
            let to = names + VALUES - 1;
            format!("; values that would do are `{name} = {{ select = {{ from = {names}, to = {to} }} }}`")
        }
        _ => String::new(),
    }
}

/// What was selected for a cell in an earlier run, if what was measured, or that it could not be, is kept of every value.
pub(super) fn kept(plan: &Plan, cache: &Cache, cell: Cell) -> Option<(Cell, Option<Selection>)> {
    let options = plan_options(plan, cell);
    if options == 1 {
        return Some((cell, None));
    }
    let candidates = (0..options).map(|option| {
        let key = key(plan, Cell { option, ..cell });
        match cache.load_stability(&key) {
            Some(measured) => Some(measured.map(|measured| Candidate::new(&measured))),
            None => Some(Err(cache.failure(&key)?.error)),
        }
    });
    let selection = Selection::new(candidates.collect::<Option<Vec<_>>>()?)?;
    Some((Cell { option: selection.chosen, ..cell }, Some(selection)))
}

/// How many halves have to be clustered for a cell, besides what is kept.
pub(super) fn halves_to_cluster(plan: &Plan, cache: &Cache, cell: Cell) -> usize {
    let options = plan_options(plan, cell);
    let is_new = |option: &usize| cache.load_stability(&key(plan, Cell { option: *option, ..cell })).is_none();
    if options == 1 { 0 } else { 2 * PIECES * (0..options).filter(is_new).count() }
}

fn plan_options(plan: &Plan, cell: Cell) -> usize {
    cell.variant(plan).options.len()
}

/// What was chosen for a cell: `k=5`.
pub(super) fn choice(plan: &Plan, cell: Cell) -> String {
    let choices = cell.setup(plan).choices.iter().map(|(name, value)| format!("{name}={value}"));
    choices.collect::<Vec<_>>().join(" ")
}

/// A cell that selected, and what.
type Selected<'a> = (&'a Row, &'a Selection);

/// Says what was selected, for every clusterer and data set.
pub(super) fn announce(plan: &Plan, rows: &[Row], observer: &dyn Observer) {
    let mut groups: BTreeMap<(usize, usize, usize), Vec<Selected<'_>>> = BTreeMap::new();
    for row in rows {
        if let Some(selection) = &row.selection {
            groups
                .entry((row.cell.data, row.cell.clusterer, row.cell.variant))
                .or_default()
                .push((row, selection));
        }
    }
    for members in groups.values() {
        let Some((first, _)) = members.first() else { continue };
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        members.iter().for_each(|(row, _)| *counts.entry(row.cell.option).or_default() += 1);
        let mut counts: Vec<(usize, usize)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let most = counts.iter().enumerate().map(|(at, (option, count))| {
            let choice = choice(plan, Cell { option: *option, ..first.cell });
            match at {
                0 => format!("{choice} in {count} of {}", plural(members.len(), "trial")),
                _ => format!("{choice} in {count}"),
            }
        });
        let most = most.collect::<Vec<_>>().join(", ");
        let differs = members.iter().filter(|(_, selection)| selection.by_gap != selection.chosen).count();
        let gap = if differs > 0 { format!("; the gap statistic differs in {differs}") } else { String::new() };
        let data = &plan.data[first.cell.data].name;
        observer.selected(data, first.cell.label(plan), &format!("{most}{gap}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(agreement: f64, held_out: f64, clusters: f64) -> Split {
        Split { agreement, held_out, within: held_out * 0.9, spread: 1.0, clusters }
    }

    /// Agreement and what is left of the spread, on the examples and on evenly spread ones.
    fn candidate(clusters: f64, [agreement, left]: [f64; 2], [null_agreement, null_left]: [f64; 2]) -> Candidate {
        let splits = vec![split(agreement - 0.02, left, clusters), split(agreement + 0.02, left, clusters)];
        let references = vec![
            split(null_agreement, null_left * 0.99, clusters),
            split(null_agreement, null_left * 1.01, clusters),
        ];
        Candidate::new(&Stability { splits, references })
    }

    fn chosen(candidates: &[Candidate]) -> (usize, usize) {
        let selection = Selection::new(candidates.iter().map(|candidate| Ok(*candidate)).collect()).unwrap();
        (selection.chosen, selection.by_gap)
    }

    #[test]
    fn few_clusters_are_stable_and_say_little_and_many_are_not_stable() {
        let null = [0.2, 0.9];
        let [two, three, four] = [
            candidate(2.0, [1.0, 0.6], null),
            candidate(3.0, [0.95, 0.2], null),
            candidate(4.0, [0.7, 0.18], null),
        ];
        assert_eq!(chosen(&[two, three, four]), (1, 2));
        assert_eq!(chosen(&[four, two, three]).0, 2);
        assert!((three.information - 5f64.ln()).abs() < 1e-12);
        assert!((three.worth - 0.95 * (5f64.ln() + 0.9f64.ln())).abs() < 1e-12);
    }

    #[test]
    fn what_any_clusters_would_say_does_not_count() {
        let two = candidate(2.0, [0.9, 0.5], [0.3, 0.6]);
        let ten = candidate(10.0, [0.5, 0.05], [0.5, 0.06]);
        assert!(0.5 * 20f64.ln() > 0.9 * 2f64.ln());
        assert_eq!(chosen(&[two, ten]).0, 0);
    }

    #[test]
    fn of_equals_the_one_with_fewer_clusters_is_taken_and_failures_are_passed_over() {
        let same = |clusters| candidate(clusters, [0.9, 0.5], [0.1, 0.9]);
        assert_eq!(chosen(&[same(4.0), same(3.0)]).0, 1);
        // Worth of 2 % more, with a standard error of 2.2 %, is not more; of 3 % it is.
        let few = candidate(3.0, [0.9, 0.5], [0.1, 0.9]);
        assert_eq!(chosen(&[few, candidate(30.0, [0.918, 0.5], [0.1, 0.9])]).0, 0);
        assert_eq!(chosen(&[few, candidate(30.0, [0.927, 0.5], [0.1, 0.9])]).0, 1);
        let nothing = |agreement| candidate(1.0, [agreement, 1.0], [0.0, 1.0]);
        assert!(nothing(-0.5).worth.is_sign_negative());
        assert_eq!(chosen(&[nothing(-0.5), nothing(0.5), nothing(0.5)]).0, 0, "the first of equals");
        // Where the number is not what is selected, the largest is.
        assert_eq!(chosen(&[few, candidate(3.0, [0.901, 0.5], [0.1, 0.9])]).0, 1);
        let selection = Selection::new(vec![Err("too many".to_owned()), Ok(same(3.0))]).unwrap();
        assert_eq!((selection.chosen, selection.by_gap), (1, 1));
        assert!(Selection::new(vec![Err("too many".to_owned())]).is_none());
    }

    #[test]
    fn examples_that_are_all_the_same_say_nothing() {
        let flat = Split { agreement: 1.0, held_out: 0.0, within: 0.0, spread: 0.0, clusters: 1.0 };
        let candidate = Candidate::new(&Stability { splits: vec![flat; 2], references: vec![flat; 2] });
        assert_eq!((candidate.information, candidate.worth, candidate.gap), (0.0, 0.0, 0.0));
    }
}
