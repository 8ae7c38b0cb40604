//! Comparison methods: clusterers that know nothing of composition.
//!
//! | name | method |
//! | --- | --- |
//! | `ac` | agglomerative clustering with ward, average, complete or single linkage |
//! | `ap` | affinity propagation |
//! | `fcm` | fuzzy c-means |
//! | `gmm` | mixture of Gaussians, by EM or variational Bayes |
//! | `kmeans` | Lloyd's algorithm, seeded by greedy k-means++ |
//! | `oracle` | the true sets, each called a singleton |
//! | `told` | the nearest true mean, without the example itself: what knowing all other labels is worth |
//!
//! Each has a file of its own, which opens with a table from its paper's symbols to the names there and says where the method is weak. What several
//! use stands beside them: `similarities` (of all pairs), `tiles` (examples in
//! f64, several at a time), `gaussians`, `moments` and `bayes` (the steps of mixtures), `means`, `soft` (from
//! memberships to sets), `truth` (the true sets). What other plugins use as well is in the crate `compflow-kernels`.
//!
//! Overlapping k-means (OKM) has no file here: it is `ckm`, compositional k-means, with the composer `mean`.
//!
//! # Testing
//!
//! `naive` holds the methods as loops in f64. The fast code is compared with them, with itself
//! at other numbers of threads, and with what must hold whatever the data. Fixtures that the scripts in
//! `tests/fixtures` make, with the packages of `requirements.txt` there, hold what other libraries find: `ac` is
//! compared with SciPy and scikit-learn; `fcm` with scikit-fuzzy and `gmm` with scikit-learn, from the same initial
//! states; `ap` with scikit-learn from the same noise, and from any where its results do not depend on it. Known gap of
//! `kmeans`: two centres nearly equally far from an example are told apart in f32, so on data made of such ties labels
//! may differ from those found in f64. `docs/parity.md` holds the largest deviations.

#![deny(unsafe_code)]

mod ac;
mod ap;
mod bayes;
mod fcm;
#[cfg(test)]
mod fixtures;
mod gaussians;
mod gmm;
mod kmeans;
mod means;
mod moments;
#[cfg(test)]
mod naive;
mod oracle;
#[cfg(test)]
mod parity;
mod similarities;
mod soft;
mod tiles;
mod told;
mod truth;

pub use ac::{Ac, Linkage, Params as AcParams, PerExample as AcPerExample, Preset as AcPreset, Threshold};
pub use ap::{Ap, Params as ApParams, Preset as ApPreset};
pub use compflow_kernels::preference::{PerExample, Preference, Target};
pub use fcm::{Fcm, Params as FcmParams, Preset as FcmPreset};
pub use gmm::{Covariance, Gmm, Init as GmmInit, Params as GmmParams, Preset as GmmPreset, Variant};
pub use kmeans::{Init, KMeans, Params as KMeansParams};
pub use oracle::Oracle;
pub use soft::{Threshold as SoftThreshold, ThresholdRule as SoftThresholdRule};
pub use told::{Metric, Params as ToldParams, Told};

compflow_api::export_library!();
