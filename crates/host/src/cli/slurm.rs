//! `compflow slurm`.

use std::time::Duration;

use clap::Args;

use super::pipeline::PipelineArgs;
use super::values::parse_seconds;

#[derive(Debug, Args)]
pub(crate) struct SlurmArgs {
    #[command(flatten)]
    pub(crate) pipeline: PipelineArgs,
    /// Time limit of a job, as sbatch takes it [default: the partition's].
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) time: Option<Minutes>,
    /// Memory of a job, as sbatch takes it, e.g. 8G; its cells share three quarters of it [default: the partition's].
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    pub(crate) mem: Option<Memory>,
    /// The partition [default: the cluster's].
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
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

/// Memory of a job: as sbatch is told it, and how many bytes it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) text: String,
    pub(crate) bytes: u64,
}

/// Memory as sbatch takes it: a whole number, of mebibytes if nothing is said; K, M, G and T are powers of 1024. What follows the letter
/// changes nothing there, so GB and GiB are G here, too.
fn parse_memory(text: &str) -> Result<Memory, String> {
    let wrong = || {
        "expected memory as sbatch takes it: a whole number above 0 with K, M, G or T, such as 8G, or of megabytes"
            .to_owned()
    };
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let (letter, power) = match unit.to_ascii_lowercase().as_str() {
        "k" | "kb" | "kib" => ('K', 1),
        "" | "m" | "mb" | "mib" => ('M', 2),
        "g" | "gb" | "gib" => ('G', 3),
        "t" | "tb" | "tib" => ('T', 4),
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().ok().filter(|number| *number > 0).ok_or_else(wrong)?;
    let bytes = number.checked_mul(1024_u64.pow(power)).ok_or_else(wrong)?;
    Ok(Memory { text: format!("{number}{letter}"), bytes })
}

/// A time as sbatch takes it: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes or
/// days-hours:minutes:seconds, or a word for no limit.
fn parse_time(text: &str) -> Result<Minutes, String> {
    let wrong = || "expected a time as sbatch takes it, such as 30, 4:00:00, 1-12 or UNLIMITED".to_owned();
    if ["UNLIMITED", "INFINITE"].contains(&text.to_ascii_uppercase().as_str()) {
        return Ok(Minutes { text: text.to_owned(), minutes: f64::INFINITY });
    }
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

/// A name, which is not nothing.
fn parse_name(text: &str) -> Result<String, String> {
    match text.trim().is_empty() {
        true => Err("expected a name; leave the option out for the cluster's own".to_owned()),
        false => parse_line(text),
    }
}

/// An option of sbatch: one letter, or a word.
fn parse_option(text: &str) -> Result<String, String> {
    let name = text.strip_prefix("--").or_else(|| text.strip_prefix('-'));
    match name.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic())) {
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
        assert_eq!(minutes("UNLIMITED"), Ok(f64::INFINITY));
        assert_eq!(minutes("infinite"), Ok(f64::INFINITY));
        for wrong in ["", "0", "4h", "1-", "1:2:3:4", "-5", "forever"] {
            assert!(minutes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn memory_is_that_of_sbatch() {
        let memory = |text: &str| parse_memory(text).map(|memory| (memory.text, memory.bytes));
        for (given, told, bytes) in [
            ("4096", "4096M", 4 << 30),
            ("4G", "4G", 4 << 30),
            ("4GB", "4G", 4 << 30),
            ("4gib", "4G", 4 << 30),
            ("512K", "512K", 512 << 10),
            ("1t", "1T", 1 << 40),
        ] {
            assert_eq!(memory(given), Ok((told.to_owned(), bytes)), "{given}");
        }
        for wrong in ["", "0", "G", "1.5G", "4 apples", "4GBs", "-1", "99999999999999T", "99999999999999999999"] {
            assert!(memory(wrong).unwrap_err().contains("as sbatch takes it"), "{wrong}");
        }
    }

    #[test]
    fn what_sbatch_could_make_nothing_of_is_refused() {
        for option in ["-A lab", "--account=lab", "--exclusive", "-n4"] {
            assert_eq!(parse_option(option).as_deref(), Ok(option));
        }
        for wrong in ["", "-", "--", "---x", "--=lab", "- A", "account", "--account=a\nb"] {
            assert!(parse_option(wrong).is_err(), "{wrong}");
        }
        assert!(parse_name("").is_err() && parse_name(" ").is_err() && parse_name("lab").is_ok());
    }
}
