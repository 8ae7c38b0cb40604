//! The loader `memory`: tables that are already there.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::{Field, Schema, SchemaRef};
use compflow_api::{Batches, Component, Description, Error, LoadRequest, Loader, Result, Services, Stream};
use schemars::JsonSchema;
use serde::Deserialize;

/// Things that components are told by number, as parameters are JSON.
pub(crate) struct Shelf<T> {
    things: OnceLock<Mutex<HashMap<u64, Arc<T>>>>,
    next: AtomicU64,
}

impl<T> Shelf<T> {
    pub(crate) const fn new() -> Self {
        Self { things: OnceLock::new(), next: AtomicU64::new(1) }
    }

    fn things(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<T>>> {
        self.things.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts something there; returns its number, which no other thing gets.
    pub(crate) fn put(&self, thing: T) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.things().insert(number, Arc::new(thing));
        number
    }

    pub(crate) fn get(&self, number: u64) -> Option<Arc<T>> {
        self.things().get(&number).cloned()
    }

    pub(crate) fn remove(&self, number: u64) {
        let thing = self.things().remove(&number);
        // What is in it may take long to drop, or ask for the shelf.
        drop(thing);
    }
}

/// Tables in memory: batches with the same columns, at least one.
pub(crate) static TABLES: Shelf<Vec<RecordBatch>> = Shelf::new();

/// A table that the program has in memory.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// The number under which it is known.
    table: u64,
}

pub(crate) struct Memory(Arc<Vec<RecordBatch>>);

impl Component for Memory {
    const NAME: &'static str = "memory";
    const SUMMARY: &'static str = "tables that are in memory";
    type Params = Params;

    fn new(Params { table }: Params, _services: &Services<'_>) -> Result<Self> {
        TABLES.get(table).map(Self).ok_or_else(|| Error::parameter("table", "is no longer in memory"))
    }
}

impl Memory {
    fn schema(&self) -> Result<SchemaRef> {
        self.0.first().map(RecordBatch::schema).ok_or_else(|| Error::data("there are no rows"))
    }

    /// The columns asked for, by index, and what they are to be called.
    fn chosen(&self, request: &LoadRequest<'_>) -> Result<(Vec<usize>, SchemaRef)> {
        let schema = self.schema()?;
        let names = || schema.fields().iter().map(|field| field.name().as_str());
        let (mut chosen, mut fields) = (Vec::new(), Vec::new());
        for (name, source) in request.columns {
            let (at, field) = schema
                .column_with_name(source)
                .ok_or_else(|| Error::column(name, source, "memory", names().collect::<Vec<_>>()))?;
            chosen.push(at);
            fields.push(Field::new(*name, field.data_type().clone(), field.is_nullable()));
        }
        Ok((chosen, Arc::new(Schema::new(fields))))
    }
}

impl Loader for Memory {
    fn load(&self, request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Stream> {
        let (chosen, schema) = self.chosen(request)?;
        let called = schema.clone();
        let select = move |batch: &RecordBatch| {
            let columns = chosen.iter().map(|at| batch.column(*at).clone()).collect();
            RecordBatch::try_new(called.clone(), columns)
        };
        let batches: Vec<_> = self.0.iter().map(select).collect();
        let batches: Batches = Box::new(RecordBatchIterator::new(batches, schema));
        Ok(batches.into())
    }

    fn describe(&self, request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Option<Description>> {
        self.chosen(request)?;
        let rows = self.0.iter().map(|batch| batch.num_rows() as u64).sum();
        Description::from_schema(&*self.schema()?, Some(rows), None).map(Some)
    }
}
