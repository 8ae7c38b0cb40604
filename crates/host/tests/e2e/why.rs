//! What a run would compute and why, and what all the folders hold.

use crate::common::{Folder, SMALL};

#[test]
fn what_has_changed_is_the_reason_for_whom_it_concerns() {
    let folder = Folder::new();
    folder.write("small.toml", &format!("{SMALL}\n[[clusterer]]\nuse = \"ac\"\nparams = {{ k = 3 }}\n"));
    let why = |more: &[&str]| folder.run(&[&["why", "small.toml"], more].concat(), 0).0;
    assert!(why(&[]).contains("because nothing was run in this folder before"), "{}", why(&[]));
    folder.run(&["run", "small.toml"], 0);
    assert_eq!(why(&[]).lines().count(), 1, "{}", why(&[]));
    assert!(why(&[]).ends_with("cells are kept, 0 to compute\n"), "{}", why(&[]));

    // A parameter concerns its own clusterer, the seed everybody.
    let said = why(&["--set", "clusterer.KM.k=4"]);
    assert!(said.contains("/KM: ") && said.contains("because k was 6, and is 4"), "{said}");
    assert_eq!(said.matches("to compute\n").count(), 2, "{said}");
    let said = why(&["--set", "seed=9"]);
    assert!(said.contains("because the seed was "), "{said}");
    let json = folder.run(&["why", "small.toml", "--set", "seed=9", "KM", "--json"], 0).0;
    let all: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((all.as_array().unwrap().len(), &all[0]["clusterer"]), (1, &"KM".into()), "{json}");
    let (_, stderr) = folder.run(&["why", "small.toml", "nothing"], 2);
    assert!(stderr.contains("there are no cells `nothing`, only "), "{stderr}");
}

#[test]
fn all_results_are_listed_with_their_state() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    let (_, stderr) = folder.run(&["runs"], 2);
    assert!(stderr.contains("cannot look into results"), "{stderr}");
    folder.run(&["run", "small.toml", "--out", "results/one"], 0);
    folder.run(&["run", "small.toml", "--out", "results/deeper/two"], 0);
    let (table, _) = folder.run(&["runs"], 0);
    assert!(table.contains("results/one") && table.contains("results/deeper/two"), "{table}");
    assert_eq!(table.matches(" finished").count(), 2, "{table}");
    // As a run has it that has begun, while it writes its first record.
    folder.write("results/three/cells/README", "");
    std::fs::create_dir(folder.path("results/three/.next-whp1vT")).unwrap();
    std::fs::copy(folder.path("results/one/run.json"), folder.path("results/three/.next-whp1vT/run.json"))
        .unwrap();
    assert_eq!(folder.run(&["runs"], 0).0.matches(" finished").count(), 2);

    let record = folder.path("results/one/run.json");
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, text.replace("small", "smell")).unwrap();
    let (json, _) = folder.run(&["runs", "results", "--json"], 0);
    let all: serde_json::Value = serde_json::from_str(&json).unwrap();
    let states: Vec<(&str, &str)> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["folder"].as_str().unwrap(), one["state"].as_str().unwrap()))
        .collect();
    assert!(states.contains(&("results/one", "damaged")), "{json}");
    assert!(states.contains(&("results/deeper/two", "finished")), "{json}");
}
