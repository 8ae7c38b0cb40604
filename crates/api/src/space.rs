//! The space in which distances are taken: normalisation and distance.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Embeddings, abi};

/// What is done to a vector before distances are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u32)]
pub enum Normalize {
    /// Nothing.
    #[default]
    None = abi::NORMALIZE_NONE,
    /// Division by its Euclidean norm; the zero vector stays.
    L2 = abi::NORMALIZE_L2,
}

/// How far two points are from one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u32)]
pub enum Distance {
    /// Squared Euclidean.
    #[default]
    SqEuclidean = abi::DISTANCE_SQEUCLIDEAN,
    /// Euclidean.
    Euclidean = abi::DISTANCE_EUCLIDEAN,
}

/// Normalisation and distance, as the pipeline's `space` sets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Space {
    /// What is done to a vector before distances are taken.
    pub normalize: Normalize,
    /// How far two points are from one another.
    pub distance: Distance,
}

impl Space {
    /// Brings vectors into the space, in place. Composers take vectors as they are *before* this step, and what
    /// they return goes through it.
    pub fn enter(&self, rows: &mut [f32], dim: usize) {
        if self.normalize == Normalize::L2 {
            for row in rows.chunks_exact_mut(dim) {
                let norm = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
                if norm > 0.0 {
                    row.iter_mut().for_each(|x| *x = (f64::from(*x) / norm) as f32);
                }
            }
        }
    }

    /// The rows as points of the space; a copy only if it normalises.
    pub fn points<'a>(&self, rows: Embeddings<'a>) -> Cow<'a, [f32]> {
        let mut points = Cow::Borrowed(rows.values());
        if self.normalize != Normalize::None {
            self.enter(points.to_mut(), rows.dim());
        }
        points
    }

    /// The distance of two points of the space.
    pub fn distance(&self, a: &[f32], b: &[f32]) -> f64 {
        let squared: f64 = a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum();
        match self.distance {
            Distance::SqEuclidean => squared,
            Distance::Euclidean => squared.sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_normalised_only_where_asked_and_zero_stays() {
        let values = [3.0, 4.0, 0.0, 0.0];
        let rows = Embeddings::new(&values, 2);
        assert_eq!(*Space::default().points(rows), values);
        let unit = Space { normalize: Normalize::L2, ..Space::default() };
        assert_eq!(*unit.points(rows), [0.6, 0.8, 0.0, 0.0]);
    }

    #[test]
    fn distances_are_as_named() {
        let squared = Space::default();
        let plain = Space { distance: Distance::Euclidean, ..squared };
        assert_eq!(squared.distance(&[1.0, 1.0], &[4.0, 5.0]), 25.0);
        assert_eq!(plain.distance(&[1.0, 1.0], &[4.0, 5.0]), 5.0);
    }
}
