//! λ by cross-validation: the one whose g comes nearest to unions that were held out. What is judged on a fold has a λ of its
//! own, in which the fold had no say.

use compflow_api::Sets;

use super::design::{Design, predict};
use super::folds::{Fold, Folds};
use super::labelled::{Labelled, squared};
use super::parallel;
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::observer::Progress;

/// What is tried, from nothing but the scaled sum to hardly any restraint. A λ of 1 restrains as much as all unions pull.
pub(super) const GRID: [f64; 14] =
    [f64::INFINITY, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001];

/// ‖g - x̄‖² of unions that were held out, as points of the space, for every λ of the grid.
#[derive(Debug)]
pub(super) struct Errors {
    /// By union; none for one that is in no fold's test.
    of: Vec<Option<[f64; GRID.len()]>>,
    /// w of every union.
    weights: Vec<f64>,
}

impl Errors {
    /// Predicts every union that is held out.
    ///
    /// # Errors
    /// If a λ is too small, or the work is no longer wanted.
    pub(super) fn new(
        labelled: &Labelled,
        design: &Design,
        folds: &Folds,
        threads: usize,
        cancel: &Cancel,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let unions = labelled.unions();
        let of_folds = parallel::map(folds.folds.len(), threads, cancel, progress, |fold| {
            let fold = &folds.folds[fold];
            let ridge = design.fit(&fold.train);
            let mut errors = vec![[0.0; GRID.len()]; fold.test.len()];
            for (column, lambda) in GRID.iter().enumerate() {
                if cancel.requested() {
                    return Err(Error::Interrupted);
                }
                let g = ridge.solve(*lambda)?;
                let mut errors = errors.iter_mut();
                for tests in fold.test.chunk_by(|a, b| unions[*a].0 == unions[*b].0) {
                    let group = &labelled.groups[unions[tests[0]].0];
                    let members: Sets = tests.iter().map(|&at| &group.sets[unions[at].1].members).collect();
                    let mut predicted = predict(&g, group, &members, labelled.dim)?;
                    labelled.space.enter(&mut predicted, labelled.dim);
                    let predicted = predicted.chunks_exact(labelled.dim);
                    for ((&at, predicted), errors) in tests.iter().zip(predicted).zip(errors.by_ref()) {
                        errors[column] = squared(predicted, &group.sets[unions[at].1].point);
                    }
                }
            }
            Ok(errors)
        })?;
        let mut of = vec![None; unions.len()];
        for (fold, errors) in folds.folds.iter().zip(of_folds) {
            fold.test.iter().zip(errors).for_each(|(&at, errors)| of[at] = Some(errors));
        }
        Ok(Self { of, weights: design.weights.clone() })
    }

    /// The weighted mean over some unions, for every λ; none if none of them was held out.
    fn mean(&self, unions: impl Iterator<Item = usize>) -> Option<[f64; GRID.len()]> {
        let (mut sums, mut total) = ([0.0; GRID.len()], 0.0);
        for (errors, weight) in unions.filter_map(|at| Some((self.of[at].as_ref()?, self.weights[at]))) {
            sums.iter_mut().zip(errors).for_each(|(sum, error)| *sum += weight * error);
            total += weight;
        }
        (total > 0.0).then(|| sums.map(|sum| sum / total))
    }

    /// The mean over all unions, for every λ.
    pub(super) fn curve(&self) -> [f64; GRID.len()] {
        self.mean(0..self.of.len()).unwrap_or_default()
    }

    /// The λ for a g that is judged on what a fold holds out: by the unions that it learns from, as these were predicted when
    /// they were held out themselves.
    pub(super) fn lambda_without(&self, fold: &Fold) -> f64 {
        best(&self.mean(fold.train.iter().copied()).unwrap_or_else(|| self.curve()))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_fold_holds_out_has_no_say_in_its_lambda() {
        // The first two unions want the second λ, the last one the third, and loudly.
        let errors = |at: usize, error: f64| {
            let mut errors = [5.0; GRID.len()];
            errors[at] = error;
            Some(errors)
        };
        let of = vec![errors(1, 4.0), errors(1, 4.0), errors(2, 0.0), None];
        let errors = Errors { of, weights: vec![1.0; 4] };
        let fold = |train: &[usize]| Fold { train: train.to_vec(), test: vec![2], labels: Vec::new() };
        assert_eq!(best(&errors.curve()), GRID[2]);
        assert_eq!(errors.lambda_without(&fold(&[0, 1, 3])), GRID[1]);
        assert_eq!(errors.lambda_without(&fold(&[3])), GRID[2], "nothing else is known");
    }
}
