//! The messages of affinity propagation, in one pass over two n×n matrices per iteration.
//!
//! With damping λ, r and a are moving averages of
//!
//! ```text
//! r(i,k) ← s(i,k) - max_{j≠k} (a(i,j) + s(i,j))
//! a(i,k) ← min(0, r(k,k) + Σ_{j∉{i,k}} max(0, r(j,k)))        a(k,k) ← Σ_{j≠k} max(0, r(j,k))
//! ```
//!
//! The maximum over j ≠ k is the same y(i) for all k but the one that attains it. So the average of r after t
//! iterations is (1 - λᵗ)·s(i,k) - ȳ(i), with ȳ the average of y, and a few positions per row where k once attained
//! the maximum and r lies higher. Those are kept as a list, and r itself is never stored. An iteration brings a up to
//! date from the columns' sums of the iteration before, finds the maxima of its rows and sums up the new r, all while
//! a row is in the cache.

use compflow_api::{Result, Services};
use pulp::{Arch, NullaryFnOnce};

use crate::similarities::{Similarities, block_rows};
use compflow_kernels::workers::Workers;

/// Columns compared at a time.
const LANES: usize = 16;
/// What is left of an addition to r after this factor is below the last digit of f32.
const FORGOTTEN: f64 = 1.0 / (1u64 << 32) as f64;

/// The messages between all examples.
pub(crate) struct Messages<'a> {
    similarities: &'a Similarities,
    damping: f64,
    /// a(i, k), row-major, of the iteration before the last: each begins by bringing it up to date.
    availabilities: Vec<f32>,
    rows: Vec<Row>,
    columns: Columns,
    /// 1 - λᵗ of the last iteration.
    weight: f64,
}

/// What an example sends.
#[derive(Clone, Default)]
struct Row {
    /// The average of y(i).
    offset: f64,
    /// The columns where r is not weight·s - offset, and what has to be added there.
    peaks: Vec<(u32, f32)>,
    /// r(i, i).
    own: f64,
    /// Where a(i, k) + s(i, k) is highest.
    choice: u32,
}

/// What all examples together send to each.
struct Columns {
    /// r(k, k) + Σ_{j≠k} max(0, r(j, k)).
    evidence: Vec<f32>,
    /// a(k, k).
    own: Vec<f64>,
}

impl<'a> Messages<'a> {
    /// How many bytes messages between `n` examples take beside the similarities.
    pub(crate) fn memory(n: usize, damping: f64, max_iter: usize) -> u64 {
        // A peak is forgotten after so many iterations.
        let peaks = ((FORGOTTEN.ln() / damping.ln()).ceil() as usize).min(n).min(max_iter) as u64;
        let blocks = n.div_ceil(block_rows(n)) as u64;
        let n = n as u64;
        n.saturating_mul(n).saturating_mul(4).saturating_add(n.saturating_mul(64 + 8 * peaks + 8 * blocks))
    }

    /// All messages 0.
    pub(crate) fn new(similarities: &'a Similarities, damping: f64) -> Self {
        let n = similarities.len();
        Self {
            similarities,
            damping,
            availabilities: vec![0.0; n * n],
            rows: vec![Row::default(); n],
            // So much evidence keeps availabilities at 0 in the first iteration.
            columns: Columns { evidence: vec![f32::INFINITY; n], own: vec![0.0; n] },
            weight: 0.0,
        }
    }

    /// One iteration. Returns the net similarity of the examples' present choices.
    pub(crate) fn pass(&mut self, workers: &Workers, services: &Services<'_>) -> Result<f64> {
        let (n, rows, arch) = (self.rows.len(), block_rows(self.rows.len()), Arch::new());
        let next_weight = 1.0 - self.damping * (1.0 - self.weight);
        let blocks = self.availabilities.chunks_mut(rows * n).zip(self.rows.chunks_mut(rows)).enumerate();
        let totals = workers.map(blocks, |(block, (availabilities, rows_of_block))| {
            services.check_cancelled()?;
            let first = block * rows;
            Ok(arch.dispatch(Pass {
                similarities: &self.similarities.values()[first * n..][..availabilities.len()],
                availabilities,
                rows: rows_of_block,
                first,
                columns: &self.columns,
                damping: self.damping,
                weights: (self.weight, next_weight),
            }))
        })?;
        self.weight = next_weight;
        let mut sums = vec![0.0; n];
        for (block, _) in &totals {
            sums.iter_mut().zip(block).for_each(|(sum, part)| *sum += part);
        }
        for (at, sum) in sums.iter().enumerate() {
            self.columns.evidence[at] = (self.rows[at].own + sum) as f32;
            self.columns.own[at] = self.damping * self.columns.own[at] + (1.0 - self.damping) * sum;
        }
        Ok(totals.iter().map(|(_, net)| net).sum())
    }

    /// a(k, k) + r(k, k) of every example: whoever is above 0 is an exemplar.
    pub(crate) fn beliefs(&self) -> impl Iterator<Item = f64> + '_ {
        self.columns.own.iter().zip(&self.rows).map(|(availability, row)| availability + row.own)
    }

    /// All r(i, k), row-major.
    #[cfg(test)]
    pub(crate) fn responsibilities(&self) -> Vec<f32> {
        let mut values = Vec::new();
        for (row, similarities) in self.rows.iter().zip(self.similarities.values().chunks_exact(self.rows.len())) {
            let line = Line::new(row, self.weight);
            let start = values.len();
            values.extend(similarities.iter().map(|&similarity| line.at(similarity)));
            row.peaks.iter().for_each(|&(column, peak)| values[start + column as usize] += peak);
        }
        values
    }
}

impl Row {
    /// Averages in that the highest a + s is `best` at `choice`, and the highest elsewhere `second`.
    #[inline(always)]
    fn damp(&mut self, Highest { best, second, choice }: Highest, damping: f64) {
        let fresh = 1.0 - damping;
        self.choice = choice;
        self.offset = damping * self.offset + fresh * f64::from(best);
        let peak = (fresh * (f64::from(best) - f64::from(second))) as f32;
        let limit = (FORGOTTEN * f64::from(best.abs().max(second.abs()))) as f32;
        let mut known = false;
        self.peaks.retain_mut(|(column, value)| {
            *value *= damping as f32;
            if *column == choice {
                *value += peak;
                known = true;
            }
            *value > limit
        });
        if !known {
            self.peaks.push((choice, peak));
        }
    }
}

/// One iteration for a block of rows.
struct Pass<'a> {
    similarities: &'a [f32],
    availabilities: &'a mut [f32],
    rows: &'a mut [Row],
    /// The index of the first row.
    first: usize,
    columns: &'a Columns,
    damping: f64,
    /// 1 - λᵗ before and after.
    weights: (f64, f64),
}

impl NullaryFnOnce for Pass<'_> {
    /// Σ max(0, r(i, k)) over the block's rows i ≠ k, for every column; and the net similarity of their choices.
    type Output = (Vec<f64>, f64);

    #[inline(always)]
    fn call(self) -> (Vec<f64>, f64) {
        let n = self.columns.own.len();
        let (mut sums, mut net, mut before) = (vec![0.0; n], 0.0, Vec::new());
        let matrices = self.similarities.chunks_exact(n).zip(self.availabilities.chunks_exact_mut(n));
        for (at, ((similarities, availabilities), row)) in matrices.zip(self.rows).enumerate() {
            let index = self.first + at;

            let (line, evidence) = (Line::new(row, self.weights.0), &self.columns.evidence);
            let damping = self.damping as f32;
            before.clear();
            before.extend(row.peaks.iter().map(|peak| availabilities[peak.0 as usize]));
            for ((value, &similarity), &evidence) in availabilities.iter_mut().zip(similarities).zip(evidence) {
                *value = damped_availability(*value, line.at(similarity), evidence, damping);
            }
            for (&(column, peak), &before) in row.peaks.iter().zip(&before) {
                let column = column as usize;
                let responsibility = line.at(similarities[column]) + peak;
                availabilities[column] = damped_availability(before, responsibility, evidence[column], damping);
            }
            availabilities[index] = self.columns.own[index] as f32;

            row.damp(highest(availabilities, similarities), self.damping);
            net += f64::from(similarities[row.choice as usize]);

            let line = Line::new(row, self.weights.1);
            let sum_of_others = sums[index];
            row.own = f64::from(line.at(similarities[index]));
            for (sum, &similarity) in sums.iter_mut().zip(similarities) {
                *sum += f64::from(positive(line.at(similarity)));
            }
            for &(column, peak) in &row.peaks {
                let without = line.at(similarities[column as usize]);
                let responsibility = without + peak;
                sums[column as usize] += f64::from(positive(responsibility)) - f64::from(positive(without));
                if column as usize == index {
                    row.own = f64::from(responsibility);
                }
            }
            sums[index] = sum_of_others;
        }
        (sums, net)
    }
}

/// The responsibilities of a row but for its peaks, by similarity.
#[derive(Clone, Copy)]
struct Line {
    weight: f32,
    offset: f32,
}

impl Line {
    #[inline(always)]
    fn new(row: &Row, weight: f64) -> Self {
        Self { weight: weight as f32, offset: row.offset as f32 }
    }

    #[inline(always)]
    fn at(self, similarity: f32) -> f32 {
        self.weight * similarity - self.offset
    }
}

#[inline(always)]
fn positive(value: f32) -> f32 {
    if value > 0.0 { value } else { 0.0 }
}

#[inline(always)]
fn damped_availability(before: f32, responsibility: f32, evidence: f32, damping: f32) -> f32 {
    let others = evidence - positive(responsibility);
    damping * before + (1.0 - damping) * if others < 0.0 { others } else { 0.0 }
}

/// The highest of a row of a + s, the first column that has it, and the highest of the other columns.
struct Highest {
    best: f32,
    second: f32,
    choice: u32,
}

#[inline(always)]
fn highest(availabilities: &[f32], similarities: &[f32]) -> Highest {
    let (a, a_rest) = availabilities.as_chunks::<LANES>();
    let (s, s_rest) = similarities.as_chunks::<LANES>();
    let (mut best, mut second) = ([f32::NEG_INFINITY; LANES], [f32::NEG_INFINITY; LANES]);
    for (a, s) in a.iter().zip(s) {
        (best, second) = two_highest(best, second, sum(a, s));
    }
    let mut rest = [f32::NEG_INFINITY; LANES];
    rest.iter_mut().zip(a_rest.iter().zip(s_rest)).for_each(|(value, (a, s))| *value = a + s);
    (best, second) = two_highest(best, second, rest);

    let (mut of_all, mut behind) = (f32::NEG_INFINITY, f32::NEG_INFINITY);
    for value in best.into_iter().chain(second) {
        behind = behind.max(value.min(of_all));
        of_all = of_all.max(value);
    }
    // Looking for it again is cheaper than keeping track of where it was.
    let has_it = |values: [f32; LANES]| values.iter().fold(false, |found, value| found | (*value == of_all));
    let chunk = a.iter().zip(s).position(|(a, s)| has_it(sum(a, s))).unwrap_or(a.len());
    let values = a.get(chunk).map_or(rest, |a| sum(a, &s[chunk]));
    let lane = values.iter().position(|value| *value == of_all).unwrap_or(0);
    Highest { best: of_all, second: behind, choice: (chunk * LANES + lane) as u32 }
}

#[inline(always)]
fn sum(a: &[f32; LANES], s: &[f32; LANES]) -> [f32; LANES] {
    let mut sum = [0.0; LANES];
    for lane in 0..LANES {
        sum[lane] = a[lane] + s[lane];
    }
    sum
}

/// The two highest values of each lane, a new one included. By value, so that they stay in vector registers.
#[inline(always)]
fn two_highest(best: [f32; LANES], second: [f32; LANES], value: [f32; LANES]) -> ([f32; LANES], [f32; LANES]) {
    let (mut next_best, mut next_second) = ([0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        let lower = if value[lane] < best[lane] { value[lane] } else { best[lane] };
        next_second[lane] = if lower > second[lane] { lower } else { second[lane] };
        next_best[lane] = if value[lane] > best[lane] { value[lane] } else { best[lane] };
    }
    (next_best, next_second)
}
