//! Which examples may become exemplars if not all may: farthest-first.

use compflow_api::{Result, Services, Task};
use compflow_kernels::points::Points;
use compflow_kernels::workers::Workers;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// `m` examples, ascending: any one, and then always the one that is farthest from those taken, the first of equally
/// far ones. Examples equal to one that was taken come last.
pub(crate) fn farthest_first(
    task: &Task<'_>,
    m: usize,
    workers: &Workers,
    services: &Services<'_>,
) -> Result<Vec<u32>> {
    let n = task.embeddings.len();
    let points = Points::new(task.points().into_owned(), task.embeddings.dim(), n, workers, services)?;
    let mut next = ChaCha8Rng::seed_from_u64(services.seed).random_range(0..points.len());
    let mut distances = vec![f32::INFINITY; points.len()];
    let mut taken = Vec::with_capacity(m);
    for _ in 0..m {
        services.check_cancelled()?;
        taken.push(next as u32);
        let centre = points.row(next);
        for (distance, point) in distances.iter_mut().zip(points.values().chunks_exact(points.dim())) {
            let squared: f32 = point.iter().zip(centre).map(|(x, c)| (x - c) * (x - c)).sum();
            *distance = distance.min(squared);
        }
        // Below anything that may be left.
        distances[next] = -1.0;
        next = (0..points.len()).fold(0, |best, at| if distances[at] > distances[best] { at } else { best });
    }
    taken.sort_unstable();
    Ok(taken)
}
