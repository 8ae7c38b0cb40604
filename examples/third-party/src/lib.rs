//! A plugin with other versions of ndarray, arrow and serde than the host's.
//!
//! `shift` moves every example uphill to a mode (ndarray), `rings` makes examples up (arrow): between them, everything that
//! crosses the boundary crosses it between different versions of the same crates.

#![deny(unsafe_code)]

mod rings;
mod shift;

compflow_api::export_library!();
