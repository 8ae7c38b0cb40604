//! `compflow slurm`.

use std::time::Duration;

use clap::Args;

use super::pipeline::PipelineArgs;
use super::values::{parse_seconds, parse_size};

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
    #[arg(long, value_name = "NAME", value_parser = parse_line)]
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
    /// A further option for sbatch, e.g. --account=lab, as on its command line; may be given several times.
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true, value_parser = parse_option)]
    pub(crate) sbatch: Vec<String>,
    /// Treat a method that did not converge as failed.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Run all cells in processes of their own, as `run --isolate` does.
    #[arg(long)]
    pub(crate) isolate: bool,
    /// End a cell that takes longer, as `run --timeout` does.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) timeout: Option<Duration>,
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

/// A text that can stand in a line of a script.
fn parse_line(text: &str) -> Result<String, String> {
    match text.chars().any(char::is_control) {
        true => Err("a line of a script cannot hold control characters, such as the end of a line".to_owned()),
        false => Ok(text.to_owned()),
    }
}

/// An option of sbatch.
fn parse_option(text: &str) -> Result<String, String> {
    match text.starts_with('-') {
        true => parse_line(text),
        false => Err("expected an option of sbatch, such as --account=lab".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
