//! Greedy compositional reassignment.

#![deny(unsafe_code)]

compflow_api::export_library!();
