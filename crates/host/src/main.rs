//! compflow: reads a pipeline, runs its components, leaves Parquet tables behind.

mod cache;
mod cell;
mod check;
mod cli;
mod dataset;
mod diagnostics;
mod document;
mod environment;
mod eval;
mod failure;
mod files;
mod grid;
mod inspect;
mod interrupt;
mod library;
mod memory;
mod pipeline;
mod plan;
mod record;
mod registry;
mod render;
mod run;
mod summary;
mod tables;
mod terminal;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{CommandFactory, Parser};

use crate::check::{Options, Plan, prepare};
use crate::cli::{Cli, Command, PipelineArgs, RunArgs};
use crate::failure::Failure;
use crate::registry::{Registry, search_path};

fn main() {
    let cli = Cli::parse();
    let code = match dispatch(&cli) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("{}", failure.text());
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
            let (plan, jobs_out) = plan_of(&cli.plugins, &args.pipeline, false)?;
            print(&plan::describe(&plan, &jobs_out.1));
            Ok(0)
        }
        Command::Plugins { json } => {
            let folders = search_path(&cli.plugins).map_err(Failure::request)?;
            print(&inspect::plugins(&Registry::scan(&folders), &folders, *json));
            Ok(0)
        }
        Command::Inspect { name, json } => {
            let folders = search_path(&cli.plugins).map_err(Failure::request)?;
            print(&inspect::inspect(&Registry::scan(&folders), name, *json)?);
            Ok(0)
        }
        Command::Eval(args) => {
            print(&eval::eval(&cli.plugins, args)?);
            Ok(0)
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "compflow", &mut script);
            print(&String::from_utf8_lossy(&script));
            Ok(0)
        }
    }
}

/// Writes to stdout. A reader that has gone away (`| head`) has what it wanted.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// A pipeline ready to run, how many jobs to run it with, and where its results go.
fn plan_of(
    plugins: &[PathBuf],
    args: &PipelineArgs,
    quiet: bool,
) -> Result<(Arc<Plan>, (usize, PathBuf)), Failure> {
    interrupt::listen().map_err(Failure::run)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.map_or(cores, |jobs| jobs as usize);
    let options = Options {
        plugins: plugins.to_vec(),
        set: args.set.clone(),
        only: args.only.clone(),
        threads: args.threads.map_or((cores / jobs).max(1), |threads| threads as usize),
        memory: args.memory.unwrap_or_else(memory::budget) / jobs as u64,
        quiet,
    };
    let plan = prepare(&args.file, &options)?;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from("results").join(&plan.name));
    Ok((Arc::new(plan), (jobs, out)))
}

fn run(plugins: &[PathBuf], args: &RunArgs) -> Result<i32, Failure> {
    let (plan, (jobs, out)) = plan_of(plugins, &args.pipeline, args.quiet)?;
    let options = run::RunOptions { out, jobs, fresh: args.fresh, strict: args.strict };
    let finished = run::run(&plan, &options)?;
    let tuning = |data: &str| plan.data.iter().any(|loaded| loaded.tunes && loaded.name == data);
    let mut entries = summary::summarize(&plan, &finished.rows);
    entries.retain(|entry| !tuning(&entry.data));
    print(&render::summary(&entries, args.format));
    if finished.interrupted {
        return Err(Failure::Interrupted);
    }
    let failed = finished.rows.iter().filter(|row| row.error.is_some()).count();
    let total = finished.rows.len();
    if failed > 0 {
        return Err(Failure::run(format!("{failed} of {total} cells failed; runs.parquet says why")));
    }
    if !args.quiet {
        eprintln!("{total} cells, tables in {}", options.out.display());
    }
    Ok(0)
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
            Ok(_) => print(&format!("{}: ok\n", file.display())),
            Err(failure) => {
                eprintln!("{}", failure.text());
                code = failure.exit_code();
            }
        }
    }
    Ok(code)
}
