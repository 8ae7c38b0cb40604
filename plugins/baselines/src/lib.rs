//! Comparison methods: clusterers that know nothing of composition and give every example one label.
//!
//! | name | method |
//! | --- | --- |
//! | `ac` | agglomerative clustering with ward, average, complete or single linkage |
//! | `kmeans` | Lloyd's algorithm, seeded by greedy k-means++ |
//!
//! Each has a file of its own; what several use stands beside them: `workers` (threads), `points` (examples prepared
//! for distances by products), `assign` (the nearest centre of every example), `plusplus` (seeding).
//!
//! # Testing
//!
//! `naive` holds the methods as loops in f64, `examples` the data. The fast code is compared with them, with itself
//! at other numbers of threads, and with what must hold whatever the data; `ac` also with SciPy and scikit-learn, by
//! what `tests/fixtures/ac.py` wrote down. Known gap of `kmeans`: two centres nearly equally far from an example are
//! told apart in f32, so on data made of such ties labels may differ from those found in f64.

#![deny(unsafe_code)]

mod ac;
mod assign;
#[cfg(test)]
mod examples;
mod kmeans;
#[cfg(test)]
mod naive;
mod plusplus;
mod points;
mod workers;

pub use ac::{Ac, Linkage, Params as AcParams, Preset as AcPreset};
pub use kmeans::{Init, KMeans, Params as KMeansParams};

compflow_api::export_library!();
