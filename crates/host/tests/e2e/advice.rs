//! What is said after a run that a good colleague would say: each thing once, with what to do.

use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, FixedSizeListArray};

use crate::common::{Folder, sets};

const MADE: &str = r#"
name = "made"
degree = 3
[composer]
use = "max"
[[data]]
name = "tuning"
role = "tune"
loader = "synthetic"
params = { n = 60, dim = 4, k = 4, trials = 2 }
[[data]]
name = "d"
loader = "synthetic"
params = { n = 400, dim = 6, k = 4, noise = 2.0, trials = 3 }
[[clusterer]]
use = "ap"
[[clusterer]]
use = "ckm"
params = { k = 2, restarts = 5 }
[[clusterer]]
name = "KM"
use = "kmeans"
params = { k = { grid = [2, 3, 4] } }
[[clusterer]]
use = "fcm"
params = { k = 8, max_iter = 1 }
[[evaluator]]
use = "cri"
[tune]
data = "tuning"
metric = "acri"
"#;

#[test]
fn what_looks_odd_is_said_once_with_what_to_do() {
    let folder = Folder::new();
    folder.write("p.toml", MADE);
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "out"], 0);
    for (said, code) in [
        ("set `preference = { k = … }`", "C102"),
        ("is the largest of its grid: the best may lie beyond", "C104"),
        ("3 of 3 trials did not converge: raise `max_iter`", "C106"),
        ("`degree = 3` is more than the 2 singletons found", "C109"),
    ] {
        let lines: Vec<&str> = stderr.lines().filter(|line| line.contains(said)).collect();
        assert!(
            matches!(lines[..], [line] if line.starts_with("warning: ") && line.contains(code)),
            "{said}: {stderr}"
        );
    }
    let (_, again) = folder.run(&["run", "p.toml", "--out", "out"], 0);
    assert!(again.contains("C104"), "what is kept is advised on, too: {again}");
    assert!(!folder.run(&["run", "p.toml", "--out", "out", "--quiet"], 0).1.contains("C104"));
}

/// Two directions and what is between them, of very different lengths.
fn rays() -> (ArrayRef, ArrayRef) {
    let row = |at: usize| -> ([f32; 2], &'static [u32]) {
        let length = 10f32.powi((at % 4) as i32);
        match at % 7 {
            0 | 1 => ([length, 0.0], &[0]),
            2 | 3 => ([0.0, length], &[1]),
            4 => ([-length, 0.0], &[2]),
            5 => ([length, length], &[0, 1]),
            _ => ([0.0, -length], &[1, 2]),
        }
    };
    let rows: Vec<([f32; 2], &[u32])> = (0..84).map(row).collect();
    let vectors = rows.iter().map(|(vector, _)| Some(vector.map(Some)));
    let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(vectors, 2);
    (Arc::new(vectors), sets(&rows.iter().map(|(_, set)| *set).collect::<Vec<_>>()))
}

#[test]
fn lengths_that_differ_are_worth_a_word_unless_they_do_not_count() {
    let folder = Folder::new();
    let (vectors, truth) = rays();
    folder.write_parquet("x.parquet", vec![("embedding", vectors), ("labels", truth)]);
    let pipeline = |space: &str| {
        format!(
            "{space}\n[[data]]\nname = \"d\"\nloader = \"parquet\"\npath = \"x.parquet\"\n\
             columns = {{ embedding = \"embedding\", truth = \"labels\" }}\n\
             [[clusterer]]\nuse = \"kmeans\"\nparams = {{ k = 3 }}\n[[evaluator]]\nuse = \"cri\"\n"
        )
    };
    folder.write("p.toml", &pipeline(""));
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "a"], 0);
    assert!(stderr.contains("differ by a factor of 1") && stderr.contains("normalize = \"l2\""), "{stderr}");
    folder.write("p.toml", &pipeline("space = { normalize = \"l2\" }"));
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "b"], 0);
    assert!(!stderr.contains("C101"), "{stderr}");
}
