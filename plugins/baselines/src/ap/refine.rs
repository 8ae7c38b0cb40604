//! From exemplars to clusters, as scikit-learn does it at the end of affinity propagation.

use compflow_api::{Result, Services};

use crate::similarities::{Similarities, block_rows};
use compflow_kernels::workers::Workers;

/// Every example's cluster, and every cluster's exemplar, ascending.
pub(crate) struct Clusters {
    pub(crate) labels: Vec<u32>,
    pub(crate) exemplars: Vec<u32>,
}

impl Clusters {
    /// Σ S(i, exemplar of i), where an exemplar counts its preference.
    pub(crate) fn net_similarity(&self, similarities: &Similarities) -> f64 {
        let exemplar = |label: u32| self.exemplars[label as usize] as usize;
        self.labels.iter().enumerate().map(|(row, &label)| f64::from(similarities.row(row)[exemplar(label)])).sum()
    }
}

/// Gives every example its most similar exemplar.
pub(crate) fn choose(
    similarities: &Similarities,
    exemplars: Vec<u32>,
    workers: &Workers,
    services: &Services<'_>,
) -> Result<Clusters> {
    Ok(Clusters { labels: assign(similarities, &exemplars, workers, services)?, exemplars })
}

/// Gives every example its most similar exemplar, puts in place of each exemplar the member that the others of its
/// cluster are most similar to, and gives every example its most similar exemplar again.
pub(crate) fn refine(
    similarities: &Similarities,
    exemplars: Vec<u32>,
    workers: &Workers,
    services: &Services<'_>,
) -> Result<Clusters> {
    let labels = assign(similarities, &exemplars, workers, services)?;
    let mut members = vec![Vec::new(); exemplars.len()];
    labels.iter().enumerate().for_each(|(row, &label)| members[label as usize].push(row));
    let mut exemplars = workers.map(members, |members| {
        let mut sums = vec![0.0; members.len()];
        for &row in &members {
            services.check_cancelled()?;
            let row = similarities.row(row);
            sums.iter_mut().zip(&members).for_each(|(sum, &member)| *sum += f64::from(row[member]));
        }
        Ok(members[first_highest(sums)] as u32)
    })?;
    exemplars.sort_unstable();
    choose(similarities, exemplars, workers, services)
}

/// The most similar exemplar of every example, as its place in the list; an exemplar has itself.
fn assign(
    similarities: &Similarities,
    exemplars: &[u32],
    workers: &Workers,
    services: &Services<'_>,
) -> Result<Vec<u32>> {
    let (n, rows) = (similarities.len(), block_rows(similarities.len()));
    let blocks = workers.map(similarities.values().chunks(rows * n), |block| {
        services.check_cancelled()?;
        let nearest = |row: &[f32]| first_highest(exemplars.iter().map(|&exemplar| row[exemplar as usize])) as u32;
        Ok(block.chunks_exact(n).map(nearest).collect::<Vec<_>>())
    })?;
    let mut labels = blocks.concat();
    for (label, &exemplar) in exemplars.iter().enumerate() {
        labels[exemplar as usize] = label as u32;
    }
    Ok(labels)
}

/// Where the highest value stands first.
pub(crate) fn first_highest<T: PartialOrd>(values: impl IntoIterator<Item = T>) -> usize {
    let mut values = values.into_iter().enumerate();
    let first = values.next().expect("there is at least one value");
    values.fold(first, |best, next| if next.1 > best.1 { next } else { best }).0
}
