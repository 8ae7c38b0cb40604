//! Who speaks when, as RTTM, the format that tools for diarization exchange: a line for every turn,
//!
//! ```text
//! SPEAKER file 1 start duration <NA> <NA> name <NA> <NA>
//! ```
//!
//! in seconds. A turn is what touching segments with the same speaker make together. Times are rounded to milliseconds, as is
//! usual, starts and ends alike, so that turns that touch still do. Blanks separate the columns, so in names they become `_`.

use std::collections::BTreeMap;

use crate::data::Segment;
use crate::error::{Error, Result};

/// A stretch of time in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Span {
    start: i64,
    end: i64,
}

/// The turns of all speakers, recording by recording, in the order of time. A speaker is a member of the segments' sets, and
/// `name` says what to call it in a recording.
///
/// # Errors
/// If a name cannot be written, or two recordings, or two speakers of one, would have the same.
pub fn rttm<'a>(
    segments: impl Iterator<Item = (&'a Segment, &'a [u32])>,
    name: impl Fn(&str, u32) -> String,
) -> Result<String> {
    let mut spoken: BTreeMap<(&str, u32), Vec<Span>> = BTreeMap::new();
    for (Segment { file, start, end }, speakers) in segments {
        let span = Span { start: milliseconds(*start), end: milliseconds(*end) };
        for &speaker in speakers.iter().filter(|_| span.end > span.start) {
            spoken.entry((file, speaker)).or_default().push(span);
        }
    }
    let mut turns: Vec<(&str, Span, u32)> = Vec::new();
    for ((file, speaker), spans) in spoken {
        turns.extend(joined(spans).into_iter().map(|turn| (file, turn, speaker)));
    }
    turns.sort_by_key(|&(file, Span { start, end }, speaker)| (file, start, end, speaker));
    let mut text = String::new();
    let mut written: BTreeMap<String, &str> = BTreeMap::new();
    let mut heard: BTreeMap<(&str, String), (u32, String)> = BTreeMap::new();
    let without_blanks = |text: &str| text.replace(char::is_whitespace, "_");
    for (file, Span { start, end }, speaker) in turns {
        let called = name(file, speaker);
        let (name, recording) = (without_blanks(&called), without_blanks(file));
        if name.is_empty() || recording.is_empty() {
            return Err(Error::data("an empty name cannot be written as RTTM, where blanks separate the columns"));
        }
        let other = *written.entry(recording.clone()).or_insert(file);
        if other != file {
            return Err(Error::data(format!(
                "`{other}` and `{file}` would both be `{recording}` in RTTM, where names have no blanks; rename one of them"
            )));
        }
        let (other, known) = heard.entry((file, name.clone())).or_insert_with(|| (speaker, called.clone()));
        if *other != speaker {
            return Err(Error::data(format!(
                "{file}: two speakers, `{known}` and `{called}`, would both be `{name}` in RTTM, where names have no blanks \
                 and `speaker3` is cluster 3 if it has no name; call one of them otherwise in the seeds"
            )));
        }
        let (start, duration) = (seconds(start), seconds(end - start));
        text += &format!("SPEAKER {recording} 1 {start} {duration} <NA> <NA> {name} <NA> <NA>\n");
    }
    Ok(text)
}

/// Touching spans made one.
fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| span.start);
    let mut turns: Vec<Span> = Vec::new();
    for span in spans {
        match turns.last_mut() {
            Some(turn) if span.start <= turn.end => turn.end = turn.end.max(span.end),
            _ => turns.push(span),
        }
    }
    turns
}

fn milliseconds(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

fn seconds(milliseconds: i64) -> String {
    let sign = if milliseconds < 0 { "-" } else { "" };
    format!("{sign}{}.{:03}", milliseconds.abs() / 1000, milliseconds.abs() % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(segments: &[(&str, f64, f64, &[u32])]) -> Result<String> {
        let places: Vec<Segment> =
            segments.iter().map(|&(file, start, end, _)| Segment { file: file.to_owned(), start, end }).collect();
        rttm(places.iter().zip(segments.iter().map(|segment| segment.3)), |_, speaker| format!("s{speaker}"))
    }

    #[test]
    fn touching_segments_of_a_speaker_are_one_turn() {
        let segments: [(&str, f64, f64, &[u32]); 7] = [
            ("b", 0.0, 1.0, &[0]),
            ("a", 2.0, 3.5, &[1]),
            ("a", 0.5, 2.0, &[0, 1]),
            ("a", 3.75, 4.0, &[1]),
            ("a", 4.0, 4.0, &[2]),
            ("a", 4.0, 5.0, &[]),
            ("a", -0.25, 0.5, &[2]),
        ];
        let expected = "\
SPEAKER a 1 -0.250 0.750 <NA> <NA> s2 <NA> <NA>
SPEAKER a 1 0.500 1.500 <NA> <NA> s0 <NA> <NA>
SPEAKER a 1 0.500 3.000 <NA> <NA> s1 <NA> <NA>
SPEAKER a 1 3.750 0.250 <NA> <NA> s1 <NA> <NA>
SPEAKER b 1 0.000 1.000 <NA> <NA> s0 <NA> <NA>
";
        assert_eq!(written(&segments).unwrap(), expected);
    }

    #[test]
    fn turns_that_touch_still_do_when_rounded() {
        let third = 1.0 / 3.0;
        let text = written(&[("a", 0.0, third, &[0]), ("a", third, 2.0 * third, &[1])]).unwrap();
        assert!(text.contains(" 0.000 0.333 ") && text.contains(" 0.333 0.334 "), "{text}");
    }

    #[test]
    fn two_speakers_of_a_recording_are_never_one() {
        let segments = [("a", 0), ("a", 1), ("b", 1)]
            .map(|(file, speaker)| (Segment { file: file.to_owned(), start: 0.0, end: 1.0 }, [speaker]));
        let of = |names: [&str; 2]| {
            rttm(segments.iter().map(|(segment, set)| (segment, &set[..])), |_, speaker| {
                names[speaker as usize].to_owned()
            })
        };
        let refused = of(["Ann B", "Ann_B"]).unwrap_err().to_string();
        assert!(refused.starts_with("a: two speakers, `Ann B` and `Ann_B`, would both be `Ann_B`"), "{refused}");
        assert!(of(["speaker1", "speaker1"]).is_err());
        assert_eq!(of(["Ann B", "Bob"]).unwrap().lines().count(), 3);
    }

    #[test]
    fn blanks_in_names_become_underscores_unless_two_names_would_be_one() {
        let text = written(&[("my recording", 0.0, 1.0, &[0])]).unwrap();
        assert_eq!(text, "SPEAKER my_recording 1 0.000 1.000 <NA> <NA> s0 <NA> <NA>\n");
        let refused = written(&[("a b", 0.0, 1.0, &[0]), ("a_b", 0.0, 1.0, &[0])]).unwrap_err().to_string();
        assert!(refused.starts_with("`a b` and `a_b` would both be `a_b` in RTTM"), "{refused}");
        assert!(written(&[("", 0.0, 1.0, &[0])]).is_err());
    }
}
