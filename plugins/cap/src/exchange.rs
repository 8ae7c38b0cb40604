//! Changing one exemplar: messages settle on choices that no single example would change, but one exemplar less, a
//! further one, or another in place of one may still serve all of them better. What a change gains is known without
//! carrying it out, as only sets with the one who comes or goes have to be looked at.

use std::ops::Range;

use compflow_api::Result;
use pulp::{Arch, Simd, WithSimd};

use crate::compositions::LANES;
use crate::row::highest;
use crate::solution::{BATCH, CHUNK, Examples, Solution, rows_of};
use compflow_kernels::products::{Fill, Vectors};

/// Newcomers that one thread tries at a time, at most.
const NEWCOMERS: usize = 64;
/// Examples compared with newcomers at a time: few, as there is a number for every newcomer and exemplar.
const ROWS: usize = 16;
/// Numbers that one thread holds at a time, unless a single example or a few newcomers need more.
const HELD: usize = 1 << 19;
/// Of the exemplars that had better go, one in so many goes at a time.
const MOST_GO: usize = 4;
/// What composing a set is taken to cost, in multiplications.
const COMPOSING: usize = 1 << 12;
/// Multiplications spent on changing exemplars, at most.
pub(crate) const WORK: u64 = 1 << 36;
/// Sets that are held at a time, at most: those of more exemplars are not changed.
pub(crate) const MOST_SETS: usize = CHUNK * BATCH;

/// The work that may still be done.
pub(crate) struct Budget {
    left: u64,
    /// Whether something was left undone for lack of it.
    pub(crate) exhausted: bool,
}

impl Budget {
    pub(crate) fn new(work: u64) -> Self {
        Self { left: work, exhausted: false }
    }

    /// Takes what it costs to compose so many sets and to use each of them, if there is so much.
    fn spend(&mut self, sets: usize, using: usize) -> bool {
        let work = (sets as u64).saturating_mul((using + COMPOSING) as u64);
        let enough = work <= self.left;
        self.left -= if enough { work } else { 0 };
        enough
    }
}

/// Who leaves, as a position among exemplars and nobody behind them, and who comes.
type Change = (usize, u32);

/// Who may become an exemplar.
pub(crate) struct Newcomers<'a> {
    /// Whoever was chosen for it, where looking at everybody takes too long.
    candidates: &'a [u32],
    /// Whether those who gained most when everybody was looked at are looked at first.
    short: bool,
    /// As many of these as there are candidates; they gain less as others come, so that some day nobody is left.
    promising: Vec<u32>,
}

impl<'a> Newcomers<'a> {
    /// Everybody, or the candidates.
    pub(crate) fn new(candidates: &'a [u32]) -> Self {
        Self { candidates, short: false, promising: Vec::new() }
    }

    /// Those who gained most when everybody was looked at, and everybody again once none of them gains: nearly as good and
    /// far less work, where many exemplars are added.
    pub(crate) fn promising_first(candidates: &'a [u32]) -> Self {
        Self { short: true, ..Self::new(candidates) }
    }

    /// How many there are at least.
    pub(crate) fn len(&self) -> usize {
        self.candidates.len()
    }

    /// Whether only those who gained most are looked at next.
    pub(crate) fn are_few(&self) -> bool {
        !self.promising.is_empty()
    }

    /// Looks at everybody again the next time.
    pub(crate) fn look_further(&mut self) {
        self.promising.clear();
    }
}

/// What changes of a solution's exemplars gain.
pub(crate) struct Changes<'a> {
    examples: &'a Examples<'a>,
    solution: &'a Solution,
    /// The most members of a set.
    places: usize,
    /// Of every row, and of every place in its set: how similar the nearest set is without that member.
    without: Vec<f32>,
    /// What taking each exemplar away gains.
    gains: Vec<f64>,
}

impl<'a> Changes<'a> {
    /// Compares all rows with all sets. None if that takes more work than is left, or if there are so many sets that not
    /// all can be held.
    pub(crate) fn new(
        examples: &'a Examples<'a>,
        solution: &'a Solution,
        budget: &mut Budget,
    ) -> Result<Option<Self>> {
        let Solution { exemplars, sets, labels, similarities, .. } = solution;
        let (places, dim) = (examples.degree().min(exemplars.len()), examples.rows().dim);
        if sets.len() > MOST_SETS {
            return Ok(None);
        }
        // Once now, and once more to assign what comes of it.
        if !budget.spend(2 * sets.len(), labels.len() * (dim + places)) {
            budget.exhausted = true;
            return Ok(None);
        }
        let mut sets_with: Vec<Vec<u32>> = vec![Vec::new(); exemplars.len()];
        for (at, set) in sets.iter().enumerate() {
            set.iter().for_each(|&member| sets_with[member as usize].push(at as u32));
        }
        let composed = examples.compose_chunks(0..sets.len(), |set| rows_of(&sets[set], exemplars))?;
        let (stride, arch) = (sets.len().next_multiple_of(LANES), Arch::new());
        let rows = (HELD / stride).clamp(1, CHUNK);
        let without = examples.workers().map(labels.chunks(rows).enumerate(), |(block, labels)| {
            examples.check_cancelled()?;
            let rows = examples.rows().slice(block * rows, labels.len());
            let mut values = vec![0.0; labels.len() * stride];
            for (chunk, vectors) in composed.iter().enumerate() {
                arch.dispatch(Fill { rows, vectors, out: &mut values[chunk * CHUNK..], stride });
            }
            let mut without = vec![f32::NEG_INFINITY; labels.len() * places];
            for ((values, &label), without) in
                values.chunks_exact_mut(stride).zip(labels).zip(without.chunks_exact_mut(places))
            {
                for (&member, without) in sets[label as usize].iter().zip(without) {
                    let gone = &sets_with[member as usize];
                    let before: Vec<f32> = gone
                        .iter()
                        .map(|&set| std::mem::replace(&mut values[set as usize], f32::NEG_INFINITY))
                        .collect();
                    *without = arch.dispatch(|| highest(values));
                    gone.iter().zip(before).for_each(|(&set, value)| values[set as usize] = value);
                }
            }
            Ok(without)
        })?;
        let without = without.concat();
        // Whoever is no exemplar any more no longer pays its preference.
        let mut gains: Vec<f64> = exemplars.iter().map(|&row| -examples.preference(row)).collect();
        for (row, &label) in labels.iter().enumerate() {
            for (&member, without) in sets[label as usize].iter().zip(&without[row * places..]) {
                gains[member as usize] += f64::from(*without) - f64::from(similarities[row]);
            }
        }
        Ok(Some(Self { examples, solution, places, without, gains }))
    }

    /// The exemplars without those that are missed least, in the order in which this should be tried: messages tend to
    /// leave one too many, or all of them if the preference is low enough.
    pub(crate) fn take_away(&self) -> Vec<Vec<u32>> {
        let exemplars = &self.solution.exemplars;
        let mut worth: Vec<usize> = (0..exemplars.len()).filter(|&at| self.gains[at] > 0.0).collect();
        worth.sort_by(|&a, &b| self.gains[b].total_cmp(&self.gains[a]));
        // Each was judged as if the others stayed, so not all may go at once.
        let mut counts = vec![worth.len() / MOST_GO, worth.len().min(1)];
        counts.dedup();
        counts.into_iter().filter(|&count| count > 0).map(|count| self.without(&worth[..count])).collect()
    }

    /// The exemplars without some of the `many` too many: those that are missed least.
    pub(crate) fn fewer(&self, many: usize) -> Vec<u32> {
        let mut order: Vec<usize> = (0..self.gains.len()).collect();
        order.sort_by(|&a, &b| self.gains[b].total_cmp(&self.gains[a]));
        self.without(&order[..many.div_ceil(MOST_GO)])
    }

    fn without(&self, gone: &[usize]) -> Vec<u32> {
        let exemplars = self.solution.exemplars.iter().enumerate();
        exemplars.filter(|(at, _)| !gone.contains(at)).map(|(_, &row)| row).collect()
    }

    /// The exemplars with another in place of one, or with a `further` one, whatever gains most, if anything does in the
    /// work that is left.
    pub(crate) fn exchange(
        &self,
        newcomers: &mut Newcomers<'_>,
        further: bool,
        budget: &mut Budget,
    ) -> Result<Option<Vec<u32>>> {
        let exemplars = self.solution.exemplars.len();
        let best = self.best(newcomers, 0..exemplars + usize::from(further), 0.0, budget)?;
        Ok(best.and_then(|(_, change)| Some(self.changed(change?))))
    }

    /// What the best further exemplar lowers the distances by, and what the one that is missed least does, in the user's
    /// units: at prices in between there is none too few and none too many. None if the work that is left is not enough.
    pub(crate) fn prices(&self, newcomers: &mut Newcomers<'_>, budget: &mut Budget) -> Result<Option<Range<f64>>> {
        let exemplars = &self.solution.exemplars;
        let Some((gain, change)) =
            self.best(newcomers, exemplars.len()..exemplars.len() + 1, f64::NEG_INFINITY, budget)?
        else {
            return Ok(None);
        };
        let gained = change.map_or(0.0, |(_, newcomer)| gain - self.examples.preference(newcomer));
        let missed = exemplars.iter().zip(&self.gains).map(|(&row, gain)| -self.examples.preference(row) - gain);
        let missed = missed.fold(f64::INFINITY, f64::min);
        let unit = self.examples.scale();
        Ok(Some(gained.max(0.0) / unit..missed / unit))
    }

    /// The exemplars with the further one that gains most or costs least, if the work that is left is enough to find it.
    pub(crate) fn further(&self, newcomers: &mut Newcomers<'_>, budget: &mut Budget) -> Result<Option<Vec<u32>>> {
        let exemplars = self.solution.exemplars.len();
        let best = self.best(newcomers, exemplars..exemplars + 1, f64::NEG_INFINITY, budget)?;
        Ok(best.and_then(|(_, change)| Some(self.changed(change?))))
    }

    /// The exemplars with another in place of one, or of nobody.
    fn changed(&self, (leaving, newcomer): Change) -> Vec<u32> {
        let mut next = self.solution.exemplars.clone();
        if leaving < next.len() {
            next.remove(leaving);
        }
        next.push(newcomer);
        next.sort_unstable();
        next
    }

    /// What gains most, if it is more than `least`, and how much: another in place of one of those in `leaving`, of which the
    /// one behind all stands for nobody. None if the work that is left is not enough.
    fn best(
        &self,
        among: &mut Newcomers<'_>,
        leaving: Range<usize>,
        least: f64,
        budget: &mut Budget,
    ) -> Result<Option<(f64, Option<Change>)>> {
        let Self { examples, solution: Solution { exemplars, sets, labels, .. }, .. } = self;
        // A newcomer alone, and in every set that has room for it.
        let rooms: Vec<&[u32]> =
            std::iter::once(&[][..]).chain(sets.iter().filter(|set| set.len() < examples.degree())).collect();
        let work = labels.len() * (examples.rows().dim + exemplars.len());
        // Candidates lie far apart, which exemplars that serve well do not: anybody may come if time allows.
        let everybody: Vec<u32> = (0..labels.len() as u32).collect();
        let choices = if among.promising.is_empty() {
            vec![(everybody, among.short), (among.candidates.to_vec(), false)]
        } else {
            vec![(among.promising.clone(), false)]
        };
        let mut affordable =
            choices.into_iter().filter(|(rows, _)| budget.spend(rooms.len().saturating_mul(rows.len()), work));
        let Some((mut newcomers, remember)) = affordable.next() else {
            budget.exhausted = true;
            return Ok(None);
        };
        newcomers.retain(|row| exemplars.binary_search(row).is_err());
        let arch = Arch::new();
        let at_once = (HELD / (rooms.len() * examples.rows().dim)).clamp(LANES, NEWCOMERS);
        let found = examples.workers().map(newcomers.chunks(at_once), |newcomers| {
            let vectors = |room: &&[u32]| {
                examples.check_cancelled()?;
                let room = rows_of(room, exemplars);
                examples.compose(&newcomers.iter().map(|row| [&room[..], &[*row]].concat()).collect())
            };
            let vectors = rooms.iter().map(vectors).collect::<Result<Vec<_>>>()?;
            let lanes = newcomers.len().next_multiple_of(LANES);
            let mut gains = vec![0.0; (exemplars.len() + 1) * lanes];
            for first in (0..labels.len()).step_by(ROWS) {
                examples.check_cancelled()?;
                let rows = first..labels.len().min(first + ROWS);
                arch.dispatch(Gains { changes: self, rooms: &rooms, vectors: &vectors, rows, gains: &mut gains });
            }
            let mut best = (least, None);
            let mut most = vec![f64::NEG_INFINITY; if remember { newcomers.len() } else { 0 }];
            for leaving in leaving.clone() {
                let gains = &gains[leaving * lanes..][..lanes];
                // As its own exemplar, each has its preference instead of a similarity of 0.
                let saved = exemplars.get(leaving).map_or(0.0, |&row| -examples.preference(row));
                for (at, (gain, &newcomer)) in gains.iter().zip(newcomers).enumerate() {
                    let gain = gain + (saved + examples.preference(newcomer));
                    most.get_mut(at).into_iter().for_each(|most| *most = gain.max(*most));
                    if gain > best.0 {
                        best = (gain, Some((leaving, newcomer)));
                    }
                }
            }
            Ok((best, most))
        })?;
        if remember {
            let gains: Vec<f64> = found.iter().flat_map(|(_, most)| most).copied().collect();
            let mut order: Vec<usize> = (0..gains.len()).collect();
            order.sort_by(|&a, &b| gains[b].total_cmp(&gains[a]));
            order.truncate(among.candidates.len());
            among.promising = order.into_iter().map(|at| newcomers[at]).collect();
        }
        let best = found.into_iter().map(|(best, _)| best);
        Ok(Some(best.fold((least, None), |best, next| if next.0 > best.0 { next } else { best })))
    }
}

/// Adds up by how much each newcomer would raise the similarities of some rows, in place of each exemplar and of nobody.
struct Gains<'a> {
    changes: &'a Changes<'a>,
    rooms: &'a [&'a [u32]],
    /// Of every room, the newcomers' sets.
    vectors: &'a [Vectors],
    rows: Range<usize>,
    /// Exemplar by exemplar, and then for nobody, those of all newcomers.
    gains: &'a mut [f64],
}

impl WithSimd for Gains<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Changes { examples, solution, places, without, .. } = self.changes;
        let lanes = self.gains.len() / (solution.exemplars.len() + 1);
        let rows = examples.rows().slice(self.rows.start, self.rows.len());
        // Row by row, and in each exemplar by exemplar, the best set with a newcomer and without that exemplar.
        let mut best = vec![f32::NEG_INFINITY; self.rows.len() * self.gains.len()];
        let mut similarities = vec![0.0; self.rows.len() * lanes];
        for (room, vectors) in self.rooms.iter().zip(self.vectors) {
            rows.similarities(simd, vectors, &mut similarities, lanes);
            for (best, similarities) in
                best.chunks_exact_mut(self.gains.len()).zip(similarities.chunks_exact(lanes))
            {
                for (at, best) in best.chunks_exact_mut(lanes).enumerate() {
                    if !room.contains(&(at as u32)) {
                        best.iter_mut().zip(similarities).for_each(|(best, &value)| *best = best.max(value));
                    }
                }
            }
        }
        for (row, best) in self.rows.zip(best.chunks_exact(self.gains.len())) {
            let (set, current) = (&solution.sets[solution.labels[row] as usize], solution.similarities[row]);
            for (at, (gains, best)) in self.gains.chunks_exact_mut(lanes).zip(best.chunks_exact(lanes)).enumerate()
            {
                let member = set.iter().position(|&member| member as usize == at);
                let kept = member.map_or(current, |place| without[row * places + place]);
                for (gain, &best) in gains.iter_mut().zip(best) {
                    *gain += f64::from(best.max(kept)) - f64::from(current);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::{Distance, Embeddings, Services, Task};
    use compflow_kernels::points::Points;
    use compflow_kernels::testing::composers::Plain;
    use compflow_kernels::testing::examples::uniform;
    use compflow_kernels::workers::Workers;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

        #[test]
        fn what_a_change_gains_is_what_carrying_it_out_gains(
            n in 3usize..14, dim in 1usize..4, degree in 1usize..4, seed in 0u64..1000, count in 1usize..5,
            euclidean: bool, further: bool, high in -3.0..0.5f64,
        ) {
            let values = uniform(n, dim, seed);
            let mut task =
                Task { degree, composer: Some(&Plain::Sum), ..Task::new(Embeddings::new(&values, dim)) };
            task.space.distance = if euclidean { Distance::Euclidean } else { Distance::SqEuclidean };
            let (workers, services) = (Workers::alone(), Services::none());
            let points = Points::new(values.clone(), dim, n, &workers, &services).unwrap();
            let preferences: Vec<f64> = (0..n).map(|row| high - 0.3 * (row % 3) as f64 - 0.01).collect();
            let examples = Examples::new(&task, &points, &preferences, &workers, &services);
            let exemplars: Vec<u32> = (0..count.min(n - 1) as u32).collect();
            let solution = examples.assign(exemplars.clone()).unwrap();
            let objective = |exemplars: Vec<u32>| examples.assign(exemplars).unwrap().objective;
            let without = |at: usize| [&exemplars[..at], &exemplars[at + 1..]].concat();
            let mut budget = Budget::new(u64::MAX);
            let changes = Changes::new(&examples, &solution, &mut budget).unwrap().unwrap();

            let unit = examples.preference(0) / preferences[0];
            // The root of what rounding leaves of 0.
            let near = if euclidean { 3e-3 } else { 1e-4 };
            if exemplars.len() > 1 {
                for at in 0..exemplars.len() {
                    let gain = objective(without(at)) - solution.objective;
                    prop_assert!((changes.gains[at] / unit - gain).abs() < near, "{} {gain}", changes.gains[at]);
                }
            }
            let newcomers = || exemplars.len() as u32..n as u32;
            let prices = changes.prices(&mut Newcomers::new(&[]), &mut budget).unwrap().unwrap();
            if exemplars.len() > 1 {
                let missed = |at: usize| solution.objective - objective(without(at)) - preferences[at];
                let missed = (0..exemplars.len()).map(missed).fold(f64::INFINITY, f64::min);
                prop_assert!((prices.end - missed).abs() < near, "{} {missed}", prices.end);
            }
            let gained = |row: u32| {
                let found = objective([&exemplars[..], &[row]].concat()) - solution.objective;
                (found, found - preferences[row as usize])
            };
            let best = newcomers().map(gained).fold((f64::NEG_INFINITY, 0.0), |a, b| if b.0 > a.0 { b } else { a });
            prop_assert!((prices.start - best.1.max(0.0)).abs() < near || newcomers().map(gained).any(|(found, price)| {
                found > best.0 - near && (prices.start - price.max(0.0)).abs() < near
            }), "{} {best:?}", prices.start);
            let mut tried: Vec<Vec<u32>> = Vec::new();
            for at in 0..exemplars.len() {
                tried.extend(newcomers().map(|row| [without(at), vec![row]].concat()));
            }
            if further {
                tried.extend(newcomers().map(|row| [&exemplars[..], &[row]].concat()));
            }
            let best = tried.into_iter().map(objective).fold(f64::NEG_INFINITY, f64::max);
            match changes.exchange(&mut Newcomers::new(&[]), further, &mut budget).unwrap() {
                Some(found) => prop_assert!((objective(found) - best).abs() < near),
                None => prop_assert!(best < solution.objective + near),
            }
            let grown = newcomers().map(|row| objective([&exemplars[..], &[row]].concat()));
            let grown = grown.fold(f64::NEG_INFINITY, f64::max);
            let found = changes.further(&mut Newcomers::new(&[]), &mut budget).unwrap().unwrap();
            prop_assert!(found.len() == exemplars.len() + 1 && (objective(found) - grown).abs() < near);
        }
    }

    #[test]
    fn without_work_left_nothing_changes_and_candidates_are_cheaper_than_everybody() {
        let values = uniform(40, 3, 1);
        let task = Task { degree: 2, composer: Some(&Plain::Sum), ..Task::new(Embeddings::new(&values, 3)) };
        let (workers, services) = (Workers::alone(), Services::none());
        let points = Points::new(values.clone(), 3, 40, &workers, &services).unwrap();
        let preferences = vec![-0.1; 40];
        let examples = Examples::new(&task, &points, &preferences, &workers, &services);
        let solution = examples.assign(vec![0, 1]).unwrap();
        let mut nothing = Budget::new(0);
        assert!(Changes::new(&examples, &solution, &mut nothing).unwrap().is_none() && nothing.exhausted);
        let changes = Changes::new(&examples, &solution, &mut Budget::new(u64::MAX)).unwrap().unwrap();
        let mut nothing = Budget::new(0);
        assert!(
            changes.exchange(&mut Newcomers::new(&[2, 3]), true, &mut nothing).unwrap().is_none()
                && nothing.exhausted
        );
        let mut enough_for_two = Budget::new(2 * 3 * (40 * 5 + COMPOSING as u64));
        let found = changes.exchange(&mut Newcomers::new(&[2, 3]), true, &mut enough_for_two).unwrap().unwrap();
        assert!(found.iter().all(|row| *row < 4) && enough_for_two.left == 0, "{found:?} {}", enough_for_two.left);
        assert!(!enough_for_two.exhausted);
        // Those who gained most are looked at alone, until somebody looks further.
        let (mut plenty, mut newcomers) = (Budget::new(u64::MAX), Newcomers::promising_first(&[2, 3, 4]));
        let best = changes.exchange(&mut newcomers, true, &mut plenty).unwrap().unwrap();
        assert!(
            newcomers.promising.len() == 3 && best.iter().any(|row| newcomers.promising[0] == *row),
            "{best:?}"
        );
        assert_eq!(changes.exchange(&mut newcomers, true, &mut plenty).unwrap().unwrap(), best);
        assert!(newcomers.are_few());
        newcomers.look_further();
        assert!(!newcomers.are_few());
    }
}
