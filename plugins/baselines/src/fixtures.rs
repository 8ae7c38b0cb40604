//! What scikit-fuzzy and scikit-learn found, as written by `tests/fixtures/soft.py` and `kmeans.py`.

use safetensors::{Dtype, SafeTensors};

/// The tensors of the file.
pub(crate) struct Fixtures(SafeTensors<'static>);

impl Fixtures {
    pub(crate) fn new() -> Self {
        Self(SafeTensors::deserialize(include_bytes!("../tests/fixtures/soft.safetensors")).unwrap())
    }

    pub(crate) fn kmeans() -> Self {
        Self(SafeTensors::deserialize(include_bytes!("../tests/fixtures/kmeans.safetensors")).unwrap())
    }

    /// The names of all tensors with this ending, without it, in alphabetical order.
    pub(crate) fn with_ending(&self, ending: &str) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.0.names().into_iter().filter_map(|name| name.strip_suffix(ending)).collect();
        names.sort_unstable();
        names
    }

    /// The cases of a method and the data of each, in alphabetical order.
    pub(crate) fn cases(&self, method: &str) -> Vec<(String, &str)> {
        let prefix = format!("{method}/");
        let mut cases: Vec<(String, &str)> = self
            .0
            .names()
            .into_iter()
            .filter_map(|name| {
                let case = name.strip_suffix("/params")?;
                let data = case.strip_prefix(&prefix)?.rsplitn(3, '_').nth(2)?;
                Some((case.to_owned(), data))
            })
            .collect();
        cases.sort();
        assert!(!cases.is_empty());
        cases
    }

    /// The shape and the numbers of a tensor.
    pub(crate) fn numbers(&self, name: &str) -> (Vec<usize>, Vec<f64>) {
        let tensor = self.0.tensor(name).unwrap();
        let bytes = tensor.data();
        let numbers = match tensor.dtype() {
            Dtype::F64 => bytes.as_chunks().0.iter().map(|&bytes| f64::from_le_bytes(bytes)).collect(),
            Dtype::F32 => bytes.as_chunks().0.iter().map(|&bytes| f64::from(f32::from_le_bytes(bytes))).collect(),
            Dtype::U8 => bytes.iter().map(|&byte| f64::from(byte)).collect(),
            other => panic!("{name} has type {other:?}"),
        };
        (tensor.shape().to_vec(), numbers)
    }

    /// The points of a data set, and how long each is.
    pub(crate) fn points(&self, data: &str) -> (Vec<f32>, usize) {
        let (shape, numbers) = self.numbers(&format!("data/{data}"));
        (numbers.iter().map(|&number| number as f32).collect(), shape[1])
    }

    /// The expected sets, from their mask.
    pub(crate) fn sets(&self, case: &str) -> Vec<Vec<u32>> {
        let (shape, mask) = self.numbers(&format!("{case}/sets"));
        let members =
            |row: &[f64]| (0..).zip(row).filter(|(_, of)| **of > 0.0).map(|(cluster, _)| cluster).collect();
        mask.chunks_exact(shape[1]).map(members).collect()
    }
}

/// The largest deviation, relative to the expected number or to `least` where that is smaller.
pub(crate) fn deviation(found: &[f64], expected: &[f64], least: f64) -> f64 {
    assert_eq!(found.len(), expected.len());
    assert!(found.iter().all(|value| value.is_finite()));
    let relative = |(found, expected): (&f64, &f64)| (found - expected).abs() / expected.abs().max(least);
    found.iter().zip(expected).map(relative).fold(0.0, f64::max)
}
