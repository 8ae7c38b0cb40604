//! Tests of the loader `disturbed`, on a small table of two trials.

use std::path::Path;

use arrow_array::StringArray;
use arrow_array::UInt32Array;
use arrow_array::types::UInt32Type;
use compflow_api::{Host, Instance, NoParams, Registration, Sets};

use super::*;
use crate::testing::{concat, load_with, sets_of};

/// Two trials with ten examples each of the singletons 0, 1, 2 and of their three unions of two.
fn table() -> RecordBatch {
    let all: [&[u32]; 6] = [&[0], &[1], &[2], &[0, 1], &[0, 2], &[1, 2]];
    let rows = 0..120_u32;
    let truth = ListArray::from_iter_primitive::<UInt32Type, _, _>(
        rows.clone().map(|row| Some(all[row as usize % 6].iter().copied().map(Some))),
    );
    let embedding = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
        rows.clone().map(|row| Some([Some(row as f32), Some(5.0)])),
        2,
    );
    RecordBatch::try_from_iter([
        ("embedding", Arc::new(embedding) as ArrayRef),
        ("labels", Arc::new(truth)),
        (
            "first",
            Arc::new(StringArray::from_iter_values(rows.clone().map(|row| all[row as usize % 6][0].to_string()))),
        ),
        ("trial", Arc::new(UInt32Array::from_iter_values(rows.clone().map(|row| row / 60 + 4)))),
        ("id", Arc::new(UInt32Array::from_iter_values(rows))),
    ])
    .unwrap()
}

/// A loader of that table.
struct Fixed;

impl Component for Fixed {
    const NAME: &'static str = "fixed";
    const SUMMARY: &'static str = "";
    type Params = NoParams;

    fn new(_params: NoParams, _services: &Services<'_>) -> Result<Self> {
        Ok(Self)
    }
}

impl Loader for Fixed {
    fn load(&self, request: &LoadRequest<'_>, _services: &Services<'_>) -> Result<Stream> {
        assert_eq!(request.path, None::<&Path>);
        let table = table();
        let missing = request.columns.iter().find(|(_, source)| table.column_by_name(source).is_none());
        if let Some((name, source)) = missing {
            return Err(Error::column(name, source, "the table", ["labels"]));
        }
        let columns = request.columns.iter().map(|(name, source)| (*name, table[*source].clone()));
        let found = RecordBatch::try_from_iter(columns)?;
        // In two batches, the first of which ends within a trial.
        let (schema, batches) = (found.schema(), [Ok(found.slice(0, 40)), Ok(found.slice(40, 80))]);
        let batches: Batches = Box::new(RecordBatchIterator::new(batches, schema));
        Ok(batches.into())
    }
}

struct WithFixed;

impl Host for WithFixed {
    fn create(&self, kind: Kind, name: &str, params: &str) -> Result<Instance> {
        if (kind, name) == (Kind::Loader, "fixed") {
            return Registration::loader::<Fixed>().component()?.create(params, &Services::none());
        }
        Err(Error::new(format!("no {kind} named `{name}`")))
    }
}

const ALL: [(&str, &str); 4] = [("embedding", "embedding"), ("truth", "labels"), ("trial", "trial"), ("id", "id")];

fn asked(params: &str, columns: &[(&str, &str)]) -> Result<RecordBatch> {
    let params = format!(r#"{{"of": {{"use": "fixed"}}{}{params}}}"#, if params.is_empty() { "" } else { ", " });
    let services = Services { host: &WithFixed, seed: 3, ..Services::none() };
    Ok(concat(&load_with::<Disturbed>(&params, &LoadRequest { path: None, columns }, &services)?))
}

fn disturbed(params: &str) -> RecordBatch {
    asked(params, &ALL).unwrap()
}

fn ids(batch: &RecordBatch) -> Vec<u32> {
    batch["id"].as_primitive::<UInt32Type>().values().to_vec()
}

/// How often each set occurs in the first and in the second trial.
fn counts(batch: &RecordBatch) -> BTreeMap<Vec<u32>, [usize; 2]> {
    let sets: Sets = sets_of(&batch["truth"]);
    let mut counts: BTreeMap<Vec<u32>, [usize; 2]> = BTreeMap::new();
    for (set, trial) in sets.iter().zip(batch["trial"].as_primitive::<UInt32Type>().values()) {
        counts.entry(set.to_vec()).or_default()[*trial as usize - 4] += 1;
    }
    counts
}

#[test]
fn nothing_is_changed_unless_asked_for() {
    let columns = ALL.map(|(name, source)| (name, table()[source].clone()));
    assert_eq!(disturbed(""), RecordBatch::try_from_iter(columns).unwrap());
}

#[test]
fn unions_get_their_share_and_sets_stay_as_equal_as_can_be() {
    // 30 singles to a trial: 3 unions are 9 %, 30 are half, and with 10 singles left 30 are three quarters.
    for (share, of_unions, of_singles) in [(0.09, 1, 10), (0.5, 10, 10), (0.75, 10, 3)] {
        for (set, found) in counts(&disturbed(&format!(r#""unions": {share}"#))) {
            let least = if set.len() > 1 { of_unions } else { of_singles };
            assert!(
                found.iter().all(|found| (least..=least + 1).contains(found)),
                "{share}: {found:?} of {set:?}"
            );
        }
    }
    let none = counts(&disturbed(r#""unions": 0.0"#));
    assert_eq!(none.into_iter().collect::<Vec<_>>(), [0, 1, 2].map(|one| (vec![one], [10; 2])));
}

#[test]
fn a_singleton_may_never_occur_alone() {
    let found = counts(&disturbed(r#""never_alone": 1"#));
    assert!(!found.contains_key(&vec![0]) && found[&vec![0, 1]] == [10; 2] && found.len() == 5, "{found:?}");
}

#[test]
fn outliers_take_the_place_of_examples_and_have_no_true_set() {
    let (whole, found) = (disturbed(""), disturbed(r#""outliers": 0.1, "spread": 3.0"#));
    assert_eq!(ids(&found), ids(&whole), "everybody is still there");
    assert_eq!(counts(&found)[&vec![]], [6; 2]);
    let (sets, truth) = (sets_of(&found["truth"]), sets_of(&whole["truth"]));
    let values = |batch: &RecordBatch| {
        batch["embedding"].as_fixed_size_list().values().as_primitive::<Float32Type>().values().to_vec()
    };
    let (before, after) = (values(&whole), values(&found));
    for (row, set) in sets.iter().enumerate() {
        if set.is_empty() {
            assert_ne!(after[2 * row], before[2 * row]);
            assert_eq!(after[2 * row + 1], 5.0, "where the data has no spread, outliers have none");
        } else {
            assert_eq!((set, &after[2 * row..][..2]), (&truth[row], &before[2 * row..][..2]));
        }
    }
}

#[test]
fn the_same_rows_are_left_whatever_is_asked_for() {
    let params = r#""unions": 0.2, "outliers": 0.1"#;
    let whole = disturbed(params);
    let named = format!(r#"{params}, "truth": "labels""#);
    let some = asked(&named, &[("embedding", "embedding"), ("trial", "trial")]).unwrap();
    assert_eq!(some, whole.project(&[0, 2]).unwrap());
    assert_ne!(ids(&whole), ids(&disturbed(&format!(r#"{params}, "seed": 4"#))), "another seed, other rows");
}

#[test]
fn single_labels_are_sets_of_one() {
    let columns = [("truth", "first"), ("trial", "trial"), ("id", "id")];
    let found = asked(r#""never_alone": 1, "outliers": 0.5"#, &columns).unwrap();
    // 30 of 60 have another label than the first; half of them are outliers.
    let sizes: Vec<i32> =
        (0..found.num_rows()).map(|row| found["truth"].as_list::<i32>().value_length(row)).collect();
    assert_eq!((sizes.len(), sizes.iter().filter(|size| **size == 0).count()), (60, 30));
}

#[test]
fn what_cannot_be_used_is_named() {
    let refused = |params: &str, columns: &[(&str, &str)]| asked(params, columns).unwrap_err().to_string();
    let truth = refused(r#""truth": "other""#, &ALL);
    assert_eq!(truth, "`truth` = `other`, but the true sets that are asked for are those of `labels`");
    let missing = refused(r#""unions": 0.1"#, &ALL[..1]);
    assert!(missing.starts_with("`truth` names the column `truth`, which is not in the table"), "{missing}");
    let services = Services { host: &WithFixed, ..Services::none() };
    let request = LoadRequest { path: None, columns: &ALL };
    let error = load_with::<Disturbed>(r#"{"of": {"use": "fixd"}}"#, &request, &services).unwrap_err();
    assert_eq!(error.to_string(), "`of` `fixd`: no loader named `fixd`");
}
