//! `plugin_name`: a clusterer for compflow.

#![deny(unsafe_code)]

use compflow_api::{Clusterer, Clustering, Component, Diagnostics, Result, Services, Shape, Task, export_library, register};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

export_library!();

/// Takes `k` examples that are far from one another, the first by the seed, and gives every example to the nearest.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Params {
    /// Number of clusters.
    #[schemars(range(min = 1))]
    k: usize,
}

impl Default for Params {
    fn default() -> Self {
        Self { k: 3 }
    }
}

struct PluginType(Params);
register!(clusterer PluginType);

impl Component for PluginType {
    const NAME: &'static str = "plugin_name";
    const SUMMARY: &'static str = "the nearest of examples that are far from one another";
    type Params = Params;

    fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
        Ok(Self(params))
    }
}

impl Clusterer for PluginType {
    fn memory(&self, shape: Shape, _services: &Services<'_>) -> Result<u64> {
        let Shape { rows, dim, .. } = shape;
        // The points (if the space normalises them), and a distance and a label per example.
        Ok((rows as u64).saturating_mul((dim as u64).saturating_mul(4).saturating_add(8 + 4)))
    }

    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        let (n, k) = (task.embeddings.len(), self.0.k);
        task.require_k(k)?;
        let points = task.points();
        let point = |row: usize| &points[row * task.embeddings.dim()..][..task.embeddings.dim()];
        let mut exemplars = Vec::with_capacity(k);
        let mut nearest = vec![f64::INFINITY; n];
        let mut labels = vec![0; n];
        let mut next = (services.seed % n as u64) as usize;
        for label in 0..k {
            services.progress(label, k)?; // ends the work here if it is no longer wanted
            exemplars.push(vec![next as u32]);
            for row in 0..n {
                let distance = task.space.distance(point(row), point(next));
                if distance < nearest[row] {
                    nearest[row] = distance;
                    labels[row] = label as u32;
                }
            }
            labels[next] = label as u32;
            // The farthest that is no exemplar yet; the first of equals, so that the result does not depend on luck.
            let chosen = |row: usize| exemplars.iter().any(|exemplar| exemplar[0] as usize == row);
            let farthest = (0..n).filter(|&row| !chosen(row)).rev().max_by(|&a, &b| nearest[a].total_cmp(&nearest[b]));
            next = farthest.unwrap_or(0);
        }
        let objective = nearest.iter().sum();
        let diagnostics = Diagnostics { iterations: k as u64, objective, ..Diagnostics::default() };
        Ok(Clustering { exemplars, diagnostics, ..Clustering::from_labels(&labels) })
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::{Embeddings, ForeignClusterer, Registration};

    use super::*;

    /// As the host would use it, across the boundary.
    #[test]
    fn far_examples_found_clusters() {
        let component = Registration::clusterer::<PluginType>().component().unwrap();
        let made = component.create(r#"{"k": 2}"#, &Services::none()).unwrap();
        let clusterer = ForeignClusterer::try_from(made).unwrap();
        let task = Task::new(Embeddings::new(&[0.0, 0.1, 9.0, 9.1], 1));
        let found = clusterer.cluster(&task, &Services::none()).unwrap();
        assert_eq!(found.assignments.iter().collect::<Vec<_>>(), [[0], [0], [1], [1]]);
    }

    #[test]
    fn bad_parameters_are_refused() {
        let component = Registration::clusterer::<PluginType>().component().unwrap();
        let refused = component.create(r#"{"k": 0}"#, &Services::none()).unwrap_err();
        assert_eq!(refused.to_string(), "`k` must be a whole number at least 1, found 0");
    }
}
