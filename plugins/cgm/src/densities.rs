//! The log-density of examples under every set.
//!
//! ```text
//! log π_c N(x; u_c, Σ) = log π_c - ½ (p log 2π + log|Σ| + ‖F(x - u_c)‖²),    FᵀF = Σ⁻¹
//! ```
//!
//! Rows are multiplied with F first; what is left are distances of whitened points, with every digit.

use compflow_api::{self as api, Result, Sets};
use compflow_kernels::frame::Frame;
use ndarray::{Array1, Array2, ArrayView2};

use crate::covariance::Covariance;
use crate::mixture::Mixture;

/// A mixture, prepared for densities.
pub(crate) struct Densities {
    sets: Component,
    /// What does not depend on x of every set's log-density.
    offsets: Vec<f64>,
    /// The outliers' component, and log π₀.
    outliers: Option<(Component, f64)>,
}

/// Centres with a common covariance.
struct Component {
    /// Fᵀ.
    factor: Array2<f64>,
    /// Fu of every centre, one per column.
    centres: Array2<f64>,
    norms: Array1<f64>,
    /// -½(p log 2π + log|Σ|).
    log_norm: f64,
}

impl Component {
    fn new(covariance: &Covariance, centres: &[f64], dim: usize) -> Result<Self> {
        let factor = ArrayView2::from_shape((dim, dim), &covariance.factor)?.t().to_owned();
        let centres = ArrayView2::from_shape((centres.len() / dim, dim), centres)?.dot(&factor);
        let norms = centres.outer_iter().map(|centre| centre.dot(&centre)).collect();
        let log_norm = -0.5 * (dim as f64 * libm::log(std::f64::consts::TAU) + covariance.log_det);
        Ok(Self { factor, centres: centres.t().to_owned(), norms, log_norm })
    }

    /// The log-density of every row at every centre.
    fn log_densities(&self, rows: &Array2<f64>) -> Array2<f64> {
        let white = rows.dot(&self.factor);
        let mut logs = white.dot(&self.centres);
        for (row, mut logs) in white.outer_iter().zip(logs.outer_iter_mut()) {
            let own = row.dot(&row);
            logs.iter_mut().zip(&self.norms).for_each(|(log, norm)| {
                *log = self.log_norm - 0.5 * (own - 2.0 * *log + norm).max(0.0);
            });
        }
        logs
    }
}

impl Densities {
    pub(crate) fn new(mixture: &Mixture, dim: usize) -> Result<Self> {
        let offsets = mixture.log_weights.iter().zip(&mixture.slack).map(|(log, slack)| log - slack).collect();
        let outliers = match &mixture.outliers {
            None => None,
            Some(known) => Some((Component::new(&known.covariance, &known.centre, dim)?, known.log_weight)),
        };
        Ok(Self { sets: Component::new(&mixture.covariance, &mixture.centres, dim)?, offsets, outliers })
    }

    /// log π₀.
    pub(crate) fn log_outlier(&self) -> f64 {
        self.outliers.as_ref().map_or(f64::NEG_INFINITY, |(_, log)| *log)
    }

    /// log π·density of every row and set; of outliers in a last column, if there may be any.
    pub(crate) fn log_joint(&self, rows: &Array2<f64>) -> Array2<f64> {
        let mut logs = self.sets.log_densities(rows);
        for mut logs in logs.outer_iter_mut() {
            logs.iter_mut().zip(&self.offsets).for_each(|(log, offset)| *log += offset);
        }
        let Some((component, log_weight)) = &self.outliers else { return logs };
        let mut joint = Array2::zeros((rows.nrows(), self.offsets.len() + 1));
        joint.slice_mut(ndarray::s![.., ..self.offsets.len()]).assign(&logs);
        let outliers = component.log_densities(rows) + *log_weight;
        joint.column_mut(self.offsets.len()).assign(&outliers.column(0));
        joint
    }

    /// The same in the coordinates of the space, for new examples: F and u there are scale·F and the centres that the
    /// frame restores. None if the data are so small or large that 32 bits do not hold them.
    pub(crate) fn handed_on(&self, mixture: &Mixture, sets: &Sets, frame: &Frame) -> api::Densities {
        let dim = self.sets.factor.nrows();
        let unit = dim as f64 * libm::log(frame.scale());
        let lower = |covariance: &Covariance| -> Vec<f32> {
            let rows = covariance.factor.chunks_exact(dim).enumerate();
            rows.flat_map(|(at, row)| &row[..=at]).map(|value| (value * frame.scale()) as f32).collect()
        };
        let restored = |centre| frame.mean(centre, 1.0).map(|value| value as f32);
        let mut handed = api::Densities {
            sets: sets.clone(),
            centres: mixture.centres.chunks_exact(dim).flat_map(restored).collect(),
            offsets: self.offsets.iter().map(|offset| offset + self.sets.log_norm + unit).collect(),
            factor_of: vec![0; sets.len()],
            factors: lower(&mixture.covariance),
        };
        if let (Some(known), Some((component, log_weight))) = (&mixture.outliers, &self.outliers) {
            handed.sets.push(&[]);
            handed.centres.extend(restored(&known.centre[..]));
            handed.offsets.push(log_weight + component.log_norm + unit);
            handed.factor_of.push(1);
            handed.factors.extend(lower(&known.covariance));
        }
        match handed.factors.iter().all(|value| value.is_finite()) {
            true => handed,
            false => api::Densities::default(),
        }
    }
}
