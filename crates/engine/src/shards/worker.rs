//! Somebody who takes part: answers what examples add up to, drives the clusterer, labels examples.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, RecordBatch};
use compflow_api::{
    BATCH_ROWS, Clusterer, Composer, Embeddings, Flags, Fold, ForeignClusterer, ForeignComposer, Kind, Level,
    LoadRequest, Loader, Partial, Rows, Services, Sets, Space, StreamTask, Table, Task,
};

use super::job::Job;
use super::kit::Kit;
use super::layout::{Counted, Layout, Shard, Stamp, batches};
use super::model::Model;
use super::read::{Reader, Spare};
use super::told::Told;
use crate::assign::table::{identifiers, row_numbers, table, write};
use crate::assign::{AssignOptions, Assigner, Cell, Examples, Origin};
use crate::cancel::Cancel;
use crate::data::survey::missing_column;
use crate::data::values::Width;
use crate::error::{Error, Result};
use crate::files::{Staged, display, plain};
use crate::observer::{Observer, Progress};
use crate::plan::Resources;
use crate::plan::resources::{cores, memory_budget};
use crate::plugin::Registry;
use crate::plugin::factory::Factory;
use crate::plugin::services::ComponentHost;
use crate::results::{CellTables, singleton_names};
use crate::run::cache::Sort;
use crate::run::canonical::canonical;

/// What a shard adds up to. The numbers change when what follows does.
const SUMS: Sort = Sort { ending: "sums", header: "compflow sums ", version: "1\n" };
/// What is sent for a pass.
const STATE: Sort = Sort { ending: "state", header: "compflow state ", version: "1\n" };

/// Has a pass done: every shard's [`Worker::partial`] for a state, by whoever has it.
pub trait Map: Sync {
    /// What came of the shards, in any order.
    ///
    /// # Errors
    /// Why one of them cannot be had.
    fn map(&self, state: &[u8], shards: &[Shard]) -> Result<Vec<Vec<u8>>>;
}

impl<F: Fn(&[u8], &[Shard]) -> Result<Vec<Vec<u8>>> + Sync> Map for F {
    fn map(&self, state: &[u8], shards: &[Shard]) -> Result<Vec<Vec<u8>>> {
        self(state, shards)
    }
}

/// Somebody who takes part in a job.
pub struct Worker {
    job: Job,
    kit: Kit,
    factory: Factory,
    clusterer: ForeignClusterer,
    composer: Option<ForeignComposer>,
    spare: Spare,
    threads: usize,
}

impl Worker {
    /// Makes the components of a job. Of the resources, jobs do not matter.
    ///
    /// # Errors
    /// If one is not there, refuses its parameters, or cannot cluster examples that are elsewhere.
    pub fn new(
        job: Job,
        registry: &Registry,
        resources: Resources,
        observer: &Arc<dyn Observer>,
        cancel: &Cancel,
    ) -> Result<Self> {
        let memory = resources.memory.unwrap_or_else(memory_budget);
        let factory = Factory::new(registry, &job.folder, observer, cancel, memory);
        let make =
            |kind, used: &super::Used| factory.create(kind, &used.name, &used.params.to_string(), &used.name);
        let name = &job.clusterer.name;
        let about = |error: compflow_api::Error| Error::from(error.context(format!("clusterer `{name}`")));
        let made = make(Kind::Clusterer, &job.clusterer).map_err(about)?;
        if !made.instance.flags()?.contains(Flags::HAS_PARTIAL) {
            let able = registry.entries().filter(|entry| entry.component.flags().contains(Flags::HAS_PARTIAL));
            let able: Vec<String> = able.map(|entry| format!("`{}`", entry.component.name)).collect();
            return Err(Error::request(format!(
                "`{name}` must see all examples and cannot cluster shards; {} can",
                able.join(", ")
            )));
        }
        let uses = made.instance.flags()?;
        let told = [(&job.weight, Flags::USES_WEIGHTS, "weights"), (&job.known, Flags::USES_SEEDS, "known sets")];
        if let Some((_, _, what)) = told.iter().find(|(column, flag, _)| column.is_some() && !uses.contains(*flag))
        {
            return Err(Error::request(format!("`{name}` makes no use of {what}")));
        }
        let composes = uses.contains(Flags::NEEDS_COMPOSER) || uses.contains(Flags::NEEDS_GRADIENTS);
        if composes && job.composer.is_none() && job.degree > 1 {
            let degree = job.degree;
            return Err(Error::request(format!(
                "`{name}` needs a composer for unions of up to {degree}: name one, or set the degree to 1"
            )));
        }
        let mut kit = Kit::new();
        kit.add(registry, Kind::Clusterer, &job.clusterer, &made);
        let clusterer = ForeignClusterer::try_from(made.instance)?;
        let composer = match &job.composer {
            None => None,
            Some(used) => {
                let made = make(Kind::Composer, used)?;
                kit.add(registry, Kind::Composer, used, &made);
                Some(ForeignComposer::try_from(made.instance)?)
            }
        };
        // Nobody who only gives examples to clusters needs it; who reads files says that it is not there.
        if let Ok(made) = make(Kind::Loader, &job.loader) {
            kit.add(registry, Kind::Loader, &job.loader, &made);
        }
        if job.degree == 0 {
            return Err(Error::request("the degree is at least 1"));
        }
        let threads = resources.threads.unwrap_or_else(cores);
        Ok(Self { job, kit, factory, clusterer, composer, spare: Spare::default(), threads })
    }

    /// What is to be done.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// What this one computes with.
    pub fn kit(&self) -> &Kit {
        &self.kit
    }

    /// Counts the rows of files, which are read as if they were one, and cuts them into about so many shards. Files are read
    /// only if their loader cannot say how many rows there are.
    ///
    /// # Errors
    /// If a file cannot be read, is there twice or changes meanwhile, lacks a column, or differs from the others in the length of
    /// embeddings or in what identifiers are.
    pub fn layout(&self, files: &[PathBuf], shards: usize) -> Result<Layout> {
        let (reader, used) = (self.reader(), &self.job.loader);
        let host = ComponentHost::new(&self.factory, &used.name);
        let services = Services { host: &host, memory: self.factory.memory, ..Services::none() };
        let mut counted: Vec<Counted> = Vec::new();
        let mut first: Option<(usize, &PathBuf)> = None;
        let mut identified: Option<(&str, &PathBuf)> = None;
        let mut seen = HashSet::new();
        for file in files {
            let path = std::path::absolute(file).map_err(|error| Error::request(plain(&error)))?;
            // Before anything is read, so that what is read is of this or is noticed.
            let stamp = Stamp::of(&path)?;
            if !seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())) {
                let text = "is there twice: its examples would count twice";
                return Err(Error::request(format!("{} {text}", display(file))));
            }
            let columns = ["embedding", "id", "weight", "seed"];
            let source = reader.source(&path, &columns, &used.params, &display(file))?;
            let asked = source.request.asked();
            let request = LoadRequest { path: Some(&path), columns: &asked };
            let described = source.loader.describe(&request, &services);
            let described = described.map_err(|error| missing_column(error, &asked, &display(file), |_| None))?;
            let said = described.map(|described| (described.rows, source.request.dim().or(described.dim)));
            let (rows, dim) = match said {
                Some((Some(0), _)) => (0, 0),
                Some((Some(rows), Some(dim))) => (rows, dim),
                said => {
                    let counted = reader.count(&path, &display(file), said.and_then(|(rows, _)| rows));
                    counted.map_err(|error| match error {
                        Error::Interrupted => Error::Interrupted,
                        other => Error::data(format!("{}: {other}", display(file))),
                    })?
                }
            };
            if let Some(kind) = reader.kind_of_id(&path, &display(file))? {
                let (known, of) = *identified.get_or_insert((kind, file));
                if kind != known {
                    return Err(Error::data(format!(
                        "{}: the ids are {kind}, and those of {} are {known}",
                        display(file),
                        display(of)
                    )));
                }
            }
            if rows > 0 {
                let (known, of) = *first.get_or_insert((dim, file));
                if dim != known {
                    return Err(Error::data(format!(
                        "{} has embeddings of length {dim}, and {} of length {known}",
                        display(file),
                        display(of)
                    )));
                }
            }
            stamp.require(&path, "while its rows were counted")?;
            counted.push(Counted { path, rows, stamp });
        }
        let (dim, _) = first.ok_or_else(|| Error::data("there are no examples in these files"))?;
        if let Some(made_for) =
            self.composer.as_ref().and_then(ForeignComposer::dim).filter(|wanted| *wanted != dim)
        {
            return Err(Error::data(format!(
                "the files have embeddings of length {dim}, and the composer is made for {made_for}"
            )));
        }
        Layout::new(&counted, dim, shards)
    }

    /// What the examples of a shard add up to for a state, as bytes that [`merge`] puts together with those of others.
    ///
    /// # Errors
    /// If they cannot be read or have changed, with the name of the file; if the driver computes with something else; or what
    /// the clusterer says.
    pub fn partial(&self, state: &[u8], shard: &Shard, dim: usize) -> Result<Vec<u8>> {
        let host = ComponentHost::new(&self.factory, &self.job.clusterer.name);
        let services = self.services(&host);
        let (driver, names, state) = split_state(state)?;
        self.kit.require(&driver)?;
        let mut fold = Fold::new();
        self.reader().batches(shard, dim, &names, |read| {
            let batch = read.batch(dim);
            let partial = self.clusterer.partial(&state, &batch, &services)?;
            Ok(fold.push(batch.first / BATCH_ROWS as u64, partial)?)
        })?;
        encode(&fold)
    }

    /// Clusters all examples; every pass over them is one call of `map`. Columns of weights and of known sets are read here
    /// before, without the embeddings.
    ///
    /// # Errors
    /// Those of `map` and of the clusterer, and what is wrong with these columns.
    pub fn fit(&self, layout: &Layout, map: &dyn Map) -> Result<Model> {
        let name = &self.job.clusterer.name;
        let host = ComponentHost::new(&self.factory, name).with_progress();
        let services = self.services(&host);
        let (columns, told) = (Table::new(), Told::read(self.reader(), layout)?);
        let names = told.seeds.as_ref().map_or(&[][..], |seeds| &seeds.names);
        let task = StreamTask {
            rows: &Elsewhere { kit: &self.kit, layout, map, names },
            space: self.job.space,
            degree: self.job.degree,
            composer: self.composer.as_ref().map(|composer| composer as &dyn Composer),
            truth: None,
            preferences: None,
            weights: told.weights.as_deref(),
            seeds: told.seeds.as_ref().map(|seeds| &seeds.sets),
            columns: &columns,
        };
        let found = self.clusterer.cluster_stream(&task, &services)?;
        let (job, rows, dim) = (self.job.clone(), layout.rows, layout.dim);
        let clustering = canonical(found, names.len());
        Ok(Model { job, rows, dim, clustering, names: names.to_vec() })
    }

    /// Gives the examples of a shard to the clusters of a model, and writes a row for each as `compflow assign` does.
    /// Returns how many.
    ///
    /// # Errors
    /// If they cannot be read, or the table cannot be written.
    pub fn assign(&self, model: &Model, shard: &Shard, out: &Path) -> Result<u64> {
        let assigner = self.assigner(model)?;
        let progress = self.factory.observer.work("assigning");
        let unwritable =
            |error: std::io::Error| Error::run(format!("{} cannot be written: {}", out.display(), plain(&error)));
        let mut done = Err(Error::run("nothing was written"));
        let staged = Staged::write(out, true, |file| {
            done = self.assign_to(&assigner, shard, &*progress, |parts| write(file, parts));
            if done.is_ok() { Ok(()) } else { Err(std::io::Error::other("given up")) }
        });
        match (staged, done) {
            (Ok(staged), done) => staged.commit().map_err(unwritable).and(done),
            // Why it was given up says more.
            (Err(_), Err(error)) => Err(error),
            (Err(error), Ok(_)) => Err(unwritable(error)),
        }
    }

    /// Reads in a thread of its own, so that the table can be written part by part.
    fn assign_to(
        &self,
        assigner: &Assigner,
        shard: &Shard,
        progress: &dyn Progress,
        write: impl FnOnce(&mut dyn Iterator<Item = Result<RecordBatch>>) -> Result<()>,
    ) -> Result<u64> {
        std::thread::scope(|scope| {
            let (sender, receiver) = std::sync::mpsc::sync_channel(2);
            scope.spawn(move || {
                let mut width = Width { dim: assigner.dim() };
                let read = self.reader().each_piece(shard, &["embedding", "id"], &mut |found| {
                    let values = width.values(found.column("embedding")?, found.row)?;
                    let ids = match self.job.id {
                        Some(_) => identifiers(found.column("id")?, found.row)?,
                        None => row_numbers(found.number, found.batch.num_rows()),
                    };
                    sender.send(Ok((values, ids))).map_err(|_| Error::Interrupted)
                });
                if let Err(error) = read {
                    // Nobody listens any more if this fails, and that is why.
                    let _ = sender.send(Err(error));
                }
            });
            let mut done = 0;
            let mut parts = receiver.into_iter().map(|read| {
                if self.factory.cancel.requested() {
                    return Err(Error::Interrupted);
                }
                let (values, ids): (Float32Array, ArrayRef) = read?;
                let assigned = assigner.assign(Embeddings::new(values.values(), assigner.dim()))?;
                done += assigned.len() as u64;
                progress.advance(done, shard.rows());
                table(vec![("id".to_owned(), ids)], &assigned)
            });
            write(&mut parts)?;
            drop(parts);
            Ok(done)
        })
    }

    /// What gives examples to the clusters of a model.
    ///
    /// # Errors
    /// If the model says nothing that examples could be given to.
    pub fn assigner(&self, model: &Model) -> Result<Assigner> {
        let cell = Cell { data: "shards".to_owned(), trial: 0, clusterer: model.job.clusterer.name.clone() };
        let found = CellTables::of(&model.clustering);
        // The examples are not here, and so none of them belongs to nothing.
        let origin = Found { worker: self, model };
        let assigner = Assigner::new(&origin, &cell, &found, (0, model.dim), &AssignOptions::default())?;
        let named = (!model.names.is_empty()).then(|| singleton_names(&model.names, &model.clustering));
        Ok(assigner.named(named))
    }

    fn reader(&self) -> Reader<'_> {
        Reader { job: &self.job, factory: &self.factory, spare: &self.spare, threads: self.threads }
    }

    fn services<'a>(&self, host: &'a ComponentHost<'a>) -> Services<'a> {
        Services { host, seed: self.job.seed, threads: self.threads, memory: self.factory.memory }
    }
}

/// Puts what came of several shards together, as what would have come of one with all of their examples.
///
/// # Errors
/// If a shard is there twice, or the bytes are none of ours.
pub fn merge<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<u8>> {
    let folds = parts.into_iter().map(decode).collect::<Result<Vec<Fold>>>()?;
    encode(&Fold::merge(folds)?)
}

fn encode(fold: &Fold) -> Result<Vec<u8>> {
    SUMS.bytes("", fold).map_err(|error| Error::run(format!("sums cannot be encoded: {error}")))
}

fn decode(bytes: &[u8]) -> Result<Fold> {
    let damaged = || Error::run("what came of a shard is damaged, or of another version of compflow");
    SUMS.value("", bytes).ok_or_else(damaged)
}

/// What is sent for a pass: the clusterer's state, and before it what the driver computes with, and the names of singletons, whose
/// numbers known sets have.
fn join_state(kit: &Kit, names: &[String], state: &[u8]) -> Result<Vec<u8>> {
    let joined = STATE.bytes("", &(kit, names, state));
    joined.map_err(|error| Error::run(format!("a state cannot be encoded: {error}")))
}

fn split_state(bytes: &[u8]) -> Result<(Kit, Vec<String>, Vec<u8>)> {
    let damaged = || Error::run("a state is damaged, or of another version of compflow than the one here");
    STATE.value("", bytes).ok_or_else(damaged)
}

/// Examples that others have.
struct Elsewhere<'a> {
    kit: &'a Kit,
    layout: &'a Layout,
    map: &'a dyn Map,
    names: &'a [String],
}

impl Rows for Elsewhere<'_> {
    fn len(&self) -> usize {
        self.layout.rows as usize
    }

    fn dim(&self) -> usize {
        self.layout.dim
    }

    fn pass(&self, _each: &mut dyn FnMut(Embeddings<'_>) -> compflow_api::Result<()>) -> compflow_api::Result<()> {
        Err(compflow_api::Error::new("the examples are elsewhere and cannot be read here"))
    }

    fn is_elsewhere(&self) -> bool {
        true
    }

    fn reduce(&self, state: &[u8]) -> compflow_api::Result<Partial> {
        let state = join_state(self.kit, self.names, state).map_err(Error::into_component)?;
        let found = self.map.map(&state, &self.layout.shards).map_err(Error::into_component)?;
        let folds = found.iter().map(|bytes| decode(bytes)).collect::<Result<Vec<Fold>>>();
        Fold::merge(folds.map_err(Error::into_component)?)?.finish(batches(self.layout.rows))
    }
}

/// What a model was made from.
struct Found<'a> {
    worker: &'a Worker,
    model: &'a Model,
}

impl Found<'_> {
    fn unknown<T>(&self) -> Result<T> {
        Err(Error::request("the examples that the clusters were found in are elsewhere"))
    }
}

impl Origin for Found<'_> {
    fn space(&self) -> Space {
        self.model.job.space
    }

    fn degree(&self) -> usize {
        self.model.job.degree
    }

    fn has_composer(&self) -> bool {
        self.worker.composer.is_some()
    }

    fn composes(&self, _: &Cell) -> Option<bool> {
        let flags = self.worker.clusterer.flags().ok()?;
        Some(flags.contains(Flags::NEEDS_COMPOSER) || flags.contains(Flags::NEEDS_GRADIENTS))
    }

    fn compose(&self, rows: Embeddings<'_>, sets: &Sets) -> Result<Vec<f32>> {
        let host = ComponentHost::new(&self.worker.factory, "composing");
        let composer = self.worker.composer.as_ref().map(|composer| composer as &dyn Composer);
        let task = Task { space: self.space(), composer, ..Task::new(rows) };
        Ok(task.compose_sets(rows, sets, &self.worker.services(&host))?)
    }

    fn memory(&self) -> u64 {
        self.worker.factory.memory
    }

    fn log(&self, level: Level, about: &str, text: &str) {
        self.worker.factory.observer.log(level, about, text);
    }

    fn examples(&self, _: &Cell) -> Result<Examples> {
        self.unknown()
    }

    fn assignments(&self, _: &Cell) -> Result<Sets> {
        self.unknown()
    }

    fn distances(&self, _: &Cell) -> Result<Vec<f32>> {
        self.unknown()
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("job", &self.job).finish_non_exhaustive()
    }
}
