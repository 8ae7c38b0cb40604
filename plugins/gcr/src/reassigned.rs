//! What was decided about the preliminary clusters, and the result that follows from it.

use std::collections::HashMap;

use compflow_api::{Clustering, Column, Diagnostics, Embeddings, Result, Services, Sets, Singletons, Table, Task};

use crate::compositions::Near;
use crate::null::Null;
use crate::preliminary::Preliminary;

/// What was decided about the preliminary clusters.
pub(crate) struct Reassigned {
    /// For every cluster the composition that it becomes: one of one cluster if it is part of that.
    pub(crate) chosen: Vec<Option<Near>>,
    pub(crate) threshold: f64,
    /// How far the nearest composition is that was too far.
    pub(crate) beyond: Option<f64>,
    /// If it was looked at: how the clusters compare with clusters without unions.
    pub(crate) null: Option<Null>,
}

impl Reassigned {
    /// How many clusters became part of another one, and the compositions that others became.
    fn merged_and_composed(&self) -> (usize, impl Iterator<Item = &Near>) {
        let k = self.chosen.len();
        let merged = self.chosen.iter().flatten().filter(|near| near.set < k).count();
        (merged, self.chosen.iter().flatten().filter(move |near| near.set >= k))
    }

    /// What was decided, in words.
    pub(crate) fn summary(&self) -> String {
        let (merged, composed) = self.merged_and_composed();
        let (k, composed) = (self.chosen.len(), composed.count());
        match self.null {
            Some(null) if !null.rejected() => format!(
                "no cluster is taken for a composition: of {} times {k} clusters without unions, with the same mean and \
                 covariance, {} came as near to compositions; a number for `threshold` would decide otherwise",
                null.draws, null.as_well
            ),
            _ => {
                let parts = if merged > 0 { format!(", {merged} are parts of others") } else { String::new() };
                format!("{composed} of {k} clusters are compositions{parts}, at a threshold of {}", self.threshold)
            }
        }
    }

    /// Numbers about what was decided, and how far those were from the threshold that came closest to it.
    fn scalars(&self) -> Vec<(String, f64)> {
        let (merged, composed) = self.merged_and_composed();
        let distances: Vec<f64> = composed.map(|near| near.distance).collect();
        let numbers = [
            ("preliminary_clusters", Some(self.chosen.len() as f64)),
            ("compositions", Some(distances.len() as f64)),
            ("merged_clusters", Some(merged as f64)),
            ("farthest_composition", distances.into_iter().max_by(f64::total_cmp)),
            ("nearest_beyond_threshold", self.beyond),
            ("chance_without_unions", self.null.map(|null| null.chance())),
        ];
        numbers.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    /// The objective before and after each reassignment, the nearest first.
    fn trace(&self, sizes: &[f64]) -> Vec<f64> {
        let mut chosen: Vec<(f64, f64)> = self
            .chosen
            .iter()
            .zip(sizes)
            .filter_map(|(near, &size)| Some((near.as_ref()?.distance, size)))
            .collect();
        chosen.sort_by(|a, b| a.0.total_cmp(&b.0));
        let alone = sizes.iter().sum::<f64>() * self.threshold;
        let gains = chosen.iter().scan(alone, |objective, (distance, size)| {
            *objective -= size * (self.threshold - distance);
            Some(*objective)
        });
        std::iter::once(alone).chain(gains).collect()
    }

    /// Where sets lie that occur: where the composer says, or at the mean of its examples if a member of it has no vector.
    fn centroids(
        &self,
        task: &Task<'_>,
        clusters: &Preliminary,
        sets: &Sets,
        singletons: &Singletons,
        services: &Services<'_>,
    ) -> Result<Vec<f32>> {
        let dim = task.embeddings.dim();
        let places: HashMap<u32, u32> = singletons.numbers.iter().copied().zip(0..).collect();
        let placed =
            |set: &[u32]| set.iter().map(|member| places.get(member).copied()).collect::<Option<Vec<u32>>>();
        let composed: Sets = sets.iter().filter_map(placed).collect();
        let composed = task.compose_sets(Embeddings::new(&singletons.vectors, dim), &composed, services)?;
        let mut composed = composed.chunks_exact(dim);
        let mut centroids = Vec::with_capacity(sets.len() * dim);
        for set in sets.iter() {
            match placed(set) {
                Some(_) => centroids.extend(composed.next().into_iter().flatten()),
                None => {
                    let of_set = (0..clusters.k()).filter(|&at| clusters.known[at].as_deref() == Some(set));
                    let mut mean = clusters.mean(of_set, dim);
                    task.space.enter(&mut mean, dim);
                    centroids.extend(mean);
                }
            }
        }
        Ok(centroids)
    }

    /// Numbers the clusters that are left, and then the others, in the order of their first examples, which is also the
    /// host's: so the numbers in the column `base` are those of the result. Singletons with names come first and have the
    /// numbers of the names; one that is known in unions only has no cluster, and no vector.
    pub(crate) fn result(
        &self,
        task: &Task<'_>,
        clusters: &Preliminary,
        sets: &Sets,
        base: Clustering,
        services: &Services<'_>,
    ) -> Result<Clustering> {
        let (k, dim, chosen) = (clusters.k(), task.embeddings.dim(), &self.chosen);
        let trace = self.trace(&clusters.sizes);
        let known = |cluster: usize| clusters.known[cluster].as_deref();
        let is_alone =
            |cluster: usize| chosen[cluster].is_none() && known(cluster).is_none_or(|set| set.len() == 1);
        let (mut alone, others): (Vec<usize>, Vec<usize>) = (0..k).partition(|&cluster| is_alone(cluster));
        // The preliminary clusters that each of these consists of, itself the first.
        let parts = |cluster: usize| {
            let merged =
                others.iter().copied().filter(move |&other| chosen[other].is_some_and(|near| near.set == cluster));
            std::iter::once(cluster).chain(merged)
        };
        // Those with names come first, as false is less.
        alone.sort_by_cached_key(|&cluster| (known(cluster).is_none(), known(cluster), parts(cluster).min()));
        let mut numbers = vec![0; k];
        let mut next = task.named() as u32;
        for &cluster in alone.iter().chain(&others) {
            numbers[cluster] = match known(cluster) {
                Some(&[named]) => named,
                _ => {
                    next += 1;
                    next - 1
                }
            };
        }
        let set = |cluster: usize| -> Vec<u32> {
            match chosen[cluster] {
                None => known(cluster).map_or_else(|| vec![numbers[cluster]], <[u32]>::to_vec),
                Some(near) => {
                    let mut members: Vec<u32> =
                        sets[near.set].iter().map(|&member| numbers[member as usize]).collect();
                    members.sort_unstable();
                    members
                }
            }
        };
        let becomes: Vec<Vec<u32>> = (0..k).map(set).collect();
        let mut occurring = becomes.clone();
        occurring.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        occurring.dedup();
        let occurring = Sets::from_iter(occurring);
        let means: Vec<f32> = alone.iter().flat_map(|&cluster| clusters.mean(parts(cluster), dim)).collect();
        let singletons =
            Singletons { numbers: alone.iter().map(|&cluster| numbers[cluster]).collect(), vectors: means };
        let centroids = self.centroids(task, clusters, &occurring, &singletons, services)?;
        let single = task.named() == 0 && base.assignments.iter().all(|set| set.len() <= 1);
        let column: Sets = match single {
            true => {
                clusters.labels.iter().map(|label| Vec::from_iter(label.map(|at| numbers[at as usize]))).collect()
            }
            false => base.assignments,
        };
        let none = Vec::new();
        let mut scalars = self.scalars();
        scalars.extend(base.scalars.into_iter().map(|(name, value)| (format!("base_{name}"), value)));
        let resolved = base.resolved.into_iter().map(|(path, value)| (format!("base.params.{path}"), value));
        Ok(Clustering {
            assignments: clusters
                .labels
                .iter()
                .map(|label| label.map_or(&none, |label| &becomes[label as usize]))
                .collect(),
            clusters: occurring,
            centroids,
            extra: with_columns_of_the_base(("base".to_owned(), Column::Sets(column)), base.extra),
            singletons,
            scalars,
            resolved: resolved.collect(),
            diagnostics: Diagnostics {
                objective: trace.last().copied().unwrap_or(f64::NAN),
                trace,
                iterations: base.diagnostics.iterations,
                converged: base.diagnostics.converged,
            },
            ..Clustering::default()
        })
    }
}

/// Our column and those of the base, which give way if they have its name.
fn with_columns_of_the_base(own: (String, Column), of_base: Table) -> Table {
    let mut columns = vec![own];
    let mut taken: Vec<String> = of_base.iter().map(|(name, _)| name.clone()).collect();
    for (mut name, column) in of_base {
        if name == columns[0].0 {
            while taken.contains(&name) {
                name.insert_str(0, "base_");
            }
            taken.push(name.clone());
        }
        columns.push((name, column));
    }
    columns
}
