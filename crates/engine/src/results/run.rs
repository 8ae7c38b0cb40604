//! From a plan to a results folder.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use compflow_api::Level;

use super::advice::advise;
use super::record::RunRecord;
use super::summary::{Summary, summarize};
use super::tables;
use crate::cancel::Cancel;
use crate::error::Result;
use crate::files::display;
use crate::observer::Observer;
use crate::plan::Plan;
use crate::run::budget::Budget;
use crate::run::cache::Cache;
use crate::run::execute::{Computed, Shared, compute_all};
use crate::run::folder::{ResultsFolder, kept_inputs, unwritable};
use crate::run::generation::{Generation, RECORD, place};
use crate::run::isolate::{Isolation, Workers};
use crate::run::memory::Sampler;
use crate::run::row::Row;

/// How to run.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Computes everything again, whatever is kept.
    pub fresh: bool,
    /// A method that did not converge has failed.
    pub strict: bool,
    /// How cells can be run in processes of their own; never, if not given.
    pub isolation: Option<Isolation>,
}

/// What a run leaves in memory.
#[derive(Debug)]
pub struct Finished {
    /// The results table.
    pub summary: Vec<Summary>,
    /// Whether the end was requested before all cells were done.
    pub interrupted: bool,
    rows: Vec<Row>,
}

impl Finished {
    /// How many cells there are.
    pub fn cells(&self) -> usize {
        self.rows.len()
    }

    /// How many have an outcome.
    pub fn done(&self) -> usize {
        self.rows.iter().filter(|row| row.brief.is_some()).count()
    }

    /// How many failed.
    pub fn failed(&self) -> usize {
        self.rows.iter().filter(|row| row.error.is_some()).count()
    }

    /// How many were kept from an earlier run.
    pub fn kept(&self) -> usize {
        self.rows.iter().filter(|row| row.kept).count()
    }
}

impl Plan {
    /// The pipeline file whose results are in a folder, if it is another one than this plan's that is still there.
    fn replaced(&self, out: &Path) -> Option<PathBuf> {
        let RunRecord { file, folder, .. } = RunRecord::read(out).ok()?;
        let other = folder.join(Path::new(&file).file_name()?).canonicalize().ok()?;
        let own = self.file.canonicalize().ok()?;
        (other.is_file() && other != own).then_some(other)
    }

    /// Runs everything that is not kept from an earlier run, and writes the tables into the folder `out`. That cells
    /// failed is no error, nor that the end was requested: the tables have what there is.
    ///
    /// # Errors
    /// If the results folder cannot be used, or the tables cannot be written.
    pub fn run(
        self: &Arc<Self>,
        out: &Path,
        options: RunOptions,
        observer: &Arc<dyn Observer>,
        cancel: &Cancel,
    ) -> Result<Finished> {
        let folder = ResultsFolder::open(out, &self.name)?;
        let cache = Cache::open(out, observer).map_err(|error| unwritable(out, &error))?;
        let how = (options.fresh, options.strict);
        let workers = Workers::wanted(self, options.isolation.as_ref(), out, how, &**observer)?;
        let shares = workers.as_ref().map_or_else(|| self.shares(), Workers::shares);
        if let Some(other) = self.replaced(out) {
            let text = format!(
                "the results of {} in {}, a pipeline with the same name, are replaced; what it computed is kept, and running it \
                 again brings them back. Another name, or another folder with --out, keeps both",
                other.display(),
                display(out)
            );
            observer.log(Level::Warn, "", &text);
        }
        let mut record = RunRecord { memory_bytes: shares.memory, ..RunRecord::new(self, options.strict) };
        if !place(out, RECORD).exists() {
            // Marks the folder as ours. An earlier record stays until the tables that it describes are replaced.
            commit(out, Generation::begin(out), &record)?;
        }
        let Computed { rows, chosen, interrupted } = compute_all(&Arc::new(Shared {
            plan: self.clone(),
            factory: self.factory.watched_by(observer, cancel),
            cache: cache.clone(),
            sampler: Sampler::start(),
            budget: Budget::new(shares.together()),
            share: shares.memory,
            fresh: options.fresh,
            strict: options.strict,
            workers,
        }));
        record.finish(self, &rows, &chosen, interrupted);
        record.kept_inputs = kept_inputs(out);
        let summary = summarize(self, &rows);
        if !interrupted {
            advise(self, &rows, &chosen, &summary, observer.as_ref());
        }
        let next = Generation::begin(out).map_err(|error| unwritable(out, &error))?;
        record.tables = tables::write(self, &cache, &rows, &summary, &next, out)?;
        commit(out, Ok(next), &record)?;
        drop(folder);
        Ok(Finished { rows, summary, interrupted })
    }
}

/// Adds the record to a generation, and makes it what the folder holds.
fn commit(out: &Path, next: io::Result<Generation>, record: &RunRecord) -> Result<()> {
    let committed = next.and_then(|next| {
        let json = record.to_json()?;
        next.write(RECORD, |file| writeln!(file, "{json}"))?;
        next.commit()
    });
    committed.map_err(|error| unwritable(out, &error))
}
