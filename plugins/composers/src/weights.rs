//! Learned weights: tensors of a safetensors file as matrices in f32.
//!
//! Every text names the tensor, since the file was written by somebody else's training script.

use std::path::Path;

use compflow_api::{Error, Result};
use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors};

/// The tensors of a file.
pub(crate) struct Weights<'a>(SafeTensors<'a>);

impl<'a> Weights<'a> {
    /// Looks into the content of the file at `path`.
    pub(crate) fn new(content: &'a [u8], path: &Path) -> Result<Self> {
        let tensors = SafeTensors::deserialize(content)
            .map_err(|error| Error::new(format!("{} is not a safetensors file: {error}", path.display())))?;
        Ok(Self(tensors))
    }

    /// The square matrix `name` and its number of rows.
    pub(crate) fn square(&self, name: &str) -> Result<(Vec<f32>, usize)> {
        match *self.shape(name)? {
            [rows, columns] if rows == columns && rows > 0 => Ok((self.values(name)?, rows)),
            ref shape => Err(Error::new(format!("tensor `{name}` must be square, found the shape {shape:?}"))),
        }
    }

    /// The tensor `name`, which must have this shape.
    pub(crate) fn shaped(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let found = self.shape(name)?;
        if found != shape {
            return Err(Error::new(format!("tensor `{name}` must have the shape {shape:?}, found {found:?}")));
        }
        self.values(name)
    }

    /// As [`shaped`](Self::shaped), and zeros if there is none.
    pub(crate) fn shaped_or_zeros(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        match self.0.names().contains(&name) {
            true => self.shaped(name, shape),
            false => Ok(vec![0.0; shape.iter().product()]),
        }
    }

    fn shape(&self, name: &str) -> Result<Vec<usize>> {
        let Ok(tensor) = self.0.tensor(name) else {
            let mut names = self.0.names();
            names.sort_unstable();
            let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(Error::new(format!("has no tensor `{name}`; there are {names}")));
        };
        Ok(tensor.shape().to_vec())
    }

    fn values(&self, name: &str) -> Result<Vec<f32>> {
        let tensor = self.0.tensor(name)?;
        let values = match tensor.dtype() {
            Dtype::F32 => convert(tensor.data(), f32::from_le_bytes),
            Dtype::F64 => convert(tensor.data(), |bytes| f64::from_le_bytes(bytes) as f32),
            Dtype::F16 => convert(tensor.data(), |bytes| f16::from_le_bytes(bytes).to_f32()),
            Dtype::BF16 => convert(tensor.data(), |bytes| bf16::from_le_bytes(bytes).to_f32()),
            other => {
                return Err(Error::new(format!("tensor `{name}` must be F32, F64, F16 or BF16, found {other:?}")));
            }
        };
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(values),
            Some(at) => Err(Error::new(format!("tensor `{name}` has the value {} at {at}", values[at]))),
        }
    }
}

fn convert<const WIDTH: usize>(data: &[u8], number: impl Fn([u8; WIDTH]) -> f32) -> Vec<f32> {
    data.as_chunks().0.iter().map(|&bytes| number(bytes)).collect()
}
