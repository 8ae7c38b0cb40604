//! What a run found, as a page or as tables: figures and texts, without the command around them.

mod axes;
mod bars;
mod centres;
mod colour;
mod composition;
mod confusion;
mod found;
mod graph;
mod look;
mod looked;
pub(crate) mod markdown;
mod matching;
mod media;
mod names;
pub(crate) mod page;
pub(crate) mod pairs;
mod pca;
mod pixels;
mod points;
pub(crate) mod reference;
mod scatter;
mod scores;
mod script;
mod selection;
mod setup;
mod shown;
mod svg;
mod t_tests;
mod times;
mod traces;
mod trial;

use std::collections::BTreeMap;
use std::path::PathBuf;

use compflow_engine::data::Dataset;
use compflow_engine::results::{Means, RecordedRun, Trivial};
use compflow_engine::{Cancel, Results};

use self::looked::Chosen;
use crate::commands::{plugins, variables};
use crate::terminal::Terminal;

/// A run's tables, and its data read again.
pub(crate) struct ReportData {
    results: Results,
    space: compflow_api::Space,
    data: BTreeMap<String, DataAgain>,
}

/// A data set as far as it can still be had; the reasons are for people.
struct DataAgain {
    dataset: Result<Dataset, String>,
    trivial: Vec<(Trivial, Result<Means, String>)>,
}

impl ReportData {
    /// Reads the data again, with libraries of these folders.
    pub(crate) fn gather(results: Results, folders: &[PathBuf]) -> Self {
        let terminal = Terminal::shared(false);
        let run = RecordedRun::new(
            &results.record,
            |pins| plugins::scanned(folders, pins),
            variables(),
            &terminal,
            &Cancel::new(),
        );
        let space = run.space();
        let mut data = BTreeMap::new();
        for name in results.data() {
            let dataset = run.data(name).map_err(|error| error.to_string());
            let score = |which| match &dataset {
                Ok(dataset) => run.trivial(dataset, which).map_err(|error| error.to_string()),
                Err(reason) => Err(reason.clone()),
            };
            let trivial = Trivial::ALL.map(|which| (which, score(which))).to_vec();
            data.insert(name.to_owned(), DataAgain { dataset, trivial });
        }
        drop(run);
        Self { results, space, data }
    }

    /// The pipeline's name.
    pub(crate) fn name(&self) -> &str {
        &self.results.record.name
    }

    /// What the run left behind.
    pub(crate) fn results(&self) -> &Results {
        &self.results
    }

    /// How many examples a trial has, if the data can still be had.
    fn size(&self, chosen: &Chosen) -> Option<usize> {
        let dataset = self.data.get(&chosen.data)?.dataset.as_ref().ok()?;
        Some(dataset.trials.iter().find(|trial| trial.number == chosen.trial)?.size())
    }

    /// The mean score of a trivial clustering, if it can be had.
    fn trivial(&self, data: &str, which: Trivial, metric: &str) -> Option<f64> {
        let (_, scores) = self.data.get(data)?.trivial.iter().find(|(known, _)| *known == which)?;
        scores.as_ref().ok()?.get(metric).copied()
    }
}
