//! What a part tells of itself while it works: a small file, written anew every few seconds. One that falls silent was killed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::manifest;
use super::part::{Part, Phase};
use crate::files::{sealed, write_file};
use crate::machine::host;

/// How often news is told.
const NEWS: Duration = Duration::from_secs(2);
/// How often it is told that there is none.
const SILENCE: Duration = Duration::from_secs(15);
/// A part that was not heard of for so many seconds is taken to be dead.
pub(super) const DEAD: f64 = 60.0;

/// How far a part is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Heartbeat {
    pub(super) phase: Phase,
    pub(super) part: Part,
    /// The machine and the process.
    pub(super) host: String,
    pub(super) process: u32,
    /// How many cells it runs at the same time.
    pub(super) jobs: usize,
    /// Seconds since 1970: when it began, and when this was written.
    pub(super) started: f64,
    pub(super) heard: f64,
    /// Whether it has come to its end.
    pub(super) ended: bool,
    /// How many cells are its share, how many it found kept, computed, and failed to compute.
    pub(super) cells: usize,
    pub(super) kept: usize,
    pub(super) computed: usize,
    pub(super) failed: usize,
    /// How many ended and left nothing in the folder, which could not be written to.
    #[serde(default)]
    pub(super) lost: usize,
}

impl Heartbeat {
    /// How many cells have ended.
    pub(super) fn done(&self) -> usize {
        self.kept + self.computed + self.failed + self.lost
    }

    /// How many cells it has in hand.
    pub(super) fn running(&self) -> usize {
        self.jobs.min(self.cells.saturating_sub(self.done()))
    }
}

/// Writes the heartbeat of a part.
#[derive(Debug)]
pub(super) struct Heart {
    pub(super) beat: Heartbeat,
    file: PathBuf,
    told: (Instant, usize),
}

impl Heart {
    /// Of a part that begins now with its share of cells.
    pub(super) fn start(
        results: &Path,
        fingerprint: &str,
        phase: Phase,
        part: Part,
        jobs: usize,
        cells: usize,
    ) -> Self {
        let beat = Heartbeat {
            phase,
            part,
            host: host(),
            process: std::process::id(),
            jobs,
            started: now(),
            heard: now(),
            ended: false,
            cells,
            kept: 0,
            computed: 0,
            failed: 0,
            lost: 0,
        };
        let file = manifest::path(results, fingerprint, phase, &format!("part-{}-of-{}", part.number, part.of));
        let mut heart = Self { beat, file, told: (Instant::now(), 0) };
        heart.tell();
        heart
    }

    /// Tells how far the part is, if it is time to.
    pub(super) fn pass(&mut self) {
        let (last, known) = self.told;
        let pause = if self.beat.done() == known { SILENCE } else { NEWS };
        if last.elapsed() >= pause {
            self.tell();
        }
    }

    /// Tells that the part has come to its end.
    pub(super) fn stop(mut self) {
        self.beat.ended = true;
        self.tell();
    }

    /// Work does not depend on anybody hearing of it.
    fn tell(&mut self) {
        self.beat.heard = now();
        self.told = (Instant::now(), self.beat.done());
        let _ = write_file(&self.file, |file| file.write_all(sealed::to_json(&self.beat)?.as_bytes()));
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |elapsed| elapsed.as_secs_f64())
}
