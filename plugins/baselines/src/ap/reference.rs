//! Comparison with scikit-learn, whose results `tests/fixtures/ap.py` writes down.

use compflow_api::{Clusterer, Distance, Embeddings, ForeignClusterer, Registration, Services, Task};
use safetensors::SafeTensors;

use super::Ap;
use compflow_kernels::testing::examples;

static FIXTURES: &[u8] = include_bytes!("../../tests/fixtures/ap.safetensors");

fn numbers<T>(fixtures: &SafeTensors<'_>, name: &str, read: fn([u8; 4]) -> T) -> Option<Vec<T>> {
    let tensor = fixtures.tensor(name).ok()?;
    Some(tensor.data().as_chunks::<4>().0.iter().map(|bytes| read(*bytes)).collect())
}

#[test]
fn clusters_are_those_of_scikit_learn() {
    let fixtures = SafeTensors::deserialize(FIXTURES).unwrap();
    let (_, header) = SafeTensors::read_metadata(FIXTURES).unwrap();
    let metadata = header.metadata().as_ref().unwrap();
    let component = Registration::clusterer::<Ap>().component().unwrap();
    let mut compared = 0;
    for (case, params) in metadata.iter().filter(|(case, _)| !case.ends_with("/iterations")) {
        let (data, name) = case.split_once('/').unwrap();
        let points = numbers(&fixtures, data, f32::from_le_bytes).unwrap();
        let dim = fixtures.tensor(data).unwrap().shape()[1];
        let mut task = Task::new(Embeddings::new(&points, dim));
        if name.starts_with("euclidean") {
            task.space.distance = Distance::Euclidean;
        }
        let ap = ForeignClusterer::try_from(component.create(params, &Services::none()).unwrap()).unwrap();
        let labels = numbers(&fixtures, &format!("{case}/labels"), u32::from_le_bytes).unwrap();
        let exemplars = numbers(&fixtures, &format!("{case}/exemplars"), u32::from_le_bytes);
        // Noise differs from theirs, so it must not matter which.
        for seed in 0..3 {
            let found = ap.cluster(&task, &Services { seed, ..Services::none() }).unwrap();
            assert_eq!(examples::partition(found.assignments.values()), labels, "{case} {seed}");
            if let Some(exemplars) = &exemplars {
                assert_eq!(&found.exemplars.concat(), exemplars, "{case} {seed}");
            }
            if let Some(iterations) = metadata.get(&format!("{case}/iterations")) {
                assert_eq!(&found.diagnostics.iterations.to_string(), iterations, "{case} {seed}");
            }
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared}");
}
