//! Compositional affinity propagation.

#![deny(unsafe_code)]

compflow_api::export_library!();
