//! Examples in f64, centred, laid out for loops that take several examples at a time.
//!
//! A tile holds [`ROWS`] examples, one dimension after the other: the numbers that a vector instruction takes together
//! belong to neighbouring examples, so what is done to an example needs no sums across a vector. Tables with one column
//! per cluster are laid out alike, one column after the other in every tile. The last tile is filled up with zeros.
//! Sums over examples are taken per piece, a few tiles, and then over pieces.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2};

use compflow_kernels::points::block_rows;
use compflow_kernels::weights::weight;

/// Examples in a tile.
pub(crate) const ROWS: usize = 256;
/// Examples taken at a time: two vectors of four numbers.
pub(crate) const LANES: usize = 8;

/// The examples.
pub(crate) struct Tiles {
    values: Vec<f64>,
    rows: usize,
    dim: usize,
    piece: usize,
    /// What was subtracted.
    mean: Vec<f64>,
    /// How much each example counts; 0 behind the last.
    weights: Vec<f64>,
    weighted: bool,
}

/// One tile.
#[derive(Clone, Copy)]
pub(crate) struct Tile<'a> {
    /// [`ROWS`] numbers per dimension.
    pub(crate) values: &'a [f64],
    /// How much each of its rows counts.
    pub(crate) weights: &'a [f64],
    /// How many of its rows are examples.
    pub(crate) rows: usize,
}

impl Tile<'_> {
    /// Adds its examples to `sums`, one row per cluster, and their weights to `totals`; `weights` is the tile's part of a
    /// table with a column per cluster, 0 behind the last example.
    pub(crate) fn weigh(self, weights: &[f64], sums: &mut [f64], totals: &mut [f64]) {
        multiply(weights, self.values, sums);
        for (total, weights) in totals.iter_mut().zip(weights.chunks_exact(ROWS)) {
            *total += weights.iter().sum::<f64>();
        }
    }
}

/// Adds Σ aᵢ·bⱼ over a tile's rows to `sums`, one row per column i of `a` and one number per column j of `b`.
pub(crate) fn multiply(a: &[f64], b: &[f64], sums: &mut [f64]) {
    let matrix = |tile| ArrayView2::from_shape((<[f64]>::len(tile) / ROWS, ROWS), tile);
    let sums = ArrayViewMut2::from_shape((a.len() / ROWS, b.len() / ROWS), sums);
    let (a, b, mut sums) = match (matrix(a), matrix(b), sums) {
        (Ok(a), Ok(b), Ok(sums)) => (a, b, sums),
        _ => unreachable!("tables have ROWS numbers per column, and there is a sum for each pair of columns"),
    };
    general_mat_mul(1.0, &a, &b.t(), 1.0, &mut sums);
}

impl Tiles {
    /// From row-major `points`, for pieces that sum up `partial` numbers each. With weights, the mean is that of the
    /// points so many times each.
    pub(crate) fn new(points: &[f32], weights: Option<&[f32]>, dim: usize, partial: usize) -> Self {
        let rows = points.len() / dim;
        let mut mean = vec![0.0; dim];
        for (row, point) in points.chunks_exact(dim).enumerate() {
            let weight = weight(weights, row);
            mean.iter_mut().zip(point).for_each(|(mean, &value)| *mean += weight * f64::from(value));
        }
        let weighted = weights.is_some();
        let mut weights: Vec<f64> = (0..rows).map(|row| weight(weights, row)).collect();
        let total: f64 = weights.iter().sum();
        mean.iter_mut().for_each(|mean| *mean /= total);
        weights.resize(rows.next_multiple_of(ROWS), 0.0);
        // Without centring, differences of nearly equal points far from the origin would be noise.
        let centred =
            |row: &'_ [f32]| row.iter().zip(&mean).map(|(&x, mean)| f64::from(x) - mean).collect::<Vec<_>>();
        let values = transpose(points.chunks_exact(dim).map(centred), dim);
        Self { values, rows, dim, piece: block_rows(rows, partial) / ROWS, mean, weights, weighted }
    }

    /// How many bytes the examples take, and a table with `columns` columns.
    pub(crate) fn memory(rows: usize, columns: usize) -> usize {
        rows.next_multiple_of(ROWS).saturating_mul(columns).saturating_mul(size_of::<f64>())
    }

    /// How many examples.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// How many they are, so many times each.
    pub(crate) fn total(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// Whether some count more than others.
    pub(crate) fn are_weighted(&self) -> bool {
        self.weighted
    }

    /// How long each is.
    pub(crate) fn dim(&self) -> usize {
        self.dim
    }

    /// The mean of the examples as they came.
    pub(crate) fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// How far any example is from the mean in any dimension.
    pub(crate) fn largest(&self) -> f64 {
        self.pieces().flatten().flat_map(|tile| tile.values).fold(0.0, |largest, value| largest.max(value.abs()))
    }

    /// Points in the coordinates that the examples came in.
    pub(crate) fn restore(&self, points: &[f64]) -> Vec<f64> {
        points
            .chunks_exact(self.dim)
            .flat_map(|row| row.iter().zip(&self.mean).map(|(x, mean)| x + mean))
            .collect()
    }

    /// The tiles of each piece. How they are cut depends on the number of examples only.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = impl Iterator<Item = Tile<'_>>> {
        let size = self.dim * ROWS;
        self.values.chunks(self.piece * size).enumerate().map(move |(piece, tiles)| {
            tiles.chunks_exact(size).enumerate().map(move |(at, values)| {
                let first = (piece * self.piece + at) * ROWS;
                Tile { values, weights: &self.weights[first..][..ROWS], rows: ROWS.min(self.rows - first) }
            })
        })
    }

    /// How many numbers each piece has of a table with this many columns.
    pub(crate) fn piece_of(&self, columns: usize) -> usize {
        self.piece * columns * ROWS
    }

    /// Multiplies every row of a table with the example's weight.
    pub(crate) fn weigh(&self, table: &mut [f64]) {
        let columns = table.len() / self.weights.len();
        for (tile, weights) in table.chunks_exact_mut(columns * ROWS).zip(self.weights.chunks_exact(ROWS)) {
            for column in tile.chunks_exact_mut(ROWS) {
                column.iter_mut().zip(weights).for_each(|(value, weight)| *value *= weight);
            }
        }
    }

    /// A table laid out like the examples, from rows of `columns` numbers.
    pub(crate) fn table(rows: &[f64], columns: usize) -> Vec<f64> {
        transpose(rows.chunks_exact(columns).map(<[f64]>::to_vec), columns)
    }

    /// A table's rows, one after the other.
    pub(crate) fn rows(&self, table: &[f64]) -> Vec<f32> {
        let columns = table.len() / self.rows.next_multiple_of(ROWS);
        let mut rows = Vec::with_capacity(self.rows * columns);
        for row in 0..self.rows {
            let tile = &table[row / ROWS * ROWS * columns..];
            rows.extend((0..columns).map(|column| tile[column * ROWS + row % ROWS] as f32));
        }
        rows
    }
}

fn transpose(rows: impl ExactSizeIterator<Item = Vec<f64>>, columns: usize) -> Vec<f64> {
    let mut table = vec![0.0; rows.len().next_multiple_of(ROWS) * columns];
    for (at, row) in rows.enumerate() {
        let tile = &mut table[at / ROWS * ROWS * columns..];
        row.into_iter().enumerate().for_each(|(column, value)| tile[column * ROWS + at % ROWS] = value);
    }
    table
}

/// The [`LANES`] numbers from `start` on.
#[inline(always)]
pub(crate) fn lanes(values: &[f64], start: usize) -> [f64; LANES] {
    let mut lanes = [0.0; LANES];
    lanes.copy_from_slice(&values[start..start + LANES]);
    lanes
}

/// 1 for each of the lanes from row `start` on that is one of the first `rows`, 0 for the others.
#[inline(always)]
pub(crate) fn live(start: usize, rows: usize) -> [f64; LANES] {
    std::array::from_fn(|lane| f64::from(u8::from(start + lane < rows)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use compflow_kernels::testing::examples;

    #[test]
    fn a_tile_holds_one_dimension_after_the_other() {
        let tiles = Tiles::new(&[1.0, 12.0, 3.0, 14.0, 5.0, 16.0], None, 2, 1);
        let tile = tiles.pieces().next().unwrap().next().unwrap();
        assert_eq!((tile.rows, tile.values.len()), (3, 2 * ROWS));
        assert_eq!(tile.values[..4], [-2.0, 0.0, 2.0, 0.0]);
        assert_eq!(tile.values[ROWS..][..4], [-2.0, 0.0, 2.0, 0.0]);
        assert_eq!((&tiles.mean[..], tiles.restore(&[-1.0, 1.0])), (&[3.0, 14.0][..], vec![2.0, 15.0]));
    }

    #[test]
    fn weights_are_summed_with_and_without_the_examples() {
        let tiles = Tiles::new(&[-1.0, 1.0], None, 1, 1);
        let tile = tiles.pieces().next().unwrap().next().unwrap();
        let weights = Tiles::table(&[1.0, 0.5, 3.0, 0.25], 2);
        let (mut sums, mut totals) = ([10.0, 10.0], [20.0, 20.0]);
        tile.weigh(&weights, &mut sums, &mut totals);
        assert_eq!((sums, totals), ([12.0, 9.75], [24.0, 20.75]));
    }

    #[test]
    fn a_weight_is_how_often_an_example_is_there() {
        let tiles = Tiles::new(&[1.0, 4.0, 9.0], Some(&[2.0, 1.0, 0.0]), 1, 1);
        assert_eq!((tiles.mean(), tiles.total(), tiles.are_weighted()), (&[2.0][..], 3.0, true));
        let mut table = Tiles::table(&[1.0, 10.0, 1.0, 10.0, 1.0, 10.0], 2);
        tiles.weigh(&mut table);
        assert_eq!(tiles.rows(&table), [2.0, 20.0, 1.0, 10.0, 0.0, 0.0]);
        let even = Tiles::new(&[1.0, 4.0], None, 1, 1);
        assert_eq!((even.total(), even.are_weighted()), (2.0, false));
    }

    #[test]
    fn pieces_hold_all_rows_once_and_tables_come_back() {
        for n in [1, ROWS, ROWS + 1, 5000] {
            let values = examples::uniform(n, 3, 1);
            let tiles = Tiles::new(&values, None, 3, 1);
            assert_eq!(tiles.pieces().flatten().map(|tile| tile.rows).sum::<usize>(), n);
            let wide: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
            let table = Tiles::table(&wide, 3);
            assert_eq!(table.chunks(tiles.piece_of(3)).count(), tiles.pieces().count());
            assert_eq!(tiles.rows(&table), values);
        }
    }

    #[test]
    fn lanes_behind_the_last_row_are_not_live() {
        assert_eq!(live(8, 10), [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(live(0, 10), [1.0; LANES]);
    }
}
