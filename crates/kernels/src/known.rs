//! Sets that are known beforehand, for methods that choose among all compositions of k singletons.
//!
//! A known example has the same set in every assignment. So what known examples add up to is found once, and
//! when the others are assigned, the known ones count for nothing.
//!
//! # Where the singletons begin that known sets name
//!
//! At the mean of the examples that are known to belong to one alone. One without such examples begins at
//! any example, the best of `TRIED`, and then descends on the known unions that it is a member of:
//!
//! ```text
//! min over m_j of Σ_η N_η ‖g_η(m) - x̄_η‖²    over known sets η with a j that is never known alone
//! ```
//!
//! That is a poor place if one example is all that is known. Singletons that were found without knowing anything are
//! better ones, once it is [identified](identify) which of them the names stand for.

use std::collections::{BTreeSet, HashMap};

use compflow_api::{Batch, Embeddings, Error, Partial, Result, Rows, Sets};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::assign::Totals;
use crate::elsewhere::{self, GATHER};
use crate::lbfgs::{self, Limits};
use crate::objective::Objective;
use crate::pairs::squared;
use crate::plusplus::draw;
use crate::source::Preparation;
use crate::starts::Starts;
use crate::told::{Heeded, Told};

/// Examples that a singleton which is never known alone is tried at.
const TRIED: usize = 8;

/// Refuses known sets of more singletons than there are.
///
/// # Errors
/// About `k`.
pub fn require_room(named: usize, k: usize) -> Result<()> {
    if named <= k {
        return Ok(());
    }
    let text = format!("= {k} is less than the {named} singletons that seeds name");
    Err(Error::parameter("k", text).help(format!("set it to at least {named}")))
}

/// The examples whose sets are known.
#[derive(Debug, Default)]
pub struct Known {
    /// Which they are, ascending.
    rows: Vec<usize>,
    /// The position of each one's set among all compositions.
    labels: Vec<u32>,
}

impl Known {
    /// `seeds` has the set of every example from number `first` on, empty if it is not known; `sets` are all compositions.
    ///
    /// # Errors
    /// If a known set is none of them.
    pub fn new(seeds: Option<&Sets>, first: usize, sets: &Sets) -> Result<Self> {
        let mut known = Self::default();
        let Some(seeds) = seeds.filter(|seeds| !seeds.values().is_empty()) else { return Ok(known) };
        let numbers: HashMap<&[u32], u32> = sets.iter().zip(0..).collect();
        for (row, set) in (first..).zip(seeds.iter()).filter(|(_, set)| !set.is_empty()) {
            let label = numbers.get(set).ok_or_else(|| {
                let most = sets.iter().map(<[u32]>::len).max().unwrap_or(0);
                Error::data(format!("the seed {set:?} of example {row} is no composition of up to {most}"))
            })?;
            known.rows.push(row);
            known.labels.push(*label);
        }
        Ok(known)
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The set of an example, if it is known.
    pub fn label(&self, row: usize) -> Option<u32> {
        self.rows.binary_search(&row).ok().map(|at| self.labels[at])
    }

    /// The known examples among `count` from `first` on, as their distance from it, with their sets.
    pub fn within(&self, first: usize, count: usize) -> impl Iterator<Item = (usize, u32)> {
        let start = self.rows.partition_point(|row| *row < first);
        let found = self.rows[start..].iter().zip(&self.labels[start..]);
        found.map(move |(row, label)| (row - first, *label)).take_while(move |(at, _)| *at < count)
    }
}

/// The pass that finds what known examples add up to.
#[derive(Debug, Serialize, Deserialize)]
pub struct Gathering {
    preparation: Preparation,
    heeded: Heeded,
    k: usize,
    degree: usize,
}

impl Gathering {
    /// What the known examples of a batch add up to: of every set the number and the sum of prepared points, and of every
    /// singleton those of the examples that are known to belong to it alone, as they came.
    ///
    /// # Errors
    /// If a known set is none there can be.
    pub fn partial_of(&self, batch: &Batch<'_>) -> Result<Partial> {
        let sets = Sets::all_up_to(self.k, self.degree);
        let told = Told::of_batch(batch, self.heeded, || sets.clone())?;
        Ok(self.partial(&told, &sets, batch.first as usize, batch.examples))
    }

    fn partial(&self, told: &Told<'_>, sets: &Sets, first: usize, batch: Embeddings<'_>) -> Partial {
        let dim = batch.dim();
        let mut totals = Totals::zero(sets.len(), dim);
        let (mut counts, mut sums) = (vec![0.0; self.k], vec![0.0; self.k * dim]);
        for (at, label) in told.known.within(first, batch.len()) {
            let (mut point, weight) = (batch.row(at).to_vec(), told.weight(first + at));
            if let &[single] = &sets[label as usize] {
                counts[single as usize] += weight;
                let sum = &mut sums[single as usize * dim..][..dim];
                sum.iter_mut().zip(&point).for_each(|(sum, &value)| *sum += weight * f64::from(value));
            }
            self.preparation.prepare(&mut point, dim);
            totals.add_row(&point, weight, label);
        }
        Partial { sums: [totals.counts, totals.sums, counts, sums].concat(), ..Partial::default() }
    }
}

/// What the examples whose sets are known add up to.
///
/// # Errors
/// Those of the rows.
pub fn gather(rows: &dyn Rows, told: &Told<'_>, starts: &Starts<'_>, sets: &Sets) -> Result<Gathered> {
    let (k, dim) = (starts.k, rows.dim());
    let named = told.known.labels.iter().flat_map(|&label| &sets[label as usize]).max();
    let named = named.map_or(0, |last| *last as usize + 1);
    let mut totals = Totals::zero(sets.len(), dim);
    if told.known.is_empty() {
        return Ok(Gathered { totals, alone: Vec::new() });
    }
    let preparation = Preparation::new(starts.model.space, starts.frame.clone());
    let gathering = Gathering { preparation, heeded: told.heeded(), k, degree: starts.degree };
    let found = elsewhere::reduce(rows, GATHER, &gathering, |first, batch| {
        Ok(gathering.partial(told, sets, first, batch))
    })?;
    let (of_sets, of_singletons) = found.sums.split_at(sets.len() * (dim + 1));
    totals.counts.copy_from_slice(&of_sets[..sets.len()]);
    totals.sums.copy_from_slice(&of_sets[sets.len()..]);
    let (counts, sums) = of_singletons.split_at(k);
    let mean = |(sum, &count): (&[f64], &f64)| {
        (count > 0.0).then(|| sum.iter().map(|sum| (sum / count) as f32).collect())
    };
    Ok(Gathered { totals, alone: sums.chunks_exact(dim).zip(counts).take(named).map(mean).collect() })
}

/// Orders in which free singletons are given to names at first.
const ORDERS: usize = 8;

/// The singleton that each name stands for, such that known sets are explained best: those that are `settled`, and of
/// those that are `free` one for every other name, as long as there are any. `known` has sets of names, and `cost` says what
/// it costs that one of them, by its position, is this set of singletons. By steps, each a name that takes another singleton or
/// changes places, from several orders.
pub fn identify(
    known: &[&[u32]],
    settled: &[Option<u32>],
    free: &[u32],
    cost: impl Fn(usize, &[u32]) -> f64,
) -> Vec<Option<u32>> {
    let missing: Vec<usize> = (0..settled.len()).filter(|&name| settled[name].is_none()).collect();
    let mut sets_of: Vec<Vec<usize>> = vec![Vec::new(); settled.len()];
    for (at, set) in known.iter().enumerate() {
        set.iter().for_each(|&name| sets_of[name as usize].push(at));
    }
    // A set with a name that stands for nothing costs nothing.
    let cost_of = |at: usize, of: &[Option<u32>]| -> f64 {
        let members: Option<Vec<u32>> = known[at].iter().map(|&name| of[name as usize]).collect();
        members.map_or(0.0, |mut members| {
            members.sort_unstable();
            cost(at, &members)
        })
    };
    let mut best = (f64::INFINITY, settled.to_vec());
    for order in 0..ORDERS.min(free.len()) {
        let mut of = settled.to_vec();
        let given = free.iter().cycle().skip(order * free.len() / ORDERS.min(free.len())).take(free.len());
        missing.iter().zip(given).for_each(|(&name, &singleton)| of[name] = Some(singleton));
        loop {
            let costs: Vec<f64> = (0..known.len()).map(|at| cost_of(at, &of)).collect();
            let total: f64 = costs.iter().sum();
            if total < best.0 {
                best = (total, of.clone());
            }
            // What is less by rounding alone would go on for ever.
            let (mut least, mut next) = (-1e-9 * total, None);
            for (&name, &singleton) in missing.iter().flat_map(|name| free.iter().map(move |free| (name, free))) {
                let other = missing.iter().copied().find(|&other| of[other] == Some(singleton));
                let mut tried = of.clone();
                if let Some(other) = other {
                    tried[other] = of[name];
                }
                tried[name] = Some(singleton);
                // Only sets with either of the two cost anything else.
                let others = other.into_iter().flat_map(|other| &sets_of[other]);
                let others = others.filter(|at| !known[**at].contains(&(name as u32)));
                let changed = sets_of[name].iter().chain(others);
                let change = changed.map(|&at| cost_of(at, &tried) - costs[at]).sum::<f64>();
                if change < least {
                    (least, next) = (change, Some(tried));
                }
            }
            match next {
                Some(next) => of = next,
                None => break,
            }
        }
    }
    best.1
}

/// What known examples add up to.
pub struct Gathered {
    /// By their sets; points are prepared ones.
    pub totals: Totals,
    /// For every singleton with a name the mean of the examples that are known to belong to it alone, as they came.
    alone: Vec<Option<Vec<f32>>>,
}

impl Gathered {
    /// How many singletons have names: the first ones.
    pub fn named(&self) -> usize {
        self.alone.len()
    }

    /// Whether the singletons with names have one place to begin at.
    pub fn is_settled(&self) -> bool {
        self.alone.iter().all(Option::is_some)
    }

    /// Where the singletons with names begin, row-major.
    ///
    /// # Errors
    /// Those of the composer.
    pub fn begin(&self, starts: &Starts<'_>, sets: &Sets, rng: &mut impl Rng) -> Result<Vec<f32>> {
        let (dim, sample) = (starts.model.dim, starts.sample);
        let missing: BTreeSet<u32> =
            (0..).zip(&self.alone).filter(|(_, mean)| mean.is_none()).map(|(at, _)| at).collect();
        // Those that descend come last.
        let mut order: Vec<u32> = (0..self.named() as u32).collect();
        order.sort_by_key(|at| missing.contains(at));
        let mut rows: Vec<f32> = self.alone.iter().flatten().flatten().copied().collect();
        if !missing.is_empty() {
            let objective = self.of_missing(starts, sets, &order, &missing);
            let chances = sample.weights.clone().unwrap_or_else(|| vec![1.0; sample.numbers.len()]);
            let mut best: Option<(f64, Vec<f32>)> = None;
            for _ in 0..TRIED {
                let mut tried = rows.clone();
                for _ in &missing {
                    tried.extend_from_slice(&sample.rows[draw(&chances, rng) * dim..][..dim]);
                }
                let value = objective.value(&tried)?.f;
                if best.as_ref().is_none_or(|(least, _)| value < *least) {
                    best = Some((value, tried));
                }
            }
            rows = best.map_or(rows, |(_, tried)| tried);
            lbfgs::descend(&objective, &mut rows, Limits { steps: 30, least: 0.0, part: 0.02 })?;
        }
        let mut begun = vec![0.0; rows.len()];
        for (row, &at) in rows.chunks_exact(dim).zip(&order) {
            begun[at as usize * dim..][..dim].copy_from_slice(row);
        }
        Ok(begun)
    }

    /// `k` singletons that were found without knowing anything, in the order in which names have them: those come first that
    /// explain the known sets best under their names.
    ///
    /// # Errors
    /// Those of the composer.
    pub fn order(&self, singletons: &[f32], starts: &Starts<'_>, sets: &Sets) -> Result<Vec<f32>> {
        let dim = starts.model.dim;
        let centres = starts.frame.prepared(&starts.model.centres(singletons, sets)?);
        let numbers: HashMap<&[u32], usize> = sets.iter().zip(0..).collect();
        let of_set = |set: &[u32]| numbers.get(set).copied().unwrap_or_default();
        let Totals { counts, sums, .. } = &self.totals;
        let known: Vec<&[u32]> =
            sets.iter().zip(counts).filter(|(_, count)| **count > 0.0).map(|(set, _)| set).collect();
        let cost = |at: usize, set: &[u32]| -> f64 {
            let (from, centre) = (of_set(known[at]), &centres[of_set(set) * dim..][..dim]);
            let mean: Vec<f64> = sums[from * dim..][..dim].iter().map(|sum| sum / counts[from]).collect();
            counts[from] * squared(&mean, centre)
        };
        let free: Vec<u32> = (0..(singletons.len() / dim) as u32).collect();
        let mut order: Vec<u32> =
            identify(&known, &vec![None; self.named()], &free, cost).into_iter().flatten().collect();
        order.extend(free.iter().filter(|at| !order.contains(at)).copied().collect::<Vec<u32>>());
        Ok(order.iter().flat_map(|&at| &singletons[at as usize * dim..][..dim]).copied().collect())
    }

    /// F of known sets with a member that is never known alone, as a function of these, the others staying.
    fn of_missing<'a>(
        &self,
        starts: &Starts<'a>,
        sets: &Sets,
        order: &[u32],
        missing: &BTreeSet<u32>,
    ) -> Objective<'a> {
        let places: HashMap<u32, u32> = order.iter().copied().zip(0..).collect();
        let (mut kept, mut counts, mut means) = (Sets::default(), Vec::new(), Vec::new());
        let sums = self.totals.sums.chunks_exact(starts.model.dim);
        for ((set, &count), sum) in sets.iter().zip(&self.totals.counts).zip(sums) {
            if count > 0.0 && set.iter().any(|member| missing.contains(member)) {
                kept.push(&set.iter().map(|member| places[member]).collect::<Vec<u32>>());
                counts.push(count);
                means.extend(starts.frame.mean(sum, count));
            }
        }
        Objective::new(starts.model, kept, counts, means).moving_from(order.len() - missing.len())
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::{Services, Space};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::objective::Model;
    use crate::source::Source;
    use crate::testing::composers::Plain;
    use crate::workers::Workers;

    #[test]
    fn known_examples_are_found_by_their_rows() {
        let sets = Sets::all_up_to(3, 2);
        let seeds = Sets::from_iter([vec![], vec![2], vec![], vec![0, 2], vec![1]]);
        let known = Known::new(Some(&seeds), 0, &sets).unwrap();
        assert_eq!([0, 1, 2, 3, 4].map(|row| known.label(row)), [None, Some(2), None, Some(4), Some(1)]);
        assert_eq!(known.within(2, 2).collect::<Vec<_>>(), [(1, 4)]);
        assert!(Known::new(Some(&Sets::from_iter([[]; 5])), 0, &sets).unwrap().is_empty());
        let error = Known::new(Some(&Sets::from_iter([vec![], vec![0, 1, 2]])), 0, &sets).unwrap_err();
        assert_eq!(error.to_string(), "the seed [0, 1, 2] of example 1 is no composition of up to 2");
        let error = require_room(4, 3).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`k` = 3 is less than the 4 singletons that seeds name; set it to at least 4"
        );
    }

    /// What begins with these known sets of sums in one dimension.
    fn begun(values: &[f32], seeds: &[&[u32]], weights: Option<&[f32]>) -> (Vec<f32>, Vec<f64>) {
        let (rows, workers, services) = (Embeddings::new(values, 1), Workers::alone(), Services::none());
        let (source, sample) = Source::new(&rows, Space::default(), true, 99, &workers, &services).unwrap();
        let model = Model { composer: &Plain::Sum, space: Space::default(), dim: 1, services: &services };
        let starts = Starts { model, frame: &source.frame, sample: &sample, k: 3, degree: 2 };
        let sets = Sets::all_up_to(3, 2);
        let told = Told::new(values.len(), weights, Some(&seeds.iter().copied().collect()), &sets).unwrap();
        let gathered = gather(&rows, &told, &starts, &sets).unwrap();
        let begun = gathered.begin(&starts, &sets, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
        (begun, gathered.totals.counts)
    }

    #[test]
    fn named_singletons_begin_at_what_is_known_of_them_alone() {
        let seeds: [&[u32]; 5] = [&[0], &[], &[0], &[1], &[0, 1]];
        let (begun_at, counts) = begun(&[1.0, 9.0, 3.0, -4.0, 5.0], &seeds, None);
        assert_eq!(begun_at, [2.0, -4.0]);
        assert_eq!(counts, [2.0, 1.0, 0.0, 1.0, 0.0, 0.0]);
        let weights = [3.0, 1.0, 1.0, 1.0, 1.0];
        assert_eq!(begun(&[1.0, 9.0, 3.0, -4.0, 5.0], &seeds, Some(&weights)).0, [1.5, -4.0]);
    }

    #[test]
    fn names_are_given_to_what_explains_the_known_sets_best() {
        // On a line, sets lie at the sums of their members; names 0, 1, 2 lie at 7, 100 and 30.
        let places: [f64; 5] = [1.0, 30.0, 7.0, 100.0, 50.0];
        let known: [(&[u32], f64); 3] = [(&[0, 2], 37.0), (&[1, 2], 130.0), (&[0, 1], 107.0)];
        let cost = |at: usize, set: &[u32]| {
            (known[at].1 - set.iter().map(|member| places[*member as usize]).sum::<f64>()).powi(2)
        };
        let sets = known.map(|(set, _)| set);
        assert_eq!(identify(&sets, &[None; 3], &[0, 1, 2, 3, 4], cost), [Some(2), Some(3), Some(1)]);
        // What is settled stays, and who finds nothing free has nothing.
        assert_eq!(identify(&sets, &[Some(2), None, None], &[4, 3], cost), [Some(2), Some(3), Some(4)]);
        assert_eq!(identify(&sets, &[None; 3], &[1], cost).iter().flatten().count(), 1);
        assert_eq!(identify(&sets, &[Some(0), None, None], &[], cost), [Some(0), None, None]);
    }

    #[test]
    fn one_that_is_never_known_alone_explains_its_unions() {
        // 0 is missing: 0 ∪ 1 lies at 5 and 1 at -4, so 0 lies at 9.
        let (begun_at, _) = begun(&[7.0, -4.0, 5.0, 1.0], &[&[], &[1], &[0, 1], &[]], None);
        assert!((begun_at[0] - 9.0).abs() < 1e-3 && begun_at[1] == -4.0, "{begun_at:?}");
        // Neither is known alone: together they explain the union.
        let (begun_at, _) = begun(&[7.0, -4.0, 5.0, 1.0], &[&[], &[], &[0, 1], &[]], None);
        assert!((begun_at[0] + begun_at[1] - 5.0).abs() < 1e-3, "{begun_at:?}");
    }
}
