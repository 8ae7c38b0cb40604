//! `compflow slurm`: job scripts that run a pipeline in parts: an array that tunes, one that tests, and a job that writes the
//! tables, each waiting for the one before it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use compflow_api::plural;
use compflow_engine::files::{make_folders, plain, write_whole};
use compflow_engine::pipeline::Options;
use compflow_engine::run::{Phase, Workload};

use super::plugins::{VARIABLE, asked};
use super::{STDIN, load, prepare, print, results_folder, variables};
use crate::cli::{PipelineArgs, SlurmArgs};
use crate::failure::Failure;
use crate::terminal::{Terminal, interrupt, to_stderr};

/// How long a job is meant to take: long against starting one, short against what is lost if it is killed.
const MINUTES: f64 = 10.0;
/// How many jobs there are if nothing says how long a cell takes.
const UNMEASURED: usize = 100;
/// What Slurm allows if nobody has changed it: numbers in an array are below this.
const MAX_ARRAY_SIZE: u32 = 1001;

/// Runs the command.
///
/// # Errors
/// If the pipeline is wrong, a script cannot be written, or Slurm refuses it.
pub(crate) fn run(plugins: &[PathBuf], args: &SlurmArgs) -> Result<i32, Failure> {
    let variables = require_files(&args.pipeline)?;
    let cancel = interrupt::listen()?;
    let plan = prepare(plugins, &args.pipeline, &Terminal::shared(false), &cancel)?;
    interrupt::working();
    let out = results_folder(&args.pipeline, &plan);
    let workloads = plan.workloads(&out, args.strict)?;
    let folder = out.join("slurm");
    let unwritable =
        |error: &std::io::Error| Failure::run(format!("cannot write to {}: {}", folder.display(), plain(error)));
    make_folders(&folder).map_err(|error| unwritable(&error))?;
    let folder = folder.canonicalize().map_err(|error| unwritable(&error))?;
    // Slurm drops backslashes from the path of a log, however they are quoted.
    if folder.to_str().is_none_or(|folder| folder.contains(|c: char| c.is_control() || c == '\\')) {
        let text = "cannot be told to Slurm: it is not UTF-8, or has backslashes or control characters; choose another folder with --out";
        return Err(Failure::request(format!("{} {text}", folder.display())));
    }
    let name = job_name(&[plan.name(), &out_name(&folder)]);
    let writer = Writer { args, name, folder: &folder, command: command(plugins, args, &out, variables)? };
    let largest = args.max_array_size.or_else(max_array_size).unwrap_or(MAX_ARRAY_SIZE) as usize - 1;
    for phase in [Phase::Tune, Phase::Test] {
        writer.remove(&script_of(phase))?;
    }
    let mut jobs = Vec::new();
    for workload in workloads.iter().filter(|workload| workload.to_compute() > 0) {
        let (parts, fullest) = workload.parts(cells_per_job(workload, args), largest);
        let script = writer.array(workload.phase, parts);
        writer.write(&script_of(workload.phase), &script)?;
        to_stderr(&described(workload, parts, fullest));
        jobs.push(workload.phase.to_string());
    }
    writer.write("assemble.sbatch", &writer.assembly())?;
    jobs.push("assemble".to_owned());
    let submit = writer.write("submit.sh", &submission(&jobs))?;
    if !args.submit {
        return print(&format!("sh {}\n", quoted(&submit.display().to_string())));
    }
    let submitted = Command::new("sh").arg(&submit).stderr(Stdio::inherit()).output();
    let submitted =
        submitted.map_err(|error| Failure::run(format!("cannot run {}: {}", submit.display(), plain(&error))))?;
    print(&String::from_utf8_lossy(&submitted.stdout))?;
    match submitted.status.code() {
        Some(0) => Ok(0),
        _ => Err(Failure::run(format!("Slurm did not take all jobs; the scripts are in {}", folder.display()))),
    }
}

/// Jobs read what was given here again, at another time and on another machine. Returns the environment variables that the pipeline
/// names, which may be others there, or not set.
fn require_files(args: &PipelineArgs) -> Result<BTreeMap<String, String>, Failure> {
    let refused = |what: &str| {
        Err(Failure::request(format!(
            "jobs cannot read {what} from standard input: write it to a file that they see"
        )))
    };
    if args.file == Path::new(STDIN) {
        return refused("the pipeline");
    }
    let options = Options { set: args.set.clone(), only: args.only.clone(), variables: variables() };
    let pipeline = load(&args.file, &options)?;
    if pipeline.reads_stdin() { refused("data") } else { Ok(pipeline.named_variables()) }
}

/// How many cells a job should have at most: as many as take minutes.
fn cells_per_job(workload: &Workload, args: &SlurmArgs) -> usize {
    let seconds = 60.0 * args.time.as_ref().map_or(MINUTES, |time| (time.minutes / 2.0).min(MINUTES));
    match (args.cells_per_job, workload.seconds) {
        (Some(cells), _) => cells as usize,
        (None, Some(each)) => (seconds * f64::from(at_once(args)) / each.max(f64::MIN_POSITIVE)) as usize,
        (None, None) => workload.to_compute().div_ceil(UNMEASURED),
    }
}

/// How many cells of a job run at the same time.
fn at_once(args: &SlurmArgs) -> u32 {
    let threads = args.pipeline.threads.unwrap_or(1);
    args.pipeline.jobs.unwrap_or((args.cpus / threads).max(1))
}

fn described(workload: &Workload, parts: usize, fullest: usize) -> String {
    let Workload { phase, cells, seconds, .. } = workload;
    let to_compute = &workload.to_compute();
    let kept = if to_compute < cells { format!(" of {cells}, the others being kept") } else { String::new() };
    let pace = match seconds {
        Some(seconds) => format!("about {seconds:.2} s a cell going by those that are kept"),
        None => "no cell is kept that says how long one takes; see --cells-per-job".to_owned(),
    };
    let jobs = match parts {
        1 => "1 job".to_owned(),
        parts => format!("{parts} jobs of at most {}", plural(fullest, "cell")),
    };
    format!("phase {phase}: {}{kept}, in {jobs}; {pace}", plural(*to_compute, "cell"))
}

/// What the cluster at hand says.
fn max_array_size() -> Option<u32> {
    let output = Command::new("scontrol").args(["show", "config"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().find(|line| line.starts_with("MaxArraySize"))?;
    line.split('=').nth(1)?.trim().parse().ok().filter(|size| *size > 1)
}

/// `compflow … run FILE …` with everything that was given, for another machine with the same folders. Nothing of what was said by
/// variables is left to those that a job has: Slurm may give it others, and relative folders would be looked for in that of the script.
fn command(
    plugins: &[PathBuf],
    args: &SlurmArgs,
    out: &Path,
    variables: BTreeMap<String, String>,
) -> Result<String, Failure> {
    let absolute = |path: &Path| {
        let path = std::path::absolute(path).map_err(|error| Failure::run(plain(&error)))?;
        let text = |path: &Path| format!("{} cannot be told to Slurm: it is not UTF-8", path.display());
        path.into_os_string().into_string().map_err(|path| Failure::request(text(Path::new(&path))))
    };
    let this = std::env::current_exe().map_err(|error| Failure::run(plain(&error)))?;
    let PipelineArgs { file, set, only, memory, .. } = &args.pipeline;
    let mut words = ["env", "-u", VARIABLE].map(str::to_owned).to_vec();
    words.extend(variables.into_iter().map(|(name, value)| format!("{name}={value}")));
    words.push(absolute(&this)?);
    for (_, folder) in asked(plugins) {
        words.extend(["--plugins".to_owned(), absolute(&folder)?]);
    }
    words.extend(["run".to_owned(), absolute(file)?, "--out".to_owned(), absolute(out)?]);
    set.iter().for_each(|set| words.extend(["--set".to_owned(), set.clone()]));
    only.iter().for_each(|only| words.extend(["--only".to_owned(), only.clone()]));
    words.extend(["--jobs".to_owned(), at_once(args).to_string()]);
    let threads = args.pipeline.threads.unwrap_or((args.cpus / at_once(args)).max(1));
    words.extend(["--threads".to_owned(), threads.to_string()]);
    if let Some(bytes) = memory.or(args.mem.as_ref().map(|memory| memory.bytes / 4 * 3)) {
        words.extend(["--memory".to_owned(), bytes.to_string()]);
    }
    words.extend(args.strict.then(|| "--strict".to_owned()));
    words.extend(args.isolate.then(|| "--isolate".to_owned()));
    if let Some(timeout) = args.timeout {
        words.extend(["--timeout".to_owned(), timeout.as_secs_f64().to_string()]);
    }
    Ok(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A word as sbatch takes it from a script: a backslash takes the next character as it is, but a space must stand between quotes,
/// and before 17.11 nothing but a backslash keeps a # from ending the line.
fn sbatch_quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%[]*".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    let escaped = word.chars().flat_map(|c| (!plain(c)).then_some('\\').into_iter().chain([c]));
    format!("\"{}\"", escaped.collect::<String>())
}

/// An option of sbatch as it is given to us, one word or two: `--account=lab`, `--account lab`, `-A lab`.
fn sbatch_option(option: &str) -> String {
    match option.split_once(' ') {
        Some((name, value)) if !name.contains('=') => format!("{name} {}", sbatch_quoted(value.trim_start())),
        _ => sbatch_quoted(option),
    }
}

/// The file of a phase.
fn script_of(phase: Phase) -> String {
    format!("{phase}.sbatch")
}

/// What the results folder is called that holds this one.
fn out_name(folder: &Path) -> String {
    let name = folder.parent().and_then(Path::file_name);
    name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// What tells our jobs from others in a queue: the first of these names of which something is left that every tool can show.
fn job_name(names: &[&str]) -> String {
    let plain = |name: &&str| -> String {
        name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect()
    };
    let says = |name: &String| name.contains(|c: char| c.is_ascii_alphanumeric());
    names.iter().map(plain).find(says).unwrap_or_else(|| "compflow".to_owned())
}

/// Writes the scripts.
struct Writer<'a> {
    args: &'a SlurmArgs,
    /// What the names of jobs begin with.
    name: String,
    folder: &'a Path,
    command: String,
}

impl Writer<'_> {
    fn write(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.folder.join(name);
        write_whole(&path, false, |file| file.write_all(text.as_bytes()))
            .map_err(|error| Failure::run(format!("cannot write {}: {}", path.display(), plain(&error))))?;
        Ok(path)
    }

    /// An earlier call may have had something to do that has ended since.
    fn remove(&self, name: &str) -> Result<(), Failure> {
        let path = self.folder.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Failure::run(format!("cannot remove {}: {}", path.display(), plain(&error))))
            }
            _ => Ok(()),
        }
    }

    /// What both kinds of jobs ask for.
    fn head(&self, what: &str, log: &str) -> String {
        let Self { args, name, folder, .. } = self;
        let mut options = vec![
            format!("--job-name={name}-{what}"),
            // In the path of a log % has a meaning, in the folder that it is relative to it has none.
            format!("--chdir={}", folder.display()),
            format!("--output={log}"),
            "--open-mode=append".to_owned(),
            format!("--cpus-per-task={}", args.cpus),
        ];
        options.extend(args.time.as_ref().map(|time| format!("--time={}", time.text)));
        options.extend(args.mem.as_ref().map(|memory| format!("--mem={}", memory.text)));
        options.extend(args.partition.as_ref().map(|partition| format!("--partition={partition}")));
        let options = options.iter().map(|option| sbatch_quoted(option));
        let options = options.chain(args.sbatch.iter().map(|option| sbatch_option(option)));
        let lines = options.map(|option| format!("#SBATCH {option}\n"));
        format!("#!/bin/bash\n{}", lines.collect::<String>())
    }

    /// An array of parts.
    fn array(&self, phase: Phase, parts: usize) -> String {
        let limit = self.args.at_once.map_or_else(String::new, |limit| format!("%{limit}"));
        let head = self.head(&phase.to_string(), &format!("{phase}-%A_%a.log"));
        let command = &self.command;
        format!(
            r#"{head}#SBATCH --array=1-{parts}{limit}
#SBATCH --requeue
{command} --quiet --part "$SLURM_ARRAY_TASK_ID/{parts}" --phase {phase}
code=$?
# Somebody killed it. Cells that it finished are kept, so it goes back into the queue, three times at most.
if [ "$code" -eq 137 ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt 3 ]; then
    scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}" && sleep 60
fi
exit "$code"
"#
        )
    }

    /// The job that writes the tables.
    fn assembly(&self) -> String {
        format!("{}{} --quiet\n", self.head("assemble", "assemble-%j.log"), self.command)
    }
}

/// Submits the jobs, each to begin when the one before it has ended well; all of them or none.
fn submission(jobs: &[String]) -> String {
    let mut text = r#"#!/bin/sh
# Hands the jobs to Slurm; each begins when the one before it has ended well. If one is refused, those before it are cancelled:
# handing over all of them once more would have them twice.
set -e
cd "$(dirname "$0")"
taken=
cancel() {
    code=$?
    trap - EXIT
    for job in $taken; do
        case $job in
            *";"*) scancel --clusters="${job#*;}" "${job%%;*}" ;;
            *) scancel "$job" ;;
        esac && echo "job ${job%%;*} is cancelled, as not all were taken" >&2 ||
            echo "job ${job%%;*} is still queued, though not all were taken: cancel it" >&2
    done
    exit "$code"
}
trap cancel EXIT
trap 'exit 130' HUP INT TERM
"#
    .to_owned();
    let mut before: Option<&String> = None;
    for job in jobs {
        let waits = before.map_or_else(String::new, |before| {
            format!(" --dependency=afterok:\"${before}\" --kill-on-invalid-dep=yes")
        });
        // On several clusters sbatch prints the cluster behind the number.
        text += &format!(
            "{job}=$(sbatch --parsable{waits} \"$@\" {job}.sbatch)\ntaken=\"$taken ${job}\"\n{job}=${{{job}%%;*}}\n"
        );
        before = Some(job);
    }
    let said: String = jobs.iter().map(|job| format!("echo \"{job} ${job}\"\n")).collect();
    text + "taken=\n" + &said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!(quoted("results/n150"), "results/n150");
        assert_eq!(quoted("clusterer.KM.name=it's"), r"'clusterer.KM.name=it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn what_sbatch_reads_is_what_was_meant() {
        assert_eq!(sbatch_quoted("--chdir=/lab/results/n150"), "--chdir=/lab/results/n150");
        for word in
            ["--chdir=/my lab", r#"--comment="it's" #1\2"#, "--account=", "--chdir=/größer (2)", "--x=$HOME;a&b"]
        {
            assert_eq!(read_by_sbatch(&sbatch_quoted(word)), [word]);
        }
        assert_eq!(read_by_sbatch(&sbatch_option("--account lab 1")), ["--account", "lab 1"]);
        assert_eq!(read_by_sbatch(&sbatch_option("-A lab")), ["-A", "lab"]);
        assert_eq!(read_by_sbatch(&sbatch_option("--comment=a b")), ["--comment=a b"]);
        assert_eq!(sbatch_option("--exclusive"), "--exclusive");
    }

    /// The words of a line, as the function `_get_argument` of sbatch finds them.
    fn read_by_sbatch(line: &str) -> Vec<String> {
        let (mut words, mut rest) = (Vec::new(), line.chars().peekable());
        loop {
            while rest.next_if(|c| c.is_whitespace()).is_some() {}
            let (mut word, mut quote, mut escaped) = (String::new(), None, false);
            while let Some(c) = rest.next_if(|c| quote.is_some() || !c.is_whitespace()) {
                match c {
                    c if escaped => {
                        escaped = false;
                        word.push(c);
                    }
                    '\\' => escaped = true,
                    c if quote == Some(c) => quote = None,
                    '"' | '\'' if quote.is_none() => quote = Some(c),
                    '#' => return words,
                    c => word.push(c),
                }
            }
            assert!(quote.is_none(), "unmatched in {line}");
            if word.is_empty() {
                return words;
            }
            words.push(word);
        }
    }

    #[test]
    fn a_job_has_a_name_whatever_the_pipeline_is_called() {
        assert_eq!(job_name(&["my sweep", "out"]), "mysweep");
        assert_eq!(job_name(&["東京", "out"]), "out");
        assert_eq!(job_name(&["東京-", "."]), "compflow");
    }

    #[test]
    fn every_job_waits_for_the_one_before_it() {
        let text = submission(&["tune".to_owned(), "test".to_owned(), "assemble".to_owned()]);
        assert!(text.contains("test=$(sbatch --parsable --dependency=afterok:\"$tune\" --kill"), "{text}");
        assert!(text.contains("assemble=$(sbatch --parsable --dependency=afterok:\"$test\" --kill"), "{text}");
        assert_eq!(text.matches("--dependency").count(), 2);
    }
}
