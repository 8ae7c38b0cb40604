//! Weights that anybody may have written: for `fuzz/`, and for the tests, which replay what it has found.

use std::path::Path;

use compflow_api::{Composer, Services};

use crate::Bilinear;

/// Reads a safetensors file, and composes with what can be used.
pub fn weights(bytes: &[u8]) {
    let Ok(composer) = Bilinear::from_safetensors(bytes, Path::new("g.safetensors")) else { return };
    let p = composer.dim().expect("it is for one length");
    let mut out = vec![f32::NAN; p];
    composer.compose(p, &vec![0.0; p], &vec![0.0; p], &mut out, &Services::none()).expect("vectors of its length");
    assert!(!out.iter().any(|number| number.is_nan()), "all numbers are written");
}

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn what_fuzzing_has_found_is_read_or_refused() {
    replay::replay("weights", weights);
}
