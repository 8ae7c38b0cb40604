//! For tests: data, plain loops to compare with, and a host that looks on.

pub mod examples;
pub mod naive;
pub mod propagation;
pub mod watcher;
