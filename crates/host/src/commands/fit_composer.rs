//! `compflow fit-composer`: learns g from labelled embeddings, and says which g to take.

use std::path::{Path, PathBuf};

use compflow_api::{Normalize, plural};
use compflow_engine::files::{display, plain};
use compflow_engine::fit::{
    Composed, FitColumns, FitData, FitRequest, Judgement, LibraryComposer, SCALED, Trials, Written, fit_composer,
};

use super::inspect::to_toml;
use super::{plugins, print, print_json};
use crate::cli::{FitComposerArgs, Normalization, Weights};
use crate::failure::Failure;
use crate::output::{Grid, table};
use crate::terminal::{Terminal, interrupt, to_stderr};

/// The composers that are always judged, the simplest first.
const ALWAYS: [&str; 3] = ["max", "sum", "mean"];

/// Runs the command.
///
/// # Errors
/// If the data cannot be read or says nothing about composition, or the weights cannot be written.
pub(crate) fn run(plugins: &[PathBuf], args: &FitComposerArgs) -> Result<i32, Failure> {
    let cancel = interrupt::listen()?;
    let terminal = Terminal::shared(args.quiet);
    let registry = plugins::registry(plugins)?;
    let folder = std::env::current_dir().map_err(|error| Failure::request(plain(&error)))?;
    let out = writable(&args.out)?;
    let columns = columns(&args.columns, args.split.as_deref())?;
    let params = args.params.as_deref().map(|text| object(text, "--params")).transpose()?;
    let data = args.data.iter().map(|path| FitData {
        path: path.clone(),
        loader: args.loader.clone(),
        params: params.clone(),
        columns: columns.clone(),
    });
    let composers = composers(&args.composer)?;
    let request = FitRequest {
        data: data.collect(),
        normalize: match args.normalize {
            Normalization::None => Normalize::None,
            Normalization::L2 => Normalize::L2,
        },
        composers: composers.clone(),
        seed: args.seed,
        threads: args.threads.map(|threads| threads as usize),
    };
    let mut fitted = fit_composer(&request, &registry, &folder, &terminal, &cancel)?;
    let written = match args.write {
        Weights::Fitted => Written::Fitted,
        Weights::ScaledSum => Written::ScaledSum,
    };
    fitted.write(&out, written)?;
    let judgement = fitted.judgement();
    if !args.quiet {
        judgement.warnings.iter().for_each(|warning| to_stderr(&format!("warning: {warning}")));
    }
    if args.json {
        let json = serde_json::to_string_pretty(judgement).map_err(|error| Failure::run(error.to_string()))?;
        return print_json(&format!("{json}\n"));
    }
    print(&text(judgement, &composers, &args.out))
}

/// Those that are always judged, and those that were asked for.
fn composers(asked: &[String]) -> Result<Vec<LibraryComposer>, Failure> {
    let plain = |name: &str| LibraryComposer { component: name.to_owned(), params: None };
    let mut composers = ALWAYS.map(plain).to_vec();
    for text in asked {
        let composer = match text.split_once('=') {
            None => plain(text),
            Some((name, json)) => {
                LibraryComposer { component: name.to_owned(), params: Some(object(json, "--composer NAME=")?) }
            }
        };
        if composers.iter().all(|known| known.name() != composer.name()) {
            composers.push(composer);
        }
    }
    Ok(composers)
}

/// Where the file goes; that it cannot go there is said before anything is computed.
fn writable(path: &Path) -> Result<PathBuf, Failure> {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let name = path.file_name().filter(|_| !path.is_dir());
    match (folder.canonicalize(), name) {
        (Ok(folder), Some(name)) => Ok(folder.join(name)),
        (Ok(_), None) => Err(Failure::request(format!("--out: {} is a folder, not a file", path.display()))),
        (Err(_), _) => Err(Failure::request(format!("--out: there is no folder {}", folder.display()))),
    }
}

fn columns(options: &[String], split: Option<&str>) -> Result<FitColumns, Failure> {
    let mut columns = FitColumns {
        embedding: "embedding".to_owned(),
        truth: "labels".to_owned(),
        trial: Trials::IfThere,
        weight: None,
        split: split.map(str::to_owned),
    };
    // A part without a key goes on with a list: `truth=anna,ben`.
    let mut given: Vec<String> = Vec::new();
    for part in options {
        match given.last_mut() {
            Some(list)
                if !part.contains('=') && ["embedding=", "truth="].iter().any(|key| list.starts_with(key)) =>
            {
                *list += &format!(",{part}");
            }
            _ => given.push(part.trim().to_owned()),
        }
    }
    for option in &given {
        let wrong = || {
            let text = "--columns takes embedding=NAME, truth=NAME, trial=NAME and weight=NAME";
            Failure::request(format!("{text}, found `{option}`"))
        };
        let (column, name) = option.split_once('=').ok_or_else(wrong)?;
        match (column.trim(), name.trim()) {
            ("trial", "") => columns.trial = Trials::No,
            (_, "") => return Err(wrong()),
            ("embedding", name) => columns.embedding = name.to_owned(),
            ("truth", name) => columns.truth = name.to_owned(),
            ("trial", name) => columns.trial = Trials::Column(name.to_owned()),
            ("weight", name) => columns.weight = Some(name.to_owned()),
            _ => return Err(wrong()),
        }
    }
    Ok(columns)
}

fn object(text: &str, option: &str) -> Result<serde_json::Value, Failure> {
    match serde_json::from_str(text) {
        Ok(value @ serde_json::Value::Object(_)) => Ok(value),
        _ => Err(Failure::request(format!("{option} takes a JSON object, found `{text}`"))),
    }
}

/// The judgement for people: what it rests on, the table, and what to take.
fn text(judgement: &Judgement, composers: &[LibraryComposer], out: &Path) -> String {
    let Judgement { examples, dim, labels, unions, folds, .. } = judgement;
    let trials = if judgement.trials > 1 { format!(" in {} trials", judgement.trials) } else { String::new() };
    let classes = match judgement.classes {
        classes if classes >= *labels => String::new(),
        1 => ", which seem to be one class".to_owned(),
        classes => format!(", which seem to be {classes} classes"),
    };
    let unseen = if judgement.labels_unseen { "none of whose labels was seen" } else { "that were not seen" };
    let lambda = judgement.lambda.map_or_else(|| "∞".to_owned(), |lambda| lambda.to_string());
    format!(
        "{} of length {dim}: {}{trials}{classes}; {} of up to {}\n\
         judged on unions {unseen}, {folds} folds; λ = {lambda}, scaled sum {:.4}·(a + b)\n\n{}\n{}",
        plural(*examples, "example"),
        plural(*labels, "label"),
        plural(*unions, "union"),
        judgement.degree,
        judgement.scale,
        table::render(&grid(judgement)),
        advice(judgement, composers, out)
    )
}

/// The table of composers.
pub(crate) fn grid(judgement: &Judgement) -> Grid {
    let header = ["composer", "miss", "explained %", "nearest %", "accuracy %", ""];
    let percent =
        |share: Option<f64>| share.map_or_else(|| "–".to_owned(), |share| format!("{:.1}", 100.0 * share));
    let row = |composed: &Composed| {
        vec![
            composed.name.clone(),
            composed.miss.map_or_else(|| "–".to_owned(), |miss| format!("{miss:.2}")),
            // How much worse than the common centre it is makes no difference.
            match composed.explained {
                Some(explained) if explained < 0.0 => "< 0".to_owned(),
                explained => percent(explained),
            },
            percent(Some(composed.nearest)),
            percent(composed.accuracy),
            mark(judgement, &composed.name).to_owned(),
        ]
    };
    Grid {
        title: String::new(),
        header: header.map(str::to_owned).to_vec(),
        rows: judgement.composers.iter().map(row).collect(),
        numbers: true,
    }
}

fn mark(judgement: &Judgement, name: &str) -> &'static str {
    match (judgement.take == name, judgement.take_for_examples.as_deref() == Some(name)) {
        (true, _) => "take this",
        (_, true) => "for examples",
        _ => "",
    }
}

fn advice(judgement: &Judgement, composers: &[LibraryComposer], out: &Path) -> String {
    let mut text = "miss: how far unions lie from where they are predicted, in units of their own spread; nearest: unions \
         whose own\nprediction is the nearest of all sets; accuracy: examples given to their own set if one example of \
         every label is known\n\n"
        .to_owned();
    text += &match judgement.holds {
        Some(true) => String::new(),
        Some(false) => {
            "composition does not hold in this data (see the warning); the best there is:\n\n".to_owned()
        }
        None => "too few unions to tell whether composition holds; the best there is:\n\n".to_owned(),
    };
    text += &composer(judgement, composers, &judgement.take, out);
    if let Some(other) = &judgement.take_for_examples {
        text += &format!(
            "\nFor `cap`, which composes single examples and not centres, this is better, with the most central example of every label:\n\n{}",
            composer(judgement, composers, other, out)
        );
    }
    text
}

/// What to paste into a pipeline.
fn composer(judgement: &Judgement, composers: &[LibraryComposer], name: &str, out: &Path) -> String {
    if let Some(LibraryComposer { component, params }) = composers.iter().find(|composer| composer.name() == name)
    {
        let params = params.as_ref().map_or_else(String::new, |params| format!("params = {}\n", to_toml(params)));
        return format!("[composer]\nuse = \"{component}\"\n{params}");
    }
    // With an infinite λ the fitted one is the scaled sum.
    let again = match (judgement.written == name || judgement.lambda.is_none(), name) {
        (true, _) => "",
        (false, SCALED) => "   # with --write scaled-sum",
        (false, _) => "   # with --write fitted",
    };
    let params = to_toml(&serde_json::json!({ "weights": display(out) }));
    format!("[composer]\nuse    = \"bilinear\"\nparams = {params}{again}\n")
}
