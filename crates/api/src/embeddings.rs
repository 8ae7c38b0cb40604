//! A view of examples as rows of a matrix.

use std::ops::Index;

/// Rows of equally many numbers, borrowed, row-major.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Embeddings<'a> {
    values: &'a [f32],
    dim: usize,
}

impl<'a> Embeddings<'a> {
    /// Views `values` as rows of `dim` numbers.
    ///
    /// # Panics
    /// If `dim` is 0 or does not divide the number of values.
    pub fn new(values: &'a [f32], dim: usize) -> Self {
        assert!(dim > 0 && values.len().is_multiple_of(dim), "{} values are not rows of {dim}", values.len());
        Self { values, dim }
    }

    /// Length of a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len() / self.dim
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// One row.
    pub fn row(&self, index: usize) -> &'a [f32] {
        &self.values[index * self.dim..][..self.dim]
    }

    /// The rows in order.
    pub fn rows(&self) -> std::slice::ChunksExact<'a, f32> {
        self.values.chunks_exact(self.dim)
    }

    /// All numbers, row after row.
    pub fn values(&self) -> &'a [f32] {
        self.values
    }
}

impl Index<usize> for Embeddings<'_> {
    type Output = [f32];

    fn index(&self, index: usize) -> &[f32] {
        self.row(index)
    }
}
