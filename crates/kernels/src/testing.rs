//! For tests: data, plain loops to compare with, and a host that looks on.

#![expect(clippy::unwrap_used, reason = "tests may fail by panicking")]

pub mod examples;
pub mod naive;
pub mod watcher;
