//! The loaders that come with compflow: where tables of embeddings come from.
//!
//! | loader | reads |
//! |---|---|
//! | `parquet` | Parquet files, row groups in parallel |
//! | `arrow` | Arrow IPC files and streams |
//! | `csv` | CSV and TSV files, plain or compressed |
//! | `json` | JSON lines, plain or compressed |
//! | `npy` | NumPy arrays, labels from a second file |
//! | `synthetic` | nothing: it draws compositional data from a seed |
//! | `disturbed` | what another loader reads, with examples left out or replaced by outliers |
//!
//! All but `disturbed` stream: a table is never in memory as a whole. What a source holds (its columns, and if that can be known
//! the number of rows and the length of embeddings) they say from its header or footer; of text they read all of it. They return the columns that were
//! asked for and no others; those that are missing are an error that names all of them.

#![deny(unsafe_code)]

mod arrow;
mod claims;
mod csv;
mod disturbed;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod json;
mod npy;
mod npy_file;
mod npy_labels;
mod parquet;
mod parts;
mod select;
mod source;
mod synthetic;
#[cfg(test)]
mod testing;
mod text_file;

compflow_api::export_library!();
