//! `compflow report`: the page is whole, needs nothing from elsewhere, and says what it cannot show.

use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};
use serde_json::{Value, json};

use crate::common::{Folder, SMALL, embeddings, numbers};

/// A page as a tree. HTML differs from XML here only in elements without an end, and in scripts, which are left out.
fn parsed(page: &str) -> String {
    let mut xml = String::new();
    let page = page.strip_prefix("<!DOCTYPE html>").unwrap();
    let mut parts = page.split("<script");
    let mut without = parts.next().unwrap().to_owned();
    for part in parts {
        let (start, rest) = part.split_once('>').unwrap();
        without += &format!("<script{start}>{}", &rest[rest.find("</script>").unwrap()..]);
    }
    let mut rest = without.as_str();
    while let Some(at) = ["<meta ", "<input "].iter().filter_map(|tag| rest.find(tag)).min() {
        let end = at + rest[at..].find('>').unwrap();
        xml += &rest[..end];
        xml.push('/');
        rest = &rest[end..];
    }
    // An attribute without a value.
    (xml + rest).replace(" checked/>", " checked=\"\"/>").replace(" hidden>", " hidden=\"\">")
}

fn report(folder: &Folder, args: &[&str]) -> String {
    let (stdout, stderr) = folder.run(&[&["report", "out"], args].concat(), 0);
    assert_eq!((stdout.as_str(), stderr.as_str()), ("out/report.html\n", ""));
    std::fs::read_to_string(folder.path("out/report.html")).unwrap()
}

fn assert_self_contained(page: &str) {
    let xml = parsed(page);
    let tree = roxmltree::Document::parse(&xml).unwrap();
    for node in tree.descendants().filter(roxmltree::Node::is_element) {
        let name = node.tag_name().name();
        assert!(!["link", "img", "iframe", "object", "image", "use"].contains(&name), "<{name}>");
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            assert!(!name.starts_with("on"), "{name}={value}");
            assert!(name != "src" && (name != "href" || value.starts_with('#')), "{name}={value}");
        }
    }
    for link in tree.descendants().filter_map(|node| node.attribute("href")) {
        assert!(
            tree.descendants().any(|node| node.attribute("id") == link.strip_prefix('#')),
            "{link} leads nowhere"
        );
    }
    let style = page.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
    assert!(!style.contains("url(") && !style.contains("@import"), "nothing is fetched");
}

/// Texts of all elements of a name, in their order.
fn texts(page: &str, element: &str) -> Vec<String> {
    let xml = parsed(page);
    let tree = roxmltree::Document::parse(&xml).unwrap();
    tree.descendants()
        .filter(|node| node.has_tag_name(element))
        .map(|node| node.descendants().filter_map(|part| part.is_text().then(|| part.text()).flatten()).collect())
        .collect()
}

#[test]
fn the_page_has_every_section_and_needs_nothing_else() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    folder.run(&["run", "small.toml", "--out", "out"], 0);
    let page = report(&folder, &[]);
    assert_self_contained(&page);
    let sections =
        ["One trial, looked at", "Scores", "Every trial", "Time at n = 45", "Convergence", "What was run"];
    assert_eq!(texts(&page, "h2"), sections);
    assert_eq!(page.matches("<script").count(), 2, "data and one script");
    assert!(
        page.contains("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-")
    );
    assert_eq!(page.matches("class=\"scatter\"").count(), 2, "the truth and KM");
    assert_eq!(page.matches("class=\"confusion\"").count(), 1);
    assert!(page.matches("class=\"graph\"").count() >= 1, "the true compositions");
    assert!(page.contains("all alone") && page.contains("one cluster"));
    assert!(page.matches("class=\"trial\"").count() == 9, "3 trials by 3 metrics");
    assert!(page.matches("class=\"trace\"").count() == 3, "a line per trial");
    assert!(page.contains("loader = &quot;synthetic&quot;"), "the pipeline is shown");
    // The same run gives the same page.
    assert_eq!(page, report(&folder, &[]));
}

/// Variants of a sweep have long names that differ at their ends; two data sets have the same size.
#[test]
fn methods_of_a_sweep_can_be_told_apart() {
    let folder = Folder::new();
    let data =
        "[[data]]\nname = \"NAME\"\nloader = \"synthetic\"\nparams = { n = SIZE, dim = 4, k = 3, trials = 2 }\n";
    let data = |name: &str, n: &str| data.replace("NAME", name).replace("SIZE", n);
    let sweep = "[[clusterer]]\nname = \"centroids\"\nuse = \"kmeans\"\n\
                 params = { k = { grid = [4, 5] }, restarts = { grid = [1, 10] } }\n";
    let more = [data("small", "30"), data("again", "45"), sweep.to_owned()].concat();
    folder.write("small.toml", &format!("{SMALL}{more}"));
    folder.run(&["run", "small.toml", "--out", "out"], 0);
    let page = report(&folder, &[]);
    assert_self_contained(&page);
    for k in [4, 5] {
        for restarts in [1, 10] {
            let name = format!("centroids k={k} restarts={restarts}");
            let label = format!("centroids k={k} r={restarts}");
            assert!(page.contains(&format!(">{label}<title>{name}</title></text>")), "{label} beside the trials");
            assert!(page.contains(&format!("title=\"{name}\">{label}</th>")), "{label} in the tests");
        }
    }
    assert_eq!(page.matches(", n = 45: ").count(), 5, "a point for every method and size");
}

#[test]
fn compositions_are_not_judged_where_none_are_true() {
    let folder = Folder::new();
    let ckm = "[[clusterer]]\nname = \"CKM\"\nuse = \"ckm\"\nparams = { k = 5 }\n[composer]\nuse = \"max\"\n";
    let pipeline = format!("{SMALL}{ckm}");
    folder.write("small.toml", &pipeline);
    folder.run(&["run", "small.toml", "--out", "out"], 0);
    assert!(report(&folder, &[]).contains(" compositions right, 3 are true"));
    folder.write("small.toml", &pipeline.replace("trials = 3", "trials = 3, degree = 1"));
    folder.run(&["run", "small.toml", "--out", "flat"], 0);
    folder.run(&["report", "flat", "--out", "out/report.html"], 0);
    let page = std::fs::read_to_string(folder.path("out/report.html")).unwrap();
    assert!(page.contains("Compositions inferred by CKM") && !page.contains(" compositions right"));
    let figures = parsed(&page);
    assert!(!figures.contains('✓') && !figures.contains('✗'));
}

/// The JSON that the page's script draws from.
fn looked_at(page: &str) -> serde_json::Value {
    let data = page.split_once("type=\"application/json\">").unwrap().1.split_once("</script>").unwrap().0;
    serde_json::from_str(data).unwrap()
}

#[test]
fn the_script_is_given_every_trial() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    folder.run(&["run", "small.toml", "--out", "out"], 0);
    let data = looked_at(&report(&folder, &[]));
    assert_eq!(data["start"], serde_json::json!(["KM"]));
    let made = &data["data"][0];
    assert_eq!((&made["name"], &made["leftOut"]), (&"made".into(), &0.into()));
    for (number, trial) in made["trials"].as_array().unwrap().iter().enumerate() {
        assert_eq!((&trial["number"], &trial["n"]), (&number.into(), &45.into()));
        let km = &trial["methods"][0];
        let measures = [&trial["plane"], &trial["truth"]["own"], &km["own"], &km["of"], &km["distance"]["of"]];
        assert!(measures.iter().all(|packed| packed.is_string()), "{trial}");
        assert!(km["margin"]["high"].as_f64() > Some(0.0), "{trial}");
    }
    assert_eq!(made["trials"].as_array().unwrap().len(), 3);
}

/// A sweep of many methods: figures show some, the table of scores all.
#[test]
fn many_methods_make_a_small_page_that_says_what_it_leaves_out() {
    let folder = Folder::new();
    let values = |end: u32| (1..=end).map(|value| value.to_string()).collect::<Vec<_>>().join(", ");
    let (k, iterations) = (values(13), values(23));
    let sweep = format!(
        "[[clusterer]]\nname = \"S\"\nuse = \"kmeans\"\n\
         params = {{ k = {{ grid = [{k}] }}, max_iter = {{ grid = [{iterations}] }} }}\n"
    );
    folder.write("small.toml", &format!("{SMALL}{sweep}"));
    folder.run(&["run", "small.toml", "--out", "out", "--quiet"], 0);
    let page = report(&folder, &[]);
    assert_self_contained(&page);
    assert!(page.contains("The 16 best of 300 methods by aCRI; the other 284 are left out here"), "in figures");
    assert!(page.contains("The 24 best of 300 methods by aCRI"), "in tests");
    assert!(page.matches("S k=9 max_iter=7").count() >= 3, "every method is in every table of scores");
    assert_eq!(page.matches("class=\"scatter\"").count(), 17, "the truth and 16 methods");
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
}

#[test]
fn without_truth_the_page_opens_with_what_was_found() {
    let folder = Folder::new();
    let rows: Vec<Vec<f32>> = (0..20).map(|at| vec![(at / 10) as f32 * 9.0 + 0.1 * at as f32, 1.0]).collect();
    let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
    folder.write_parquet("d.parquet", vec![("embedding", embeddings(&rows))]);
    folder.write(
        "p.toml",
        "degree = 1\n[[data]]\nname = \"d\"\nloader = \"parquet\"\npath = \"d.parquet\"\n\
         [[clusterer]]\nuse = \"kmeans\"\nparams = { k = 2 }\n",
    );
    folder.run(&["run", "p.toml", "--out", "out"], 0);
    let page = report(&folder, &[]);
    assert_self_contained(&page);
    assert_eq!(texts(&page, "h2")[..2], ["What was found", "One trial, looked at"]);
    assert!(page.contains("0 (10,\u{a0}50\u{a0}%), 1 (10,\u{a0}50\u{a0}%)"), "the largest clusters");
    assert_eq!(looked_at(&page)["data"][0]["trials"][0]["media"], json!([]));
}

#[test]
fn pictures_and_sounds_beside_the_data_are_named_and_others_are_counted() {
    let folder = Folder::new();
    let rows: Vec<Vec<f32>> = (0..20).map(|at| vec![(at / 10) as f32 * 9.0 + 0.1 * at as f32, 1.0]).collect();
    let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
    std::fs::create_dir(folder.path("pictures")).unwrap();
    for at in 2..20 {
        folder.write(&format!("pictures/{at} ä#.png"), "no picture, which only a browser finds out");
    }
    folder.write("3.wav", "");
    let images = (0..20).map(|at| match at {
        0 => None,
        1 => Some("https://example.org/1.png".to_owned()),
        2 => Some("gone.png".to_owned()),
        at => Some(format!("pictures/{at} ä#.png")),
    });
    let image: ArrayRef = Arc::new(StringArray::from_iter(images));
    let audio: ArrayRef = Arc::new(StringArray::from_iter((0..20).map(|at| (at == 3).then_some("3.wav"))));
    folder.write_parquet("d.parquet", vec![("embedding", embeddings(&rows)), ("image", image), ("audio", audio)]);
    folder.write(
        "p.toml",
        "degree = 1\n[[data]]\nname = \"d\"\nloader = \"parquet\"\npath = \"d.parquet\"\n\
         [[clusterer]]\nuse = \"kmeans\"\nparams = { k = 2 }\n",
    );
    folder.run(&["run", "p.toml", "--out", "out"], 0);
    let page = report(&folder, &[]);
    assert_self_contained(&page);
    let media = &looked_at(&page)["data"][0]["trials"][0]["media"];
    let (image, audio) = (&media[0], &media[1]);
    assert_eq!((&image["kind"], &audio["kind"]), (&json!("image"), &json!("audio")));
    let address = |media: &Value, at: usize| {
        format!("{}{}", media["base"].as_str().unwrap(), media["of"][at].as_str().unwrap())
    };
    let picture = address(image, 7);
    assert!(picture.starts_with("file:///") && picture.ends_with("/pictures/7%20%C3%A4%23.png"), "{picture}");
    assert!(address(audio, 3).ends_with("/3.wav") && audio["of"][4].is_null() && audio["note"].is_null());
    assert!(image["of"][0].is_null() && image["of"][1].is_null() && image["of"][2].is_null());
    let note = "2 of 20 are not shown: https://example.org/1.png is an address, and nothing is fetched";
    assert_eq!(image["note"], note);
}

#[test]
fn the_trial_can_be_chosen() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    folder.run(&["run", "small.toml", "--out", "out"], 0);
    let page = report(&folder, &["--cell", "made/2", "--cell", "made/1"]);
    assert!(
        page.contains("n = 45, trial 2") && page.contains("n = 45, trial 1") && !page.contains("n = 45, trial 0")
    );
    assert_eq!(page.matches("class=\"scatter\"").count(), 4);
    let refused = |args: &[&str]| folder.run(&[&["report", "out"], args].concat(), 2).1;
    assert_eq!(
        refused(&["--cell", "made/7"]),
        "error: --cell: there is no `made/7`; there are made/0 to made/2\n"
    );
    assert!(refused(&["--reference", "x.toml"]).contains("--reference is for --format md"));
    assert!(refused(&["out"]).contains("a page shows one run"));
}

const HOSTILE: &str = r#"<script>alert("&')</script>"#;

/// A pipeline whose every name would be code if it were not escaped.
fn hostile() -> Folder {
    let folder = Folder::new();
    let rows: Vec<Vec<f32>> = (0..12).map(|at| vec![(at % 3) as f32, (at / 3) as f32 * 0.1]).collect();
    let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
    let labels: ArrayRef = Arc::new(StringArray::from(vec![HOSTILE; 12]));
    let columns = vec![("embedding", embeddings(&rows)), ("label", labels), ("trial", numbers(&[0; 12]))];
    folder.write_parquet("<data>&.parquet", columns);
    let name = HOSTILE.replace('"', "\\\"");
    let pipeline = format!(
        "name = \"<b>bold\"\n[[data]]\nname = \"{name}\"\nloader = \"parquet\"\npath = \"<data>&.parquet\"\n\
         columns = {{ embedding = \"embedding\", truth = \"label\", trial = \"trial\" }}\n\
         [[clusterer]]\nname = \"{name}\"\nuse = \"kmeans\"\nparams = {{ k = 3 }}\n[[evaluator]]\nuse = \"cri\"\n"
    );
    folder.write("hostile.toml", &pipeline);
    folder.run(&["run", "hostile.toml", "--out", "out"], 0);
    folder
}

#[test]
fn hostile_names_are_only_text() {
    let folder = hostile();
    let page = report(&folder, &[]);
    assert!(page.matches("<script").count() == 2 && !page.contains("<script>alert"), "names are escaped");
    assert!(!page.contains("<b>bold"), "names are escaped");
    let data = &looked_at(&page)["data"][0];
    let names =
        [&data["name"], &data["trials"][0]["methods"][0]["name"], &data["trials"][0]["truth"]["names"]["0"]];
    assert!(names.iter().all(|name| **name == HOSTILE), "the script has them as they are: {names:?}");
    assert_self_contained(&page);
    assert_eq!(texts(&page, "h1"), ["<b>bold"]);
    assert!(texts(&page, "th").iter().any(|text| text == HOSTILE), "and shown as they are");
    let (markdown, _) = folder.run(&["report", "out", "--format", "md"], 0);
    assert!(!markdown.contains("<script"), "{markdown}");
}

#[test]
fn data_that_is_gone_or_changed_is_left_out_with_the_reason() {
    let folder = hostile();
    let path = folder.path("<data>&.parquet");
    let bytes = std::fs::read(&path).unwrap();
    let other = vec![("embedding", embeddings(&[&[1.0]])), ("label", numbers(&[0])), ("trial", numbers(&[0]))];
    folder.write_parquet("<data>&.parquet", other);
    let page = report(&folder, &[]);
    assert!(page.contains("has changed since the run"), "the reason is said");
    assert_eq!(page.matches("class=\"scatter\"").count(), 0);
    assert_self_contained(&page);
    std::fs::remove_file(&path).unwrap();
    let page = report(&folder, &[]);
    assert!(page.contains("there is no such file") && !page.contains("class=\"confusion\""));
    assert!(page.contains("The trivial clusterings could not be scored"));
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(report(&folder, &[]).matches("class=\"scatter\"").count(), 2);
}

#[test]
fn failed_cells_are_said_first() {
    let folder = Folder::new();
    folder.write(
        "small.toml",
        &format!(
            "{SMALL}\n[[clusterer]]\nname = \"big\"\nuse = \"ap\"\nparams = {{ preference = {{ k = 46 }} }}\n"
        ),
    );
    folder.run(&["run", "small.toml", "--out", "out"], 1);
    let page = report(&folder, &[]);
    assert!(
        page.contains("3 of 6 cells failed") && page.contains("`preference.k` = 46 is more than the 45 examples")
    );
    assert_self_contained(&page);
}

#[test]
fn a_run_without_truth_has_a_page() {
    let folder = Folder::new();
    folder
        .write_parquet("plain.parquet", vec![("embedding", embeddings(&[&[0.0, 1.0], &[0.1, 1.0], &[5.0, 0.0]]))]);
    let pipeline = "name = \"plain\"\n[[data]]\nname = \"d\"\nloader = \"parquet\"\npath = \"plain.parquet\"\n\
                    columns = { embedding = \"embedding\" }\n[[clusterer]]\nuse = \"kmeans\"\nparams = { k = 2 }\n";
    folder.write("plain.toml", pipeline);
    folder.run(&["run", "plain.toml", "--out", "out"], 0);
    let page = report(&folder, &[]);
    assert!(page.contains("There are no true sets to compare with"));
    assert_eq!(page.matches("class=\"scatter\"").count(), 1);
    assert_self_contained(&page);
}

#[test]
fn what_is_no_results_folder_is_refused() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    let refused = || folder.run(&["report", "out"], 2).1;
    assert_eq!(
        refused(),
        "error: out is no results folder: run.json: there is no such file; `compflow runs` lists those that there are\n"
    );
    folder.write("out/run.json", "{\"name\": \"x\"}");
    assert!(refused().starts_with("error: out/run.json is no record of a run: missing field"), "{}", refused());
    folder.run(&["run", "small.toml", "--out", "real"], 0);
    std::fs::rename(folder.path("real"), folder.path("moved")).unwrap();
    std::fs::remove_dir_all(folder.path("out")).unwrap();
    std::fs::rename(folder.path("moved"), folder.path("out")).unwrap();
    report(&folder, &[]);
    for table in ["runs", "metrics", "summary", "assignments", "traces"] {
        let path = folder.path(&format!("out/{table}.parquet"));
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        let broken = format!("error: out/{table}.parquet is not what the run wrote: ");
        assert!(refused().starts_with(&broken), "{}", refused());
        std::fs::remove_file(&path).unwrap();
        let missing = "is missing; run the pipeline again, finished cells are kept\n";
        assert_eq!(refused(), format!("error: out/{table}.parquet {missing}"));
        std::fs::write(&path, whole).unwrap();
    }
}

#[test]
fn markdown_puts_a_reference_beside_our_numbers() {
    let folder = Folder::new();
    folder.write("small.toml", SMALL);
    folder.run(&["run", "small.toml", "--out", "out"], 0);
    let reference = "name = \"paper\"\nsource = \"a paper\"\ntrials = 3\n[[table]]\nsource = \"Table 9\"\n\
                     runs = [\"small\"]\nmetric = \"cri\"\ndata = [\"made\"]\n[table.rows]\nKM = [\"12.3 (0.1)\"]\n\
                     [table.footnotes]\nKM = \"Of another.\"\n[[note]]\nruns = [\"small\"]\nclusterers = [\"KM\"]\ntext = \"It was made up.\"\n";
    folder.write("reference.toml", reference);
    let (text, _) = folder.run(&["report", "out", "--format", "md", "--reference", "reference.toml"], 0);
    assert!(text.contains("|  | CRI | *paper* | aCRI | ARI | seconds |"), "{text}");
    assert!(text.contains("| *all alone* | ") && text.contains("| *one cluster* | "), "{text}");
    assert!(text.contains("- **KM**: CRI at n = 45 ") && text.contains(" against 12.3.\n"), "{text}");
    assert!(text.contains("\n- KM: It was made up.\n"), "{text}");
    assert!(text.contains("*12.3 (0.1)*<sup>1</sup>") && text.contains("\n<sup>1</sup> Of another.\n"), "{text}");
    assert!(text.contains("1 of 1 entries differ."), "{text}");
    folder.write("reference.toml", &reference.replace("12.3 (0.1)", "twelve"));
    let (_, stderr) = folder.run(&["report", "out", "--format", "md", "--reference", "reference.toml"], 2);
    assert_eq!(stderr, "error: reference.toml: Table 9, KM: expected `mean (s.e.)`, found `twelve`\n");
}

/// Two methods, one that is given the truth, two data sets.
fn two_by_two(folder: &Folder) {
    let more = "[[clusterer]]\nname = \"O_C\"\nuse = \"oracle\"\n[[data]]\nname = \"more\"\nloader = \"synthetic\"\n\
                params = { n = 60, dim = 4, k = 3, noise = 0.05, trials = 3 }\n";
    folder.write("small.toml", &format!("{SMALL}{more}"));
    folder.run(&["run", "small.toml", "--out", "out"], 0);
}

#[test]
fn the_tests_between_methods_stand_beside_the_page() {
    let folder = Folder::new();
    two_by_two(&folder);
    let args = ["report", "out", "--format", "md", "--tests", "docs/tests", "--out", "docs/page.md"];
    std::fs::create_dir(folder.path("docs")).unwrap();
    folder.run(&args, 0);
    let read = |name: &str| std::fs::read_to_string(folder.path(name)).unwrap();
    assert!(read("docs/page.md").contains("between all methods: [tests/small.csv](<tests/small.csv>).\n"));
    let csv = read("docs/tests/small.csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "data,metric,a,b,trials,a_minus_b,se,p");
    assert_eq!(lines.len(), 1 + 2 * 3, "one pair, two data sets, three metrics: {csv}");
    // The oracle has an ARI of 1 in every trial, so the difference has the other's mean and error.
    let (summary, _) = folder.run(&["run", "small.toml", "--out", "out", "--quiet", "--format", "csv"], 0);
    let entry: Vec<&str> =
        summary.lines().find(|line| line.starts_with("made,KM,ari,")).unwrap().split(',').collect();
    let test: Vec<&str> =
        lines.iter().find(|line| line.starts_with("made,ari,KM,O_C,3,")).unwrap().split(',').collect();
    let number = |text: &str| text.parse::<f64>().unwrap();
    assert!((number(test[5]) - (number(entry[4]) - 1.0)).abs() < 1e-12, "{test:?} {entry:?}");
    assert!((number(test[6]) - number(entry[5])).abs() < 1e-12, "{test:?} {entry:?}");
    let (_, refused) = folder.run(&["report", "out", "out", "--format", "md", "--tests", "t"], 2);
    assert_eq!(refused, "error: --tests: two runs are named `small`\n");
    let (_, refused) = folder.run(&["report", "out", "--tests", "t"], 2);
    assert_eq!(refused, "error: --tests is for --format md\n");
}

#[test]
fn tables_alone_are_wide_or_long() {
    let folder = Folder::new();
    two_by_two(&folder);
    let table = |layout: &str| folder.run(&["report", "out", "--format", "md", "--layout", layout], 0).0;
    let wide: Vec<String> = table("wide").lines().map(str::to_owned).collect();
    assert_eq!(wide[0], "|  | n = 45: CRI | aCRI | ARI | n = 60: CRI | aCRI | ARI |");
    assert_eq!(wide[1], "|---|---:|---:|---:|---:|---:|---:|");
    assert!(wide.len() == 4 && wide[2].starts_with("| KM | ") && wide[3].starts_with("| *O\\_C* | "), "{wide:?}");
    let long: Vec<String> = table("long").lines().map(str::to_owned).collect();
    assert_eq!(long[0], "| data | method | CRI | aCRI | ARI |");
    let starts = ["| made | KM | ", "| made | *O\\_C* | ", "| more | KM | ", "| more | *O\\_C* | "];
    assert_eq!(long.len(), 2 + starts.len(), "{long:?}");
    assert!(long[2..].iter().zip(starts).all(|(line, start)| line.starts_with(start)), "{long:?}");
    let args = ["report", "out", "out", "--format", "md", "--layout", "long"];
    assert_eq!(folder.run(&args, 0).0.matches("### small\n").count(), 2, "several are told apart by their names");
    let refused = folder.run(&["report", "out", "--layout", "long"], 2).1;
    assert_eq!(refused, "error: --layout is for --format md\n");
}

/// The file that ships is read, and the columns it names exist.
#[test]
fn the_papers_numbers_are_readable() {
    let folder = Folder::new();
    folder.write(
        "small.toml",
        &SMALL.replace("name = \"small\"", "name = \"omniglot\"").replace("\"made\"", "\"n150\""),
    );
    folder.run(&["run", "small.toml", "--out", "out"], 0);
    let reference = crate::common::repository().join("docs/paper-results.toml");
    let args = ["report", "out", "--format", "md", "--reference", reference.to_str().unwrap()];
    let (text, _) = folder.run(&args, 0);
    assert!(text.contains("Beside it: Table 3, OmniGlot."), "{text}");
    assert!(text.contains("The paper has no numbers for KM."), "{text}");
}

/// Nobody has asked for what has the name of the page: a pipe there would let everybody wait.
#[test]
#[cfg(unix)]
fn a_pipe_that_is_called_like_the_page_is_refused() {
    let folder = Folder::new();
    folder.write("p.toml", SMALL);
    folder.run(&["run", "p.toml", "--out", "out"], 0);
    let pipe = folder.path("out/report.html");
    assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
    let (_, stderr) = folder.run(&["report", "out"], 1);
    assert!(stderr.contains("out/report.html cannot be written: "), "{stderr}");
}
