//! λ by cross-validation: the one whose g comes nearest to unions that were held out.

use compflow_api::Sets;

use super::design::{Design, predict};
use super::folds::Folds;
use super::labelled::{Labelled, squared};
use super::parallel;
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::observer::Progress;

/// What is tried, from nothing but the scaled sum to hardly any restraint. A λ of 1 restrains as much as all unions pull.
pub(super) const GRID: [f64; 14] =
    [f64::INFINITY, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001];

/// For every λ of the grid the weighted mean of ‖g - x̄‖² over unions that were held out, as points of the space.
pub(super) fn errors(
    labelled: &Labelled,
    design: &Design,
    folds: &Folds,
    threads: usize,
    cancel: &Cancel,
    progress: &dyn Progress,
) -> Result<[f64; GRID.len()]> {
    let unions = labelled.unions();
    let of_folds = parallel::map(folds.folds.len(), threads, cancel, progress, |fold| {
        let fold = &folds.folds[fold];
        let ridge = design.fit(&fold.train);
        let mut errors = [0.0; GRID.len()];
        for (lambda, error) in GRID.iter().zip(&mut errors) {
            if cancel.requested() {
                return Err(Error::Interrupted);
            }
            let g = ridge.solve(*lambda)?;
            for tests in fold.test.chunk_by(|a, b| unions[*a].0 == unions[*b].0) {
                let group = &labelled.groups[unions[tests[0]].0];
                let members: Sets = tests.iter().map(|&at| &group.sets[unions[at].1].members).collect();
                let mut predicted = predict(&g, group, &members, labelled.dim)?;
                labelled.space.enter(&mut predicted, labelled.dim);
                for (&at, predicted) in tests.iter().zip(predicted.chunks_exact(labelled.dim)) {
                    *error += design.weights[at] * squared(predicted, &group.sets[unions[at].1].point);
                }
            }
        }
        Ok(errors)
    })?;
    let weight: f64 = folds.folds.iter().flat_map(|fold| &fold.test).map(|&at| design.weights[at]).sum();
    let mut mean = [0.0; GRID.len()];
    for errors in of_folds {
        mean.iter_mut().zip(errors).for_each(|(mean, error)| *mean += error / weight);
    }
    Ok(mean)
}

/// The λ with the smallest error; of equals, the one that restrains most.
pub(super) fn best(errors: &[f64; GRID.len()]) -> f64 {
    let mut best = (GRID[0], errors[0]);
    for (lambda, error) in GRID.into_iter().zip(*errors) {
        if error < best.1 * (1.0 - 1e-9) {
            best = (lambda, error);
        }
    }
    best.0
}
