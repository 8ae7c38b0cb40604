//! The mistakes that a new user makes, and what is said about each: docs/messages.md is made from what the command prints, and
//! must be what it prints now. `COMPFLOW_BLESS=1 cargo test` writes it.

use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, Float64Array, ListArray, StringArray, TimestampSecondArray};

use crate::common::{Folder, embeddings, numbers, repository, sets};

/// What was done, in which pipeline if one is written for it, and what is typed.
struct Mistake {
    /// What somebody did wrong, in a few words.
    what: &'static str,
    /// The pipeline `p.toml`, if it differs from the one that is right.
    pipeline: Option<String>,
    /// What is typed behind `compflow`.
    args: &'static [&'static str],
    /// The exit code.
    code: i32,
}

const CHECK: &[&str] = &["check", "p.toml"];

/// A pipeline in which everything is right.
fn right() -> String {
    "name = \"p\"\ndegree = 2\n\n[composer]\nuse = \"max\"\n\n\
     [[data]]\nname = \"d\"\nloader = \"parquet\"\npath = \"x.parquet\"\n\
     columns = { embedding = \"e\", truth = \"t\", id = \"i\" }\n\n\
     [[clusterer]]\nname = \"KM\"\nuse = \"kmeans\"\nparams = { k = 2 }\n\n\
     [[evaluator]]\nuse = \"cri\"\n"
        .to_owned()
}

/// A check of the right pipeline with something in it replaced.
fn with(what: &'static str, old: &str, new: &str) -> Mistake {
    let right = right();
    assert!(right.contains(old), "{what}: {old}");
    Mistake { what, pipeline: Some(right.replacen(old, new, 1)), args: CHECK, code: 2 }
}

/// A check with other data.
fn data(what: &'static str, file: &str, columns: &str) -> Mistake {
    let loader = if file.ends_with(".csv") { "csv" } else { "parquet" };
    let named = format!("loader = \"{loader}\"\npath = \"{file}\"\ncolumns = {{ {columns} }}");
    let old =
        "loader = \"parquet\"\npath = \"x.parquet\"\ncolumns = { embedding = \"e\", truth = \"t\", id = \"i\" }";
    with(what, old, &named)
}

/// Something else that is typed.
fn typed(what: &'static str, args: &'static [&'static str]) -> Mistake {
    Mistake { what, pipeline: None, args, code: 2 }
}

fn mistakes() -> Vec<Mistake> {
    let params = "params = { k = 2 }";
    let kmeans = "use = \"kmeans\"\nparams = { k = 2 }";
    vec![
        // The file.
        with("a text without quotes", "name = \"p\"", "name = p"),
        with("a bracket that is not closed", "params = { k = 2 }", "params = { k = 2"),
        with("one bracket where there are two", "[[data]]", "[data]"),
        with("a key with a typing error", "degree = 2", "degre = 2"),
        with("a key of another table", "degree = 2", "k = 5\ndegree = 2"),
        with("a parameter outside of `params`", params, "k = 2"),
        with("a text where a number is needed", "degree = 2", "degree = \"2\""),
        with("a number that is too small", "degree = 2", "degree = 0"),
        with("a choice that there is not", "degree = 2", "space = { normalize = \"L2norm\" }"),
        with("no clusterer", "[[clusterer]]\nname = \"KM\"\nuse = \"kmeans\"\nparams = { k = 2 }\n", ""),
        with("data without a name", "[[data]]\nname = \"d\"\n", "[[data]]\n"),
        with("a clusterer without `use`", "use = \"kmeans\"\n", ""),
        with(
            "the same name twice",
            "[[evaluator]]",
            "[[clusterer]]\nname = \"KM\"\nuse = \"ac\"\nparams = { k = 2 }\n\n[[evaluator]]",
        ),
        with("a slash in the name", "name = \"p\"", "name = \"my/run\""),
        with("role of another word", "name = \"d\"", "name = \"d\"\nrole = \"train\""),
        // Components.
        with("an algorithm with a typing error", "use = \"kmeans\"", "use = \"k-means\""),
        with("an algorithm of another tool", "use = \"kmeans\"", "use = \"DBSCAN\""),
        with("a metric that there is not", "use = \"cri\"", "use = \"accuracy\""),
        with("a loader that there is not", "loader = \"parquet\"", "loader = \"pandas\""),
        with("scikit-learn's `n_clusters`", params, "params = { n_clusters = 2 }"),
        with("scikit-learn's `n_init`", params, "params = { k = 2, n_init = 10 }"),
        with("scikit-learn's `random_state`", params, "params = { k = 2, random_state = 0 }"),
        with("a parameter with a typing error", params, "params = { k = 2, restart = 10 }"),
        with("a parameter that is missing", params, "params = {}"),
        with("a parameter of the wrong kind", params, "params = { k = \"two\" }"),
        with("a parameter out of range", params, "params = { k = 0 }"),
        with("a preset that there is not", params, "params = { k = 2, preset = \"papr\" }"),
        with("`grid` with a typing error", params, "params = { k = { gird = [2, 3] } }"),
        with("a value twice in a grid", params, "params = { k = { grid = [2, 2] } }"),
        with("`auto` where there is none", params, "params = { k = 2, restarts = \"auto\" }"),
        with("unions without a composer", "[composer]\nuse = \"max\"\n\n", "")
            .and(kmeans, "use = \"ckm\"\nparams = { k = 2 }"),
        with("a composer without weights", "use = \"max\"", "use = \"bilinear\""),
        with(
            "tuning on data that is not there",
            "[[evaluator]]",
            "[tune]\ndata = \"validation\"\nmetric = \"acri\"\n\n[[evaluator]]",
        ),
        // Files.
        with("a file that is not there", "x.parquet", "data/x.parquet"),
        with("a pattern that matches nothing", "x.parquet", "part-*.parquet"),
        with("a folder without data", "x.parquet", "empty"),
        with("an environment variable that is not set", "x.parquet", "${MY_DATA}/x.parquet"),
        with("a file of another format", "x.parquet", "table.csv"),
        with("a column with a typing error", "truth = \"t\"", "truth = \"tt\""),
        with("columns that no pattern stands for", "embedding = \"e\"", "embedding = \"dim_*\""),
        with("no path", "path = \"x.parquet\"\n", ""),
        // What is in them.
        data("an embedding that is missing", "nulls.parquet", "embedding = \"e\", truth = \"t\""),
        data("embeddings of different lengths", "ragged.parquet", "embedding = \"e\", truth = \"t\""),
        data("a NaN", "nan.parquet", "embedding = \"e\", truth = \"t\""),
        data("numbers where lists are needed", "x.parquet", "embedding = \"i\", truth = \"t\""),
        data("labels that are numbers with a point", "odd.parquet", "embedding = \"e\", truth = \"score\""),
        data("labels that are dates", "odd.parquet", "embedding = \"e\", truth = \"when\""),
        data("several labels in one text", "odd.parquet", "embedding = \"e\", truth = \"several\""),
        data("a list of labels as a text", "odd.parquet", "embedding = \"e\", truth = \"listed\""),
        data("labels of only some examples", "odd.parquet", "embedding = \"e\", truth = \"some\""),
        data(
            "an identifier that is used twice",
            "odd.parquet",
            "embedding = \"e\", truth = \"t\", id = \"twice\"",
        ),
        data("trials with names", "odd.parquet", "embedding = \"e\", truth = \"t\", trial = \"several\""),
        data("a cell that is no number", "table.csv", "embedding = [\"x\", \"y\"], truth = \"label\""),
        data("true sets that nobody named", "x.parquet", "embedding = \"e\""),
        with("more clusters than examples", params, "params = { k = 50 }"),
        with("preferences that nobody named", kmeans, "use = \"cap\"\nparams = { preference = \"column\" }"),
        // The command line.
        typed("data in the place of a pipeline", &["run", "x.parquet"]),
        typed("a pipeline that is not there", &["run", "pipeline.toml"]),
        typed("a command of another tool", &["predict", "p.toml"]),
        typed("a command with a typing error", &["chekc", "p.toml"]),
        typed("-1 for all cores", &["run", "p.toml", "--jobs", "-1"]),
        typed("--set without a value", &["run", "p.toml", "--set", "k"]),
        typed("--set of a clusterer that there is not", &["run", "p.toml", "--set", "clusterer.kmeans.k=3"]),
        typed("--only of a name that there is not", &["run", "p.toml", "--only", "kmeans"]),
        typed("a report of no run", &["report", "nowhere"]),
        typed("a component that there is not", &["inspect", "kmean"]),
        typed("a code that there is not", &["explain", "C999"]),
    ]
}

impl Mistake {
    /// With something else replaced, too.
    fn and(self, old: &str, new: &str) -> Self {
        let pipeline = self.pipeline.map(|pipeline| pipeline.replacen(old, new, 1));
        Self { pipeline, ..self }
    }
}

/// The data that the mistakes are made with.
fn write_data(folder: &Folder) {
    let good: ArrayRef = embeddings(&[&[0.0, 1.0], &[5.0, 5.0], &[0.5, 1.0]]);
    let truth = || sets(&[&[0], &[1], &[0, 1]]);
    let lists = |rows: [Option<Vec<Option<f32>>>; 3]| -> ArrayRef {
        Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows))
    };
    let texts = |texts: [Option<&str>; 3]| -> ArrayRef { Arc::new(StringArray::from(texts.to_vec())) };
    let (a, b) = (Some(1.0), Some(2.0));
    folder.write_parquet("x.parquet", vec![("e", good.clone()), ("t", truth()), ("i", numbers(&[1, 2, 3]))]);
    let nulls = lists([Some(vec![a, b]), None, Some(vec![a, b])]);
    folder.write_parquet("nulls.parquet", vec![("e", nulls), ("t", truth())]);
    let ragged = lists([Some(vec![a, b]), Some(vec![a]), Some(vec![a, b])]);
    folder.write_parquet("ragged.parquet", vec![("e", ragged), ("t", truth())]);
    let nan = embeddings(&[&[0.0, 1.0], &[5.0, f32::NAN], &[0.5, 1.0]]);
    folder.write_parquet("nan.parquet", vec![("e", nan), ("t", truth())]);
    folder.write_parquet(
        "odd.parquet",
        vec![
            ("e", good),
            ("t", truth()),
            ("score", Arc::new(Float64Array::from(vec![0.5, 1.5, 2.5]))),
            ("when", Arc::new(TimestampSecondArray::from(vec![1, 2, 3]))),
            ("several", texts([Some("0"), Some("3"), Some("0,3")])),
            ("listed", texts([Some("[0]"), Some("[3]"), Some("[0, 3]")])),
            ("some", texts([Some("a"), None, Some("b")])),
            ("twice", numbers(&[1, 2, 1])),
        ],
    );
    folder.write("table.csv", "x,y,label\n1,2,a\n3,N/A,b\n5,6,a\n");
    std::fs::create_dir(folder.path("empty")).unwrap();
}

#[test]
fn every_mistake_is_told_with_its_cause_and_its_remedy() {
    let folder = Folder::new();
    write_data(&folder);
    folder.write("p.toml", &right());
    folder.run(CHECK, 0);
    let mistakes = mistakes();
    assert!(mistakes.len() >= 60, "{}", mistakes.len());
    let mut page = "# What is said about mistakes\n\n\
         This page is made by a test, of what the command prints. A code such as `C012` is explained by `compflow explain C012`,\n\
         with an example; the exit code is 2 where a request was wrong.\n"
        .to_owned();
    let mut silent = Vec::new();
    for (at, Mistake { what, pipeline, args, code }) in mistakes.iter().enumerate() {
        folder.write("p.toml", pipeline.as_deref().unwrap_or(&right()));
        let (stdout, stderr) = folder.run_exactly(args, *code);
        assert_eq!(stdout, "", "{what}");
        assert!(stderr.starts_with("error"), "{what}: {stderr}");
        for word in ["Utf8", "Int64", "Float64", "UInt", "FixedSizeList", "Timestamp", "panicked"] {
            assert!(!stderr.contains(word), "{what}: {stderr}");
        }
        // What to do is said by a hint, by what would do, or by what is missing.
        let remedies =
            ["help:", "tip:", "must", "needs", "expected", "takes", "; ", "no such file", "no file", "missing"];
        if !remedies.iter().any(|remedy| stderr.contains(remedy)) {
            silent.push(format!("{what}: {stderr}"));
        }
        let number = at + 1;
        let typed = args.join(" ");
        page += &format!(
            "\n## {number}. {what}\n\n`compflow {typed}` exits with {code}:\n\n```text\n{}\n```\n",
            stderr.trim_end()
        );
    }
    assert!(silent.is_empty(), "no remedy is named:\n{}", silent.join("\n"));
    let path = repository().join("docs/messages.md");
    if std::env::var_os("COMPFLOW_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(known == page, "docs/messages.md is not what is printed; COMPFLOW_BLESS=1 writes it");
}
