//! The command as a user meets it: every component comes from a real dynamic library.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod advice;
mod assign;
mod bad_data;
mod bad_libraries;
mod bad_pipelines;
mod bad_results;
mod commands;
mod common;
mod conformance;
mod dependencies;
mod diarization;
mod diff;
mod documentation;
mod editors;
mod examples;
mod faults;
mod fit_composer;
mod forks;
mod hostile_names;
mod howto;
mod input;
mod isolation;
mod lead;
mod limits;
#[cfg(target_os = "linux")]
mod load;
mod messages;
mod mixture;
mod nesting;
mod new_plugins;
mod parts;
mod reliability;
mod report;
mod resume;
mod runs;
mod same_bits;
mod seeds;
mod selection;
mod shards;
mod silently_wrong;
mod start;
mod trust;
mod tutorial;
mod verify;
mod why;
mod without_truth;
