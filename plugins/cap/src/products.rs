//! Similarities by products: S(x, g) = -(‖x‖² - 2x·g + ‖g‖²), or minus its root.
//!
//! Products and sums are taken in the order of the dimensions and rounded once for both, so a similarity is the same
//! to the last bit however many are computed together and on whichever processor.

use pulp::NullaryFnOnce;

use crate::compositions::LANES;

/// Rows multiplied at a time, so that a vector of compositions is read once for all of them.
const ROWS: usize = 4;

/// Points in vectors of [`LANES`]: coordinate by coordinate, the last of each group filled up.
pub(crate) struct Vectors {
    /// Vector after vector, and in each one row of `LANES` numbers per dimension.
    values: Vec<f32>,
    /// ‖g‖²; infinite where there is none.
    norms: Vec<f32>,
    dim: usize,
}

impl Vectors {
    /// How many bytes a number of vectors takes.
    pub(crate) fn memory(vectors: u64, dim: usize) -> u64 {
        vectors.saturating_mul(4 * LANES as u64).saturating_mul(dim as u64 + 1)
    }

    pub(crate) fn with_capacity(vectors: usize, dim: usize) -> Self {
        let (values, norms) = (Vec::with_capacity(vectors * LANES * dim), Vec::with_capacity(vectors * LANES));
        Self { values, norms, dim }
    }

    /// Appends row-major points, and fills up.
    pub(crate) fn push(&mut self, points: &[f32]) {
        for group in points.chunks(LANES * self.dim) {
            let start = self.values.len();
            self.values.resize(start + LANES * self.dim, 0.0);
            let mut norms = [f32::INFINITY; LANES];
            for (lane, point) in group.chunks_exact(self.dim).enumerate() {
                for (axis, &value) in point.iter().enumerate() {
                    self.values[start + axis * LANES + lane] = value;
                }
                norms[lane] = squared_norm(point);
            }
            self.norms.extend_from_slice(&norms);
        }
    }

    /// How many vectors.
    pub(crate) fn len(&self) -> usize {
        self.norms.len() / LANES
    }

    /// Where the values of a vector begin, and its norms.
    #[inline(always)]
    fn at(&self, vector: usize) -> (&[f32], &[f32]) {
        let size = LANES * self.dim;
        (&self.values[vector * size..][..size], &self.norms[vector * LANES..][..LANES])
    }
}

#[inline(always)]
pub(crate) fn squared_norm(point: &[f32]) -> f32 {
    point.iter().fold(0.0f32, |sum, value| value.mul_add(*value, sum))
}

/// Some rows to be compared.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    /// Row-major.
    pub(crate) values: &'a [f32],
    /// ‖x‖².
    pub(crate) norms: &'a [f32],
    pub(crate) dim: usize,
    /// Whether distances are not squared.
    pub(crate) rooted: bool,
}

impl<'a> Rows<'a> {
    #[inline(always)]
    pub(crate) fn slice(self, start: usize, len: usize) -> Self {
        Self {
            values: &self.values[start * self.dim..][..len * self.dim],
            norms: &self.norms[start..][..len],
            ..self
        }
    }

    /// The similarity of a row to one of a vector's points.
    #[inline(always)]
    pub(crate) fn similarity(self, row: usize, vectors: &Vectors, vector: usize, lane: usize) -> f32 {
        let (values, norms) = vectors.at(vector);
        let point = &self.values[row * self.dim..][..self.dim];
        let product = point.iter().zip(values[lane..].iter().step_by(LANES));
        let product = product.fold(0.0f32, |sum, (x, g)| x.mul_add(*g, sum));
        similarity(self.norms[row], norms[lane], product, self.rooted)
    }

    /// The similarities of all rows to all vectors, into `out` with `stride` numbers from row to row.
    #[inline(always)]
    pub(crate) fn similarities(self, vectors: &Vectors, out: &mut [f32], stride: usize) {
        let count = self.norms.len();
        let mut row = 0;
        while row + ROWS <= count {
            self.slice(row, ROWS).group::<ROWS>(vectors, &mut out[row * stride..], stride);
            row += ROWS;
        }
        for row in row..count {
            self.slice(row, 1).group::<1>(vectors, &mut out[row * stride..], stride);
        }
    }

    #[inline(always)]
    fn group<const N: usize>(self, vectors: &Vectors, out: &mut [f32], stride: usize) {
        let mut vector = 0;
        while vector + 2 <= vectors.len() {
            self.tile::<N, 2>(vectors, vector, out, stride);
            vector += 2;
        }
        if vector < vectors.len() {
            self.tile::<N, 1>(vectors, vector, out, stride);
        }
    }

    #[inline(always)]
    fn tile<const N: usize, const V: usize>(
        self,
        vectors: &Vectors,
        first: usize,
        out: &mut [f32],
        stride: usize,
    ) {
        let rows: [&[f32]; N] = std::array::from_fn(|row| &self.values[row * self.dim..][..self.dim]);
        let columns: [&[[f32; LANES]]; V] =
            std::array::from_fn(|at| &vectors.at(first + at).0.as_chunks::<LANES>().0[..self.dim]);
        let mut products = [[[0.0f32; LANES]; V]; N];
        for axis in 0..self.dim {
            for (row, products) in rows.iter().zip(&mut products) {
                let value = row[axis];
                for (column, products) in columns.iter().zip(products) {
                    for lane in 0..LANES {
                        products[lane] = value.mul_add(column[axis][lane], products[lane]);
                    }
                }
            }
        }
        for (row, products) in products.iter().enumerate() {
            for (at, products) in products.iter().enumerate() {
                let norms = vectors.at(first + at).1;
                let out = &mut out[row * stride + (first + at) * LANES..][..LANES];
                for lane in 0..LANES {
                    out[lane] = similarity(self.norms[row], norms[lane], products[lane], self.rooted);
                }
            }
        }
    }
}

#[inline(always)]
fn similarity(norm: f32, other: f32, product: f32, rooted: bool) -> f32 {
    let squared = norm + (-2.0f32).mul_add(product, other);
    // Of equal points, rounding may leave less than nothing.
    let squared = if squared > 0.0 { squared } else { 0.0 };
    if rooted { -squared.sqrt() } else { -squared }
}

/// [`Rows::similarities`] as work to be compiled for the processor at hand.
pub(crate) struct Fill<'a> {
    pub(crate) rows: Rows<'a>,
    pub(crate) vectors: &'a Vectors,
    pub(crate) out: &'a mut [f32],
    pub(crate) stride: usize,
}

impl NullaryFnOnce for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.rows.similarities(self.vectors, self.out, self.stride);
    }
}

#[cfg(test)]
mod tests {
    use compflow_kernels::testing::examples;
    use pulp::Arch;

    use super::*;

    #[test]
    fn similarities_are_minus_distances_whichever_way_they_are_computed() {
        for (n, others, dim) in [(1, 1, 1), (5, 17, 3), (9, 40, 32)] {
            let (x, g) = (examples::uniform(n, dim, 1), examples::uniform(others, dim, 2));
            let norms: Vec<f32> = x.chunks_exact(dim).map(squared_norm).collect();
            let mut vectors = Vectors::with_capacity(others.div_ceil(LANES), dim);
            vectors.push(&g);
            for rooted in [false, true] {
                let rows = Rows { values: &x, norms: &norms, dim, rooted };
                let stride = vectors.len() * LANES + 3;
                let mut out = vec![1.0; n * stride];
                Arch::new().dispatch(Fill { rows, vectors: &vectors, out: &mut out, stride });
                for row in 0..n {
                    for at in 0..vectors.len() * LANES {
                        let found = out[row * stride + at];
                        assert_eq!(found, rows.similarity(row, &vectors, at / LANES, at % LANES));
                        if at >= others {
                            assert_eq!(found, f32::NEG_INFINITY);
                            continue;
                        }
                        let difference = |axis: usize| f64::from(x[row * dim + axis] - g[at * dim + axis]);
                        let squared: f64 = (0..dim).map(|axis| difference(axis).powi(2)).sum();
                        let expected = if rooted { -squared.sqrt() } else { -squared };
                        assert!((f64::from(found) - expected).abs() < 1e-5);
                    }
                    assert_eq!(out[row * stride + stride - 1], 1.0);
                }
            }
        }
    }
}
