//! Compositional k-means.

#![deny(unsafe_code)]

compflow_api::export_library!();
