//! The engine of compflow: a pipeline file in, tables of results out.
//!
//! It is a library like any other: it prints nothing, never ends the process, installs no signal handler, reads no
//! environment variable and keeps nothing between calls. What happens meanwhile is told to an [`Observer`], a [`Cancel`]
//! token stops it, and what is wrong with a pipeline comes back as [`Error::Problems`], with the places in the file.
//!
//! ```
//! use compflow_engine::{Cancel, Options, Pipeline, Registry, Resources, Results, RunOptions, Silent};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let plugins = ["release", "debug"].map(|profile| {
//! #     let target = std::env::var("CARGO_TARGET_DIR")
//! #         .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../target").to_owned());
//! #     std::path::Path::new(&target).join(profile).join("deps")
//! # });
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("pipeline.toml");
//! std::fs::write(
//!     &file,
//!     r#"
//!     name   = "first"
//!     seed   = 1
//!     degree = 1
//!
//!     [[data]]
//!     name   = "points"
//!     loader = "synthetic"
//!     params = { n = 60, trials = 2 }
//!
//!     [[clusterer]]
//!     use    = "kmeans"
//!     params = { k = 3 }
//!
//!     [[evaluator]]
//!     use    = "ari"
//!     "#,
//! )?;
//!
//! // Nobody looks, and nobody stops it.
//! let (observer, cancel) = (Silent::shared(), Cancel::new());
//!
//! let pipeline = Pipeline::load(&file, &Options::default())?;
//! let registry = Registry::scan_pinned(&plugins, &pipeline.pins());
//! let plan = pipeline.plan(&registry, &Resources::default(), &observer, &cancel)?;
//! let out = folder.path().join("results");
//! let finished = plan.run(&out, RunOptions::default(), &observer, &cancel)?;
//! assert_eq!((finished.cells(), finished.failed()), (2, 0));
//!
//! // What it left behind, now or at any time later.
//! let results = Results::open(&out)?;
//! let entry = results.entry("points", "kmeans", "ari").ok_or("it was scored")?;
//! assert_eq!(entry.trials, 2);
//! println!("{:.3} over {} trials", entry.mean, entry.trials);
//! # Ok(())
//! # }
//! ```
//!
//! The folders of the source follow the way of the data, and each knows only those before it: [`pipeline`] (the file),
//! [`plugin`] (libraries and components), [`data`], [`plan`] (what is to be done), [`run`] (doing it), [`results`]
//! (what is left behind), [`assign`] (new examples), [`fitted`] (one cell without a folder), [`shards`] (examples on many
//! machines) and [`fit`] (learning a composer). A test holds them to it.

mod cancel;
pub mod causes;
mod error;
pub mod files;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod machine;
mod observer;
mod parallel;
mod problem;
mod processes;

pub mod assign;
pub mod data;
pub mod fit;
pub mod fitted;
pub mod pipeline;
pub mod plan;
pub mod plugin;
pub mod results;
pub mod run;
pub mod shards;

pub use cancel::Cancel;
pub use compflow_api::Level;
pub use error::{Error, Result};
pub use observer::{Counted, Observer, Progress, Silent};
pub use pipeline::{Options, Pipeline};
pub use plan::{Plan, Resources};
pub use plugin::Registry;
pub use results::{Finished, Results, RunOptions};
