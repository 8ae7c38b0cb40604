//! What goes to stderr: progress bars on a terminal, warnings anywhere; and what comes from the user while work goes on.

pub(crate) mod clean;
#[cfg(unix)]
pub(crate) mod crash;
pub(crate) mod interrupt;
mod lines;
pub(crate) mod problems;
pub(crate) mod stdout;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use compflow_engine::{Counted, Level, Observer, Progress};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use self::clean::{message, one_line};
use self::lines::Lines;
use crate::output::duration;

/// Writes a line to stderr. Whether anybody reads it there must not decide what becomes of a run.
pub(crate) fn to_stderr(line: &str) {
    as_is_to_stderr(&message(line));
}

/// Likewise, with the colours or marks that are in it.
pub(crate) fn as_is_to_stderr(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Texts that were shown once, and what they were about.
type Said = BTreeMap<String, BTreeSet<String>>;

/// Whether a text is shown: only once, however many things it is about.
fn is_new(said: &Mutex<Said>, about: &str, text: &str) -> bool {
    let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
    let known = said.entry(text.to_owned()).or_default();
    known.insert(about.to_owned());
    known.len() == 1
}

/// Those that came again, and in how many cells.
fn again(said: &Mutex<Said>) -> Vec<(String, String)> {
    let said = std::mem::take(&mut *said.lock().unwrap_or_else(PoisonError::into_inner));
    let again = said.into_iter().filter(|(_, about)| about.len() > 1);
    again
        .map(|(text, about)| match about.len() - 1 {
            1 => (text, "another cell".to_owned()),
            more => (text, format!("{more} further cells")),
        })
        .collect()
}

/// The user's terminal, or the pipe that is in its place.
#[derive(Debug)]
pub(crate) struct Terminal {
    bars: MultiProgress,
    /// In place of bars where nobody can see them.
    lines: Option<Lines>,
    quiet: bool,
    /// The least important lines that are shown.
    level: Level,
    /// What each warning was about.
    warnings: Mutex<Said>,
    /// What each error was about.
    errors: Mutex<Said>,
}

impl Terminal {
    /// `quiet` shows nothing but errors. `COMPFLOW_LOG=info` or `debug` shows more than warnings.
    pub(crate) fn new(quiet: bool) -> Self {
        let (bars, is_terminal) = (MultiProgress::new(), std::io::stderr().is_terminal());
        if quiet || !is_terminal {
            bars.set_draw_target(ProgressDrawTarget::hidden());
        }
        let lines = (!quiet && !is_terminal).then(Lines::default);
        let level = match std::env::var("COMPFLOW_LOG").as_deref() {
            Ok("debug") => Level::Debug,
            Ok("info") => Level::Info,
            _ => Level::Warn,
        };
        Self { bars, lines, quiet, level, warnings: Mutex::default(), errors: Mutex::default() }
    }

    /// Ready to be handed to the engine.
    pub(crate) fn shared(quiet: bool) -> Arc<dyn Observer> {
        Arc::new(Self::new(quiet))
    }

    /// Shows a line above the bars.
    fn say(&self, line: &str) {
        if !self.quiet {
            self.bars.suspend(|| to_stderr(line));
        }
    }

    fn bar(&self, what: &str, total: usize, template: &str) -> Box<dyn Progress> {
        if let Some(lines) = &self.lines {
            return lines.begin(what, total > 0, total as u64);
        }
        let until = Until::default();
        if self.bars.is_hidden() {
            return Box::new(Bar { bar: ProgressBar::hidden(), until });
        }
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let left = until.clone();
        let style = style.with_key("left", move |_: &ProgressState, text: &mut dyn std::fmt::Write| {
            let _ = text.write_str(&left.text());
        });
        let bar = self.bars.add(ProgressBar::new(total as u64).with_style(style).with_message(one_line(what)));
        bar.enable_steady_tick(Duration::from_millis(200));
        Box::new(Bar { bar, until })
    }
}

impl Observer for Terminal {
    /// Shows a line about something, above the bars; a warning only once, however many things it is about.
    fn log(&self, level: Level, about: &str, text: &str) {
        if level < self.level {
            return;
        }
        if level == Level::Warn && !is_new(&self.warnings, about, text) {
            return;
        }
        let word = match level {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warning",
        };
        let about = if about.is_empty() { String::new() } else { format!("{}: ", one_line(about)) };
        self.say(&format!("{word}: {about}{text}"));
    }

    /// Shows an error, however quiet; the same one of many cells only once.
    fn error(&self, about: &str, text: &str) {
        if !is_new(&self.errors, about, text) {
            return;
        }
        self.bars.suspend(|| to_stderr(&format!("error: {}: {text}", one_line(about))));
    }

    fn tuned(&self, clusterer: &str, choice: &str) {
        self.say(&format!("tuned {}:{}", one_line(clusterer), one_line(choice)));
    }

    fn selected(&self, data: &str, clusterer: &str, choices: &str) {
        self.say(&format!("selected {} on {}: {}", one_line(clusterer), one_line(data), one_line(choices)));
    }

    /// A bar.
    fn count(&self, what: Counted, total: usize) -> Box<dyn Progress> {
        let what = match what {
            Counted::Data => "loading",
            Counted::Cells => "cells",
        };
        self.bar(what, total, "{msg:>8} {wide_bar:.cyan/black} {pos}/{len} {elapsed}{left}")
    }

    /// A line for one piece of work whose progress comes from a component.
    fn work(&self, about: &str) -> Box<dyn Progress> {
        self.bar(about, 0, "         {spinner} {msg} {elapsed}")
    }

    #[cfg(unix)]
    fn calling(&self, during: &str, component: &str) -> Box<dyn Send> {
        crash::calling(during, component)
    }

    /// Says how often warnings and errors came again that were shown once.
    fn cells_ended(&self) {
        for (text, cells) in again(&self.warnings) {
            self.say(&format!("warning: in {cells}: {text}"));
        }
        for (text, cells) in again(&self.errors) {
            self.bars.suspend(|| to_stderr(&format!("error: in {cells}: {text}")));
        }
    }
}

/// A bar or a line, gone with the work that it is about.
struct Bar {
    bar: ProgressBar,
    until: Until,
}

/// When the work will have ended, as it was told last.
#[derive(Clone, Default)]
struct Until(Arc<Mutex<Option<Instant>>>);

impl Until {
    fn set(&self, seconds: f64) {
        let until = Duration::try_from_secs_f64(seconds).ok().and_then(|left| Instant::now().checked_add(left));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// Nothing once that is past: then it is not known.
    fn text(&self) -> String {
        let until = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until.and_then(|until| until.checked_duration_since(Instant::now()));
        left.map(|left| format!(", about {} left", duration(left.as_secs_f64()))).unwrap_or_default()
    }
}

impl Progress for Bar {
    fn advance(&self, done: u64, total: u64) {
        let Self { bar, .. } = self;
        if total > 0 && bar.length() != Some(total) {
            bar.set_length(total);
            if let Ok(style) = ProgressStyle::with_template("         {spinner} {msg} {percent} % {elapsed}") {
                bar.set_style(style);
            }
        }
        bar.set_position(done);
    }

    fn seconds_left(&self, seconds: f64) {
        self.until.set(seconds);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
