//! What libraries offer, without opening them here: a helper process opens those that nobody has seen, so that one whose code
//! crashes by being loaded costs nobody but itself; and what it found is kept under the library's content.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use compflow_api::{ForeignLibrary, Kind};
use serde::{Deserialize, Serialize};

use super::library;
use crate::cancel::Cancel;
use crate::files::{hash_of, make_folders, open_file, plain, read_file, replaceable, sealed, write_file};
use crate::processes::Process;

/// What is said of a library whose name leads to another content than before.
pub(super) const CHANGED: &str = "has changed since it was looked at; run again";
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

/// What a helper says, and of what: nothing else that comes from its process must pass for that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// The library, as it was named, as far as that is text.
    pub path: String,
    /// Hash of the content that was opened; empty if it could not be read.
    pub hash: String,
    /// What there is to say of it.
    pub answer: Answer,
}

/// What is kept of a library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    hash: String,
    answer: Answer,
}

/// More bytes than what is kept of a library ever has.
const MOST_KEPT: u64 = 64 << 20;

impl Kept {
    /// What was kept, if it is what was written.
    pub(crate) fn from_json(bytes: &[u8]) -> Option<Self> {
        sealed::from_json(bytes)
    }
}

/// What a look into a library has found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) answer: Answer,
    /// Whether it is the library's own content that decides.
    lasting: bool,
    /// Hash of the content that was opened, if it came to that.
    hash: Option<String>,
}

/// What a library must hold, or none of its code runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Anything.
    Any,
    /// What has this hash, as it had when it was found.
    Found(String),
    /// What has this hash, which the pipeline requires: nothing else must take its place.
    Required(String),
}

/// A library that is to be looked into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Where it is.
    pub path: PathBuf,
    /// What it must hold.
    pub content: Content,
}

impl Asked {
    /// As a helper is told, by two arguments.
    fn args(&self) -> [OsString; 2] {
        let content = match &self.content {
            Content::Any => "any".to_owned(),
            Content::Found(hash) => format!("found:{hash}"),
            Content::Required(hash) => format!("required:{hash}"),
        };
        [content.into(), self.path.clone().into()]
    }

    /// What a helper was told; arguments of nobody we know stand for nothing.
    pub fn of_args(args: &[OsString]) -> Vec<Self> {
        let content = |text: &OsString| match text.to_str()?.split_once(':') {
            None => Some(Content::Any),
            Some(("found", hash)) => Some(Content::Found(hash.to_owned())),
            Some(("required", hash)) => Some(Content::Required(hash.to_owned())),
            Some(_) => None,
        };
        let asked = |pair: &[OsString]| Some(Self { content: content(&pair[0])?, path: PathBuf::from(&pair[1]) });
        args.chunks_exact(2).filter_map(asked).collect()
    }
}

/// How libraries are looked into.
#[derive(Debug, Clone)]
pub struct Scan {
    /// Starts a helper, which prints what was [`answered`] to every library that was [`Asked`] for behind its arguments, a line of JSON
    /// each.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The folder for what was found, if it is kept.
    pub kept: Option<PathBuf>,
}

/// Opens a library, in this process, if it still has the content that was asked for: by now its name may lead to another.
pub fn answered(Asked { path, content }: &Asked) -> Answered {
    let read = open_file(path).and_then(|file| Ok((hash_of(&file, &Cancel::new())?, file)));
    let (hash, answer) = match read {
        Ok((hash, file)) => {
            let answer = match content {
                Content::Found(expected) | Content::Required(expected) if *expected != hash => {
                    Err(CHANGED.to_owned())
                }
                _ => library::open(path, file, matches!(content, Content::Required(_)))
                    .map_err(|error| error.to_string()),
            };
            (hash, answer)
        }
        Err(error) => (String::new(), Err(plain(&error))),
    };
    Answered {
        path: path.to_string_lossy().into_owned(),
        hash,
        answer: answer.map(|library| Description::from(&library)),
    }
}

impl Scan {
    /// What libraries offer, in their order. One that ends the helper, or keeps it from answering, is refused for that.
    pub fn look_into(&self, libraries: &[Asked]) -> Vec<Answer> {
        self.look(libraries).into_iter().map(|found| found.answer).collect()
    }

    /// Likewise, with what decides whether it can be kept.
    pub(super) fn look(&self, libraries: &[Asked]) -> Vec<Found> {
        let mut answers = Vec::new();
        while let Some(left) = libraries.get(answers.len()..).filter(|left| !left.is_empty()) {
            let (reason, lasting) = match self.help(left, &mut answers) {
                Ok(found) => found,
                Err(error) => (format!("cannot be looked into: {}", plain(&error)), false),
            };
            if answers.len() < libraries.len() {
                answers.push(Found { answer: Err(reason), lasting, hash: None });
            }
        }
        answers
    }

    /// Takes a helper's answers; returns why there are no more, and whether that lasts: a machine that is busy, or kills for want of
    /// memory, says nothing of the library.
    fn help(&self, libraries: &[Asked], answers: &mut Vec<Found>) -> std::io::Result<(String, bool)> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .args(libraries.iter().flat_map(Asked::args))
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut helper = Process::start(&mut command)?;
        let (sender, answered) = channel();
        if let Some(stdout) = helper.child.stdout.take() {
            std::thread::Builder::new().spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    let Ok(answer) = serde_json::from_str::<Answered>(&line) else { break };
                    if sender.send(answer).is_err() {
                        break;
                    }
                }
            })?;
        }
        let mut left = libraries.iter();
        let mut deadline = Instant::now() + PATIENCE;
        let (mut status, mut closed, mut heard_all) = (None, false, false);
        while let Some(next) = left.as_slice().first() {
            match answered.recv_timeout(INTERVAL) {
                Ok(Answered { path, hash, answer }) => {
                    // Of another one nobody has asked, or has heard already.
                    if path == next.path.to_string_lossy() {
                        // What cannot be used may depend on other things than its content, such as libraries that it needs.
                        let lasting = answer.is_ok();
                        answers.push(Found { answer, lasting, hash: Some(hash) });
                        left.next();
                        deadline = Instant::now() + PATIENCE;
                    }
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
            _ if left.len() == 0 => String::new(),
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
        let kept = Kept::from_json(&read_file(&place, MOST_KEPT).ok()?).filter(|kept| kept.hash == hash)?;
        let again = |reason: String| format!("{reason}; remove {} to have it tried again", place.display());
        Some(kept.answer.map_err(again))
    }

    /// Keeps what was found in a library of this content, if that is what decides. Whoever cannot looks again the next time.
    pub(super) fn keep(&self, hash: &str, found: &Found) {
        let other = found.hash.as_ref().is_some_and(|opened| opened != hash);
        if !found.lasting || other {
            return;
        }
        let kept = Kept { hash: hash.to_owned(), answer: found.answer.clone() };
        let Some((path, json)) = self.place(hash).zip(sealed::to_json(&kept).ok()) else { return };
        let _ = path.parent().map(make_folders);
        // Nobody has kept anything in a pipe or a link that is in the way there.
        let _ = replaceable(&path).or_else(|_| std::fs::remove_file(&path));
        let _ = write_file(&path, |file| file.write_all(json.as_bytes()));
    }

    /// Lets go of what was kept, which is not so.
    pub(super) fn forget(&self, hash: &str) {
        let _ = self.place(hash).map(std::fs::remove_file);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_helper_is_told_what_a_library_must_hold() {
        let path = PathBuf::from("/a folder/libcompflow_x.so");
        let asked = [Content::Any, Content::Found("0a".to_owned()), Content::Required("0b".to_owned())]
            .map(|content| Asked { path: path.clone(), content });
        let args: Vec<OsString> = asked.iter().flat_map(Asked::args).collect();
        assert_eq!(Asked::of_args(&args), asked);
    }

    /// Whoever opens another file than the one that was judged runs what nobody has judged.
    #[test]
    fn what_has_another_content_by_now_is_not_opened() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let answer = |content| answered(&Asked { path: file.path().to_owned(), content }).answer.unwrap_err();
        for other in [Content::Found("0a".to_owned()), Content::Required("0a".to_owned())] {
            assert_eq!(answer(other), CHANGED);
        }
        let own = blake3::hash(b"").to_hex().to_string();
        assert!(answer(Content::Found(own.clone())).starts_with("cannot be loaded: "));
        let required = answer(Content::Required(own));
        assert!(required.starts_with("cannot be loaded: ") && required.ends_with(library::ALONE), "{required}");
    }
}
