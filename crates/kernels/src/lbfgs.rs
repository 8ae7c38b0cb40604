//! Descent between two assignments: limited-memory BFGS with backtracking.
//!
//! Written here rather than taken from a crate of optimisers because three things are particular to F: the singletons
//! are f32 (composers take no other numbers), so steps are rounded before they are judged; the first metric is known
//! (one number per singleton, exact when degree = 1, where one step reaches the means); and a step to where the
//! composer gives no finite number is not an error but too long.
//!
//! Nocedal and Wright, "Numerical Optimization", 2nd edition, 2006, algorithms 3.1 and 7.4.

use std::collections::VecDeque;

use compflow_api::{Error, Result};

use crate::objective::{Objective, Value};

/// Pairs of moves and changes of the gradient that are remembered.
const MEMORY: usize = 8;
/// Part of the expected decrease that a step must bring.
const SUFFICIENT: f64 = 1e-4;
/// Shortenings of a step before it is given up.
const MOST_SHORTENINGS: usize = 30;

/// When to stop.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Steps at most.
    pub steps: usize,
    /// A step that lowers F by less ends the descent.
    pub least: f64,
    /// So does a step that lowers it by less than this part of what all steps did.
    pub part: f64,
}

/// What a descent did.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Descent {
    /// F before it.
    pub from: f64,
    /// F after it.
    pub to: f64,
    /// Steps that diverged (to no finite number) and were shortened.
    pub diverged: usize,
}

/// A move, how it changed the gradient, and 1/(move·change).
struct Pair {
    moved: Vec<f64>,
    change: Vec<f64>,
    rho: f64,
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Lowers F by moving the singletons. F never rises.
///
/// # Errors
/// Those of the composer where the singletons are; not those of places that a step would lead to.
pub fn descend(objective: &Objective<'_>, singletons: &mut Vec<f32>, limits: Limits) -> Result<Descent> {
    let metric = objective.inverse_curvatures(singletons);
    let dim = singletons.len() / metric.len();
    let mut value = objective.value(singletons)?;
    let mut grad = objective.gradient(singletons, &value)?;
    let mut done = Descent { from: value.f, to: value.f, diverged: 0 };
    let mut pairs: VecDeque<Pair> = VecDeque::with_capacity(MEMORY);
    let mut steps = 0;
    while steps < limits.steps {
        let mut direction = turn(&grad, &pairs, &metric, dim);
        let mut slope = dot(&grad, &direction);
        if slope >= 0.0 && !pairs.is_empty() {
            pairs.clear();
            direction = turn(&grad, &pairs, &metric, dim);
            slope = dot(&grad, &direction);
        }
        if slope >= 0.0 {
            break;
        }
        let Some((moved, next)) = search(objective, singletons, &value, &direction, slope, &mut done)? else {
            if pairs.is_empty() {
                break;
            }
            // What was remembered misled; the plain direction may do.
            pairs.clear();
            continue;
        };
        steps += 1;
        let next_grad = objective.gradient(&moved, &next)?;
        let step: Vec<f64> =
            moved.iter().zip(&*singletons).map(|(&to, &from)| f64::from(to) - f64::from(from)).collect();
        let change: Vec<f64> = next_grad.iter().zip(&grad).map(|(to, from)| to - from).collect();
        let curvature = dot(&step, &change);
        if curvature > 1e-12 * (dot(&step, &step) * dot(&change, &change)).sqrt() {
            if pairs.len() == MEMORY {
                pairs.pop_front();
            }
            pairs.push_back(Pair { moved: step, change, rho: 1.0 / curvature });
        }
        let decrease = value.f - next.f;
        debug_assert!(decrease >= 0.0, "a step raised F by {}", -decrease);
        (*singletons, value, grad) = (moved, next, next_grad);
        done.to = value.f;
        if decrease <= limits.least || decrease <= limits.part * (done.from - done.to) {
            break;
        }
    }
    Ok(done)
}

/// The direction in which to go: -H·grad, with H from the remembered pairs and the first metric.
fn turn(grad: &[f64], pairs: &VecDeque<Pair>, metric: &[f64], dim: usize) -> Vec<f64> {
    let mut direction: Vec<f64> = grad.iter().map(|grad| -grad).collect();
    let mut weights = Vec::with_capacity(pairs.len());
    for pair in pairs.iter().rev() {
        let weight = pair.rho * dot(&pair.moved, &direction);
        direction.iter_mut().zip(&pair.change).for_each(|(to, change)| *to -= weight * change);
        weights.push(weight);
    }
    let scale = pairs.back().map_or(1.0, |pair| {
        let squared: f64 =
            pair.change.chunks_exact(dim).zip(metric).map(|(change, metric)| metric * dot(change, change)).sum();
        if squared > 0.0 { 1.0 / (pair.rho * squared) } else { 1.0 }
    });
    for (row, metric) in direction.chunks_exact_mut(dim).zip(metric) {
        row.iter_mut().for_each(|value| *value *= scale * metric);
    }
    for (pair, weight) in pairs.iter().zip(weights.iter().rev()) {
        let back = weight - pair.rho * dot(&pair.change, &direction);
        direction.iter_mut().zip(&pair.moved).for_each(|(to, moved)| *to += back * moved);
    }
    direction
}

/// Goes in a direction until F is lower by enough (Armijo's rule); none if it is nowhere.
fn search(
    objective: &Objective<'_>,
    from: &[f32],
    value: &Value,
    direction: &[f64],
    slope: f64,
    done: &mut Descent,
) -> Result<Option<(Vec<f32>, Value)>> {
    let mut length = 1.0;
    for _ in 0..MOST_SHORTENINGS {
        let moved: Vec<f32> = from
            .iter()
            .zip(direction)
            .map(|(&from, direction)| (f64::from(from) + length * direction) as f32)
            .collect();
        if moved == from {
            return Ok(None);
        }
        let next = match objective.value(&moved) {
            Ok(next) if next.f.is_finite() => next,
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            _ => {
                done.diverged += 1;
                length *= 0.1;
                continue;
            }
        };
        if next.f <= value.f + SUFFICIENT * length * slope {
            return Ok(Some((moved, next)));
        }
        // The lowest point of the parabola through what is known, within reason.
        let lowest = -slope * length * length / (2.0 * (next.f - value.f - slope * length));
        length = lowest.clamp(0.1 * length, 0.5 * length);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use crate::testing::composers::Plain;
    use crate::testing::examples;
    use compflow_api::{Composer, NoHost, Services, Sets, Space};

    use super::*;
    use crate::objective::Model;

    const NONE: Services<'static> = Services { host: &NoHost, seed: 0, threads: 1, memory: u64::MAX };

    const FAR: Limits = Limits { steps: 1000, least: 0.0, part: 0.0 };

    fn model(composer: &dyn Composer, dim: usize) -> Model<'_> {
        Model { composer, space: Space::default(), dim, services: &NONE }
    }

    #[test]
    fn one_step_reaches_the_means_if_nothing_is_composed() {
        let means: Vec<f64> = examples::uniform(3, 4, 1).iter().map(|&value| f64::from(value)).collect();
        let objective =
            Objective::new(model(&Plain::Sum, 4), Sets::all_up_to(3, 1), vec![1.0, 70.0, 9000.0], means.clone());
        let mut singletons = examples::uniform(3, 4, 2);
        descend(&objective, &mut singletons, Limits { steps: 1, ..FAR }).unwrap();
        for (found, mean) in singletons.iter().zip(means) {
            assert!((f64::from(*found) - mean).abs() < 1e-7);
        }
    }

    #[test]
    fn a_linear_problem_is_solved() {
        // u = a, b, a + b against 1, 2 and 6, once each: the normal equations give a = 2, b = 3.
        let objective =
            Objective::new(model(&Plain::Sum, 1), Sets::all_up_to(2, 2), vec![1.0; 3], vec![1.0, 2.0, 6.0]);
        let mut singletons = vec![-3.0, 20.0];
        let done = descend(&objective, &mut singletons, FAR).unwrap();
        assert!((singletons[0] - 2.0).abs() < 1e-3 && (singletons[1] - 3.0).abs() < 1e-3, "{singletons:?}");
        assert!((done.to - 3.0).abs() < 1e-6 && done.from > done.to);
    }

    #[test]
    fn what_composes_with_a_partner_is_solved_and_the_partner_stays() {
        let means = vec![1.0, 2.0, 6.0, 3.0];
        for (g, expected) in [(Plain::Sum, [2.0, -1.0, 5.0, -4.0]), (Plain::Mean, [3.0, 1.0, 11.0, -1.0])] {
            let sets = Sets::from_iter([[0, 2], [1, 3]]);
            let objective = Objective::new(model(&g, 2), sets, vec![1.0; 2], means.clone()).moving_from(2);
            let mut singletons = vec![-1.0, 3.0, 1.0, 7.0, 0.0, 0.0, 0.0, 0.0];
            descend(&objective, &mut singletons, FAR).unwrap();
            assert_eq!(singletons[..4], [-1.0, 3.0, 1.0, 7.0]);
            for (found, expected) in singletons[4..].iter().zip(expected) {
                assert!((found - expected).abs() < 1e-4, "{g:?} {singletons:?}");
            }
        }
    }

    #[test]
    fn gradients_vanish_where_it_ends() {
        let dim = 6;
        let g = Plain::bilinear(dim, 3);
        for normalize in [compflow_api::Normalize::None, compflow_api::Normalize::L2] {
            let model = Model { space: Space { normalize, ..Space::default() }, ..model(&g, dim) };
            let sets = Sets::all_up_to(4, 3);
            // Near what other singletons compose to, so that no composition has to pass through zero on the way.
            let noise = examples::uniform(sets.len(), dim, 4);
            let centres = model.centres(&examples::uniform(4, dim, 6), &sets).unwrap();
            let means =
                centres.iter().zip(noise).map(|(&centre, noise)| f64::from(centre + 0.1 * noise)).collect();
            let counts = (0..sets.len()).map(|at| 1.0 + at as f64).collect();
            let objective = Objective::new(model, sets, counts, means);
            let mut singletons: Vec<f32> = examples::uniform(4, dim, 6)
                .iter()
                .zip(examples::uniform(4, dim, 5))
                .map(|(a, b)| a + 0.3 * b)
                .collect();
            let size = |singletons: &[f32]| {
                let value = objective.value(singletons).unwrap();
                let grad = objective.gradient(singletons, &value).unwrap();
                dot(&grad, &grad).sqrt()
            };
            let before = size(&singletons);
            let done = descend(&objective, &mut singletons, FAR).unwrap();
            assert!(size(&singletons) < 1e-3 * before, "{normalize:?} {} {before} {done:?}", size(&singletons));
            assert!(done.to < done.from);
        }
    }

    /// Sums, but not beyond 5.
    struct Bounded;

    impl Composer for Bounded {
        fn compose(
            &self,
            _dim: usize,
            left: &[f32],
            right: &[f32],
            out: &mut [f32],
            _services: &Services<'_>,
        ) -> Result<()> {
            for ((out, left), right) in out.iter_mut().zip(left).zip(right) {
                *out = if left + right > 5.0 { f32::NAN } else { left + right };
            }
            Ok(())
        }

        fn vjp(
            &self,
            dim: usize,
            left: &[f32],
            right: &[f32],
            grad: &[f32],
            grad_left: &mut [f32],
            grad_right: &mut [f32],
            services: &Services<'_>,
        ) -> Result<()> {
            Plain::Sum.vjp(dim, left, right, grad, grad_left, grad_right, services)
        }
    }

    #[test]
    fn a_step_that_diverges_is_shortened_and_counted() {
        let objective = Objective::new(model(&Bounded, 1), Sets::from_iter([[0, 1]]), vec![1.0], vec![30.0]);
        let mut singletons = vec![0.0, 1.0];
        let done = descend(&objective, &mut singletons, FAR).unwrap();
        assert!(done.diverged > 0 && done.to < done.from);
        assert!(singletons[0] + singletons[1] <= 5.0);
        let mut singletons = vec![3.0, 4.0];
        let error = descend(&objective, &mut singletons, FAR).unwrap_err();
        assert_eq!(error.to_string(), "composing the set [0, 1] gave NaN");
    }
}
