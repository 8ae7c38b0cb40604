//! Examples on many machines: a clusterer of which every pass over the data is a map and a reduction.
//!
//! A [`Shard`] says where some of the examples are, never what they are. A [`Worker`] that is given one and a state reads
//! the examples with our own loader and answers with what they add up to, as bytes. One worker is the driver: it runs the
//! clusterer, which asks for one pass after the other, and has its [`Map`] send the state to whoever has the shards. How that is
//! done is none of our business: processes, a cluster, a pool.
//!
//! ```text
//! layout = driver.layout(files, shards)             // row counts, from the files' footers
//! model  = driver.fit(layout, map)                  // map(state, shards) = [worker.partial(state, shard), …]
//! labels = [worker.assign(model, shard, file), …]
//! ```
//!
//! # Why the result is the same for any number of workers
//!
//! Shards begin at multiples of the number of rows in a batch, whatever files and row groups these are in. Every batch is summed up from
//! zero, and batches are added up in a tree that depends on their numbers only ([`compflow_api::Fold`]). A run with
//! `stream = true` in one process does the same additions in the same order.

mod job;
mod kit;
mod layout;
mod model;
mod read;
mod told;
mod worker;

pub use self::job::{Job, Used, seed};
pub use self::kit::Kit;
pub use self::layout::{Layout, Piece, Shard};
pub use self::model::Model;
pub use self::worker::{Map, Worker, merge};
