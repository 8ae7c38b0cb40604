//! Which clusters are singletons: a search for the cheapest answer, in place of the paper's greedy listing.
//!
//! A reassignment is known as soon as the singletons S are: every other cluster becomes the nearest composition of
//! singletons. With the candidates η of cluster j, those nearer than the threshold τ,
//!
//! ```text
//! F(S) = |S|·τ² + Σ over j ∉ S of min over candidates η ⊆ S of cost(j, η)
//! cost(j, η) = ‖m_j - g(η)‖²        cost(j, {i}) = ‖m_j - m_i‖² / merge²
//! ```
//!
//! is what a singleton costs, and what the others do. The last is a composition of one: j and i are one cluster that the
//! base has split. Squares are taken whatever the pipeline's distance, and every cluster counts once.
//!
//! A cluster without candidates is a singleton in any case. The search begins with these and with those that nothing
//! explains that is composed of them alone. Then, as long as F falls, the best of all single steps is taken: a cluster
//! becomes a singleton, ceases to be one, or two change places. The listing's conflicts cannot arise; where it would make
//! a union of two a member of a union of three, the union of three finds its own members here.

use compflow_api::{Result, Services};

use crate::compositions::Near;

/// A step must lower F by more than this part of what all clusters cost as singletons: less is rounding.
const TOLERANCE: f64 = 1e-9;

/// For every cluster the composition that it becomes; none if it is a singleton. `candidates` lists for every cluster the
/// compositions that are near enough with their costs, the cheapest first; a singleton costs `alone`.
pub(crate) fn reassign<'s>(
    candidates: &[Vec<(f64, Near)>],
    members: impl Fn(usize) -> &'s [u32],
    alone: f64,
    services: &Services<'_>,
) -> Result<Vec<Option<Near>>> {
    let problem = Problem { candidates, members, alone };
    let mut singletons: Vec<bool> = candidates.iter().map(Vec::is_empty).collect();
    singletons = problem.explained(&singletons).iter().map(Option::is_none).collect();
    loop {
        let explained = problem.explained(&singletons);
        let Some(step) = problem.step(&singletons, &explained, services)? else {
            return Ok(explained.into_iter().map(|found| Some(found?.1)).collect());
        };
        step.leaving.into_iter().for_each(|at| singletons[at] = false);
        step.joining.into_iter().for_each(|at| singletons[at] = true);
    }
}

/// Which cluster ceases to be a singleton, and which becomes one.
struct Step {
    leaving: Option<usize>,
    joining: Option<usize>,
}

struct Problem<'a, M> {
    candidates: &'a [Vec<(f64, Near)>],
    members: M,
    alone: f64,
}

impl<'s, M: Fn(usize) -> &'s [u32]> Problem<'_, M> {
    /// What explains a cluster best if these are the singletons.
    fn cheapest(&self, cluster: usize, singletons: &[bool]) -> Option<(f64, Near)> {
        let composed = |near: &Near| (self.members)(near.set).iter().all(|&member| singletons[member as usize]);
        self.candidates[cluster].iter().copied().find(|(_, near)| composed(near))
    }

    /// What explains every cluster best; nothing if it is a singleton.
    fn explained(&self, singletons: &[bool]) -> Vec<Option<(f64, Near)>> {
        let found = |at: usize| if singletons[at] { None } else { self.cheapest(at, singletons) };
        (0..singletons.len()).map(found).collect()
    }

    /// For every cluster those that its leaving the singletons would leave unexplained, and those that its joining them
    /// would explain better.
    fn concerned(
        &self,
        singletons: &[bool],
        explained: &[Option<(f64, Near)>],
    ) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
        let (mut users, mut helped) = (vec![Vec::new(); singletons.len()], vec![Vec::new(); singletons.len()]);
        for (at, found) in explained.iter().enumerate() {
            let Some((cost, near)) = found else { continue };
            (self.members)(near.set).iter().for_each(|&member| users[member as usize].push(at));
            for (_, near) in self.candidates[at].iter().take_while(|cheaper| cheaper.0 < *cost) {
                let mut missing = (self.members)(near.set).iter().filter(|&&member| !singletons[member as usize]);
                if let (Some(&joining), None) = (missing.next(), missing.next())
                    && helped[joining as usize].last() != Some(&at)
                {
                    helped[joining as usize].push(at);
                }
            }
        }
        (users, helped)
    }

    /// The step that lowers F most, if any does.
    fn step(
        &self,
        singletons: &[bool],
        explained: &[Option<(f64, Near)>],
        services: &Services<'_>,
    ) -> Result<Option<Step>> {
        let (users, helped) = self.concerned(singletons, explained);
        let cost = |at: usize| explained[at].map_or(self.alone, |found| found.0);
        let mut best = (-TOLERANCE * self.alone * singletons.len() as f64, None);
        let mut tried = singletons.to_vec();
        // None of them, too: then another one only joins.
        let leaving = (0..singletons.len()).filter(|&at| singletons[at] && !self.candidates[at].is_empty());
        for leaving in leaving.map(Some).chain([None]) {
            services.check_cancelled()?;
            leaving.into_iter().for_each(|at| tried[at] = false);
            let users = leaving.map_or(&[][..], |at| &users[at]);
            let joining = (0..singletons.len()).filter(|&at| !singletons[at]);
            for joining in joining.map(Some).chain([None]) {
                joining.into_iter().for_each(|at| tried[at] = true);
                let helped = joining.map_or(&[][..], |at| &helped[at]).iter().filter(|at| !users.contains(at));
                let concerned = leaving.iter().chain(users).chain(helped).filter(|&&at| joining != Some(at));
                let changes = concerned.map(|&at| Some(self.cheapest(at, &tried)?.0 - cost(at)));
                if let Some(change) = changes.sum::<Option<f64>>() {
                    let change = change + joining.map_or(0.0, |at| self.alone - cost(at));
                    if change < best.0 {
                        best = (change, Some(Step { leaving, joining }));
                    }
                }
                joining.into_iter().for_each(|at| tried[at] = false);
            }
            leaving.into_iter().for_each(|at| tried[at] = true);
        }
        Ok(best.1)
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::{Error, Sets};
    use compflow_kernels::testing::watcher::Watcher;
    use proptest::prelude::*;

    use super::*;

    fn candidate(set: usize, cost: f64) -> (f64, Near) {
        (cost, Near { set, distance: cost })
    }

    fn found(candidates: &[Vec<(f64, Near)>], sets: &Sets) -> Vec<Option<usize>> {
        let found = reassign(candidates, |set| &sets[set], 1.0, &Services::none()).unwrap();
        found.into_iter().map(|near| Some(near?.set)).collect()
    }

    /// F by its definition; none if nothing explains some cluster.
    fn cost(candidates: &[Vec<(f64, Near)>], sets: &Sets, singletons: u32) -> Option<f64> {
        let costs = candidates.iter().enumerate().map(|(at, candidates)| {
            let fits = |set: usize| sets[set].iter().all(|&member| singletons >> member & 1 == 1);
            match singletons >> at & 1 {
                1 => Some(1.0),
                _ => candidates
                    .iter()
                    .filter(|(_, near)| fits(near.set))
                    .map(|found| found.0)
                    .min_by(f64::total_cmp),
            }
        });
        costs.sum()
    }

    #[test]
    fn a_union_of_three_does_not_keep_a_union_of_two_from_being_one() {
        // 4 = {0, 1, 2} = {2, 3} where 3 = {0, 1}: the listing would make 3 a member and leave it alone.
        let sets = Sets::from_iter([vec![0, 1], vec![2, 3], vec![0, 1, 2]]);
        let candidates =
            [vec![], vec![], vec![], vec![candidate(0, 0.3)], vec![candidate(1, 0.1), candidate(2, 0.2)]];
        assert_eq!(found(&candidates, &sets), [None, None, None, Some(0), Some(2)]);
    }

    #[test]
    fn a_singleton_that_a_composition_comes_near_stays_one_if_others_need_it() {
        // 2 is near {0, 1} by chance; 3 and 4 are compositions of it, and something worse without it.
        let sets = Sets::from_iter([[0, 1], [0, 2], [1, 2]]);
        let candidates = [
            vec![],
            vec![],
            vec![candidate(0, 0.8)],
            vec![candidate(1, 0.1), candidate(0, 0.9)],
            vec![candidate(2, 0.1), candidate(0, 0.9)],
        ];
        assert_eq!(found(&candidates, &sets), [None, None, None, Some(1), Some(2)]);
    }

    proptest! {
        #[test]
        fn no_step_leads_to_less(
            costs in prop::collection::vec(0.0..3.0, 1..60),
            k in 2usize..7,
            degree in 1usize..4,
        ) {
            let sets = Sets::all_up_to(k, degree);
            let mut costs = costs.iter().cycle();
            let candidates: Vec<Vec<(f64, Near)>> = (0..k as u32).map(|cluster| {
                let others = (0..sets.len()).filter(|&set| !sets[set].contains(&cluster));
                let mut list: Vec<_> = others.zip(costs.by_ref()).map(|(set, &cost)| candidate(set, cost)).collect();
                list.retain(|found| found.0 < 1.0);
                list.sort_by(|a, b| a.0.total_cmp(&b.0));
                list
            }).collect();
            let found = found(&candidates, &sets);
            let singletons = found.iter().enumerate().map(|(at, set)| u32::from(set.is_none()) << at).sum::<u32>();
            let reached = cost(&candidates, &sets, singletons).unwrap();
            for (set, list) in found.iter().zip(&candidates) {
                let Some(set) = set else { continue };
                prop_assert!(sets[*set].iter().all(|&member| found[member as usize].is_none()));
                prop_assert!(list.iter().any(|(_, near)| near.set == *set));
            }
            // All sets of singletons that are a step away: one more, one less, or one for another.
            for other in 0..1u32 << k {
                let (more, less) = ((other & !singletons).count_ones(), (singletons & !other).count_ones());
                if more <= 1 && less <= 1 && let Some(cost) = cost(&candidates, &sets, other) {
                    prop_assert!(reached <= cost + 1e-6, "{reached} {cost} {singletons:b} {other:b}");
                }
            }
        }
    }

    #[test]
    fn work_that_is_no_longer_wanted_stops() {
        let sets = Sets::all_up_to(3, 1);
        let candidates = [vec![candidate(1, 0.5)], vec![candidate(0, 0.5)], vec![]];
        let host = Watcher::new(1);
        let services = Services { host: &host, ..Services::none() };
        assert_eq!(services.progress(0, 0), Err(Error::Cancelled));
        assert_eq!(reassign(&candidates, |set| &sets[set], 1.0, &services), Err(Error::Cancelled));
    }
}
