//! How far the parts of a run are, from the results folder alone: nothing is planned, no data is read, and of cells only the
//! ends of those that settle grids.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::cache::{Cache, Listing};
use super::folder::{LARGEST, PARTS, is_in_use};
use super::generation::{RECORD, place};
use super::heartbeat::{DEAD, Heartbeat, now};
use super::manifest::{CELLS, Manifest};
use super::part::Phase;
use crate::error::{Error, Result};
use crate::files::{read_file, sealed};
use crate::pipeline::{Pipeline, key as key_of};

/// How many reasons of failures are read.
const REASONS: usize = 3;
/// Which of the cells in a folder are those of a pipeline takes its data to say.
const COUNTS: &str = "`compflow plan`, given the same, counts what is its own";

/// How far a run is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// In the order in which they run; a pipeline that does not tune has one.
    pub phases: Vec<PhaseStatus>,
    /// Whether the tables in the folder are those of these cells.
    pub tables: bool,
    /// Whether a run without parts is at work in the folder, which tells nobody how far it is.
    pub run_at_work: bool,
    /// How many parts are at work.
    pub parts: usize,
    /// How many seconds ago the most silent of them was last heard of.
    pub heard_seconds_ago: Option<f64>,
    /// Members that fell silent before their end: number, machine and process.
    pub silent: Vec<String>,
    /// About how many seconds are left, if the parts that are at work go on as they do.
    pub seconds_left: Option<f64>,
    /// What failed first and why, a few of them.
    pub failures: Vec<String>,
    /// What else is in the folder.
    pub others: Vec<Others>,
}

/// How far one phase is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PhaseStatus {
    /// Which one.
    pub phase: Phase,
    /// How many cells it has.
    pub cells: usize,
    /// How many are kept.
    pub done: usize,
    /// How many are being computed.
    pub running: usize,
    /// How many failed.
    pub failed: usize,
}

impl PhaseStatus {
    /// How many cells have not ended.
    pub fn left(&self) -> usize {
        self.cells - self.done - self.failed
    }
}

/// Cells that are not those of the pipeline as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Others {
    /// What they are of.
    pub of: String,
    /// How many of them are kept.
    pub kept: usize,
}

/// What the record of a run says about its tables.
#[derive(Debug, Deserialize)]
struct Written {
    #[serde(default)]
    fingerprint: String,
    pipeline: serde_json::Value,
    only: Vec<String>,
    finished: Option<f64>,
    interrupted: bool,
    cells: usize,
    failed: usize,
}

impl Written {
    /// Whether the run has come to its end.
    fn has_ended(&self) -> bool {
        self.finished.is_some() && !self.interrupted
    }

    /// The status of a run in one piece, all of whose cells are one phase.
    fn status(&self, run_at_work: bool) -> Status {
        let (cells, failed) = (self.cells, self.failed.min(self.cells));
        Status {
            phases: vec![PhaseStatus { phase: Phase::Test, cells, done: cells - failed, running: 0, failed }],
            tables: true,
            seconds_left: Some(0.0),
            ..Status::without_parts(run_at_work)
        }
    }
}

/// The manifests and heartbeats of one plan.
#[derive(Debug, Default)]
struct Known {
    fingerprint: String,
    manifests: BTreeMap<Phase, Manifest>,
    heartbeats: Vec<Heartbeat>,
    /// When something was last heard of it.
    heard: f64,
}

impl Known {
    /// The keys of its cells that are kept.
    fn kept(&self, listing: &Listing) -> HashSet<&String> {
        let keys = self.manifests.values().flat_map(|manifest| manifest.cells.iter().flatten());
        keys.filter(|key| listing.kept.contains(*key)).collect()
    }
}

impl Status {
    /// Where no part has told of itself.
    fn without_parts(run_at_work: bool) -> Self {
        Self {
            phases: Vec::new(),
            tables: false,
            run_at_work,
            parts: 0,
            heard_seconds_ago: None,
            silent: Vec::new(),
            seconds_left: None,
            failures: Vec::new(),
            others: Vec::new(),
        }
    }

    /// Looks into a results folder.
    ///
    /// # Errors
    /// If no part of the pipeline has begun there, no run has ended, and none is at work.
    pub fn read(pipeline: &Pipeline, out: &Path) -> Result<Self> {
        let (cache, key) = (Cache::peek(out), pipeline.key());
        let (listing, known, run_at_work) = (cache.listing(), known(out), is_in_use(out));
        // The second phase is always told of; without it, what there is would look like all.
        let is_ours =
            |known: &&Known| known.manifests.get(&Phase::Test).is_some_and(|manifest| manifest.pipeline == key);
        let ours = known.iter().filter(is_ours).max_by(|left, right| left.heard.total_cmp(&right.heard));
        let record: Option<Written> = parsed(&place(out, RECORD));
        let Some(ours) = ours else {
            let whole = record.filter(|record| key_of(&record.pipeline, &record.only) == key);
            if let Some(record) = whole.as_ref().filter(|record| record.has_ended()) {
                return Ok(record.status(run_at_work));
            }
            let kept = listing.kept.len();
            if run_at_work {
                let of = "runs in one piece, this one's perhaps among them, or of other pipelines".to_owned();
                let others = if kept > 0 { vec![Others { of, kept }] } else { Vec::new() };
                return Ok(Self { others, ..Self::without_parts(true) });
            }
            let (name, out, cells) = (pipeline.name(), out.display(), counted(kept));
            return Err(Error::request(match (whole, kept) {
                (Some(_), 0) => format!(
                    "a run of the pipeline `{name}` in one piece was stopped in {out}, and nothing is kept; `compflow run` \
                     begins again"
                ),
                (Some(_), _) => format!(
                    "a run of the pipeline `{name}` in one piece was stopped in {out}, which has {cells} of it or of others: \
                     {COUNTS}, and `compflow run` goes on"
                ),
                (None, 0) => {
                    format!("no part of the pipeline `{name}` has begun in {out}; see `compflow run --part`")
                }
                (None, _) => format!(
                    "no part of the pipeline `{name}` has begun in {out}, nor has a run in one piece ended; the folder has {cells} of \
                     a run that was stopped or of other pipelines: {COUNTS}, and `compflow run` uses it"
                ),
            }));
        };
        let time = now();
        let alive = |beat: &&Heartbeat| !beat.ended && time - beat.heard < DEAD;
        let working: Vec<&Heartbeat> = ours.heartbeats.iter().filter(alive).collect();
        let phases: Vec<PhaseStatus> = ours
            .manifests
            .values()
            .filter(|manifest| manifest.phase == Phase::Test || !manifest.cells.is_empty())
            .map(|manifest| phase_status(manifest, &cache, &listing, &working))
            .collect();
        let left: usize = phases.iter().map(PhaseStatus::left).sum();
        // What fails takes its time, too.
        let pace =
            |beat: &&Heartbeat| (beat.computed + beat.failed) as f64 / (beat.heard - beat.started).max(1e-3);
        let pace: f64 = working.iter().map(pace).sum();
        let silent = ours.heartbeats.iter().filter(|beat| left > 0 && !beat.ended && !alive(beat));
        let failed: usize = phases.iter().map(|phase| phase.failed).sum();
        let ago = working.iter().map(|beat| (time - beat.heard).max(0.0));
        Ok(Self {
            // Tables that lack what failed then and is there now are to be written again.
            tables: record.is_some_and(|record| {
                let whole = record.has_ended() && (record.failed == 0 || failed > 0);
                whole && record.fingerprint == ours.fingerprint
            }),
            run_at_work,
            parts: working.len(),
            heard_seconds_ago: ago.max_by(f64::total_cmp),
            silent: silent
                .map(|beat| {
                    format!("{} of phase {} ({}, process {})", beat.part, beat.phase, beat.host, beat.process)
                })
                .collect(),
            seconds_left: (left == 0 || pace > 0.0).then(|| left as f64 / pace.max(f64::MIN_POSITIVE)),
            failures: ours
                .manifests
                .values()
                .flat_map(|manifest| &manifest.cells)
                .filter_map(|keys| keys.first().filter(|key| listing.failed.contains(*key)))
                .filter_map(|key| cache.failure(key))
                .take(REASONS)
                .map(|failure| format!("{}: {}", failure.about, failure.error))
                .collect(),
            others: others(&known, ours, &listing),
            phases,
        })
    }
}

fn phase_status(manifest: &Manifest, cache: &Cache, listing: &Listing, working: &[&Heartbeat]) -> PhaseStatus {
    let (mut done, mut failed) = (0, 0);
    for (at, keys) in manifest.cells.iter().enumerate() {
        let is_measured = |key: &String| listing.measured.contains(key) || listing.failed.contains(key);
        let is_selected = || manifest.measured.get(at).is_none_or(|keys| keys.iter().all(is_measured));
        let is_scored = |key: &String| manifest.scored.get(at).is_none_or(|scores| cache.has_scores(key, scores));
        if keys.first().is_some_and(|key| listing.failed.contains(key)) {
            failed += 1;
        } else if is_selected() && keys.iter().any(|key| listing.kept.contains(key) && is_scored(key)) {
            done += 1;
        }
    }
    let phase = manifest.phase;
    let running: usize = working.iter().filter(|beat| beat.phase == phase).map(|beat| beat.running()).sum();
    let cells = manifest.cells.len();
    PhaseStatus { phase, cells, done, failed, running: running.min(cells - done - failed) }
}

/// What the folder holds of others, and in what they differ.
fn others(known: &[Known], ours: &Known, listing: &Listing) -> Vec<Others> {
    let mut counts: BTreeMap<String, HashSet<&String>> = BTreeMap::new();
    let mine = ours.kept(listing);
    let mut claimed = mine.clone();
    for other in known.iter().filter(|other| !std::ptr::eq(*other, ours)) {
        let keys = other.kept(listing);
        claimed.extend(&keys);
        let differs: HashSet<&String> = keys.difference(&mine).copied().collect();
        if let Some(difference) = difference(other, ours).filter(|_| !differs.is_empty()) {
            counts.entry(difference).or_default().extend(differs);
        }
    }
    let mut others: Vec<Others> = counts.into_iter().map(|(of, keys)| Others { of, kept: keys.len() }).collect();
    let unclaimed = listing.kept.iter().filter(|key| !claimed.contains(key)).count();
    if unclaimed > 0 {
        others.push(Others { of: "runs in one piece, or other points of grids".to_owned(), kept: unclaimed });
    }
    others
}

/// In what a plan differs from ours.
fn difference(other: &Known, ours: &Known) -> Option<String> {
    let (other, ours) = (other.manifests.values().next()?, ours.manifests.values().next()?);
    if other.pipeline != ours.pipeline {
        return Some("another pipeline, or this one as it was".to_owned());
    }
    if other.compflow != ours.compflow {
        return Some(format!("compflow {}, and ours is {}", other.compflow, ours.compflow));
    }
    let changed = |theirs: &BTreeMap<String, String>, ours: &BTreeMap<String, String>| {
        let names: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
        let names = names.into_iter().filter(|name| theirs.get(*name) != ours.get(*name));
        names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    let libraries = changed(&other.libraries, &ours.libraries);
    let data = changed(&other.data, &ours.data);
    Some(match (libraries.is_empty(), data.is_empty()) {
        (false, true) => format!("other versions of the libraries {libraries}"),
        (true, false) => format!("other content of the data {data}"),
        (false, false) => {
            format!("other versions of the libraries {libraries} and other content of the data {data}")
        }
        (true, true) => "other files that components read".to_owned(),
    })
}

/// All that parts have told, plan by plan.
fn known(out: &Path) -> Vec<Known> {
    let mut plans: BTreeMap<String, Known> = BTreeMap::new();
    for entry in std::fs::read_dir(out.join(PARTS)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_suffix(".json")) else { continue };
        let Some((fingerprint, rest)) = name.split_once('.') else { continue };
        let known = plans.entry(fingerprint.to_owned()).or_default();
        known.fingerprint = fingerprint.to_owned();
        known.heard = known.heard.max(written(&entry.path()));
        if rest.ends_with(CELLS) {
            let manifest: Option<Manifest> = parsed(&entry.path());
            known.manifests.extend(manifest.map(|manifest| (manifest.phase, manifest)));
        } else {
            known.heartbeats.extend(parsed::<Heartbeat>(&entry.path()));
        }
    }
    for known in plans.values_mut() {
        known.heartbeats.sort_by_key(|beat| (beat.phase, beat.part.of, beat.part.number));
    }
    plans.into_values().collect()
}

/// When a file was written, in seconds since 1970; 0 if it is not there.
fn written(path: &Path) -> f64 {
    let time = std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let time = time.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    time.map_or(0.0, |time| time.as_secs_f64())
}

fn parsed<T: DeserializeOwned>(path: &Path) -> Option<T> {
    sealed::from_json(&read_file(path, LARGEST).ok()?)
}

fn counted(cells: usize) -> String {
    if cells == 1 { "1 cell".to_owned() } else { format!("{cells} cells") }
}
