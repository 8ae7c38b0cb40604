//! What libraries offer, without opening them here: a helper process opens those that nobody has seen, so that one whose code
//! crashes by being loaded costs nobody but itself; and what it found is kept under the library's content.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use compflow_api::{ForeignLibrary, Kind};
use serde::{Deserialize, Serialize};

use super::library;
use crate::files::{plain, write_whole};
use crate::processes::Process;

/// How long opening one library may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks whether the helper is still there.
const INTERVAL: Duration = Duration::from_millis(10);
/// How long what a helper has said before its end may be on its way: a process that a library has started may hold the other end.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What a library offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// Name for people.
    pub name: String,
    /// Version for people.
    pub version: String,
    /// Its components.
    pub components: Vec<DescribedComponent>,
    /// Why some of its components cannot be used.
    pub refused: Vec<String>,
}

/// A component of a library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescribedComponent {
    /// What it does.
    pub kind: Kind,
    /// The name that pipeline files use.
    pub name: String,
    /// One line.
    pub summary: String,
}

impl From<&ForeignLibrary> for Description {
    fn from(library: &ForeignLibrary) -> Self {
        let components = library.components.iter().map(|component| DescribedComponent {
            kind: component.kind,
            name: component.name.to_owned(),
            summary: component.summary.to_owned(),
        });
        Self {
            name: library.name.clone(),
            version: library.version.clone(),
            components: components.collect(),
            refused: library.refused.iter().map(ToString::to_string).collect(),
        }
    }
}

/// What a helper says of a library: what it offers, or why it cannot be used.
pub type Answer = Result<Description, String>;

/// How libraries are looked into.
#[derive(Debug, Clone)]
pub struct Scan {
    /// Starts a helper, which prints the [`answer`] to every library that is named behind its arguments, a line of JSON each.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The folder for what was found, if it is kept.
    pub kept: Option<PathBuf>,
}

/// Opens a library, in this process.
pub fn answer(path: &Path) -> Answer {
    let file = File::open(path).map_err(|error| plain(&error))?;
    library::open(path, file).map(|library| Description::from(&library)).map_err(|error| error.to_string())
}

impl Scan {
    /// What libraries offer, in their order. One that ends the helper, or keeps it from answering, is refused for that.
    pub fn look_into(&self, libraries: &[&Path]) -> Vec<Answer> {
        self.look(libraries).into_iter().map(|(answer, _)| answer).collect()
    }

    /// Likewise, with whether it is the library's own content that decides.
    pub(super) fn look(&self, libraries: &[&Path]) -> Vec<(Answer, bool)> {
        let mut answers = Vec::new();
        while let Some(left) = libraries.get(answers.len()..).filter(|left| !left.is_empty()) {
            let (reason, lasting) = match self.help(left, &mut answers) {
                Ok(found) => found,
                Err(error) => (format!("cannot be looked into: {}", plain(&error)), false),
            };
            if answers.len() < libraries.len() {
                answers.push((Err(reason), lasting));
            }
        }
        answers
    }

    /// Takes a helper's answers; returns why there are no more, and whether that lasts: a machine that is busy, or kills for want of
    /// memory, says nothing of the library.
    fn help(&self, libraries: &[&Path], answers: &mut Vec<(Answer, bool)>) -> std::io::Result<(String, bool)> {
        let mut command = Command::new(&self.program);
        command.args(&self.args).args(libraries).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut helper = Process::start(&mut command)?;
        let (sender, answered) = channel();
        if let Some(stdout) = helper.child.stdout.take() {
            std::thread::Builder::new().spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    let Ok(answer) = serde_json::from_str::<Answer>(&line) else { break };
                    if sender.send(answer).is_err() {
                        break;
                    }
                }
            })?;
        }
        let mut left = libraries.len();
        let mut deadline = Instant::now() + PATIENCE;
        let (mut status, mut closed, mut heard_all) = (None, false, false);
        while left > 0 {
            match answered.recv_timeout(INTERVAL) {
                Ok(answer) => {
                    // What cannot be used may depend on other things than its content, such as libraries that it needs.
                    let lasting = answer.is_ok();
                    answers.push((answer, lasting));
                    left -= 1;
                    deadline = Instant::now() + PATIENCE;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) if status.is_some() => {
                    heard_all = true;
                    break;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    // Nothing more can come, and it should be at its end.
                    std::thread::sleep(INTERVAL);
                    closed = true;
                    deadline = deadline.min(Instant::now() + LAST_WORDS);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            match helper.ended() {
                Some(ended) if status.is_none() => {
                    status = Some(ended);
                    helper.kill();
                    deadline = Instant::now() + LAST_WORDS;
                }
                _ if Instant::now() > deadline => break,
                _ => {}
            }
        }
        let lasting = heard_all && status.is_some_and(|status| !killed(status));
        let reason = match status {
            _ if left == 0 => String::new(),
            Some(status) => format!("is not loaded: it ends the process that opens it, by {}", ending(status)),
            None if closed => {
                "is not loaded: it has closed what the process that opens it answers through".to_owned()
            }
            None => format!("is not loaded: opening it took longer than {} s", PATIENCE.as_secs()),
        };
        Ok((reason, lasting))
    }

    /// What was found before in a library of this content.
    pub(super) fn recall(&self, hash: &str) -> Option<Answer> {
        let place = self.place(hash)?;
        let text = std::fs::read_to_string(&place).ok()?;
        let again = |reason: String| format!("{reason}; remove {} to have it tried again", place.display());
        Some(serde_json::from_str::<Answer>(&text).ok()?.map_err(again))
    }

    /// Keeps what was found. Whoever cannot looks again the next time.
    pub(super) fn keep(&self, hash: &str, found: &Answer) {
        let Some((path, json)) = self.place(hash).zip(serde_json::to_string(found).ok()) else { return };
        let _ = path.parent().map(std::fs::create_dir_all);
        let _ = write_whole(&path, false, |file| file.write_all(json.as_bytes()));
    }

    fn place(&self, hash: &str) -> Option<PathBuf> {
        let name = format!("{hash}.{}.json", env!("CARGO_PKG_VERSION"));
        Some(self.kept.as_ref()?.join("libraries").join(name))
    }
}

/// Whether somebody else has ended a process.
fn killed(status: std::process::ExitStatus) -> bool {
    #[cfg(unix)]
    return std::os::unix::process::ExitStatusExt::signal(&status) == Some(9);
    #[cfg(not(unix))]
    return status.success();
}

/// What ended a process.
pub(super) fn ending(status: std::process::ExitStatus) -> String {
    let text = status.to_string();
    text.strip_suffix(" (core dumped)")
        .unwrap_or(&text)
        .replace("signal: ", "signal ")
        .replace("exit status: ", "exit ")
}
