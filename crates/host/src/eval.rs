//! `compflow eval`: scores a set-valued column of one file against that of another.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use compflow_api::{ForeignLoader, Kind, LoadRequest, Loader, Services, Sets};

use crate::cell::{Recipe, evaluate};
use crate::cli::EvalArgs;
use crate::dataset::{Builder, Dataset, Ids, Keep, Trial};
use crate::environment::{Answers, Environment, plain};
use crate::failure::Failure;
use crate::files::Inputs;
use crate::registry::{Registry, search_path};
use crate::render::{Format, Grid, field};
use crate::terminal::Terminal;

/// Scores, and renders the scores.
///
/// # Errors
/// If a file or column cannot be read, or the rows do not match.
pub(crate) fn eval(plugins: &[PathBuf], args: &EvalArgs) -> Result<String, Failure> {
    let folders = search_path(plugins).map_err(Failure::request)?;
    let environment = Environment {
        registry: Registry::scan(&folders),
        folder: std::env::current_dir().map_err(|error| Failure::request(plain(&error)))?,
        inputs: Inputs::default(),
        terminal: Terminal::new(false),
        memory: u64::MAX,
    };
    let filter = filter(&args.filter)?;
    let read_both = |trial: Option<&str>| -> Result<(Dataset, Dataset), Failure> {
        let predicted = read(&environment, &args.pred, "clusters", args.id.as_deref(), trial, &filter)?;
        let none = BTreeMap::new();
        Ok((predicted, read(&environment, &args.truth, "labels", args.id.as_deref(), trial, &none)?))
    };
    let (predicted, truth) = match &args.trial {
        Some(trial) => read_both(Some(trial))?,
        None => read_both(Some("trial")).or_else(|_| read_both(None))?,
    };
    let pairs = matched(&predicted, &truth, args.id.is_some()).map_err(Failure::request)?;
    let names: Vec<String> = if args.evaluator.is_empty() {
        environment.registry.names(Kind::Evaluator).map(str::to_owned).collect()
    } else {
        args.evaluator.clone()
    };
    let mut columns: Vec<(String, Vec<f64>)> = Vec::new();
    for name in &names {
        let made = match environment.make(Kind::Evaluator, name, "{}", name) {
            Ok(made) => made,
            Err(error) if args.evaluator.is_empty() => {
                environment.terminal.say(&format!("warning: {name}: left out: {error}"));
                continue;
            }
            Err(error) => return Err(Failure::request(error.to_string())),
        };
        let flags = made.instance.component().flags();
        let recipe =
            Recipe { kind: Kind::Evaluator, name: name.clone(), params: "{}".to_owned(), key: made.key, flags };
        for (_, truth, predicted) in &pairs {
            let scores = evaluate(&environment, &recipe, truth, predicted, name)
                .map_err(|error| Failure::run(format!("evaluator `{name}`: {error}")))?;
            for (metric, value) in scores {
                match columns.iter_mut().find(|(known, _)| *known == metric) {
                    Some((_, values)) => values.push(value),
                    None => columns.push((metric, vec![value])),
                }
            }
        }
    }
    let trials: Vec<u32> = pairs.iter().map(|(trial, ..)| *trial).collect();
    Ok(render(&trials, &columns, args.format))
}

/// `--where` options as the parquet loader's parameter.
fn filter(options: &[String]) -> Result<BTreeMap<String, serde_json::Value>, Failure> {
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
    environment: &Environment,
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
    let params = serde_json::json!({ "where": filter }).to_string();
    let made = environment.make(Kind::Loader, loader, &params, loader).map_err(|error| fail(error.to_string()))?;
    let loader = ForeignLoader::try_from(made.instance).map_err(|error| fail(error.to_string()))?;
    let request =
        LoadRequest { path: Some(&path), embedding: None, truth: Some(column), trial, id, preference: None };
    let answers = Answers::new(environment, file);
    let services = Services { host: &answers, ..Services::none() };
    let batches = loader.load(&request, &services).map_err(|error| Failure::request(error.to_string()))?;
    let mut builder = Builder::new(Keep::Nothing, u64::MAX);
    builder.read(batches).map_err(fail)?;
    builder.finish().map_err(fail)
}

/// Trial by trial, the true and predicted sets of the same examples.
fn matched(predicted: &Dataset, truth: &Dataset, by_id: bool) -> Result<Vec<(u32, Sets, Sets)>, String> {
    predicted
        .trials
        .iter()
        .map(|predicted| {
            let truth = truth.trials.iter().find(|truth| truth.number == predicted.number);
            let truth = truth.ok_or_else(|| format!("the truth has no trial {}", predicted.number))?;
            if predicted.len() != truth.len() {
                return Err(format!(
                    "trial {} has {} predicted and {} true sets; --where picks rows of the predictions",
                    truth.number,
                    predicted.len(),
                    truth.len()
                ));
            }
            let order = if by_id { order_by_id(predicted, truth)? } else { (0..truth.len()).collect() };
            let (Some(predicted), Some(true_sets)) = (&predicted.truth, &truth.truth) else {
                return Err("a file has no sets".to_owned());
            };
            let predicted: Sets = order.iter().map(|row| &predicted[*row]).collect();
            Ok((truth.number, true_sets.clone(), predicted))
        })
        .collect()
}

/// For every row of the truth the row of the predictions with the same id.
fn order_by_id(predicted: &Trial, truth: &Trial) -> Result<Vec<usize>, String> {
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
            rows.get(id.as_str())
                .copied()
                .ok_or_else(|| format!("trial {}: there is no prediction with the id {id}", truth.number))
        })
        .collect()
}

fn render(trials: &[u32], columns: &[(String, Vec<f64>)], format: Format) -> String {
    let header: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    match format {
        Format::Json => {
            let rows: Vec<serde_json::Value> = trials
                .iter()
                .enumerate()
                .map(|(at, trial)| {
                    let mut row = serde_json::Map::from_iter([("trial".to_owned(), (*trial).into())]);
                    row.extend(columns.iter().map(|(name, values)| (name.clone(), values[at].into())));
                    row.into()
                })
                .collect();
            format!("{:#}\n", serde_json::Value::from(rows))
        }
        Format::Csv => {
            let names: Vec<String> = header.iter().map(|name| field(name)).collect();
            let mut text = format!("trial,{}\n", names.join(","));
            for (at, trial) in trials.iter().enumerate() {
                let values: Vec<String> = columns.iter().map(|(_, values)| values[at].to_string()).collect();
                text += &format!("{trial},{}\n", values.join(","));
            }
            text
        }
        Format::Table | Format::Md | Format::Latex => {
            let row = |first: String, value: &dyn Fn(&[f64]) -> f64| -> Vec<String> {
                let cells = columns.iter().map(|(_, values)| format!("{:.4}", value(values)));
                std::iter::once(first).chain(cells).collect()
            };
            let mut rows: Vec<Vec<String>> = trials
                .iter()
                .enumerate()
                .map(|(at, trial)| row(trial.to_string(), &|values| values[at]))
                .collect();
            if rows.len() > 1 {
                rows.push(row("mean".to_owned(), &|values| values.iter().sum::<f64>() / values.len() as f64));
            }
            let header = std::iter::once("trial").chain(header).map(str::to_owned).collect();
            Grid { title: String::new(), header, rows, numbers: true }.render(format)
        }
    }
}
