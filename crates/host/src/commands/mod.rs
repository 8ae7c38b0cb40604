//! The commands, one file each.

mod assign;
mod check;
mod completions;
mod demo;
mod diff;
mod eval;
mod explain;
mod export;
mod fit_composer;
mod init;
mod inspect;
mod new_plugin;
mod plan;
pub(crate) mod plugins;
mod report;
mod run;
mod runs;
mod schema;
mod slurm;
mod status;
mod test_plugin;
mod verify;
mod why;

pub(crate) use self::fit_composer::grid as composers;

use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use compflow_engine::data::loader_of;
use compflow_engine::files::plain;
use compflow_engine::pipeline::{Options, Variables};
use compflow_engine::{Cancel, Observer, Pipeline, Plan, Registry, Resources};

use crate::cli::{Cli, Command, Export, PipelineArgs};
use crate::failure::Failure;
use crate::output::Format;
use crate::terminal::clean::clean;

/// Runs the command that was asked for; returns the exit code.
///
/// # Errors
/// Whatever kept it from its work.
pub(crate) fn dispatch(cli: &Cli) -> Result<i32, Failure> {
    let plugins = &cli.plugins;
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
        Command::Schema => schema::run(plugins),
        Command::Completions { shell } => completions::run(*shell),
    }
}

/// Writes text for people to stdout and ends well.
pub(crate) fn print(text: &str) -> Result<i32, Failure> {
    write(&clean(text))
}

/// Writes a table to stdout: one for programs as it is, so that its names are those of the other tables, unless a terminal
/// would obey what is in it.
pub(crate) fn print_table(format: Format, text: &str) -> Result<i32, Failure> {
    let for_programs = matches!(format, Format::Json | Format::Csv) && !std::io::stdout().is_terminal();
    if for_programs { write(text) } else { print(text) }
}

/// A reader that has gone away (`| head`) has what it wanted.
fn write(text: &str) -> Result<i32, Failure> {
    let mut stdout = std::io::stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
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
        let mut text = String::new();
        let read = piped("pipeline")?.read_to_string(&mut text);
        read.map_err(|error| Failure::request(format!("standard input: {}", plain(&error))))?;
        let folder = std::env::current_dir().map_err(|error| Failure::request(plain(&error)))?;
        return Pipeline::from_text("standard input", text, &folder, options);
    }
    if (file.is_file() && loader_of(file).is_some()) || file.is_dir() {
        let what = if file.is_dir() { "a folder" } else { "data" };
        return Err(Failure::request(format!(
            "{shown} is {what}, not a pipeline; `compflow init {shown}` looks at data and writes a pipeline for it"
        )));
    }
    Pipeline::load(file, options)
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
    let registry = Registry::scan_pinned(&plugins::search_path(plugins)?, &pipeline.pins());
    let resources = Resources {
        jobs: args.jobs.map(|jobs| jobs as usize),
        threads: args.threads.map(|threads| threads as usize),
        memory: args.memory,
    };
    pipeline.plan(&registry, &resources, observer, cancel)
}

/// Where results go.
fn results_folder(args: &PipelineArgs, plan: &Plan) -> PathBuf {
    folder_of(args.out.as_ref(), plan.name())
}

/// Where the results of a pipeline go.
fn folder_of(out: Option<&PathBuf>, pipeline: &str) -> PathBuf {
    out.cloned().unwrap_or_else(|| PathBuf::from("results").join(pipeline))
}
