//! Examples in shards: whatever processes sum them up, in whatever order, the clusters are those of one process, bit by bit.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, Float32Array, Int64Array, RecordBatch, StringArray};
use compflow_engine::shards::{Job, Layout, Model, Shard, Used, Worker, merge, seed};
use compflow_engine::{Cancel, Registry, Resources, Silent};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;

use crate::common::{Folder, finished, libraries};

const DIM: usize = 3;

/// Examples of three singletons and their unions under `max`, by a generator of our own.
fn examples(rows: usize) -> Vec<f32> {
    examples_and_sets(rows).0
}

/// The same, and which singletons each is made of.
fn examples_and_sets(rows: usize) -> (Vec<f32>, Vec<[usize; 2]>) {
    let singletons = [[4.0f32, 0.0, 0.5], [0.0, 5.0, 1.0], [1.0, 0.5, 6.0]];
    let mut state = 1u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    let (mut values, mut sets) = (Vec::with_capacity(rows * DIM), Vec::new());
    for _ in 0..rows {
        let (first, second) = ((next() * 3.0) as usize, (next() * 3.0) as usize);
        sets.push([first, second]);
        values.extend((0..DIM).map(|at| singletons[first][at].max(singletons[second][at]) + next() - 0.5));
    }
    (values, sets)
}

/// Writes files of so many rows, in row groups that have nothing to do with batches.
fn write_files(folder: &Folder, rows: &[usize]) -> Vec<PathBuf> {
    let (values, sets) = examples_and_sets(rows.iter().sum());
    let all = columns(&values, DIM, &sets);
    let mut first = 0;
    let written = rows.iter().enumerate().map(|(at, &rows)| {
        let own = all.slice(first, rows);
        first += rows;
        write(&folder.path(&format!("part-{at}.parquet")), &own)
    });
    written.collect()
}

/// With weights, some of which are 0, and names of what is in a few of the examples; one is never known alone.
fn columns(values: &[f32], dim: usize, sets: &[[usize; 2]]) -> RecordBatch {
    let lists = values.chunks_exact(dim).map(|row| Some(row.iter().copied().map(Some)));
    let lists = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(lists, dim as i32);
    let rows = values.len() / dim;
    let weights = Float32Array::from_iter_values((0..rows).map(|row| (row % 5) as f32 * 0.3));
    let mut known = ListBuilder::new(StringBuilder::new());
    for (row, [first, second]) in sets.iter().enumerate() {
        let told = row % 997 == 3 && [*first, *second] != [2, 2];
        if told {
            known.values().append_value(["b", "c", "a"][*first]);
            known.values().append_value(["b", "c", "a"][*second]);
        }
        known.append(told);
    }
    (sets.len()..rows).for_each(|_| known.append(false));
    RecordBatch::try_from_iter([
        ("embedding", Arc::new(lists) as ArrayRef),
        ("weight", Arc::new(weights) as ArrayRef),
        ("known", Arc::new(known.finish()) as ArrayRef),
    ])
    .unwrap()
}

fn write_file(path: &Path, values: &[f32], dim: usize) -> PathBuf {
    write(path, &columns(values, dim, &[]))
}

fn write(path: &Path, batch: &RecordBatch) -> PathBuf {
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(30_000)).build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    path.to_owned()
}

fn job(folder: &Folder, clusterer: &str, params: serde_json::Value) -> Job {
    Job {
        clusterer: Used { name: clusterer.to_owned(), params },
        composer: Some(Used::new("max")),
        space: compflow_api::Space::default(),
        degree: 2,
        seed: seed(5, "made", 0, "found"),
        loader: Used::new("parquet"),
        embedding: "embedding".to_owned(),
        id: None,
        weight: None,
        known: None,
        split: None,
        folder: folder.path(""),
    }
}

fn worker(job: &Job, threads: usize) -> Worker {
    let registry = Registry::scan(&[libraries()]);
    let resources = Resources { threads: Some(threads), ..Resources::default() };
    Worker::new(job.clone(), &registry, resources, &Silent::shared(), &Cancel::new()).unwrap()
}

/// A run of the same pipeline in one process.
fn run_in_one_process(folder: &Folder, clusterer: &str, params: &str, columns: &str) {
    folder.write(
        "pipeline.toml",
        &format!(
            r#"
name = "one"
seed = 5
degree = 2

[composer]
use = "max"

[[data]]
name = "made"
loader = "parquet"
path = "part-*.parquet"
columns = {columns}

[[clusterer]]
name = "found"
use = "{clusterer}"
params = {params}
"#
        ),
    );
    folder.run(&["run", "pipeline.toml", "--out", "one", "--quiet"], 0);
}

/// What a run has found, as far as a model has it.
fn found_by_run(folder: &Folder) -> (Vec<f32>, Vec<f32>, f64) {
    let numbers = |table: &RecordBatch, column: &str| {
        let column = &table[column];
        let fixed = column.as_fixed_size_list_opt().map(FixedSizeListArray::values);
        let lists = fixed.unwrap_or_else(|| column.as_list::<i64>().values());
        lists.as_primitive::<Float32Type>().values().to_vec()
    };
    let objective = folder.read_parquet("one/runs.parquet")["objective"].clone();
    (
        numbers(&folder.read_parquet("one/clusters.parquet"), "centroid"),
        numbers(&folder.read_parquet("one/singletons.parquet"), "vector"),
        objective.as_primitive::<arrow_array::types::Float64Type>().value(0),
    )
}

/// Shards one after the other, the last first, some put together on the way.
fn backwards<'w>(
    worker: &'w Worker,
    dim: usize,
) -> impl Fn(&[u8], &[Shard]) -> compflow_engine::Result<Vec<Vec<u8>>> + Sync + 'w {
    move |state, shards| {
        let mut parts = Vec::new();
        for shard in shards.iter().rev() {
            parts.push(worker.partial(state, shard, dim)?);
            if parts.len() == 3 {
                parts = vec![merge(parts.iter().map(|part| &part[..]))?];
            }
        }
        Ok(parts)
    }
}

/// All rows of a file.
fn rows_of(path: &Path) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(path).unwrap()).unwrap();
    reader.with_batch_size(1 << 20).build().unwrap().map(Result::unwrap).collect()
}

/// The columns that tell something of the examples.
#[derive(Clone, Copy)]
struct Told {
    weight: bool,
    known: bool,
}

const NOTHING: Told = Told { weight: false, known: false };
const BOTH: Told = Told { weight: true, known: true };

fn is_the_same_in_shards(clusterer: &str, params: serde_json::Value, toml: &str, told: Told) {
    let folder = Folder::new();
    let files = write_files(&folder, &[70_000, 90_000, 101, 60_000]);
    let weight = if told.weight { ", weight = \"weight\"" } else { "" };
    let known = if told.known { ", seed = \"known\"" } else { "" };
    run_in_one_process(&folder, clusterer, toml, &format!("{{ embedding = \"embedding\"{weight}{known} }}"));
    let (centroids, singletons, objective) = found_by_run(&folder);
    let job = Job {
        weight: told.weight.then(|| "weight".to_owned()),
        known: told.known.then(|| "known".to_owned()),
        ..job(&folder, clusterer, params)
    };
    let mut models: Vec<Vec<u8>> = Vec::new();
    for (shards, threads) in [(1, 2), (2, 1), (4, 2)] {
        let worker = worker(&job, threads);
        let layout = worker.layout(&files, shards).unwrap();
        assert_eq!((layout.rows, layout.dim, layout.shards.len()), (220_101, DIM, shards));
        let model = worker.fit(&layout, &backwards(&worker, layout.dim)).unwrap();
        assert_eq!(model.clustering.diagnostics.objective.to_bits(), objective.to_bits(), "{shards} shards");
        assert_eq!(model.clustering.centroids, centroids);
        assert_eq!(model.clustering.singletons.vectors, singletons);
        assert_eq!(model.names, if told.known { &["a", "b", "c"][..] } else { &[] });
        models.push(model.to_bytes());
    }
    assert!(models.windows(2).all(|pair| pair[0] == pair[1]), "the number of shards shows in the model");

    // Labels: a file for every shard, which together are what one process writes.
    let model = Model::from_bytes(&models[0]).unwrap();
    let worker = worker(&job, 1);
    let layout = worker.layout(&files, 3).unwrap();
    let mut labels = Vec::new();
    for (at, shard) in layout.shards.iter().enumerate() {
        let out = folder.path(&format!("labels-{at}.parquet"));
        assert_eq!(worker.assign(&model, shard, &out).unwrap(), shard.rows());
        labels.extend(rows_of(&out));
    }
    folder.run(&["assign", "one", "part-*.parquet", "--out", "labels.parquet", "--quiet"], 0);
    let whole = rows_of(&folder.path("labels.parquet"));
    assert_eq!((whole.len(), labels.len()), (1, 3));
    let mut first = 0;
    for part in &labels {
        assert!(*part == whole[0].slice(first, part.num_rows()), "labels differ");
        first += part.num_rows();
    }
    assert_eq!(first, whole[0].num_rows());
}

#[test]
fn ckm_finds_in_shards_what_it_finds_in_one_process() {
    let params = serde_json::json!({ "k": 3, "restarts": 2, "sample": 2000 });
    let toml = "{ k = 3, restarts = 2, sample = 2000, stream = true }";
    is_the_same_in_shards("ckm", params.clone(), toml, NOTHING);
    is_the_same_in_shards("ckm", params.clone(), toml, Told { known: false, ..BOTH });
    is_the_same_in_shards("ckm", params, toml, BOTH);
}

#[test]
fn cgm_finds_in_shards_what_it_finds_in_one_process() {
    let params = serde_json::json!({ "k": 3, "sample": 2000, "outliers": true, "max_iter": 6 });
    let toml = "{ k = 3, sample = 2000, outliers = true, max_iter = 6, stream = true }";
    is_the_same_in_shards("cgm", params.clone(), toml, NOTHING);
    is_the_same_in_shards("cgm", params, toml, BOTH);
    let params = serde_json::json!({ "k": 3, "sample": 2000, "max_iter": 4 });
    is_the_same_in_shards("cgm", params, "{ k = 3, sample = 2000, max_iter = 4, stream = true }", BOTH);
}

#[test]
fn weights_and_known_sets_that_cannot_be_are_named() {
    let folder = Folder::new();
    let files = write_files(&folder, &[2000, 1000]);
    let told = |column: &str, known: bool| {
        let plain = job(&folder, "ckm", serde_json::json!({ "k": 3 }));
        let column = Some(column.to_owned());
        let job = if known { Job { known: column, ..plain } } else { Job { weight: column, ..plain } };
        let worker = worker(&job, 1);
        let layout = worker.layout(&files, 1);
        let found = layout.and_then(|layout| worker.fit(&layout, &backwards(&worker, layout.dim)));
        found.map(|_| ()).unwrap_err().to_string()
    };
    let text = told("gone", false);
    assert!(text.contains("part-0.parquet") && text.contains("no column `gone`"), "{text}");
    let text = told("known", false);
    assert!(text.contains("part-0.parquet") && text.contains("the weight column must hold numbers"), "{text}");
    let text = told("weight", true);
    assert!(text.contains("the seed column must hold whole numbers or text, found numbers"), "{text}");
}

#[test]
fn files_that_do_not_go_together_are_named_before_the_first_pass() {
    let folder = Folder::new();
    let files = write_files(&folder, &[2000, 1000]);
    let lay = |id: Option<&str>, files: &[PathBuf]| {
        let job = job(&folder, "ckm", serde_json::json!({ "k": 3 }));
        let found = worker(&Job { id: id.map(str::to_owned), ..job }, 1).layout(files, 1);
        found.map(|_| ()).map_err(|error| error.to_string())
    };
    let twice = lay(None, &[files[0].clone(), files[1].clone(), folder.path("./part-0.parquet")]).unwrap_err();
    assert!(twice.ends_with("part-0.parquet is there twice: its examples would count twice"), "{twice}");
    let missing = lay(Some("name"), &files).unwrap_err();
    assert!(missing.contains("part-0.parquet: there is no column `name`"), "{missing}");
    let wrong = lay(Some("weight"), &files).unwrap_err();
    assert!(wrong.contains("part-0.parquet: ") && wrong.contains("the id column must hold"), "{wrong}");
    // Numbers in one file, text in another.
    let with_ids = |name: &str, ids: ArrayRef| {
        let plain = columns(&examples(ids.len()), DIM, &[]);
        let batch = RecordBatch::try_from_iter([("embedding", plain["embedding"].clone()), ("name", ids)]);
        write(&folder.path(name), &batch.unwrap())
    };
    let numbers = with_ids("numbers.parquet", Arc::new(Int64Array::from_iter_values(0..100)));
    let texts =
        with_ids("texts.parquet", Arc::new(StringArray::from_iter_values((0..100).map(|at| at.to_string()))));
    let mixed = lay(Some("name"), &[numbers.clone(), texts.clone()]).unwrap_err();
    assert!(
        mixed.contains("texts.parquet: the ids are text, and those of ") && mixed.ends_with("are whole numbers")
    );
    lay(Some("name"), &[numbers]).unwrap();
    lay(Some("name"), &[texts]).unwrap();
}

#[test]
fn rows_that_nobody_has_counted_are_counted_by_reading() {
    let folder = Folder::new();
    let files = write_files(&folder, &[2000, 1000]);
    let all = job(&folder, "ckm", serde_json::json!({ "k": 3, "restarts": 2 }));
    let find = |job: &Job, files: &[PathBuf]| {
        let worker = worker(job, 1);
        let layout = worker.layout(files, 1).unwrap();
        let model = worker.fit(&layout, &backwards(&worker, layout.dim)).unwrap();
        (layout.rows, layout.dim, model.clustering.centroids)
    };
    let whole = find(&all, &files);
    assert_eq!((whole.0, whole.1), (3000, DIM));
    let (values, _) = examples_and_sets(3000);
    let rows = || values.chunks_exact(DIM);
    let numbers = |row: &[f32]| row.iter().map(ToString::to_string).collect::<Vec<_>>();
    // A column for each dimension, a text with numbers in it, and lists.
    let wide: Vec<String> = rows().map(|row| numbers(row).join(",")).collect();
    let texts: Vec<String> = rows().map(|row| format!("\"{}\"", numbers(row).join(" "))).collect();
    let lines: Vec<String> =
        rows().map(|row| format!("{{\"embedding\": [{}]}}", numbers(row).join(", "))).collect();
    folder.write("wide.csv", &format!("d0,d1,d2\n{}\n", wide.join("\n")));
    folder.write("texts.csv", &format!("embedding\n{}\n", texts.join("\n")));
    folder.write("lines.jsonl", &lines.join("\n"));
    for (file, loader, column) in
        [("wide.csv", "csv", "d*"), ("texts.csv", "csv", "embedding"), ("lines.jsonl", "json", "embedding")]
    {
        let job = Job { loader: Used::new(loader), embedding: column.to_owned(), ..all.clone() };
        assert_eq!(find(&job, &[folder.path(file)]), whole, "{file}");
    }
    // What a loader leaves out is not counted, and rows are those of what it reads.
    let some = serde_json::json!({ "rows": { "first": 500, "count": 700 } });
    let job = Job { loader: Used { name: "parquet".to_owned(), params: some }, ..all };
    folder.write("some.jsonl", &lines[500..1200].join("\n"));
    let lines = Job { loader: Used::new("json"), ..job.clone() };
    assert_eq!(find(&job, &files[..1]), find(&lines, &[folder.path("some.jsonl")]));
}

/// A process of its own, for `plain_processes_are_workers_too`: sums up one shard.
#[test]
#[ignore = "is started by another test, with COMPFLOW_SHARD naming a folder"]
fn one_worker() {
    let folder = PathBuf::from(std::env::var("COMPFLOW_SHARD").unwrap());
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let job = Job::from_bytes(&read("job")).unwrap();
    let shard = Shard::from_bytes(&read("shard")).unwrap();
    let partial = worker(&job, 1).partial(&read("state"), &shard, DIM).unwrap();
    std::fs::write(folder.join("partial"), partial).unwrap();
}

#[test]
fn plain_processes_are_workers_too() {
    let folder = Folder::new();
    let files = write_files(&folder, &[50_000, 100_000]);
    let job = job(&folder, "ckm", serde_json::json!({ "k": 3, "restarts": 1, "sample": 500, "max_iter": 3 }));
    let driver = worker(&job, 1);
    let layout = driver.layout(&files, 3).unwrap();
    let passes = Mutex::new(0);
    let processes = |state: &[u8], shards: &[Shard]| {
        *passes.lock().unwrap() += 1;
        let started = shards.iter().enumerate().map(|(at, shard)| {
            let own = folder.path(&format!("worker-{at}"));
            std::fs::create_dir_all(&own).unwrap();
            std::fs::write(own.join("job"), job.to_bytes()).unwrap();
            std::fs::write(own.join("shard"), shard.to_bytes()).unwrap();
            std::fs::write(own.join("state"), state).unwrap();
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "--ignored", "shards::one_worker"]).env("COMPFLOW_SHARD", &own);
            (own, command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
        });
        let started: Vec<_> = started.collect();
        let ended = started.into_iter().map(|(own, child)| {
            finished(child.wait_with_output().unwrap(), 0);
            std::fs::read(own.join("partial")).unwrap()
        });
        Ok(ended.collect())
    };
    let model = driver.fit(&layout, &processes).unwrap();
    assert!(*passes.lock().unwrap() >= 3);
    let alone = driver.layout(&files, 1).unwrap();
    assert_eq!(driver.fit(&alone, &backwards(&driver, DIM)).unwrap().to_bytes(), model.to_bytes());
}

#[test]
fn what_cannot_be_done_in_shards_says_why() {
    let folder = Folder::new();
    let files = write_files(&folder, &[2000, 1000]);
    let registry = Registry::scan(&[libraries()]);
    let make = |job: Job| {
        let made = Worker::new(job, &registry, Resources::default(), &Silent::shared(), &Cancel::new());
        made.map(|_| ()).unwrap_err().to_string()
    };
    let params = || serde_json::json!({ "k": 3 });
    let unable = make(job(&folder, "kmeans", params()));
    assert_eq!(unable, "`kmeans` must see all examples and cannot cluster shards; `cgm`, `ckm` can");
    assert!(make(job(&folder, "ckm", serde_json::json!({ "k": 0 }))).contains("`k`"));
    let alone = make(Job { composer: None, ..job(&folder, "ckm", params()) });
    assert_eq!(alone, "`ckm` needs a composer for unions of up to 2: name one, or set the degree to 1");

    let worker = worker(&job(&folder, "ckm", params()), 1);
    let fit = |layout: &Layout| {
        let found = worker.fit(layout, &backwards(&worker, layout.dim));
        found.map(|_| ()).unwrap_err().to_string()
    };
    let layout = worker.layout(&files, 1).unwrap();
    let other = write_file(&folder.path("other.parquet"), &[1.0; 40], 2);
    let unequal = worker.layout(&[files[0].clone(), other], 2).unwrap_err().to_string();
    assert!(
        unequal.contains("other.parquet has embeddings of length 2, and ") && unequal.ends_with("of length 3")
    );
    assert!(worker.layout(&[folder.path("gone.parquet")], 1).unwrap_err().to_string().contains("gone.parquet"));

    // A file that changes between passes.
    let passes = Mutex::new(0);
    let changing = |state: &[u8], shards: &[Shard]| {
        *passes.lock().unwrap() += 1;
        if *passes.lock().unwrap() == 2 {
            write_file(&files[1], &examples(1001)[..1000 * DIM], DIM);
        }
        backwards(&worker, DIM)(state, shards)
    };
    let changed = worker.fit(&layout, &changing).map(|_| ()).unwrap_err().to_string();
    assert!(changed.contains("part-1.parquet has changed since the first pass"), "{changed}");
    // A shard that nobody can read.
    let layout = worker.layout(&files, 1).unwrap();
    let mut values = examples(1000);
    values[700 * DIM] = f32::NAN;
    write_file(&files[1], &values, DIM);
    let damaged = worker.layout(&files, 1).unwrap();
    assert!(fit(&layout).contains("has changed"));
    let text = fit(&damaged);
    assert!(text.contains("part-1.parquet") && text.contains("row 700: the embedding is NaN"), "{text}");
    // A worker that answers for a shard twice, or not at all.
    let layout = worker.layout(&files[..1], 1).unwrap();
    let nothing = |_: &[u8], _: &[Shard]| Ok(Vec::new());
    let missing = worker.fit(&layout, &nothing).map(|_| ()).unwrap_err().to_string();
    assert!(missing.contains("0 batches were summed up, and there are 1"), "{missing}");
    let twice = |state: &[u8], shards: &[Shard]| {
        let part = worker.partial(state, &shards[0], DIM)?;
        Ok(vec![part.clone(), part])
    };
    let twice = worker.fit(&layout, &twice).map(|_| ()).unwrap_err().to_string();
    assert!(twice.contains("batch 0 was summed up twice"), "{twice}");
}

#[test]
fn an_answer_of_which_a_bit_has_changed_is_refused_and_so_is_a_state() {
    let folder = Folder::new();
    let files = write_files(&folder, &[2000]);
    let worker = worker(&job(&folder, "ckm", serde_json::json!({ "k": 3, "restarts": 1 })), 1);
    let layout = worker.layout(&files, 1).unwrap();
    let flip = |bytes: &[u8], bit: usize| {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        flipped
    };
    let tried = Mutex::new(false);
    let watched = |state: &[u8], shards: &[Shard]| {
        let part = worker.partial(state, &shards[0], DIM)?;
        for bit in 0..8 * part.len() {
            let text = merge([&flip(&part, bit)[..]]).unwrap_err().to_string();
            assert_eq!(text, "what came of a shard is damaged, or of another version of compflow", "bit {bit}");
        }
        for bit in (0..8 * state.len()).step_by(7) {
            let text = worker.partial(&flip(state, bit), &shards[0], DIM).unwrap_err().to_string();
            assert!(text.starts_with("a state is damaged, or of another version"), "bit {bit}: {text}");
        }
        *tried.lock().unwrap() = true;
        Ok(vec![flip(&part, 4 * part.len())])
    };
    let failed = worker.fit(&layout, &watched).map(|_| ()).unwrap_err().to_string();
    assert!(failed.contains("what came of a shard is damaged") && *tried.lock().unwrap(), "{failed}");
}

#[test]
fn whoever_has_another_library_than_the_driver_sums_up_nothing() {
    let folder = Folder::new();
    let files = write_files(&folder, &[2000]);
    let other = folder.path("plugins");
    std::fs::create_dir(&other).unwrap();
    for file in std::fs::read_dir(libraries()).unwrap().map(|entry| entry.unwrap().path()) {
        let name = file.file_name().unwrap().to_str().unwrap();
        if ["ckm", "composers", "loaders"].iter().any(|stem| name == format!("libcompflow_{stem}.so")) {
            let mut bytes = std::fs::read(&file).unwrap();
            // What the system does not read, and so what a library does stays the same.
            bytes.extend(name.contains("ckm").then_some(b"another build").into_iter().flatten());
            std::fs::write(other.join(name), bytes).unwrap();
        }
    }
    let job = job(&folder, "ckm", serde_json::json!({ "k": 3, "restarts": 1 }));
    let resources = Resources { threads: Some(1), ..Resources::default() };
    let registry = Registry::scan(&[other]);
    let foreign = Worker::new(job.clone(), &registry, resources, &Silent::shared(), &Cancel::new()).unwrap();
    let driver = worker(&job, 1);
    let layout = driver.layout(&files, 1).unwrap();
    let text = driver.fit(&layout, &backwards(&foreign, DIM)).map(|_| ()).unwrap_err().to_string();
    assert!(
        text.starts_with("clusterer `ckm` is of ") && text.contains("plugins/libcompflow_ckm.so (blake3:"),
        "{text}"
    );
    assert!(text.ends_with("where the driver is: what comes of both would not go together"), "{text}");
    driver.fit(&layout, &backwards(&driver, DIM)).unwrap();
}
