//! Files of new examples, batch by batch, into a table of their clusters.
//!
//! Reading, assigning and writing go on at the same time: a thread takes batches from the loader, some at a time are assigned by
//! all workers, and what came of them is written in their order. So the table does not depend on the number of
//! threads, and the memory not on the size of the files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};

use arrow_array::RecordBatch;
use compflow_api::{Embeddings, ForeignLoader, Kind, LoadRequest, Loader, Services};
use compflow_kernels::workers::Workers;

use super::assigner::{Assigner, NOTHING};
use super::table::{COLUMNS, NAMES, identifiers, row_numbers, table, write};
use crate::data::request::Request;
use crate::data::source::{DataSource, named};
use crate::data::survey::{describe, missing_column};
use crate::data::values::{FURTHER, Width};
use crate::error::{Error, Result};
use crate::files::{Output, Staged, display, plain};
use crate::observer::Progress;
use crate::pipeline::Named;
use crate::plugin::services::ComponentHost;
use crate::results::RecordedRun;

/// New examples.
#[derive(Debug, Clone)]
pub struct NewData<'a> {
    /// The files, which are read as if they were one.
    pub files: Vec<PathBuf>,
    /// The loader that reads them.
    pub loader: &'a str,
    /// Its parameters.
    pub params: serde_json::Value,
    /// The column of embeddings.
    pub embedding: Named,
    /// The column of identifiers; if not given, the one that the run's data has, if the files have it, and the number of
    /// the row otherwise.
    pub id: Option<&'a str>,
    /// Further columns, which are copied.
    pub columns: &'a [String],
}

/// How many examples went where.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// All.
    pub examples: u64,
    /// By set; the empty one is nothing.
    pub sets: BTreeMap<Vec<u32>, u64>,
}

/// A batch, and where its rows stand.
struct Piece<'a> {
    batch: RecordBatch,
    file: Option<&'a Path>,
    /// Its first row in the file, and among all.
    first_of_file: usize,
    first: u64,
}

/// Assigns all examples of some files, and writes a row for each in their order. The table appears whole or not at all, at `out`,
/// which messages call `shown`.
///
/// # Errors
/// If a file cannot be read, has other columns or embeddings of another length, the table cannot be written, or the work is no
/// longer wanted.
pub fn assign_files(
    assigner: &Assigner,
    run: &RecordedRun<'_>,
    data: &NewData<'_>,
    (out, shown): (&Path, &Path),
    threads: usize,
) -> Result<Tally> {
    let taken = |name: &str| COLUMNS.contains(&name) || NAMES.contains(&name) && assigner.names().is_some();
    if let Some(name) = data.columns.iter().find(|name| taken(name)) {
        return Err(Error::request(format!(
            "the column `{name}` cannot be copied: the table has one of that name"
        )));
    }
    let (source, total) = open(assigner, run, data)?;
    let progress = run.factory().observer.work("assigning");
    let work = Work { assigner, run, source: &source, progress: &*progress, total, threads: threads.max(1) };
    let mut done = Err(Error::run("nothing was written"));
    let staged = Staged::write(out, true, |file| {
        done = work.all(file);
        if done.is_ok() { Ok(()) } else { Err(std::io::Error::other("given up")) }
    });
    let unwritable =
        |error: std::io::Error| Error::run(format!("{} cannot be written: {}", shown.display(), plain(&error)));
    match staged {
        Ok(staged) => staged.commit().map_err(unwritable)?,
        // Why it was given up says more.
        Err(error) => {
            return Err(done
                .err()
                .filter(|_| error.to_string() == "given up")
                .unwrap_or_else(|| unwritable(error)));
        }
    }
    done
}

/// Opens all files, and says how many rows they have, 0 if that takes reading them.
fn open(assigner: &Assigner, run: &RecordedRun<'_>, data: &NewData<'_>) -> Result<(DataSource, u64)> {
    let factory = run.factory();
    let created = factory.create(Kind::Loader, data.loader, &data.params.to_string(), data.loader)?;
    let loader = ForeignLoader::try_from(created.instance)?;
    let host = ComponentHost::new(factory, data.loader);
    let services = Services { host: &host, memory: factory.memory, ..Services::none() };
    let first = data.files.first().map(PathBuf::as_path);
    let about = first.map_or_else(String::new, display);
    let embedding = [("embedding".to_owned(), data.embedding.clone())];
    let mut request = Request::new(&embedding, None, &about, || {
        Ok(describe(&loader, first, data.loader, &about, factory)?.names()?)
    })
    .map_err(|error| match error {
        Error::Component(error) => {
            missing_column(error, &[("embedding", &data.embedding.to_string())], &about, option)
        }
        other => other,
    })?;
    let usual = run.id_column(&assigner.cell().data);
    let mut has_usual = data.id.is_none() && usual.is_some();
    let mut rows = Some(0);
    for file in &data.files {
        let asked = request.asked();
        let described = loader.describe(&LoadRequest { path: Some(file), columns: &asked }, &services);
        let described = described
            .map_err(|error| missing_column(error, &asked, &display(file), |name| option(request.key_of(name))))?;
        if let Some(dim) = described.as_ref().and_then(|described| described.dim)
            && dim != assigner.dim()
        {
            return Err(other_length(dim, assigner).context(display(file)));
        }
        let names = described.as_ref().and_then(|described| described.names().ok()).unwrap_or_default();
        has_usual &= names.iter().any(|name| Some(name.as_str()) == usual);
        rows = rows.zip(described.and_then(|described| described.rows)).map(|(sum, rows)| sum + rows);
    }
    if let Some(id) = data.id.or(usual.filter(|_| has_usual)) {
        request.also([("id".to_owned(), id.to_owned())]);
    }
    request.also(data.columns.iter().map(|name| (format!("{FURTHER}{name}"), name.clone())));
    let files: Vec<Option<PathBuf>> = data.files.iter().cloned().map(Some).collect();
    let source = DataSource { name: "new examples".to_owned(), loader, seed: 0, files, request, segments: false };
    source.probe_all(factory, option)?;
    Ok((source, rows.unwrap_or(0)))
}

/// What names another column.
fn option(key: &str) -> Option<String> {
    matches!(key, "embedding" | "id").then(|| format!("--{key} NAME"))
}

fn other_length(dim: usize, assigner: &Assigner) -> Error {
    let (own, cell) = (assigner.dim(), assigner.cell());
    Error::data(format!(
        "the embeddings have {dim} numbers, and those of {} have {own}; they must be from the same model",
        cell.data
    ))
}

/// Rows of the table, and how many are in each set.
type Assigned = (RecordBatch, BTreeMap<Vec<u32>, u64>);

/// Batches that a thread is given at once.
const AT_ONCE: usize = 4;

/// What the steps of the work have in common.
struct Work<'a, 'r> {
    assigner: &'a Assigner,
    run: &'a RecordedRun<'r>,
    source: &'a DataSource,
    progress: &'a dyn Progress,
    total: u64,
    threads: usize,
}

impl<'a> Work<'a, '_> {
    /// Reads, assigns and writes everything.
    fn all(&self, file: &mut Output<'_>) -> Result<Tally> {
        let workers = Workers::new(self.threads)?;
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel(self.threads * AT_ONCE);
            // Dropping the receiver, however this ends, ends the reader.
            std::thread::Builder::new()
                .spawn_scoped(scope, move || {
                    if let Err(error) = self.read(&workers, &sender) {
                        // Nobody listens any more if this fails, and that is why.
                        let _ = sender.send(Err(error));
                    }
                })
                .map_err(|error| Error::run(format!("no thread can be started: {error}")))?;
            let mut tally = Tally::default();
            let parts = receiver.into_iter().map(|assigned| {
                let (rows, counts) = assigned?;
                tally.examples += rows.num_rows() as u64;
                counts.into_iter().for_each(|(set, count)| *tally.sets.entry(set).or_default() += count);
                self.progress.advance(tally.examples, self.total);
                Ok(rows)
            });
            write(file, parts)?;
            Ok(tally)
        })
    }

    /// Reads the batches of all files and hands on what becomes of them, until one cannot be read or nobody takes them.
    fn read(&self, workers: &Workers, sender: &SyncSender<Result<Assigned>>) -> Result<()> {
        let (mut first, mut pieces, mut nothing) = (0, Vec::new(), None);
        for file in &self.source.files {
            let file = file.as_deref();
            let mut first_of_file = 0;
            let batches = self.source.load(file, self.run.factory(), self.threads)?;
            // What has no rows may be of any type: only the table of nothing at all has its columns.
            nothing = nothing.or_else(|| batches.empty().ok().map(|batch| (batch, file)));
            for batch in batches {
                let batch = batch.map_err(|error| named(file, error))?;
                let rows = batch.num_rows();
                if rows == 0 {
                    continue;
                }
                pieces.push(Piece { batch, file, first_of_file, first });
                first_of_file += rows;
                first += rows as u64;
                if pieces.len() == self.threads * AT_ONCE {
                    self.assign_all(std::mem::take(&mut pieces), workers, sender)?;
                }
            }
        }
        if let (0, Some((batch, file))) = (first, nothing) {
            pieces.push(Piece { batch, file, first_of_file: 0, first });
        }
        self.assign_all(pieces, workers, sender)
    }

    fn assign_all(
        &self,
        pieces: Vec<Piece<'a>>,
        workers: &Workers,
        sender: &SyncSender<Result<Assigned>>,
    ) -> Result<()> {
        if self.run.factory().cancel.requested() {
            return Err(Error::Interrupted);
        }
        let assigned = workers.map(pieces, |piece| {
            let file = piece.file;
            self.assign(&piece).map_err(|error| named(file, error).into_component())
        })?;
        // Whoever no longer listens knows why.
        assigned.into_iter().try_for_each(|one| sender.send(Ok(one)).map_err(|_| Error::Interrupted))
    }

    /// What becomes of a batch: its rows of the table, and how many are in each set.
    fn assign(&self, piece: &Piece<'_>) -> Result<Assigned> {
        let Piece { batch, first_of_file, first, .. } = piece;
        let column = batch.column_by_name("embedding");
        let column = column.ok_or_else(|| Error::data("the loader returned no embeddings"))?;
        let mut width = Width::default();
        let values = width.values(column, *first_of_file)?;
        if width.dim != self.assigner.dim() && !values.is_empty() {
            return Err(other_length(width.dim, self.assigner));
        }
        let assigned = self.assigner.assign(Embeddings::new(values.values(), self.assigner.dim()))?;
        let id = match batch.column_by_name("id") {
            None => row_numbers(*first, batch.num_rows()),
            Some(column) => identifiers(column, *first_of_file)?,
        };
        let mut columns = vec![("id".to_owned(), id)];
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            if let Some(name) = field.name().strip_prefix(FURTHER) {
                columns.push((name.to_owned(), column.clone()));
            }
        }
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        assigned.choices.iter().for_each(|choice| *counts.entry(choice.set).or_default() += 1);
        let sets = self.assigner.sets();
        let named = |set: u32| if set == NOTHING { Vec::new() } else { sets[set as usize].to_vec() };
        let counts = counts.into_iter().map(|(set, count)| (named(set), count)).collect();
        Ok((table(columns, &assigned)?, counts))
    }
}
