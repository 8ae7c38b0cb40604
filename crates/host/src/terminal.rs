//! What goes to stderr: progress bars on a terminal, warnings anywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use compflow_api::Level;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Writes a line to stderr. Whether anybody reads it there must not decide what becomes of a run.
pub(crate) fn to_stderr(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The user's terminal, or the pipe that is in its place.
#[derive(Debug)]
pub(crate) struct Terminal {
    bars: MultiProgress,
    quiet: bool,
    /// The least important lines that are shown.
    level: Level,
    /// What each warning was about.
    warnings: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

impl Terminal {
    /// `quiet` shows nothing but errors. `COMPFLOW_LOG=info` or `debug` shows more than warnings.
    pub(crate) fn new(quiet: bool) -> Self {
        let bars = MultiProgress::new();
        if quiet || !std::io::stderr().is_terminal() {
            bars.set_draw_target(ProgressDrawTarget::hidden());
        }
        let level = match std::env::var("COMPFLOW_LOG").as_deref() {
            Ok("debug") => Level::Debug,
            Ok("info") => Level::Info,
            _ => Level::Warn,
        };
        Self { bars, quiet, level, warnings: Mutex::default() }
    }

    /// Shows a line about something, above the bars; a warning only once, however many things it is about.
    pub(crate) fn log(&self, level: Level, about: &str, text: &str) {
        if level < self.level {
            return;
        }
        if level == Level::Warn {
            let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
            let known = warnings.entry(text.to_owned()).or_default();
            known.insert(about.to_owned());
            if known.len() > 1 {
                return;
            }
        }
        let word = match level {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warning",
        };
        let about = if about.is_empty() { String::new() } else { format!("{about}: ") };
        self.say(&format!("{word}: {about}{text}"));
    }

    /// Says how often warnings came again that were shown once.
    pub(crate) fn sum_up_warnings(&self) {
        let warnings = std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner));
        for (text, about) in warnings.into_iter().filter(|(_, about)| about.len() > 1) {
            let cells = match about.len() - 1 {
                1 => "another cell".to_owned(),
                more => format!("{more} further cells"),
            };
            self.say(&format!("warning: in {cells}: {text}"));
        }
    }

    /// Shows an error, however quiet.
    pub(crate) fn error(&self, about: &str, text: &str) {
        self.bars.suspend(|| to_stderr(&format!("error: {about}: {text}")));
    }

    /// Shows a line above the bars.
    pub(crate) fn say(&self, line: &str) {
        if !self.quiet {
            self.bars.suspend(|| to_stderr(line));
        }
    }

    /// A bar that counts the units of `what`.
    pub(crate) fn count(&self, what: &str, total: usize) -> ProgressBar {
        self.bar(what, total, "{msg:>8} {wide_bar:.cyan/black} {pos}/{len} {elapsed}")
    }

    /// A line for one piece of work whose progress comes from a component.
    pub(crate) fn work(&self, what: &str) -> ProgressBar {
        self.bar(what, 0, "         {spinner} {msg} {elapsed}")
    }

    /// Shows how far a component says it is.
    pub(crate) fn advance(bar: &ProgressBar, done: u64, total: u64) {
        if total > 0 && bar.length() != Some(total) {
            bar.set_length(total);
            if let Ok(style) = ProgressStyle::with_template("         {spinner} {msg} {percent} % {elapsed}") {
                bar.set_style(style);
            }
        }
        bar.set_position(done);
    }

    fn bar(&self, what: &str, total: usize, template: &str) -> ProgressBar {
        if self.bars.is_hidden() {
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = self.bars.add(ProgressBar::new(total as u64).with_style(style).with_message(what.to_owned()));
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }
}
