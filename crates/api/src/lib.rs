//! Everything a compflow plugin depends on.
//!
//! compflow clusters data with overlapping labels: it reads a pipeline file and runs components (loaders, composers,
//! clusterers, evaluators) that it finds in dynamic libraries. A plugin is such a library. This is all of one, a
//! clusterer that cuts the data into slices along one dimension:
//!
//! ```
//! use compflow_api::{
//!     Clusterer, Clustering, Component, Result, Services, Task, export_library, register,
//! };
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! export_library!(); // once in lib.rs
//!
//! /// Sorts the examples along one dimension and cuts them into `k` slices of equal size.
//! #[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
//! #[serde(default, deny_unknown_fields)]
//! struct Params {
//!     /// Number of slices.
//!     #[schemars(range(min = 1))]
//!     k: usize,
//!     /// The dimension to cut along.
//!     along: usize,
//! }
//!
//! impl Default for Params {
//!     fn default() -> Self {
//!         Self { k: 2, along: 0 }
//!     }
//! }
//!
//! struct Slices(Params);
//! register!(clusterer Slices);
//!
//! impl Component for Slices {
//!     const NAME: &'static str = "slices";
//!     const SUMMARY: &'static str = "equally large slices along one dimension";
//!     type Params = Params;
//!
//!     fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
//!         Ok(Self(params))
//!     }
//! }
//!
//! impl Clusterer for Slices {
//!     fn cluster(&self, task: &Task<'_>, _services: &Services<'_>) -> Result<Clustering> {
//!         let (n, Params { k, along }) = (task.embeddings.len(), self.0);
//!         task.require_k(k)?;
//!         if along >= task.embeddings.dim() {
//!             let text = format!("= {along}, but the embeddings have {} dimensions", task.embeddings.dim());
//!             return Err(compflow_api::Error::parameter("along", text));
//!         }
//!         let mut order: Vec<usize> = (0..n).collect();
//!         order.sort_by(|&a, &b| task.embeddings[a][along].total_cmp(&task.embeddings[b][along]));
//!         let mut labels = vec![0; n];
//!         for (rank, &row) in order.iter().enumerate() {
//!             labels[row] = (rank * k / n) as u32;
//!         }
//!         Ok(Clustering::from_labels(&labels))
//!     }
//! }
//!
//! // As the host would use it, across the boundary:
//! # use compflow_api::{Embeddings, ForeignClusterer, Registration, Sets};
//! let component = Registration::clusterer::<Slices>().component()?;
//! let slices = ForeignClusterer::try_from(component.create(r#"{"k": 2}"#, &Services::none())?)?;
//! let task = Task::new(Embeddings::new(&[5.0, 1.0, 4.0, 2.0], 1));
//! let found = slices.cluster(&task, &Services::none())?;
//! assert_eq!(found.assignments, Sets::singletons(&[1, 0, 1, 0]));
//!
//! let refused = component.create(r#"{"k": 0}"#, &Services::none()).unwrap_err();
//! assert_eq!(refused.to_string(), "`k` must be a whole number at least 1, found 0");
//! # Ok::<(), compflow_api::Error>(())
//! ```
//!
//! `compflow new-plugin slices --kind clusterer` makes a crate to start from, a copy of this one included, and
//! `compflow test-plugin` tries whether what came of it behaves; the repository's `docs/plugins.md` is a tutorial. The crate
//! is built with
//!
//! ```toml
//! [lib]
//! crate-type = ["cdylib"]
//! name = "compflow_slices"    # the host looks for libraries named like this
//!
//! [dependencies]
//! compflow-api = { path = "compflow-api" }
//! schemars = "1"
//! serde = { version = "1", features = ["derive"] }
//! ```
//!
//! and used with `compflow --plugins target/release run pipeline.toml`, where the pipeline says
//!
//! ```toml
//! [[clusterer]]
//! use = "slices"
//! params = { k = 3 }
//! ```
//!
//! # What holds for every component
//!
//! - The host makes an instance per use ([`Component::new`]) and may call it from several threads at once.
//! - Parameters have been checked against their type, ranges included, before `new` sees them. What a
//!   [preset](presets) stands for is written in its schema, and has been filled in by then as well.
//! - The same seed gives the same result, whatever the number of threads: [`Services::seed`].
//! - Long work calls [`Services::progress`], which also ends it when the user no longer wants it.
//! - A panic becomes an error with its text, and that instance is not used again.
//! - A clusterer that declares [`Flags::USES_SEEDS`] returns the sets that are known beforehand ([`Task::seeds`]) as they
//!   are: singletons with the numbers that occur in them are those that the user has named.
//! - Nothing is printed: lines for the user go to [`Services::log`].
//!
//! # How it crosses
//!
//! [`abi`] holds every type on the boundary, and only C types cross, so a plugin may be built with another compiler
//! and other versions of its dependencies than the host. `export` turns the traits into tables of functions, `foreign`
//! turns those back into the traits ([`ForeignClusterer`] and its siblings) for whoever calls: the host, or another
//! plugin that asked [`Services::clusterer`] for one.

pub mod abi;
pub mod arrow;
mod clusterer;
mod component;
mod composer;
mod embeddings;
mod error;
mod evaluator;
#[doc(hidden)]
pub mod export;
mod float_env;
mod foreign;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod guard;
mod loader;
mod locale;
mod once;
mod params;
mod partial;
pub mod presets;
mod raw;
mod rows;
mod services;
mod sets;
mod space;
mod words;

#[doc(hidden)]
pub use inventory;
/// For the engine, which asks a library for its descriptor.
#[doc(hidden)]
pub use raw::collect_problem;

#[cfg(feature = "arrow")]
pub use arrow::{BatchReader, Batches, in_words};
pub use arrow::{Column, Stream, Table};
pub use clusterer::{Batch, Clusterer, Clustering, Densities, Diagnostics, Shape, Singletons, StreamTask, Task};
pub use component::{Component, Flags, Kind, NoParams};
pub use composer::{Composer, compose_sets, compose_sets_vjp};
pub use embeddings::Embeddings;
pub use error::{Code, Error, Problem, Result};
pub use evaluator::{Evaluation, Evaluator, Metric, Unit};
pub use export::Registration;
pub use float_env::with_default_floats;
pub use foreign::{
    ForeignClusterer, ForeignComponent, ForeignComposer, ForeignEvaluator, ForeignLibrary, ForeignLoader,
    IMPOSSIBLE, Instance,
};
pub use loader::{Description, LoadRequest, Loader};
pub use once::returning_once;
pub use params::nearest;
pub use partial::{Fold, Partial};
pub use presets::Preset;
pub use rows::{BATCH_ROWS, Rows};
pub use services::{Host, Level, NoHost, Services};
pub use sets::Sets;
pub use space::{Distance, Normalize, Space};
pub use words::plural;

/// The README's plugin compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
