//! The whole clusterer, with bases and composers across the boundary.

mod base;
mod invariance;
mod presets;
mod reassignment;
mod refusal;
mod seeds;

use compflow_api::{
    Clusterer, Clustering, Code, Column, Component, Distance, Embeddings, Error, Flags, ForeignClusterer,
    ForeignComposer, Kind, Normalize, Result, Services, Sets, Shape, Space, Task,
};
use compflow_kernels::testing::examples;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::testing::{self, Shop};
use crate::{Auto, Gcr, Params, Threshold};

/// Runs `gcr` with these parameters on rows of `dim` numbers that the base gives these sets.
struct Run<'a> {
    values: &'a [f32],
    dim: usize,
    degree: usize,
    space: Space,
    composer: ForeignComposer,
    seed: u64,
    seeds: Option<&'a Sets>,
}

impl<'a> Run<'a> {
    fn new(values: &'a [f32], dim: usize) -> Self {
        Self { values, dim, degree: 2, space: Space::default(), composer: testing::max(), seed: 0, seeds: None }
    }

    fn on(&self, sets: &[Vec<u32>], mut params: Value) -> Result<Clustering> {
        if params.get("base").is_none() {
            params["base"] = json!({ "use": "given", "params": { "sets": sets } });
        }
        let shop = Shop::default();
        let services = Services { host: &shop, threads: 2, seed: self.seed, ..Services::none() };
        let gcr = services.clusterer("gcr", &params.to_string())?;
        let task = Task {
            degree: self.degree,
            space: self.space,
            composer: Some(&self.composer),
            seeds: self.seeds,
            ..Task::new(Embeddings::new(self.values, self.dim))
        };
        gcr.cluster(&task, &services)
    }
}

fn singletons(labels: &[u32]) -> Vec<Vec<u32>> {
    labels.iter().map(|&label| vec![label]).collect()
}

/// The column that keeps what the base found.
fn base(found: &Clustering) -> &Sets {
    match &found.extra[0] {
        (name, Column::Sets(sets)) if name == "base" => sets,
        other => panic!("{other:?}"),
    }
}

fn refused(params: Value) -> String {
    let sets = singletons(&[0, 1, 2, 3]);
    Run::new(&[0.0, 1.0, 2.0, 4.0], 1).on(&sets, params).unwrap_err().to_string()
}

/// Three things as unit vectors, all unions of two, twice each; the unions are predicted but for a small error.
fn unions() -> (Vec<f32>, Vec<Vec<u32>>) {
    let rows: [([f32; 3], u32); 12] = [
        ([1.0, 1.0, 0.1], 7),
        ([1.0, 0.0, 0.0], 1),
        ([1.0, 0.0, 0.0], 1),
        ([0.0, 1.0, 0.0], 2),
        ([0.0, 1.0, 0.0], 2),
        ([1.0, 1.0, 0.1], 7),
        ([0.0, 0.0, 1.0], 3),
        ([0.2, 1.0, 1.0], 9),
        ([0.2, 1.0, 1.0], 9),
        ([1.0, 0.3, 1.0], 8),
        ([1.0, 0.3, 1.0], 8),
        ([0.0, 0.0, 1.0], 3),
    ];
    (rows.iter().flat_map(|row| row.0).collect(), rows.iter().map(|row| vec![row.1]).collect())
}
