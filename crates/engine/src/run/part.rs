//! A part of a run: every N-th cell. Members of one run may go on at the same time, on any number of machines that share the
//! results folder: cells are kept under their content, appear whole or not at all, and are never locked.
//!
//! Grids are settled by the cells of all parts, so a run that tunes has two phases. A part belongs to one of them; whether the
//! first has ended is seen from the folder.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::budget::Budget;
use super::cache::Cache;
use super::execute::{Shared, Watch, execute};
use super::folder::{make, unwritable};
use super::heartbeat::Heart;
use super::isolate::{Isolation, Workers};
use super::manifest::{CELLS, Manifest, fingerprint, path};
use super::memory::Sampler;
use super::recall::{is_kept, recall_ended};
use super::row::Row;
use super::tuning::{announce, settle};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::observer::{Counted, Observer, Progress};
use crate::plan::Plan;
use crate::plan::cell::{Chosen, test_cells, tuning_cells};

/// One of several parts of a run, written `2/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Which one, from 1.
    pub number: usize,
    /// Of how many.
    pub of: usize,
}

impl Part {
    /// Its share: every N-th of things that are alike if they are near one another, so that all parts take about as long.
    fn share<T>(self, things: Vec<T>) -> Vec<T> {
        things.into_iter().skip(self.number - 1).step_by(self.of).collect()
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        let Some((number, of)) = numbers else {
            return Err("expected a part of all parts, such as 2/8".to_owned());
        };
        match (number, of) {
            (_, 0) => Err("there must be at least one part".to_owned()),
            (number, of) if !(1..=of).contains(&number) => {
                Err(format!("there is no part {number} of {of}: parts are numbered from 1 to {of}"))
            }
            (number, of) => Ok(Self { number, of }),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// What cells are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// They settle grids.
    Tune,
    /// They are the experiment itself.
    Test,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tune => "tune",
            Self::Test => "test",
        })
    }
}

/// How to run a part.
#[derive(Debug, Clone)]
pub struct PartOptions {
    /// Which part.
    pub part: Part,
    /// Of which phase; the one that the folder is in if not given.
    pub phase: Option<Phase>,
    /// Computes everything again, whatever is kept.
    pub fresh: bool,
    /// A method that did not converge has failed.
    pub strict: bool,
    /// How cells can be run in processes of their own; never, if not given.
    pub isolation: Option<Isolation>,
}

/// What became of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartFinished {
    /// Its phase.
    pub phase: Phase,
    /// How many cells are its share.
    pub cells: usize,
    /// How many were kept before.
    pub kept: usize,
    /// How many were computed.
    pub computed: usize,
    /// How many failed.
    pub failed: usize,
    /// How many ended and are not in the folder all the same.
    pub lost: usize,
    /// Why the first of these is not.
    pub lost_why: Option<String>,
    /// Whether the end was requested before all were done.
    pub interrupted: bool,
}

/// Follows the cells of a part, and keeps none of them.
struct Followed {
    progress: Box<dyn Progress>,
    heart: Heart,
    lost_why: Option<String>,
}

impl Watch for Followed {
    fn ended(&mut self, _at: usize, row: Row) {
        let beat = &mut self.heart.beat;
        match (&row.error, &row.brief) {
            _ if row.lost.is_some() => beat.lost += 1,
            (Some(_), _) => beat.failed += 1,
            (None, Some(_)) if row.kept => beat.kept += 1,
            (None, Some(_)) => beat.computed += 1,
            (None, None) => return,
        }
        self.progress.advance(beat.done() as u64, beat.cells as u64);
        self.lost_why = self.lost_why.take().or(row.lost);
    }

    fn passing(&mut self) {
        self.heart.pass();
    }
}

impl Plan {
    /// Computes a part of the cells that are not kept, and keeps them in the folder `out`; writes no tables. A plain
    /// [`run`](Self::run) finds them there. That cells failed is no error, nor that the end was requested.
    ///
    /// # Errors
    /// If the results folder cannot be used, or the phase is not there or not yet.
    pub fn run_part(
        self: &Arc<Self>,
        out: &Path,
        options: PartOptions,
        observer: &Arc<dyn Observer>,
        cancel: &Cancel,
    ) -> Result<PartFinished> {
        make(out, &self.name)?;
        let cache = Cache::open(out, observer).map_err(|error| unwritable(out, &error))?;
        let how = (options.fresh, options.strict);
        let workers = Workers::wanted(self, options.isolation.as_ref(), out, how, &**observer)?;
        let shares = workers.as_ref().map_or_else(|| self.shares(), Workers::shares);
        let chosen = self.chosen_in(&cache, &options)?;
        let phase = if chosen.is_some() { Phase::Test } else { Phase::Tune };
        self.tell_others(out, chosen.as_ref())?;
        let cells = match &chosen {
            None => tuning_cells(self),
            Some(chosen) => {
                announce(self, chosen, &**observer);
                test_cells(self, chosen)
            }
        };
        let cells = options.part.share(cells);
        let jobs = self.jobs.clamp(1, cells.len().max(1));
        let heart = Heart::start(out, &fingerprint(self), phase, options.part, jobs, cells.len());
        let mut followed =
            Followed { progress: observer.count(Counted::Cells, cells.len()), heart, lost_why: None };
        let shared = Shared {
            plan: self.clone(),
            factory: self.factory.watched_by(observer, cancel),
            cache,
            sampler: Sampler::start(),
            budget: Budget::new(shares.together()),
            share: shares.memory,
            fresh: options.fresh,
            strict: options.strict,
            workers,
        };
        execute(&Arc::new(shared), cells, &mut followed);
        let Followed { progress, heart, lost_why } = followed;
        drop(progress);
        observer.cells_ended();
        let beat = heart.beat.clone();
        heart.stop();
        Ok(PartFinished {
            phase,
            cells: beat.cells,
            kept: beat.kept,
            computed: beat.computed,
            failed: beat.failed,
            lost: beat.lost,
            lost_why,
            interrupted: cancel.requested(),
        })
    }

    /// What tuning chose, if the part is one of the second phase.
    fn chosen_in(&self, cache: &Cache, options: &PartOptions) -> Result<Option<Chosen>> {
        let tuning = tuning_cells(self);
        match options.phase {
            _ if tuning.is_empty() && options.phase != Some(Phase::Tune) => return Ok(Some(Chosen::new())),
            Some(Phase::Tune) if tuning.is_empty() => {
                return Err(Error::request("nothing is tuned: there is no `[tune]`, or no grid"));
            }
            Some(Phase::Tune) => return Ok(None),
            None if options.fresh => {
                let text =
                    "what is kept says which phase it is, and is to be computed again: say --phase tune or test";
                return Err(Error::request(text));
            }
            None | Some(Phase::Test) => {}
        }
        let (cells, mut rows, mut unscored) = (tuning.len(), Vec::new(), 0);
        for cell in tuning {
            match recall_ended(self, cache, cell, options.strict) {
                Some(row) => rows.push(row),
                None => unscored += usize::from(is_kept(self, cache, cell)),
            }
        }
        let left = match (cells - rows.len() - unscored, unscored) {
            (0, 0) => return Ok(Some(settle(self, &rows))),
            (missing, 0) => format!("{missing} of {cells} cells are missing"),
            (0, unscored) => format!("{unscored} of {cells} cells are not scored yet"),
            (missing, unscored) => {
                format!("{missing} of {cells} cells are missing, and {unscored} are not scored yet")
            }
        };
        match options.phase {
            Some(Phase::Test) => {
                Err(Error::request(format!("tuning has not ended: {left}; run all parts with --phase tune first")))
            }
            _ => Ok(None),
        }
    }

    /// Leaves the keys of all cells in the folder, for those who look how far its parts are.
    ///
    /// # Errors
    /// If it cannot be written to.
    pub(super) fn tell_others(&self, out: &Path, chosen: Option<&Chosen>) -> Result<()> {
        let fingerprint = fingerprint(self);
        for phase in [Phase::Tune, Phase::Test] {
            // One who is still tuning knows less of the second phase than those who are in it.
            if chosen.is_none() && path(out, &fingerprint, phase, CELLS).exists() {
                continue;
            }
            let manifest = Manifest::new(self, phase, chosen);
            manifest.write(out, &fingerprint).map_err(|error| unwritable(out, &error))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_share_everything_and_share_nothing_twice() {
        for of in 1..9 {
            let mut all: Vec<usize> = Vec::new();
            for number in 1..=of {
                let share = Part { number, of }.share((0..20).collect());
                assert!((20 / of..=20_usize.div_ceil(of)).contains(&share.len()), "{number}/{of}: {share:?}");
                all.extend(share);
            }
            all.sort_unstable();
            assert_eq!(all, (0..20).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_part_must_be_one_of_all() {
        assert_eq!("2/8".parse(), Ok(Part { number: 2, of: 8 }));
        for wrong in ["0/8", "9/8", "1/0", "2", "a/b", "", "-1/4", "1/2/3", "1.5/3"] {
            assert!(wrong.parse::<Part>().is_err(), "{wrong}");
        }
        let error = "9/8".parse::<Part>().unwrap_err();
        assert_eq!(error, "there is no part 9 of 8: parts are numbered from 1 to 8");
    }
}
