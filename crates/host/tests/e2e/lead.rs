//! Which metric decides: what is corrected for chance where it is there, and whatever comes first where it is not.

use crate::common::{Folder, SMALL, repository};

/// Data with three groups, found, and torn into so many pieces that nearly nobody shares a cluster.
const TORN: &str = r#"
name = "torn"
[[data]]
name = "made"
loader = "synthetic"
params = { n = 90, dim = 4, k = 6, degree = 1, noise = 0.8, trials = 3, seed = 1 }
[[clusterer]]
name = "few"
use = "kmeans"
params = { k = 3 }
[[clusterer]]
name = "torn"
use = "kmeans"
params = { k = 60 }
"#;

fn with(evaluators: &[&str]) -> String {
    evaluators.iter().fold(TORN.to_owned(), |text, name| text + &format!("[[evaluator]]\nuse = \"{name}\"\n"))
}

/// The table that `run` prints: its title, and the lines with a star.
fn starred(folder: &Folder, pipeline: &str) -> (String, Vec<String>) {
    folder.write("p.toml", pipeline);
    let (stdout, _) = folder.run(&["run", "p.toml", "--out", "out", "--quiet"], 0);
    let mut lines = stdout.lines().map(str::to_owned);
    let title = lines.next().unwrap();
    (title, lines.filter(|line| line.contains('*')).collect())
}

#[test]
fn the_star_is_not_given_for_tearing_clusters_apart() {
    let folder = Folder::new();
    let (title, rows) = starred(&folder, &with(&["cri", "ari"]));
    assert!(title.ends_with(", * best by acri"), "{title}");
    assert!(rows.len() == 1 && rows[0].contains("few") && rows[0].matches('*').count() == 1, "{rows:?}");
    // By raw CRI the other one is the best, and the table of all entries says so.
    let (csv, _) = folder.run(&["run", "p.toml", "--out", "out", "--quiet", "--format", "csv"], 0);
    let best = |metric: &str| csv.lines().find(|line| line.contains(metric) && line.contains(",true,")).unwrap();
    assert!(best(",cri,").contains("made,torn,") && best(",acri,").contains("made,few,"), "{csv}");
    // The page names the winner by the same metric, and shows it first.
    folder.run(&["report", "out"], 0);
    let page = std::fs::read_to_string(folder.path("out/report.html")).unwrap();
    assert!(page.contains("best aCRI, ") && !page.contains("best CRI, "));
    let at = |metric: &str| page.find(&format!("<th scope=\"col\">{metric}</th>")).unwrap();
    assert!(at("aCRI") < at("CRI") && at("CRI") < at("ARI"), "the leading one, then the order of the evaluators");
}

#[test]
fn without_it_the_first_metric_decides() {
    let folder = Folder::new();
    let (title, rows) = starred(&folder, &with(&["silhouette", "set_f1"]));
    assert!(title.ends_with(", * best by silhouette"), "{title}");
    assert!(rows.len() == 1 && rows[0].matches('*').count() == 1, "{rows:?}");
    let (title, rows) = starred(&folder, &with(&["ari"]));
    assert!(title.ends_with(", * best") && rows.len() == 1 && rows[0].contains("few"), "{title} {rows:?}");
    folder.run(&["report", "out"], 0);
}

/// Also by one that needs no truth and of which less is better.
#[test]
fn grids_are_settled_by_any_metric() {
    let folder = Folder::new();
    let validation = "[[data]]\nname = \"validation\"\nrole = \"tune\"\nloader = \"synthetic\"\n\
                      params = { n = 45, dim = 4, k = 3, noise = 0.05, trials = 2 }\n";
    for (evaluator, metric) in [("ssd", "msd"), ("cri", "acri")] {
        let pipeline = SMALL.replace("k = 6, restarts = 3", "k = { grid = [2, 6] }, restarts = 3");
        let pipeline = pipeline[..pipeline.find("[[evaluator]]").unwrap()].to_owned()
            + &format!("{validation}[[evaluator]]\nuse = \"{evaluator}\"\n")
            + &format!("[tune]\ndata = \"validation\"\nmetric = \"{metric}\"\n");
        folder.write("p.toml", &pipeline);
        folder.run(&["run", "p.toml", "--out", "out"], 0);
        let record = std::fs::read_to_string(folder.path("out/run.json")).unwrap();
        let record: serde_json::Value = serde_json::from_str(&record).unwrap();
        assert_eq!(record["tuned"]["KM"]["k"], 6, "{metric}");
    }
}

/// The paper's ARI for GCR at degree 2 is that of its base: the row that stands beside it has what tuning settles.
#[test]
fn the_base_of_gcr_has_the_parameters_that_are_settled_for_gcr() {
    let folder = Folder::new();
    for name in ["omniglot", "speech", "authors-code"] {
        let file = repository().join(format!("pipelines/{name}.toml"));
        let args = ["run", file.to_str().unwrap(), "--only", "GCR", "--only", "n150", "--out", name];
        folder.run(&args, 0);
        let record = std::fs::read_to_string(folder.path(&format!("{name}/run.json"))).unwrap();
        let record: serde_json::Value = serde_json::from_str(&record).unwrap();
        let written = |file: &str| -> toml::Table {
            let path = repository().join(format!("pipelines/{file}.toml"));
            std::fs::read_to_string(path).unwrap().parse().unwrap()
        };
        let base = |pipeline: &toml::Table| -> i64 {
            let clusterers = pipeline["clusterer"].as_array().unwrap();
            let base = clusterers.iter().find(|table| table["name"].as_str() == Some("GCR base")).unwrap();
            base["params"]["k"].as_integer().unwrap()
        };
        // Of the authors, by their preset.
        let settled = record["tuned"]["GCR"]["base"]["params"]["k"].as_i64().unwrap_or(17);
        assert_eq!(base(&written(name)), settled, "{name}: set k of `GCR base` to what is settled for GCR");
        if name != "authors-code" {
            assert_eq!(base(&written(&format!("{name}-large"))), settled, "{name}-large");
        }
    }
}
