//! Components of other people's libraries are made in a helper process first: one that ends the process that makes it, and may do
//! so without a word, is refused by name instead.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use compflow_api::{Error, Kind, Result};
use serde::{Deserialize, Serialize};

use super::factory::Factory;
use super::registry::Registry;
use super::scan::ending;
use crate::cancel::Cancel;
use crate::files::plain;
use crate::observer::Silent;
use crate::pipeline::Pins;
use crate::processes::Process;

/// How long a helper that says nothing any more may take to end.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// How a helper is started.
#[derive(Debug, Clone)]
pub struct Rehearsal {
    /// Starts a helper, which calls [`rehearse`].
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Folders of libraries whose components need none.
    pub trusted: Vec<PathBuf>,
    /// What libraries are pinned to.
    pub pins: Pins,
}

/// The first thing that a helper is told.
#[derive(Debug, Serialize, Deserialize)]
struct Setup {
    folder: PathBuf,
    memory: u64,
    pins: Pins,
}

/// A component that is to be made, with its parameters as JSON.
type Asked = (Kind, String, String);

/// What was made in a helper. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Rehearsed {
    how: Arc<Rehearsal>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    helper: Option<Helper>,
    made: HashSet<Asked>,
}

#[derive(Debug)]
struct Helper {
    process: Process,
    told: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// How many components it was asked for; it answers with the number of each.
    asked: u64,
}

impl Rehearsed {
    pub(super) fn new(how: Rehearsal) -> Self {
        Self { how: how.into(), state: Arc::default() }
    }

    /// Ends the helper; another one is started if there is more to make.
    pub(super) fn rest(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).helper = None;
    }

    /// Makes a component of this library in a helper, asks what it needs, and ends it, unless that was done before.
    ///
    /// # Errors
    /// If the helper does not survive that. What the component itself refuses is no error here: it will again.
    pub(super) fn make(&self, library: &Path, asked: Asked, folder: &Path, memory: u64) -> Result<()> {
        if library.parent().is_some_and(|folder| self.how.trusted.iter().any(|trusted| trusted == folder)) {
            return Ok(());
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.made.contains(&asked) {
            return Ok(());
        }
        let unable =
            |error: io::Error| Error::new(format!("cannot be tried in another process: {}", plain(&error)));
        let mut helper = match state.helper.take() {
            Some(helper) => helper,
            None => Helper::start(&self.how, folder, memory).map_err(unable)?,
        };
        if helper.makes(&asked) {
            state.helper = Some(helper);
            state.made.insert(asked);
            return Ok(());
        }
        let deadline = Instant::now() + LAST_WORDS;
        let how = loop {
            match helper.process.ended() {
                Some(status) => break format!("it ends the process that makes it, by {}", ending(status)),
                None if Instant::now() > deadline => {
                    break "it closes what the process that makes it answers through".to_owned();
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let (kind, name, _) = asked;
        let text = format!("{kind} `{name}` of {} cannot be used: {how}", library.display());
        Err(Error::new(text).help("leave the component out, or ask whoever made it"))
    }
}

impl Helper {
    fn start(how: &Rehearsal, folder: &Path, memory: u64) -> io::Result<Self> {
        let mut command = Command::new(&how.program);
        // What it prints is printed again when it is made in earnest.
        command.args(&how.args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Process::start(&mut command)?;
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let mut told = process.child.stdin.take().ok_or_else(gone)?;
        let answers = BufReader::new(process.child.stdout.take().ok_or_else(gone)?);
        let setup = Setup { folder: folder.to_owned(), memory, pins: how.pins.clone() };
        // That nobody reads it shows in that nobody answers.
        let _ = say(&mut told, &setup);
        Ok(Self { process, told, answers, asked: 0 })
    }

    /// Whether it has survived.
    fn makes(&mut self, asked: &Asked) -> bool {
        self.asked += 1;
        let expected = self.asked.to_le_bytes();
        let mut answer = expected;
        say(&mut self.told, asked).is_ok() && self.answers.read_exact(&mut answer).is_ok() && answer == expected
    }
}

fn say(mut to: impl Write, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// Makes components for the process at the other end, until it is told of no more.
///
/// # Errors
/// If nobody says anything that can be understood.
pub fn rehearse(
    told: impl BufRead,
    mut answers: impl Write,
    libraries: impl FnOnce(&Pins) -> Registry,
) -> io::Result<()> {
    let mut lines = told.lines();
    let setup = lines.next().ok_or(io::ErrorKind::UnexpectedEof)??;
    let Setup { folder, memory, pins } = serde_json::from_str(&setup)?;
    let factory = Factory::new(&libraries(&pins), &folder, &Silent::shared(), &Cancel::new(), memory);
    for (number, line) in (1u64..).zip(lines) {
        let (kind, name, params): Asked = serde_json::from_str(&line?)?;
        if let Ok(created) = factory.create(kind, &name, &params, &name) {
            let _ = created.instance.flags();
            let _ = created.instance.columns();
            drop(created);
        }
        answers.write_all(&number.to_le_bytes())?;
        answers.flush()?;
    }
    Ok(())
}
