//! `compflow eval`: scores a set-valued column of one file against that of another.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use compflow_api::{Kind, Sets};
use compflow_engine::data::{Dataset, Ids, Trial};
use compflow_engine::files::plain;
use compflow_engine::results::{Scorer, SetsRequest};
use compflow_engine::{Cancel, Level};

use super::{plugins, print_table};
use crate::cli::EvalArgs;
use crate::failure::Failure;
use crate::output::{Grid, Output, Records, Value};
use crate::terminal::Terminal;

/// Runs the command.
///
/// # Errors
/// If a file or column cannot be read, or the rows do not match.
pub(crate) fn run(plugins: &[PathBuf], args: &EvalArgs) -> Result<i32, Failure> {
    let registry = plugins::registry(plugins)?;
    let folder = std::env::current_dir().map_err(|error| Failure::request(plain(&error)))?;
    let terminal = Terminal::shared(false);
    let scorer = Scorer::new(&registry, folder, &terminal, &Cancel::new());
    let filter = filter(&args.filter)?;
    let read_both = |trial: Option<&str>| -> Result<(Dataset, Dataset), Failure> {
        let predicted = read(&scorer, &args.pred, "clusters", args.id.as_deref(), trial, &filter)?;
        let none = BTreeMap::new();
        Ok((predicted, read(&scorer, &args.truth, "labels", args.id.as_deref(), trial, &none)?))
    };
    let (predicted, truth) = match &args.trial {
        Some(trial) => read_both(Some(trial))?,
        None => read_both(Some("trial")).or_else(|_| read_both(None))?,
    };
    let pairs = matched(&predicted, &truth, args.id.is_some())?;
    let names: Vec<String> = if args.evaluator.is_empty() {
        registry.names(Kind::Evaluator).map(str::to_owned).collect()
    } else {
        args.evaluator.clone()
    };
    let mut columns: Vec<(String, Vec<f64>)> = Vec::new();
    for name in &names {
        let evaluator = match scorer.evaluator(name) {
            Ok(evaluator) => evaluator,
            // Of all evaluators, those that look at more than sets are not meant.
            Err(Failure::Request(_)) if args.evaluator.is_empty() => continue,
            Err(error) if args.evaluator.is_empty() => {
                terminal.log(Level::Warn, name, &format!("left out: {error}"));
                continue;
            }
            Err(error) => return Err(error),
        };
        for (_, truth, predicted) in &pairs {
            let scores = scorer
                .score(&evaluator, truth, predicted)
                .map_err(|error| Failure::run(format!("evaluator `{name}`: {error}")))?;
            for (metric, value) in scores {
                match columns.iter_mut().find(|(known, _)| *known == metric) {
                    Some((_, values)) => values.push(value),
                    None => columns.push((metric, vec![value])),
                }
            }
        }
    }
    let trials = pairs.iter().map(|(trial, ..)| *trial).collect();
    print_table(args.format, &args.format.render(&ScoreTable { trials, columns }))
}

/// `--where` options as the parquet loader's parameter.
pub(super) fn filter(options: &[String]) -> Result<BTreeMap<String, serde_json::Value>, Failure> {
    options
        .iter()
        .map(|option| {
            let (column, value) = option
                .split_once('=')
                .ok_or_else(|| Failure::request(format!("--where takes COLUMN=VALUE, found `{option}`")))?;
            let value = serde_json::from_str(value).unwrap_or_else(|_| serde_json::Value::from(value));
            Ok((column.to_owned(), value))
        })
        .collect()
}

fn read(
    scorer: &Scorer,
    source: &str,
    default_column: &str,
    id: Option<&str>,
    trial: Option<&str>,
    filter: &BTreeMap<String, serde_json::Value>,
) -> Result<Dataset, Failure> {
    let (file, column) = match source.rsplit_once(':') {
        Some((file, column)) if !column.is_empty() && !Path::new(source).exists() => (file, column),
        _ => (source, default_column),
    };
    let fail = |text: String| Failure::request(format!("{file}: {text}"));
    let path = Path::new(file).canonicalize().map_err(|error| fail(plain(&error)))?;
    let loader = match path.extension().and_then(|extension| extension.to_str()) {
        Some("parquet" | "pq") => "parquet",
        Some("arrow" | "arrows" | "ipc" | "feather") => "arrow",
        _ => return Err(fail("expected a .parquet or .arrow file".to_owned())),
    };
    let params = serde_json::json!({ "where": filter });
    scorer.read(&SetsRequest { path: &path, loader, params, column, trial, id }, file)
}

/// Trial by trial, the true and predicted sets of the same examples.
fn matched(predicted: &Dataset, truth: &Dataset, by_id: bool) -> Result<Vec<(u32, Sets, Sets)>, Failure> {
    predicted
        .trials
        .iter()
        .map(|predicted| {
            let truth = truth.trials.iter().find(|truth| truth.number == predicted.number);
            let truth =
                truth.ok_or_else(|| Failure::request(format!("the truth has no trial {}", predicted.number)))?;
            if predicted.size() != truth.size() {
                return Err(Failure::request(format!(
                    "trial {} has {} predicted and {} true sets; --where picks rows of the predictions",
                    truth.number,
                    predicted.size(),
                    truth.size()
                )));
            }
            let order = if by_id { order_by_id(predicted, truth)? } else { (0..truth.size()).collect() };
            let (Some(predicted), Some(true_sets)) = (&predicted.truth, &truth.truth) else {
                return Err(Failure::request("a file has no sets"));
            };
            let predicted: Sets = order.iter().map(|row| &predicted[*row]).collect();
            Ok((truth.number, true_sets.clone(), predicted))
        })
        .collect()
}

/// For every row of the truth the row of the predictions with the same id.
fn order_by_id(predicted: &Trial, truth: &Trial) -> Result<Vec<usize>, Failure> {
    let texts = |ids: &Ids| -> Vec<String> {
        match ids {
            Ids::Numbers(ids) => ids.iter().map(ToString::to_string).collect(),
            Ids::Texts(ids) => ids.clone(),
        }
    };
    let ids = texts(&predicted.ids);
    let rows: HashMap<&str, usize> = ids.iter().map(String::as_str).zip(0..).collect();
    texts(&truth.ids)
        .iter()
        .map(|id| {
            rows.get(id.as_str()).copied().ok_or_else(|| {
                Failure::request(format!("trial {}: there is no prediction with the id {id}", truth.number))
            })
        })
        .collect()
}

/// Scores: a row for each trial, a column for each metric.
struct ScoreTable {
    trials: Vec<u32>,
    columns: Vec<(String, Vec<f64>)>,
}

impl ScoreTable {
    fn header(&self) -> Vec<String> {
        std::iter::once("trial")
            .chain(self.columns.iter().map(|(name, _)| name.as_str()))
            .map(str::to_owned)
            .collect()
    }
}

impl Output for ScoreTable {
    fn records(&self) -> Records {
        let row = |(at, trial): (usize, &u32)| {
            let values = self.columns.iter().map(|(_, values)| Value::from(values[at]));
            std::iter::once(Value::Count(*trial as usize)).chain(values).collect()
        };
        Records { columns: self.header(), rows: self.trials.iter().enumerate().map(row).collect() }
    }

    /// Also with the mean over trials, if there are several.
    fn grids(&self) -> Vec<Grid> {
        let row = |first: String, value: &dyn Fn(&[f64]) -> f64| -> Vec<String> {
            let texts = self.columns.iter().map(|(_, values)| format!("{:.4}", value(values)));
            std::iter::once(first).chain(texts).collect()
        };
        let mut rows: Vec<Vec<String>> = self
            .trials
            .iter()
            .enumerate()
            .map(|(at, trial)| row(trial.to_string(), &|values| values[at]))
            .collect();
        if rows.len() > 1 {
            rows.push(row("mean".to_owned(), &|values| values.iter().sum::<f64>() / values.len() as f64));
        }
        vec![Grid { title: String::new(), header: self.header(), rows, numbers: true }]
    }
}
