//! Random swaps: a newcomer takes the place of a singleton if the SSD falls by it.
//!
//! A start is right if every singleton begins near its own: if each does so with a chance of about one half, one in 2ᵏ is,
//! and restarts find it while 2ᵏ is below their number: then there are no swaps. With more singletons nearly every start
//! has a few in wrong places and the rest in good ones, and a restart throws all of them away. A swap mends one and keeps
//! the rest.
//!
//! # What is proposed
//!
//! An example is drawn, by the square of how much farther it is from its centre than examples are in the mean, and with
//! it its nearest examples as a group, μ in the mean. Candidates are μ itself, and for every singleton a the solution m of
//!
//! ```text
//! g(m, m_a) = μ
//! ```
//!
//! as most examples show several: a singleton that is missing, or never occurs alone, has hardly an example to begin at.
//! The candidate whose compositions with all singletons are nearest to [`LOOK`] examples is the newcomer. It
//! descends on the examples that it would take, the others staying where they are.
//!
//! # What it replaces
//!
//! No singleton that the user has named. Examples whose sets are known stay where they are and draw nobody.
//!
//! [`Spares`] tell at once what the SSD would be without each of the singletons. If it is lower for one of them, that one
//! goes, all singletons alternate a few times, and the swap stands if the SSD did fall. After several proposals in a row
//! that brought nothing, swaps are followed that raise the SSD at first by up to [`DARING`]: where several singletons are
//! wrong together, mending one helps only once the others have moved. The search ends when these fail, too, or when it
//! has drawn as many examples as the restarts whose place it takes.
//!
//! All of this looks at the sample only, and costs (k + d - 1 over d - 1)·p per example and proposal, about 2/k of an
//! assignment. Fränti, "Efficiency of random swap clustering", Journal of Big Data 5, 2018, doi:10.1186/s40537-018-0122-y.

use std::collections::BTreeMap;

use compflow_api::{Error, Result, Sets};
use compflow_kernels::lbfgs::{self, Limits};
use compflow_kernels::objective::Objective;
use compflow_kernels::plusplus::draw;
use compflow_kernels::spares::{Spares, Weighted};
use compflow_kernels::weights::weight;
use compflow_kernels::workers::Workers;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::restarts::{Search, weighted_objective};

/// Examples that candidates are compared by.
const LOOK: usize = 1024;
/// Examples in a group, at most; otherwise half as many as a set has in the mean, so that most are of the same set.
const GROUP: usize = 8;
/// Descents of a newcomer beside the others.
const DESCENTS: usize = 3;
/// Alternations of all singletons after a swap, at most, and the part by which one has to lower the SSD to be followed by
/// another.
const ROUNDS: usize = 4;
const WORTHWHILE: f64 = 1e-3;
/// A swap that lowers the SSD by less than this part is none: distances are those of f32.
const LEAST: f64 = 1e-6;
/// By what factor the SSD may be higher right after a swap.
const DARING: f64 = 1.5;
/// Fewest proposals that must have failed in a row, before daring and again before the search ends.
const FEWEST: usize = 8;

/// A search by swaps.
pub(crate) struct Swaps<'a> {
    search: &'a Search<'a>,
    points: Weighted<'a>,
    /// What a newcomer is composed with: nothing, and all sets of fewer than `degree` singletons.
    partners: Sets,
    /// The same with the newcomer, whose number is k.
    joined: Sets,
    /// The examples of the sample whose sets are known, by their place in it.
    known: BTreeMap<usize, u32>,
}

/// Singletons and what they explain of the sample.
struct Local {
    singletons: Vec<f32>,
    spares: Spares,
    ssd: f64,
}

/// What a search came to.
pub(crate) struct Swapped {
    pub(crate) singletons: Vec<f32>,
    pub(crate) proposed: usize,
    pub(crate) taken: usize,
}

/// How many of `restarts` are made before the search by swaps: as many as there are while 2ᵏ is at most that, then half as
/// many with every further singleton.
pub(crate) fn restarts_before(restarts: usize, k: usize) -> usize {
    let paying = (restarts as f64).powi(2) / (k as f64).exp2();
    (paying.ceil() as usize).clamp(1, restarts)
}

impl<'a> Swaps<'a> {
    pub(crate) fn new(search: &'a Search<'a>) -> Self {
        let (k, degree, sample) = (search.starts.k, search.starts.degree, search.starts.sample);
        let points = Weighted::new(&sample.points, sample.weights.as_deref(), search.source.dim());
        let mut partners = Sets::from_iter([&[][..]]);
        if degree > 1 {
            Sets::all_up_to(k, degree - 1).iter().for_each(|set| partners.push(set));
        }
        let joined = partners.iter().map(|set| [set, &[k as u32]].concat()).collect();
        let known = sample.numbers.iter().map(|&row| search.told.known.label(row)).enumerate();
        let known = known.filter_map(|(at, label)| Some((at, label?))).collect();
        Self { search, points, partners, joined, known }
    }

    /// Proposals that must have failed in a row before something changes: one for every singleton that may be missing.
    fn patience(&self) -> usize {
        FEWEST.max(self.search.starts.k)
    }

    /// Swaps from these singletons on for as long as that lowers the SSD of the sample.
    ///
    /// # Errors
    /// Those of the composer at these singletons, and that the work is no longer wanted.
    pub(crate) fn improve(&self, singletons: Vec<f32>) -> Result<Swapped> {
        let k = self.search.starts.k;
        let most = self.search.replaced.saturating_mul(k);
        let mut rng = ChaCha8Rng::seed_from_u64(self.search.seed);
        rng.set_stream(u64::MAX / 2);
        let mut local = self.local(singletons)?;
        let (mut proposed, mut taken, mut failed) = (0, 0, 0);
        while proposed < most && failed < 2 * self.patience() && local.ssd > 0.0 {
            let first = if failed < self.patience() { 1.0 } else { DARING };
            (proposed, failed) = (proposed + 1, failed + 1);
            // Where the composer gives no finite number is no place for a newcomer.
            let next = match self.swap(&local, first, &mut rng) {
                Err(Error::Failed(_)) => continue,
                next => next?,
            };
            if let Some(next) = next {
                (local, taken, failed) = (next, taken + 1, 0);
            }
        }
        Ok(Swapped { singletons: local.singletons, proposed, taken })
    }

    /// What a proposal leads to, if that is better; by the factor `first` it may be worse before singletons alternate.
    fn swap(&self, local: &Local, first: f64, rng: &mut impl Rng) -> Result<Option<Local>> {
        let (dim, limit) = (self.search.source.dim(), (1.0 - LEAST) * local.ssd);
        let mut newcomer = self.propose(local, rng)?;
        let mut beside = self.beside(local, &newcomer)?;
        for _ in 0..DESCENTS {
            let mut rows = [&local.singletons[..], &newcomer].concat();
            let taken = |row: usize| beside.distances[row] < local.spares.distances[row];
            let objective = self.objective(&beside, &self.joined, taken).moving_from(self.search.starts.k);
            lbfgs::descend(&objective, &mut rows, Limits { steps: 10, least: 0.0, part: 0.02 })?;
            newcomer = rows.split_off(local.singletons.len());
            beside = self.beside(local, &newcomer)?;
        }
        let ssds =
            local.spares.swapped(self.search.sets, &beside, &self.partners, &self.points, self.search.starts.k);
        let lowest = ssds.iter().enumerate().skip(self.search.gathered.named()).min_by(|a, b| a.1.total_cmp(b.1));
        let Some((goes, _)) = lowest.filter(|(_, ssd)| **ssd < first * limit) else { return Ok(None) };
        let mut singletons = local.singletons.clone();
        singletons[goes * dim..][..dim].copy_from_slice(&newcomer);
        Ok(Some(self.alternate(singletons, limit)?).filter(|next| next.ssd < limit))
    }

    fn local(&self, singletons: Vec<f32>) -> Result<Local> {
        let (sets, model) = (self.search.sets, self.search.starts.model);
        let centres = self.search.source.frame.prepared(&model.centres(&singletons, sets)?);
        let mut spares = Spares::find(&self.points, &centres, sets, self.search.workers, model.services)?;
        for (&row, &label) in &self.known {
            spares.fix(&self.points, row, label, &centres[label as usize * model.dim..][..model.dim]);
        }
        let ssd = spares.sum(&self.points);
        Ok(Local { singletons, spares, ssd })
    }

    /// The nearest compositions of which a newcomer is a member.
    fn beside(&self, local: &Local, newcomer: &[f32]) -> Result<Spares> {
        let model = self.search.starts.model;
        let rows = [&local.singletons[..], newcomer].concat();
        let centres = self.search.source.frame.prepared(&model.centres(&rows, &self.joined)?);
        let mut found = Spares::find(&self.points, &centres, &self.partners, self.search.workers, model.services)?;
        self.known.keys().for_each(|&row| found.exclude(row));
        Ok(found)
    }

    /// Lets all singletons descend and examples choose anew, by turns, for as long as the SSD may come below `limit` if it
    /// goes on falling as it just did.
    fn alternate(&self, singletons: Vec<f32>, limit: f64) -> Result<Local> {
        let (sets, model) = (self.search.sets, self.search.starts.model);
        let mut local = self.local(singletons)?;
        for left in (0..ROUNDS).rev() {
            let mut moved = local.singletons.clone();
            let objective = self.objective(&local.spares, sets, |_| true);
            lbfgs::descend(&objective, &mut moved, Limits { steps: 30, least: 0.0, part: 0.02 })?;
            model.settle(&mut moved, &local.singletons, sets)?;
            let next = self.local(moved)?;
            if next.ssd >= local.ssd {
                break;
            }
            let fall = local.ssd - next.ssd;
            let little = fall < WORTHWHILE * local.ssd;
            local = next;
            if little || local.ssd - left as f64 * fall > limit {
                break;
            }
        }
        Ok(local)
    }

    /// F of the examples that `counts` says, each with its nearest set.
    fn objective(&self, nearest: &Spares, sets: &Sets, counts: impl Fn(usize) -> bool) -> Objective<'a> {
        let (dim, sample) = (self.search.source.dim(), self.search.starts.sample);
        let (mut numbers, mut sums) = (vec![0.0; sets.len()], vec![0.0; sets.len() * dim]);
        for (row, (&set, point)) in nearest.nearest.iter().zip(sample.points.chunks_exact(dim)).enumerate() {
            if counts(row) {
                let weight = weight(sample.weights.as_deref(), row);
                numbers[set as usize] += weight;
                let sum = &mut sums[set as usize * dim..][..dim];
                sum.iter_mut().zip(point).for_each(|(sum, &value)| *sum += weight * f64::from(value));
            }
        }
        weighted_objective(self.search.starts.model, &self.search.source.frame, sets, &numbers, &sums)
    }

    /// Where something may be that the singletons do not explain.
    fn propose(&self, local: &Local, rng: &mut impl Rng) -> Result<Vec<f32>> {
        let (model, k, degree) = (self.search.starts.model, self.search.starts.k, self.search.starts.degree);
        let (row, mean) = self.group(local, rng)?;
        let mut candidates = row.clone();
        if degree > 1 {
            // All solutions at once, as they have nothing to do with each other.
            let mut rows = local.singletons.clone();
            (0..k).for_each(|_| rows.extend_from_slice(&row));
            let sets = (0..k as u32).map(|partner| [partner, k as u32 + partner]).collect();
            let means = (0..k).flat_map(|_| &mean).copied().collect();
            let objective = Objective::new(model, sets, vec![1.0; k], means).moving_from(k);
            lbfgs::descend(&objective, &mut rows, Limits { steps: 20, least: 0.0, part: 1e-3 })?;
            candidates.extend_from_slice(&rows[local.singletons.len()..]);
        }
        let gains = self.gains(local, &candidates, rng)?;
        let best = gains.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)));
        Ok(candidates.chunks_exact(model.dim).nth(best.map_or(0, |best| best.0)).unwrap_or(&row).to_vec())
    }

    /// The mean of an example that is far from its centre and of those around it: as they came, and as points.
    fn group(&self, local: &Local, rng: &mut impl Rng) -> Result<(Vec<f32>, Vec<f64>)> {
        let (model, sample) = (self.search.starts.model, self.search.starts.sample);
        let (dim, n, weights) = (model.dim, local.spares.distances.len(), sample.weights.as_deref());
        let total: f64 = (0..n).map(|row| weight(weights, row)).sum();
        let mean = local.ssd / total;
        let excess = |(row, &distance): (usize, &f32)| {
            if self.known.contains_key(&row) {
                return 0.0;
            }
            let excess = (f64::from(distance) / mean - 1.0).max(0.0);
            (weight(weights, row) * excess * excess) as f32
        };
        let chances: Vec<f32> = local.spares.distances.iter().enumerate().map(excess).collect();
        let centre = &sample.points[draw(&chances, rng) * dim..][..dim];
        let only = Sets::from_iter([&[][..]]);
        let around = Spares::find(&self.points, centre, &only, self.search.workers, model.services)?.distances;
        let size = (n / (2 * self.search.sets.len())).clamp(1, GROUP);
        let mut order: Vec<usize> = (0..n).collect();
        order.select_nth_unstable_by(size - 1, |&a, &b| around[a].total_cmp(&around[b]).then(a.cmp(&b)));
        order.truncate(size);
        order.sort_unstable();
        let total: f64 = order.iter().map(|&row| weight(weights, row)).sum();
        let (mut of_rows, mut of_points) = (vec![0.0; dim], vec![0.0; dim]);
        for row in order {
            let part = weight(weights, row) / total;
            for axis in 0..dim {
                of_rows[axis] += part * f64::from(sample.rows[row * dim + axis]);
                of_points[axis] += part * f64::from(sample.points[row * dim + axis]);
            }
        }
        let mean = self.search.source.frame.mean(&of_points, 1.0).collect();
        Ok((of_rows.into_iter().map(|value| value as f32).collect(), mean))
    }

    /// By how much each of some candidates would lower the SSD of a few examples, alone and composed with one singleton.
    fn gains(&self, local: &Local, candidates: &[f32], rng: &mut impl Rng) -> Result<Vec<f64>> {
        let (starts, frame) = (self.search.starts, &self.search.source.frame);
        let (model, k, sample) = (starts.model, starts.k as u32, starts.sample);
        let (dim, n) = (model.dim, local.spares.distances.len());
        let mut looked = match n > LOOK {
            true => rand::seq::index::sample(rng, n, LOOK).into_vec(),
            false => (0..n).collect(),
        };
        looked.retain(|row| !self.known.contains_key(row));
        let points: Vec<f32> =
            looked.iter().flat_map(|&row| &sample.points[row * dim..][..dim]).copied().collect();
        let points = Weighted::new(&points, None, dim);
        let mut sets = Sets::from_iter([[k]]);
        if starts.degree > 1 {
            (0..k).for_each(|partner| sets.push(&[partner, k]));
        }
        // Nobody goes, so no spares are needed.
        let nobody = Sets::from_iter(sets.iter().map(|_| &[][..]));
        self.search.workers.map(candidates.chunks_exact(dim), |candidate| {
            let rows = [&local.singletons[..], candidate].concat();
            let centres = match model.centres(&rows, &sets) {
                Err(Error::Failed(_)) => return Ok(f64::NEG_INFINITY),
                centres => frame.prepared(&centres?),
            };
            let found = Spares::find(&points, &centres, &nobody, &Workers::alone(), model.services)?;
            let gain = |(&row, &distance): (&usize, &f32)| {
                let gain = (local.spares.distances[row] - distance).max(0.0);
                weight(sample.weights.as_deref(), row) * f64::from(gain)
            };
            Ok(looked.iter().zip(&found.distances).map(gain).sum())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_give_way_as_singletons_become_many() {
        let made: Vec<usize> = [1, 5, 6, 7, 8, 10, 13, 14, 50, 5000].map(|k| restarts_before(100, k)).to_vec();
        assert_eq!(made, [100, 100, 100, 79, 40, 10, 2, 1, 1, 1]);
        assert_eq!((restarts_before(1, 3), restarts_before(1000, 10)), (1, 977));
    }
}
