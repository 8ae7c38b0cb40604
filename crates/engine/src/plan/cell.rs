//! Cells: what a plan consists of.

use std::collections::BTreeMap;

use compflow_api::Flags;
use serde::{Deserialize, Serialize};

use super::seed::derive_seed;
use super::{Plan, Setup, Variant};
use crate::data::{Seeds, Trial};
use crate::files::hash_parts;

/// What numbers clusters and takes distances: another version may do it in another way.
const ENGINE: &str = concat!("compflow-engine ", env!("CARGO_PKG_VERSION"));

/// What computes, for the keys of cells: the engine and how the processor is made use of. Sums of vectors with fused
/// multiplications, as `gmm` makes them, have other last bits than those without, and whoever shares a folder among machines
/// must not get some of these and some of those. Processors have had vectors for more than ten years, so they go without saying.
fn computes() -> String {
    let features: &[&str] = match pulp::Arch::new() {
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        pulp::Arch::Scalar => &[
            "without vectors",
            // What products of matrices are made with all the same.
            if std::arch::is_x86_feature_detected!("avx") { "avx" } else { "" },
            if std::arch::is_x86_feature_detected!("fma") { "fma" } else { "" },
        ],
        _ => &[],
    };
    let all = std::iter::once(ENGINE).chain(features.iter().copied()).filter(|text| !text.is_empty());
    all.collect::<Vec<_>>().join(", ")
}

/// One clusterer variant on one trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cell {
    /// Indices in the plan.
    pub(crate) data: usize,
    pub(crate) trial: usize,
    pub(crate) clusterer: usize,
    pub(crate) variant: usize,
    /// Which option of the variant: the first until one is selected.
    pub(crate) option: usize,
    /// Whether the variant was settled by tuning and goes by the clusterer's plain name.
    pub(crate) settled: bool,
}

impl Cell {
    /// Whether it is another cell but for the option that may have been selected.
    pub(crate) fn is_of(&self, cell: Self) -> bool {
        Self { option: cell.option, ..*self } == cell
    }

    /// The trial that is clustered.
    pub(crate) fn trial<'p>(&self, plan: &'p Plan) -> &'p Trial {
        &plan.data[self.data].dataset.trials[self.trial]
    }

    /// The point of the clusterer's grids.
    pub(crate) fn variant<'p>(&self, plan: &'p Plan) -> &'p Variant {
        &plan.clusterers[self.clusterer].variants[self.variant]
    }

    /// The known sets of its trial, if its clusterer keeps to them.
    pub(crate) fn seeds<'p>(&self, plan: &'p Plan) -> Option<&'p Seeds> {
        let heeded = self.setup(plan).recipe.flags.contains(Flags::USES_SEEDS);
        self.trial(plan).seeds.as_ref().filter(|_| heeded)
    }

    /// What clusters it.
    pub(crate) fn setup<'p>(&self, plan: &'p Plan) -> &'p Setup {
        &self.variant(plan).options[self.option]
    }

    /// The name in tables.
    pub(crate) fn label<'p>(&self, plan: &'p Plan) -> &'p str {
        if self.settled { &plan.clusterers[self.clusterer].name } else { &self.variant(plan).label }
    }

    /// The seed of all its randomness.
    pub(crate) fn seed(&self, plan: &Plan) -> u64 {
        let data = &plan.data[self.data];
        let trial = self.trial(plan).number.to_string();
        derive_seed(plan.seed, &[&data.name, &trial, &plan.clusterers[self.clusterer].name])
    }

    /// The key under which the outcome is kept: everything that it depends on, except the evaluators.
    pub(crate) fn key(&self, plan: &Plan) -> String {
        let (setting, clusterer) = (&plan.setting, &self.setup(plan).recipe);
        let dataset = &plan.data[self.data].dataset;
        let trial = self.trial(plan);
        let truth = if clusterer.flags.contains(Flags::NEEDS_TRUTH) { &trial.truth_key } else { "" };
        let composer = setting.composer.as_ref().map_or("", |composer| &composer.recipe.key);
        let seeds = self.seeds(plan).map(|_| trial.seeds_key.clone());
        let columns = clusterer.columns.iter().flat_map(|name| trial.column_key(name));
        let columns = columns.chain(seeds).collect::<String>();
        let memberships = if setting.memberships { "memberships" } else { "" };
        let space = format!("{:?}", setting.space);
        let numbers = [setting.degree as u64, dataset.dim as u64, self.seed(plan)];
        let texts = [&clusterer.key[..], composer, &space, &trial.key, truth, &columns, memberships];
        kept_under(&computes(), &texts, &numbers)
    }

    /// How it is called in messages.
    pub(crate) fn about(&self, plan: &Plan) -> String {
        let data = &plan.data[self.data];
        format!("{} trial {} {}", data.name, self.trial(plan).number, self.label(plan))
    }
}

/// The key of what depends on an engine, on texts and on numbers.
fn kept_under(engine: &str, texts: &[&str], numbers: &[u64]) -> String {
    let numbers: Vec<[u8; 8]> = numbers.iter().map(|number| number.to_le_bytes()).collect();
    let texts = std::iter::once(engine).chain(texts.iter().copied()).map(str::as_bytes);
    hash_parts(texts.chain(numbers.iter().map(|number| &number[..])))
}

/// The variant that was chosen for a clusterer, by index.
pub(crate) type Chosen = BTreeMap<usize, usize>;

/// The cells of all data, clusterers and variants for which `wanted` says whether tuning has settled them.
fn cells(plan: &Plan, wanted: impl Fn(usize, usize, usize) -> Option<bool>) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (data, loaded) in plan.data.iter().enumerate() {
        for (clusterer, planned) in plan.clusterers.iter().enumerate() {
            for variant in 0..planned.variants.len() {
                let Some(settled) = wanted(data, clusterer, variant) else { continue };
                let trials = 0..loaded.dataset.trials.len();
                cells.extend(trials.map(|trial| Cell { data, trial, clusterer, variant, option: 0, settled }));
            }
        }
    }
    cells
}

/// The cells that settle grids.
pub(crate) fn tuning_cells(plan: &Plan) -> Vec<Cell> {
    let Some(tune) = &plan.tune else { return Vec::new() };
    cells(plan, |data, clusterer, _| {
        (data == tune.data && plan.clusterers[clusterer].variants.len() > 1).then_some(false)
    })
}

/// The cells of the experiment itself, with the variant chosen for every clusterer that was tuned.
pub(crate) fn test_cells(plan: &Plan, chosen: &Chosen) -> Vec<Cell> {
    let tuned = plan.tune.is_some();
    cells(plan, |data, clusterer, variant| {
        let one = plan.clusterers[clusterer].variants.len() == 1;
        match (plan.data[data].tunes, tuned && !one) {
            (true, _) => None,
            (false, false) => Some(false),
            (false, true) => (chosen.get(&clusterer) == Some(&variant)).then_some(true),
        }
    })
}

/// To count cells before it is known which variant tuning chooses.
pub(crate) fn assume_first(plan: &Plan) -> Chosen {
    (0..plan.clusterers.len()).map(|clusterer| (clusterer, 0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_engine_has_kept_is_not_taken_for_ours() {
        assert!(ENGINE.ends_with(env!("CARGO_PKG_VERSION")));
        let ours = kept_under(ENGINE, &["clusterer", "data"], &[2, 32]);
        assert_eq!(kept_under(ENGINE, &["clusterer", "data"], &[2, 32]), ours);
        assert_ne!(kept_under("compflow-engine 0.0.0", &["clusterer", "data"], &[2, 32]), ours);
        assert_ne!(kept_under(ENGINE, &["clustererdata", ""], &[2, 32]), ours);
        let vectors = !matches!(pulp::Arch::new(), pulp::Arch::Scalar);
        assert_eq!(computes() == ENGINE, vectors, "{}", computes());
    }
}
