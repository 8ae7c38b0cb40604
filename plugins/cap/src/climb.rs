//! From a solution to one that no change of a single exemplar makes better, and to a wanted number of exemplars.

use compflow_api::Result;

use crate::exchange::{Budget, Changes, WORK};
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
    pub(crate) fn new(examples: &'a Examples<'a>, candidates: &'a [u32], wanted: Option<usize>) -> Self {
        Self { examples, candidates, wanted, work: WORK }
    }

    /// Changes exemplars for as long as that raises the objective and does not take too long: from this solution, from
    /// the exemplar that serves best alone, as messages go back and forth between all and none where exemplars cost far
    /// more than they save, and from all but two of the best, as one at a time may not be enough. Whenever the solution
    /// becomes another, its objective goes to the trace.
    pub(crate) fn run(&self, solution: Solution, alone: u32, trace: &mut Vec<f64>) -> Result<End> {
        let (mut budget, mut exploring) = (Budget::new(self.work), Budget::new(self.work / EXPLORING));
        let mut best = self.climb(solution.clone(), &mut budget, trace)?;
        let mut starts = best.as_ref().map_or(Vec::new(), |(best, _)| without_two(&best.exemplars));
        starts.push(vec![alone]);
        while !budget.exhausted
            && !exploring.exhausted
            && let Some(start) = starts.pop()
        {
            let start = self.examples.assign(start)?;
            let Some(found) = self.climb(start, &mut exploring, &mut Vec::new())? else { continue };
            if best.as_ref().is_none_or(|(best, _)| self.examples.is_better(&found.0, best)) {
                trace.push(found.0.objective);
                starts = without_two(&found.0.exemplars);
                best = Some(found);
            }
        }
        if let Some((cut_short, false)) = best {
            best = self.climb(cut_short, &mut budget, trace)?;
        }
        let (solution, settled) = best.unwrap_or((solution, false));
        Ok(End { solution, settled, exhausted: budget.exhausted, unexplored: exploring.exhausted })
    }

    /// The exemplars that these lead to; None if that takes too long, or if they are more than half of the candidates.
    pub(crate) fn further(&self, exemplars: Vec<u32>) -> Result<Option<Vec<u32>>> {
        let start = self.examples.assign(exemplars)?;
        let found = self.climb(start, &mut Budget::new(self.work), &mut Vec::new())?;
        let settled =
            found.filter(|(found, settled)| *settled && 2 * found.exemplars.len() <= self.candidates.len());
        Ok(settled.map(|(found, _)| found.exemplars))
    }

    /// Brings a solution to the number of exemplars that is wanted, and improves it until nothing is better; whether it
    /// came so far. None if that number is out of reach.
    fn climb(
        &self,
        start: Solution,
        budget: &mut Budget,
        trace: &mut Vec<f64>,
    ) -> Result<Option<(Solution, bool)>> {
        let Some(mut solution) = self.reach(start, budget, trace)? else { return Ok(None) };
        loop {
            let changes = Changes::new(self.examples, &solution, budget)?;
            let looked = changes.is_some();
            let Some(next) = self.improve(&solution, changes, budget)? else {
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
    fn reach(&self, start: Solution, budget: &mut Budget, trace: &mut Vec<f64>) -> Result<Option<Solution>> {
        let mut solution = start;
        let wanted = self.wanted.unwrap_or(solution.exemplars.len());
        while solution.exemplars.len() != wanted {
            let Some(changes) = Changes::new(self.examples, &solution, budget)? else { return Ok(None) };
            let exemplars = match solution.exemplars.len().checked_sub(wanted) {
                Some(many) => Some(changes.fewer(many)),
                None => changes.further(self.candidates, budget)?,
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
        let further = free && solution.exemplars.len() < self.candidates.len();
        match changes.exchange(self.candidates, further, budget)? {
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

#[cfg(test)]
mod tests {
    use compflow_api::{Embeddings, Services, Task};
    use compflow_kernels::points::Points;
    use compflow_kernels::testing::composers::Plain;
    use compflow_kernels::testing::examples::uniform;
    use compflow_kernels::workers::Workers;

    use super::*;

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
            let end = Climb { work, ..Climb::new(&examples, &all, wanted) }.run(start, 5, &mut trace).unwrap();
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
}
