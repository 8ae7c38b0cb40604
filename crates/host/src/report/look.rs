//! What the page's script draws from: the examples of trials and what every method made of them, as JSON.
//!
//! Numbers of examples are packed: 16 bits each, or 8 where that will do, as text of base 64. So a page with thousands of them stays small.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use compflow_api::Sets;
use serde_json::{Map, Value, json};

use super::centres::Centres;
use super::looked::{Chosen, Examples, Looked, Method, counts};
use super::shown::best;
use super::svg::{cut, range};
use super::{ReportData, media, pixels, scatter};
use crate::failure::Failure;

/// Further trials can be chosen as long as all of them together take no more than this, and no more than there is room for.
const MOST_BYTES: usize = 2_000_000;
/// Of so many examples of each of them, the most for which there is room: better some of every trial than all of some.
const SAMPLES: [usize; 6] = [scatter::MOST, 1000, 700, 500, 300, 150];
/// Pictures of one trial take no more than this.
const MOST_PIXELS: usize = 200_000;
/// So many methods are chosen at first.
const START: usize = 5;
/// Longer identifiers are cut.
const LONGEST: usize = 80;
/// The largest number; the one above it stands for none.
const TOP: f64 = 65_534.0;
const NONE: u16 = u16::MAX;

/// The trials that are shown without a script, and as many of the others as there is room for, for `<script>`.
///
/// # Errors
/// If another trial cannot be read.
pub(crate) fn data<'a>(
    report: &ReportData,
    shown: &[Looked<'_>],
    others: &[Chosen],
    look: impl Fn(&Chosen) -> Result<Looked<'a>, Failure>,
    room: usize,
) -> Result<String, Failure> {
    let (results, room) = (&report.results, room.min(MOST_BYTES));
    let mut trials: Vec<Value> = shown.iter().map(|looked| trial(report, looked, scatter::MOST)).collect();
    let mut bytes: usize = trials.iter().map(|trial| trial.to_string().len()).sum();
    let drawn: usize = shown.iter().map(|looked| looked.n().min(scatter::MOST)).sum();
    // Trials of one run are alike.
    let of_a_row = bytes / drawn.max(1) + 1;
    let size = |other: &Chosen| report.size(other).unwrap_or(scatter::MOST);
    let taken = |most: usize| others.iter().map(|other| size(other).min(most) * of_a_row).sum::<usize>();
    let fits = SAMPLES.into_iter().find(|most| bytes + taken(*most) <= room);
    let most = fits.unwrap_or(SAMPLES[SAMPLES.len() - 1]);
    for other in others {
        if bytes + size(other).min(most) * of_a_row / 2 > room {
            break;
        }
        let next = trial(report, &look(other)?, most);
        bytes += next.to_string().len();
        if bytes > room {
            break;
        }
        trials.push(next);
    }
    let data = |name: &str| {
        let own: Vec<Value> = trials.iter().filter(|trial| trial["data"] == name).cloned().collect();
        let left_out = results.trials(name).len().saturating_sub(own.len());
        json!({ "name": name, "heading": results.heading(name), "leftOut": left_out, "trials": sorted(own) })
    };
    let all: Vec<Value> =
        results.data().into_iter().map(data).filter(|data| data["trials"][0].is_object()).collect();
    // Many pictures at once are none. Those who are told the truth have nothing to show.
    let oracles = &results.record.oracles;
    let mut start = best(results, START + oracles.len()).names();
    start.sort_by_key(|name| results.is_oracle(name));
    start.truncate(START);
    Ok(escape(&json!({ "start": start, "data": all }).to_string()))
}

fn sorted(mut trials: Vec<Value>) -> Vec<Value> {
    trials.sort_by_key(|trial| trial["number"].as_u64());
    trials
}

/// JSON that can stand in an element of HTML, whatever its texts are.
fn escape(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => escaped += &format!("\\u{:04x}", character as u32),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// At most so many examples of a trial.
fn trial(report: &ReportData, looked: &Looked<'_>, most: usize) -> Value {
    let n = looked.n();
    let rows = scatter::sample(n, most);
    let ids = looked.methods.first().map_or(&[][..], |method| &method.found.ids[..]);
    let ids: Vec<String> = rows.iter().filter_map(|row| ids.get(*row)).map(|id| cut(id, LONGEST)).collect();
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("data", json!(looked.chosen.data));
    put("number", json!(looked.chosen.trial));
    put("n", json!(n));
    put("ids", json!(ids));
    let methods = looked.methods.iter().map(|found| method(report, looked, found, &rows));
    put("methods", methods.collect());
    match &looked.examples {
        Err(reason) => {
            put("missing", json!(reason));
        }
        Ok(examples) => {
            put("plane", places(&rows.iter().map(|row| examples.plane.points[*row]).collect::<Vec<_>>()));
            put("share", json!((100.0 * examples.plane.share).round()));
            if let Some(truth) = looked.truth() {
                put("truth", truly(looked, examples, truth, &rows));
            }
            if let Some(pictures) = pictures(examples, &rows) {
                put("pixels", pictures);
            }
            put("media", media::of(report, &looked.chosen.data, examples.trial, &rows));
        }
    }
    Value::Object(object)
}

fn method(report: &ReportData, looked: &Looked<'_>, method: &Method, rows: &[usize]) -> Value {
    let found = &method.found;
    let mut value = clustering(&found.sets, rows);
    value["name"] = json!(found.clusterer);
    value["note"] = json!(method.score);
    value["counts"] = json!(counts(&found.sets));
    value["colours"] = method.colours.iter().map(|colour| colour.hex()).collect();
    value["names"] = json!(found.names);
    value["verdict"] = json!(method.right(looked.truth()));
    value["distance"] = measure(rows.iter().map(|row| f64::from(found.distances[*row])));
    if let Some(majorities) = method.majorities.as_ref().filter(|_| looked.judged()) {
        let right = |set: &[u32]| if set.len() > 1 { json!(majorities.is_right(set)) } else { Value::Null };
        value["right"] = distinct(&found.sets, rows).keys().map(|set| right(set)).collect();
    }
    if let Ok(examples) = &looked.examples {
        let centres = Centres::new(&examples.points, examples.dim, &found.sets);
        value["own"] = own_plane(&centres, examples, rows);
        value["margin"] = centres.margins(rows, report.space).map_or(Value::Null, |all| measure(all.into_iter()));
    }
    value
}

fn truly(looked: &Looked<'_>, examples: &Examples<'_>, truth: &Sets, rows: &[usize]) -> Value {
    let mut value = clustering(truth, rows);
    let names: BTreeMap<u32, &String> = (0..).zip(examples.classes).collect();
    value["names"] = json!(names);
    value["counts"] = json!(counts(truth));
    value["colours"] = looked.class_colours().iter().map(|colour| colour.hex()).collect();
    value["own"] = own_plane(&Centres::new(&examples.points, examples.dim, truth), examples, rows);
    value
}

fn own_plane(centres: &Centres<'_>, examples: &Examples<'_>, rows: &[usize]) -> Value {
    centres.discriminants(rows, &examples.plane.points).map_or(Value::Null, |plane| places(&plane))
}

/// The sets that occur in some rows, in their order, and their numbers.
fn distinct<'a>(sets: &'a Sets, rows: &[usize]) -> BTreeMap<&'a [u32], u16> {
    let mut numbers: BTreeMap<&[u32], u16> = rows.iter().map(|row| (&sets[*row], 0)).collect();
    (0..).zip(numbers.values_mut()).for_each(|(at, number)| *number = at);
    numbers
}

/// The sets that occur, and which of them every example has.
fn clustering(sets: &Sets, rows: &[usize]) -> Value {
    let numbers = distinct(sets, rows);
    let of = rows.iter().map(|row| numbers[&sets[*row]]);
    // Few sets have short numbers.
    let of = match numbers.len() {
        0..=256 => STANDARD.encode(of.map(|number| number as u8).collect::<Vec<u8>>()).into(),
        _ => packed(of),
    };
    json!({ "sets": numbers.keys().collect::<Vec<_>>(), "of": of })
}

/// Points in a square of numbers, both axes on one scale.
fn places(points: &[[f64; 2]]) -> Value {
    let span = |axis: usize| range(points.iter().map(|point| point[axis])).unwrap_or([0.0, 0.0]);
    let ends = [span(0), span(1)];
    let extent = ends.iter().map(|[low, high]| high - low).fold(f64::MIN_POSITIVE, f64::max);
    let place = |axis: usize, value: f64| {
        let [low, high] = ends[axis];
        (TOP * ((value - (low + high) / 2.0) / extent + 0.5)).round() as u16
    };
    packed(points.iter().flat_map(|point| [place(0, point[0]), place(1, point[1])]))
}

/// Numbers between their least and their greatest.
fn measure(values: impl Iterator<Item = f64> + Clone) -> Value {
    let Some([low, high]) = range(values.clone().filter(|value| value.is_finite())) else { return Value::Null };
    let extent = if high > low { high - low } else { 1.0 };
    let code = |value: f64| if value.is_finite() { (TOP * (value - low) / extent).round() as u16 } else { NONE };
    json!({ "low": low, "high": low + extent, "of": packed(values.map(code)) })
}

fn packed(numbers: impl Iterator<Item = u16>) -> Value {
    STANDARD.encode(numbers.flat_map(u16::to_le_bytes).collect::<Vec<u8>>()).into()
}

/// Thumbnails, if the embeddings are pictures and there is room.
fn pictures(examples: &Examples<'_>, rows: &[usize]) -> Option<Value> {
    let Examples { trial, dim, .. } = examples;
    let side = pixels::side(&trial.embeddings, *dim)?;
    (rows.len() * dim <= MOST_PIXELS).then(|| {
        let all = rows.iter().flat_map(|row| trial.embeddings[row * dim..][..*dim].iter().copied());
        json!({ "side": side, "of": STANDARD.encode(pixels::bytes(all)) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_end_the_element_that_they_stand_in() {
        let escaped = escape(&json!({ "a": "</script><!--&\u{2028}" }).to_string());
        assert!(!escaped.contains(['<', '>', '&', '\u{2028}']), "{escaped}");
        let back: Value = serde_json::from_str(&escaped).unwrap();
        assert_eq!(back["a"], "</script><!--&\u{2028}");
    }

    fn unpacked(value: &Value) -> Vec<u16> {
        let bytes = STANDARD.decode(value.as_str().unwrap()).unwrap();
        bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
    }

    #[test]
    fn numbers_are_packed_between_their_ends() {
        let found = measure([1.0, f64::NAN, 3.0, 2.0].into_iter());
        assert_eq!((&found["low"], &found["high"]), (&json!(1.0), &json!(3.0)));
        assert_eq!(unpacked(&found["of"]), [0, NONE, 65_534, 32_767]);
        assert_eq!(measure([f64::NAN].into_iter()), Value::Null);
        assert_eq!(unpacked(&measure([5.0, 5.0].into_iter())["of"]), [0, 0]);
    }

    #[test]
    fn sets_are_numbered_and_points_fill_the_square() {
        let sets = Sets::from_iter([vec![1], vec![0, 1], vec![1], vec![]]);
        let found = clustering(&sets, &[0, 1, 2, 3]);
        assert_eq!(found["sets"], json!([[], [0, 1], [1]]));
        assert_eq!(STANDARD.decode(found["of"].as_str().unwrap()).unwrap(), [2, 1, 2, 0]);
        let many = Sets::singletons(&(0..300).collect::<Vec<u32>>());
        let found = clustering(&many, &(0..300).collect::<Vec<usize>>());
        assert_eq!(unpacked(&found["of"]), (0..300).collect::<Vec<u16>>());
        let placed = places(&[[0.0, 0.0], [2.0, 1.0]]);
        assert_eq!(unpacked(&placed), [0, 16_384, 65_534, 49_151]);
    }
}
