//! `compflow diff`, and `--format latex` of `compflow run`.

use crate::common::{Folder, SMALL};

/// The same experiment with a worse clusterer under the same name.
fn two_runs() -> Folder {
    let folder = Folder::new();
    let many = SMALL.replace("trials = 3", "trials = 8");
    folder.write("small.toml", &many);
    folder.run(&["run", "small.toml", "--out", "a", "--quiet"], 0);
    folder.run(&["run", "small.toml", "--out", "b", "--quiet", "--set", "clusterer.KM.k=2"], 0);
    folder
}

#[test]
fn what_got_worse_is_said() {
    let folder = two_runs();
    let (table, notes) = folder.run(&["diff", "a", "b"], 0);
    let row = table.lines().find(|line| line.contains(" ari ")).unwrap();
    assert!(row.contains(" 8 ") && row.trim_end().ends_with("worse"), "{table}");
    assert!(notes.starts_with("better: ") || notes.starts_with("worse: "), "{notes}");
    assert!(notes.lines().any(|line| line.starts_with("worse: ") && line.contains("made KM ari")), "{notes}");
    // The other way round it got better.
    let (_, notes) = folder.run(&["diff", "b", "a"], 0);
    assert!(notes.lines().any(|line| line.starts_with("better: ") && line.contains("made KM ari")), "{notes}");
}

#[test]
fn formats_for_programs_have_every_digit() {
    let folder = two_runs();
    let (json, _) = folder.run(&["diff", "a", "b", "--format", "json"], 0);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let rows = json.as_array().unwrap();
    let metrics: Vec<&str> = rows.iter().map(|row| row["metric"].as_str().unwrap()).collect();
    assert_eq!(metrics, ["cri", "acri", "ari", "seconds"]);
    let ari = &rows[2];
    assert_eq!((&ari["trials"], &ari["b_is"]), (&8.into(), &"worse".into()));
    let difference = ari["mean_b"].as_f64().unwrap() - ari["mean_a"].as_f64().unwrap();
    assert_eq!(ari["difference"].as_f64(), Some(difference));
    assert!(ari["p"].as_f64().unwrap() < 0.05);
    let (csv, _) = folder.run(&["diff", "a", "b", "--format", "csv"], 0);
    assert!(
        csv.starts_with("data,clusterer,metric,trials,mean_a,mean_b,difference,p,b_is\nmade,KM,cri,8,"),
        "{csv}"
    );
    assert_eq!(csv.lines().count(), 5);
}

#[test]
fn a_run_is_the_same_as_itself() {
    let folder = two_runs();
    let (table, notes) = folder.run(&["diff", "a", "a"], 0);
    assert_eq!(table.matches(" same").count(), 4, "{table}");
    assert_eq!(notes, "nothing is significantly better or worse (p < 0.05)\n0 unclear, 4 the same\n");
}

#[test]
fn runs_with_nothing_in_common_are_refused() {
    let folder = two_runs();
    folder.write(
        "other.toml",
        &SMALL.replace("\"KM\"", "\"other\"").replace("name = \"small\"", "name = \"other\""),
    );
    folder.run(&["run", "other.toml", "--out", "c", "--quiet"], 0);
    let (stdout, stderr) = folder.run(&["diff", "a", "c"], 2);
    assert_eq!(stdout, "");
    let expected = "error: the runs have no data, trial and clusterer in common\n  \
                    a: data made, clusterers KM\n  c: data made, clusterers other\n";
    assert_eq!(stderr, expected);
    let (_, stderr) = folder.run(&["diff", "a", "nowhere"], 2);
    assert_eq!(
        stderr,
        "error: nowhere is no results folder: run.json: there is no such file; `compflow runs` lists those that there are\n"
    );
}

#[test]
fn latex_is_the_papers_table() {
    let folder = Folder::new();
    let two = SMALL.replace(
        "[[evaluator]]\nuse = \"cri\"",
        "[[clusterer]]\nname = \"A_P\"\nuse = \"ap\"\n\n[[evaluator]]\nuse = \"cri\"",
    );
    folder.write("small.toml", &two);
    let (latex, _) = folder.run(&["run", "small.toml", "--format", "latex"], 0);
    assert!(latex.contains("& \\multicolumn{3}{c}{$n = 45$} \\\\\n"), "{latex}");
    assert!(latex.contains(" & CRI & aCRI & ARI \\\\\n\\midrule\nKM & "), "{latex}");
    assert!(latex.contains("\nA\\_P & "), "{latex}");
    assert!(latex.contains("\\textbf{") && latex.contains("\\bottomrule\n\\end{tabular}\n"), "{latex}");
}
