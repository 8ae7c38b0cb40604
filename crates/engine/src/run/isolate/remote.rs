//! The run's side: one worker process after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use compflow_api::Level;

use super::Workers;
use super::frames::{self, Order, SPEECHLESS, Told};
use crate::cancel::Cancel;
use crate::files::plain;
use crate::observer::{Observer, Progress};
use crate::plan::cell::Cell;
use crate::plugin::factory::Factory;
use crate::processes::Process;
use crate::run::budget::{Place, Room};
use crate::run::execute::{Shared, attempt};
use crate::run::recall::recall;
use crate::run::row::Row;
use crate::run::selection::halves_to_cluster;

/// Between two looks whether a worker is still there, and still wanted.
const INTERVAL: Duration = Duration::from_millis(20);
/// How long a worker may take to start, and to begin with a cell, if there is a timeout at all.
const START: Duration = Duration::from_secs(60);
/// How long a worker may take to notice that nothing more is wanted.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a component has done after which nothing more can be heard of its worker.
const CLOSED: &str = "has closed what a worker process answers through, or written into it";

/// Computes cells with one worker at a time, started when there is something to compute.
#[derive(Debug)]
pub(in crate::run) struct Hand<'w> {
    workers: &'w Workers,
    worker: Option<Worker>,
}

impl<'w> Hand<'w> {
    pub(in crate::run) fn new(workers: &'w Workers) -> Self {
        Self { workers, worker: None }
    }

    /// What becomes of a cell.
    pub(in crate::run) fn compute(&mut self, shared: &Shared, cell: Cell, place: &Place<'_>) -> Row {
        let Shared { plan, factory, cache, fresh, strict, .. } = shared;
        let is_kept = || halves_to_cluster(plan, cache, cell) == 0 && recall(plan, cache, cell, *strict).is_some();
        if !fresh && is_kept() {
            // No component is called.
            return attempt(shared, cell, place);
        }
        let about = cell.about(plan);
        // What ran in the worker before, of which something may still be there.
        let before = self.worker.as_ref().map(|worker| worker.called.clone());
        let mut ended = self.order(cell, cell.key(plan), place, factory);
        if let (Err(Lost::Worker(reason)), Some(before)) = (&ended, before)
            && !factory.cancel.requested()
        {
            let before: Vec<String> = before.into_iter().collect();
            let text = format!(
                "{reason}; in a worker process of its own the cell has ended, so something is to blame that an earlier cell has \
                 left behind, such as a thread, of {}",
                before.join(", or of ")
            );
            ended = self.order(cell, cell.key(plan), place, factory);
            if ended.is_ok() {
                factory.observer.log(Level::Warn, &about, &text);
            }
        }
        match ended {
            Ok(row) => row,
            Err(_) if factory.cancel.requested() => Row::unfinished(cell),
            Err(Lost::Worker(reason) | Lost::Cell(reason)) => {
                factory.observer.error(&about, &reason);
                Row { error: Some(reason), ..Row::unfinished(cell) }
            }
        }
    }

    fn order(&mut self, cell: Cell, key: String, place: &Place<'_>, factory: &Factory) -> Result<Row, Lost> {
        let Factory { observer, cancel, .. } = factory;
        let mut worker = match self.worker.take() {
            Some(worker) => worker,
            None => Worker::start(self.workers, &**observer, cancel)?,
        };
        worker.orders += 1;
        let ordered = worker.orders;
        // That nobody reads it shows in that nobody answers.
        let _ = frames::write(&worker.channel, &Order::Compute { number: ordered, cell, key });
        match worker.answer(self.workers.timeout, Some(place), &**observer, cancel)? {
            Told::Ended { number, row, spent } if number == ordered && row.cell.is_of(cell) => {
                self.worker = Some(worker).filter(|_| !spent);
                Ok(*row)
            }
            // Whatever it says next may be as wrong.
            _ => Err(Lost::Worker("a worker process has said what nobody asked".to_owned())),
        }
    }
}

/// Why a cell has no row.
#[derive(Debug)]
enum Lost {
    /// Its worker is gone, or cannot be understood.
    Worker(String),
    /// It would have none from another worker either.
    Cell(String),
}

/// A worker process.
#[derive(Debug)]
struct Worker {
    process: Process,
    channel: UnixStream,
    told: Receiver<Told>,
    /// How many orders it was given: the number of the last one.
    orders: u64,
    /// The components that it is calling, the last one inside the others.
    calls: BTreeMap<u64, String>,
    /// All that it has ever called.
    called: BTreeSet<String>,
}

impl Worker {
    /// Starts one, and waits until it has made its plan.
    fn start(workers: &Workers, observer: &dyn Observer, cancel: &Cancel) -> Result<Self, Lost> {
        let unable = |reason: &str| Lost::Cell(format!("a worker process cannot be started: {reason}"));
        let mut worker = Self::spawn(workers).map_err(|error| unable(&plain(&error)))?;
        let told = frames::write(&worker.channel, &workers.setup).map_err(|error| unable(&plain(&error)));
        let timeout = workers.timeout.map(|timeout| timeout.max(START));
        match told.and_then(|()| worker.answer(timeout, None, observer, cancel))? {
            Told::Ready => Ok(worker),
            Told::Unable(reason) => Err(unable(&reason)),
            _ => Err(unable("it has said what nobody asked")),
        }
    }

    fn spawn(workers: &Workers) -> io::Result<Self> {
        let (channel, theirs) = UnixStream::pair()?;
        let mut command = Command::new(&workers.isolation.program);
        command
            .args(&workers.isolation.args)
            .stdin(Stdio::from(workers.data.try_clone()?))
            .stdout(Stdio::from(OwnedFd::from(theirs)));
        // In a group of its own: Ctrl-C is for the run, which tells its workers.
        let process = Process::start(&mut command)?;
        // It holds the other end of the channel, which must be nobody else's.
        drop(command);
        let (sender, told) = mpsc::channel();
        let from = channel.try_clone()?;
        std::thread::Builder::new().spawn(move || {
            while let Ok(told) = frames::read(&from) {
                if sender.send(told).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { process, channel, told, orders: 0, calls: BTreeMap::new(), called: BTreeSet::new() })
    }

    /// What it says next that is no news about the work; or why it says nothing any more.
    fn answer(
        &mut self,
        timeout: Option<Duration>,
        place: Option<&Place<'_>>,
        observer: &dyn Observer,
        cancel: &Cancel,
    ) -> Result<Told, Lost> {
        // One that lies beyond all time is none.
        let from_now = || Some((Instant::now().checked_add(timeout?)?, timeout?));
        // A cell's time begins with its first component. Until then it is the worker that is waited for.
        let mut deadline = if place.is_none() { from_now() } else { None };
        let mut begin = timeout.and_then(|timeout| Instant::now().checked_add(timeout.max(START)));
        let mut stop: Option<Instant> = None;
        let mut gone: Option<Instant> = None;
        let mut works: BTreeMap<u64, Box<dyn Progress>> = BTreeMap::new();
        loop {
            match self.told.recv_timeout(INTERVAL) {
                Ok(Told::Log(level, about, text)) => observer.log(frames::level(level), &about, &text),
                Ok(Told::Error(about, text)) => observer.error(&about, &text),
                Ok(Told::Work(number, about)) => drop(works.insert(number, observer.work(&about))),
                Ok(Told::Advanced(number, done, total)) => {
                    works.get(&number).iter().for_each(|work| work.advance(done, total));
                }
                Ok(Told::WorkEnded(number)) => drop(works.remove(&number)),
                Ok(Told::Calling(number, component)) => {
                    begin = None;
                    deadline = deadline.or_else(from_now);
                    self.called.insert(component.clone());
                    self.calls.insert(number, component);
                }
                Ok(Told::Returned(number)) => drop(self.calls.remove(&number)),
                Ok(Told::Needs(bytes, about)) => {
                    let asked = Instant::now();
                    if place.is_some_and(|place| place.make(bytes, &about).is_ok()) {
                        let _ = frames::write(&self.channel, &Order::GoOn);
                    }
                    // To wait is no fault of the component.
                    deadline =
                        deadline.and_then(|(at, timeout)| Some((at.checked_add(asked.elapsed())?, timeout)));
                }
                // Nobody waits for it any more.
                Ok(Told::Ended { number, .. }) if number < self.orders => {}
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Disconnected) => return Err(Lost::Worker(self.ended())),
                Err(RecvTimeoutError::Timeout) if gone.is_some_and(|gone| Instant::now() > gone) => {
                    return Err(Lost::Worker(self.ended()));
                }
                // Its last words may be on their way; its end of the channel may have been left to a process that a
                // component has started.
                Err(RecvTimeoutError::Timeout) if self.process.ended().is_some() => {
                    self.process.kill();
                    gone.get_or_insert_with(|| Instant::now() + PATIENCE);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if cancel.requested() {
                let stop = *stop.get_or_insert_with(|| {
                    let _ = self.channel.shutdown(Shutdown::Write);
                    Instant::now() + PATIENCE
                });
                if Instant::now() > stop {
                    return Err(Lost::Cell("was stopped".to_owned()));
                }
            } else if place.is_some() && begin.is_some_and(|begin| Instant::now() > begin) {
                return Err(Lost::Worker("a worker process takes no orders any more".to_owned()));
            } else if let Some((_, timeout)) = deadline.filter(|(deadline, _)| Instant::now() > *deadline) {
                return Err(Lost::Cell(format!(
                    "{} took longer than the timeout, {} s",
                    self.calling(),
                    timeout.as_secs_f64()
                )));
            }
        }
    }

    /// What it has called last that has not returned.
    fn calling(&self) -> &str {
        self.calls.last_key_value().map_or("compflow itself", |(_, component)| component)
    }

    /// What is to be said of a worker that says nothing any more.
    fn ended(&mut self) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.process.ended() {
                Some(status) => return format!("{} {}", self.calling(), how(status)),
                None if Instant::now() < deadline => std::thread::sleep(INTERVAL / 10),
                None => return format!("{} {CLOSED}", self.calling()),
            }
        }
    }
}

/// How a component has ended its process.
fn how(status: ExitStatus) -> String {
    let name = |signal: i32| match signal {
        libc::SIGABRT => "SIGABRT, it was aborted",
        libc::SIGBUS => "SIGBUS, it used memory that is not there",
        libc::SIGFPE => "SIGFPE, it calculated what cannot be",
        libc::SIGILL => "SIGILL, it did what the processor cannot",
        libc::SIGKILL => "SIGKILL, as the system does when memory runs out",
        libc::SIGSEGV => "SIGSEGV, it used memory that is not its own",
        _ => "",
    };
    match (status.signal(), status.code().unwrap_or_default()) {
        (Some(signal), _) if name(signal).is_empty() => format!("crashed: signal {signal}"),
        (Some(signal), _) => format!("crashed: {}", name(signal)),
        (None, SPEECHLESS) => CLOSED.to_owned(),
        (None, code) => format!("ended its process: exit({code})"),
    }
}
