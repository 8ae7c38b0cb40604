//! A trial as it is looked at: its examples, if they can still be had, and what every method made of them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use compflow_api::{Embeddings, Sets};
use compflow_engine::data::Trial;
use compflow_engine::results::{AssignmentTable, TrialAssignments, lead, score_text};

use super::ReportData;
use super::colour::{Colour, Majorities, of_singletons};
use super::pca::{self, Projection};
use super::shown::Shown;
use crate::failure::Failure;
use crate::output::latex::metric_name;

/// A trial of a data set.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) data: String,
    pub(crate) trial: u32,
}

/// What is known of it.
pub(crate) struct Looked<'a> {
    pub(crate) chosen: Chosen,
    pub(crate) methods: Vec<Method>,
    /// Or why they cannot be had.
    pub(crate) examples: Result<Examples<'a>, String>,
}

/// The examples of a trial.
pub(crate) struct Examples<'a> {
    pub(crate) trial: &'a Trial,
    pub(crate) dim: usize,
    pub(crate) classes: &'a [String],
    pub(crate) points: Cow<'a, [f32]>,
    pub(crate) plane: Projection,
}

/// One method's clustering of the trial, ready to be drawn.
pub(crate) struct Method {
    pub(crate) found: TrialAssignments,
    pub(crate) majorities: Option<Majorities>,
    pub(crate) colours: Vec<Colour>,
    /// Its score by the leading metric, in words.
    pub(crate) score: Option<String>,
}

impl<'a> Looked<'a> {
    /// Reads what some methods made of a trial.
    ///
    /// # Errors
    /// If the table of assignments is damaged.
    pub(crate) fn new(
        report: &'a ReportData,
        table: &AssignmentTable,
        shown: &Shown<'_>,
        chosen: &Chosen,
    ) -> Result<Self, Failure> {
        let found = table.of(&chosen.data, chosen.trial, &|clusterer| shown.contains(clusterer))?;
        let examples = examples(report, chosen, &found);
        let truth = examples.as_ref().ok().and_then(|examples| examples.trial.truth.as_ref());
        let results = &report.results;
        let metric = lead(&results.metrics());
        let score = |clusterer: &str| {
            let metric = metric?;
            let value = *results.scores(&chosen.data, clusterer, metric).get(&(chosen.trial as usize))?;
            Some(format!("{} {}", metric_name(metric), score_text(results.unit(metric), value)))
        };
        let methods = found.into_iter().map(|found| {
            let majorities = truth.map(|truth| Majorities::new(&found.sets, truth));
            let colours = of_singletons(&found.sets, majorities.as_ref());
            Method { majorities, colours, score: score(&found.clusterer), found }
        });
        Ok(Self { chosen: chosen.clone(), methods: methods.collect(), examples })
    }

    /// How many examples it has.
    pub(crate) fn n(&self) -> usize {
        self.methods.first().map_or(0, |method| method.found.ids.len())
    }

    pub(crate) fn truth(&self) -> Option<&'a Sets> {
        self.examples.as_ref().ok()?.trial.truth.as_ref()
    }

    /// Whether unions can be right: where nothing truly is one, none can be, and that is no fault of the methods.
    pub(crate) fn judged(&self) -> bool {
        self.truth().is_some_and(|truth| truth.iter().any(|set| set.len() > 1))
    }

    /// What a true class is called.
    pub(crate) fn class(&self, number: u32) -> String {
        let classes = self.examples.as_ref().map_or(&[][..], |examples| examples.classes);
        classes.get(number as usize).cloned().unwrap_or_else(|| number.to_string())
    }

    /// The colours of the true classes.
    pub(crate) fn class_colours(&self) -> Vec<Colour> {
        let classes = self.examples.as_ref().map_or(0, |examples| examples.classes.len());
        (0..classes).map(Colour::of).collect()
    }
}

fn examples<'a>(
    report: &'a ReportData,
    chosen: &Chosen,
    found: &[TrialAssignments],
) -> Result<Examples<'a>, String> {
    let again = report.data.get(&chosen.data).ok_or("it is not in the recorded pipeline")?;
    let dataset = again.dataset.as_ref().map_err(Clone::clone)?;
    let trial = dataset.trials.iter().find(|trial| trial.number == chosen.trial);
    let trial = trial
        .filter(|trial| {
            let ids = trial.ids.texts();
            found.iter().all(|found| found.ids == ids)
        })
        .ok_or("the data now has other examples than when it was clustered")?;
    let points = report.space.points(Embeddings::new(&trial.embeddings, dataset.dim));
    let plane = pca::project(&points, dataset.dim);
    Ok(Examples { trial, dim: dataset.dim, classes: &dataset.classes, points, plane })
}

impl Method {
    /// A singleton: by the user's name if it has one.
    pub(crate) fn name(&self, member: u32) -> String {
        self.found.names.get(&member).cloned().unwrap_or_else(|| member.to_string())
    }

    /// How many of its unions are right, and how many are true; nothing if they cannot be judged.
    pub(crate) fn right(&self, truth: Option<&Sets>) -> Option<String> {
        let unions =
            |sets: &Sets| sets.iter().filter(|set| set.len() > 1).map(<[u32]>::to_vec).collect::<BTreeSet<_>>();
        let (found, truly) = (unions(&self.found.sets), unions(truth?));
        let majorities = self.majorities.as_ref().filter(|_| !truly.is_empty() && !found.is_empty())?;
        let right: Vec<bool> = found.iter().map(|set| majorities.is_right(set)).collect::<Option<_>>()?;
        let right = right.into_iter().filter(|right| *right).count();
        Some(format!("{right} of {} compositions right, {} are true", found.len(), truly.len()))
    }
}

/// How many singletons and compositions occur.
pub(crate) fn counts(sets: &Sets) -> String {
    let distinct: BTreeSet<&[u32]> = sets.iter().collect();
    let compositions = distinct.iter().filter(|set| set.len() > 1).count();
    let nothing = usize::from(distinct.contains(&[][..]));
    let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let singletons = plural(distinct.len() - compositions - nothing, "singleton");
    if compositions == 0 { singletons } else { format!("{singletons}, {}", plural(compositions, "composition")) }
}
