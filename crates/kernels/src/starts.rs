//! Where the singletons of a restart begin.
//!
//! `random` takes any k examples, as the paper does. `plusplus` extends k-means++ to compositions: it takes one example
//! after the other, each the best of several that are drawn with a probability proportional to their squared distance
//! from the nearest centre so far, where the centres are *all compositions* of what was taken: an example that a union
//! explains is not drawn, and one that explains much by its unions with others is preferred. It looks at no more than
//! `LOOK` examples, or `PER_SET` for every composition if there are many; another part of the sample for every
//! restart. Examples with weights are drawn, and count, as if they were there so many times.

use std::collections::{BTreeSet, HashMap};

use crate::counting;
use crate::frame::Frame;
use crate::pairs::squared;
use crate::plusplus::{self, draw};
use crate::weights::weight;
use compflow_api::{Clusterer, Embeddings, Error, Normalize, Result, Services, Sets, StreamTask, Task};
use ndarray::ArrayView2;
use rand::{Rng, RngExt};

use crate::objective::Model;
use crate::source::Sample;

/// Examples that one seeding looks at.
const LOOK: usize = 1024;
/// If these are more, so many for every composition: what is not looked at cannot be told apart.
const PER_SET: usize = 8;

/// What starts are chosen from.
pub struct Starts<'a> {
    /// What composes.
    pub model: Model<'a>,
    /// How points are prepared.
    pub frame: &'a Frame,
    /// The examples to choose from.
    pub sample: &'a Sample,
    /// How many singletons.
    pub k: usize,
    /// How many compose, at most.
    pub degree: usize,
}

impl Starts<'_> {
    fn len(&self) -> usize {
        self.sample.rows.len() / self.model.dim
    }

    fn row(&self, at: usize) -> &[f32] {
        &self.sample.rows[at * self.model.dim..][..self.model.dim]
    }

    /// Any examples added to `singletons` until there are `k`, as often as they count.
    pub fn random(&self, mut singletons: Vec<f32>, rng: &mut impl Rng) -> Vec<f32> {
        let count = self.k - singletons.len() / self.model.dim;
        let weighted = self.sample.weights.as_ref().and_then(|weights| {
            rand::seq::index::sample_weighted(rng, self.len(), |row| weights[row], count).ok()
        });
        let drawn = weighted.unwrap_or_else(|| rand::seq::index::sample(rng, self.len(), count));
        drawn.iter().for_each(|at| singletons.extend_from_slice(self.row(at)));
        singletons
    }

    /// Examples added to `singletons` until there are `k`, far from all compositions of those before.
    ///
    /// # Errors
    /// Those of the composer.
    pub fn plusplus(&self, mut singletons: Vec<f32>, rng: &mut impl Rng) -> Result<Vec<f32>> {
        let dim = self.model.dim;
        let sets = counting::sets(self.k, 1..=self.degree).map_or(usize::MAX, |sets| sets as usize);
        let look = LOOK.max(sets.saturating_mul(PER_SET));
        let looked: Vec<usize> = match self.len() > look {
            true => rand::seq::index::sample(rng, self.len(), look).into_vec(),
            false => (0..self.len()).collect(),
        };
        let weights: Vec<f32> =
            looked.iter().map(|&at| weight(self.sample.weights.as_deref(), at) as f32).collect();
        let weighed = |distances: &[f32]| -> Vec<f32> {
            distances.iter().zip(&weights).map(|(distance, weight)| distance * weight).collect()
        };
        let points: Vec<f32> =
            looked.iter().flat_map(|&at| &self.sample.points[at * dim..][..dim]).copied().collect();
        let points = ArrayView2::from_shape((looked.len(), dim), &points)?;
        let norms: Vec<f32> = points.outer_iter().map(|point| point.dot(&point)).collect();
        // Squared distances from the nearest of some centres, if they are nearer than those known.
        let nearer = |closest: &[f32], centres: &[f32]| -> Result<Vec<f32>> {
            let centres = self.frame.prepared(centres);
            let centres = ArrayView2::from_shape((centres.len() / dim, dim), &centres)?;
            let sizes: Vec<f32> = centres.outer_iter().map(|centre| centre.dot(&centre)).collect();
            let products = points.dot(&centres.t());
            let rows = products.outer_iter().zip(&norms).zip(closest);
            Ok(rows
                .map(|((products, norm), &closest)| {
                    let best = products
                        .iter()
                        .zip(&sizes)
                        .fold(f32::INFINITY, |best: f32, (product, size)| best.min(size - 2.0 * product));
                    (best + norm).max(0.0).min(closest)
                })
                .collect())
        };
        let mut closest = vec![f32::INFINITY; looked.len()];
        for taken in 1..=singletons.len() / dim {
            let centres = self.model.centres(&singletons[..taken * dim], &self.with(taken))?;
            closest = nearer(&closest, &centres)?;
        }
        while singletons.len() < self.k * dim {
            let taken = singletons.len() / dim;
            let trials = if taken == 0 { 1 } else { trials(self.k) };
            let sets = self.with(taken + 1);
            let chances = weighed(&closest);
            let mut best: Option<(f64, usize, Vec<f32>)> = None;
            for _ in 0..trials {
                let at = draw(if taken == 0 { &weights } else { &chances }, rng);
                singletons.extend_from_slice(self.row(looked[at]));
                let tried = nearer(&closest, &self.model.centres(&singletons, &sets)?)?;
                singletons.truncate(taken * dim);
                let potential = weighed(&tried).iter().map(|&value| f64::from(value)).sum();
                if best.as_ref().is_none_or(|(least, ..)| potential < *least) {
                    best = Some((potential, at, tried));
                }
            }
            if let Some((_, at, tried)) = best {
                singletons.extend_from_slice(self.row(looked[at]));
                closest = tried;
            }
        }
        Ok(singletons)
    }

    /// The sets of at most `degree` of the first `taken` singletons of which the last is a member.
    fn with(&self, taken: usize) -> Sets {
        let last = taken as u32 - 1;
        let mut sets = Sets::from_iter([[last]]);
        for set in Sets::all_up_to(taken - 1, self.degree - 1).iter() {
            sets.push(&[set, &[last]].concat());
        }
        sets
    }

    /// The singletons that another clusterer finds in the sample, as they are before they are normalised: those it says,
    /// or the means of the examples that it gives to one singleton alone. If there are more than `k`, those with the most
    /// such examples; if there are fewer, [`plusplus`](Self::plusplus) adds the others.
    ///
    /// Singletons with names come first: as the clusterer finds them if it keeps to known sets, else as `named` has them,
    /// each in the place of the nearest that it found.
    ///
    /// # Errors
    /// Those of the clusterer and of the composer.
    pub fn found_by(
        &self,
        clusterer: &dyn Clusterer,
        task: &StreamTask<'_>,
        mut named: Vec<f32>,
        rng: &mut impl Rng,
        services: &Services<'_>,
    ) -> Result<Vec<f32>> {
        let dim = self.model.dim;
        let of_sample = |all: &[f32]| self.sample.numbers.iter().map(|&row| all[row]).collect::<Vec<f32>>();
        let weights = task.weights.map(of_sample).filter(|weights| weights.iter().any(|weight| *weight > 0.0));
        let weights = weights.as_deref();
        // Names of which the sample has no example are unknown to the clusterer.
        let seeds: Option<Sets> =
            task.seeds.map(|seeds| self.sample.numbers.iter().map(|&row| &seeds[row]).collect());
        let members: BTreeSet<u32> = seeds.iter().flat_map(Sets::values).copied().collect();
        let places: HashMap<u32, u32> = members.iter().copied().zip(0..).collect();
        let seeds = seeds.filter(|_| !members.is_empty()).map(|seeds| -> Sets {
            seeds.iter().map(|set| set.iter().map(|member| places[member]).collect::<Vec<u32>>()).collect()
        });
        let seeds = seeds.as_ref();
        let task = Task { weights, seeds, ..task.with(Embeddings::new(&self.sample.rows, dim)) };
        let found = clusterer.cluster(&task, services).map_err(|error| error.context("`init`"))?;
        if found.assignments.len() != self.len() {
            return Err(Error::new("`init`: the clusterer did not give every example a set"));
        }
        let numbers = found.assignments.values().iter().chain(&found.singletons.numbers);
        let most = numbers.max().map_or(0, |&most| most as usize + 1);
        let (mut sums, mut counts) = (vec![0.0; most * dim], vec![0.0; most]);
        for (at, (row, set)) in task.embeddings.rows().zip(found.assignments.iter()).enumerate() {
            if let &[single] = set {
                let weight = weight(weights, at);
                counts[single as usize] += weight;
                let sum = &mut sums[single as usize * dim..][..dim];
                sum.iter_mut().zip(row).for_each(|(sum, &value)| *sum += weight * f64::from(value));
            }
        }
        let mut vectors: Vec<Option<Vec<f32>>> = sums
            .chunks_exact(dim)
            .zip(&counts)
            .map(|(sum, &count)| (count > 0.0).then(|| sum.iter().map(|sum| (sum / count) as f32).collect()))
            .collect();
        for (&number, vector) in found.singletons.numbers.iter().zip(found.singletons.vectors.chunks_exact(dim)) {
            vectors[number as usize] = Some(vector.to_vec());
        }
        let keeps = seeds.is_some_and(|seeds| found.check_seeds(seeds).is_ok());
        let mut unfound: Vec<&mut [f32]> = Vec::new();
        for (at, start) in (0..).zip(named.chunks_exact_mut(dim)) {
            let place = places.get(&at).filter(|_| keeps);
            match place.and_then(|&place| vectors.get_mut(place as usize)?.take()) {
                Some(vector) => start.copy_from_slice(&vector),
                None => unfound.push(start),
            }
        }
        for start in unfound {
            take_nearest(&mut vectors, start);
        }
        let mut order: Vec<usize> = (0..most).filter(|&single| vectors[single].is_some()).collect();
        order.sort_by(|&a, &b| counts[b].total_cmp(&counts[a]));
        order.truncate(self.k - named.len() / dim);
        named.extend(order.into_iter().filter_map(|single| vectors[single].take()).flatten());
        self.plusplus(named, rng)
    }

    /// The same singletons, each moved at random by about `size` in every dimension of the space.
    pub fn kick(&self, singletons: &[f32], size: f64, rng: &mut impl Rng) -> Vec<f32> {
        let mut kicked = singletons.to_vec();
        for row in kicked.chunks_exact_mut(self.model.dim) {
            // In a space that normalises, what moves a vector by its length moves its point by one.
            let length = match self.model.space.normalize {
                Normalize::None => 1.0,
                Normalize::L2 => row.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt(),
            };
            // Uniform numbers with variance 1.
            let bound = 3f64.sqrt();
            row.iter_mut().for_each(|value| *value += (size * length * rng.random_range(-bound..bound)) as f32);
        }
        kicked
    }

    /// The example of the sample that is farthest from its nearest centre (points of the space), with its squared
    /// distance in prepared units.
    pub fn farthest(&self, centres: &[f32]) -> (f64, &[f32]) {
        let centres = self.frame.prepared(centres);
        let dim = self.model.dim;
        let (mut most, mut at) = (0.0, 0);
        for (index, point) in self.sample.points.chunks_exact(dim).enumerate() {
            let nearest = centres.chunks_exact(dim).map(|centre| squared(point, centre)).fold(f64::MAX, f64::min);
            if nearest > most {
                (most, at) = (nearest, index);
            }
        }
        (most, self.row(at))
    }
}

/// Takes away the vector that is nearest to `to`, the first of equally near ones.
fn take_nearest(vectors: &mut [Option<Vec<f32>>], to: &[f32]) {
    let there = vectors.iter_mut().filter(|vector| vector.is_some());
    let nearest = there.min_by(|a, b| {
        let [a, b] = [a, b].map(|vector| vector.as_deref().map_or(f64::INFINITY, |vector| squared(vector, to)));
        a.total_cmp(&b)
    });
    nearest.into_iter().for_each(|nearest| *nearest = None);
}

/// Examples tried for each singleton: twice as many as k-means++ does, as a good one also has to compose well.
fn trials(k: usize) -> usize {
    2 * plusplus::trials(k)
}

#[cfg(test)]
mod tests {
    use crate::testing::composers::Plain;
    use crate::testing::examples;
    use crate::workers::Workers;
    use compflow_api::{Clustering, Space};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::source::Source;

    fn with<T>(
        values: &[f32],
        dim: usize,
        g: &Plain,
        k: usize,
        degree: usize,
        work: impl Fn(Starts<'_>) -> T,
    ) -> T {
        let (rows, workers, services) = (Embeddings::new(values, dim), Workers::alone(), Services::none());
        let (source, sample) = Source::new(&rows, Space::default(), true, 9999, &workers, &services).unwrap();
        let model = Model { composer: g, space: Space::default(), dim, services: &services };
        work(Starts { model, frame: &source.frame, sample: &sample, k, degree })
    }

    #[test]
    fn new_sets_have_the_last_singleton() {
        let values = examples::uniform(10, 2, 1);
        with(&values, 2, &Plain::Sum, 4, 3, |starts| {
            assert_eq!(starts.with(1), Sets::from_iter([[0]]));
            let expected = [vec![2], vec![0, 2], vec![1, 2], vec![0, 1, 2]];
            assert_eq!(starts.with(3), Sets::from_iter(expected));
            let sets: Vec<Vec<u32>> = (1..5)
                .flat_map(|taken| starts.with(taken).iter().map(<[u32]>::to_vec).collect::<Vec<_>>())
                .collect();
            assert_eq!(sets.len(), Sets::all_up_to(4, 3).len());
        });
    }

    #[test]
    fn an_example_that_a_union_explains_is_not_drawn() {
        // Two groups, their sum, and a third group: once both groups are taken, only the third is left.
        let values: Vec<f32> =
            (0..40).flat_map(|row| [[9.0, 0.0], [0.0, 7.0], [9.0, 7.0], [-5.0, 3.0]][row % 4]).collect();
        with(&values, 2, &Plain::Sum, 3, 2, |starts| {
            for seed in 0..20 {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                let singletons = starts.plusplus(vec![9.0, 0.0, 0.0, 7.0], &mut rng).unwrap();
                assert_eq!(singletons, [9.0, 0.0, 0.0, 7.0, -5.0, 3.0]);
            }
        });
    }

    #[test]
    fn starts_are_drawn_as_often_as_they_count() {
        // The groups at 0 and 5 have equally many examples, of which those at 0 count hundredfold.
        let values: Vec<f32> = (0..40).map(|row| [0.0, 5.0][row % 2]).collect();
        let weights: Vec<f32> = (0..40).map(|row| [100.0, 1.0][row % 2]).collect();
        let (rows, workers, services) = (Embeddings::new(&values, 1), Workers::alone(), Services::none());
        let made = Source::weighted(&rows, Some(&weights), Space::default(), true, 99, &workers, &services);
        let (source, sample) = made.unwrap();
        let model = Model { composer: &Plain::Sum, space: Space::default(), dim: 1, services: &services };
        let starts = Starts { model, frame: &source.frame, sample: &sample, k: 1, degree: 1 };
        let at_zero = |start: &dyn Fn(&mut ChaCha8Rng) -> Vec<f32>| {
            (0..200).filter(|&seed| start(&mut ChaCha8Rng::seed_from_u64(seed)) == [0.0]).count()
        };
        assert!(at_zero(&|rng| starts.random(Vec::new(), rng)) > 180);
        assert!(at_zero(&|rng| starts.plusplus(Vec::new(), rng).unwrap()) > 180);
    }

    #[test]
    fn the_farthest_example_is_found() {
        with(&[0.0, 1.0, 10.0, 4.0], 1, &Plain::Sum, 1, 1, |starts| {
            let (distance, row) = starts.farthest(&[1.0, 9.0]);
            assert_eq!((starts.frame.restore_squared(distance), row), (9.0, &[4.0][..]));
        });
    }

    /// Says what it was made with.
    struct Says(Sets);

    impl Clusterer for Says {
        fn cluster(&self, _: &Task<'_>, _: &Services<'_>) -> Result<Clustering> {
            Ok(Clustering { assignments: self.0.clone(), ..Clustering::default() })
        }
    }

    #[test]
    fn singletons_of_another_clusterer_are_means_of_examples_that_have_one_alone() {
        let values = [1.0, 3.0, 10.0, 100.0, 7.0, 8.0];
        let says = Says(Sets::from_iter([vec![2], vec![2], vec![5], vec![2, 5], vec![0, 1], vec![5]]));
        let embeddings = Embeddings::new(&values, 1);
        let task = Task { composer: Some(&Plain::Sum), ..Task::new(embeddings) };
        for (k, expected) in [(1, &[2.0][..]), (2, &[2.0, 9.0])] {
            with(&values, 1, &Plain::Sum, k, 2, |starts| {
                let mut rng = ChaCha8Rng::seed_from_u64(1);
                let found =
                    starts.found_by(&says, &task.stream(), Vec::new(), &mut rng, &Services::none()).unwrap();
                assert_eq!(found, expected);
            });
        }
        with(&values, 1, &Plain::Sum, 4, 2, |starts| {
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            let found = starts.found_by(&says, &task.stream(), Vec::new(), &mut rng, &Services::none()).unwrap();
            assert!(found[..2] == [2.0, 9.0] && found.len() == 4);
            let short = Says(Sets::singletons(&[0]));
            let error =
                starts.found_by(&short, &task.stream(), Vec::new(), &mut rng, &Services::none()).unwrap_err();
            assert_eq!(error.to_string(), "`init`: the clusterer did not give every example a set");
        });
    }

    #[test]
    fn singletons_with_names_come_first_in_the_place_of_what_was_found() {
        let values = [1.0, 3.0, 10.0, 100.0, 7.0, 8.0];
        let embeddings = Embeddings::new(&values, 1);
        // The names 0 and 2 are known, and 1 is not in the sample, as far as the clusterer can tell.
        let seeds = Sets::from_iter([vec![2], vec![], vec![0], vec![], vec![], vec![]]);
        let task = Task { composer: Some(&Plain::Sum), seeds: Some(&seeds), ..Task::new(embeddings) };
        let begin = |says: &Says| {
            with(&values, 1, &Plain::Sum, 4, 1, |starts| {
                let (mut rng, named) = (ChaCha8Rng::seed_from_u64(1), vec![11.0, 99.0, 2.5]);
                starts.found_by(says, &task.stream(), named, &mut rng, &Services::none()).unwrap()
            })
        };
        let keeps = Says(Sets::singletons(&[1, 1, 0, 3, 2, 2]));
        assert_eq!(begin(&keeps), [10.0, 99.0, 2.0, 7.5]);
        let other = Says(Sets::singletons(&[0, 0, 1, 3, 2, 2]));
        assert_eq!(begin(&other), [11.0, 99.0, 2.5, 7.5]);
    }
}
