//! The preference that gives a number of clusters.

use compflow_api::{Level, Result, Services, plural};

use super::{Ap, Run};
use crate::similarities::Similarities;
use compflow_kernels::preference::{Search, TRIALS};
use compflow_kernels::workers::Workers;

impl Ap {
    /// Looks for a preference that gives `k` clusters; of those tried, the one that comes nearest is kept, and counts as
    /// not converged if it has another number.
    pub(super) fn search(
        &self,
        k: usize,
        similarities: &mut Similarities,
        firsts: Option<&[u32]>,
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<Run> {
        let (smallest, least) = similarities.extent();
        let mut search = Search::new(k, smallest, least, self.damping);
        let mut best: Option<(Run, f64)> = None;
        // The numbers of clusters found that are nearest to k from below and from above.
        let mut nearest = [None, None];
        for trial in 0..TRIALS {
            let preference = search.preference();
            similarities.set_preference(preference);
            let progress = (trial * self.max_iter, TRIALS * self.max_iter);
            let run = self.run(similarities, firsts, search.damping(), workers, services, progress)?;
            let (found, converged) = (run.clusters.exemplars.len(), run.converged);
            if converged {
                let side = &mut nearest[usize::from(found > k)];
                *side = Some(
                    side.map_or(found, |known: usize| if found > k { known.min(found) } else { known.max(found) }),
                );
            }
            let worth = |run: &Run| (!run.converged, run.clusters.exemplars.len().abs_diff(k));
            if best.as_ref().is_none_or(|(best, _)| worth(&run) < worth(best)) {
                best = Some((run, preference));
            }
            if !search.learn(found, converged) {
                break;
            }
        }
        let (mut run, preference) = best.expect("at least one preference is tried");
        similarities.set_preference(preference);
        let found = run.clusters.exemplars.len();
        services.log(
            Level::Info,
            format!("ap has {found} clusters at a preference of {}", similarities.restore(preference)),
        );
        if found != k {
            run.miss(k, nearest.into_iter().flatten(), services);
        }
        Ok(run)
    }
}

impl Run {
    /// Says that there are other numbers of clusters only.
    pub(super) fn miss(&mut self, k: usize, nearest: impl IntoIterator<Item = usize>, services: &Services<'_>) {
        let nearest: Vec<String> = nearest.into_iter().map(|found| found.to_string()).collect();
        let nearest = match nearest.is_empty() {
            true => String::new(),
            false => format!(", the nearest that came up are {}", nearest.join(" and ")),
        };
        let has = self.clusters.exemplars.len();
        services.log(
            Level::Warn,
            format!("ap found no preference that gives {}{nearest}; it has {has}", plural(k, "cluster")),
        );
        self.converged = false;
        self.missed = true;
    }
}
