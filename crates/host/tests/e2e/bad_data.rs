//! Data that cannot be clustered: the file, the row and what is wrong with it.

use std::sync::Arc;

use arrow_array::types::{Float32Type, Int32Type, UInt32Type};
use arrow_array::{ArrayRef, BooleanArray, Float32Array, Int32Array, ListArray};

use crate::common::{Folder, embeddings, numbers, sets};

const GOOD: &[&[f32]] = &[&[0.0, 1.0], &[5.0, 5.0], &[0.5, 1.0]];

/// Checks a file with these columns; returns the first line of the error.
fn refused(columns: Vec<(&str, ArrayRef)>, names: &str) -> String {
    let folder = Folder::new();
    folder.write_parquet("x.parquet", columns);
    folder.write("p.toml", &pipeline("x.parquet", names));
    let (stdout, stderr) = folder.run(&["check", "p.toml"], 2);
    assert_eq!(stdout, "");
    stderr.lines().next().unwrap().to_owned()
}

fn pipeline(path: &str, names: &str) -> String {
    format!(
        "[[data]]\nname = \"d\"\nloader = \"parquet\"\npath = \"{path}\"\ncolumns = {{ {names} }}\n\
         [[clusterer]]\nuse = \"kmeans\"\nparams = {{ k = 1 }}\n"
    )
}

fn lists(rows: &[Option<&[Option<f32>]>]) -> ArrayRef {
    Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(
        rows.iter().map(|row| row.map(|row| row.iter().copied())),
    ))
}

#[test]
fn embeddings_that_are_no_matrix_of_finite_numbers() {
    let refused = |column: ArrayRef| refused(vec![("e", column)], "embedding = \"e\"");
    let (a, b) = (Some(1.0), Some(2.0));
    assert_eq!(
        refused(lists(&[Some(&[a, b]), Some(&[a])])),
        "error: x.parquet: row 1: the embedding has 1 number, those before it have 2"
    );
    assert_eq!(refused(lists(&[Some(&[]), Some(&[a])])), "error: x.parquet: row 0: the embedding is empty");
    assert_eq!(refused(lists(&[Some(&[a]), None])), "error: x.parquet: row 1: the embedding is null");
    assert_eq!(
        refused(lists(&[Some(&[a, b]), Some(&[a, None])])),
        "error: x.parquet: row 1: the embedding is null in dimension 1"
    );
    assert_eq!(
        refused(embeddings(&[&[0.0, 1.0], &[0.0, 1.0], &[f32::NAN, 1.0]])),
        "error: x.parquet: row 2: the embedding is NaN in dimension 0"
    );
    assert_eq!(
        refused(embeddings(&[&[0.0, f32::NEG_INFINITY]])),
        "error: x.parquet: row 0: the embedding is -inf in dimension 1"
    );
    assert_eq!(
        refused(numbers(&[1, 2])),
        "error: x.parquet: the embedding column must hold lists of numbers, found whole numbers"
    );
    assert_eq!(refused(lists(&[])), "error: data `d`: there are no rows");
}

#[test]
fn true_sets_that_are_none() {
    let refused = |column: ArrayRef| {
        refused(vec![("e", embeddings(GOOD)), ("t", column)], "embedding = \"e\", truth = \"t\"")
    };
    let lists = |rows: Vec<Option<Vec<Option<u32>>>>| -> ArrayRef {
        Arc::new(ListArray::from_iter_primitive::<UInt32Type, _, _>(rows))
    };
    let one = || Some(vec![Some(1)]);
    assert_eq!(refused(lists(vec![one(), one(), None])), "error: x.parquet: row 2: the truth is null");
    assert_eq!(
        refused(lists(vec![one(), one(), Some(vec![Some(1), None])])),
        "error: x.parquet: row 2: the truth has a null in it"
    );
    assert_eq!(
        refused(Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0]))),
        "error: x.parquet: the truth column must hold whole numbers or text, found numbers"
    );
}

#[test]
fn trials_and_identifiers_that_are_none() {
    let refused = |names: &str, columns: Vec<(&str, ArrayRef)>| {
        let columns = std::iter::once(("e", embeddings(GOOD))).chain(columns).collect();
        refused(columns, &format!("embedding = \"e\", {names}"))
    };
    assert_eq!(
        refused("id = \"i\"", vec![("i", numbers(&[7, 8, 7]))]),
        "error: data `d`: rows 0 and 2 of trial 0 have the same id 7"
    );
    assert_eq!(
        refused("id = \"i\"", vec![("i", sets(&[&[1], &[2], &[3]]))]),
        "error: x.parquet: the id column must hold whole numbers or text, found lists of whole numbers"
    );
    assert_eq!(
        refused("trial = \"t\"", vec![("t", Arc::new(Int32Array::from(vec![Some(0), None, Some(1)])))]),
        "error: x.parquet: row 1: the trial is null"
    );
    assert_eq!(
        refused("trial = \"t\"", vec![("t", Arc::new(Int32Array::from(vec![0, 1, -4])))]),
        "error: x.parquet: row 2: the trial -4 is not between 0 and 2^32"
    );
    assert_eq!(
        refused("trial = \"t\"", vec![("t", Arc::new(BooleanArray::from(vec![true, false, true])))]),
        "error: x.parquet: the trial column must hold whole numbers, found true and false"
    );
    let fine: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(
        [vec![Some(1)], vec![Some(2), Some(-1)], vec![Some(1)]].map(Some),
    ));
    let folder = Folder::new();
    let columns =
        vec![("e", embeddings(GOOD)), ("i", numbers(&[7, 7, 8])), ("t", numbers(&[0, 1, 0])), ("s", fine)];
    folder.write_parquet("x.parquet", columns);
    let names = "embedding = \"e\", id = \"i\", trial = \"t\", truth = \"s\"";
    folder.write("p.toml", &pipeline("x.parquet", names));
    assert_eq!(folder.run(&["check", "p.toml"], 0).0, "p.toml: ok\n", "an id may be used again in another trial");
}

#[test]
fn files_that_are_missing_or_no_parquet() {
    let folder = Folder::new();
    folder.write("text.parquet", "not a table");
    let first_line = |path: &str| {
        folder.write("p.toml", &pipeline(path, "embedding = \"e\""));
        folder.run(&["check", "p.toml"], 2).1.lines().next().unwrap().to_owned()
    };
    assert_eq!(first_line("none.parquet"), "error: none.parquet: there is no such file");
    assert_eq!(first_line("none*.parquet"), "error: no file matches none*.parquet");
    let text = first_line("text.parquet");
    assert!(text.contains("text.parquet") && text.contains("is not a Parquet file"), "{text}");
}

#[test]
fn a_missing_column_is_named_with_those_there_are() {
    let folder = Folder::new();
    folder.write_parquet("x.parquet", vec![("embedding", embeddings(GOOD)), ("id", numbers(&[1, 2, 3]))]);
    folder.write("p.toml", &pipeline("x.parquet", "embedding = \"embeding\""));
    let (_, stderr) = folder.run(&["check", "p.toml"], 2);
    assert!(
        stderr.contains("parquet: `embedding` names the column `embeding`, which is not in x.parquet\n"),
        "{stderr}"
    );
    assert!(stderr.contains("did you mean `embedding`?"), "{stderr}");
}

#[test]
fn one_row_is_enough() {
    let folder = Folder::new();
    folder.write_parquet("x.parquet", vec![("e", embeddings(&[&[1.0, 2.0]])), ("t", sets(&[&[0, 1]]))]);
    let pipeline = pipeline("x.parquet", "embedding = \"e\", truth = \"t\"");
    folder.write("p.toml", &(pipeline + "[[evaluator]]\nuse = \"cri\"\n[[evaluator]]\nuse = \"ari\"\n"));
    let (stdout, _) = folder.run(&["run", "p.toml", "--format", "csv"], 0);
    assert!(stdout.contains("d,kmeans,cri,1,1,,true,\n"), "{stdout}");
}

#[test]
fn embeddings_of_another_length_than_the_weights() {
    let folder = Folder::new();
    folder.write_parquet("x.parquet", vec![("e", embeddings(GOOD))]);
    let weights = crate::common::repository().join("data/omniglot/g.safetensors");
    let composer = format!("[composer]\nuse = \"bilinear\"\nparams = {{ weights = \"{}\" }}\n", weights.display());
    folder.write("p.toml", &(composer + &pipeline("x.parquet", "embedding = \"e\"")));
    let (_, stderr) = folder.run(&["check", "p.toml"], 2);
    let text = "error: data `d` has embeddings of length 2, and the composer `bilinear` is made for 32\n";
    assert!(stderr.starts_with(text), "{stderr}");
}
