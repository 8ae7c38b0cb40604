//! compflow: reads a pipeline, runs its components, leaves Parquet tables behind.

mod cli;
mod commands;
mod conformance;
mod failure;
mod output;
mod report;
mod terminal;

use clap::Parser;
use clap::error::{ContextKind, ContextValue};

use compflow_engine::plugin::library;

use crate::cli::{Cli, instead_of};
use crate::terminal::clean::one_line;
use crate::terminal::{interrupt, to_stderr};

fn main() {
    #[cfg(unix)]
    survive_large_files();
    refuse_without_threads();
    let cli = Cli::try_parse().unwrap_or_else(|error| refuse(&harmless(error)));
    let code = match commands::dispatch(&cli) {
        Ok(code) => code,
        Err(failure) => {
            failure::show(&failure);
            failure::exit_code(&failure)
        }
    };
    library::flush_stdout();
    interrupt::exit(code)
}

/// A file that would be larger than the user's limit is an error like any other, and not a signal that ends the process
/// without a word. Workers come by here as well.
#[cfg(unix)]
fn survive_large_files() {
    // Whether it came is seen from the write that failed.
    let came = std::sync::Arc::default();
    let _ = signal_hook::flag::register(rustix::process::Signal::XFSZ.as_raw(), came);
}

/// Polars panics where the system grants it no threads, which is an error like any other: what was computed is kept.
fn refuse_without_threads() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str().is_some_and(|text| text.contains("could not spawn threads")) {
            to_stderr("error: the system grants no more threads; see `ulimit -u`");
            interrupt::exit(1);
        }
        usual(panic);
    }));
}

/// The same error about the same words without what a terminal obeys: a script may have them from other people.
fn harmless(error: clap::Error) -> clap::Error {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    match words.iter().any(|word| one_line(word) != *word) {
        true => Cli::try_parse_from(words.iter().map(|word| one_line(word))).err().unwrap_or(error),
        false => error,
    }
}

/// Says what is wrong with the command line, and what was probably meant.
fn refuse(error: &clap::Error) -> ! {
    // Whether anybody reads it must not decide how this ends.
    let _ = error.print();
    if let Some(ContextValue::String(command)) = error.get(ContextKind::InvalidSubcommand)
        && let Some(tip) = instead_of(command)
    {
        to_stderr(&format!("\n  tip: {tip}"));
    }
    interrupt::exit(error.exit_code())
}
