//! What is said after a run that a good colleague would say: each thing once, with what to do.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, UInt32Type};
use arrow_array::{ArrayRef, FixedSizeListArray};

use crate::common::{Folder, embeddings, numbers, sets};

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

#[test]
fn exemplars_are_counted_as_in_the_table_of_runs() {
    let folder = Folder::new();
    // A third of the exemplars are members of unions only.
    let pipeline = r#"
name = "p"
degree = 2
composer = { use = "max" }
[[data]]
name = "d"
loader = "synthetic"
params = { n = 200, dim = 6, k = 4, noise = 2.0 }
[[clusterer]]
use = "cap"
params = { preference = -3, max_iter = 1, finish = "choices" }
[[evaluator]]
use = "cri"
"#;
    let line = told(&folder, "C102", pipeline).expect("many exemplars");
    let runs = folder.read_parquet("out/runs.parquet");
    let singletons = runs.column_by_name("singletons").unwrap().as_primitive::<UInt32Type>().value(0);
    assert!(line.contains(&format!("{singletons} exemplars for 200 examples")), "{singletons}: {line}");
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

/// Whether a run of this data, made up or in a file, is told about a cause; the line, if it is.
fn told(folder: &Folder, code: &str, pipeline: &str) -> Option<String> {
    folder.write("p.toml", pipeline);
    let (_, stderr) = folder.run(&["run", "p.toml", "--out", "out"], 0);
    let lines: Vec<&str> = stderr.lines().filter(|line| line.contains(code)).collect();
    assert!(lines.len() <= 1, "once: {stderr}");
    lines.first().map(|line| (*line).to_owned())
}

#[test]
fn whoever_looks_for_unions_and_finds_none_is_told() {
    let folder = Folder::new();
    let pipeline = |degree: u32| {
        format!(
            "composer = {{ use = \"sum\" }}\n[[data]]\nname = \"d\"\nloader = \"synthetic\"\n\
             params = {{ n = 120, k = 3, degree = {degree}, noise = 0.1, composer = {{ use = \"sum\" }} }}\n\
             [[clusterer]]\nuse = \"ckm\"\nparams = {{ k = 3 }}\n\
             [[clusterer]]\nuse = \"kmeans\"\nparams = {{ k = 3 }}\n"
        )
    };
    let line = told(&folder, "C103", &pipeline(1)).expect("nothing truly is a union");
    assert!(line.starts_with("warning: ckm on d: no union was found") && line.contains("fit-composer"), "{line}");
    assert_eq!(told(&folder, "C103", &pipeline(2)), None, "unions are there, and k-means looks for none");
}

#[test]
fn scores_of_a_guess_are_called_so() {
    let folder = Folder::new();
    let row =
        |at: usize| [[10.0f32, 0.0], [0.0, 10.0], [-10.0, -10.0]][at % 3].map(|value| value + at as f32 / 100.0);
    let rows: Vec<[f32; 2]> = (0..90).map(row).collect();
    let rows: Vec<&[f32]> = rows.iter().map(|row| &row[..]).collect();
    let labels = |of: &dyn Fn(usize) -> u32| numbers(&(0..90).map(of).collect::<Vec<u32>>());
    let columns = vec![
        ("embedding", embeddings(&rows)),
        ("who", labels(&|at| (at % 3) as u32)),
        // In every group as many of each.
        ("day", labels(&|at| (at / 3 % 3) as u32)),
    ];
    folder.write_parquet("x.parquet", columns);
    let pipeline = |truth: &str| {
        format!(
            "[[data]]\nname = \"d\"\nloader = \"parquet\"\npath = \"x.parquet\"\n\
             columns = {{ embedding = \"embedding\", truth = \"{truth}\" }}\n\
             [[clusterer]]\nuse = \"kmeans\"\nparams = {{ k = 3 }}\n\
             [[clusterer]]\nuse = \"oracle\"\n[[evaluator]]\nuse = \"cri\"\n"
        )
    };
    let line = told(&folder, "C105", &pipeline("day")).expect("labels of something else");
    assert!(
        line.starts_with("warning: kmeans on d: acri is -") && line.contains("about what a guess gets"),
        "{line}"
    );
    assert_eq!(told(&folder, "C105", &pipeline("who")), None);
}

#[test]
fn differences_that_trials_cannot_show_are_named_and_those_that_they_show_are_not() {
    let folder = Folder::new();
    let pipeline = |params: &str, metric: &str| {
        format!(
            "composer = {{ use = \"max\" }}\n[[data]]\nname = \"d\"\nloader = \"synthetic\"\nparams = {{ {params} }}\n\
             [[clusterer]]\nuse = \"ckm\"\nparams = {{ k = 4, restarts = 5 }}\n\
             [[clusterer]]\nuse = \"kmeans\"\nparams = {{ k = 9 }}\n[[evaluator]]\nuse = \"{metric}\"\n"
        )
    };
    let line = told(&folder, "C107", &pipeline("n = 60, k = 4, noise = 1.0, dim = 8, trials = 2", "ari"));
    let line = line.expect("two trials");
    assert!(
        line.starts_with("warning: data `d`: 2 trials cannot show that ") && line.contains("more trials"),
        "{line}"
    );
    let many = pipeline("n = 60, k = 4, noise = 0.1, dim = 8, trials = 10", "cri");
    assert_eq!(told(&folder, "C107", &many), None, "only one of them looks for unions");
    let one = pipeline("n = 60, k = 4, noise = 1.0, dim = 8", "ari");
    assert_eq!(told(&folder, "C107", &one), None, "one trial shows nothing, and nobody thinks so");
}

#[test]
fn a_composer_that_does_not_fit_the_labels_is_named() {
    let folder = Folder::new();
    // Three things, and two at once, of which the second is heard as loud as `share` says.
    let write = |share: f32| {
        let all: [&[u32]; 6] = [&[0], &[1], &[2], &[0, 1], &[0, 2], &[1, 2]];
        let row = |set: &[u32]| {
            let mut row = [0.0; 3];
            set.iter().zip([1.0, share]).for_each(|(member, loud)| row[*member as usize] = loud);
            row
        };
        let rows: Vec<[f32; 3]> = all.iter().cycle().take(60).map(|set| row(set)).collect();
        let rows: Vec<&[f32]> = rows.iter().map(|row| &row[..]).collect();
        let truth: Vec<&[u32]> = all.iter().cycle().take(60).copied().collect();
        let columns = vec![("embedding", embeddings(&rows)), ("labels", sets(&truth))];
        folder.write_parquet("x.parquet", columns);
    };
    let pipeline = "composer = { use = \"sum\" }\n[[data]]\nname = \"d\"\nloader = \"parquet\"\npath = \"x.parquet\"\n\
                    columns = { embedding = \"embedding\", truth = \"labels\" }\n\
                    [[clusterer]]\nuse = \"ckm\"\nparams = { k = 3 }\n[[evaluator]]\nuse = \"cri\"\n";
    write(0.1);
    let line = told(&folder, "C108", pipeline).expect("nearly all of it is the louder one");
    assert!(
        line.starts_with("warning: data `d`: the composer `sum` predicts 0 of 3 unions of labels better"),
        "{line}"
    );
    assert!(line.contains("`compflow fit-composer` says which composer to take"), "{line}");
    write(0.9);
    assert_eq!(told(&folder, "C108", pipeline), None);
}
