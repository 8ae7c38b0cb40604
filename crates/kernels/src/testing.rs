//! For tests and benchmarks: data, plain loops to compare with, composition functions, and a host that looks on.

#![expect(clippy::unwrap_used, reason = "tests may fail by panicking")]

pub mod composers;
pub mod examples;
pub mod naive;
pub mod planted;
pub mod propagation;
pub mod watcher;
