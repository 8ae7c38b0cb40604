//! Distances by products: ‖x-g‖² = ‖x‖² - 2x·g + ‖g‖², of a few rows at a time with vectors of points.
//!
//! [`multiply`] is the inner loop of everything here that compares examples with centres or compositions: of
//! [`ROWS`] rows with two vectors of [`LANES`] points, as many products as there are registers for. What becomes of the
//! products differs: they are kept as similarities, S(x, g) = -‖x-g‖² or minus its root (here), or only the nearest point
//! is (in [`assign`](crate::assign)).
//!
//! Products and sums are taken in the order of the dimensions and rounded once for both, so a distance is the same
//! to the last bit however many are computed together and on whichever processor. Cost: n·k·p in f32.

use std::ops::Range;

use pulp::{Arch, NullaryFnOnce, Simd, WithSimd};

/// Points in a vector.
pub const LANES: usize = 8;
/// Rows multiplied at a time, so that a vector is read once for all of them.
pub const ROWS: usize = 4;

/// Points in vectors of [`LANES`]: coordinate by coordinate, the last of each group filled up.
pub struct Vectors {
    /// Vector after vector, and in each one row of `LANES` numbers per dimension.
    values: Vec<f32>,
    /// ‖g‖²; infinite where there is none.
    norms: Vec<f32>,
    dim: usize,
}

#[expect(clippy::len_without_is_empty, reason = "nobody compares with none")]
impl Vectors {
    /// Of row-major points of `dim` numbers each.
    pub fn new(points: &[f32], dim: usize) -> Self {
        let mut vectors = Self::with_capacity((points.len() / dim).div_ceil(LANES), dim);
        vectors.push(points);
        vectors
    }

    /// Of row-major vectors g with other numbers in place of ‖g‖², one for each: for comparisons by any function of x that
    /// is linear but for what all have in common.
    pub fn with_offsets(points: &[f32], offsets: &[f32], dim: usize) -> Self {
        let mut vectors = Self::new(points, dim);
        vectors.norms[..offsets.len()].copy_from_slice(offsets);
        vectors
    }

    /// How many bytes a number of vectors takes.
    pub fn memory(vectors: u64, dim: usize) -> u64 {
        vectors.saturating_mul(4 * LANES as u64).saturating_mul(dim as u64 + 1)
    }

    /// None yet, with room for so many.
    pub fn with_capacity(vectors: usize, dim: usize) -> Self {
        let (values, norms) = (Vec::with_capacity(vectors * LANES * dim), Vec::with_capacity(vectors * LANES));
        Self { values, norms, dim }
    }

    /// Appends row-major points, and fills up.
    pub fn push(&mut self, points: &[f32]) {
        Arch::new().dispatch(Push { vectors: self, points });
    }

    #[inline(always)]
    fn extend(&mut self, points: &[f32]) {
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
    pub fn len(&self) -> usize {
        self.norms.len() / LANES
    }

    /// The values of a vector, and its norms.
    #[inline(always)]
    fn at(&self, vector: usize) -> (&[f32], &[f32]) {
        let size = LANES * self.dim;
        (&self.values[vector * size..][..size], &self.norms[vector * LANES..][..LANES])
    }

    /// The vector `first` and the next, of which the last is its own.
    #[inline(always)]
    pub fn pair(&self, first: usize) -> Pair<'_> {
        let second = (first + 1).min(self.len() - 1);
        Pair { numbers: [first, second], vectors: [self.at(first), self.at(second)] }
    }
}

/// Two vectors that rows are multiplied with at a time.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    /// Which they are.
    pub numbers: [usize; 2],
    /// The values and norms of each.
    vectors: [(&'a [f32], &'a [f32]); 2],
}

impl Pair<'_> {
    /// How many registers a vector takes.
    #[inline(always)]
    pub fn parts<S: Simd>() -> usize {
        LANES / S::F32_LANES
    }

    /// ‖g‖² of one part of both vectors.
    #[inline(always)]
    pub fn norms<S: Simd>(&self, part: usize) -> [S::f32s; 2] {
        let [(_, left), (_, right)] = self.vectors;
        [S::as_simd_f32s(left).0[part], S::as_simd_f32s(right).0[part]]
    }
}

/// The products x·g of `N` rows with one part of two vectors; `value` is that of a row in a dimension. The order of
/// additions is the same for any number of rows.
#[inline(always)]
pub fn multiply<S: Simd, const N: usize>(
    simd: S,
    dim: usize,
    value: impl Fn(usize, usize) -> f32,
    pair: &Pair<'_>,
    part: usize,
) -> [[S::f32s; 2]; N] {
    let [(left, _), (right, _)] = pair.vectors;
    let left = S::as_simd_f32s(left).0.chunks_exact(Pair::parts::<S>());
    let right = S::as_simd_f32s(right).0.chunks_exact(Pair::parts::<S>());
    let mut products = [[simd.splat_f32s(0.0); 2]; N];
    // The compiler knows that `value` is asked for no further dimension.
    for (axis, (left, right)) in left.zip(right).enumerate().take(dim) {
        let (left, right) = (left[part], right[part]);
        for (row, products) in products.iter_mut().enumerate() {
            let value = simd.splat_f32s(value(row, axis));
            products[0] = simd.mul_add_f32s(value, left, products[0]);
            products[1] = simd.mul_add_f32s(value, right, products[1]);
        }
    }
    products
}

/// ‖x‖² of row-major points of `dim` numbers each.
pub fn squared_norms(points: &[f32], dim: usize) -> Vec<f32> {
    let mut norms = vec![0.0; points.len() / dim];
    Arch::new().dispatch(Norms { points, dim, norms: &mut norms });
    norms
}

/// A call of [`squared_norms`], compiled for what the processor has: elsewhere, a product and a sum that are rounded once
/// are a call of a function each.
struct Norms<'a> {
    points: &'a [f32],
    dim: usize,
    norms: &'a mut [f32],
}

impl NullaryFnOnce for Norms<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (norm, point) in self.norms.iter_mut().zip(self.points.chunks_exact(self.dim)) {
            *norm = squared_norm(point);
        }
    }
}

/// A call of [`Vectors::push`], compiled for what the processor has.
struct Push<'a> {
    vectors: &'a mut Vectors,
    points: &'a [f32],
}

impl NullaryFnOnce for Push<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.vectors.extend(self.points);
    }
}

/// ‖x‖² of one point, summed up as products are.
#[inline(always)]
fn squared_norm(point: &[f32]) -> f32 {
    point.iter().fold(0.0f32, |sum, value| value.mul_add(*value, sum))
}

/// Some rows to be compared.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    /// Row-major.
    pub values: &'a [f32],
    /// ‖x‖².
    pub norms: &'a [f32],
    /// How long each is.
    pub dim: usize,
    /// Whether distances are not squared.
    pub rooted: bool,
}

impl<'a> Rows<'a> {
    /// Some of them.
    #[inline(always)]
    pub fn slice(self, start: usize, len: usize) -> Self {
        Self {
            values: &self.values[start * self.dim..][..len * self.dim],
            norms: &self.norms[start..][..len],
            ..self
        }
    }

    /// The similarity of a row to one of a vector's points.
    #[inline(always)]
    pub fn similarity(self, row: usize, vectors: &Vectors, vector: usize, lane: usize) -> f32 {
        let (values, norms) = vectors.at(vector);
        let point = &self.values[row * self.dim..][..self.dim];
        let product = point.iter().zip(values[lane..].iter().step_by(LANES));
        let product = product.fold(0.0f32, |sum, (x, g)| x.mul_add(*g, sum));
        similarity(self.norms[row], norms[lane], product, self.rooted)
    }

    /// The similarities of all rows to all vectors, into `out` with `stride` numbers from row to row.
    #[inline(always)]
    pub fn similarities<S: Simd>(self, simd: S, vectors: &Vectors, out: &mut [f32], stride: usize) {
        self.packed().similarities(simd, 0..self.norms.len(), vectors, out, stride);
    }

    /// Prepares rows that will be compared with many vectors.
    #[inline(always)]
    pub fn packed(self) -> Packed<'a> {
        let value = |row: usize, axis: usize| {
            if row < self.norms.len() { self.values[row * self.dim + axis] } else { 0.0 }
        };
        let mut groups = Vec::with_capacity(self.norms.len().div_ceil(ROWS) * self.dim);
        for first in (0..self.norms.len()).step_by(ROWS) {
            groups.extend((0..self.dim).map(|axis| std::array::from_fn(|at| value(first + at, axis))));
        }
        Packed { rows: self, groups }
    }
}

/// Rows in groups, so that a vector is read once for all of a group.
pub struct Packed<'a> {
    rows: Rows<'a>,
    /// Group by group, and in each dimension by dimension, the values of all its rows; the last is filled up.
    groups: Vec<[f32; ROWS]>,
}

impl Packed<'_> {
    /// The similarities of some rows, of which the first begins a group, to all vectors.
    #[inline(always)]
    pub fn similarities<S: Simd>(
        &self,
        simd: S,
        rows: Range<usize>,
        vectors: &Vectors,
        out: &mut [f32],
        stride: usize,
    ) {
        // Each pair stays in the first cache for all rows.
        for first in (0..vectors.len()).step_by(2) {
            let pair = vectors.pair(first);
            for row in rows.clone().step_by(ROWS) {
                let out = &mut out[(row - rows.start) * stride..];
                self.group(simd, row..rows.end.min(row + ROWS), &pair, out, stride);
            }
        }
    }

    /// The similarities of a group to two vectors.
    #[inline(always)]
    fn group<S: Simd>(&self, simd: S, rows: Range<usize>, pair: &Pair<'_>, out: &mut [f32], stride: usize) {
        let group = &self.groups[rows.start / ROWS * self.rows.dim..][..self.rows.dim];
        let (zero, minus_two) = (simd.splat_f32s(0.0), simd.splat_f32s(-2.0));
        for part in 0..Pair::parts::<S>() {
            let products = multiply::<S, ROWS>(simd, group.len(), |row, axis| group[axis][row], pair, part);
            let norms = pair.norms::<S>(part);
            for ((row, norm), products) in self.rows.norms[rows.clone()].iter().enumerate().zip(&products) {
                let norm = simd.splat_f32s(*norm);
                for at in 0..2 {
                    let squared = simd.add_f32s(norm, simd.mul_add_f32s(minus_two, products[at], norms[at]));
                    // Of equal points, rounding may leave less than nothing.
                    let squared = simd.max_f32s(squared, zero);
                    let distance = if self.rows.rooted { simd.sqrt_f32s(squared) } else { squared };
                    let out = &mut out[row * stride + pair.numbers[at] * LANES..][..LANES];
                    S::as_mut_simd_f32s(out).0[part] = simd.neg_f32s(distance);
                }
            }
        }
    }
}

/// What [`Rows::similarities`] computes, for one.
#[inline(always)]
fn similarity(norm: f32, other: f32, product: f32, rooted: bool) -> f32 {
    let squared = norm + (-2.0f32).mul_add(product, other);
    let squared = if squared > 0.0 { squared } else { 0.0 };
    if rooted { -squared.sqrt() } else { -squared }
}

/// [`Rows::similarities`] as work to be compiled for the processor at hand.
pub struct Fill<'a> {
    /// Whose similarities.
    pub rows: Rows<'a>,
    /// To whom.
    pub vectors: &'a Vectors,
    /// Where they go.
    pub out: &'a mut [f32],
    /// Numbers from row to row there.
    pub stride: usize,
}

impl WithSimd for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.rows.similarities(simd, self.vectors, self.out, self.stride);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::examples;
    use pulp::Arch;

    use super::*;

    #[test]
    fn similarities_are_minus_distances_whichever_way_they_are_computed() {
        for (n, others, dim) in [(1, 1, 1), (5, 17, 3), (9, 40, 32)] {
            let (x, g) = (examples::uniform(n, dim, 1), examples::uniform(others, dim, 2));
            let norms = squared_norms(&x, dim);
            assert_eq!(norms, x.chunks_exact(dim).map(squared_norm).collect::<Vec<f32>>());
            let vectors = Vectors::new(&g, dim);
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
