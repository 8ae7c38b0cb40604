//! The messages of compositional affinity propagation, in one pass over the similarities per iteration.
//!
//! The paper's Algorithm 1 carries a, ā, b, b̄, h and q, but only δ(i,k) = a(i,k) - ā(i,k) ever matters, and with it the
//! algorithm is affinity propagation whose responsibilities look at sets. With damping, ρ and δ are moving averages of
//!
//! ```text
//! v_i(c) = S(i,c) + Σ_{k in c} δ(i,k)                     S(i,c) = -∞ for c ∋ i other than {i}
//! ρ(i,k) ← max_{c ∋ k} v_i(c) - δ(i,k) - max_{c ∌ k} v_i(c)
//! P(k)   = Σ_{i≠k} max(0, ρ(i,k))
//! δ(k,k) ← P(k)
//! δ(i,k) ← min(0, ρ(k,k) + P(k) - max(0, ρ(i,k)))         for i ≠ k
//! ```
//!
//! S(k,{k}) is the preference of k. The paper and its authors' code damp what Algorithm 1 carries: b - b̄ = max(0, ρ) for
//! i ≠ k and h - b̄ = ρ(k,k), so there the average is taken of what is clipped, see [`Damped`]. a, ā and q are linear in
//! each other, and damping them is damping δ.
//!
//! Ties are broken by a noise that makes every composition with k a little worse for
//! everybody: all agree on which of two equal examples is the better exemplar, which noise of its own for every pair
//! would leave to chance. An iteration brings δ up to date from the columns' sums of the iteration before, finds the
//! maxima of its rows and sums up the new ρ. State: two matrices, examples × candidates.

#[cfg(test)]
pub(crate) mod literal;
#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;

use compflow_api::{Result, Services, Sets};
use compflow_kernels::workers::Workers;
use pulp::{Arch, NullaryFnOnce, Simd, WithSimd};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compositions::{Compositions, LANES};
use crate::row::{Choice, Row, SINGLE, highest, larger};
use crate::similarities::{Similarities, Source, block_rows, width};
use compflow_kernels::products::{Packed, Vectors};

/// What damping takes the moving average of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Damped {
    /// Responsibilities as they are, as in affinity propagation.
    Responsibilities,
    /// What others than the candidate itself send, without what is below 0, as in the paper's listing.
    Clipped,
}

impl Damped {
    /// What responsibilities of others are raised to before they are averaged.
    fn floor(self) -> f32 {
        match self {
            Self::Responsibilities => f32::NEG_INFINITY,
            Self::Clipped => 0.0,
        }
    }
}

/// The messages between all examples and candidates.
pub(crate) struct Messages<'a> {
    similarities: &'a Similarities,
    /// S(k, {k}) of every example.
    preferences: &'a [f32],
    /// What is added to S(i, c) for every candidate in c.
    noise: &'a [f32],
    damping: f32,
    damped: Damped,
    /// ρ(i, k), row-major, filled up as the similarities are.
    responsibilities: Vec<f32>,
    /// δ(i, k) of the iteration before the last: each begins by bringing it up to date.
    availabilities: Vec<f32>,
    columns: Columns,
    /// What v is highest for.
    pub(crate) choices: Vec<Choice>,
}

/// What all examples together send to each candidate.
struct Columns {
    /// ρ(k, k) + P(k).
    evidence: Vec<f32>,
    /// P(k).
    support: Vec<f32>,
    /// ρ(k, k).
    own: Vec<f32>,
}

impl<'a> Messages<'a> {
    /// All messages 0.
    pub(crate) fn new(
        similarities: &'a Similarities,
        preferences: &'a [f32],
        noise: &'a [f32],
        damping: f64,
        damped: Damped,
    ) -> Self {
        let (n, candidates) = (similarities.len(), similarities.columns.len());
        let size = n * width(candidates);
        Self {
            similarities,
            preferences,
            noise,
            damping: damping as f32,
            damped,
            responsibilities: vec![0.0; size],
            availabilities: vec![0.0; size],
            // So much evidence keeps δ at 0 in the first iteration.
            columns: Columns {
                evidence: vec![f32::INFINITY; candidates],
                support: vec![0.0; candidates],
                own: vec![0.0; candidates],
            },
            choices: vec![Choice { segment: SINGLE, first: 0 }; n],
        }
    }

    /// One iteration. Returns Σ S(i, c_i) of the present choices, and how many examples chose otherwise before.
    pub(crate) fn pass(&mut self, workers: &Workers, services: &Services<'_>) -> Result<(f64, usize)> {
        let (rows, arch) = (block_rows(self.similarities.len()), Arch::new());
        let (candidates, width) = (self.columns.own.len(), width(self.columns.own.len()));
        let blocks = self.responsibilities.chunks_mut(rows * width);
        let blocks = blocks.zip(self.availabilities.chunks_mut(rows * width)).zip(self.choices.chunks_mut(rows));
        let totals =
            workers.map(blocks.enumerate(), |(block, ((responsibilities, availabilities), choices))| {
                services.check_cancelled()?;
                let mut totals = Totals { sums: vec![0.0; candidates], own: Vec::new(), net: 0.0, changed: 0 };
                let mut pass = Pass {
                    similarities: self.similarities,
                    preferences: self.preferences,
                    noise: self.noise,
                    damping: self.damping,
                    floor: self.damped.floor(),
                    columns: &self.columns,
                    first: block * rows,
                    responsibilities,
                    availabilities,
                    choices,
                    totals: &mut totals,
                };
                // As recomputing takes long, it is looked up after every tile whether the work is still wanted.
                match self.similarities.source(pass.first, pass.choices.len()) {
                    Source::Stored(values) => arch.dispatch(Stored { pass: &mut pass, values }),
                    Source::Recomputed(tiles) => {
                        let segments = self.similarities.compositions.len();
                        let mut maxima: Vec<Row> =
                            (0..pass.choices.len()).map(|_| Row::new(width, segments)).collect();
                        let rows = self.similarities.rows().slice(pass.first, pass.choices.len()).packed();
                        let mut buffer = Vec::new();
                        arch.dispatch(Begin { pass: &mut pass, maxima: &mut maxima });
                        for tile in 0..tiles.len() {
                            services.check_cancelled()?;
                            arch.dispatch(Recomputed {
                                compositions: &self.similarities.compositions,
                                maxima: &mut maxima,
                                tile,
                                tiles,
                                rows: &rows,
                                buffer: &mut buffer,
                            });
                        }
                        arch.dispatch(End { pass: &mut pass, maxima: &mut maxima });
                    }
                }
                Ok(totals)
            })?;
        let (mut sums, mut net, mut changed) = (vec![0.0; candidates], 0.0, 0);
        for block in &totals {
            sums.iter_mut().zip(&block.sums).for_each(|(sum, part)| *sum += part);
            block.own.iter().for_each(|&(column, own)| self.columns.own[column] = own);
            net += block.net;
            changed += block.changed;
        }
        for (at, sum) in sums.iter().enumerate() {
            self.columns.support[at] = *sum as f32;
            self.columns.evidence[at] = (f64::from(self.columns.own[at]) + sum) as f32;
        }
        Ok((net, changed))
    }

    /// ρ(k, k) + P(k) of every candidate: the higher, the better an exemplar it is.
    pub(crate) fn evidence(&self) -> &[f32] {
        &self.columns.evidence
    }

    /// The candidates that choose themselves.
    pub(crate) fn exemplars(&self) -> Vec<u32> {
        let columns = self.similarities.columns.iter().enumerate();
        let chosen = columns.filter(|&(column, &row)| {
            self.choices[row as usize] == Choice { segment: SINGLE, first: column as u32 }
        });
        chosen.map(|(_, &row)| row).collect()
    }

    /// What each example chose, as sets of examples.
    pub(crate) fn chosen(&self) -> Sets {
        let Similarities { columns, compositions, .. } = self.similarities;
        let set = |choice: &Choice| match choice.segment {
            SINGLE => vec![columns[choice.first as usize]],
            segment => {
                compositions.set(segment as usize, choice.first as usize).map(|column| columns[column]).collect()
            }
        };
        self.choices.iter().map(set).collect()
    }

    /// All ρ(i, k) as they are damped, and δ(i, k) as they follow from it, row-major and without the filling.
    #[cfg(test)]
    pub(crate) fn all(&self) -> (Vec<f32>, Vec<f32>) {
        let width = width(self.columns.own.len());
        let (mut responsibilities, mut availabilities) = (Vec::new(), Vec::new());
        let rows = self.responsibilities.chunks_exact(width).zip(self.availabilities.chunks_exact(width));
        for (row, (rho, delta)) in rows.enumerate() {
            let mut delta = delta.to_vec();
            bring_up_to_date(&mut delta, rho, &self.columns, self.similarities.own(row), self.damping);
            responsibilities.extend_from_slice(&rho[..self.columns.own.len()]);
            availabilities.extend_from_slice(&delta[..self.columns.own.len()]);
        }
        (responsibilities, availabilities)
    }
}

/// What a block of rows adds up to.
struct Totals {
    /// Σ max(0, ρ(i, k)) over i ≠ k.
    sums: Vec<f64>,
    /// ρ(k, k) of the candidates among the rows.
    own: Vec<(usize, f32)>,
    net: f64,
    changed: usize,
}

/// One iteration for a block of rows.
struct Pass<'a> {
    similarities: &'a Similarities,
    preferences: &'a [f32],
    noise: &'a [f32],
    damping: f32,
    /// Of what others send to a candidate.
    floor: f32,
    columns: &'a Columns,
    /// The index of the first row.
    first: usize,
    responsibilities: &'a mut [f32],
    availabilities: &'a mut [f32],
    choices: &'a mut [Choice],
    totals: &'a mut Totals,
}

/// A whole iteration of a block whose similarities are at hand, row by row.
struct Stored<'a, 'b> {
    pass: &'a mut Pass<'b>,
    values: &'a [f32],
}

impl WithSimd for Stored<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let compositions = &self.pass.similarities.compositions;
        let stride = compositions.vectors() * LANES;
        let mut maxima = Row::new(width(self.pass.columns.own.len()), compositions.len());
        for at in 0..self.pass.choices.len() {
            self.pass.begin(at, &mut maxima);
            maxima.take(simd, compositions, 0..compositions.len(), &self.values[at * stride..][..stride]);
            self.pass.end(at, &maxima);
        }
    }
}

/// The beginning of an iteration for all rows of a block.
struct Begin<'a, 'b> {
    pass: &'a mut Pass<'b>,
    maxima: &'a mut [Row],
}

impl NullaryFnOnce for Begin<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.maxima.iter_mut().enumerate().for_each(|(at, maxima)| self.pass.begin(at, maxima));
    }
}

/// One tile of compositions for all rows of a block: while it is in the cache.
struct Recomputed<'a> {
    compositions: &'a Compositions,
    maxima: &'a mut [Row],
    tile: usize,
    tiles: &'a [Vectors],
    rows: &'a Packed<'a>,
    buffer: &'a mut Vec<f32>,
}

/// Rows whose similarities to a tile are computed before they are looked at.
const GROUP: usize = 16;

impl WithSimd for Recomputed<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let compositions = self.compositions;
        let (vectors, segments) = (&self.tiles[self.tile], compositions.tiles()[self.tile].segments.clone());
        let stride = vectors.len() * LANES;
        self.buffer.resize(GROUP * stride, 0.0);
        for (group, maxima) in self.maxima.chunks_mut(GROUP).enumerate() {
            let rows = group * GROUP..group * GROUP + maxima.len();
            self.rows.similarities(simd, rows, vectors, self.buffer, stride);
            for (maxima, values) in maxima.iter_mut().zip(self.buffer.chunks_exact(stride)) {
                maxima.take(simd, compositions, segments.clone(), values);
            }
        }
    }
}

/// The end of an iteration for all rows of a block.
struct End<'a, 'b> {
    pass: &'a mut Pass<'b>,
    maxima: &'a mut [Row],
}

impl NullaryFnOnce for End<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.maxima.iter().enumerate().for_each(|(at, maxima)| self.pass.end(at, maxima));
    }
}

impl Pass<'_> {
    /// Brings δ of one row up to date, and prepares its maxima.
    #[inline(always)]
    fn begin(&mut self, at: usize, maxima: &mut Row) {
        let (row, width) = (self.first + at, maxima.weights.len());
        let own = self.similarities.own(row);
        let delta = &mut self.availabilities[at * width..][..width];
        bring_up_to_date(delta, &self.responsibilities[at * width..][..width], self.columns, own, self.damping);
        maxima.clear();
        for ((weight, delta), noise) in maxima.weights.iter_mut().zip(&*delta).zip(self.noise) {
            *weight = delta + noise;
        }
        let singles = self.similarities.singles(row).iter().zip(&maxima.weights);
        maxima.single.iter_mut().zip(singles).for_each(|(value, (single, weight))| *value = single + weight);
        if let Some(own) = own {
            maxima.single[own] = self.preferences[row] + maxima.weights[own];
            maxima.weights[own] = f32::NEG_INFINITY;
        }
    }

    /// The new ρ of one row from its maxima.
    #[inline(always)]
    fn end(&mut self, at: usize, maxima: &Row) {
        let (row, candidates, width) = (self.first + at, self.columns.own.len(), maxima.weights.len());
        let (similarities, compositions) = (self.similarities, &self.similarities.compositions);
        let own = similarities.own(row);
        let lookup = |segment: usize, first: usize| similarities.composed(row, segment, first);

        // First the maxima with each candidate, in the place of what they are needed for.
        let rho = &mut self.responsibilities[at * width..][..candidates];
        let delta = &self.availabilities[at * width..][..candidates];
        let mut with = vec![0.0; candidates];
        for (k, value) in with.iter_mut().enumerate() {
            *value = maxima.with(k);
        }
        let best = highest(&with);
        let choice = maxima.choice(best, candidates, compositions, lookup);
        let members: Vec<usize> = match choice.segment {
            SINGLE => vec![choice.first as usize],
            segment => compositions.set(segment as usize, choice.first as usize).collect(),
        };
        // Only these need another look, or no floor.
        let apart: Vec<usize> = members.iter().copied().chain(own.filter(|own| !members.contains(own))).collect();
        let before: Vec<f32> = apart.iter().map(|&k| rho[k]).collect();
        let (damping, fresh, floor) = (self.damping, 1.0 - self.damping, self.floor);
        for ((rho, with), delta) in rho.iter_mut().zip(&with).zip(delta) {
            *rho = damping * *rho + fresh * larger(with - delta - best, floor);
        }
        for (&k, before) in apart.iter().zip(before) {
            let without = match members.contains(&k) {
                true => maxima.without(k, candidates, compositions, lookup),
                false => best,
            };
            let new = with[k] - delta[k] - without;
            rho[k] = damping * before + fresh * if own == Some(k) { new } else { larger(new, floor) };
        }

        let others = own.map(|own| self.totals.sums[own]);
        for (sum, &rho) in self.totals.sums.iter_mut().zip(&*rho) {
            *sum += f64::from(if rho > 0.0 { rho } else { 0.0 });
        }
        if let (Some(own), Some(others)) = (own, others) {
            self.totals.sums[own] = others;
            self.totals.own.push((own, rho[own]));
        }
        self.totals.changed += usize::from(self.choices[at] != choice);
        self.choices[at] = choice;
        self.totals.net += f64::from(match choice.segment {
            SINGLE if own == Some(choice.first as usize) => self.preferences[row],
            SINGLE => similarities.singles(row)[choice.first as usize],
            segment => lookup(segment as usize, choice.first as usize),
        });
    }
}

/// δ from the ρ of the iteration before and what all rows sent.
#[inline(always)]
fn bring_up_to_date(delta: &mut [f32], rho: &[f32], columns: &Columns, own: Option<usize>, damping: f32) {
    let before = own.map(|own| delta[own]);
    for ((delta, &rho), &evidence) in delta.iter_mut().zip(rho).zip(&columns.evidence) {
        let others = evidence - if rho > 0.0 { rho } else { 0.0 };
        *delta = damping * *delta + (1.0 - damping) * if others < 0.0 { others } else { 0.0 };
    }
    if let (Some(own), Some(before)) = (own, before) {
        delta[own] = damping * before + (1.0 - damping) * columns.support[own];
    }
}
