//! The worker's side: makes the plan again, and computes the cells that it is told to.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use compflow_api::{Level, Result as ComponentResult};

use super::frames::{self, Order, SPEECHLESS, Setup, Told};
use crate::cancel::Cancel;
use crate::data::snapshot;
use crate::error::{Error, Result};
use crate::files::plain;
use crate::observer::{Observer, Progress, Silent};
use crate::pipeline::{Options, Pins, Pipeline, Variables};
use crate::plan::cell::Cell;
use crate::plan::{Plan, PlannedData};
use crate::plugin::{Registry, library};
use crate::run::budget::{Budget, Room};
use crate::run::cache::Cache;
use crate::run::execute::{GRACE, Shared, attempt};
use crate::run::memory::Sampler;
use crate::run::row::Row;

/// Between two reports of how far a piece of work is.
const PACE: Duration = Duration::from_millis(100);

/// Computes cells for the run at the other end of the channel, until it is told nothing more; then returns, whatever may
/// still be under way. `data` is what that run has handed on.
///
/// # Errors
/// If the run says nothing that can be understood.
pub fn serve(
    channel: UnixStream,
    data: &File,
    libraries: impl FnOnce(&Pins) -> Result<Registry>,
    variables: Variables,
) -> Result<()> {
    let silent = |error: std::io::Error| Error::request(format!("nobody has started this: {}", plain(&error)));
    end_with_the_run();
    let setup: Setup = frames::read(&channel).map_err(silent)?;
    let teller = Arc::new(Teller::new(channel.try_clone().map_err(silent)?));
    let cancel = Cancel::new();
    let shared = match prepare(setup, data, libraries, variables, &teller, &cancel) {
        Ok(shared) => shared,
        Err(error) => {
            teller.tell(&Told::Unable(error.to_string()));
            return Ok(());
        }
    };
    let (orders, ordered) = mpsc::channel::<(u64, Cell, String)>();
    let (grants, granted) = mpsc::channel::<()>();
    let (ended, end) = mpsc::channel::<()>();
    let told = teller.clone();
    let computing = std::thread::Builder::new().spawn(move || {
        let room = Asked { teller: teller.clone(), granted: Mutex::new(granted) };
        for (number, cell, key) in ordered {
            let row = compute(&shared, cell, &key, &room);
            let damaged = cell_of(&shared.plan, cell)
                .is_none_or(|(data, trial)| data.dataset.trials[trial].damaged.load(Ordering::Relaxed));
            // What could not be kept may be for what a component has done to the process, as to how many files it may open.
            let spent = damaged || row.unkept.is_some();
            teller.tell(&Told::Ended { number, row: Box::new(row), spent });
        }
        drop(ended);
    });
    if let Err(error) = computing {
        told.tell(&Told::Unable(format!("no thread can be started: {}", plain(&error))));
        return Ok(());
    }
    told.tell(&Told::Ready);
    loop {
        let heard = match frames::read(&channel) {
            Ok(Order::Compute { number, cell, key }) => orders.send((number, cell, key)).is_ok(),
            Ok(Order::GoOn) => grants.send(()).is_ok(),
            // Nothing more is wanted.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => false,
            // Whoever can hear no more can also say no more, and it is a component that has seen to that.
            Err(_) => library::exit(SPEECHLESS),
        };
        if !heard {
            break;
        }
    }
    cancel.request();
    drop((orders, grants));
    let _ = end.recv_timeout(GRACE);
    Ok(())
}

/// A process that a component has stopped hears no end of its channel. The thread that has started this one lives as long as it is
/// needed.
fn end_with_the_run() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
}

/// Makes the plan of the run.
fn prepare(
    setup: Setup,
    data: &File,
    libraries: impl FnOnce(&Pins) -> Result<Registry>,
    variables: Variables,
    teller: &Arc<Teller>,
    cancel: &Cancel,
) -> Result<Shared> {
    let Setup { pipeline, folder, only, shares, out, fresh, strict } = setup;
    let broken = |error: String| Error::run(format!("what was handed on cannot be read: {error}"));
    let pipeline = serde_json::from_str(&pipeline).map_err(|error| broken(error.to_string()))?;
    let pipeline = Pipeline::from_json(&pipeline, &folder, &Options { set: Vec::new(), only, variables })?;
    let (datasets, inputs) = snapshot::read(data).map_err(|error| broken(plain(&error)))?;
    let registry = libraries(&pipeline.pins())?;
    // What there is to say of the plan, the run has said.
    let plan = pipeline.plan_again(&registry, (datasets, inputs), shares, &Silent::shared(), cancel)?;
    let observer: Arc<dyn Observer> = Arc::new(teller.clone());
    let cache = Cache::open(&out, &observer).map_err(|error| Error::run(plain(&error)))?;
    let factory = plan.factory.watched_by(&observer, cancel);
    // It is the run that shares out what there is.
    let budget = Budget::new(0);
    Ok(Shared { plan, factory, cache, sampler: Sampler::start(), budget, share: 0, fresh, strict, workers: None })
}

/// The data and the trial of a cell, if the plan has it.
fn cell_of(plan: &Plan, cell: Cell) -> Option<(&PlannedData, usize)> {
    let data = plan.data.get(cell.data)?;
    let variant = plan.clusterers.get(cell.clusterer)?.variants.get(cell.variant)?;
    (cell.trial < data.dataset.trials.len() && cell.option < variant.options.len()).then_some((data, cell.trial))
}

fn compute(shared: &Shared, cell: Cell, key: &str, room: &Asked) -> Row {
    let same = cell_of(&shared.plan, cell).is_some() && cell.key(&shared.plan) == key;
    if same {
        return attempt(shared, cell, room);
    }
    let error = "a library, or a file that a component reads, has changed since the run began".to_owned();
    shared.factory.observer.error("", &error);
    Row { error: Some(error), ..Row::unfinished(cell) }
}

/// Asks the run for memory beyond a cell's share.
#[derive(Debug)]
struct Asked {
    teller: Arc<Teller>,
    granted: Mutex<Receiver<()>>,
}

impl Room for Asked {
    fn make(&self, bytes: u64, about: &str) -> ComponentResult<()> {
        self.teller.tell(&Told::Needs(bytes, about.to_owned()));
        let granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        // Where nobody answers, the run is at its end.
        granted.recv().map_err(|_| compflow_api::Error::Cancelled)
    }
}

/// Tells the run what happens. A process that cannot say any more what it does ends at once: the run is gone, or a component has
/// closed what the run listens to, and would let it wait for ever. One that a component has forked says nothing: the run would take it
/// for the worker.
#[derive(Debug)]
struct Teller {
    process: u32,
    channel: Mutex<UnixStream>,
    /// For what is next begun.
    next: AtomicU64,
}

impl Teller {
    fn new(channel: UnixStream) -> Self {
        Self { process: std::process::id(), channel: Mutex::new(channel), next: AtomicU64::new(0) }
    }

    fn tell(&self, told: &Told) {
        // Before anything else: a thread that is only there in the other process may hold the channel.
        if std::process::id() != self.process {
            return;
        }
        let channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        if frames::write(&*channel, told).is_err() {
            library::exit(SPEECHLESS);
        }
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

impl Observer for Arc<Teller> {
    fn log(&self, level: Level, about: &str, text: &str) {
        self.tell(&Told::Log(frames::number(level), about.to_owned(), text.to_owned()));
    }

    fn error(&self, about: &str, text: &str) {
        self.tell(&Told::Error(about.to_owned(), text.to_owned()));
    }

    fn work(&self, about: &str) -> Box<dyn Progress> {
        let number = self.number();
        self.tell(&Told::Work(number, about.to_owned()));
        Box::new(Work { teller: self.clone(), number, told: Mutex::default() })
    }

    fn calling(&self, _during: &str, component: &str) -> Box<dyn Send> {
        let number = self.number();
        self.tell(&Told::Calling(number, component.to_owned()));
        Box::new(Call { teller: self.clone(), number })
    }
}

/// A piece of work that is reported on.
struct Work {
    teller: Arc<Teller>,
    number: u64,
    /// When something was last told.
    told: Mutex<Option<Instant>>,
}

impl Progress for Work {
    fn advance(&self, done: u64, total: u64) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|told| told.elapsed() >= PACE) {
            *told = Some(Instant::now());
            self.teller.tell(&Told::Advanced(self.number, done, total));
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.teller.tell(&Told::WorkEnded(self.number));
    }
}

/// A component that is being called.
struct Call {
    teller: Arc<Teller>,
    number: u64,
}

impl Drop for Call {
    fn drop(&mut self) {
        self.teller.tell(&Told::Returned(self.number));
    }
}
