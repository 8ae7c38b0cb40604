//! From singletons to the centres of all compositions, and what the sum of squared distances is as a function of the
//! singletons while every example stays with its composition.
//!
//! With N_η the number of examples of a composition η and μ_η their mean,
//!
//! ```text
//! SSD = W + F,    F = Σ_η N_η ‖u_η - μ_η‖²,    u_η = g(m_j : j in η), normalised if the space is
//! ```
//!
//! and W, the scatter around the means, does not depend on the singletons. So F is all that has to be lowered, and it
//! knows the examples by N and μ only. Written like this it loses no digits when the centres are nearly means. Distances
//! may be those of a metric Λ, ‖r‖² = rᵀΛr, and N any weights.

use compflow_api::{
    Composer, Embeddings, Error, Normalize, Result, Services, Sets, Space, compose_sets, compose_sets_vjp,
};

use crate::pairs::dot;

/// The composition function and the space its results go to.
#[derive(Clone, Copy)]
pub struct Model<'a> {
    /// g.
    pub composer: &'a dyn Composer,
    /// Where its results are compared.
    pub space: Space,
    /// p.
    pub dim: usize,
    /// What calls of the composer need.
    pub services: &'a Services<'a>,
}

/// Halvings of a move that diverged.
const MOST_HALVINGS: usize = 30;

/// The composer of a task that may have none: where nothing is composed, none is needed.
///
/// # Errors
/// If the degree is above 1 and there is none.
pub fn composer_of(composer: Option<&dyn Composer>, degree: usize) -> Result<&dyn Composer> {
    struct Nothing;
    impl Composer for Nothing {
        fn compose(
            &self,
            _dim: usize,
            _left: &[f32],
            _right: &[f32],
            _out: &mut [f32],
            _services: &Services<'_>,
        ) -> Result<()> {
            Err(Error::new("composing several needs a composer, and the pipeline has no [composer]"))
        }
    }
    match degree {
        1 => Ok(&Nothing),
        _ => composer.ok_or_else(|| Error::new("needs a composer, and the pipeline has no [composer]")),
    }
}

impl Model<'_> {
    /// The centre of every set, a point of the space.
    ///
    /// # Errors
    /// Those of the composer.
    pub fn centres(&self, singletons: &[f32], sets: &Sets) -> Result<Vec<f32>> {
        let mut centres = compose_sets(self.composer, Embeddings::new(singletons, self.dim), sets, self.services)?;
        self.space.enter(&mut centres, self.dim);
        Ok(centres)
    }

    /// The centres after a move from `from`. Those that have examples are finite, as the descent saw to it; if another is
    /// not, the singletons go back half of their way until all are, in the end to `from`. Also how often they did.
    ///
    /// # Errors
    /// Those of the composer at `from`.
    pub fn settle(&self, singletons: &mut Vec<f32>, from: &[f32], sets: &Sets) -> Result<(Vec<f32>, usize)> {
        for halvings in 0..MOST_HALVINGS {
            match self.centres(singletons, sets) {
                Err(Error::Failed(_)) => {
                    singletons.iter_mut().zip(from).for_each(|(to, from)| *to = *from + (*to - from) / 2.0);
                }
                centres => return Ok((centres?, halvings)),
            }
        }
        *singletons = from.to_vec();
        Ok((self.centres(singletons, sets)?, MOST_HALVINGS))
    }
}

/// F for a fixed assignment.
pub struct Objective<'a> {
    model: Model<'a>,
    /// The compositions that have examples.
    sets: Sets,
    /// N_η.
    counts: Vec<f64>,
    /// μ_η, row-major.
    means: Vec<f64>,
    /// Λ, symmetric; none is the identity.
    metric: Option<Vec<f64>>,
    /// The first singleton that moves.
    first: usize,
}

/// F at some singletons, with what its gradient needs.
pub struct Value {
    /// F.
    pub f: f64,
    /// g of every set, before it is normalised.
    composed: Vec<f32>,
}

impl<'a> Objective<'a> {
    /// Of compositions with these N and μ (points of the space), as Euclid measures.
    pub fn new(model: Model<'a>, sets: Sets, counts: Vec<f64>, means: Vec<f64>) -> Self {
        Self { model, sets, counts, means, metric: None, first: 0 }
    }

    /// The same in the metric Λ.
    #[must_use]
    pub fn in_metric(self, metric: Vec<f64>) -> Self {
        Self { metric: Some(metric), ..self }
    }

    /// The same as a function of the singletons from `first` on; those before it stay where they are.
    #[must_use]
    pub fn moving_from(self, first: usize) -> Self {
        Self { first, ..self }
    }

    /// Λr.
    fn measured(&self, rest: Vec<f64>) -> Vec<f64> {
        let Some(metric) = &self.metric else { return rest };
        metric.chunks_exact(rest.len()).map(|row| dot(row, &rest)).collect()
    }

    /// For every set: its composed vector, its norm if the space normalises (else 1; a zero vector stays as it is,
    /// with norm 0), its count and mean.
    fn each<'s>(&'s self, composed: &'s [f32]) -> impl Iterator<Item = (&'s [f32], f64, f64, &'s [f64])> {
        let dim = self.model.dim;
        let rows = composed.chunks_exact(dim).zip(&self.counts).zip(self.means.chunks_exact(dim));
        rows.map(|((row, &count), mean)| {
            let norm = match self.model.space.normalize {
                Normalize::None => 1.0,
                Normalize::L2 => row.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt(),
            };
            (row, norm, count, mean)
        })
    }

    /// F.
    ///
    /// # Errors
    /// Those of the composer, and a composition that is not finite.
    pub fn value(&self, singletons: &[f32]) -> Result<Value> {
        self.model.services.check_cancelled()?;
        let rows = Embeddings::new(singletons, self.model.dim);
        let composed = compose_sets(self.model.composer, rows, &self.sets, self.model.services)?;
        let f = self
            .each(&composed)
            .map(|(row, norm, count, mean)| {
                let factor = if norm > 0.0 { 1.0 / norm } else { 1.0 };
                let rest: Vec<f64> = row.iter().zip(mean).map(|(&m, mean)| f64::from(m) * factor - mean).collect();
                let measured = self.measured(rest.clone());
                count * rest.iter().zip(&measured).map(|(a, b)| a * b).sum::<f64>()
            })
            .sum();
        Ok(Value { f, composed })
    }

    /// ∂F/∂m of every singleton, row-major; 0 of those that stay.
    ///
    /// # Errors
    /// Those of the composer, and a gradient that is not finite.
    pub fn gradient(&self, singletons: &[f32], value: &Value) -> Result<Vec<f64>> {
        let dim = self.model.dim;
        let mut grad = Vec::with_capacity(value.composed.len());
        for (row, norm, count, mean) in self.each(&value.composed) {
            let start = grad.len();
            let factor = if norm > 0.0 { 1.0 / norm } else { 1.0 };
            let rest = row.iter().zip(mean).map(|(&m, mean)| f64::from(m) * factor - mean).collect();
            grad.extend(self.measured(rest).iter().map(|measured| 2.0 * count * measured));
            if self.model.space.normalize == Normalize::L2 {
                // u = m/‖m‖ turns only: what points along u is lost, and the rest is divided by ‖m‖.
                let grad = &mut grad[start..];
                let along: f64 = grad.iter().zip(row).map(|(grad, &m)| grad * f64::from(m) * factor).sum();
                for (grad, &m) in grad.iter_mut().zip(row) {
                    *grad = if norm > 0.0 { (*grad - along * f64::from(m) * factor) / norm } else { 0.0 };
                }
            }
        }
        // The composer takes f32: a common factor keeps large numbers finite and small ones precise.
        let largest = grad.iter().fold(0.0, |largest: f64, grad| largest.max(grad.abs()));
        if largest == 0.0 {
            return Ok(vec![0.0; singletons.len()]);
        }
        let narrow: Vec<f32> = grad.iter().map(|grad| (grad / largest) as f32).collect();
        let rows = Embeddings::new(singletons, dim);
        let pulled = compose_sets_vjp(self.model.composer, rows, &self.sets, &narrow, self.model.services)
            .map_err(|error| error.context("gradients of the composer"))?;
        let mut pulled: Vec<f64> = pulled.iter().map(|&grad| f64::from(grad) * largest).collect();
        pulled[..self.first * dim].fill(0.0);
        match pulled.iter().find(|grad| !grad.is_finite()) {
            None => Ok(pulled),
            Some(grad) => Err(Error::new(format!("the composer's gradient is {grad}"))),
        }
    }

    /// A rough 1/∂²F for every singleton, as if g added up its members: half the inverse number of examples in whose
    /// set it is, by the metric's mean. In a space that normalises, moving m by its own length turns u by about one. 0 if it is in no set.
    pub fn inverse_curvatures(&self, singletons: &[f32]) -> Vec<f64> {
        let mut examples = vec![0.0; singletons.len() / self.model.dim];
        for (set, count) in self.sets.iter().zip(&self.counts) {
            set.iter().for_each(|&member| examples[member as usize] += count);
        }
        let dim = self.model.dim;
        let unit =
            self.metric.as_ref().map_or(1.0, |metric| metric.iter().step_by(dim + 1).sum::<f64>() / dim as f64);
        let rows = singletons.chunks_exact(dim);
        rows.zip(examples)
            .map(|(row, examples)| {
                let squared = match self.model.space.normalize {
                    Normalize::None => 1.0,
                    Normalize::L2 => row.iter().map(|&value| f64::from(value).powi(2)).sum(),
                };
                if examples > 0.0 { squared / (2.0 * examples * unit) } else { 0.0 }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::composers::Plain;
    use crate::testing::examples;

    use super::*;

    const DIM: usize = 5;
    const K: usize = 4;

    /// F as it is written, in f64 throughout.
    fn naive(g: &Plain, singletons: &[f64], objective: &Objective<'_>) -> f64 {
        let mut f = 0.0;
        for (at, set) in objective.sets.iter().enumerate() {
            let mut u = g.compose_set(singletons, DIM, set);
            if objective.model.space.normalize == Normalize::L2 {
                let norm = u.iter().map(|value| value * value).sum::<f64>().sqrt();
                u.iter_mut().for_each(|value| *value /= norm);
            }
            let mean = &objective.means[at * DIM..][..DIM];
            let rest: Vec<f64> = u.iter().zip(mean).map(|(u, mean)| u - mean).collect();
            for (i, j) in (0..DIM).flat_map(|i| (0..DIM).map(move |j| (i, j))) {
                let metric = objective.metric.as_ref().map_or(f64::from(u8::from(i == j)), |m| m[i * DIM + j]);
                f += objective.counts[at] * rest[i] * metric * rest[j];
            }
        }
        f
    }

    #[test]
    fn value_and_gradient_are_those_of_central_differences_for_every_composer() {
        let singletons = examples::uniform(K, DIM, 1);
        let wide: Vec<f64> = singletons.iter().map(|&value| f64::from(value)).collect();
        for g in [Plain::Max, Plain::Sum, Plain::Mean, Plain::bilinear(DIM, 1)] {
            for degree in [1, 2, 3] {
                for normalize in [Normalize::None, Normalize::L2] {
                    let space = Space { normalize, ..Space::default() };
                    let model = Model { composer: &g, space, dim: DIM, services: &Services::none() };
                    let sets = Sets::all_up_to(K, degree);
                    let counts: Vec<f64> = (0..sets.len()).map(|at| (at * 7 % 5) as f64 + 1.0).collect();
                    let means = examples::uniform(sets.len(), DIM, 2).iter().map(|&v| f64::from(v)).collect();
                    let mut objective = Objective::new(model, sets, counts, means);
                    if degree == 2 {
                        // A matrix times its transpose.
                        let half = examples::uniform(DIM, DIM, 3);
                        let product = |at: usize| -> f64 {
                            let row = |row: usize| half[row * DIM..][..DIM].iter().map(|&v| f64::from(v));
                            row(at / DIM).zip(row(at % DIM)).map(|(a, b)| a * b).sum()
                        };
                        objective = objective.in_metric((0..DIM * DIM).map(product).collect());
                    }

                    let value = objective.value(&singletons).unwrap();
                    let expected = naive(&g, &wide, &objective);
                    assert!((value.f - expected).abs() < 1e-5 * expected, "{g:?} {degree} {normalize:?}");
                    let found = objective.gradient(&singletons, &value).unwrap();
                    let largest = found.iter().fold(0.0, |largest: f64, g| largest.max(g.abs()));
                    for (at, found) in found.iter().enumerate() {
                        let moved = |by: f64| {
                            let mut moved = wide.clone();
                            moved[at] += by;
                            naive(&g, &moved, &objective)
                        };
                        let expected = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                        assert!(
                            (found - expected).abs() < 1e-5 * largest,
                            "{g:?} {degree} {normalize:?}: {found} instead of {expected}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn huge_and_tiny_numbers_have_gradients() {
        for size in [1e30, 1e-30] {
            let singletons = [size as f32, 0.0];
            let model =
                Model { composer: &Plain::Sum, space: Space::default(), dim: 2, services: &Services::none() };
            let objective = Objective::new(model, Sets::all_up_to(1, 1), vec![1e9], vec![0.0, 0.0]);
            let value = objective.value(&singletons).unwrap();
            let grad = objective.gradient(&singletons, &value).unwrap();
            assert!((grad[0] / (2e9 * size) - 1.0).abs() < 1e-6 && grad[1] == 0.0, "{grad:?}");
        }
    }
}
