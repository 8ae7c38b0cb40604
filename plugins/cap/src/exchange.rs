//! Exchanging exemplars: messages settle on choices that no single example would change, but a further exemplar, or
//! another in place of one, may still serve all of them better. Such an exchange costs little to try, as only sets with
//! the newcomer have to be looked at.

use compflow_api::{Result, Sets};
use pulp::{Arch, NullaryFnOnce};

use crate::compositions::LANES;
use crate::products::{Rows, Vectors};
use crate::solution::{Examples, GAIN, LONG, Solution, rows_of};

/// Newcomers that one thread tries at a time.
const CHUNK: usize = 64;
/// Examples compared with all of them at a time.
const ROWS: usize = 64;

impl Examples<'_> {
    /// The solution with a further exemplar, or with another in place of one, if that is better; where there shall be
    /// so many, only the latter. Newcomers are all examples, or the candidates where these are too many;
    /// there are never more exemplars than candidates. None if looking for it would take too long.
    pub(crate) fn exchange(
        &self,
        solution: &Solution,
        candidates: &[u32],
        so_many: bool,
    ) -> Result<Option<Solution>> {
        let Solution { exemplars, sets, labels, .. } = solution;
        let rounds = if so_many { exemplars.len() } else { exemplars.len() + 1 };
        let long = |newcomers: usize| {
            labels.len().saturating_mul(sets.len()).saturating_mul(newcomers).saturating_mul(rounds) > LONG
        };
        // Candidates lie far apart, which exemplars that serve well do not: anybody may come if time allows.
        let everybody = 0..labels.len() as u32;
        let mut newcomers: Vec<u32> = if long(labels.len()) { candidates.to_vec() } else { everybody.collect() };
        if long(newcomers.len()) {
            return Ok(None);
        }
        newcomers.retain(|row| exemplars.binary_search(row).is_err());
        let better = |next: &Solution| next.objective > solution.objective + GAIN * solution.objective.abs();
        let room = !so_many && exemplars.len() < candidates.len();
        if room && let Some(newcomer) = self.best_newcomer(solution, &newcomers)? {
            let next = self.with(solution, newcomer)?;
            if better(&next) {
                return Ok(Some(next));
            }
        }
        if exemplars.len() == 1 {
            return Ok(None);
        }
        let mut best: Option<Solution> = None;
        for at in 0..exemplars.len() {
            let fewer = self.assign([&exemplars[..at], &exemplars[at + 1..]].concat())?;
            let Some(newcomer) = self.best_newcomer(&fewer, &newcomers)? else { continue };
            let next = self.with(&fewer, newcomer)?;
            if best.as_ref().is_none_or(|best| next.objective > best.objective) {
                best = Some(next);
            }
        }
        Ok(best.filter(better))
    }

    fn with(&self, solution: &Solution, newcomer: u32) -> Result<Solution> {
        let mut exemplars = solution.exemplars.clone();
        exemplars.push(newcomer);
        exemplars.sort_unstable();
        self.assign(exemplars)
    }

    /// The one that raises the objective most, or lowers it least, as a further exemplar; the first of equals.
    fn best_newcomer(&self, solution: &Solution, newcomers: &[u32]) -> Result<Option<u32>> {
        let Solution { exemplars, sets, similarities, .. } = solution;
        // A newcomer alone, and in every set that has room for it.
        let rooms = sets.iter().filter(|set| set.len() < self.degree()).map(|set| rows_of(set, exemplars));
        let rooms: Vec<Vec<u32>> = std::iter::once(Vec::new()).chain(rooms).collect();
        let arch = Arch::new();
        let gains = self.workers().map(newcomers.chunks(CHUNK), |newcomers| {
            let together =
                |room: &Vec<u32>| -> Sets { newcomers.iter().map(|row| [&room[..], &[*row]].concat()).collect() };
            let vectors = rooms.iter().map(|room| self.compose(&together(room))).collect::<Result<Vec<_>>>()?;
            let mut gains = vec![0.0; newcomers.len()];
            for (block, current) in similarities.chunks(ROWS).enumerate() {
                self.check_cancelled()?;
                let rows = self.rows().slice(block * ROWS, current.len());
                arch.dispatch(Gains { rows, vectors: &vectors, current, gains: &mut gains });
            }
            // As its own exemplar, the newcomer has its preference instead of a similarity of 0.
            gains.iter_mut().zip(newcomers).for_each(|(gain, row)| *gain += self.preference(*row));
            Ok(gains)
        })?;
        let gains = gains.concat();
        let best = (0..newcomers.len()).reduce(|best, at| if gains[at] > gains[best] { at } else { best });
        Ok(best.map(|best| newcomers[best]))
    }
}

/// Adds up by how much each newcomer would raise the similarities of some rows.
struct Gains<'a> {
    rows: Rows<'a>,
    /// Of every room, the newcomers' sets.
    vectors: &'a [Vectors],
    /// What every row has.
    current: &'a [f32],
    gains: &'a mut [f64],
}

impl NullaryFnOnce for Gains<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let stride = self.gains.len().next_multiple_of(LANES);
        let mut best = vec![f32::NEG_INFINITY; self.current.len() * stride];
        let mut similarities = best.clone();
        for vectors in self.vectors {
            self.rows.similarities(vectors, &mut similarities, stride);
            best.iter_mut().zip(&similarities).for_each(|(best, &similarity)| *best = best.max(similarity));
        }
        for (best, &current) in best.chunks_exact(stride).zip(self.current) {
            for (gain, &best) in self.gains.iter_mut().zip(best) {
                *gain += f64::from((best - current).max(0.0));
            }
        }
    }
}
