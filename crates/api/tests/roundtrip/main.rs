//! Out through the exported functions and back in through the foreign traits, within one process: values, errors,
//! panics, services and the end of instances, for every kind.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[macro_use]
mod component;

mod clusterer;
mod composer;
mod elsewhere;
mod evaluator;
mod instance;
mod library;
mod loader;
mod services;
