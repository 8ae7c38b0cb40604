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
    Batches, Component, Composer, Embeddings, Error, ForeignComposer, LoadRequest, Loader, Result, Services, Sets,
    compose_sets,
};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::source::{in_stream, rows_per_batch};

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
        let sets = count_sets(k, degree, n).ok_or_else(|| {
            Error::new(format!("`n` = {n} examples are too few for the sets of up to {degree} of {k}"))
        })?;
        // The centres, the prototypes, and the set of every row.
        let floats = (sets + k).saturating_mul(dim).saturating_add(n);
        services.require_memory(4 * floats as u64, "lower `n`, `k`, `degree` or `dim`")?;
        let ComposerParams { r#use: name, params: composer_params } = &params.composer;
        let composer = services
            .composer(name, &Value::Object(composer_params.clone()).to_string())
            .map_err(|error| error.context(format!("`composer`: {name}")))?;
        if let Some(only) = composer.dim()
            && only != dim
        {
            return Err(Error::new(format!("`dim` = {dim}, but the composer {name} works for {only} dimensions")));
        }
        Ok(Self { sets: Sets::all_up_to(k, degree).into(), composer: composer.into(), params })
    }
}

impl Loader for Synthetic {
    fn load(&self, request: &LoadRequest<'_>, services: &Services<'_>) -> Result<Batches> {
        if let Some(column) = request.preference {
            return Err(Error::new(format!("no column `{column}`: synthetic data has no preferences")));
        }
        Ok(self.stream(request, services.seed, rows_per_batch(4 * self.params.dim)))
    }
}

impl Synthetic {
    fn stream(&self, request: &LoadRequest<'_>, seed: u64, batch_rows: usize) -> Batches {
        let Params { n, dim, k, noise, trials, seed: own_seed, .. } = self.params;
        let item: FieldRef = Field::new_list_field(DataType::Float32, false).into();
        let fields = request.columns().map(|(name, _)| {
            let kind = match name {
                // The dimension is bounded far below what an i32 holds.
                "embedding" => DataType::FixedSizeList(item.clone(), dim as i32),
                "truth" => DataType::List(Field::new_list_field(DataType::UInt32, false).into()),
                _ => DataType::UInt32,
            };
            Field::new(name, kind, false)
        });
        let schema: SchemaRef = Schema::new(fields.collect::<Vec<_>>()).into();
        let stream = Stream {
            schema: schema.clone(),
            item,
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

/// How many sets of 1 to `degree` of `k` there are; none if more than `limit`.
fn count_sets(k: usize, degree: usize, limit: usize) -> Option<usize> {
    let (mut of_size, mut all) = (1_u128, 0_u128);
    for size in 1..=degree.min(k) {
        of_size = of_size * (k - size + 1) as u128 / size as u128;
        all += of_size;
        if all > limit as u128 {
            return None;
        }
    }
    Some(all as usize)
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
struct Stream {
    schema: SchemaRef,
    item: FieldRef,
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

impl Stream {
    fn begin(&self, number: u32) -> Result<Trial> {
        let generator = |purpose| generator(self.seed, number, purpose);
        let prototypes: Vec<f32> =
            StandardNormal.sample_iter(generator(Purpose::Prototypes)).take(self.k * self.dim).collect();
        let centres = compose_sets(&*self.composer, Embeddings::new(&prototypes, self.dim), &self.sets)?;
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
        let columns = self.schema.fields().iter().map(|field| -> Result<ArrayRef, ArrowError> {
            Ok(match field.name().as_str() {
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
                    Arc::new(FixedSizeListArray::try_new(self.item.clone(), self.dim as i32, values, None)?)
                }
                "truth" => {
                    let sets: Sets = order.iter().map(|set| &self.sets[*set as usize]).collect();
                    Arc::new(sets.to_arrow())
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

impl Iterator for Stream {
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
