//! From a solution to one that no change of a single exemplar makes better, and to a wanted number of exemplars.

use std::ops::Range;

use compflow_api::Result;

use crate::exchange::{Budget, Changes, Newcomers};
use crate::solution::{Examples, Solution};

/// Of the multiplications that may be spent, one in so many may be spent again on other starts.
const EXPLORING: u64 = 4;
/// Exemplars of which every two are tried to be done without, at most.
const MOST_TRIED: usize = 12;

/// A solution, and why it was left.
pub(crate) struct End {
    pub(crate) solution: Solution,
    /// Whether because nothing changed any more.
    pub(crate) settled: bool,
    /// Whether better exemplars were not looked for any further, as that takes too long.
    pub(crate) exhausted: bool,
    /// Whether other starts were left out, as they take too long.
    pub(crate) unexplored: bool,
}

/// Where exemplars lead to at a price.
pub(crate) enum Further {
    /// To these, which nothing makes better; and the prices, in the user's units, between which they are neither too many nor
    /// too few.
    Settled(Vec<u32>, Range<f64>),
    /// To more than half of the candidates.
    TooMany,
    /// Not known, as that takes too long.
    Exhausted,
}

/// Changes the exemplars of solutions.
pub(crate) struct Climb<'a> {
    examples: &'a Examples<'a>,
    candidates: &'a [u32],
    /// How many exemplars there shall be.
    wanted: Option<usize>,
    /// Multiplications that may be spent.
    work: u64,
}

impl<'a> Climb<'a> {
    pub(crate) fn new(
        examples: &'a Examples<'a>,
        candidates: &'a [u32],
        wanted: Option<usize>,
        work: u64,
    ) -> Self {
        Self { examples, candidates, wanted, work }
    }

    /// Changes exemplars for as long as that raises the objective and does not take too long: from this solution, from
    /// the exemplar that serves best alone, as messages go back and forth between all and none where exemplars cost far
    /// more than they save, and from all but two of the best, as one at a time may not be enough. Whenever the solution
    /// becomes another, its objective goes to the trace.
    pub(crate) fn run(&self, solution: Solution, alone: u32, trace: &mut Vec<f64>) -> Result<End> {
        let (mut budget, mut exploring) = (Budget::new(self.work), Budget::new(self.work / EXPLORING));
        let mut newcomers = Newcomers::new(self.candidates);
        let mut best = self.climb(solution.clone(), &mut newcomers, &mut budget, trace)?;
        let mut starts = best.as_ref().map_or(Vec::new(), |(best, _)| without_two(&best.exemplars));
        starts.push(vec![alone]);
        while !budget.exhausted
            && !exploring.exhausted
            && let Some(start) = starts.pop()
        {
            let start = self.examples.assign(start)?;
            let Some(found) = self.climb(start, &mut newcomers, &mut exploring, &mut Vec::new())? else {
                continue;
            };
            if best.as_ref().is_none_or(|(best, _)| self.examples.is_better(&found.0, best)) {
                trace.push(found.0.objective);
                starts = without_two(&found.0.exemplars);
                best = Some(found);
            }
        }
        if let Some((cut_short, false)) = best {
            best = self.climb(cut_short, &mut newcomers, &mut budget, trace)?;
        }
        let (solution, settled) = best.unwrap_or((solution, false));
        Ok(End { solution, settled, exhausted: budget.exhausted, unexplored: exploring.exhausted })
    }

    /// Where these exemplars lead to, and at which prices they would stay as many.
    pub(crate) fn further(&self, exemplars: Vec<u32>) -> Result<Further> {
        let start = self.examples.assign(exemplars)?;
        let (mut newcomers, mut budget) = (Newcomers::promising_first(self.candidates), Budget::new(self.work));
        let found = self.climb(start, &mut newcomers, &mut budget, &mut Vec::new())?;
        let Some((solution, true)) = found else { return Ok(Further::Exhausted) };
        // With that many, exemplars are hardly chosen among candidates any more.
        if 2 * solution.exemplars.len() > self.candidates.len() {
            return Ok(Further::TooMany);
        }
        self.prices(&solution)
    }

    /// At which prices exemplars that nothing makes better would stay as many.
    pub(crate) fn prices(&self, solution: &Solution) -> Result<Further> {
        // One more look at all changes, for which there is work again.
        let mut budget = Budget::new(self.work);
        let prices = match Changes::new(self.examples, solution, &mut budget)? {
            Some(changes) => changes.prices(&mut Newcomers::new(self.candidates), &mut budget)?,
            None => None,
        };
        Ok(prices.map_or(Further::Exhausted, |prices| Further::Settled(solution.exemplars.clone(), prices)))
    }

    /// Brings a solution to the number of exemplars that is wanted, and improves it until nothing is better; whether it
    /// came so far. None if that number is out of reach.
    fn climb(
        &self,
        start: Solution,
        newcomers: &mut Newcomers<'_>,
        budget: &mut Budget,
        trace: &mut Vec<f64>,
    ) -> Result<Option<(Solution, bool)>> {
        let Some(mut solution) = self.reach(start, newcomers, budget, trace)? else { return Ok(None) };
        loop {
            let changes = Changes::new(self.examples, &solution, budget)?;
            let looked = changes.is_some();
            let Some(next) = self.improve(&solution, changes, newcomers, budget)? else {
                return Ok(Some((solution, looked && !budget.exhausted)));
            };
            trace.push(next.objective);
            solution = next;
            if !looked {
                // Exemplars moved, and that is all.
                return Ok(Some((solution, false)));
            }
        }
    }

    /// Takes away those who are missed least, or adds those who gain most, until there are as many as wanted.
    fn reach(
        &self,
        start: Solution,
        newcomers: &mut Newcomers<'_>,
        budget: &mut Budget,
        trace: &mut Vec<f64>,
    ) -> Result<Option<Solution>> {
        let mut solution = start;
        let wanted = self.wanted.unwrap_or(solution.exemplars.len());
        while solution.exemplars.len() != wanted {
            let Some(changes) = Changes::new(self.examples, &solution, budget)? else { return Ok(None) };
            let exemplars = match solution.exemplars.len().checked_sub(wanted) {
                Some(many) => Some(changes.fewer(many)),
                None => changes.further(newcomers, budget)?,
            };
            let Some(exemplars) = exemplars else { return Ok(None) };
            solution = self.examples.assign(exemplars)?;
            trace.push(solution.objective);
        }
        Ok(Some(solution))
    }

    /// A better solution, if one is found in the work that is left.
    fn improve(
        &self,
        solution: &Solution,
        changes: Option<Changes<'_>>,
        newcomers: &mut Newcomers<'_>,
        budget: &mut Budget,
    ) -> Result<Option<Solution>> {
        let free = self.wanted.is_none();
        if let Some(changes) = changes.as_ref().filter(|_| free) {
            for fewer in changes.take_away() {
                if let Some(next) = self.better(solution, fewer)? {
                    return Ok(Some(next));
                }
            }
        }
        let moved = self.examples.move_exemplars(solution)?;
        if moved != solution.exemplars
            && let Some(next) = self.better(solution, moved)?
        {
            return Ok(Some(next));
        }
        let Some(changes) = changes else { return Ok(None) };
        // There are never more exemplars than candidates.
        let further = free && solution.exemplars.len() < newcomers.len();
        loop {
            let everybody = !newcomers.are_few();
            let next = match changes.exchange(newcomers, further, budget)? {
                Some(exchanged) => self.better(solution, exchanged)?,
                None => None,
            };
            if next.is_some() || everybody {
                return Ok(next);
            }
            newcomers.look_further();
        }
    }

    /// What these exemplars lead to, if that is better.
    fn better(&self, solution: &Solution, exemplars: Vec<u32>) -> Result<Option<Solution>> {
        let next = self.examples.assign(exemplars)?;
        Ok(if self.examples.is_better(&next, solution) { Some(next) } else { None })
    }
}

/// All but two exemplars, unless there are too many pairs to try.
fn without_two(exemplars: &[u32]) -> Vec<Vec<u32>> {
    let count = exemplars.len();
    if !(3..=MOST_TRIED).contains(&count) {
        return Vec::new();
    }
    let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| [a, b]));
    let without = |gone: [usize; 2]| (0..count).filter(|at| !gone.contains(at)).map(|at| exemplars[at]).collect();
    pairs.map(without).collect()
}

#[cfg(test)]
mod tests {
    use compflow_api::{Embeddings, Services, Task};
    use compflow_kernels::points::Points;
    use compflow_kernels::testing::composers::Plain;
    use compflow_kernels::testing::examples::uniform;
    use compflow_kernels::workers::Workers;

    use super::*;
    use crate::exchange::WORK;

    #[test]
    fn whoever_runs_out_of_work_says_so_and_keeps_what_there_is() {
        let values = uniform(30, 3, 1);
        let task = Task { degree: 2, composer: Some(&Plain::Sum), ..Task::new(Embeddings::new(&values, 3)) };
        let (workers, services) = (Workers::alone(), Services::none());
        let points = Points::new(values.clone(), 3, 30, &workers, &services).unwrap();
        let preferences = vec![-0.8; 30];
        let examples = Examples::new(&task, &points, &preferences, &workers, &services);
        let all: Vec<u32> = (0..30).collect();
        let run = |work, wanted| {
            let mut trace = Vec::new();
            let start = examples.assign(vec![0, 1, 2, 3]).unwrap();
            let end = Climb::new(&examples, &all, wanted, work).run(start, 5, &mut trace).unwrap();
            assert!(trace.last().is_none_or(|last| *last == end.solution.objective));
            (end, trace)
        };
        let (enough, trace) = run(WORK, None);
        assert!(enough.settled && !enough.exhausted && !enough.unexplored && trace.is_sorted());
        let (none, _) = run(0, None);
        assert!(!none.settled && none.exhausted && none.solution.objective < enough.solution.objective);
        // Enough for a solution that nothing makes better, and not for all starts.
        let some = (12..40).map(|power| run(1 << power, None).0).find(|end| end.settled).unwrap();
        assert!(!some.exhausted && some.unexplored);
        assert_eq!(run(WORK, Some(7)).0.solution.exemplars.len(), 7);
        let (none, _) = run(0, Some(7));
        assert!(!none.settled && none.exhausted && none.solution.exemplars.len() == 4);
    }
    #[test]
    fn lower_prices_lead_to_more_to_too_many_or_say_that_there_was_no_work() {
        let values = uniform(30, 3, 1);
        let task = Task { degree: 2, composer: Some(&Plain::Sum), ..Task::new(Embeddings::new(&values, 3)) };
        let (workers, services) = (Workers::alone(), Services::none());
        let points = Points::new(values.clone(), 3, 30, &workers, &services).unwrap();
        let all: Vec<u32> = (0..30).collect();
        let further = |price: f64, work| {
            let preferences = vec![-price; 30];
            let examples = Examples::new(&task, &points, &preferences, &workers, &services);
            Climb::new(&examples, &all, None, work).further(vec![0, 1]).unwrap()
        };
        let mut before = 0;
        for price in [4.0, 1.0, 0.5] {
            let Further::Settled(exemplars, prices) = further(price, WORK) else {
                panic!("{price} after {before}")
            };
            assert!(
                exemplars.len() > before && prices.start < 1.001 * price && prices.end > 0.999 * price,
                "{prices:?}"
            );
            before = exemplars.len();
        }
        assert!(matches!(further(1e-6, WORK), Further::TooMany));
        for work in [0, 1 << 20] {
            assert!(matches!(further(0.5, work), Further::Exhausted));
        }
    }
}
