//! All cells of a plan, in parallel.

use std::collections::BTreeSet;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::budget::{Budget, Place, Room};
use super::cache::Cache;
use super::compute::{Job, components, compute};
use super::estimate::Estimate;
use super::isolate::{Hand, Workers};
use super::memory::Sampler;
use super::recall::{note_failure, recall};
use super::row::Row;
use super::selection;
use super::tuning::{announce, settle, unsettled};
use crate::cancel::Cancel;
use crate::observer::{Counted, Progress};
use crate::plan::Plan;
use crate::plan::cell::{Cell, Chosen, assume_first, test_cells, tuning_cells};
use crate::plugin::factory::Factory;
use crate::plugin::library;

/// How long cells may take to notice that the end was requested before the run ends without them.
pub(super) const GRACE: Duration = Duration::from_millis(700);

/// What is said of a cell where not a component has panicked.
const PANICKED: &str = "compflow itself panicked; please report this";

/// What the threads of a run share; one that is left behind may use it to the end of the process.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) plan: Arc<Plan>,
    /// Told and stopped by whoever started the run.
    pub(crate) factory: Factory,
    pub(crate) cache: Cache,
    pub(crate) sampler: Sampler,
    pub(crate) budget: Budget,
    /// Bytes of it that a cell has.
    pub(crate) share: u64,
    /// Whether to compute again what is kept.
    pub(crate) fresh: bool,
    /// Whether a method that did not converge has failed.
    pub(crate) strict: bool,
    /// If cells run in processes of their own.
    pub(crate) workers: Option<Workers>,
}

impl Shared {
    fn job<'a>(&'a self, room: &'a dyn Room) -> Job<'a> {
        let Self { plan, factory, cache, sampler, fresh, strict, .. } = self;
        Job { plan, factory, cache, sampler, room: Some(room), fresh: *fresh, strict: *strict }
    }
}

/// What became of all cells.
#[derive(Debug)]
pub(crate) struct Computed {
    pub(crate) rows: Vec<Row>,
    /// What tuning chose.
    pub(crate) chosen: Chosen,
    pub(crate) interrupted: bool,
}

/// Is told what becomes of cells while they run.
pub(super) trait Watch {
    /// The cell at this place has ended.
    fn ended(&mut self, at: usize, row: Row);

    /// Some time has passed.
    fn passing(&mut self) {}
}

/// Counts cells that have ended.
struct Counter {
    progress: Box<dyn Progress>,
    done: u64,
    total: u64,
    estimate: Estimate,
    jobs: usize,
}

impl Counter {
    fn ended(&mut self, plan: &Plan, row: &Row) {
        self.done += 1;
        self.estimate.ended(row, selection::pieces(plan, row.cell));
        let later = (self.total.saturating_sub(self.done) as usize).saturating_sub(self.estimate.left());
        if let Some(seconds) = self.estimate.seconds_left(self.jobs, later) {
            self.progress.seconds_left(seconds);
        }
        self.progress.advance(self.done, self.total);
    }
}

/// Puts rows where they belong.
struct Collected<'a> {
    plan: &'a Plan,
    rows: &'a mut [Row],
    counter: &'a mut Counter,
}

impl Watch for Collected<'_> {
    fn ended(&mut self, at: usize, row: Row) {
        self.counter.ended(self.plan, &row);
        self.rows[at] = row;
    }
}

/// Computes everything that is not kept from an earlier run: first what settles grids, then the experiment itself.
pub(crate) fn compute_all(shared: &Arc<Shared>) -> Computed {
    let Shared { plan, factory, .. } = &**shared;
    let cancel = &factory.cancel;
    let tuning = tuning_cells(plan);
    let total = tuning.len() + test_cells(plan, &assume_first(plan)).len();
    let progress = factory.observer.count(Counted::Cells, total);
    let mut counter =
        Counter { progress, done: 0, total: total as u64, estimate: Estimate::default(), jobs: plan.jobs };
    let mut rows = Vec::with_capacity(total);
    collect(shared, tuning, &mut rows, &mut counter);
    let mut chosen = Chosen::new();
    if !cancel.requested() {
        chosen = settle(plan, &rows);
        announce(plan, &chosen, &*factory.observer);
    }
    collect(shared, test_cells(plan, &chosen), &mut rows, &mut counter);
    if !cancel.requested() {
        let unsettled = unsettled(plan, &chosen, &rows);
        let mut reported = BTreeSet::new();
        for row in &unsettled {
            if reported.insert(row.cell.clusterer) {
                let about = &plan.clusterers[row.cell.clusterer].name;
                factory.observer.error(about, row.error.as_deref().unwrap_or_default());
            }
        }
        rows.extend(unsettled);
    }
    drop(counter);
    factory.observer.cells_ended();
    selection::announce(plan, &rows, &*factory.observer);
    Computed { rows, chosen, interrupted: cancel.requested() }
}

/// Runs cells and adds their rows in the order of the cells.
fn collect(shared: &Arc<Shared>, cells: Vec<Cell>, rows: &mut Vec<Row>, counter: &mut Counter) {
    let Shared { plan, factory, cache, strict, .. } = &**shared;
    counter.estimate.expect(&cells);
    let first = rows.len();
    rows.extend(cells.iter().copied().map(Row::unfinished));
    let rows = &mut rows[first..];
    execute(shared, cells, &mut Collected { plan, rows, counter });
    if factory.cancel.requested() {
        // The tables of a run that was stopped still have what earlier runs have kept.
        for row in rows.iter_mut().filter(|row| row.brief.is_none() && row.error.is_none()) {
            if let Some(known) = recall(plan, cache, row.cell, *strict) {
                *row = known;
            }
        }
    }
}

/// What becomes of a cell in this process. A panic of our own is an error like another.
pub(super) fn attempt(shared: &Shared, cell: Cell, room: &dyn Room) -> Row {
    let job = shared.job(room);
    let about = cell.about(&shared.plan);
    // A component that ends its thread unwinds everything up to what catches panics, where the process is aborted: who it was must
    // not be forgotten on the way.
    let calling = ManuallyDrop::new(shared.factory.observer.calling(&about, &components(&job, cell)));
    let row = catch_unwind(AssertUnwindSafe(|| compute(&job, cell)));
    drop(ManuallyDrop::into_inner(calling));
    // What a component has printed and the C library still holds would be lost with the process.
    library::flush_stdout();
    row.unwrap_or_else(|_| panicked(cell))
}

/// The row of a cell that we are to blame for.
fn panicked(cell: Cell) -> Row {
    Row { error: Some(PANICKED.to_owned()), ..Row::unfinished(cell) }
}

/// Runs cells on as many threads as the plan has jobs. Ends soon after the end was requested, even if a component does not
/// look at the flag: its thread is left behind.
pub(super) fn execute(shared: &Arc<Shared>, cells: Vec<Cell>, watch: &mut dyn Watch) {
    let cancel = &shared.factory.cancel;
    let cells: Arc<[Cell]> = cells.into();
    let next = Arc::new(AtomicUsize::new(0));
    let (sender, receiver) = mpsc::channel();
    for started in 0..shared.plan.jobs.clamp(1, cells.len().max(1)) {
        let (shared, cells, next, sender) = (shared.clone(), cells.clone(), next.clone(), sender.clone());
        let work = move || {
            let mut hand = shared.workers.as_ref().map(Hand::new);
            while !shared.factory.cancel.requested() {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(cell) = cells.get(at) else { break };
                let Factory { observer, cancel, .. } = &shared.factory;
                let place = Place::take(&shared.budget, shared.share, &**observer, cancel);
                let Ok(place) = place else { break };
                let mut row = match &mut hand {
                    Some(hand) => hand.compute(&shared, *cell, &place),
                    None => attempt(&shared, *cell, &place),
                };
                note_failure(&shared.plan, &shared.cache, *cell, &mut row);
                if sender.send((at, row)).is_err() {
                    break;
                }
            }
        };
        // Those that the system does grant do the work of all; without any, this one does.
        if std::thread::Builder::new().spawn(work.clone()).is_err() {
            if started == 0 {
                work();
            }
            break;
        }
    }
    drop(sender);
    gather(&receiver, &cells, cancel, watch, |cell| {
        let mut row = panicked(cell);
        let Shared { plan, cache, factory, .. } = &**shared;
        factory.observer.error(&cell.about(plan), PANICKED);
        note_failure(plan, cache, cell, &mut row);
        row
    });
}

/// Hands on what becomes of cells, until all threads have ended, or soon after the end was requested. A cell of which nothing is
/// heard although nobody wanted the end was lost with its thread: it is `lost`, and must not be missing without a word.
fn gather(
    receiver: &Receiver<(usize, Row)>,
    cells: &[Cell],
    cancel: &Cancel,
    watch: &mut dyn Watch,
    lost: impl Fn(Cell) -> Row,
) {
    let mut heard = vec![false; cells.len()];
    let mut deadline = None;
    loop {
        match receiver.recv_timeout(Duration::from_millis(50)) {
            Ok((at, row)) => {
                heard[at] = true;
                watch.ended(at, row);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        watch.passing();
        if cancel.requested() && Instant::now() > *deadline.get_or_insert_with(|| Instant::now() + GRACE) {
            break;
        }
    }
    if !cancel.requested() {
        let unheard = (0..cells.len()).filter(|at| !heard[*at]);
        unheard.for_each(|at| watch.ended(at, lost(cells[at])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Remembers why cells failed.
    struct Heard(Vec<Option<String>>);

    impl Watch for Heard {
        fn ended(&mut self, at: usize, row: Row) {
            self.0[at] = row.error;
        }
    }

    #[test]
    fn cells_whose_thread_is_gone_have_failed_unless_the_end_was_requested() {
        let cells =
            [0, 1, 2].map(|trial| Cell { data: 0, trial, clusterer: 0, variant: 0, option: 0, settled: false });
        for requested in [false, true] {
            let (sender, receiver) = mpsc::channel();
            sender.send((1, Row::unfinished(cells[1]))).unwrap();
            drop(sender);
            let (cancel, mut heard) = (Cancel::new(), Heard(vec![None; 3]));
            if requested {
                cancel.request();
            }
            gather(&receiver, &cells, &cancel, &mut heard, panicked);
            let lost = Some(PANICKED.to_owned()).filter(|_| !requested);
            assert_eq!(heard.0, [lost.clone(), None, lost]);
        }
    }
}
