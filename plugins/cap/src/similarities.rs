//! S(i, c): how near every example is to every candidate and to every composition of candidates.
//!
//! Similarities to candidates are summed up in f64 and kept in f32. Those to compositions are products; they are kept
//! for as many examples as there is room, and for the others the products with the composed vectors are computed anew
//! whenever they are read. Both give the same numbers. Points are centred and divided by a power of two; whatever enters
//! or leaves in the user's units goes through [`Similarities::restore`] and its inverse.

use compflow_api::{Distance, Result, Services, Task};
use compflow_kernels::pairs::Axes;
use compflow_kernels::points::Points;
use compflow_kernels::workers::Workers;
use pulp::Arch;

use crate::compositions::{Compositions, LANES, Tile};
use compflow_kernels::products::{Fill, Rows, Vectors};

/// Tiles composed before the similarities to them are filled in.
pub(crate) const BATCH: usize = 64;

/// Examples that percentiles are taken over, at most: more say the same.
const SAMPLE: usize = 1024;
/// Rows of them compared before it is looked up whether the work is still wanted.
const ROWS: usize = 64;

/// Marks an example that is no candidate.
const NO_COLUMN: u32 = u32::MAX;

/// How many rows one thread works on at a time; whatever is summed up over blocks depends on it, so it depends on the
/// size only. Enough blocks to keep many threads busy to the end, and no more rows than the caches hold.
pub(crate) fn block_rows(n: usize) -> usize {
    n.div_ceil(32).clamp(4, 48)
}

/// Candidates a row has room for: whole vectors, and one more that small compositions are filled up with.
pub(crate) fn width(candidates: usize) -> usize {
    (candidates + 1).next_multiple_of(LANES)
}

/// All similarities.
pub(crate) struct Similarities {
    pub(crate) points: Points,
    /// The candidates, ascending.
    pub(crate) columns: Vec<u32>,
    /// Of every example, which candidate it is.
    own: Vec<u32>,
    /// S(i, {k}): rows of [`width`] numbers, filled up with -∞; 0 where i is k.
    singles: Vec<f32>,
    pub(crate) compositions: Compositions,
    composed: Composed,
    rooted: bool,
}

struct Composed {
    /// S(i, c) of the first examples, row-major: of all, or of whole blocks.
    values: Vec<f32>,
    /// Of how many.
    kept: usize,
    /// The composed vectors of each tile, unless nobody needs them.
    tiles: Vec<Vectors>,
}

/// Where the similarities of some rows to the compositions come from.
pub(crate) enum Source<'a> {
    /// From memory, row-major.
    Stored(&'a [f32]),
    /// From products with each tile's vectors.
    Recomputed(&'a [Vectors]),
}

impl Similarities {
    /// Those of the task's examples to `columns` of them and to compositions of at most `degree`.
    pub(crate) fn new(
        task: &Task<'_>,
        columns: Vec<u32>,
        degree: usize,
        kept: usize,
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<Self> {
        let (n, dim) = (task.embeddings.len(), task.embeddings.dim());
        let points = Points::new(task.points().into_owned(), dim, n, workers, services)?;
        let mut own = vec![NO_COLUMN; n];
        for (column, &row) in columns.iter().enumerate() {
            own[row as usize] = column as u32;
        }
        let rooted = task.space.distance == Distance::Euclidean;
        let singles = singles(&points, &columns, rooted, workers, services)?;
        let compositions = Compositions::new(columns.len(), degree);
        let composed = Composed { values: Vec::new(), kept, tiles: Vec::new() };
        let mut new = Self { points, columns, own, singles, compositions, composed, rooted };
        new.composed = new.compose(task, kept, workers, services)?;
        Ok(new)
    }

    /// Similarities made up for a test: of `n` examples, all of them candidates, to sets of at most `degree`.
    #[cfg(test)]
    pub(crate) fn made_up(n: usize, degree: usize, similarity: impl Fn(usize, &[u32]) -> f32) -> Self {
        let points = Points::new(vec![0.0; n], 1, n, &Workers::alone(), &Services::none()).unwrap();
        let (columns, wide): (Vec<u32>, usize) = ((0..n as u32).collect(), width(n));
        let compositions = Compositions::new(n, degree);
        let mut singles = vec![f32::NEG_INFINITY; n * wide];
        let mut values = vec![f32::NEG_INFINITY; n * compositions.vectors() * LANES];
        for row in 0..n {
            for &column in &columns {
                singles[row * wide + column as usize] = similarity(row, &[column]);
            }
            for segment in 0..compositions.len() {
                for first in 0..compositions.length(segment) {
                    let set: Vec<u32> = compositions.set(segment, first).map(|at| at as u32).collect();
                    let at = (row * compositions.vectors() + compositions.start(segment)) * LANES + first;
                    values[at] = similarity(row, &set);
                }
            }
        }
        let own = columns.clone();
        let composed = Composed { values, kept: n, tiles: Vec::new() };
        Self { points, columns, own, singles, compositions, composed, rooted: false }
    }

    fn compose(
        &self,
        task: &Task<'_>,
        kept: usize,
        workers: &Workers,
        services: &Services<'_>,
    ) -> Result<Composed> {
        let (n, arch) = (self.len(), Arch::new());
        let compose = |tile: &Tile| {
            services.check_cancelled()?;
            compose_tile(task, &self.points, &self.compositions, tile, &self.columns, services)
        };
        let (stride, per_block) = (self.compositions.vectors() * LANES, block_rows(n));
        let (mut values, mut tiles) = (vec![0.0; kept * stride], Vec::new());
        for batch in self.compositions.tiles().chunks(BATCH) {
            let composed = workers.map(batch, compose)?;
            workers.map(values.chunks_mut(per_block * stride).enumerate(), |(block, out)| {
                services.check_cancelled()?;
                let rows = self.rows().slice(block * per_block, out.len() / stride);
                for (tile, vectors) in batch.iter().zip(&composed) {
                    let out = &mut out[tile.vectors.start * LANES..];
                    arch.dispatch(Fill { rows, vectors, out, stride });
                }
                Ok(())
            })?;
            if kept < n {
                tiles.extend(composed);
            }
        }
        Ok(Composed { values, kept, tiles })
    }

    /// How many examples.
    pub(crate) fn len(&self) -> usize {
        self.own.len()
    }

    /// Which candidate an example is.
    #[inline(always)]
    pub(crate) fn own(&self, row: usize) -> Option<usize> {
        (self.own[row] != NO_COLUMN).then_some(self.own[row] as usize)
    }

    /// S(i, {k}) of one example; 0 for itself, -∞ behind the candidates.
    #[inline(always)]
    pub(crate) fn singles(&self, row: usize) -> &[f32] {
        let width = width(self.columns.len());
        &self.singles[row * width..][..width]
    }

    /// All examples, for products.
    pub(crate) fn rows(&self) -> Rows<'_> {
        Rows {
            values: self.points.values(),
            norms: self.points.norms(),
            dim: self.points.dim(),
            rooted: self.rooted,
        }
    }

    /// Similarities of the rows of a block, from `start` on, to compositions.
    #[inline(always)]
    pub(crate) fn source(&self, start: usize, len: usize) -> Source<'_> {
        let stride = self.compositions.vectors() * LANES;
        match start < self.composed.kept {
            true => Source::Stored(&self.composed.values[start * stride..][..len * stride]),
            false => Source::Recomputed(&self.composed.tiles),
        }
    }

    /// S(i, c) for c a segment's rest and `first`.
    #[inline(always)]
    pub(crate) fn composed(&self, row: usize, segment: usize, first: usize) -> f32 {
        let vector = self.compositions.start(segment) + first / LANES;
        if row < self.composed.kept {
            return self.composed.values[(row * self.compositions.vectors() + vector) * LANES + first % LANES];
        }
        let tiles = self.compositions.tiles();
        let tile = tiles.partition_point(|tile| tile.vectors.end <= vector);
        let at = vector - tiles[tile].vectors.start;
        self.rows().similarity(row, &self.composed.tiles[tile], at, first % LANES)
    }

    /// What distances were multiplied with.
    fn scale(&self) -> f64 {
        if self.rooted {
            self.points.frame().scale()
        } else {
            self.points.frame().scale() * self.points.frame().scale()
        }
    }

    /// A similarity in the user's units.
    pub(crate) fn restore(&self, similarity: f64) -> f64 {
        similarity / self.scale()
    }

    /// A similarity in the units used here. What is beyond f32 even after scaling stays the largest there is.
    pub(crate) fn convert(&self, similarity: f64) -> f64 {
        let largest = f64::from(f32::MAX) / (8.0 * self.len() as f64);
        (similarity * self.scale()).clamp(-largest, largest)
    }

    /// Of every example, its similarities to the candidates, without the filling.
    fn each(&self) -> impl Iterator<Item = &[f32]> {
        self.singles.chunks_exact(width(self.columns.len())).map(|row| &row[..self.columns.len()])
    }

    /// A percentile of the similarities of all examples to each other, those with themselves included, linear between
    /// neighbours: of [`SAMPLE`] evenly spaced ones of the examples if there are more. Whoever the candidates are, it is the
    /// same.
    pub(crate) fn percentile(&self, percent: f64, services: &Services<'_>) -> Result<f64> {
        let taken = self.len().min(SAMPLE);
        let rows = (0..taken).map(|at| at * self.len() / taken);
        let sample: Vec<f32> = rows.flat_map(|row| self.points.row(row)).copied().collect();
        let dim = self.points.dim();
        let axes = Axes::new(sample.chunks_exact(dim), dim);
        let mut values = vec![0.0; taken * taken];
        for (points, out) in sample.chunks(ROWS * dim).zip(values.chunks_mut(ROWS * taken)) {
            services.check_cancelled()?;
            axes.similarities(points, self.rooted, out, taken);
        }
        let position = percent / 100.0 * (values.len() - 1) as f64;
        let mut at = |rank: f64| f64::from(*values.select_nth_unstable_by(rank as usize, f32::total_cmp).1);
        let (low, high) = (at(position.floor()), at(position.ceil()));
        Ok(low + (high - low) * position.fract())
    }

    /// The candidate that would serve best alone.
    pub(crate) fn most_central(&self, preferences: &[f64]) -> usize {
        let mut sums: Vec<f64> = self.columns.iter().map(|&row| preferences[row as usize]).collect();
        for row in self.each() {
            sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
        }
        (0..sums.len()).fold(0, |best, at| if sums[at] > sums[best] { at } else { best })
    }

    /// The mean distance of examples from candidates; 0 if all are equal.
    pub(crate) fn mean_distance(&self) -> f64 {
        let total: f64 = self.each().map(|row| row.iter().map(|value| -f64::from(*value)).sum::<f64>()).sum();
        total / (self.len() * self.columns.len()) as f64
    }

    /// The smallest distance above 0, and the smallest sum of the distances of all examples from one candidate.
    pub(crate) fn extent(&self) -> (f64, f64) {
        let mut smallest = f32::INFINITY;
        let mut sums = vec![0.0; self.columns.len()];
        for row in self.each() {
            smallest = row.iter().map(|value| -value).filter(|distance| *distance > 0.0).fold(smallest, f32::min);
            sums.iter_mut().zip(row).for_each(|(sum, value)| *sum -= f64::from(*value));
        }
        (f64::from(smallest), sums.into_iter().fold(f64::INFINITY, f64::min))
    }
}

/// Composes a tile, in the coordinates of `points`.
fn compose_tile(
    task: &Task<'_>,
    points: &Points,
    compositions: &Compositions,
    tile: &Tile,
    columns: &[u32],
    services: &Services<'_>,
) -> Result<Vectors> {
    let dim = points.dim();
    let mut composed = task.compose_sets(task.embeddings, &compositions.sets(tile, columns), services)?;
    points.frame().enter(&mut composed);
    let (mut vectors, mut rest) = (Vectors::with_capacity(tile.vectors.len(), dim), &composed[..]);
    for segment in tile.segments.clone() {
        let (points, behind) = rest.split_at(compositions.length(segment) * dim);
        vectors.push(points);
        rest = behind;
    }
    Ok(vectors)
}

/// S(i, {k}) of all examples and candidates.
fn singles(
    points: &Points,
    columns: &[u32],
    rooted: bool,
    workers: &Workers,
    services: &Services<'_>,
) -> Result<Vec<f32>> {
    let (n, dim, width, rows) = (points.len(), points.dim(), width(columns.len()), block_rows(points.len()));
    let axes = Axes::new(columns.iter().map(|&row| points.row(row as usize)), dim);
    let mut values = vec![f32::NEG_INFINITY; n * width];
    let blocks = values.chunks_mut(rows * width).zip(points.values().chunks(rows * dim));
    workers.map(blocks, |(out, points)| {
        services.check_cancelled()?;
        axes.similarities(points, rooted, out, width);
        Ok(())
    })?;
    Ok(values)
}
