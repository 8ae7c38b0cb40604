//! What one example sees in an iteration: the maxima of v(c) = S(c) + Σ_{k in c} w(k) over many sets of compositions.
//!
//! One pass over the segments of compositions (see `compositions`) collects
//!
//! - for every k the highest S(c) + Σ w of the others over compositions in which k comes first,
//! - for every segment the highest and the second highest v,
//! - for every k the highest v of the segments whose rest has k.
//!
//! The first and the third, with the candidates themselves, are max_{c ∋ k} v for all k. max_{c ∌ k} is the highest v of
//! all unless k is in the composition c* that has it; for those at most d members the segments' two highest tell what
//! is left without k, and only segments whose highest is above the best so far are looked at.

use std::ops::Range;

use pulp::Simd;
use pulp::bytemuck::{cast, cast_slice};

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
    /// Of every segment, the highest v and the second highest.
    highest: Vec<f32>,
    second: Vec<f32>,
}

impl Row {
    /// How many bytes it takes.
    pub(crate) fn memory(width: u64, segments: u64) -> u64 {
        segments.saturating_mul(8).saturating_add(16 * width)
    }

    pub(crate) fn new(width: usize, segments: usize) -> Self {
        let column = vec![0.0; width];
        Self {
            weights: column.clone(),
            single: column.clone(),
            first: column.clone(),
            rest: column,
            highest: vec![f32::NEG_INFINITY; segments.next_multiple_of(LANES)],
            second: vec![f32::NEG_INFINITY; segments.next_multiple_of(LANES)],
        }
    }

    /// Forgets the last iteration's maxima; those of segments will be overwritten.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.first.fill(f32::NEG_INFINITY);
        self.rest.fill(f32::NEG_INFINITY);
    }

    /// Takes in the similarities to all compositions of some segments, the first of which is `start`.
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
        let maxima = self.highest[segments.clone()].iter_mut().zip(&mut self.second[segments]);
        let lowest = simd.splat_f32s(f32::NEG_INFINITY);
        for (rest, (highest, second)) in rests.zip(maxima) {
            let base = simd.splat_f32s(base(rest, &self.weights));
            let (segment, behind) = values.split_at((rest[0] as usize).div_ceil(LANES) * (LANES / S::F32_LANES));
            values = behind;
            let (mut one, mut two) = (lowest, lowest);
            for ((&similarities, &weights), column) in segment.iter().zip(vectors).zip(columns.iter_mut()) {
                let without = simd.add_f32s(similarities, base);
                let value = simd.add_f32s(without, weights);
                *column = simd.max_f32s(*column, without);
                two = simd.max_f32s(two, simd.min_f32s(one, value));
                one = simd.max_f32s(one, value);
            }
            (*highest, *second) = two_highest::<S>(one, two);
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
                let through_k = (k as u32) < rest[0]
                    && similarity(segment, k) + base(rest, &self.weights) + self.weights[k] == value;
                best = best.max(if through_k { self.second[segment] } else { value });
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

/// The two highest of all lanes, given the two highest of each.
#[inline(always)]
fn two_highest<S: Simd>(one: S::f32s, two: S::f32s) -> (f32, f32) {
    if S::F32_LANES == LANES {
        let (one, two) = halve::<LANES, 4>(cast(one), cast(two));
        let (one, two) = halve::<4, 2>(one, two);
        let ([one], [two]) = halve::<2, 1>(one, two);
        return (one, two);
    }
    let (one, two) = ([one], [two]);
    let (one, two): (&[f32], &[f32]) = (cast_slice(&one), cast_slice(&two));
    one.iter().zip(two).fold((f32::NEG_INFINITY, f32::NEG_INFINITY), |(highest, second), (&one, &two)| {
        (larger(highest, one), larger(smaller(highest, one), larger(second, two)))
    })
}

/// The two highest of the lanes `n` and `n + HALF`.
#[inline(always)]
fn halve<const WHOLE: usize, const HALF: usize>(
    one: [f32; WHOLE],
    two: [f32; WHOLE],
) -> ([f32; HALF], [f32; HALF]) {
    let (mut half_one, mut half_two) = ([0.0; HALF], [0.0; HALF]);
    for lane in 0..HALF {
        let (a, b) = (one[lane], one[lane + HALF]);
        half_one[lane] = larger(a, b);
        half_two[lane] = larger(smaller(a, b), larger(two[lane], two[lane + HALF]));
    }
    (half_one, half_two)
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
fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

#[inline(always)]
fn smaller(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}
