//! The commands, one file each.

mod assign;
mod check;
mod completions;
mod demo;
mod describe;
mod diff;
mod eval;
mod explain;
mod export;
mod fit_composer;
mod init;
mod inspect;
mod new_plugin;
mod place;
mod plan;
pub(crate) mod plugins;
mod rehearse;
mod report;
mod run;
mod runs;
mod schema;
mod slurm;
mod status;
mod test_plugin;
mod verify;
mod why;
mod worker;

pub(crate) use self::fit_composer::grid as composers;

use std::io::{ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use compflow_engine::data::loader_of;
use compflow_engine::files::plain;
use compflow_engine::pipeline::{Options, Variables};
use compflow_engine::plugin::library;
use compflow_engine::results::RunRecord;
use compflow_engine::{Cancel, Level, Observer, Pipeline, Plan, Resources};

use crate::cli::{Cli, Command, Export, PipelineArgs};
use crate::failure::Failure;
use crate::output::{Format, Output};
use crate::terminal::clean::{clean, escaped};
#[cfg(unix)]
use crate::terminal::crash;
use crate::terminal::stdout;

/// Runs the command that was asked for; returns the exit code.
///
/// # Errors
/// Whatever kept it from its work.
pub(crate) fn dispatch(cli: &Cli) -> Result<i32, Failure> {
    let plugins = &cli.plugins;
    // What a plugin does while it is tested is seen by the process that has started this one, and held against it.
    let tests = matches!(&cli.command, Command::TestPlugin(args) if args.worker.is_some());
    if !tests {
        stdout::take();
        library::print_lines();
    }
    #[cfg(unix)]
    if !tests && !matches!(cli.command, Command::Worker | Command::Describe { .. } | Command::Rehearse) {
        crash::name_culprits();
    }
    match &cli.command {
        Command::Demo(args) => demo::run(plugins, args),
        Command::Init(args) => init::run(plugins, args),
        Command::Run(args) => run::run(plugins, args),
        Command::Check { files, set } => check::run(plugins, files, set),
        Command::Plan(args) => plan::run(plugins, args),
        Command::Runs { folder, json } => runs::run(folder, *json),
        Command::Why(args) => why::run(plugins, args),
        Command::Status(args) => status::run(args),
        Command::Verify { folders, json } => verify::run(folders, *json),
        Command::Slurm(args) => slurm::run(plugins, args),
        Command::Plugins { json } => plugins::run(plugins, *json),
        Command::Inspect { name, json } => inspect::run(plugins, name, *json),
        Command::Explain { code } => explain::run(code.as_deref()),
        Command::Eval(args) => eval::run(plugins, args),
        Command::Assign(args) => assign::run(plugins, args),
        Command::Export(Export::Rttm(args)) => export::rttm(plugins, args),
        Command::FitComposer(args) => fit_composer::run(plugins, args),
        Command::Report(args) => report::run(plugins, args),
        Command::Diff(args) => diff::run(args),
        Command::NewPlugin(args) => new_plugin::run(plugins, args),
        Command::TestPlugin(args) => test_plugin::run(plugins, args),
        Command::Worker => worker::run(plugins),
        Command::Describe { libraries } => describe::run(libraries),
        Command::Rehearse => rehearse::run(plugins),
        Command::Schema => schema::run(plugins),
        Command::Completions { shell } => completions::run(*shell),
    }
}

/// Writes text for people to stdout and ends well.
pub(crate) fn print(text: &str) -> Result<i32, Failure> {
    write(&clean(text))
}

/// Writes JSON to stdout; its values stay as they are.
pub(crate) fn print_json(text: &str) -> Result<i32, Failure> {
    write(&escaped(text))
}

/// Writes a table to stdout.
pub(crate) fn print_table(format: Format, table: &dyn Output) -> Result<i32, Failure> {
    let text = format.render(table);
    if format == Format::Json { print_json(&text) } else { print(&text) }
}

/// A reader that has gone away (`| head`) has what it wanted.
fn write(text: &str) -> Result<i32, Failure> {
    match stdout::write(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::run(format!("cannot write to stdout: {}", plain(&error))))
        }
        _ => Ok(0),
    }
}

/// `${NAME}` in paths is an environment variable.
pub(crate) fn variables() -> Variables {
    Variables::new(|name| std::env::var(name).ok())
}

/// The name of standard input.
const STDIN: &str = "-";

/// Standard input, if something is piped into it.
fn piped(what: &str) -> Result<std::io::StdinLock<'static>, Failure> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(Failure::request(format!(
            "`-` is standard input, which is this terminal: pipe the {what} in"
        )));
    }
    Ok(stdin.lock())
}

/// Reads a pipeline from a file, or from standard input if that is called `-`.
fn load(file: &Path, options: &Options) -> Result<Pipeline, Failure> {
    let shown = file.display();
    if file == Path::new(STDIN) {
        let folder = std::env::current_dir().map_err(|error| Failure::request(plain(&error)))?;
        return Pipeline::from_reader("standard input", piped("pipeline")?, &folder, options);
    }
    if file.is_dir()
        && let Ok(record) = RunRecord::read(file)
    {
        let own = file == folder_of(None, &record.name);
        return Err(Failure::request(format!(
            "{shown} is the results folder of {}, not a pipeline: give that{}",
            pipeline_of(&record).display(),
            if own { String::new() } else { format!(", and for its results `--out {shown}`") }
        )));
    }
    if (file.is_file() && loader_of(file).is_some()) || file.is_dir() {
        let what = if file.is_dir() { "a folder" } else { "data" };
        return Err(Failure::request(format!(
            "{shown} is {what}, not a pipeline; `compflow init {shown}` looks at data and writes a pipeline for it"
        )));
    }
    Pipeline::load(file, options)
}

/// The pipeline file of a run: it was named as it is found from where the run was started.
fn pipeline_of(record: &RunRecord) -> PathBuf {
    let named = PathBuf::from(&record.file);
    match named.file_name().map(|name| record.folder.join(name)) {
        Some(found) if !named.is_file() && found.is_file() => found,
        _ => named,
    }
}

/// Reads a pipeline and everything it names.
fn prepare(
    plugins: &[PathBuf],
    args: &PipelineArgs,
    observer: &Arc<dyn Observer>,
    cancel: &Cancel,
) -> Result<Arc<Plan>, Failure> {
    let options = Options { set: args.set.clone(), only: args.only.clone(), variables: variables() };
    let mut pipeline = load(&args.file, &options)?;
    if pipeline.reads_stdin() {
        if args.file == Path::new(STDIN) {
            return Err(Failure::request("the pipeline and its data cannot both be on standard input"));
        }
        pipeline.take_stdin(&mut piped("data")?)?;
    }
    let registry = plugins::scanned(&plugins::search_path(plugins)?, &pipeline.pins())
        .rehearsed(rehearse::rehearsal(plugins, pipeline.pins()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let within = |option: &str, asked: u32| {
        if asked as usize > cores {
            let text =
                format!("{option} {asked}: this machine runs {cores} threads at once, and so many are taken");
            observer.log(Level::Warn, "", &text);
        }
        cores.min(asked as usize)
    };
    let resources = Resources {
        jobs: args.jobs.map(|jobs| within("--jobs", jobs)),
        threads: args.threads.map(|threads| within("--threads", threads)),
        memory: args.memory,
    };
    let here = std::env::current_dir();
    let plan = pipeline.plan(&registry, &resources, observer, cancel);
    // A component may have gone elsewhere while it was made, and the results folder is relative to where the user is.
    let _ = here.map(std::env::set_current_dir);
    plan
}

/// Where results go.
fn results_folder(args: &PipelineArgs, plan: &Plan) -> PathBuf {
    folder_of(args.out.as_ref(), plan.name())
}

/// Where the results of a pipeline go.
fn folder_of(out: Option<&PathBuf>, pipeline: &str) -> PathBuf {
    out.cloned().unwrap_or_else(|| PathBuf::from("results").join(pipeline))
}
