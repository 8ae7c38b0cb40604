//! Comparison methods: clusterers that know nothing of composition.
//!
//! | name | method |
//! | --- | --- |
//! | `kmeans` | Lloyd's algorithm, seeded by greedy k-means++ |
//! | `fcm` | fuzzy c-means |
//! | `gmm` | mixture of Gaussians, by EM or variational Bayes |
//!
//! Each has a file of its own; what several use stands beside them: `workers` (threads), `points` (examples prepared
//! for distances by products), `assign` (the nearest centre of every example), `plusplus` (seeding), `tiles` (examples
//! in f64, several at a time), `gaussians`, `moments`, `bayes` and `cholesky` (the steps of mixtures), `soft` (from
//! memberships to sets).
//!
//! # Testing
//!
//! `naive` holds the methods as loops in f64, `examples` the data, `fixtures` what scikit-fuzzy and scikit-learn found
//! from the same initial states. The fast code is compared with them, with itself at other numbers of threads, and
//! with what must hold whatever the data. Known gap: two centres nearly equally far
//! from an example are told apart in f32, so on data made of such ties labels may differ from those found in f64.

#![deny(unsafe_code)]

mod assign;
mod bayes;
mod cholesky;
#[cfg(test)]
mod examples;
mod fcm;
#[cfg(test)]
mod fixtures;
mod gaussians;
mod gmm;
mod kmeans;
mod moments;
#[cfg(test)]
mod naive;
mod plusplus;
mod points;
mod soft;
mod tiles;
#[cfg(test)]
mod watcher;
mod workers;

pub use fcm::{Fcm, Params as FcmParams, Preset as FcmPreset};
pub use gmm::{Covariance, Gmm, Init as GmmInit, Params as GmmParams, Preset as GmmPreset, Variant};
pub use kmeans::{Init, KMeans, Params as KMeansParams};

compflow_api::export_library!();
