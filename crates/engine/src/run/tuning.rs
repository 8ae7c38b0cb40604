//! Settling grids.

use std::collections::BTreeMap;

use super::row::Row;
use crate::observer::Observer;
use crate::plan::Plan;
use crate::plan::cell::{Chosen, assume_first, test_cells};

/// For every tuned clusterer the variant with the best mean of the tuning metric; the first of equals. Variants that
/// failed on any trial are not chosen.
pub(crate) fn settle(plan: &Plan, rows: &[Row]) -> Chosen {
    let Some(tune) = &plan.tune else { return Chosen::new() };
    let mut scores: BTreeMap<(usize, usize), Vec<Option<f64>>> = BTreeMap::new();
    for row in rows {
        let brief = row.brief.as_ref().filter(|_| row.error.is_none());
        let score = brief.and_then(|brief| brief.score(plan, &tune.metric.name));
        scores.entry((row.cell.clusterer, row.cell.variant)).or_default().push(score);
    }
    let mut best: BTreeMap<usize, (f64, usize)> = BTreeMap::new();
    for ((clusterer, variant), scores) in scores {
        let Some(scores) = scores.into_iter().collect::<Option<Vec<f64>>>() else { continue };
        let mean = scores.iter().sum::<f64>() / scores.len() as f64;
        let merit = if tune.metric.larger_is_better { mean } else { -mean };
        if best.get(&clusterer).is_none_or(|(known, _)| merit > *known) {
            best.insert(clusterer, (merit, variant));
        }
    }
    best.into_iter().map(|(clusterer, (_, variant))| (clusterer, variant)).collect()
}

/// Says what tuning chose.
pub(super) fn announce(plan: &Plan, chosen: &Chosen, observer: &dyn Observer) {
    for (clusterer, variant) in chosen {
        let planned = &plan.clusterers[*clusterer];
        let choice = planned.variants[*variant].label.strip_prefix(planned.name.as_str()).unwrap_or_default();
        observer.tuned(&planned.name, choice);
    }
}

/// Rows for the cells of clusterers that tuning could not settle, so that they are missing nowhere.
pub(super) fn unsettled(plan: &Plan, chosen: &Chosen, rows: &[Row]) -> Vec<Row> {
    if plan.tune.is_none() {
        return Vec::new();
    }
    let first = assume_first(plan);
    let missing = first.into_iter().filter(|(clusterer, _)| {
        plan.clusterers[*clusterer].variants.len() > 1 && !chosen.contains_key(clusterer)
    });
    let mut failed: BTreeMap<usize, &str> = BTreeMap::new();
    for row in rows {
        if let Some(error) = &row.error {
            failed.entry(row.cell.clusterer).or_insert(error);
        }
    }
    test_cells(plan, &missing.collect())
        .into_iter()
        .filter(|cell| cell.settled)
        .map(|cell| {
            let why = failed.get(&cell.clusterer).unwrap_or(&"no grid point was scored");
            let error = Some(format!("every grid point failed on some tuning trial: {why}"));
            Row { error, ..Row::unfinished(cell) }
        })
        .collect()
}
