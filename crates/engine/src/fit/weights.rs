//! The file of weights: the tensors that the component `bilinear` reads, and the judgement as its metadata.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use ndarray::s;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors, serialize};

use super::bilinear::Bilinear;
use super::judgement::Judgement;
use crate::error::{Error, Result};
use crate::files::{display, plain, write_whole};

/// The key of the judgement among the metadata.
const KEY: &str = "compflow";

/// Writes a file, whole or not at all.
///
/// # Errors
/// If it cannot be written.
pub(super) fn write(path: &Path, g: &Bilinear, judgement: &Judgement) -> Result<()> {
    let failed = |text: String| Error::run(format!("{} cannot be written: {text}", display(path)));
    let p = g.p();
    let bytes = |values: &[f32]| -> Vec<u8> { values.iter().flat_map(|value| value.to_le_bytes()).collect() };
    let matrix =
        |from: usize| bytes(&g.weights.slice(s![.., from..from + p]).iter().copied().collect::<Vec<f32>>());
    let tensors = [
        ("linear1.weight", vec![p, p], matrix(0)),
        ("linear1.bias", vec![p], bytes(&vec![0.0; p])),
        ("linear2.weight", vec![p, p], matrix(p)),
        ("linear2.bias", vec![p], bytes(&g.bias.to_vec())),
    ];
    let views: Vec<(&str, TensorView<'_>)> = tensors
        .iter()
        .map(|(name, shape, data)| Ok((*name, TensorView::new(Dtype::F32, shape.clone(), data)?)))
        .collect::<std::result::Result<_, safetensors::SafeTensorError>>()
        .map_err(|error| failed(error.to_string()))?;
    let json = serde_json::to_string(judgement).map_err(|error| failed(error.to_string()))?;
    let metadata = HashMap::from([(KEY.to_owned(), json)]);
    let content = serialize(views, Some(metadata)).map_err(|error| failed(error.to_string()))?;
    write_whole(path, true, |file| file.write_all(&content)).map_err(|error| failed(plain(&error)))
}

/// The judgement in the content of a file of weights, if it has one.
pub(super) fn judgement(content: &[u8]) -> Option<Judgement> {
    let (_, metadata) = SafeTensors::read_metadata(content).ok()?;
    serde_json::from_str(metadata.metadata().as_ref()?.get(KEY)?).ok()
}
