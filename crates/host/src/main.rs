//! compflow: reads a pipeline, runs its components, leaves Parquet tables behind.

mod cache;
mod cell;
mod check;
mod cli;
mod conformance;
mod dataset;
mod diagnostics;
mod diff;
mod document;
mod environment;
mod eval;
mod failure;
mod files;
mod grid;
mod inspect;
mod interrupt;
mod latex;
mod library;
mod memory;
mod new_plugin;
mod pipeline;
mod plan;
mod record;
mod registry;
mod reload;
mod render;
mod report;
mod results;
mod run;
mod schema;
mod source;
mod summary;
mod tables;
mod terminal;
mod trust;

use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{CommandFactory, Parser};

use crate::check::{Options, Plan, prepare};
use crate::cli::{Cli, Command, PipelineArgs, RunArgs};
use crate::failure::Failure;
use crate::registry::{Registry, search_path};
use crate::render::Format;
use crate::terminal::to_stderr;

fn main() {
    let cli = Cli::parse();
    let code = match dispatch(&cli) {
        Ok(code) => code,
        Err(failure) => {
            to_stderr(&failure.text());
            failure.exit_code()
        }
    };
    // Threads of a component that ignored Ctrl-C may still be running; exiting ends them.
    std::process::exit(code);
}

fn dispatch(cli: &Cli) -> Result<i32, Failure> {
    match &cli.command {
        Command::Run(args) => run(&cli.plugins, args),
        Command::Check { files, set } => check(&cli.plugins, files, set),
        Command::Plan(args) => {
            let Ready { plan, out, .. } = ready(&cli.plugins, args, false)?;
            print(&plan::describe(&plan, &out))
        }
        Command::Plugins { json } => {
            let folders = search_path(&cli.plugins).map_err(Failure::request)?;
            print(&inspect::plugins(&Registry::scan(&folders), &folders, *json))
        }
        Command::Inspect { name, json } => {
            let folders = search_path(&cli.plugins).map_err(Failure::request)?;
            print(&inspect::inspect(&Registry::scan(&folders), name, *json)?)
        }
        Command::Eval(args) => print(&eval::eval(&cli.plugins, args)?),
        Command::Report(args) => match report::report(&cli.plugins, args)? {
            report::Output::Text(text) => print(&text),
            report::Output::File(path) => print(&format!("{}\n", path.display())),
        },
        Command::Diff(args) => {
            let (text, notes) = diff::diff(args)?;
            let printed = print(&text);
            notes.iter().for_each(|note| to_stderr(note));
            printed
        }
        Command::NewPlugin(args) => print(&new_plugin::new_plugin(&cli.plugins, args)?),
        Command::TestPlugin(args) => conformance::test_plugin(&cli.plugins, args),
        Command::Schema => {
            let folders = search_path(&cli.plugins).map_err(Failure::request)?;
            print(&schema::schema(&Registry::scan(&folders)))
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "compflow", &mut script);
            print(&String::from_utf8_lossy(&script))
        }
    }
}

/// Writes to stdout and ends well. A reader that has gone away (`| head`) has what it wanted.
fn print(text: &str) -> Result<i32, Failure> {
    let mut stdout = std::io::stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::run(format!("cannot write to stdout: {}", environment::plain(&error))))
        }
        _ => Ok(0),
    }
}

/// A pipeline ready to run.
struct Ready {
    plan: Arc<Plan>,
    jobs: usize,
    out: PathBuf,
}

fn ready(plugins: &[PathBuf], args: &PipelineArgs, quiet: bool) -> Result<Ready, Failure> {
    interrupt::listen().map_err(Failure::run)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = args.memory.unwrap_or_else(memory::budget);
    let options = Options {
        plugins: plugins.to_vec(),
        set: args.set.clone(),
        only: args.only.clone(),
        threads: args.threads.map_or(cores, |threads| threads as usize),
        memory,
        quiet,
    };
    let mut plan = prepare(&args.file, &options)?;
    // Cells share what there is; more jobs than cells would only make the shares smaller.
    let cells = run::tuning_cells(&plan).len().max(run::test_cells(&plan, &run::assume_first(&plan)).len());
    let jobs = args.jobs.map_or(cores, |jobs| jobs as usize).clamp(1, cells.max(1));
    plan.setting.threads = args.threads.map_or((cores / jobs).max(1), |threads| threads as usize);
    plan.setting.memory = memory / jobs as u64;
    plan.environment.memory = plan.setting.memory;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from("results").join(&plan.name));
    Ok(Ready { plan: Arc::new(plan), jobs, out })
}

fn run(plugins: &[PathBuf], args: &RunArgs) -> Result<i32, Failure> {
    let Ready { plan, jobs, out } = ready(plugins, &args.pipeline, args.quiet)?;
    let options = run::RunOptions { out, jobs, fresh: args.fresh, strict: args.strict };
    let mut finished = run::run(&plan, &options)?;
    let tuning = |data: &str| plan.data.iter().any(|loaded| loaded.tunes && loaded.name == data);
    finished.summary.retain(|entry| !tuning(&entry.data));
    let text = match args.format {
        Format::Latex if !finished.summary.is_empty() => {
            let sizes: Vec<(&str, Option<u32>)> = plan.data.iter().filter(|data| !data.tunes).map(size).collect();
            latex::summary(&finished.summary, |data| results::heading(data, &sizes))
        }
        format => render::summary(&finished.summary, format),
    };
    let printed = print(&text);
    let rows = &finished.rows;
    let count = |wanted: fn(&run::Row) -> bool| rows.iter().filter(|row| wanted(row)).count();
    let (total, failed) = (rows.len(), count(|row| row.error.is_some()));
    let folder = options.out.display();
    if finished.interrupted {
        let done = count(|row| row.outcome.is_some());
        to_stderr(&format!("{done} of {total} cells are kept in {folder}; run again to continue"));
        return Err(Failure::Interrupted);
    }
    if failed > 0 {
        return Err(Failure::run(format!("{failed} of {total} cells failed; {folder}/runs.parquet says why")));
    }
    if !args.quiet {
        let kept = count(|row| row.kept);
        to_stderr(&format!("{total} cells, {kept} of them kept from before, tables in {folder}"));
    }
    printed
}

/// A data set's name, and the number of examples that all its trials have.
fn size(data: &check::LoadedData) -> (&str, Option<u32>) {
    let mut sizes = data.dataset.trials.iter().map(|trial| trial.len() as u32);
    let first = sizes.next();
    (&data.name, first.filter(|first| sizes.all(|size| size == *first)))
}

fn check(plugins: &[PathBuf], files: &[PathBuf], set: &[String]) -> Result<i32, Failure> {
    let mut code = 0;
    for file in files {
        let options = Options {
            plugins: plugins.to_vec(),
            set: set.to_vec(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            memory: memory::budget(),
            ..Options::default()
        };
        match prepare(file, &options) {
            Ok(_) => code = code.max(print(&format!("{}: ok\n", file.display()))?),
            Err(failure) => {
                to_stderr(&failure.text());
                code = failure.exit_code();
            }
        }
    }
    Ok(code)
}
