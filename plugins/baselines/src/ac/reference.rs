//! Heights as SciPy and labels as scikit-learn give them, from the file that `tests/fixtures/ac.py` writes.

use compflow_api::{Clusterer, Clustering, Embeddings, ForeignClusterer, Registration, Services, Task};
use safetensors::SafeTensors;

use super::Ac;
use crate::parity;
use compflow_kernels::testing::examples::partition;

const FILE: &[u8] = include_bytes!("../../tests/fixtures/ac.safetensors");

/// The largest relative deviation of a height.
const TOLERANCE: f64 = 1e-12;

fn cluster(points: &[f32], dim: usize, params: &str) -> Clustering {
    let component = Registration::clusterer::<Ac>().component().unwrap();
    let ac = ForeignClusterer::try_from(component.create(params, &Services::none()).unwrap()).unwrap();
    ac.cluster(&Task::new(Embeddings::new(points, dim)), &Services::none()).unwrap()
}

#[test]
fn agrees_with_scipy_and_scikit_learn() {
    let tensors = SafeTensors::deserialize(FILE).unwrap();
    let (mut heights_seen, mut labels_seen, mut largest) = (0, 0, 0.0f64);
    let mut names: Vec<&str> = tensors.names();
    names.sort_unstable();
    for name in names {
        let [case, linkage, kind @ ..] = &name.splitn(4, '.').collect::<Vec<_>>()[..] else { continue };
        let tensor = tensors.tensor(&format!("{case}.points")).unwrap();
        let points: Vec<f32> =
            tensor.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let dim = tensor.shape()[1];
        let expected = tensors.tensor(name).unwrap();
        match kind {
            ["heights"] => {
                let found = cluster(&points, dim, &format!(r#"{{"linkage": "{linkage}", "k": 1}}"#));
                let heights = expected.data().as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
                assert_eq!(found.diagnostics.trace.len(), heights.len(), "{name}");
                for (found, expected) in found.diagnostics.trace.iter().zip(heights) {
                    let deviation = if *found == expected { 0.0 } else { (found - expected).abs() / expected };
                    assert!(deviation < TOLERANCE, "{name}: {found}, expected {expected}");
                    largest = largest.max(deviation);
                }
                heights_seen += 1;
            }
            [cut, value] => {
                let cut = if *cut == "k" { "k" } else { "distance_threshold" };
                let found = cluster(&points, dim, &format!(r#"{{"linkage": "{linkage}", "{cut}": {value}}}"#));
                let labels = expected.data().as_chunks().0.iter().map(|bytes| u16::from_le_bytes(*bytes).into());
                let labels: Vec<u32> = labels.collect();
                assert_eq!(found.assignments.values(), partition(&labels), "{name}");
                labels_seen += 1;
            }
            _ => {}
        }
    }
    parity::check("`ac`", largest);
    assert_eq!((heights_seen, labels_seen), (36, 168));
}
