//! Descent by Adam: the authors' procedure.
//!
//! Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015, doi:10.48550/arXiv.1412.6980, with the
//! paper's decay rates; the loss is √SSD.

use compflow_api::{Error, Result};

use compflow_kernels::objective::Objective;

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const EPSILON: f64 = 1e-8;
/// Halvings of the learning rate before a step is given up.
const MOST_HALVINGS: usize = 30;

/// What Adam remembers of one restart.
#[derive(Debug, Clone)]
pub(crate) struct Adam {
    lr: f64,
    mean: Vec<f64>,
    square: Vec<f64>,
    /// β₁ᵗ and β₂ᵗ.
    decay: (f64, f64),
}

impl Adam {
    pub(crate) fn new(lr: f64, len: usize) -> Self {
        Self { lr, mean: vec![0.0; len], square: vec![0.0; len], decay: (1.0, 1.0) }
    }

    /// One step; `rest` is what is missing from F to the SSD. The learning rate is halved, for good, as often as it
    /// leads to where the composer gives no finite number; returns how often that was.
    ///
    /// # Errors
    /// Those of the composer where the singletons are.
    pub(crate) fn step(
        &mut self,
        objective: &Objective<'_>,
        rest: f64,
        singletons: &mut Vec<f32>,
    ) -> Result<usize> {
        let value = objective.value(singletons)?;
        let root = (rest + value.f).max(0.0).sqrt();
        if root == 0.0 {
            return Ok(0);
        }
        let grad = objective.gradient(singletons, &value)?;
        self.decay = (self.decay.0 * BETA1, self.decay.1 * BETA2);
        let mut direction = Vec::with_capacity(grad.len());
        for ((mean, square), grad) in self.mean.iter_mut().zip(&mut self.square).zip(grad) {
            let grad = grad / (2.0 * root);
            *mean = BETA1 * *mean + (1.0 - BETA1) * grad;
            *square = BETA2 * *square + (1.0 - BETA2) * grad * grad;
            let (mean, square) = (*mean / (1.0 - self.decay.0), *square / (1.0 - self.decay.1));
            direction.push(mean / (square.sqrt() + EPSILON));
        }
        for halvings in 0..MOST_HALVINGS {
            let moved: Vec<f32> = singletons
                .iter()
                .zip(&direction)
                .map(|(&from, direction)| (f64::from(from) - self.lr * direction) as f32)
                .collect();
            match objective.value(&moved) {
                Ok(value) if value.f.is_finite() => {
                    *singletons = moved;
                    return Ok(halvings);
                }
                Err(Error::Cancelled) => return Err(Error::Cancelled),
                _ => self.lr /= 2.0,
            }
        }
        Ok(MOST_HALVINGS)
    }
}

#[cfg(test)]
mod tests {
    use compflow_api::{NoHost, Services, Sets, Space};
    use compflow_kernels::testing::composers::Plain;

    use super::*;
    use compflow_kernels::objective::Model;

    const NONE: Services<'static> = Services { host: &NoHost, seed: 0, threads: 1, memory: u64::MAX };

    fn objective() -> Objective<'static> {
        let model = Model { composer: &Plain::Sum, space: Space::default(), dim: 1, services: &NONE };
        Objective::new(model, Sets::all_up_to(2, 2), vec![1.0; 3], vec![1.0, 2.0, 6.0])
    }

    #[test]
    fn the_first_step_is_as_long_as_the_learning_rate() {
        let mut singletons = vec![0.0, 10.0];
        Adam::new(0.25, 2).step(&objective(), 0.0, &mut singletons).unwrap();
        // Downhill: ∂F/∂a = 2(a-1 + a+b-6) > 0 and ∂F/∂b > 0.
        assert!((singletons[0] + 0.25).abs() < 1e-6 && (singletons[1] - 9.75).abs() < 1e-6, "{singletons:?}");
    }

    #[test]
    fn many_steps_come_near_the_minimum() {
        let (mut adam, mut singletons) = (Adam::new(0.05, 2), vec![0.0, 10.0]);
        for _ in 0..3000 {
            adam.step(&objective(), 5.0, &mut singletons).unwrap();
        }
        assert!((singletons[0] - 2.0).abs() < 1e-2 && (singletons[1] - 3.0).abs() < 1e-2, "{singletons:?}");
    }

    #[test]
    fn a_step_out_of_all_numbers_halves_the_learning_rate() {
        let (mut adam, mut singletons) = (Adam::new(1e39, 2), vec![0.0, 10.0]);
        let halvings = adam.step(&objective(), 0.0, &mut singletons).unwrap();
        assert!(halvings > 0 && adam.lr < 1e39 && singletons.iter().all(|value| value.is_finite()));
    }
}
