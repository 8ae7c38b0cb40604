//! The loader `synthetic`: compositional data drawn from a seed.
//!
//! Prototypes, the order of the rows and the noise have a random stream each, per trial, and are drawn row by row. So
//! the data does not depend on how it is cut into batches, nor on which columns are asked for.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, FixedSizeListArray, Float32Array, RecordBatch, RecordBatchIterator, RecordBatchOptions, UInt32Array,
};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use compflow_api::{
    Batches, Code, Component, Composer, Description, Embeddings, Error, ForeignComposer, LoadRequest, Loader,
    Result, Services, Sets, Stream, compose_sets,
};
use compflow_kernels::counting;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::select::all;
use crate::source::{in_stream, lists, rows_per_batch, set_item};

/// Draws compositional data: no file is read.
///
/// In each trial, `k` prototypes are drawn from a standard normal distribution. Every set of up to `degree` of them
/// has a centre, the prototypes composed by `composer`, and gets equally many of the `n` examples (the first sets one
/// more if they do not divide evenly): its centre plus Gaussian noise, in random order. The columns may be asked for
/// under any name: embeddings, true sets, trials from 0, and identifiers from 0 within each trial.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Params {
    /// Examples per trial; at least one for each set.
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    n: usize,
    /// Dimension of the embeddings.
    #[schemars(range(min = 1, max = 1_048_576))]
    dim: usize,
    /// Number of prototypes, hence of singletons.
    #[schemars(range(min = 1))]
    k: usize,
    /// Size of the largest sets.
    #[schemars(range(min = 1))]
    degree: usize,
    /// Standard deviation of the noise in each dimension; that of the prototypes is 1.
    #[schemars(range(min = 0.0))]
    noise: f64,
    /// Number of trials.
    #[schemars(range(min = 1))]
    trials: u32,
    /// What composes the prototypes.
    composer: ComposerParams,
    /// Replaces the seed of the run.
    seed: Option<u64>,
}

/// A composer, as in `{ use = "max" }`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct ComposerParams {
    /// Its name.
    r#use: String,
    /// Its parameters.
    params: Map<String, Value>,
}

impl Default for ComposerParams {
    fn default() -> Self {
        Self { r#use: "max".to_owned(), params: Map::new() }
    }
}

impl Default for Params {
    fn default() -> Self {
        Self {
            n: 150,
            dim: 32,
            k: 5,
            degree: 2,
            noise: 0.3,
            trials: 1,
            composer: ComposerParams::default(),
            seed: None,
        }
    }
}

struct Synthetic {
    params: Params,
    composer: Arc<ForeignComposer>,
    sets: Arc<Sets>,
}
compflow_api::register!(loader Synthetic);

impl Component for Synthetic {
    const NAME: &'static str = "synthetic";
    const SUMMARY: &'static str = "compositional data drawn from a seed";
    type Params = Params;

    fn new(params: Params, services: &Services<'_>) -> Result<Self> {
        let Params { n, dim, k, degree, .. } = params;
        let sets = counting::sets(k, 1..=degree).filter(|sets| *sets <= n as u128).ok_or_else(|| {
            Error::parameter("n", format!("= {n} examples are too few for the sets of up to {degree} of {k}"))
        })? as usize;
        // The centres, the prototypes, and the set of every row.
        let floats = (sets + k).saturating_mul(dim).saturating_add(n);
        services.require_memory(4 * floats as u64, "lower `n`, `k`, `degree` or `dim`")?;
        let ComposerParams { r#use: name, params: composer_params } = &params.composer;
        let composer = services
            .composer(name, &Value::Object(composer_params.clone()).to_string())
            .map_err(|error| explain(error, name))?;
        if let Some(only) = composer.dim()
            && only != dim
        {
            let text = format!("= {dim}, but the composer {name} works for {only} dimensions");
            return Err(Error::parameter("dim", text));
        }
        Ok(Self { sets: Sets::all_up_to(k, degree).into(), composer: composer.into(), params })
    }
}

impl Loader for Synthetic {
    fn load(&self, request: &LoadRequest<'_>, services: &Services<'_>) -> Result<Stream> {
        require_columns(request)?;
        Ok(self.stream(request, services.seed, rows_per_batch(4 * self.params.dim)).into())
    }

    fn describe(&self, request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Option<Description>> {
        require_columns(request)?;
        let Params { n, dim, trials, .. } = self.params;
        let schema = Schema::new(COLUMNS.map(|name| self.field(name, name)).to_vec());
        Description::from_schema(&schema, Some(n as u64 * u64::from(trials)), Some(dim)).map(Some)
    }
}

/// What is drawn.
const COLUMNS: [&str; 4] = ["embedding", "truth", "trial", "id"];

/// Which of [`COLUMNS`] comes out as `name`: what has a name of its own does so whatever the request calls it.
fn drawn_as<'a>(name: &'a str, source: &'a str) -> Option<&'a str> {
    match COLUMNS.contains(&name) {
        true => Some(name),
        false => Some(source).filter(|source| name.starts_with("column:") && ["trial", "id"].contains(source)),
    }
}

/// Refuses the columns that are not drawn, all at once.
fn require_columns(request: &LoadRequest<'_>) -> Result<()> {
    let missing = request.columns.iter().filter(|(name, source)| drawn_as(name, source).is_none());
    all(missing.map(|(name, source)| Error::column(name, source, "synthetic data", COLUMNS)))
}

/// What a composer said when it was made, about our parameters.
fn explain(error: Error, name: &str) -> Error {
    let about_parameters = error.problems().iter().all(|problem| problem.code == Code::Parameter);
    match error {
        Error::Cancelled => Error::Cancelled,
        error if about_parameters => error.below("composer.params"),
        error => Error::parameter("composer", format!("`{name}`: {error}")),
    }
}

impl Synthetic {
    /// One of [`COLUMNS`] under a name.
    fn field(&self, name: &str, drawn: &str) -> Field {
        let kind = match drawn {
            // The dimension is bounded far below what an i32 holds.
            "embedding" => DataType::FixedSizeList(number(), self.params.dim as i32),
            "truth" => DataType::List(set_item()),
            _ => DataType::UInt32,
        };
        Field::new(name, kind, false)
    }

    fn stream(&self, request: &LoadRequest<'_>, seed: u64, batch_rows: usize) -> Batches {
        let Params { n, dim, k, noise, trials, seed: own_seed, .. } = self.params;
        let drawn = request.columns.iter().map(|(name, source)| drawn_as(name, source).unwrap_or(name));
        let drawn: Vec<String> = drawn.map(str::to_owned).collect();
        let fields = request.columns.iter().zip(&drawn).map(|((name, _), drawn)| self.field(name, drawn));
        let schema: SchemaRef = Schema::new(fields.collect::<Vec<_>>()).into();
        let stream = Draws {
            schema: schema.clone(),
            drawn,
            composer: self.composer.clone(),
            sets: self.sets.clone(),
            seed: own_seed.unwrap_or(seed),
            n,
            dim,
            k,
            noise: noise as f32,
            batch_rows,
            trials: 0..trials,
            trial: None,
        };
        Box::new(RecordBatchIterator::new(stream, schema))
    }
}

/// What embeddings hold.
fn number() -> FieldRef {
    Field::new_list_field(DataType::Float32, false).into()
}

/// What is random in a trial.
#[derive(Clone, Copy)]
enum Purpose {
    Prototypes,
    Order,
    Noise,
}

/// The generator for one purpose in one trial.
fn generator(seed: u64, trial: u32, purpose: Purpose) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(u64::from(trial) << 2 | purpose as u64);
    generator
}

/// Trial after trial, in batches.
struct Draws {
    schema: SchemaRef,
    /// Which of [`COLUMNS`] each column is.
    drawn: Vec<String>,
    composer: Arc<ForeignComposer>,
    sets: Arc<Sets>,
    seed: u64,
    n: usize,
    dim: usize,
    k: usize,
    noise: f32,
    batch_rows: usize,
    /// Those to come.
    trials: std::ops::Range<u32>,
    /// The present one.
    trial: Option<Trial>,
}

struct Trial {
    number: u32,
    /// One row per set.
    centres: Vec<f32>,
    /// The set of each row.
    order: Vec<u32>,
    noise: ChaCha8Rng,
    /// Rows that have come out.
    done: usize,
}

impl Draws {
    fn begin(&self, number: u32) -> Result<Trial> {
        let generator = |purpose| generator(self.seed, number, purpose);
        let prototypes: Vec<f32> =
            StandardNormal.sample_iter(generator(Purpose::Prototypes)).take(self.k * self.dim).collect();
        let prototypes = Embeddings::new(&prototypes, self.dim);
        // The call that opened the stream is over, and its services with it.
        let centres = compose_sets(&*self.composer, prototypes, &self.sets, &Services::none())?;
        let (share, rest) = (self.n / self.sets.len(), self.n % self.sets.len());
        let mut order: Vec<u32> = (0..self.sets.len())
            .flat_map(|set| std::iter::repeat_n(set as u32, share + usize::from(set < rest)))
            .collect();
        order.shuffle(&mut generator(Purpose::Order));
        Ok(Trial { number, centres, order, noise: generator(Purpose::Noise), done: 0 })
    }

    /// The next rows of a trial.
    fn batch(&self, trial: &mut Trial) -> Result<RecordBatch, ArrowError> {
        let rows = trial.done..(trial.done + self.batch_rows).min(self.n);
        trial.done = rows.end;
        let order = &trial.order[rows.clone()];
        let columns = self.drawn.iter().map(|drawn| -> Result<ArrayRef, ArrowError> {
            Ok(match drawn.as_str() {
                "embedding" => {
                    let mut values = Vec::with_capacity(rows.len() * self.dim);
                    for set in order {
                        let centre = &trial.centres[*set as usize * self.dim..][..self.dim];
                        values.extend(centre.iter().map(|value| {
                            let deviation: f32 = StandardNormal.sample(&mut trial.noise);
                            value + self.noise * deviation
                        }));
                    }
                    let values = Arc::new(Float32Array::from(values));
                    Arc::new(FixedSizeListArray::try_new(number(), self.dim as i32, values, None)?)
                }
                "truth" => {
                    let sets: Sets = order.iter().map(|set| &self.sets[*set as usize]).collect();
                    Arc::new(lists(&sets)?)
                }
                "trial" => Arc::new(UInt32Array::from(vec![trial.number; rows.len()])),
                _ => Arc::new(UInt32Array::from_iter_values(rows.clone().map(|row| row as u32))),
            })
        });
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let columns = columns.collect::<Result<_, _>>()?;
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
    }
}

impl Iterator for Draws {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut trial = match self.trial.take() {
            Some(trial) => trial,
            None => {
                let number = self.trials.next()?;
                match self.begin(number) {
                    Ok(trial) => trial,
                    Err(error) => {
                        self.trials = 0..0;
                        return Some(Err(in_stream(format!("trial {number}: {error}"))));
                    }
                }
            }
        };
        let batch = self.batch(&mut trial);
        self.trial = (trial.done < self.n).then_some(trial);
        Some(batch)
    }
}

#[cfg(test)]
mod tests;
