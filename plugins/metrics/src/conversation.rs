//! Who speaks when: examples that are segments of recordings, as `der` and `jer` compare them.
//!
//! The columns `file`, `start` and `end` say which recording a segment is of, and from when to when, in seconds. The
//! speakers of a segment are the members of its set: the true ones are the reference, the predicted ones the
//! hypothesis. So both are constant within a segment, and all that remains of a segment are its two sets and its seconds.
//!
//! What is not counted is what pyannote.metrics leaves out: `collar` seconds around every boundary of a true turn, half of
//! them on either side, and with `skip_overlap` all time in which several truly speak. A turn is what touching segments of
//! a speaker make together; boundaries within it are none. O(n log n) for n segments.

use std::collections::BTreeMap;

use compflow_api::{Column, Error, Evaluation, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The columns that are asked for.
pub(crate) const COLUMNS: [&str; 3] = ["file", "start", "end"];

/// Less than so many seconds are none: pyannote's precision.
const PRECISION: f64 = 1e-6;

/// Segments that overlap by no more, in seconds, do so by rounding: times are often given in milliseconds.
const ROUNDING: f64 = 1.1e-3;

/// No time is farther from 0, in seconds: sums of them are exact enough.
const FARTHEST: f64 = 1e12;

/// What is left out.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// Seconds around every boundary of a true turn that are not counted, half of them before it and half after it.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub(crate) collar: f64,
    /// Whether time in which several speak in truth is not counted.
    #[serde(default)]
    pub(crate) skip_overlap: bool,
}

/// A segment, or what is counted of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment<'a> {
    pub(crate) seconds: f64,
    /// Who speaks.
    pub(crate) truth: &'a [u32],
    /// Who is said to.
    pub(crate) predicted: &'a [u32],
}

/// A stretch of time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Span {
    start: f64,
    end: f64,
}

/// The segments of every recording.
///
/// # Errors
/// If there are no true sets, or a segment has no place in time that is its own.
pub(crate) fn recordings<'a>(evaluation: &Evaluation<'a>, params: &Params) -> Result<Vec<Vec<Segment<'a>>>> {
    let (truth, predicted) = (evaluation.truth()?, evaluation.predicted);
    let files = names(evaluation.column("file")?)?;
    let (starts, ends) = (seconds(evaluation, "start")?, seconds(evaluation, "end")?);
    let mut recordings: BTreeMap<String, Vec<(usize, Span)>> = BTreeMap::new();
    for (row, ((file, start), end)) in files.into_iter().zip(starts).zip(ends).enumerate() {
        if end < start {
            let text =
                format!("row {row} of the trial: the segment ends at {end} s, before it starts at {start} s");
            return Err(Error::data(text));
        }
        recordings.entry(file).or_default().push((row, Span { start, end }));
    }
    let counted = |(file, mut spans): (String, Vec<(usize, Span)>)| {
        spans.sort_by(|(_, a), (_, b)| a.start.total_cmp(&b.start).then(a.end.total_cmp(&b.end)));
        separate(&mut spans, &file)?;
        let left_out = left_out(&spans, params, |row| &truth[row]);
        let segment = |&(row, span): &(usize, Span)| Segment {
            seconds: remainder(span, &left_out),
            truth: &truth[row],
            predicted: &predicted[row],
        };
        Ok(spans.iter().map(segment).filter(|segment| segment.seconds > 0.0).collect())
    };
    recordings.into_iter().map(counted).collect()
}

/// The names of the recordings; numbers are names as well.
fn names(column: &Column) -> Result<Vec<String>> {
    match column {
        Column::Texts(names) => Ok(names.clone()),
        Column::Integers(numbers) => Ok(numbers.iter().map(ToString::to_string).collect()),
        _ => Err(Error::data("the column `file` must hold strings or integers: the names of recordings")),
    }
}

fn seconds(evaluation: &Evaluation<'_>, name: &str) -> Result<Vec<f64>> {
    let seconds = match evaluation.column(name)? {
        Column::Floats(seconds) => seconds.clone(),
        Column::Integers(seconds) => seconds.iter().map(|&whole| whole as f64).collect(),
        _ => return Err(Error::data(format!("the column `{name}` must hold numbers: seconds"))),
    };
    match seconds.iter().position(|seconds| !(-FARTHEST..=FARTHEST).contains(seconds)) {
        Some(row) => Err(Error::data(format!("row {row} of the trial: the {name} is {}", seconds[row]))),
        None => Ok(seconds),
    }
}

/// Makes what overlaps by rounding touch.
fn separate(spans: &mut [(usize, Span)], file: &str) -> Result<()> {
    for at in 1..spans.len() {
        let ((first, before), (row, span)) = (spans[at - 1], spans[at]);
        if before.end - span.start > ROUNDING {
            return Err(Error::data(format!(
                "rows {} and {} of the trial are segments of `{file}` that overlap from {} to {} s; \
                 who speaks at once belongs in one set",
                first.min(row),
                first.max(row),
                span.start,
                before.end.min(span.end),
            )));
        }
        let start = span.start.max(before.end);
        spans[at].1 = Span { start, end: span.end.max(start) };
    }
    Ok(())
}

/// The stretches that do not count, in their order, none of which touch.
fn left_out<'a>(spans: &[(usize, Span)], params: &Params, truth: impl Fn(usize) -> &'a [u32]) -> Vec<Span> {
    let mut left_out = Vec::new();
    if params.collar > 0.0 {
        let half = 0.5 * params.collar;
        let around = |time: f64| Span { start: time - half, end: time + half };
        left_out.extend(boundaries(spans, &truth).into_iter().map(around));
    }
    if params.skip_overlap {
        left_out.extend(spans.iter().filter(|(row, _)| truth(*row).len() > 1).map(|(_, span)| *span));
    }
    left_out.sort_by(|a, b| a.start.total_cmp(&b.start));
    let mut merged: Vec<Span> = Vec::new();
    for span in left_out {
        match merged.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => merged.push(span),
        }
    }
    merged
}

/// When turns begin and end.
fn boundaries<'a>(spans: &[(usize, Span)], truth: impl Fn(usize) -> &'a [u32]) -> Vec<f64> {
    let mut turns: BTreeMap<u32, Span> = BTreeMap::new();
    let mut boundaries = Vec::new();
    for &(row, span) in spans.iter().filter(|(_, span)| span.end - span.start > PRECISION) {
        for &speaker in truth(row) {
            let turn = turns.entry(speaker).or_insert(span);
            if span.start - turn.end > PRECISION {
                boundaries.extend([turn.start, turn.end]);
                *turn = span;
            }
            turn.end = span.end;
        }
    }
    boundaries.extend(turns.values().flat_map(|turn| [turn.start, turn.end]));
    boundaries
}

/// How many seconds of a segment count.
fn remainder(span: Span, left_out: &[Span]) -> f64 {
    let first = left_out.partition_point(|out| out.end <= span.start);
    let (mut seconds, mut time) = (0.0, span.start);
    let mut count = |from: f64, to: f64| {
        if to - from > PRECISION {
            seconds += to - from;
        }
    };
    for out in left_out[first..].iter().take_while(|out| out.start < span.end) {
        count(time, out.start);
        time = out.end;
    }
    count(time, span.end);
    seconds
}
