//! The command line: what there is to ask for. A file for the options of each command.

mod assign;
mod demo;
mod diff;
mod eval;
mod export;
mod fit_composer;
mod init;
mod instead;
mod new_plugin;
mod pipeline;
mod report;
mod run;
mod slurm;
mod status;
mod test_plugin;
mod values;
mod why;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use self::assign::AssignArgs;
pub(crate) use self::demo::{DemoArgs, DemoName};
pub(crate) use self::diff::DiffArgs;
pub(crate) use self::eval::EvalArgs;
pub(crate) use self::export::{Export, RttmArgs};
pub(crate) use self::fit_composer::{FitComposerArgs, Normalization, Weights};
pub(crate) use self::init::{InitArgs, PIPELINE};
pub(crate) use self::instead::instead_of;
pub(crate) use self::new_plugin::{Language, NewPluginArgs};
pub(crate) use self::pipeline::PipelineArgs;
pub(crate) use self::report::{Layout, Pages, ReportArgs};
pub(crate) use self::run::{PhaseName, RunArgs};
pub(crate) use self::slurm::SlurmArgs;
pub(crate) use self::status::StatusArgs;
pub(crate) use self::test_plugin::TestPluginArgs;
pub(crate) use self::why::WhyArgs;

/// Clusters data with overlapping labels: runs pipelines of components from dynamic libraries.
#[derive(Debug, Parser)]
#[command(name = "compflow", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Search this folder for plugins first; may be given several times.
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) plugins: Vec<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a bundled example, from nothing to a report, and say what to look at.
    Demo(DemoArgs),
    /// Look at data and write a commented pipeline for it.
    Init(InitArgs),
    /// Run a pipeline and write its tables.
    Run(RunArgs),
    /// Find everything that is wrong with pipelines, short of running them.
    Check {
        /// Pipeline files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Lay a value over the pipeline, e.g. clusterer.NAME.k=12; may be given several times.
        #[arg(long, value_name = "KEY=VALUE")]
        set: Vec<String>,
    },
    /// Show the cells of a pipeline: how many, how many are kept, how much memory they need.
    Plan(PipelineArgs),
    /// Say what a run would compute, and which changed input is the reason.
    Why(WhyArgs),
    /// Show how far the parts of a pipeline's run are.
    Status(StatusArgs),
    /// List all results folders, with pipeline, age, best method and state.
    Runs {
        /// Where to look.
        #[arg(default_value = "results", value_name = "DIR")]
        folder: PathBuf,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Read everything in results folders, and say what is not as it was written.
    Verify {
        /// Results folders.
        #[arg(required = true, value_name = "RUN")]
        folders: Vec<PathBuf>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write job scripts that run a pipeline in parts on a Slurm cluster, or submit them.
    Slurm(SlurmArgs),
    /// List every library found, and why if one is not used.
    Plugins {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Describe a component: what it does, its parameters, an example to paste.
    Inspect {
        /// The component's name.
        name: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Explain the code of a message, such as C012: what it means, an example, and what to do.
    Explain {
        /// The code [default: list all].
        code: Option<String>,
    },
    /// Score the sets of one file against those of another: lists, 0/1 columns or delimited strings.
    Eval(EvalArgs),
    /// Give new examples to the clusters of a finished run.
    Assign(AssignArgs),
    /// Write what a run has found as other tools read it.
    #[command(subcommand)]
    Export(Export),
    /// Learn a composition function from labelled embeddings, and find out which one to take.
    FitComposer(FitComposerArgs),
    /// Make one self-contained HTML page of a run, to look at and to click, or Markdown tables of several.
    Report(ReportArgs),
    /// Compare two runs trial by trial: what got significantly better or worse.
    Diff(DiffArgs),
    /// Make a folder with a new plugin that builds, runs in the pipeline beside it, and has a test.
    NewPlugin(NewPluginArgs),
    /// Find out whether a library behaves as a plugin must; exits with 1 if it does not.
    TestPlugin(TestPluginArgs),
    /// Compute cells for the run that has started this.
    #[command(hide = true)]
    Worker,
    /// Say what libraries offer, for the process that has started this.
    #[command(hide = true)]
    Describe {
        /// What each must hold, and its file.
        libraries: Vec<std::ffi::OsString>,
    },
    /// Make components, for the process that has started this.
    #[command(hide = true)]
    Rehearse,
    /// Print a JSON Schema of pipeline files, for editors, that knows all components found.
    Schema,
    /// Print a completion script.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
