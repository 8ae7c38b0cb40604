//! Which cell of a run is meant.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::results::{Results, Run, distinct};

/// What is said of the cell; what is not said must leave no choice.
#[derive(Debug, Clone, Copy, Default)]
pub struct CellRequest<'a> {
    /// The data set.
    pub data: Option<&'a str>,
    /// The trial's number.
    pub trial: Option<u32>,
    /// The clusterer, as tables call it.
    pub clusterer: Option<&'a str>,
}

/// One clusterer on one trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The data set.
    pub data: String,
    /// The trial's number.
    pub trial: u32,
    /// The clusterer, as tables call it.
    pub clusterer: String,
}

/// Names that a message lists at most.
const LISTED: usize = 12;

impl Cell {
    /// The cell that is meant.
    ///
    /// # Errors
    /// Listing the choices if there are several or none; or that the cell has failed.
    pub fn choose(results: &Results, request: &CellRequest<'_>) -> Result<Self> {
        let mut runs = chosen(results, request)?;
        pick("trial", None, &mut runs, |run| run.trial.to_string())?;
        let run = runs.first().ok_or_else(|| Error::request("there is no such cell"))?;
        Self::finished(run)
    }

    /// The cells that are meant: one clusterer on the trials of one data set, or on the one that is said.
    ///
    /// # Errors
    /// Listing the choices if there are several clusterers or data sets, or none; or that a cell has failed.
    pub fn choose_trials(results: &Results, request: &CellRequest<'_>) -> Result<Vec<Self>> {
        chosen(results, request)?.into_iter().map(Self::finished).collect()
    }

    fn finished(run: &Run) -> Result<Self> {
        let cell = Self { data: run.data.clone(), trial: run.trial, clusterer: run.clusterer.clone() };
        match (&run.error, run.seconds) {
            // What an evaluator failed with does not touch the clusters.
            (_, Some(_)) => Ok(cell),
            (Some(error), None) => {
                let text = format!("{} failed: {error}; choose another cell, or run it again", cell.about());
                Err(Error::request(text))
            }
            (None, None) => {
                Err(Error::request(format!("{} was interrupted; run the pipeline again", cell.about())))
            }
        }
    }

    /// How it is called in messages.
    pub(crate) fn about(&self) -> String {
        format!("{} on {}, trial {}", self.clusterer, self.data, self.trial)
    }
}

/// The cells of the only clusterer and the only data set that can be meant, and of the trial if one is.
fn chosen<'r>(results: &'r Results, request: &CellRequest<'_>) -> Result<Vec<&'r Run>> {
    let tested = results.data();
    // Data that only settled grids is meant only by name.
    let mut runs: Vec<&Run> = match request.data {
        Some(_) => results.runs.iter().collect(),
        None => results.runs.iter().filter(|run| tested.contains(&run.data.as_str())).collect(),
    };
    pick("clusterer", request.clusterer, &mut runs, |run| run.clusterer.clone())?;
    pick("data", request.data, &mut runs, |run| run.data.clone())?;
    if let Some(trial) = request.trial {
        pick("trial", Some(&trial.to_string()), &mut runs, |run| run.trial.to_string())?;
    }
    Ok(runs)
}

/// What was asked for, or the only one; keeps the runs that have it.
fn pick(what: &str, wanted: Option<&str>, runs: &mut Vec<&Run>, value: impl Fn(&Run) -> String) -> Result<String> {
    let all: Vec<String> = runs.iter().map(|run| value(run)).collect();
    let choices: Vec<String> = distinct(all.iter().map(String::as_str)).into_iter().map(str::to_owned).collect();
    let chosen = match (wanted, &choices[..]) {
        (Some(wanted), _) if choices.iter().any(|choice| choice == wanted) => wanted.to_owned(),
        (Some(wanted), _) => {
            let text = format!("the run has no {what} `{wanted}`; it has {}", listed(&choices));
            return Err(Error::request(text));
        }
        (None, [only]) => only.clone(),
        (None, _) => {
            return Err(Error::request(format!("choose with --{what}: {}", listed(&choices))));
        }
    };
    runs.retain(|run| value(run) == chosen);
    Ok(chosen)
}

/// The first of some names, and how many more there are.
fn listed(names: &[String]) -> String {
    let mut text: Vec<String> = names.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
    if names.len() > LISTED {
        text.push(format!("{} more", names.len() - LISTED));
    }
    text.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(data: &str, trial: u32, clusterer: &str) -> Run {
        Run {
            data: data.to_owned(),
            trial,
            clusterer: clusterer.to_owned(),
            n: 3,
            dim: 2,
            seconds: Some(0.1),
            converged: Some(true),
            objective: None,
            singletons: None,
            compositions: None,
            resolved: None,
            error: None,
        }
    }

    #[test]
    fn the_only_one_is_taken_and_several_are_listed() {
        let all = [run("a", 0, "CKM"), run("a", 1, "CKM"), run("a", 0, "AC")];
        let mut runs: Vec<&Run> = all.iter().collect();
        let ambiguous = pick("clusterer", None, &mut runs, |run| run.clusterer.clone()).unwrap_err();
        assert_eq!(ambiguous.to_string(), "choose with --clusterer: `CKM`, `AC`");
        let unknown = pick("clusterer", Some("KM"), &mut runs, |run| run.clusterer.clone()).unwrap_err();
        assert_eq!(unknown.to_string(), "the run has no clusterer `KM`; it has `CKM`, `AC`");
        assert_eq!(pick("data", None, &mut runs, |run| run.data.clone()).unwrap(), "a");
        assert_eq!(pick("clusterer", Some("AC"), &mut runs, |run| run.clusterer.clone()).unwrap(), "AC");
        assert_eq!(pick("trial", None, &mut runs, |run| run.trial.to_string()).unwrap(), "0");
    }

    #[test]
    fn of_many_names_some_are_listed() {
        let names: Vec<String> = (0..30).map(|name| name.to_string()).collect();
        let text = listed(&names);
        assert!(text.ends_with("`11`, 18 more"), "{text}");
    }
}
