//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use compflow_api::Kind;
use compflow_engine::run::{Part, Phase};

use crate::output::Format;

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
    /// Show how far the parts of a run are, from its results folder.
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
        /// The library files.
        libraries: Vec<PathBuf>,
    },
    /// Print a JSON Schema of pipeline files, for editors, that knows all components found.
    Schema,
    /// Print a completion script.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// The bundled examples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoName {
    /// Handwritten digits, one or two over one another, as raw pixels.
    Digits,
    /// Recordings of one or two people.
    Speech,
    /// Documents about one topic or two.
    Topics,
}

impl DemoName {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Digits => "digits",
            Self::Speech => "speech",
            Self::Topics => "topics",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Which example.
    #[arg(value_enum, default_value_t = DemoName::Digits)]
    pub(crate) name: DemoName,
    /// The folder for its data, its pipeline and its results [default: compflow-demo/NAME].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Open the report when it is done.
    #[arg(long)]
    pub(crate) open: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Parquet, Arrow, CSV, TSV, JSON lines or npy files, each a data set; files that are parts of one are given as a folder or
    /// a pattern in quotes.
    #[arg(required = true, value_name = "DATA")]
    pub(crate) data: Vec<String>,
    /// The pipeline to write.
    #[arg(long, value_name = "FILE", default_value = "pipeline.toml")]
    pub(crate) out: PathBuf,
    /// The column of embeddings, or 'd*' for a column of every dimension [default: the one that holds lists of numbers, or
    /// columns that are numbered].
    #[arg(long, value_name = "COLUMN")]
    pub(crate) embedding: Option<String>,
    /// The column of true sets, or 'is_*' for a column of 0 and 1 for every label [default: one that is called labels, truth or
    /// the like, or the only one that holds lists]; `none` for data without.
    #[arg(long, value_name = "COLUMN")]
    pub(crate) truth: Option<String>,
    /// Take texts of labels apart at this: with `,` the text "anna,ben" is a set of two.
    #[arg(long, value_name = "SEPARATOR")]
    pub(crate) split: Option<String>,
    /// Overwrite the pipeline if it is there.
    #[arg(long)]
    pub(crate) force: bool,
}

/// What `run` and `plan` have in common.
#[derive(Debug, Default, Args)]
pub(crate) struct PipelineArgs {
    /// The pipeline file; `-` is standard input.
    pub(crate) file: PathBuf,
    /// The results folder [default: results/NAME].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Lay a value over the pipeline, e.g. clusterer.NAME.k=12; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Only this clusterer or this data; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// How many cells to run at the same time [default: the number of cores].
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    pub(crate) jobs: Option<u32>,
    /// How many threads a cell may use [default: the cores that the jobs leave].
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    pub(crate) threads: Option<u32>,
    /// How much memory all cells may use together, e.g. 8GB [default: three quarters of the machine's].
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    #[command(flatten)]
    pub(crate) pipeline: PipelineArgs,
    /// Only these cells: DATA/CLUSTERER, a clusterer or a data set.
    pub(crate) cell: Option<String>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) pipeline: PipelineArgs,
    /// Compute everything again, whatever is kept.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Treat a method that did not converge as failed.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Run all cells in processes of their own, so that a component that crashes costs only its cell [default: if one is of a
    /// library that did not come with compflow].
    #[arg(long)]
    pub(crate) isolate: bool,
    /// End a cell that takes longer, e.g. 90 or 2.5; it has failed. Cells then run in processes of their own.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Format of the results on stdout.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
    /// Show nothing but errors and the results.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Compute only a share of the cells, e.g. 2/8, and write no tables; all parts may run at the same time, on machines that
    /// share the results folder. A run without it then finds them and writes the tables.
    #[arg(long, value_name = "I/N", conflicts_with = "format")]
    pub(crate) part: Option<Part>,
    /// The phase that the part belongs to, if the pipeline tunes [default: the one that the results folder is in].
    #[arg(long, value_enum, requires = "part")]
    pub(crate) phase: Option<PhaseName>,
}

/// What cells are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PhaseName {
    /// They settle grids.
    Tune,
    /// They are the experiment itself; tuning must have ended.
    Test,
}

impl PhaseName {
    pub(crate) fn phase(self) -> Phase {
        match self {
            Self::Tune => Phase::Tune,
            Self::Test => Phase::Test,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The pipeline file.
    pub(crate) file: PathBuf,
    /// The results folder [default: results/NAME].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// As the parts were given it; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// As the parts were given it; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SlurmArgs {
    #[command(flatten)]
    pub(crate) pipeline: PipelineArgs,
    /// Time limit of a job, as sbatch takes it [default: the partition's].
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) time: Option<Minutes>,
    /// Memory of a job, e.g. 8GB; its cells share three quarters of it [default: the partition's].
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) mem: Option<u64>,
    /// The partition [default: the cluster's].
    #[arg(long, value_name = "NAME")]
    pub(crate) partition: Option<String>,
    /// Cores of a job: as many cells run at the same time, unless --jobs or --threads say otherwise.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cpus: u32,
    /// Cells of a job [default: as many as take ten minutes, going by those that are kept].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cells_per_job: Option<u32>,
    /// At most so many jobs of an array at the same time [default: as many as the cluster allows].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) at_once: Option<u32>,
    /// The cluster's MaxArraySize [default: as scontrol says, else Slurm's 1001].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) max_array_size: Option<u32>,
    /// A further option for sbatch, e.g. --account=lab; may be given several times.
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub(crate) sbatch: Vec<String>,
    /// Treat a method that did not converge as failed.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Submit the jobs, too.
    #[arg(long)]
    pub(crate) submit: bool,
}

/// A time limit: as it was written, and how many minutes it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Minutes {
    pub(crate) text: String,
    pub(crate) minutes: f64,
}

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// Predicted sets: FILE or FILE:COLUMN, the column being `clusters` if not named. It holds lists, or single labels;
    /// FILE:'spk_*' and FILE:anna,ben are columns of 0 and 1, one for each label.
    pub(crate) pred: String,
    /// True sets: FILE or FILE:COLUMN, the column being `labels` if not named; as for the predictions.
    pub(crate) truth: String,
    /// Take strings apart at this: with `,` the string "anna,ben" is a set of two.
    #[arg(long, value_name = "SEPARATOR")]
    pub(crate) split: Option<String>,
    /// Match rows by this column of both files [default: `id`, if both have it].
    #[arg(long, value_name = "COLUMN", conflicts_with = "order")]
    pub(crate) id: Option<String>,
    /// Match rows by their order, even if both files have a column `id`.
    #[arg(long)]
    pub(crate) order: bool,
    /// Score the trials in this column of both files one by one [default: `trial`, if both have it].
    #[arg(long, value_name = "COLUMN")]
    pub(crate) trial: Option<String>,
    /// Only predictions with this value in this column; may be given several times.
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    pub(crate) filter: Vec<String>,
    /// Only this evaluator; may be given several times [default: all].
    #[arg(long, value_name = "NAME")]
    pub(crate) evaluator: Vec<String>,
    /// Format of the scores on stdout.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

/// What `export` can write.
#[derive(Debug, Subcommand)]
pub(crate) enum Export {
    /// Who speaks when, as RTTM: a line for every turn of a speaker. The data needs `file`, `start` and `end`.
    Rttm(RttmArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RttmArgs {
    /// The results folder.
    #[arg(value_name = "RUN")]
    pub(crate) folder: PathBuf,
    /// What was found in this data [default: the only one].
    #[arg(long, value_name = "NAME")]
    pub(crate) data: Option<String>,
    /// Only this trial [default: all, if no recording is in two of them].
    #[arg(long, value_name = "N")]
    pub(crate) trial: Option<u32>,
    /// What this clusterer found [default: the only one].
    #[arg(long, value_name = "NAME")]
    pub(crate) clusterer: Option<String>,
    /// The file to write; `-` is stdout.
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct AssignArgs {
    /// The results folder.
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// New examples: .parquet, .arrow, .csv, .tsv, .jsonl or .npy files, a folder or a quoted pattern of them, read as if they
    /// were one.
    #[arg(required = true, value_name = "DATA")]
    pub(crate) data: Vec<String>,
    /// The Parquet file to write: a row for every example.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Whose clusters [default: the only clusterer of the run].
    #[arg(long, value_name = "NAME")]
    pub(crate) clusterer: Option<String>,
    /// On which of the run's data they were found [default: the only one].
    #[arg(long = "data", value_name = "NAME")]
    pub(crate) of: Option<String>,
    /// In which trial of that data [default: the only one].
    #[arg(long, value_name = "N")]
    pub(crate) trial: Option<u32>,
    /// The largest union considered, also of clusters that were never seen together [default: as in the run].
    #[arg(long, value_name = "D")]
    pub(crate) degree: Option<usize>,
    /// Consider only sets that occur in the run.
    #[arg(long)]
    pub(crate) seen_only: bool,
    /// Leave examples unassigned that are farther from their cluster than this share of the run's own, e.g. 0.99.
    #[arg(long, value_name = "SHARE")]
    pub(crate) novel: Option<f64>,
    /// The column of embeddings, or 'd*' for a column of every dimension [default: as in the run's data].
    #[arg(long, value_name = "COLUMN")]
    pub(crate) embedding: Option<String>,
    /// The column of identifiers [default: that of the run's data, if it is there, else the rows are numbered].
    #[arg(long, value_name = "COLUMN")]
    pub(crate) id: Option<String>,
    /// Further columns to copy, e.g. file,start,end.
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
    /// Only examples with this value in this column; may be given several times.
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    pub(crate) filter: Vec<String>,
    /// How many threads to use [default: the number of cores].
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    pub(crate) threads: Option<u32>,
    /// Show nothing but errors.
    #[arg(long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FitComposerArgs {
    /// Labelled embeddings: files, or quoted patterns whose files are read as if they were one. Labels of different trials, or of
    /// different DATA with trials, are different labels.
    #[arg(required = true, value_name = "DATA")]
    pub(crate) data: Vec<String>,
    /// The weights to write, for `[composer] use = "bilinear"`.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// The names of the columns, e.g. embedding=vec,truth=tags,trial=session,weight=w; `trial=` for none, embedding='d*' for a
    /// column of every dimension, truth='is_*' for columns of 0 and 1 [default: embedding=embedding,truth=labels, and
    /// trial=trial if there is one; all examples count the same].
    #[arg(long, value_name = "COLUMN=NAME,...", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
    /// Take texts of labels apart at this: with `,` the text "anna,ben" is a set of two.
    #[arg(long, value_name = "SEPARATOR")]
    pub(crate) split: Option<String>,
    /// What the pipeline's `space` will do to vectors before distances are taken.
    #[arg(long, value_enum, default_value_t = Normalization::None)]
    pub(crate) normalize: Normalization,
    /// The loader [default: by the ending of the file].
    #[arg(long, value_name = "NAME")]
    pub(crate) loader: Option<String>,
    /// The loader's parameters, a JSON object [default for npy: {"labels": "{stem}-labels.npy"}, beside the data].
    #[arg(long, value_name = "JSON")]
    pub(crate) params: Option<String>,
    /// Judge this composer, too, e.g. bilinear='{"weights": "trained.safetensors"}'; may be given several times.
    #[arg(long, value_name = "NAME[=JSON]")]
    pub(crate) composer: Vec<String>,
    /// Which g the file holds: the fitted one, or c·(a + b) as weights with W₁ = c·I.
    #[arg(long, value_enum, default_value_t = Weights::Fitted)]
    pub(crate) write: Weights,
    /// The source of randomness, where not everything can be tried.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// How many threads to use [default: all cores]; no result depends on it.
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    pub(crate) threads: Option<u32>,
    /// Print everything that was found out as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Show nothing but errors and the judgement.
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// What a space does to vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Normalization {
    /// Nothing.
    None,
    /// Division by their Euclidean norm.
    L2,
}

/// What a file of weights can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Weights {
    /// The fitted g.
    Fitted,
    /// c·(a + b).
    ScaledSum,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Results folders; a page shows one, Markdown any number.
    #[arg(required = true, value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,
    /// The file to write [default: DIR/report.html; Markdown goes to stdout].
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Begin with this trial's points, e.g. n150/3; may be given several times [default: the first of every data set].
    #[arg(long, value_name = "DATA/TRIAL")]
    pub(crate) cell: Vec<String>,
    /// A TOML file of numbers to stand beside ours, such as a paper's (Markdown only).
    #[arg(long, value_name = "FILE")]
    pub(crate) reference: Option<PathBuf>,
    /// Write the matched-pair tests between all methods of each run to DIR/NAME.csv (Markdown only).
    #[arg(long, value_name = "DIR")]
    pub(crate) tests: Option<PathBuf>,
    /// What to make.
    #[arg(long, value_enum, default_value_t = Pages::Html)]
    pub(crate) format: Pages,
    /// What Markdown holds.
    #[arg(long, value_enum, default_value_t = Layout::Page)]
    pub(crate) layout: Layout,
}

/// What `report --format md` can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Layout {
    /// A page: a table for every data set, and what is different from the reference.
    Page,
    /// A table for each run: a row for every method, a group of columns for every data set.
    Wide,
    /// A table for each run: a row for every data set and method.
    Long,
}

/// What `report` can make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Pages {
    /// A page with figures.
    Html,
    /// Tables in Markdown.
    Md,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The results folder to start from.
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// The results folder to compare with it.
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
    /// Format of the comparison on stdout.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

/// The language of a new plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    Rust,
    C,
}

impl Language {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::C => "c",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::C => "C",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct NewPluginArgs {
    /// Name of the component and of the folder.
    pub(crate) name: String,
    /// What it is to be.
    #[arg(long, value_parser = ["loader", "composer", "clusterer", "evaluator"])]
    kind: String,
    /// The language.
    #[arg(long, value_enum, default_value_t = Language::Rust)]
    pub(crate) lang: Language,
    /// Where compflow-api comes from: a folder, a git address or a version [default: a copy beside the plugin].
    #[arg(long, value_name = "FROM")]
    pub(crate) api: Option<String>,
}

impl NewPluginArgs {
    pub(crate) fn kind(&self) -> Kind {
        Kind::ALL.into_iter().find(|kind| kind.to_string() == self.kind).unwrap_or(Kind::Clusterer)
    }
}

#[derive(Debug, Args)]
pub(crate) struct TestPluginArgs {
    /// The library file.
    pub(crate) library: PathBuf,
    /// Only this component; may be given several times [default: all].
    #[arg(long, value_name = "NAME")]
    pub(crate) component: Vec<String>,
    /// Parameters to test with, a JSON object, e.g. kmeans='{"k": 4}'; needed where some must be given.
    #[arg(long, value_name = "NAME=JSON")]
    pub(crate) params: Vec<String>,
    /// A file for loaders that read files; NAME=FILE for one of several.
    #[arg(long, value_name = "FILE")]
    pub(crate) path: Vec<String>,
    /// The columns to ask loaders for, e.g. embedding=vec,truth=labels; NAME:COLUMN=SOURCE,... for one of several
    /// [default: those of compflow's own names that the source has].
    #[arg(long, value_name = "COLUMN=SOURCE,...")]
    pub(crate) columns: Vec<String>,
    /// The number of a component: a test of its own, which reports to the one that started it.
    #[arg(long, hide = true, value_name = "N")]
    pub(crate) worker: Option<usize>,
}

/// A number of things that work at the same time.
fn parse_count(text: &str) -> Result<u32, String> {
    let count = text.parse::<u32>().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "expected a whole number of at least 1; leave the option out to use all cores".to_owned())
}

/// What somebody probably wants who names a command that there is not.
pub(crate) fn instead_of(command: &str) -> Option<&'static str> {
    match command {
        "predict" | "transform" | "classify" => {
            Some("`compflow assign RUN DATA --out FILE` gives new examples to the clusters of a finished run")
        }
        "fit" | "train" | "cluster" | "start" => {
            Some("`compflow run PIPELINE` clusters, `compflow init DATA` writes a pipeline for your data")
        }
        "validate" | "lint" | "test" => {
            Some("`compflow check PIPELINE` finds everything that is wrong with a pipeline")
        }
        "score" | "evaluate" | "metrics" => {
            Some("`compflow eval PRED TRUTH` scores sets, `compflow run` those that it finds")
        }
        "list" | "components" | "ls" => Some("`compflow plugins` lists all libraries and their components"),
        "describe" | "show" | "man" => Some("`compflow inspect NAME` describes a component and its parameters"),
        "plot" | "view" | "open" => Some("`compflow report RUN` makes a page of a finished run"),
        "compare" => Some("`compflow diff A B` compares two runs"),
        "new" | "create" => Some("`compflow init DATA` writes a pipeline, `compflow new-plugin` a plugin"),
        _ => None,
    }
}

/// How long something may take.
fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "expected a number of seconds above 0, such as 90".to_owned())
}

/// A number of bytes with an optional unit: kB, MB, GB, TB are powers of 1000, KiB, MiB, GiB, TiB of 1024.
fn parse_size(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => f64::from(1 << 10),
        "mib" => f64::from(1 << 20),
        "gib" => f64::from(1 << 30),
        "tib" => 1024.0 * f64::from(1 << 30),
        _ => return Err(format!("`{unit}` is no unit of memory; use MB, GB, MiB or GiB")),
    };
    let number: f64 = number.parse().map_err(|_| "expected a size such as 8GB or 512MiB".to_owned())?;
    match (number * factor) as u64 {
        0 => Err("expected more than nothing".to_owned()),
        bytes => Ok(bytes),
    }
}

/// A time as sbatch takes it: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes or
/// days-hours:minutes:seconds.
fn parse_time(text: &str) -> Result<Minutes, String> {
    let wrong = || "expected a time as sbatch takes it, such as 30, 4:00:00 or 1-12".to_owned();
    let (days, rest) = text.split_once('-').map_or((None, text), |(days, rest)| (Some(days), rest));
    let number = |text: &str| text.parse::<u32>().map(f64::from).map_err(|_| wrong());
    let parts = rest.split(':').map(number).collect::<Result<Vec<f64>, String>>()?;
    let minutes = match (days.map(number).transpose()?, &parts[..]) {
        (None, [minutes]) => *minutes,
        (None, [minutes, seconds]) => minutes + seconds / 60.0,
        (None, [hours, minutes, seconds]) => hours * 60.0 + minutes + seconds / 60.0,
        (Some(days), [hours]) => days * 1440.0 + hours * 60.0,
        (Some(days), [hours, minutes]) => days * 1440.0 + hours * 60.0 + minutes,
        (Some(days), [hours, minutes, seconds]) => days * 1440.0 + hours * 60.0 + minutes + seconds / 60.0,
        _ => return Err(wrong()),
    };
    if minutes > 0.0 { Ok(Minutes { text: text.to_owned(), minutes }) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("1024"), Ok(1024));
        assert_eq!(parse_size("1.5GB"), Ok(1_500_000_000));
        assert_eq!(parse_size("2 GiB"), Ok(2 << 30));
        assert!(parse_size("3 apples").is_err());
        assert!(parse_size("GB").is_err());
    }

    #[test]
    fn times_are_those_of_sbatch() {
        let minutes = |text: &str| parse_time(text).map(|time| time.minutes);
        assert_eq!(minutes("30"), Ok(30.0));
        assert_eq!(minutes("1:30"), Ok(1.5));
        assert_eq!(minutes("4:00:00"), Ok(240.0));
        assert_eq!(minutes("1-12"), Ok(2160.0));
        assert_eq!(minutes("1-12:30:30"), Ok(2190.5));
        for wrong in ["", "0", "4h", "1-", "1:2:3:4", "-5"] {
            assert!(minutes(wrong).is_err(), "{wrong}");
        }
    }
}
