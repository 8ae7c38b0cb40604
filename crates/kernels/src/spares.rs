//! The nearest composition of every example, and what would be nearest if one of its singletons went.
//!
//! With both known, what the sum of squared distances would be if a newcomer took the place of a singleton is found for
//! *all* singletons at once, from distances to the compositions of which the newcomer is a member: a part of about 2/k of
//! all. The trick is that of Schubert and Rousseeuw, "Fast and eager k-medoids clustering", Information Systems 101,
//! 2021, doi:10.1016/j.is.2021.101804, with sets in place of medoids.

use compflow_api::{Result, Services, Sets};
use pulp::Arch;

use crate::pairs::squared;
use crate::products::{Fill, LANES, Rows, Vectors, squared_norms};
use crate::weights::weight;
use crate::workers::Workers;

/// Rows that are compared with all centres before the next are.
const AT_ONCE: usize = 64;
/// Rows that one piece of work takes. No matter how many threads there are.
const BLOCK: usize = 1024;

/// Some points, prepared, with their lengths and weights.
pub struct Weighted<'a> {
    values: &'a [f32],
    norms: Vec<f32>,
    weights: Option<&'a [f32]>,
    dim: usize,
}

impl<'a> Weighted<'a> {
    /// Row-major points of `dim` numbers; without weights, each counts once.
    pub fn new(values: &'a [f32], weights: Option<&'a [f32]>, dim: usize) -> Self {
        Self { values, norms: squared_norms(values, dim), weights, dim }
    }

    fn weight(&self, row: usize) -> f64 {
        weight(self.weights, row)
    }
}

/// For every point the nearest of some sets' centres.
pub struct Spares {
    /// Which set.
    pub nearest: Vec<u32>,
    /// Its squared distance.
    pub distances: Vec<f32>,
    /// Row by row, for every member of the nearest set, the squared distance of the nearest set without it, infinite if
    /// there is none; `size` numbers for each.
    without: Vec<f32>,
    size: usize,
}

impl Spares {
    /// Compares points with the sets' centres, which are prepared. The first of equally near sets is taken.
    ///
    /// # Errors
    /// That the work is no longer wanted.
    pub fn find(
        points: &Weighted<'_>,
        centres: &[f32],
        sets: &Sets,
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<Self> {
        let (dim, n) = (points.dim, points.norms.len());
        let size = sets.iter().map(<[u32]>::len).max().unwrap_or(0);
        let vectors = Vectors::new(centres, dim);
        let stride = vectors.len() * LANES;
        let blocks = points.values.chunks(BLOCK * dim).zip(points.norms.chunks(BLOCK));
        let found = workers.map(blocks, |(values, norms)| {
            services.check_cancelled()?;
            let mut block = Self { nearest: Vec::new(), distances: Vec::new(), without: Vec::new(), size };
            let mut similarities = vec![0.0; AT_ONCE * stride];
            for (values, norms) in values.chunks(AT_ONCE * dim).zip(norms.chunks(AT_ONCE)) {
                let rows = Rows { values, norms, dim, rooted: false };
                Arch::new().dispatch(Fill { rows, vectors: &vectors, out: &mut similarities, stride });
                for row in similarities.chunks_exact(stride).take(norms.len()) {
                    block.add(&row[..sets.len()], sets);
                }
            }
            Ok(block)
        })?;
        let mut all = Self {
            nearest: Vec::with_capacity(n),
            distances: Vec::with_capacity(n),
            without: Vec::with_capacity(n * size),
            size,
        };
        for block in found {
            all.nearest.extend(block.nearest);
            all.distances.extend(block.distances);
            all.without.extend(block.without);
        }
        Ok(all)
    }

    /// Adds a point with these similarities to all sets.
    fn add(&mut self, similarities: &[f32], sets: &Sets) {
        let most =
            similarities.iter().fold(f32::NEG_INFINITY, |most, &value| if value > most { value } else { most });
        let nearest = similarities.iter().position(|&value| value == most).unwrap_or(0);
        self.nearest.push(nearest as u32);
        self.distances.push(-most);
        let (members, start) = (&sets[nearest], self.without.len());
        self.without.resize(start + self.size, f32::INFINITY);
        let best = &mut self.without[start..][..members.len()];
        // Few sets are nearer than the farthest of the spare ones, so most are passed over by one comparison.
        let mut farthest = if members.is_empty() { f32::NEG_INFINITY } else { f32::INFINITY };
        for (at, &similarity) in similarities.iter().enumerate() {
            if -similarity < farthest {
                for (best, member) in best.iter_mut().zip(members) {
                    if -similarity < *best && !sets[at].contains(member) {
                        *best = -similarity;
                    }
                }
                farthest = best.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            }
        }
    }

    /// Lets a point belong to a set whatever it is nearest to, and whoever goes.
    pub fn fix(&mut self, points: &Weighted<'_>, row: usize, set: u32, centre: &[f32]) {
        let point = &points.values[row * points.dim..][..points.dim];
        self.nearest[row] = set;
        self.distances[row] = squared(point, centre) as f32;
        self.without[row * self.size..][..self.size].fill(f32::INFINITY);
    }

    /// Keeps a point from belonging to any of the sets.
    pub fn exclude(&mut self, row: usize) {
        self.distances[row] = f32::INFINITY;
        self.without[row * self.size..][..self.size].fill(f32::INFINITY);
    }

    /// The squared distance of a point from the nearest set without a singleton.
    fn distance_without(&self, row: usize, sets: &Sets, singleton: u32) -> f32 {
        let members = &sets[self.nearest[row] as usize];
        match members.iter().position(|&member| member == singleton) {
            Some(at) => self.without[row * self.size + at],
            None => self.distances[row],
        }
    }

    /// Σ of all squared distances.
    pub fn sum(&self, points: &Weighted<'_>) -> f64 {
        self.distances.iter().enumerate().map(|(row, &distance)| points.weight(row) * f64::from(distance)).sum()
    }

    /// What the sum of squared distances to the nearest of `sets` would be if a newcomer took the place of each of `k`
    /// singletons. `partners` are the sets that the newcomer is compared with, without itself.
    pub fn swapped(
        &self,
        sets: &Sets,
        newcomer: &Self,
        partners: &Sets,
        points: &Weighted<'_>,
        k: usize,
    ) -> Vec<f64> {
        let (mut both, mut lost) = (0.0, vec![0.0; k]);
        for row in 0..self.nearest.len() {
            let weight = points.weight(row);
            let nearest = self.distances[row].min(newcomer.distances[row]);
            both += weight * f64::from(nearest);
            let members = &sets[self.nearest[row] as usize];
            let others = &partners[newcomer.nearest[row] as usize];
            for &singleton in members.iter().chain(others.iter().filter(|other| !members.contains(other))) {
                let left = self.distance_without(row, sets, singleton);
                let left = left.min(newcomer.distance_without(row, partners, singleton));
                lost[singleton as usize] += weight * f64::from(left - nearest);
            }
        }
        lost.iter().map(|lost| both + lost).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::examples;

    fn squared(a: &[f32], b: &[f32]) -> f64 {
        a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum()
    }

    #[test]
    fn what_is_fixed_stays_and_what_is_excluded_goes_nowhere() {
        let (workers, services) = (Workers::alone(), Services::none());
        let points = Weighted::new(&[0.0, 1.0, 5.0], None, 1);
        let sets = Sets::singletons(&[0, 1, 2]);
        let mut current = Spares::find(&points, &[0.0, 1.0, 4.0], &sets, &workers, &services).unwrap();
        current.fix(&points, 0, 2, &[4.0]);
        assert_eq!((&current.nearest[..], &current.distances[..]), (&[2, 1, 2][..], &[16.0, 0.0, 1.0][..]));
        let partners = Sets::from_iter([&[][..]]);
        let mut newcomer = Spares::find(&points, &[0.0], &partners, &workers, &services).unwrap();
        newcomer.exclude(0);
        // In the place of 0, which has nobody, the newcomer is nearer to nobody; in that of 1 it takes the second point.
        assert_eq!(current.swapped(&sets, &newcomer, &partners, &points, 3)[..2], [17.0, 18.0]);
    }

    #[test]
    fn a_swap_brings_what_comparing_all_sets_anew_does() {
        const K: usize = 5;
        for degree in [1, 2, 3] {
            let (n, dim) = (300, 4);
            let values = examples::uniform(n, dim, 1);
            let weights: Vec<f32> = (0..n).map(|row| (row % 3) as f32).collect();
            let points = Weighted::new(&values, Some(&weights), dim);
            let (workers, services) = (Workers::new(2).unwrap(), Services::none());
            let sets = Sets::all_up_to(K, degree);
            let mut partners = Sets::from_iter([&[][..]]);
            Sets::all_up_to(K, degree - 1).iter().for_each(|set| partners.push(set));
            // Any centres do: how they come about does not matter.
            let centres = examples::uniform(sets.len(), dim, 2);
            let others = examples::uniform(partners.len(), dim, 3);
            let current = Spares::find(&points, &centres, &sets, &workers, &services).unwrap();
            let newcomer = Spares::find(&points, &others, &partners, &workers, &services).unwrap();
            let found = current.swapped(&sets, &newcomer, &partners, &points, K);
            for (goes, found) in found.into_iter().enumerate() {
                let left = |sets: &Sets, centres: &[f32]| -> Vec<f32> {
                    let kept = sets.iter().zip(centres.chunks_exact(dim));
                    kept.filter(|(set, _)| !set.contains(&(goes as u32)))
                        .flat_map(|(_, centre)| centre)
                        .copied()
                        .collect()
                };
                let left = [left(&sets, &centres), left(&partners, &others)].concat();
                let expected: f64 = values
                    .chunks_exact(dim)
                    .zip(&weights)
                    .map(|(x, &weight)| {
                        let nearest =
                            left.chunks_exact(dim).map(|centre| squared(x, centre)).fold(f64::INFINITY, f64::min);
                        f64::from(weight) * nearest
                    })
                    .sum();
                assert!(
                    (found - expected).abs() < 1e-5 * expected,
                    "{degree} {goes}: {found} instead of {expected}"
                );
            }
            let expected: f64 = values
                .chunks_exact(dim)
                .zip(&weights)
                .map(|(x, &weight)| {
                    let nearest =
                        centres.chunks_exact(dim).map(|centre| squared(x, centre)).fold(f64::INFINITY, f64::min);
                    f64::from(weight) * nearest
                })
                .sum();
            assert!((current.sum(&points) - expected).abs() < 1e-5 * expected);
        }
    }
}
