//! compflow: reads a pipeline, runs its components, leaves Parquet tables behind.

mod cli;
mod commands;
mod conformance;
mod failure;
mod output;
mod report;
mod terminal;

use clap::Parser;

use crate::cli::Cli;
use crate::terminal::interrupt;

fn main() {
    let cli = Cli::parse();
    let code = match commands::dispatch(&cli) {
        Ok(code) => code,
        Err(failure) => {
            failure::show(&failure);
            failure::exit_code(&failure)
        }
    };
    interrupt::exit(code)
}
