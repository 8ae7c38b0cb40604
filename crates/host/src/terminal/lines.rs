//! Progress where nobody can see a bar: a line now and then, in a pipe or a log file.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use compflow_engine::Progress;

use super::clean::clean;
use super::to_stderr;
use crate::output::duration;

/// How long after the beginning the first line comes.
const FIRST: Duration = Duration::from_secs(10);
/// How long there is silence at most.
const LONGEST: Duration = Duration::from_secs(60);
/// From one line to the next it takes this part of the time so far.
const PART: f64 = 0.1;

/// What is going on.
#[derive(Debug, Default)]
struct Going {
    /// The next number of a piece of work.
    next: usize,
    /// By number: they began in this order.
    works: BTreeMap<usize, Work>,
    /// Whether somebody tells of it.
    told: bool,
}

#[derive(Debug)]
struct Work {
    what: String,
    /// Whether it is a number of things, and not one of them.
    counts: bool,
    began: Instant,
    done: u64,
    total: u64,
    /// How long it takes from when on, as it was told last.
    seconds_left: Option<(Instant, f64)>,
}

impl Work {
    fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// How long it still takes, by what was told last; once that was too little, by how far others are without which it does not
    /// end, if they are far enough to tell.
    fn left(&self, others: &[&Work]) -> Option<f64> {
        let (told, seconds) = self.seconds_left?;
        let known = others.iter().filter(|work| work.done > 0 && 10 * work.done >= work.total).map(|work| {
            let rest = work.total.saturating_sub(work.done);
            work.seconds() * rest as f64 / work.done as f64
        });
        let left = seconds - told.elapsed().as_secs_f64();
        Some(if left > 0.0 { left } else { known.fold(0.0, f64::max) }).filter(|left| *left > 0.0)
    }
}

#[derive(Debug, Default)]
struct Shared {
    going: Mutex<Going>,
    /// Told when work ends.
    ended: Condvar,
}

impl Shared {
    fn going(&self) -> MutexGuard<'_, Going> {
        self.going.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says how far the work is, again and again until there is none.
    fn report(&self) {
        let (began, mut told) = (Instant::now(), Instant::now());
        let mut going = self.going();
        while !going.works.is_empty() {
            let pause = (began.elapsed().mul_f64(PART)).clamp(FIRST, LONGEST);
            let left = pause.saturating_sub(told.elapsed());
            if left.is_zero() {
                told = Instant::now();
                to_stderr(&clean(&line(&going)));
            } else {
                going = self.ended.wait_timeout(going, left).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        going.told = false;
    }
}

/// Says how far work is.
#[derive(Debug, Default)]
pub(crate) struct Lines(Arc<Shared>);

impl Lines {
    /// A number of things that are done one after the other, or one of them.
    pub(crate) fn begin(&self, what: &str, counts: bool, total: u64) -> Box<dyn Progress> {
        let Self(shared) = self;
        let mut going = shared.going();
        let number = going.next;
        going.next += 1;
        let work =
            Work { what: what.to_owned(), counts, began: Instant::now(), done: 0, total, seconds_left: None };
        going.works.insert(number, work);
        if !std::mem::replace(&mut going.told, true) {
            let shared = shared.clone();
            // Without the thread there is silence, and the work is done all the same.
            let _ = std::thread::Builder::new().name("progress".to_owned()).spawn(move || shared.report());
        }
        drop(going);
        Box::new(Line { shared: shared.clone(), number })
    }
}

/// One piece of work.
struct Line {
    shared: Arc<Shared>,
    number: usize,
}

impl Line {
    fn change(&self, change: impl FnOnce(&mut Work)) {
        self.shared.going().works.get_mut(&self.number).map(change);
    }
}

impl Progress for Line {
    fn advance(&self, done: u64, total: u64) {
        self.change(|work| (work.done, work.total) = (done, total.max(work.total)));
    }

    fn seconds_left(&self, seconds: f64) {
        self.change(|work| work.seconds_left = Some((Instant::now(), seconds)));
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.shared.going().works.remove(&self.number);
        self.shared.ended.notify_all();
    }
}

/// All counts, and the oldest other work: `cells 12/120, 1 min 5 s, about 10 min left; n150 trial 3 CKM 40 %`.
fn line(going: &Going) -> String {
    let others: Vec<&Work> = going.works.values().filter(|work| !work.counts).collect();
    let counts = going.works.values().filter(|work| work.counts).map(|work| {
        let left = work.left(&others).map(|seconds| format!(", about {} left", duration(seconds)));
        let elapsed = duration(work.seconds());
        format!("{} {}/{}, {elapsed}{}", work.what, work.done, work.total, left.unwrap_or_default())
    });
    let oldest = others.first().map(|work| {
        let part = match work.total {
            0 => duration(work.seconds()),
            total => format!("{} %", 100 * work.done / total),
        };
        let more = if others.len() > 1 { format!(" and {} more", others.len() - 1) } else { String::new() };
        format!("{} {part}{more}", work.what)
    });
    counts.chain(oldest).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_done_and_what_goes_on() {
        let lines = Lines::default();
        let cells = lines.begin("cells", true, 40);
        cells.advance(3, 40);
        let work = lines.begin("made trial 3 KM", false, 0);
        assert_eq!(line(&lines.0.going()), "cells 3/40, 1 s; made trial 3 KM 1 s");
        work.advance(1, 4);
        cells.seconds_left(75.0);
        let other = lines.begin("made trial 4 KM", false, 0);
        let said = line(&lines.0.going());
        assert_eq!(said, "cells 3/40, 1 s, about 1 min 15 s left; made trial 3 KM 25 % and 1 more");
        drop(other);
        cells.seconds_left(0.0);
        lines.0.going().works.get_mut(&1).unwrap().began -= std::time::Duration::from_secs(20);
        let said = line(&lines.0.going());
        assert!(said.starts_with("cells 3/40, 1 s, about 1 min "), "a quarter took 20 s: {said}");
        drop(work);
        assert_eq!(line(&lines.0.going()), "cells 3/40, 1 s", "it takes longer than was thought");
    }
}
