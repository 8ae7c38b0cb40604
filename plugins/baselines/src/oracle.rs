//! `oracle`: the groups that a perfect clusterer without composition would find.
//!
//! In the paper it is Oracle Singleton Clustering: ĉᵢ = {yᵢ}, the true set yᵢ taken for a singleton. With S ordered pairs of
//! true sets of which one is part of the other, and m examples in each, CRI = 1 - S·m²/(n(n-1)).
//!
//! # Weaknesses
//!
//! It is told the truth, so it is a bound, and one of methods without composition only.

use std::collections::HashMap;

use compflow_api::{
    Clusterer, Clustering, Component, Flags, NoParams, Result, Services, Sets, Shape, Task, register,
};

use crate::truth;

/// The clusterer `oracle`.
#[derive(Debug)]
pub struct Oracle;
register!(clusterer Oracle);

impl Component for Oracle {
    const NAME: &'static str = "oracle";
    const SUMMARY: &'static str = "groups examples by their true sets: the best without composition";
    const DOCUMENTATION: &'static str = "\
Oracle singleton clustering: examples with the same true set become one cluster, and every cluster is called a \
singleton, even where the true set is a union.

It is given the truth, so it is no method but a bound: no clusterer that knows nothing of composition can do better \
than to tell all true sets apart. What it still loses under a measure that looks at sets is what composition is worth. \
Clusters are numbered in the order in which their sets first appear; centroids are means of examples in the \
pipeline's space.
";
    const FLAGS: Flags = Flags::NEEDS_TRUTH;
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Clusterer for Oracle {
    fn memory(&self, shape: Shape, _services: &Services<'_>) -> Result<u64> {
        let Shape { rows, dim, .. } = shape;
        // As many clusters as examples: centroids and sums, names, the returned sets, and the normalised points.
        Ok((rows as u64).saturating_mul(16 * dim as u64 + 64))
    }

    fn cluster(&self, task: &Task<'_>, services: &Services<'_>) -> Result<Clustering> {
        let (truth, dim) = (truth::of(task)?, task.embeddings.dim());
        services.require_memory(self.memory(task.shape(), services)?, "cluster fewer examples")?;
        let mut names: HashMap<&[u32], u32> = HashMap::new();
        let labels: Vec<u32> = truth
            .iter()
            .map(|set| {
                let next = names.len() as u32;
                *names.entry(set).or_insert(next)
            })
            .collect();
        let (mut sums, mut counts) = (vec![0.0; names.len() * dim], vec![0u32; names.len()]);
        for (point, &label) in task.points().chunks_exact(dim).zip(&labels) {
            counts[label as usize] += 1;
            let sum = &mut sums[label as usize * dim..][..dim];
            sum.iter_mut().zip(point).for_each(|(sum, &value)| *sum += f64::from(value));
        }
        let mean = |(at, sum): (usize, &f64)| (sum / f64::from(counts[at / dim])) as f32;
        Ok(Clustering {
            assignments: Sets::singletons(&labels),
            clusters: Sets::all_up_to(names.len(), 1),
            centroids: sums.iter().enumerate().map(mean).collect(),
            ..Clustering::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::{Embeddings, ForeignClusterer, Normalize, Registration};

    use super::*;

    #[test]
    fn every_true_set_becomes_a_singleton() {
        let values = [1.0, 0.0, 0.0, 1.0, 3.0, 0.0, 5.0, 5.0];
        let truth = Sets::from_iter([vec![4, 2], vec![2], vec![2, 4], vec![]]);
        let mut task = Task { truth: Some(&truth), ..Task::new(Embeddings::new(&values, 2)) };
        let component = Registration::clusterer::<Oracle>().component().unwrap();
        let oracle = component.create("{}", &Services::none()).unwrap();
        let oracle = ForeignClusterer::try_from(oracle).unwrap();
        let found = oracle.cluster(&task, &Services::none()).unwrap();
        assert_eq!(found.assignments, Sets::from_iter([[0], [1], [0], [2]]));
        assert_eq!(found.clusters, Sets::from_iter([[0], [1], [2]]));
        assert_eq!(found.centroids, [2.0, 0.0, 0.0, 1.0, 5.0, 5.0]);
        assert!(found.diagnostics.converged);

        task.space.normalize = Normalize::L2;
        let found = oracle.cluster(&task, &Services::none()).unwrap();
        assert_eq!(found.centroids[..4], [1.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn without_the_truth_there_is_nothing_to_say() {
        let task = Task::new(Embeddings::new(&[1.0], 1));
        let refused = Oracle.cluster(&task, &Services::none()).unwrap_err();
        assert_eq!(refused.to_string(), "needs the true sets, and the task has none");
        assert!(Oracle::FLAGS.contains(Flags::NEEDS_TRUTH));
    }
}
