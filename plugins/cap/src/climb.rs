//! From a solution to one that no change of a single exemplar makes better, and to a wanted number of exemplars.

use compflow_api::Result;

use crate::exchange::{Budget, Changes, WORK};
use crate::solution::{Examples, Solution};

/// Exemplars of which every two are tried to be done without, at most.
const MOST_TRIED: usize = 12;

/// A solution, and why it was left.
pub(crate) struct End {
    pub(crate) solution: Solution,
    /// Whether because nothing changed any more.
    pub(crate) settled: bool,
    /// Whether better exemplars were not looked for any further, as that takes too long.
    pub(crate) exhausted: bool,
}

/// Changes the exemplars of solutions.
pub(crate) struct Climb<'a> {
    examples: &'a Examples<'a>,
    candidates: &'a [u32],
    /// How many exemplars there shall be.
    wanted: Option<usize>,
    budget: Budget,
}

impl<'a> Climb<'a> {
    pub(crate) fn new(examples: &'a Examples<'a>, candidates: &'a [u32], wanted: Option<usize>) -> Self {
        Self { examples, candidates, wanted, budget: Budget::new(WORK) }
    }

    /// Changes exemplars for as long as that raises the objective and does not take too long: from this solution, from
    /// the exemplar that serves best alone, as messages go back and forth between all and none where exemplars cost far
    /// more than they save, and from all but two of the best, as one at a time may not be enough. Whenever the solution
    /// becomes another, its objective goes to the trace.
    pub(crate) fn run(mut self, solution: Solution, alone: u32, trace: &mut Vec<f64>) -> Result<End> {
        let mut best = self.climb(solution.clone(), trace)?;
        let mut starts = best.as_ref().map_or(Vec::new(), |(best, _)| without_two(&best.exemplars));
        starts.push(vec![alone]);
        while !self.budget.exhausted
            && let Some(start) = starts.pop()
        {
            let Some(found) = self.climb(self.examples.assign(start)?, &mut Vec::new())? else { continue };
            if best.as_ref().is_none_or(|(best, _)| self.examples.is_better(&found.0, best)) {
                trace.push(found.0.objective);
                starts = without_two(&found.0.exemplars);
                best = Some(found);
            }
        }
        let (solution, settled) = best.unwrap_or((solution, false));
        Ok(End { solution, settled, exhausted: self.budget.exhausted })
    }

    /// Brings a solution to the number of exemplars that is wanted, and improves it until nothing is better; whether it
    /// came so far. None if that number is out of reach.
    fn climb(&mut self, start: Solution, trace: &mut Vec<f64>) -> Result<Option<(Solution, bool)>> {
        let Some(mut solution) = self.reach(start, trace)? else { return Ok(None) };
        loop {
            let changes = Changes::new(self.examples, &solution, &mut self.budget)?;
            let looked = changes.is_some();
            let Some(next) = self.improve(&solution, changes)? else {
                return Ok(Some((solution, looked && !self.budget.exhausted)));
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
    fn reach(&mut self, start: Solution, trace: &mut Vec<f64>) -> Result<Option<Solution>> {
        let mut solution = start;
        let wanted = self.wanted.unwrap_or(solution.exemplars.len());
        while solution.exemplars.len() != wanted {
            let Some(changes) = Changes::new(self.examples, &solution, &mut self.budget)? else { return Ok(None) };
            let exemplars = match solution.exemplars.len().checked_sub(wanted) {
                Some(many) => Some(changes.fewer(many)),
                None => changes.further(self.candidates, &mut self.budget)?,
            };
            let Some(exemplars) = exemplars else { return Ok(None) };
            solution = self.examples.assign(exemplars)?;
            trace.push(solution.objective);
        }
        Ok(Some(solution))
    }

    /// A better solution, if one is found in the work that is left.
    fn improve(&mut self, solution: &Solution, changes: Option<Changes<'_>>) -> Result<Option<Solution>> {
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
        let further = free && solution.exemplars.len() < self.candidates.len();
        match changes.exchange(self.candidates, further, &mut self.budget)? {
            Some(exchanged) => self.better(solution, exchanged),
            None => Ok(None),
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
