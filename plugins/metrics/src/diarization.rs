//! What pyannote.metrics says of the conversations in `tests/fixtures`, and what holds for `der` and `jer` alike.

use compflow_api::{Column, Component, Evaluation, Evaluator, Result, Services, Sets, Table};
use serde::Deserialize;

use crate::conversation::Params;
use crate::der::Der;
use crate::jer::Jer;

#[derive(Deserialize)]
struct Fixture {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    collar: f64,
    skip_overlap: bool,
    file: Vec<String>,
    start: Vec<f64>,
    end: Vec<f64>,
    truth: Vec<Vec<u32>>,
    predicted: Vec<Vec<u32>>,
    der: f64,
    seconds: Seconds,
    jer: Option<f64>,
}

#[derive(Deserialize)]
struct Seconds {
    #[serde(rename = "missed detection")]
    missed: f64,
    #[serde(rename = "false alarm")]
    false_alarm: f64,
    confusion: f64,
    total: f64,
}

const ALL: Params = Params { collar: 0.0, skip_overlap: false };

fn scores<E: Evaluator + Component<Params = Params>>(
    columns: &Table,
    truth: &Sets,
    predicted: &Sets,
    params: Params,
) -> Result<Vec<f64>> {
    let evaluation = Evaluation { columns, ..Evaluation::new(predicted, truth) };
    E::new(params, &Services::none()).and_then(|evaluator| evaluator.evaluate(&evaluation, &Services::none()))
}

fn columns(file: Column, start: Column, end: Column) -> Table {
    [("file", file), ("start", start), ("end", end)].map(|(name, column)| (name.to_owned(), column)).into()
}

/// Segments of one recording.
fn of_one(times: &[(f64, f64)]) -> Table {
    let (start, end) = times.iter().copied().unzip();
    let file = Column::Texts(vec!["a".to_owned(); times.len()]);
    columns(file, Column::Floats(start), Column::Floats(end))
}

fn sets(sets: &[&[u32]]) -> Sets {
    sets.iter().copied().collect()
}

/// What both say is wrong.
fn refused(columns: &Table, truth: &[&[u32]]) -> String {
    let truth = sets(truth);
    let [der, jer] = [scores::<Der>(columns, &truth, &truth, ALL), scores::<Jer>(columns, &truth, &truth, ALL)]
        .map(|scores| scores.unwrap_err().to_string());
    assert_eq!(der, jer);
    der
}

#[test]
fn agrees_with_pyannote() {
    let fixture: Fixture = serde_json::from_str(include_str!("../tests/fixtures/pyannote.json")).unwrap();
    assert!(fixture.cases.len() > 30);
    for case in fixture.cases {
        let name = case.name;
        let params = Params { collar: case.collar, skip_overlap: case.skip_overlap };
        let columns = columns(Column::Texts(case.file), Column::Floats(case.start), Column::Floats(case.end));
        let (truth, predicted) = (case.truth.into_iter().collect(), case.predicted.into_iter().collect());
        let der = scores::<Der>(&columns, &truth, &predicted, params).unwrap();
        let Seconds { missed, false_alarm, confusion, total } = case.seconds;
        let expected = [case.der, missed / total, false_alarm / total, confusion / total];
        for (found, expected) in der.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{name} {params:?}: {der:?}, expected {expected:?}");
        }
        let jer = scores::<Jer>(&columns, &truth, &predicted, params).unwrap()[0];
        if let Some(expected) = case.jer {
            assert!((jer - expected).abs() < 1e-12, "{name} {params:?}: {jer}, expected {expected}");
        }
    }
}

#[test]
fn is_the_shares_of_what_is_missed_made_up_and_confused() {
    // 2 s right, 3 s of two of whom one is found, 1 s of silence given to one, 4 s given to the other.
    let columns = of_one(&[(0.0, 2.0), (2.0, 5.0), (5.0, 6.0), (6.0, 10.0), (10.0, 20.0)]);
    let truth = sets(&[&[0], &[0, 1], &[], &[0], &[1]]);
    let predicted = sets(&[&[7], &[7], &[7], &[8], &[8]]);
    let der = scores::<Der>(&columns, &truth, &predicted, ALL).unwrap();
    assert_eq!(der, [8.0 / 22.0, 3.0 / 22.0, 1.0 / 22.0, 4.0 / 22.0]);
    let jer = scores::<Jer>(&columns, &truth, &predicted, ALL).unwrap();
    assert!((jer[0] - (1.0 - (5.0 / 10.0 + 10.0 / 17.0) / 2.0)).abs() < 1e-15, "{jer:?}");
    let skipped = scores::<Der>(&columns, &truth, &predicted, Params { skip_overlap: true, ..ALL }).unwrap();
    assert_eq!(skipped, [5.0 / 16.0, 0.0, 1.0 / 16.0, 4.0 / 16.0]);
}

#[test]
fn speakers_have_other_names_in_every_recording() {
    let whole = |values: &[i64]| Column::Integers(values.to_vec());
    let columns = columns(whole(&[0, 0, 1, 1]), whole(&[0, 1, 0, 1]), whole(&[1, 2, 1, 2]));
    let truth = Sets::singletons(&[0, 1, 0, 1]);
    let crossed = Sets::singletons(&[4, 5, 5, 4]);
    assert_eq!(scores::<Der>(&columns, &truth, &crossed, ALL).unwrap()[0], 0.0);
    assert_eq!(scores::<Jer>(&columns, &truth, &crossed, ALL).unwrap(), [0.0]);
}

#[test]
fn silence_is_right_where_nobody_speaks() {
    let columns = of_one(&[(0.0, 1.0), (1.0, 2.0)]);
    let (silent, spoken) = (sets(&[&[], &[]]), sets(&[&[], &[3]]));
    for (truth, predicted, expected) in [(&silent, &silent, 0.0), (&silent, &spoken, 1.0), (&spoken, &silent, 1.0)]
    {
        assert_eq!(scores::<Der>(&columns, truth, predicted, ALL).unwrap()[0], expected);
        assert_eq!(scores::<Jer>(&columns, truth, predicted, ALL).unwrap(), [expected]);
    }
    let none = of_one(&[]);
    assert_eq!(scores::<Der>(&none, &sets(&[]), &sets(&[]), ALL).unwrap(), [0.0; 4]);
}

#[test]
fn times_rounded_to_milliseconds_do_not_overlap() {
    let columns = of_one(&[(0.0, 1.001), (1.0, 2.0)]);
    let truth = Sets::singletons(&[0, 1]);
    assert_eq!(scores::<Der>(&columns, &truth, &truth, ALL).unwrap(), [0.0; 4]);
}

#[test]
fn what_has_no_place_in_time_is_refused_by_its_row() {
    let two: [&[u32]; 2] = [&[0], &[1]];
    assert_eq!(
        refused(&of_one(&[(0.0, 1.0), (3.0, 2.5)]), &two),
        "row 1 of the trial: the segment ends at 2.5 s, before it starts at 3 s"
    );
    assert_eq!(refused(&of_one(&[(0.0, f64::NAN), (1.0, 2.0)]), &two), "row 0 of the trial: the end is NaN");
    assert_eq!(
        refused(&of_one(&[(0.0, 1.0), (f64::INFINITY, 2.0)]), &two),
        "row 1 of the trial: the start is inf"
    );
    assert_eq!(
        refused(&of_one(&[(1.0, 3.0), (0.0, 1.5)]), &two),
        "rows 0 and 1 of the trial are segments of `a` that overlap from 1 to 1.5 s; \
         who speaks at once belongs in one set"
    );
    let (texts, floats) = (Column::Texts(vec!["a".to_owned()]), Column::Floats(vec![0.5]));
    assert_eq!(
        refused(&columns(floats.clone(), floats.clone(), floats.clone()), &two[..1]),
        "the column `file` must hold strings or integers: the names of recordings"
    );
    assert_eq!(
        refused(&columns(texts.clone(), texts, floats), &two[..1]),
        "the column `start` must hold numbers: seconds"
    );
    assert_eq!(refused(&Table::new(), &two), "the data has no further column `file`");
}
