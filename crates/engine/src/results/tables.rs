//! The tables of a run, as Polars dataframes written to Parquet. They are written a batch of cells at a time, so that they
//! may be larger than the memory there is.

mod assignments;
mod batch;
mod clusters;
mod columns;
mod densities;
mod runs;
mod scores;
mod selection;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;

use polars::prelude::*;
use polars_parquet::write::schema_to_metadata_key;

use self::assignments::Assignments;
use self::batch::{Batch, batches};
use super::summary::Summary;
use crate::error::{Error, Result};
use crate::files::{Output, display, plain};
use crate::plan::Plan;
use crate::run::cache::Cache;
use crate::run::generation::Generation;
use crate::run::row::Row;

/// Takes the parts of a table, in their order.
type Sink<'s> = &'s mut dyn FnMut(DataFrame) -> PolarsResult<()>;
/// Makes a table's parts from a batch of cells, at least one.
type Making<'a> = Box<dyn Fn(&Batch<'_>, Sink<'_>) -> PolarsResult<()> + Send + 'a>;

/// Writes all tables; returns their hashes.
///
/// # Errors
/// Naming the table that could not be written, or the cell that could not be read back.
pub(super) fn write(
    plan: &Plan,
    cache: &Cache,
    rows: &[Row],
    entries: &[Summary],
    next: &Generation,
    folder: &Path,
) -> Result<BTreeMap<String, String>> {
    let assignments = Assignments::new(plan, rows);
    let mut tables = vec![
        ("runs", whole(|batch| runs::runs(plan, batch))),
        ("metrics", whole(|batch| scores::metrics(plan, batch))),
        (
            "assignments",
            Box::new(|batch: &Batch<'_>, sink: Sink<'_>| assignments.write(batch, sink)) as Making<'_>,
        ),
        ("clusters", whole(|batch| clusters::clusters(plan, batch))),
        ("traces", whole(|batch| scores::traces(plan, batch))),
        ("singletons", whole(|batch| clusters::singletons(plan, batch))),
        ("densities", whole(|batch| densities::densities(plan, batch))),
        ("factors", whole(|batch| densities::factors(plan, batch))),
        ("selection", whole(|batch| selection::selection(plan, batch))),
    ];
    if plan.setting.memberships {
        tables.push(("memberships", Box::new(|batch, sink| assignments.write_memberships(batch, sink))));
    }
    let write = |name: &str, fill: &dyn Fn(&mut Table<'_, '_>) -> PolarsResult<()>| {
        let name = format!("{name}.parquet");
        let hash = next.write(&name, |file| Table::write(file, fill).map_err(std::io::Error::other));
        hash.map_err(|error| unwritable(folder, &name, &error))
    };
    // Everybody makes a table of the same batch at the same time, and all wait for the disk.
    let fill = |name: &str, making: &Making<'_>, batches: &Receiver<Arc<Batch<'_>>>| {
        write(name, &|table| batches.iter().try_for_each(|batch| making(&batch, &mut |part| table.add(&part))))
    };
    let mut hashes = BTreeMap::new();
    hashes.insert("summary".to_owned(), write("summary", &|table| table.add(&scores::summary(entries)?))?);
    std::thread::scope(|scope| {
        let (mut senders, mut writers) = (Vec::new(), Vec::new());
        for (name, making) in tables {
            let (sender, receiver) = sync_channel(0);
            senders.push(sender);
            let writer = Builder::new().spawn_scoped(scope, move || fill(name, &making, &receiver));
            let no_thread = |error: std::io::Error| {
                let text = format!("no thread can be started: {}; see `ulimit -u`", plain(&error));
                unwritable(folder, &format!("{name}.parquet"), &std::io::Error::other(text))
            };
            writers.push((name, writer.map_err(no_thread)?));
        }
        let read = hand_out(plan, cache, rows, senders);
        for (name, writer) in writers {
            let panicked =
                |_| Err(Error::run("compflow itself panicked while it wrote a table; please report this"));
            hashes.insert(name.to_owned(), writer.join().unwrap_or_else(panicked)?);
        }
        read
    })?;
    Ok(hashes)
}

/// Gives every batch to everybody. Ends when one of them no longer wants any.
fn hand_out<'a>(
    plan: &Plan,
    cache: &Cache,
    rows: &'a [Row],
    tables: Vec<SyncSender<Arc<Batch<'a>>>>,
) -> Result<()> {
    for range in batches(rows) {
        let batch = Arc::new(Batch::load(plan, cache, &rows[range])?);
        if tables.iter().any(|table| table.send(batch.clone()).is_err()) {
            break;
        }
    }
    Ok(())
}

/// A table that has one part for a batch.
fn whole<'a>(table: impl Fn(&Batch<'_>) -> PolarsResult<DataFrame> + Send + 'a) -> Making<'a> {
    Box::new(move |batch, sink| sink(table(batch)?))
}

/// A table that is being written, in parts with the same columns.
struct Table<'t, 'f> {
    /// Until the columns are known.
    file: Option<&'t mut Output<'f>>,
    writer: Option<BatchedWriter<&'t mut Output<'f>>>,
}

impl<'t, 'f> Table<'t, 'f> {
    fn write(file: &'t mut Output<'f>, fill: &dyn Fn(&mut Self) -> PolarsResult<()>) -> PolarsResult<()> {
        let mut table = Self { file: Some(file), writer: None };
        fill(&mut table)?;
        table.writer.map_or(Ok(()), |writer| writer.finish().map(|_| ()))
    }

    fn add(&mut self, part: &DataFrame) -> PolarsResult<()> {
        if let Some(file) = self.file.take() {
            // Polars would tell Arrow of texts as views, and pandas cannot read lists of them.
            let told = schema_to_metadata_key(&part.schema().to_arrow(CompatLevel::oldest()));
            let writer =
                ParquetWriter::new(file).with_key_value_metadata(Some(KeyValueMetadata::Static(vec![told])));
            self.writer = Some(writer.batched(part.schema())?);
        }
        self.writer.as_mut().map_or(Ok(()), |writer| writer.write_batch(part))
    }
}

/// Why a file of the results cannot be written.
fn unwritable(folder: &Path, name: &str, error: &std::io::Error) -> Error {
    Error::run(format!(
        "{}: {name} cannot be written: {}; finished cells are kept, run again to continue",
        display(folder),
        plain(error)
    ))
}
