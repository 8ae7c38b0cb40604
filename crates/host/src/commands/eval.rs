//! `compflow eval`: scores the sets of one file against those of another.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use compflow_api::{Kind, Sets};
use compflow_engine::causes::Cause;
use compflow_engine::data::{Dataset, Described, Source, Trial, loader_of};
use compflow_engine::files::plain;
use compflow_engine::results::{Labels, Scorer, SetsRequest, own_table};
use compflow_engine::{Level, Observer};

use super::{plugins, print_table};
use crate::cli::EvalArgs;
use crate::failure::Failure;
use crate::output::{Grid, Output, Records, Value};
use crate::terminal::{Terminal, interrupt, to_stderr};

/// How many of many a message names.
const NAMED: usize = 5;

/// Runs the command.
///
/// # Errors
/// If a file or column cannot be read, or the rows do not match.
pub(crate) fn run(plugins: &[PathBuf], args: &EvalArgs) -> Result<i32, Failure> {
    let cancel = interrupt::listen()?;
    let registry = plugins::registry(plugins)?;
    let folder = std::env::current_dir().map_err(|error| Failure::request(plain(&error)))?;
    let terminal = Terminal::shared(false);
    let scorer = Scorer::new(&registry, &folder, &terminal, &cancel);
    let split = args.split.as_deref();
    // What matches rows and trials is no label.
    let others = [Some("trial"), Some("id"), args.trial.as_deref(), args.id.as_deref()];
    let others: Vec<&str> = others.into_iter().flatten().collect();
    let open = |named, usual, filter| SetsFile::open(&scorer, named, usual, (split, &others), filter, &*terminal);
    let predicted = open(&args.pred, "clusters", filter(&args.filter)?)?;
    let truth = open(&args.truth, "labels", BTreeMap::new())?;
    let is_split = |file: &SetsFile| matches!(file.labels, Labels::Delimited { .. });
    if split.is_some() && !is_split(&predicted) && !is_split(&truth) {
        return Err(Failure::request("--split is for columns of strings, and neither file has its sets in one"));
    }
    // What nobody named is used if both have it.
    let usual = |name: &'static str| {
        let both = [&predicted, &truth].iter().all(|file| file.described.holds(name).is_some());
        both.then_some(name)
    };
    let trial = match args.trial.as_deref() {
        None => usual("trial"),
        Some(named) => Some(named).filter(|named| !named.is_empty()),
    };
    let id = args.id.as_deref().or_else(|| usual("id").filter(|_| !args.order));
    let has_id = |file: &&SetsFile| file.described.holds("id").is_some();
    if id.is_none()
        && !args.order
        && let Some(only) = [&predicted, &truth].into_iter().find(has_id)
    {
        let text = "rows are matched by their order, as the other file has no column `id`; --order says that this is meant";
        terminal.log(Level::Warn, only.file, text);
    }
    let hint = match args.id {
        None => "--where picks rows of the predictions, --order matches rows by their order",
        Some(_) => "--where picks rows of the predictions",
    };
    let found = predicted.read(&scorer, trial, id, terminal.as_ref()).map_err(|error| match error {
        Failure::Data(problem) if problem.cause == Cause::Identifier => {
            Failure::Data(Box::new(problem.help(hint)))
        }
        other => other,
    })?;
    let truth = truth.read(&scorer, trial, id, terminal.as_ref())?;
    let unscored =
        truth.trials.iter().filter(|truth| !found.trials.iter().any(|trial| trial.number == truth.number));
    let unscored: Vec<String> = unscored.map(|trial| trial.number.to_string()).collect();
    if !unscored.is_empty() && args.filter.is_empty() {
        let text = format!("not scored, as there are no predictions for them: trials {}", some(&unscored));
        terminal.log(Level::Warn, &args.pred, &text);
    }
    let pairs = matched(&found, &truth, id.is_some())?;
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
    print_table(args.format, &ScoreTable { trials, columns })
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

/// A file, and where its sets are.
struct SetsFile<'a> {
    /// As the user called it.
    file: &'a str,
    path: PathBuf,
    loader: &'static str,
    params: serde_json::Value,
    described: Described,
    labels: Labels,
}

impl<'a> SetsFile<'a> {
    /// Finds the sets of `FILE` or `FILE:COLUMN`, among all columns but `others`; says which they are if nobody said so.
    fn open(
        scorer: &Scorer,
        named: &'a str,
        usual: &str,
        (split, others): (Option<&str>, &[&str]),
        filter: BTreeMap<String, serde_json::Value>,
        observer: &dyn Observer,
    ) -> Result<Self, Failure> {
        let (file, column) = match named.rsplit_once(':') {
            Some((file, column)) if !column.is_empty() && !Path::new(named).exists() => (file, Some(column)),
            _ => (named, None),
        };
        let fail = |text: String| Failure::request(format!("{file}: {text}"));
        let named = Path::new(file);
        let real = if named.is_symlink() { named.canonicalize().ok() } else { None };
        let own = own_table(real.as_deref().unwrap_or(named), observer)?;
        let path = own.as_deref().unwrap_or(named).canonicalize().map_err(|error| fail(plain(&error)))?;
        let loader = loader_of(&path)
            .filter(|loader| *loader != "npy")
            .ok_or_else(|| fail("expected a .parquet, .arrow, .csv, .tsv or .jsonl file".to_owned()))?;
        let params = serde_json::json!({ "where": filter });
        let source = Source { path: &path, loader, params: &params, split: None, about: file };
        let described = scorer.describe(source)?;
        let labels = Labels::find(&described, column, usual, split, || scorer.flags(source, &described, others));
        let labels = labels.map_err(|error| match error {
            Failure::Request(text) => fail(text),
            other => other,
        })?;
        if let Labels::Indicators(columns) = &labels
            && column.is_none()
        {
            let left_out = described.columns.iter().map(|column| column.name.clone());
            let left_out: Vec<String> =
                left_out.filter(|name| !columns.contains(name) && !others.contains(&name.as_str())).collect();
            let left_out = match left_out.is_empty() {
                true => String::new(),
                false => format!("; left out: {}", some(&left_out)),
            };
            to_stderr(&format!("{file}: its labels are the columns {}{left_out}", some(columns)));
        }
        Ok(Self { file, path, loader, params, described, labels })
    }

    /// Reads the sets.
    fn read(
        &self,
        scorer: &Scorer,
        trial: Option<&str>,
        id: Option<&str>,
        observer: &dyn Observer,
    ) -> Result<Dataset, Failure> {
        let (path, loader, params) = (&self.path, self.loader, &self.params);
        let source = Source { path, loader, params, split: None, about: self.file };
        let read =
            scorer.read(SetsRequest { source, labels: &self.labels, trial, id }).map_err(|error| match error {
                Failure::Data(mut problem) => {
                    // Neither file is a pipeline's data, and one of them is no truth.
                    problem.text = problem.text.replace("the truth ", "the set ");
                    let separator = problem.help.as_deref().and_then(|help| {
                        let (_, help) = help.split_once("split = \"")?;
                        Some(help.split_once('"')?.0.to_owned())
                    });
                    let help = match (problem.cause, separator) {
                        (Cause::LabelMissing, _) => {
                            "an empty set is an empty list, in a text `[]`; with --split an empty text is one, too".to_owned()
                        }
                        (Cause::LabelText, Some(separator)) => {
                            format!("--split '{separator}' takes it apart, or write lists into the file")
                        }
                        (Cause::TrialNumber, _) => {
                            "give every trial the same whole number in both files; --trial '' scores all rows as one trial".to_owned()
                        }
                        _ => return Failure::Data(problem),
                    };
                    Failure::Data(Box::new(problem.help(help)))
                }
                other => other,
            })?;
        if let Labels::Sets(_) = self.labels
            && let Some(text) = read.classes.iter().find(|name| name.contains([',', ';', '|']))
        {
            let text = format!("`{text}` is taken for one label; --split takes strings apart");
            observer.log(Level::Warn, self.file, &text);
        }
        Ok(read)
    }
}

/// The first of some names, and how many there are if not all are named.
fn some(names: &[String]) -> String {
    let first = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > NAMED { format!("{first}, … ({} in all)", names.len()) } else { first }
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
            let order = if by_id { order_by_id(predicted, truth)? } else { in_order(predicted, truth)? };
            let (Some(predicted), Some(true_sets)) = (&predicted.truth, &truth.truth) else {
                return Err(Failure::request("a file has no sets"));
            };
            let predicted: Sets = order.iter().map(|row| &predicted[*row]).collect();
            Ok((truth.number, true_sets.clone(), predicted))
        })
        .collect()
}

/// Row by row.
fn in_order(predicted: &Trial, truth: &Trial) -> Result<Vec<usize>, Failure> {
    if predicted.size() == truth.size() {
        return Ok((0..truth.size()).collect());
    }
    Err(Failure::request(format!(
        "trial {} has {} predicted and {} true sets; --where picks rows of the predictions, --id matches rows by a column",
        truth.number,
        predicted.size(),
        truth.size()
    )))
}

/// For every row of the truth the row of the predictions with the same id.
fn order_by_id(predicted: &Trial, truth: &Trial) -> Result<Vec<usize>, Failure> {
    let (found, wanted) = (predicted.ids.texts(), truth.ids.texts());
    let rows: HashMap<&str, usize> = found.iter().map(String::as_str).zip(0..).collect();
    let missing: Vec<String> = wanted.iter().filter(|id| !rows.contains_key(id.as_str())).cloned().collect();
    let known: BTreeSet<&str> = wanted.iter().map(String::as_str).collect();
    let further: Vec<String> = found.iter().filter(|id| !known.contains(id.as_str())).cloned().collect();
    let mut wrong = Vec::new();
    if !missing.is_empty() {
        wrong.push(format!(
            "{} of {} true examples have no prediction: id {}",
            missing.len(),
            wanted.len(),
            some(&missing)
        ));
    }
    if !further.is_empty() {
        wrong.push(format!(
            "{} of {} predictions are of no true example: id {}",
            further.len(),
            found.len(),
            some(&further)
        ));
    }
    if !wrong.is_empty() {
        return Err(Failure::request(format!("trial {}: {}", truth.number, wrong.join("; "))));
    }
    Ok(wanted.iter().filter_map(|id| rows.get(id.as_str()).copied()).collect())
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
