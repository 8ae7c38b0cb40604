//! Mean shift: as many clusters as the density of the examples has modes.

use compflow_api::{Clusterer, Clustering, Component, Diagnostics, Result, Services, Shape, Task, register};
use ndarray::{Array1, ArrayView2, Axis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Moves a copy of every example to the mean of the examples within `bandwidth` until nothing moves any more; examples
/// whose copies meet are a cluster.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Params {
    /// How far an example sees.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    bandwidth: f32,
    /// Iterations after which it stops even if copies still move.
    #[schemars(range(min = 1))]
    max_iter: usize,
}

impl Default for Params {
    fn default() -> Self {
        Self { bandwidth: 0.5, max_iter: 100 }
    }
}

struct Shift(Params);
register!(clusterer Shift);

impl Component for Shift {
    const NAME: &'static str = "shift";
    const SUMMARY: &'static str = "mean shift: a cluster for every mode";
    type Params = Params;

    fn new(params: Params, _services: &Services<'_>) -> Result<Self> {
        Ok(Self(params))
    }
}

impl Clusterer for Shift {
    fn memory(&self, shape: Shape, _services: &Services<'_>) -> Result<u64> {
        let Shape { rows, dim, .. } = shape;
        Ok((rows as u64).saturating_mul((dim as u64).saturating_mul(8).saturating_add(4)))
    }

    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        let (n, dim) = (task.embeddings.len(), task.embeddings.dim());
        services.require_memory(self.memory(task.shape(), services)?, "cluster fewer examples")?;
        let points = task.points();
        let points = ArrayView2::from_shape((n, dim), &points)?.mapv(f64::from);
        let near = f64::from(self.0.bandwidth).powi(2);
        let squared = |a: &Array1<f64>, b: &Array1<f64>| (a - b).mapv(|x| x * x).sum();
        let rows: Vec<Array1<f64>> = points.axis_iter(Axis(0)).map(|row| row.to_owned()).collect();
        let (mut modes, mut labels): (Vec<Array1<f64>>, Vec<u32>) = (Vec::new(), Vec::with_capacity(n));
        let (mut iterations, mut converged) = (0, true);
        for (at, row) in rows.iter().enumerate() {
            let mut mode = row.clone();
            let mut moving = true;
            let mut steps = 0;
            while moving && steps < self.0.max_iter {
                services.progress(at, n)?;
                let seen = rows.iter().filter(|other| squared(other, &mode) <= near);
                let (sum, count) =
                    seen.fold((Array1::zeros(dim), 0.0), |(sum, count), other| (sum + other, count + 1.0));
                // The example itself may be out of sight by now; then there is nothing left to climb.
                let mean = if count > 0.0 { sum / count } else { mode.clone() };
                moving = squared(&mean, &mode) > 1e-12 * near;
                mode = mean;
                steps += 1;
            }
            converged &= !moving;
            iterations = iterations.max(steps as u64);
            let known = modes.iter().position(|known| squared(known, &mode) <= near / 4.0);
            labels.push(known.unwrap_or(modes.len()) as u32);
            if known.is_none() {
                modes.push(mode);
            }
        }
        let centroids = modes.iter().flatten().map(|value| *value as f32).collect();
        let diagnostics = Diagnostics { iterations, converged, ..Diagnostics::default() };
        Ok(Clustering { centroids, diagnostics, ..Clustering::from_labels(&labels) })
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::{Embeddings, ForeignClusterer, Registration};

    use super::*;

    #[test]
    fn modes_are_clusters() {
        let component = Registration::clusterer::<Shift>().component().unwrap();
        let made = component.create(r#"{"bandwidth": 1.0}"#, &Services::none()).unwrap();
        let clusterer = ForeignClusterer::try_from(made).unwrap();
        let task = Task::new(Embeddings::new(&[0.0, 0.2, 9.0, 9.2, 0.1], 1));
        let found = clusterer.cluster(&task, &Services::none()).unwrap();
        assert_eq!(found.assignments.iter().collect::<Vec<_>>(), [[0], [0], [1], [1], [0]]);
    }
}
