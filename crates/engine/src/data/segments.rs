//! Examples that are segments of recordings: which file they are of, and from when to when.

use compflow_api::{Column, Table};

use crate::causes::Cause;
use crate::error::{Error, Result};

/// Segments that overlap by no more, in seconds, do so by rounding: times are often given in milliseconds.
const ROUNDING: f64 = 1.1e-3;

/// No time is farther from 0, in seconds: milliseconds still are whole numbers.
const FARTHEST: f64 = 1e12;

/// Where in a recording an example is.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// The recording.
    pub file: String,
    /// In seconds.
    pub start: f64,
    /// In seconds.
    pub end: f64,
}

/// The segments in further columns.
pub(super) fn segments(columns: &Table) -> Result<Vec<Segment>> {
    let column = |name: &str| {
        let found = columns.iter().find(|(known, _)| known == name).map(|(_, column)| column);
        found.ok_or_else(|| Error::data(format!("the data has no column `{name}`")))
    };
    let files: Vec<String> = match column("file")? {
        Column::Texts(names) => names.clone(),
        Column::Integers(numbers) => numbers.iter().map(ToString::to_string).collect(),
        _ => return Err(Error::fault(Cause::Segments, "the file column must hold strings or integers")),
    };
    let seconds = |name: &str| match column(name)? {
        Column::Floats(seconds) => Ok(seconds.clone()),
        Column::Integers(seconds) => Ok(seconds.iter().map(|&whole| whole as f64).collect()),
        _ => Err(Error::fault(Cause::Segments, format!("the {name} column must hold numbers: seconds"))),
    };
    let times = seconds("start")?.into_iter().zip(seconds("end")?);
    Ok(files.into_iter().zip(times).map(|(file, (start, end))| Segment { file, start, end }).collect())
}

/// Every segment has a place in time that is its own. `rows` are their numbers in the source.
pub(super) fn require_apart(segments: &[Segment], rows: &[usize]) -> Result<()> {
    for (Segment { start, end, .. }, row) in segments.iter().zip(rows) {
        for (name, time) in [("start", start), ("end", end)] {
            if !(-FARTHEST..=FARTHEST).contains(time) {
                return Err(Error::fault(Cause::Segments, format!("row {row}: the {name} is {time}")));
            }
        }
        if end < start {
            let text = format!("row {row}: the segment ends at {end} s, before it starts at {start} s");
            return Err(Error::fault(Cause::Segments, text));
        }
    }
    let mut sorted: Vec<(&Segment, usize)> = segments.iter().zip(rows.iter().copied()).collect();
    sorted.sort_by(|(a, _), (b, _)| {
        a.file.cmp(&b.file).then(a.start.total_cmp(&b.start)).then(a.end.total_cmp(&b.end))
    });
    for ((before, first), (segment, row)) in sorted.iter().zip(&sorted[1.min(sorted.len())..]) {
        if before.file == segment.file && before.end - segment.start > ROUNDING {
            return Err(Error::fault(
                Cause::Segments,
                format!(
                    "rows {} and {} are segments of `{}` that overlap from {} to {} s; who speaks at once belongs in one set",
                    first.min(row),
                    first.max(row),
                    segment.file,
                    segment.start,
                    before.end.min(segment.end),
                ),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(times: &[(&str, f64, f64)]) -> String {
        let segment = |&(file, start, end): &(&str, f64, f64)| Segment { file: file.to_owned(), start, end };
        let segments: Vec<Segment> = times.iter().map(segment).collect();
        let rows: Vec<usize> = (10..10 + segments.len()).collect();
        require_apart(&segments, &rows).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn every_segment_has_a_place_in_time_that_is_its_own() {
        // Touching, by rounding overlapping, empty, and at the same time in another recording.
        let good = [("a", 2.0, 3.0), ("a", 0.0, 1.001), ("a", 1.0, 2.0), ("a", 2.0, 2.0), ("b", 0.5, 9.0)];
        assert_eq!(checked(&good), "");
        assert_eq!(
            checked(&[("a", 0.0, 1.0), ("a", 3.0, 2.0)]),
            "row 11: the segment ends at 2 s, before it starts at 3 s"
        );
        assert_eq!(checked(&[("a", f64::NAN, 1.0)]), "row 10: the start is NaN");
        assert_eq!(checked(&[("a", 0.0, f64::MAX)]), format!("row 10: the end is {}", f64::MAX));
        assert_eq!(
            checked(&[("a", 4.0, 6.0), ("b", 0.0, 9.0), ("a", 0.0, 4.5)]),
            "rows 10 and 12 are segments of `a` that overlap from 4 to 4.5 s; who speaks at once belongs in one set"
        );
        assert_eq!(checked(&[]), "");
    }
}
