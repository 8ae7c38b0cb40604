//! What a good colleague would say about a run: each thing once, with what to do. Nothing here changes a result.

use std::collections::{BTreeMap, BTreeSet};

use compflow_api::{Embeddings, Flags, Level, Normalize, Sets, Unit, plural};

use super::lead::lead;
use super::summary::Summary;
use crate::causes::Cause;
use crate::data::Trial;
use crate::observer::Observer;
use crate::plan::cell::Chosen;
use crate::plan::compose::compose_sets;
use crate::plan::{Plan, PlannedData, Setup};
use crate::run::row::Row;
use crate::run::selection::Selection;

/// Vectors of the same data differ so much in length that the longest decide everything.
const LENGTHS_DIFFER: f64 = 100.0;
/// More clusters than one for so many examples, of so many at least, are hardly groups.
const EXAMPLES_OF_A_CLUSTER: usize = 20;
const CLUSTERS_WORTH_A_WORD: usize = 30;
/// A share that is no more than this above doing nothing is no finding.
const ABOVE_NOTHING: f64 = 0.02;
/// Unions of labels that a composer is looked at with, and how many say something.
const UNIONS_LOOKED_AT: usize = 200;
const UNIONS_THAT_TELL: usize = 3;
/// Differences are called real below this p.
const SIGNIFICANT: f64 = 0.05;
/// Means that differ by less than this share of the best need no word.
const WORTH_COMPARING: f64 = 0.02;

/// Says everything.
pub(crate) fn advise(plan: &Plan, rows: &[Row], chosen: &Chosen, summary: &[Summary], observer: &dyn Observer) {
    let warn = |cause: Cause, about: &str, text: &str| {
        observer.log(Level::Warn, about, &format!("{text} [{}]", cause.code()));
    };
    for data in plan.data.iter().filter(|data| !data.tunes) {
        let about = format!("data `{}`", data.name);
        lengths(plan, data).into_iter().for_each(|text| warn(Cause::Lengths, &about, &text));
        composition(plan, data).into_iter().for_each(|text| warn(Cause::Misfit, &about, &text));
    }
    let metrics: Vec<&str> = plan.metrics.iter().map(|metric| metric.name.as_str()).collect();
    let deciding = lead(&metrics);
    for group in groups(plan, rows) {
        for (cause, text) in group.advice(plan) {
            warn(cause, &format!("{} on {}", group.label, group.data.name), &text);
        }
    }
    for (clusterer, variant) in chosen {
        if let Some(text) = at_the_edge(plan, *clusterer, *variant) {
            warn(Cause::GridEdge, &plan.clusterers[*clusterer].name, &text);
        }
    }
    let told = rows.iter().filter(|row| row.cell.setup(plan).recipe.flags.contains(Flags::NEEDS_TRUTH));
    let told: BTreeSet<&str> = told.map(|row| row.cell.label(plan)).collect();
    for (data, text) in indistinct(summary, deciding, |clusterer| told.contains(clusterer))
        .into_iter()
        .filter(|(data, _)| !plan.tunes(data))
    {
        warn(Cause::FewTrials, &format!("data `{data}`"), &text);
    }
}

/// The trials of one method on one data set.
struct Group<'a> {
    data: &'a PlannedData,
    label: &'a str,
    rows: Vec<&'a Row>,
}

fn groups<'a>(plan: &'a Plan, rows: &'a [Row]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for row in rows.iter().filter(|row| row.brief.is_some() && !plan.data[row.cell.data].tunes) {
        let (data, label) = (&plan.data[row.cell.data], row.cell.label(plan));
        match groups.last_mut().filter(|last| last.label == label && std::ptr::eq(last.data, data)) {
            Some(last) => last.rows.push(row),
            None => groups.push(Group { data, label, rows: vec![row] }),
        }
    }
    groups
}

impl Group<'_> {
    fn advice(&self, plan: &Plan) -> Vec<(Cause, String)> {
        let mut advice = Vec::new();
        let trials = self.rows.len();
        let briefs = || self.rows.iter().filter_map(|row| Some((*row, row.brief.as_ref()?)));
        let unfinished = briefs().filter(|(_, brief)| !brief.converged).count();
        if unfinished * 2 > trials && trials > 1 {
            let text = format!(
                "{unfinished} of {trials} trials did not converge: raise `max_iter`, or see what the method says of it"
            );
            advice.push((Cause::NotConverged, text));
        }
        let composes = self.rows.first().is_some_and(|row| {
            let flags = row.cell.setup(plan).recipe.flags;
            flags.contains(Flags::NEEDS_COMPOSER) || flags.contains(Flags::NEEDS_GRADIENTS)
        });
        let (mut most, mut unions, mut singletons) = (None::<(usize, usize)>, 0, 0);
        for (row, brief) in briefs() {
            let n = row.cell.trial(plan).size();
            let found = brief.occurring.members as usize;
            unions += brief.occurring.unions;
            singletons = singletons.max(found);
            let unasked = brief.has_exemplars && !asks_for_k(row.cell.setup(plan));
            if unasked && found >= CLUSTERS_WORTH_A_WORD && found * EXAMPLES_OF_A_CLUSTER > n {
                most = Some(most.map_or((found, n), |most| most.max((found, n))));
            }
        }
        if let Some((clusters, n)) = most {
            let text = format!(
                "{clusters} exemplars for {}, one for every {}: set `preference = {{ k = … }}`, or a lower one, if you expect fewer",
                plural(n, "example"),
                n / clusters
            );
            advice.push((Cause::ManyClusters, text));
        }
        let too_high = composes && singletons > 0 && plan.setting.degree > singletons;
        if composes && plan.setting.degree > 1 && unions == 0 && !too_high {
            let text = "no union was found: there is none, or the composer does not predict where they lie (`compflow \
                        fit-composer` tells, from labelled examples), or they are in no groups of their own";
            advice.push((Cause::NoUnion, text.to_owned()));
        }
        if too_high {
            let text = format!(
                "`degree = {}` is more than the {} found: no union can have so many members",
                plan.setting.degree,
                plural(singletons, "singleton")
            );
            advice.push((Cause::DegreeAboveK, text));
        }
        advice.extend(self.near_nothing(plan).map(|text| (Cause::NearNothing, text)));
        advice.extend(self.at_the_end(plan).map(|text| (Cause::GridEdge, text)));
        advice
    }

    /// Whether what was selected is the largest or smallest value that it was selected from.
    fn at_the_end(&self, plan: &Plan) -> Option<String> {
        let mut ends: BTreeMap<String, usize> = BTreeMap::new();
        for row in &self.rows {
            let selects = row.selection.as_ref().is_some_and(Selection::is_better_than_chance);
            let (setup, variant) = (row.cell.setup(plan), row.cell.variant(plan));
            for (name, value) in setup.choices.iter().filter(|_| selects) {
                let of_name =
                    |option: &Setup| option.choices.iter().find(|(other, _)| other == name)?.1.parse().ok();
                let range: Vec<f64> = variant.options.iter().filter_map(of_name).collect();
                let Some((value, side)) = value.parse().ok().and_then(|value| Some((value, end(&range, value)?)))
                else {
                    continue;
                };
                // Fewer than two clusters are none, and a half cannot have more than it has examples.
                let is_number = name == "k" || name.ends_with(".k");
                let bounded = match side {
                    "smallest" => value <= 2.0,
                    _ => value + 1.0 > (row.cell.trial(plan).size() / 2) as f64,
                };
                if !is_number || !bounded {
                    let text = format!("`{name}` = {value} is the {side} value that was selected from");
                    *ends.entry(text).or_default() += 1;
                }
            }
        }
        let trials = self.rows.len();
        let ends =
            ends.into_iter().map(|(text, count)| format!("{text}, in {count} of {}", plural(trials, "trial")));
        let ends: Vec<String> = ends.collect();
        (!ends.is_empty()).then(|| {
            let all = ends.join("; ");
            format!("{all}: a better one may lie beyond, so select from a wider range, `{{ select = {{ from = …, to = … }} }}`")
        })
    }

    /// Whether what was found agrees with the truth no better than chance would.
    fn near_nothing(&self, plan: &Plan) -> Option<String> {
        let knows =
            self.rows.first().is_some_and(|row| row.cell.setup(plan).recipe.flags.contains(Flags::NEEDS_TRUTH));
        let metric = plan.metrics.iter().find(|metric| CORRECTED.contains(&metric.name.as_str()))?;
        let scores: Vec<f64> =
            self.rows.iter().filter_map(|row| row.brief.as_ref()?.score(plan, &metric.name)).collect();
        let mean = scores.iter().sum::<f64>() / scores.len() as f64;
        (!knows && metric.unit == Unit::Share && mean < ABOVE_NOTHING).then(|| {
            format!(
                "{} is {:.1}, about what a guess gets: look at `space`, the composer and `k`, and at whether the labels are \
                 of what the embeddings tell apart",
                metric.name,
                100.0 * mean
            )
        })
    }
}

/// Whether the parameters say how many clusters there are.
fn asks_for_k(setup: &Setup) -> bool {
    fn inside(value: &serde_json::Value) -> bool {
        let mut values = value.as_object().into_iter().flatten();
        values.any(|(name, value)| (name == "k" && value.is_u64()) || inside(value))
    }
    serde_json::from_str(&setup.params).is_ok_and(|params: serde_json::Value| inside(&params))
}

/// Metrics that are 0 for a guess.
const CORRECTED: [&str; 3] = ["acri", "ari", "ami"];

/// Whether the lengths of vectors differ so much that only those of the longest count.
fn lengths(plan: &Plan, data: &PlannedData) -> Option<String> {
    if plan.setting.space.normalize != Normalize::None {
        return None;
    }
    let dim = data.dataset.dim.max(1);
    let square = |row: &[f32]| row.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>();
    let rows = data.dataset.trials.iter().flat_map(|trial: &Trial| trial.embeddings.chunks_exact(dim));
    let mut lengths: Vec<f64> = rows.map(|row| square(row).sqrt()).filter(|length| *length > 0.0).collect();
    if lengths.is_empty() {
        return None;
    }
    lengths.sort_by(f64::total_cmp);
    // One odd vector in a hundred does not make the others differ.
    let at = |share: f64| lengths[(share * (lengths.len() - 1) as f64) as usize];
    let (short, long) = (at(0.01), at(0.99));
    (long > LENGTHS_DIFFER * short).then(|| {
        format!(
            "the lengths of vectors differ by a factor of {:.0}, so that the longest decide: \
             `space = {{ normalize = \"l2\" }}` compares directions",
            long / short
        )
    })
}

/// Whether the composer predicts unions of labels no better than by one of their members.
fn composition(plan: &Plan, data: &PlannedData) -> Option<String> {
    let (composer, space) = (plan.setting.composer.as_ref()?, plan.setting.space);
    let (dim, trial) =
        (data.dataset.dim, data.dataset.trials.first().filter(|trial| !trial.embeddings.is_empty())?);
    let mut means: BTreeMap<&[u32], (Vec<f32>, usize)> = BTreeMap::new();
    for (set, row) in trial.truth.as_ref()?.iter().zip(trial.embeddings.chunks_exact(dim)) {
        let (sum, count) = means.entry(set).or_insert_with(|| (vec![0.0; dim], 0));
        sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        *count += 1;
    }
    means.values_mut().for_each(|(sum, count)| sum.iter_mut().for_each(|sum| *sum /= *count as f32));
    let singles: Vec<&[u32]> = means.keys().copied().filter(|set| set.len() == 1).collect();
    let position = |label: &u32| singles.iter().position(|set| set == &[*label]).map(|at| at as u32);
    let unions = means.keys().filter(|set| set.len() > 1).take(UNIONS_LOOKED_AT);
    let (unions, members): (Vec<&[u32]>, Vec<Vec<u32>>) =
        unions.filter_map(|set| Some((*set, set.iter().map(position).collect::<Option<Vec<u32>>>()?))).unzip();
    if unions.len() < UNIONS_THAT_TELL {
        return None;
    }
    // The points of the space: of the singletons, of the unions as they are, and as they are predicted.
    let rows: Vec<f32> = singles.iter().chain(&unions).flat_map(|set| means[set].0.iter().copied()).collect();
    let (rows, factory) = (Embeddings::new(&rows, dim), &plan.factory);
    let alone: Sets = (0..rows.len() as u32).map(|row| vec![row]).collect();
    let points = compose_sets(None, factory, space, rows, &alone).ok()?;
    let predicted = compose_sets(Some(composer), factory, space, rows, &members.iter().cloned().collect()).ok()?;
    let distance = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
    let point = |at: usize| &points[at * dim..][..dim];
    let better = members.iter().enumerate().filter(|(at, members)| {
        let union = point(singles.len() + at);
        let nearest =
            members.iter().map(|member| distance(point(*member as usize), union)).fold(f64::MAX, f64::min);
        distance(&predicted[at * dim..][..dim], union) < nearest
    });
    let better = better.count();
    (2 * better < unions.len()).then(|| {
        format!(
            "the composer `{}` predicts {better} of {} unions of labels better than one of their members does: \
             `compflow fit-composer` says which composer to take, or learns one",
            composer.recipe.name,
            unions.len()
        )
    })
}

/// Whether tuning has chosen the largest or smallest value of a grid.
fn at_the_edge(plan: &Plan, clusterer: usize, variant: usize) -> Option<String> {
    let variants = &plan.clusterers[clusterer].variants;
    let grids: BTreeMap<&str, Vec<f64>> = variants.iter().flat_map(|variant| &variant.choices).fold(
        BTreeMap::new(),
        |mut grids: BTreeMap<&str, Vec<f64>>, (name, value)| {
            grids.entry(name).or_default().extend(value.parse::<f64>());
            grids
        },
    );
    let edges = variants[variant].choices.iter().filter_map(|(name, value)| {
        let (value, grid) = (value.parse::<f64>().ok()?, grids.get(name.as_str())?);
        Some(format!("`{name}` = {value} is the {} of its grid", end(grid, value)?))
    });
    let edges: Vec<String> = edges.collect();
    (!edges.is_empty()).then(|| format!("{}: the best may lie beyond, so extend the grid there", edges.join(", ")))
}

/// At which end of some values one is.
fn end(values: &[f64], value: f64) -> Option<&'static str> {
    let (least, most) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
    // Of two values both are at an end.
    let between = values.iter().any(|other| *other > least && *other < most);
    let side = if value == least { "smallest" } else { "largest" };
    (between && (value == least || value == most)).then_some(side)
}

/// Data sets on which the best method by the metric that decides cannot be told from others. Those that are told the truth
/// may be better than the best, with which they do not compete.
fn indistinct(summary: &[Summary], metric: Option<&str>, told: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let entries = || summary.iter().filter(|entry| Some(entry.metric.as_str()) == metric);
    // As many may be the best as there are methods: those that cannot be told from it are looked for once.
    let mut rivals: BTreeMap<&str, Vec<&Summary>> = BTreeMap::new();
    for other in entries().filter(|entry| !entry.best && entry.p_vs_best.is_some_and(|p| p > SIGNIFICANT)) {
        rivals.entry(&other.data).or_default().push(other);
    }
    for best in entries().filter(|entry| entry.best) {
        let others = rivals.get(best.data.as_str()).into_iter().flatten();
        let others = others.filter(|other| !told(&other.clusterer) || told(&best.clusterer));
        let alike: Vec<String> = others
            .filter(|other| (best.mean - other.mean).abs() > WORTH_COMPARING * best.mean.abs())
            .map(|other| other.clusterer.clone())
            .collect();
        if !alike.is_empty() && best.trials > 1 {
            let text = format!(
                "{} cannot show that {} is better than {} by {}: more trials could",
                plural(best.trials, "trial"),
                best.clusterer,
                alike.join(", "),
                best.metric
            );
            found.push((best.data.clone(), text));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_are_told_the_truth_are_no_rivals() {
        let entry = |clusterer: &str, mean, best| Summary {
            data: "d".to_owned(),
            clusterer: clusterer.to_owned(),
            metric: "acri".to_owned(),
            unit: Unit::Share,
            trials: 5,
            mean,
            se: Some(0.1),
            best,
            p_vs_best: (!best).then_some(0.4),
        };
        let summary = [entry("told", 0.9, false), entry("cgm", 0.8, true), entry("ckm", 0.7, false)];
        let texts = |told: &[&str]| -> Vec<String> {
            let found = indistinct(&summary, Some("acri"), |clusterer| told.contains(&clusterer));
            found.into_iter().map(|(_, text)| text).collect()
        };
        let text = "5 trials cannot show that cgm is better than ckm by acri: more trials could";
        assert_eq!(texts(&["told"]), [text]);
        let all = "5 trials cannot show that cgm is better than told, ckm by acri: more trials could";
        assert_eq!(texts(&["told", "cgm", "ckm"]), [all], "they compete where all are told");
    }
}
