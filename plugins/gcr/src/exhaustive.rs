//! Exhaustive reassignment: the paper's appendix.
//!
//! Of all ways to make some clusters compositions of the others, each of another one, the cheapest is taken: an example
//! of a composed cluster costs the distance of its cluster's mean from the composition, an example of any other cluster
//! the threshold. The appendix sums distances alone, which is cheapest if nothing is reassigned, as no point is nearer
//! to a cluster than its own mean; with the threshold the same clusters gain that the listing would reassign.
//!
//! Clusters are decided one after the other, compositions before staying alone, the nearest first. What cannot become
//! cheaper than the best so far, even if all that is left became its nearest composition, is not looked at.

use compflow_api::{Result, Services};

use crate::compositions::Near;

/// Decisions between two looks at whether the work is still wanted.
const PATIENCE: u64 = 1 << 16;

/// For every cluster the composition that it becomes; none if it stays a singleton. `candidates` lists for every
/// cluster the compositions that are near enough, the nearest first; `gain` is what one saves.
pub(crate) fn reassign<'s>(
    candidates: &[Vec<Near>],
    members: impl Fn(usize) -> &'s [u32],
    gain: impl Fn(usize, &Near) -> f64,
    services: &Services<'_>,
) -> Result<Vec<Option<Near>>> {
    let k = candidates.len();
    let mut reach = vec![0.0; k + 1];
    for cluster in (0..k).rev() {
        reach[cluster] = reach[cluster + 1] + candidates[cluster].first().map_or(0.0, |near| gain(cluster, near));
    }
    let mut search = Search {
        candidates,
        members,
        gain,
        reach,
        chosen: vec![None; k],
        uses: vec![0; k],
        best: (0.0, vec![None; k]),
        decisions: 0,
        services,
    };
    search.decide(0, 0.0)?;
    Ok(search.best.1)
}

struct Search<'a, M, G> {
    candidates: &'a [Vec<Near>],
    members: M,
    gain: G,
    /// What the clusters from each on can gain at most.
    reach: Vec<f64>,
    chosen: Vec<Option<Near>>,
    /// How many compositions each cluster is a member of.
    uses: Vec<u32>,
    best: (f64, Vec<Option<Near>>),
    decisions: u64,
    services: &'a Services<'a>,
}

impl<'s, M: Fn(usize) -> &'s [u32], G: Fn(usize, &Near) -> f64> Search<'_, M, G> {
    fn decide(&mut self, cluster: usize, gained: f64) -> Result<()> {
        self.decisions += 1;
        if self.decisions.is_multiple_of(PATIENCE) {
            self.services.progress(0, 0)?;
        }
        if gained > self.best.0 {
            self.best = (gained, self.chosen.clone());
        }
        if cluster == self.candidates.len() || gained + self.reach[cluster] <= self.best.0 {
            return Ok(());
        }
        if self.uses[cluster] == 0 {
            for near in &self.candidates[cluster] {
                let members = (self.members)(near.set);
                let decided = &self.chosen[..cluster];
                let taken = decided.iter().flatten().any(|other| other.set == near.set);
                if taken || members.iter().any(|&member| self.chosen[member as usize].is_some()) {
                    continue;
                }
                self.chosen[cluster] = Some(*near);
                members.iter().for_each(|&member| self.uses[member as usize] += 1);
                let gain = (self.gain)(cluster, near);
                self.decide(cluster + 1, gained + gain)?;
                members.iter().for_each(|&member| self.uses[member as usize] -= 1);
                self.chosen[cluster] = None;
            }
        }
        self.decide(cluster + 1, gained)
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::{Error, Sets};
    use compflow_kernels::testing::watcher::Watcher;
    use proptest::prelude::*;

    use super::*;

    fn value(cluster: usize, near: &Near) -> f64 {
        (1 + cluster % 3) as f64 * (1.0 - near.distance)
    }

    /// All compositions that do not contain the cluster, at distances from `seeds`.
    fn candidates(k: usize, sets: &Sets, seeds: &[f64]) -> Vec<Vec<Near>> {
        let mut seeds = seeds.iter().cycle();
        (0..k as u32)
            .map(|cluster| {
                let others = (k..sets.len()).filter(|&set| !sets[set].contains(&cluster));
                let mut near: Vec<Near> =
                    others.zip(seeds.by_ref()).map(|(set, &distance)| Near { set, distance }).collect();
                near.retain(|near| near.distance < 1.0);
                near.sort_by(|a, b| a.distance.total_cmp(&b.distance));
                near
            })
            .collect()
    }

    /// The most that any reassignment gains, by trying all of them.
    fn naive(candidates: &[Vec<Near>], sets: &Sets, chosen: &mut Vec<Option<Near>>) -> f64 {
        let cluster = chosen.len();
        if cluster == candidates.len() {
            let composed: Vec<usize> = chosen.iter().flatten().map(|near| near.set).collect();
            let members = composed.iter().flat_map(|&set| &sets[set]);
            let sound = members.into_iter().all(|&member| chosen[member as usize].is_none())
                && (1..composed.len()).all(|at| !composed[..at].contains(&composed[at]));
            let gains =
                chosen.iter().enumerate().map(|(at, near)| near.as_ref().map_or(0.0, |near| value(at, near)));
            return if sound { gains.sum() } else { 0.0 };
        }
        let mut most = 0.0f64;
        for near in candidates[cluster].iter().copied().map(Some).chain([None]) {
            chosen.push(near);
            most = most.max(naive(candidates, sets, chosen));
            chosen.pop();
        }
        most
    }

    proptest! {
        #[test]
        fn nothing_gains_more(seeds in prop::collection::vec(0.0..2.0, 1..40), k in 3usize..6, degree in 2usize..4) {
            let sets = Sets::all_up_to(k, degree);
            let candidates = candidates(k, &sets, &seeds);
            let found = reassign(&candidates, |set| &sets[set], value, &Services::none()).unwrap();
            let gained: f64 =
                found.iter().enumerate().map(|(at, near)| near.as_ref().map_or(0.0, |near| value(at, near))).sum();
            let most = naive(&candidates, &sets, &mut Vec::new());
            prop_assert!((gained - most).abs() < 1e-9, "{gained} {most}");
        }
    }

    #[test]
    fn work_that_is_no_longer_wanted_stops() {
        // All equally far: nothing can be ruled out before it is complete.
        let sets = Sets::all_up_to(11, 2);
        let candidates = candidates(11, &sets, &[0.5]);
        let host = Watcher::new(2);
        let services = Services { host: &host, ..Services::none() };
        let stopped = reassign(&candidates, |set| &sets[set], |_, _| 1.0, &services).unwrap_err();
        assert_eq!(stopped, Error::Cancelled);
        assert_eq!(host.reports.lock().unwrap().len(), 2);
    }
}
