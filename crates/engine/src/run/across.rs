//! Labelling examples by the clusters that were found in others: the nearest representative.

use compflow_api::{Clustering, Embeddings, Result, Services, Sets, Task};
use compflow_kernels::pairs::squared;

use super::distances::representatives;
use super::means::{centre, means};
use super::members::Members;

/// More unions than this are not composed: then only sets that were found are given to others.
const MOST_UNIONS: u128 = 1 << 14;

/// Sets and a point of the space for each.
#[derive(Debug)]
pub(super) struct Representatives {
    sets: Sets,
    points: Vec<f32>,
    dim: usize,
}

impl Representatives {
    /// Of the clusters that were found among the task's examples, by their centroids, exemplars or means; and if unions were
    /// found, of all others up to the largest one's size that can be composed. If nothing was found, the empty set has the mean
    /// of all examples: that says nothing about any of them.
    ///
    /// # Errors
    /// Those of the composer.
    pub(super) fn of(task: &Task<'_>, clustering: &Clustering, services: &Services<'_>) -> Result<Self> {
        let dim = task.embeddings.dim();
        let (mut sets, mut points) = match representatives(&task.stream(), clustering, services)? {
            Some(points) => (clustering.clusters.clone(), points),
            None => means(&task.points(), &clustering.assignments, task.space, dim),
        };
        let largest = sets.iter().map(<[u32]>::len).max().unwrap_or(0);
        let parts = Members::of_clustering(clustering, task.embeddings);
        let few = parts.count(2..=largest).is_some_and(|unions| unions <= MOST_UNIONS);
        if largest > 1 && task.composer.is_some() && few {
            let unseen = parts.unseen(2..=largest, &sets.iter().collect());
            if !unseen.is_empty() {
                let vectors = Embeddings::new(&parts.vectors, dim);
                points.extend(task.compose_sets(vectors, &parts.rows(&unseen), services)?);
                unseen.iter().for_each(|set| sets.push(set));
            }
        }
        if sets.is_empty() {
            sets.push(&[]);
            points = centre(&task.points(), task.space, dim);
        }
        Ok(Self { sets, points, dim })
    }

    /// The set of the nearest representative for every example, and the mean squared distance to it.
    pub(super) fn label(&self, task: &Task<'_>) -> (Sets, f64) {
        let points = task.points();
        let mut total = 0.0;
        let nearest = points.chunks_exact(self.dim).map(|point| {
            let mut best = (f64::INFINITY, 0);
            for (at, representative) in self.points.chunks_exact(self.dim).enumerate() {
                let distance = squared(point, representative);
                if distance < best.0 {
                    best = (distance, at);
                }
            }
            total += best.0;
            &self.sets[best.1]
        });
        let sets = nearest.collect();
        (sets, total / task.embeddings.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::{Composer, Singletons};

    use super::*;

    struct Sum;

    impl Composer for Sum {
        fn compose(
            &self,
            _dim: usize,
            left: &[f32],
            right: &[f32],
            out: &mut [f32],
            _services: &Services<'_>,
        ) -> Result<()> {
            out.iter_mut().zip(left.iter().zip(right)).for_each(|(out, (left, right))| *out = left + right);
            Ok(())
        }
    }

    #[test]
    fn unions_that_were_not_found_are_given_too_if_others_were() {
        let found = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0];
        let others = [0.0, 1.1, 1.0, 0.9, 2.0, 1.1];
        let clustering = Clustering {
            assignments: Sets::from_iter([vec![4], vec![7], vec![9], vec![4, 7]]),
            clusters: Sets::from_iter([vec![4], vec![7], vec![9], vec![4, 7]]),
            singletons: Singletons { numbers: vec![4, 7, 9], vectors: vec![1.0, 0.0, 0.0, 1.0, 2.0, 0.0] },
            ..Clustering::default()
        };
        let task = Task { degree: 2, composer: Some(&Sum), ..Task::new(Embeddings::new(&found, 2)) };
        let representatives = Representatives::of(&task, &clustering, &Services::none()).unwrap();
        let (labels, far) = representatives.label(&Task::new(Embeddings::new(&others, 2)));
        // 9 and 7 were never seen together, and lie at (2, 1); the mean of what 9 was found in is (0, 0).
        assert_eq!(labels, Sets::from_iter([vec![7], vec![4, 7], vec![7, 9]]));
        assert!((far - 0.01).abs() < 1e-6, "{far}");
    }

    #[test]
    fn where_nothing_was_found_all_examples_have_the_empty_set_and_are_as_far_as_from_their_mean() {
        let examples = [0.0, 4.0];
        let task = Task::new(Embeddings::new(&examples, 1));
        let clustering =
            Clustering { assignments: Sets::from_iter([[], []] as [[u32; 0]; 2]), ..Clustering::default() };
        let representatives = Representatives::of(&task, &clustering, &Services::none()).unwrap();
        assert_eq!(representatives.label(&task), (clustering.assignments.clone(), 4.0));
    }

    #[test]
    fn groups_without_representatives_have_means_and_are_never_composed() {
        let examples = [0.0, 1.0, 4.0, 6.0];
        let task = Task { degree: 2, composer: Some(&Sum), ..Task::new(Embeddings::new(&examples, 1)) };
        let clustering = Clustering::from_labels(&[3, 3, 5, 5]);
        let representatives = Representatives::of(&task, &clustering, &Services::none()).unwrap();
        assert_eq!(representatives.points, [0.5, 5.0]);
        assert_eq!(representatives.label(&task).0, Sets::singletons(&[3, 3, 5, 5]));
    }
}
