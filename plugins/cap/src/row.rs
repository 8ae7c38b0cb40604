//! What one example sees in an iteration: the maxima of v(c) = S(c) + Σ_{k in c} w(k) over many sets of compositions.
//!
//! One pass over the segments of compositions (see `compositions`) collects
//!
//! - for every k the highest S(c) + Σ w of the others over compositions in which k comes first,
//! - for every segment the highest v,
//! - for every k the highest v of the segments whose rest has k.
//!
//! The first and the third, with the candidates themselves, are max_{c ∋ k} v for all k. max_{c ∌ k} is the highest v of
//! all unless k is in the composition c* that has it; for those at most d members, only segments whose highest is above
//! the best so far are looked at, and only if k comes first in it once more in full.

use std::ops::Range;

use pulp::Simd;

use crate::compositions::{Compositions, LANES};

/// No segment: the choice is a single candidate.
pub(crate) const SINGLE: u32 = u32::MAX;

/// A composition: `first` alone, or with the rest of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) segment: u32,
    pub(crate) first: u32,
}

/// The maxima of one example.
pub(crate) struct Row {
    /// w(k): -∞ for the example itself, which is in no composition that it may choose.
    pub(crate) weights: Vec<f32>,
    /// v of every candidate alone.
    pub(crate) single: Vec<f32>,
    /// Over compositions in which k comes first: the highest v without w(k).
    first: Vec<f32>,
    /// Over compositions with k in the rest: the highest v.
    rest: Vec<f32>,
    /// Of every segment, the highest v.
    highest: Vec<f32>,
}

impl Row {
    /// How many bytes it takes.
    pub(crate) fn memory(width: u64, segments: u64) -> u64 {
        segments.saturating_mul(4).saturating_add(16 * width)
    }

    pub(crate) fn new(width: usize, segments: usize) -> Self {
        let column = vec![0.0; width];
        Self {
            weights: column.clone(),
            single: column.clone(),
            first: column.clone(),
            rest: column,
            highest: vec![f32::NEG_INFINITY; segments.next_multiple_of(LANES)],
        }
    }

    /// Forgets the last iteration's maxima; those of segments will be overwritten.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.first.fill(f32::NEG_INFINITY);
        self.rest.fill(f32::NEG_INFINITY);
    }

    /// Takes in the similarities to all compositions of some segments.
    #[inline(always)]
    pub(crate) fn take<S: Simd>(
        &mut self,
        simd: S,
        compositions: &Compositions,
        segments: Range<usize>,
        values: &[f32],
    ) {
        match compositions.stride() {
            1 => self.take_rests::<S, 1>(simd, compositions, segments, values),
            2 => self.take_rests::<S, 2>(simd, compositions, segments, values),
            _ => self.take_rests::<S, 0>(simd, compositions, segments, values),
        }
    }

    /// With rests of `N` members, or of any number if that is 0. Maxima are asked for by name, as comparisons would
    /// become stores under a mask, which take many times as long.
    #[inline(always)]
    fn take_rests<S: Simd, const N: usize>(
        &mut self,
        simd: S,
        compositions: &Compositions,
        segments: Range<usize>,
        values: &[f32],
    ) {
        let stride = if N == 0 { compositions.stride() } else { N };
        let (mut values, columns) = (S::as_simd_f32s(values).0, S::as_mut_simd_f32s(&mut self.first).0);
        let vectors = S::as_simd_f32s(&self.weights).0;
        let rests = compositions.rests(segments.clone()).chunks_exact(stride);
        let lowest = simd.splat_f32s(f32::NEG_INFINITY);
        for (rest, highest) in rests.zip(&mut self.highest[segments]) {
            let base = simd.splat_f32s(base(rest, &self.weights));
            let (segment, behind) = values.split_at((rest[0] as usize).div_ceil(LANES) * (LANES / S::F32_LANES));
            values = behind;
            let mut best = lowest;
            for ((&similarities, &weights), column) in segment.iter().zip(vectors).zip(columns.iter_mut()) {
                let without = simd.add_f32s(similarities, base);
                let value = simd.add_f32s(without, weights);
                *column = simd.max_f32s(*column, without);
                best = simd.max_f32s(best, value);
            }
            *highest = simd.reduce_max_f32s(best);
            for &member in rest {
                let known = &mut self.rest[member as usize];
                *known = larger(*known, *highest);
            }
        }
    }

    /// max_{c ∋ k} v(c) of one candidate.
    #[inline(always)]
    pub(crate) fn with(&self, k: usize) -> f32 {
        larger(self.single[k], larger(self.first[k] + self.weights[k], self.rest[k]))
    }

    /// The composition with the highest v, which is `best`, of equal ones the first. `similarity` looks one up.
    #[inline(always)]
    pub(crate) fn choice(
        &self,
        best: f32,
        candidates: usize,
        compositions: &Compositions,
        similarity: impl Fn(usize, usize) -> f32,
    ) -> Choice {
        if let Some(first) = self.single[..candidates].iter().position(|value| *value == best) {
            return Choice { segment: SINGLE, first: first as u32 };
        }
        let segment = position(&self.highest[..compositions.len()], best);
        let base = base(compositions.rest(segment), &self.weights);
        let value = |first: &usize| similarity(segment, *first) + base + self.weights[*first];
        let first = (0..compositions.length(segment)).find(|first| value(first) == best).unwrap_or(0);
        Choice { segment: segment as u32, first: first as u32 }
    }

    /// max_{c ∌ k} v(c) of a candidate in the composition with the highest v.
    #[inline(always)]
    pub(crate) fn without(
        &self,
        k: usize,
        candidates: usize,
        compositions: &Compositions,
        similarity: impl Fn(usize, usize) -> f32,
    ) -> f32 {
        let mut best = highest(&self.single[..k]).max(highest(&self.single[k + 1..candidates]));
        for (chunk, maxima) in self.highest[..compositions.len()].chunks(LANES).enumerate() {
            if !maxima.iter().fold(false, |above, value| above | (*value > best)) {
                continue;
            }
            for (at, &value) in maxima.iter().enumerate() {
                let segment = chunk * LANES + at;
                let rest = compositions.rest(segment);
                if value <= best || rest.contains(&(k as u32)) {
                    continue;
                }
                let base = base(rest, &self.weights);
                let of = |first: usize| similarity(segment, first) + base + self.weights[first];
                let through_k = (k as u32) < rest[0] && of(k) == value;
                best = best.max(match through_k {
                    true => (0..rest[0] as usize).filter(|&first| first != k).map(of).fold(best, larger),
                    false => value,
                });
            }
        }
        best
    }
}

/// Σ w over a rest, in its order.
#[inline(always)]
fn base(rest: &[u32], weights: &[f32]) -> f32 {
    let mut sum = weights[rest[0] as usize];
    for &member in &rest[1..] {
        sum += weights[member as usize];
    }
    sum
}

/// The first place of a value that is there.
#[inline(always)]
fn position(values: &[f32], value: f32) -> usize {
    let has_it = |chunk: &[f32]| chunk.iter().fold(false, |found, at| found | (*at == value));
    let chunk = values.chunks(4 * LANES).position(has_it).unwrap_or(0);
    let values = &values[chunk * 4 * LANES..];
    chunk * 4 * LANES + values.iter().position(|at| *at == value).unwrap_or(0)
}

#[inline(always)]
pub(crate) fn highest(values: &[f32]) -> f32 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = larger(lanes[lane], chunk[lane]);
        }
    }
    lanes.iter().chain(rest).copied().fold(f32::NEG_INFINITY, larger)
}

#[inline(always)]
pub(crate) fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}
