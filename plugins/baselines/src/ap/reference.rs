//! Comparison with scikit-learn, whose results `tests/fixtures/ap.py` writes down.

use std::collections::HashMap;

use compflow_api::{Clusterer, Distance, Embeddings, ForeignClusterer, Registration, Services, Task};
use safetensors::SafeTensors;

use super::refine::refine;
use super::*;
use compflow_kernels::testing::{examples, propagation};

static FIXTURES: &[u8] = include_bytes!("../../tests/fixtures/ap.safetensors");

struct Fixtures {
    tensors: SafeTensors<'static>,
    metadata: HashMap<String, String>,
}

impl Fixtures {
    fn new() -> Self {
        let (_, header) = SafeTensors::read_metadata(FIXTURES).unwrap();
        let metadata = header.metadata().clone().unwrap();
        Self { tensors: SafeTensors::deserialize(FIXTURES).unwrap(), metadata }
    }

    fn numbers<T>(&self, name: &str, read: fn([u8; 4]) -> T) -> Vec<T> {
        let Ok(tensor) = self.tensors.tensor(name) else { return Vec::new() };
        tensor.data().as_chunks::<4>().0.iter().map(|bytes| read(*bytes)).collect()
    }

    /// Names and parameters.
    fn cases(&self) -> Vec<(&str, &str)> {
        let mut cases: Vec<(&str, &str)> = self
            .metadata
            .iter()
            .filter(|(case, _)| case.matches('/').count() == 1)
            .map(|(case, params)| (case.as_str(), params.as_str()))
            .collect();
        cases.sort_unstable();
        cases
    }

    /// Points and their length.
    fn points(&self, case: &str) -> (Vec<f32>, usize) {
        let data = case.split_once('/').unwrap().0;
        (self.numbers(data, f32::from_le_bytes), self.tensors.tensor(data).unwrap().shape()[1])
    }
}

fn task<'a>(case: &str, points: &'a [f32], dim: usize) -> Task<'a> {
    let mut task = Task::new(Embeddings::new(points, dim));
    if case.contains("/euclidean") {
        task.space.distance = Distance::Euclidean;
    }
    task
}

#[test]
fn from_the_same_noise_everything_is_that_of_scikit_learn() {
    let (fixtures, workers, services) = (Fixtures::new(), Workers::alone(), Services::none());
    let noise = fixtures.numbers("noise", f32::from_le_bytes);
    let mut different = Vec::new();
    let mut other_iterations = Vec::new();
    for (case, params) in fixtures.cases() {
        let (points, dim) = fixtures.points(case);
        let ap = Ap::new(serde_json::from_str(params).unwrap(), &services).unwrap();
        let mut similarities = Similarities::new(&task(case, &points, dim), &workers, &services).unwrap();
        let preference = ap.preference(&similarities, &services).unwrap();
        let iterations_there = &fixtures.metadata[&format!("{case}/iterations")];
        let exemplars = fixtures.numbers(&format!("{case}/exemplars"), u32::from_le_bytes);
        let (clusters, iterations) = match similarities.mutual() {
            Some(mutual) => (equally_similar(similarities.len(), preference > f64::from(mutual)).clusters, 0),
            None => {
                similarities.add_given_noise(&noise[..similarities.values().len()]);
                similarities.set_preference(preference);
                let end = ap.pass(&similarities, ap.damping, &workers, &services, (0, 1)).unwrap();
                (refine(&similarities, end.exemplars, &workers, &services).unwrap(), end.trace.len())
            }
        };
        let labels = fixtures.numbers(&format!("{case}/labels"), u32::from_le_bytes);
        if iterations.to_string() != *iterations_there {
            other_iterations.push(case);
        }
        let expected = (labels, exemplars);
        if (examples::partition(&clusters.labels), clusters.exemplars) != expected {
            different.push(case);
            let n = similarities.len();
            assert!(n < 100, "{case} is too large to look into");
            let wide: Vec<f64> = similarities.values().iter().map(|&value| f64::from(value)).collect();
            let messages = propagation::pass(&wide, n, ap.damping, iterations_there.parse().unwrap());
            let belief = |k: usize| messages.responsibilities[k * (n + 1)] + messages.availabilities[k * (n + 1)];
            let exemplars = (0..n).filter(|&k| belief(k) > 0.0).map(|k| k as u32).collect();
            let clusters = refine(&similarities, exemplars, &workers, &services).unwrap();
            assert_eq!((examples::partition(&clusters.labels), clusters.exemplars), expected, "{case} in f64");
        }
    }
    // Here an example and its equal are as good exemplars as each other up to rounding errors of messages in f32; from
    // the same similarities, messages in f64 lead to what scikit-learn finds.
    assert_eq!(different, ["duplicates/damping65"]);
    // The first is the same case, and of the second scikit-learn's own iterations change with the noise.
    assert_eq!(other_iterations, ["duplicates/damping65", "omniglot750/gamma5"]);
    assert_eq!(fixtures.cases().len(), 48);
}

#[test]
fn what_does_not_depend_on_the_noise_is_that_of_scikit_learn() {
    let fixtures = Fixtures::new();
    let component = Registration::clusterer::<Ap>().component().unwrap();
    let mut compared = 0;
    for (case, params) in fixtures.cases() {
        let steady = &fixtures.metadata[&format!("{case}/steady")];
        if !steady.contains("labels") {
            continue;
        }
        let (points, dim) = fixtures.points(case);
        let task = task(case, &points, dim);
        let ap = ForeignClusterer::try_from(component.create(params, &Services::none()).unwrap()).unwrap();
        for seed in 0..3 {
            let found = ap.cluster(&task, &Services { seed, ..Services::none() }).unwrap();
            let labels = fixtures.numbers(&format!("{case}/labels"), u32::from_le_bytes);
            assert_eq!(examples::partition(found.assignments.values()), labels, "{case} {seed}");
            if steady.contains("exemplars") {
                let exemplars = fixtures.numbers(&format!("{case}/exemplars"), u32::from_le_bytes);
                assert_eq!(found.exemplars.concat(), exemplars, "{case} {seed}");
            }
            if steady.contains("iterations") {
                let iterations = &fixtures.metadata[&format!("{case}/iterations")];
                assert_eq!(&found.diagnostics.iterations.to_string(), iterations, "{case} {seed}");
            }
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared}");
}
