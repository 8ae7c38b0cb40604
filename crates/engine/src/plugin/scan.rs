//! What libraries offer, without opening them here: a helper process opens those that nobody has seen, so that one whose code
//! crashes by being loaded costs nobody but itself; and what it found is kept under the library's content.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use compflow_api::{ForeignLibrary, Kind};
use serde::{Deserialize, Serialize};

use super::library;
use crate::files::{plain, write_whole};

/// How long opening one library may take.
const PATIENCE: Duration = Duration::from_secs(20);

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
        let mut answers = Vec::new();
        while let Some(left) = libraries.get(answers.len()..).filter(|left| !left.is_empty()) {
            let reason = match self.help(left, &mut answers) {
                Ok(reason) => reason,
                Err(error) => format!("cannot be looked into: {}", plain(&error)),
            };
            if answers.len() < libraries.len() {
                answers.push(Err(reason));
            }
        }
        answers
    }

    /// Takes a helper's answers; returns why there are no more.
    fn help(&self, libraries: &[&Path], answers: &mut Vec<Answer>) -> std::io::Result<String> {
        let mut command = Command::new(&self.program);
        command.args(&self.args).args(libraries).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (sender, answered) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    let Ok(answer) = serde_json::from_str::<Answer>(&line) else { break };
                    if sender.send(answer).is_err() {
                        break;
                    }
                }
            });
        }
        let mut left = libraries.len();
        let reason = loop {
            if left == 0 {
                break String::new();
            }
            match answered.recv_timeout(PATIENCE) {
                Ok(answer) => {
                    answers.push(answer);
                    left -= 1;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = child.wait()?;
                    break format!("is not loaded: it ends the process that opens it, by {}", ending(status));
                }
                Err(RecvTimeoutError::Timeout) => {
                    break format!("is not loaded: opening it took longer than {} s", PATIENCE.as_secs());
                }
            }
        };
        let _ = child.kill();
        child.wait()?;
        Ok(reason)
    }

    /// What was found before in a library of this content.
    pub(super) fn recall(&self, hash: &str) -> Option<Description> {
        let text = std::fs::read_to_string(self.place(hash)?).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Keeps what was found. Whoever cannot looks again the next time.
    pub(super) fn keep(&self, hash: &str, found: &Description) {
        let Some((path, json)) = self.place(hash).zip(serde_json::to_string(found).ok()) else { return };
        let _ = path.parent().map(std::fs::create_dir_all);
        let _ = write_whole(&path, false, |file| file.write_all(json.as_bytes()));
    }

    fn place(&self, hash: &str) -> Option<PathBuf> {
        let name = format!("{hash}.{}.json", env!("CARGO_PKG_VERSION"));
        Some(self.kept.as_ref()?.join("libraries").join(name))
    }
}

/// What ended a process.
fn ending(status: std::process::ExitStatus) -> String {
    let text = status.to_string();
    text.strip_suffix(" (core dumped)")
        .unwrap_or(&text)
        .replace("signal: ", "signal ")
        .replace("exit status: ", "exit ")
}
