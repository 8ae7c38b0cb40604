"""Examples in files: whoever sums them up, the model is that of one process."""

import json
import pickle
import re
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import compflow
import numpy as np
import pytest

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

ROWS, DIM = 150_000, 4


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Three files with three singletons and their unions, more than two batches in all."""
    folder = tmp_path_factory.mktemp("shards")
    rng = np.random.default_rng(3)
    parts = 3 * np.eye(3, DIM, dtype=np.float32)
    pairs = rng.integers(0, 3, (ROWS, 2))
    X = np.maximum(parts[pairs[:, 0]], parts[pairs[:, 1]]) + rng.normal(0, 0.3, (ROWS, DIM)).astype(np.float32)
    known = [sorted({"cab"[member] for member in pair}) if at % 499 == 0 else None for at, pair in enumerate(pairs)]
    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(X.ravel(), pyarrow.float32()), DIM)
    table = pyarrow.table({"embedding": lists, "weight": np.arange(ROWS) % 3, "known": known})
    paths, ends = [], [0, 40_000, 110_000, ROWS]
    for at, (first, end) in enumerate(zip(ends, ends[1:])):
        paths.append(folder / f"part-{at}.parquet")
        parquet.write_table(table.slice(first, end - first), paths[-1], row_group_size=25_000)
    return paths


def model():
    return compflow.CKM(3, restarts=5, normalize=None)


@pytest.fixture(scope="module")
def fitted(files):
    return model().fit_shards(files)


def same(one, other):
    assert one.singletons_.tobytes() == other.singletons_.tobytes()
    assert (one.objective_, one.n_iter_) == (other.objective_, other.n_iter_)


@pytest.mark.parametrize("told", [{}, {"sample_weight": "weight", "seeds": "known"}])
@pytest.mark.parametrize("estimator", ["CKM", "CGM"])
def test_it_is_what_a_run_finds_in_one_process(files, estimator, told, tmp_path):
    made = getattr(compflow, estimator)(3, restarts=5, normalize=None)
    made.fit_shards(files, shards=2, **told)
    columns = {"weight": "weight", "seed": "known"} if told else {}
    path = str(files[0].parent / "part-*.parquet")
    pipeline = {
        "name": "one",
        "seed": 0,
        "composer": {"use": "max"},
        "data": [{"name": "data", "loader": "parquet", "path": path, "columns": {"embedding": "embedding", **columns}}],
        "clusterer": [{"use": made._component, "params": {"k": 3, "restarts": 5, "stream": True}}],
    }
    results = compflow.run(pipeline, out=tmp_path / "one")
    vectors = np.asarray(results.singletons.to_dict()["vector"], np.float32)
    assert vectors.tobytes() == made.singletons_.tobytes()
    assert results.runs.to_dict()["objective"] == [made.objective_]
    assert made.names_ == (["a", "b", "c"] if told else [])
    labels = parquet.read_table(made.assign_shards(files, tmp_path / "labels")).to_pydict()
    assert ("names" in labels) == bool(told)
    if told:
        assert labels["names"] == [[made.names_[at] for at in members] for members in labels["clusters"]]


@pytest.mark.parametrize("path", ["r/**/*.parquet", "r/*", "g/*/p.parquet", "r", "[rg]/*/?.parquet"])
def test_files_are_those_of_a_run_with_the_same_path_and_in_its_order(path, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = parquet.read_table(files[0]).slice(0, 200)
    written = ["r/a.parquet", "r/.hidden.parquet", "r/deep/er/b.parquet", "g/a/p.parquet", "g/a-b/p.parquet", "g/a.b/p.parquet"]
    for at, name in enumerate(written):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(table.slice(at * 30, 30), name)
    pipeline = {
        "name": "one",
        "seed": 0,
        "composer": {"use": "max"},
        "data": [{"name": "data", "loader": "parquet", "path": path, "columns": {"embedding": "embedding"}}],
        "clusterer": [{"use": "ckm", "params": {"k": 3, "restarts": 5, "stream": True}}],
    }
    run = compflow.run(pipeline, out=tmp_path / "one")
    made = model().fit_shards(path)
    assert np.asarray(run.singletons.to_dict()["vector"], np.float32).tobytes() == made.singletons_.tobytes()
    read = compflow._shards.files_of(path, "parquet")
    labels = parquet.read_table(made.assign_shards(path, tmp_path / "labels")).to_pydict()
    assert len(labels["id"]) == 30 * len(read) > 0


def test_files_keep_the_names_that_they_were_given(files, tmp_path, monkeypatch):
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk/a.parquet").write_bytes(files[0].read_bytes())
    (tmp_path / "mount").symlink_to("disk")
    monkeypatch.chdir(tmp_path)
    named = []

    def seen(function, items):
        for item in items:
            named.append(json.loads(item[0] if isinstance(item, tuple) else item)["pieces"][0]["path"])
            named.append(item[1] if isinstance(item, tuple) else "")
        return map(function, items)

    made = model().fit_shards("mount/*.parquet", map=seen, shards=1)
    assert set(named) == {str(tmp_path / "mount/a.parquet"), ""}
    (tmp_path / "disk/labels").mkdir()
    named.clear()
    made.assign_shards("mount/a.parquet", "mount/labels", map=seen, shards=1)
    assert named == [str(tmp_path / "mount/a.parquet"), str(tmp_path / "mount/labels/part-00000.parquet")]
    # Under another name they are the same files all the same.
    (tmp_path / "disk/a.parquet").rename(tmp_path / "disk/part-00000.parquet")
    with pytest.raises(ValueError, match="part-00000.parquet has examples, and labels would take its place"):
        made.assign_shards("disk/part-00000.parquet", "mount")


def test_texts_are_read_too(tmp_path):
    rng = np.random.default_rng(1)
    X = (np.eye(3, DIM)[rng.integers(0, 3, 300)] + rng.normal(0, 0.1, (300, DIM))).round(3)
    names = ["a;b" if at == 0 else "c" if at == 1 else "" for at in range(300)]
    rows = [",".join(map(str, row)) + f",{name}" for row, name in zip(X, names)]
    (tmp_path / "wide.csv").write_text("d0,d1,d2,d3,who\n" + "\n".join(rows))
    (tmp_path / "lines.jsonl").write_text("\n".join(f'{{"embedding": {row.tolist()}}}' for row in X))
    np.save(tmp_path / "matrix.npy", X.astype(np.float32))
    whole = model().fit_shards(tmp_path / "matrix.npy")
    same(model().fit_shards(tmp_path / "wide.csv", column="d*"), whole)
    same(model().fit_shards(tmp_path / "lines.jsonl"), whole)
    labels = model().fit_shards(tmp_path / "wide.csv", column="d*").assign_shards(tmp_path / "wide.csv", tmp_path / "labels")
    assert parquet.read_table(labels).num_rows == 300
    assert model().fit_shards(tmp_path / "wide.csv", column="d*", seeds="who", split=";").names_ == ["a", "b", "c"]
    (tmp_path / "wide.txt").touch()
    with pytest.raises(ValueError, match="expected a .parquet, .*csv"):
        model().fit_shards(tmp_path / "wide.txt")
    with pytest.raises(ValueError, match="wide.csv and lines.jsonl are files of different kinds"):
        model().fit_shards([tmp_path / "wide.csv", tmp_path / "lines.jsonl"])


def test_every_pass_is_told_of(files, tmp_path, caplog, capsys):
    passes = 0

    def counted(function, items):
        nonlocal passes
        passes += 1
        return map(function, items)

    with caplog.at_level("INFO", "compflow"):
        one = model().set_params(verbose=True).fit_shards(files, map=counted, shards=3)
        assert passes > 2
        lines = [re.sub(r"[0-9.]+ s$", "", line) for line in caplog.messages if ", pass " in line]
        assert lines == [f"ckm, pass {at}: 3 shards in " for at in range(1, passes + 1)]
        one.assign_shards(files, tmp_path / "labels", shards=2)
        assert caplog.messages[-1].startswith("ckm assign, pass 1: 2 shards in ")
    bars = capsys.readouterr().err
    for at in range(1, passes + 1):
        # tqdm draws at most ten times a second, but always when a pass begins.
        assert re.search(rf"ckm, pass {at} \(\d+%\): +0%\|.*\| 0/3 ", bars), (at, bars)
    assert "ckm assign, pass 1" in bars


def test_it_does_not_matter_who_sums_up(files, fitted):
    def backwards(function, items):
        return list(reversed([function(item) for item in reversed(items)]))

    with ThreadPoolExecutor(3) as threads, ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        for map in (backwards, threads.map, processes.map, lambda f, items: [threads.submit(f, item) for item in items]):
            same(model().fit_shards(files, map=map, shards=3), fitted)


def test_labels_are_those_that_predict_gives(files, fitted, tmp_path):
    written = fitted.assign_shards(str(files[0].parent / "part-*.parquet"), tmp_path / "labels", shards=2)
    assert [path.name for path in written] == ["part-00000.parquet", "part-00001.parquet"]
    labels = parquet.read_table(written).to_pydict()
    assert len(labels["id"]) == ROWS
    first = np.asarray(parquet.read_table(files[0])["embedding"].to_pylist()[:50], np.float32)
    assert fitted.predict_sets(first) == [tuple(members) for members in labels["clusters"][:50]]
    assert not hasattr(fitted, "labels_")
    with pytest.raises(AttributeError, match="assign_shards"):
        _ = fitted.sets_


def test_labels_of_one_call_are_all_that_a_folder_holds(files, fitted, tmp_path):
    out = tmp_path / "labels"
    assert len(fitted.assign_shards(files, out, shards=3)) == 3
    with pytest.raises(ValueError, match="part-00002.parquet would be taken for labels of this call, which writes 2 files"):
        fitted.assign_shards(files, out, shards=2)
    (out / "part-00002.parquet").unlink()
    fitted.assign_shards(files, out, shards=2)
    assert parquet.read_table(out).num_rows == ROWS
    (tmp_path / "part-00000.parquet").write_bytes(files[0].read_bytes())
    with pytest.raises(ValueError, match="part-00000.parquet has examples, and labels would take its place"):
        fitted.assign_shards(tmp_path / "part-00000.parquet", tmp_path)


def test_it_pickles(fitted):
    back = pickle.loads(pickle.dumps(fitted))
    same(back, fitted)
    X = np.asarray([[3, 0, 0, 0], [3, 3, 0, 0]], np.float32)
    assert back.predict_sets(X) == fitted.predict_sets(X)


def test_what_goes_wrong_is_said(files, fitted, tmp_path):
    with pytest.raises(ValueError, match="cannot cluster shards; `c[gk]m`"):
        compflow.AC(3).fit_shards(files)
    with pytest.raises(FileNotFoundError, match="no file matches"):
        model().fit_shards(str(tmp_path / "*.parquet"))
    with pytest.raises(FileNotFoundError, match="there is no file .*gone.parquet"):
        model().fit_shards([*files, tmp_path / "gone.parquet"])
    with pytest.raises(ValueError, match="no column `vector`"):
        model().fit_shards(files, column="vector")
    with pytest.raises(ValueError, match="no column `heavy`"):
        model().fit_shards(files, sample_weight="heavy")
    with pytest.raises(ValueError, match="cannot be sent"):
        compflow.CKM(3, composer=np.maximum).fit_shards(files)
    with pytest.raises(ValueError, match="examples in memory"):
        compflow.KMeans(2).fit(np.eye(4)).assign_shards(files, tmp_path)

    for shards in (-1, 0, 1.5, "two"):
        with pytest.raises(ValueError, match="`shards` must be None or a whole number at least 1, found"):
            model().fit_shards(files, shards=shards)
        with pytest.raises(ValueError, match="`shards` must be"):
            fitted.assign_shards(files, tmp_path / "out", shards=shards)
    with pytest.raises(ValueError, match="part-0.parquet is there twice"):
        model().fit_shards([*files, files[0]])
    with pytest.raises(ValueError, match="part-0.parquet: there is no column `name`"):
        model().fit_shards(files, id="name")

    class Lost(Exception):
        pass

    def lost(function, items):
        raise Lost("a worker")

    with pytest.raises(Lost, match="a worker"):
        model().fit_shards(files, map=lost)

    class Dead:
        def result(self):
            raise Lost("four workers died")

    def one_dies(function, items):
        return [function(items[0]), Dead(), *(function(item) for item in items[2:])]

    # Nobody but us knows where the examples of a shard are.
    shard = r"part-1.parquet, rows 25536 to 69999; .*part-2.parquet, rows 0 to 21071: Lost: four workers died"
    with pytest.raises(RuntimeError, match="a shard cannot be summed up: .*" + shard) as raised:
        model().fit_shards(files, map=one_dies, shards=3)
    assert isinstance(raised.value.__cause__, Lost)
    with pytest.raises(RuntimeError, match="a shard cannot be labelled: .*" + shard):
        fitted.assign_shards(files, tmp_path / "died", map=one_dies, shards=3)

    def dies_meanwhile(function, items):
        yield function(items[0])
        raise Lost("the pool is broken")

    with pytest.raises(RuntimeError, match=r"part-1.parquet, .*: Lost: the pool"):
        model().fit_shards(files, map=dies_meanwhile, shards=3)
    narrow = tmp_path / "narrow.parquet"
    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(np.ones(30, np.float32)), 3)
    parquet.write_table(pyarrow.table({"embedding": lists}), narrow)
    with pytest.raises(ValueError, match="3 features"):
        fitted.assign_shards(narrow, tmp_path / "out")


@pytest.mark.parametrize("near", [False, True])
def test_what_is_wrong_with_a_file_is_said_once_wherever_one_is(files, near, tmp_path, monkeypatch):
    copies = [tmp_path / file.name for file in files]
    for file, copy in zip(files, copies):
        copy.write_bytes(file.read_bytes())
    table = parquet.read_table(copies[1])
    values = table["embedding"].combine_chunks().flatten().to_numpy().copy()
    values[7 * DIM] = np.nan
    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(values), DIM)
    parquet.write_table(pyarrow.table({"embedding": lists}), copies[1])
    if near:
        monkeypatch.chdir(tmp_path)
    # One shard, of three files: the one that is meant is named, and the others are not.
    with pytest.raises(ValueError, match=rf"^{re.escape(str(copies[1]))}, rows 0 to 69999: ") as raised:
        model().fit_shards([file.name for file in copies] if near else copies, shards=1)
    said = str(raised.value)
    assert said.count("part-1.parquet") == 1 and "part-0" not in said and "part-2" not in said, said

    def changing(function, items):
        copies[2].write_bytes(files[0].read_bytes())
        return map(function, items)

    copies[1].write_bytes(files[1].read_bytes())
    with pytest.raises(ValueError, match=rf"^{re.escape(str(copies[2]))} has changed since the first pass: ") as raised:
        model().fit_shards(copies, map=changing, shards=1)
    said = str(raised.value)
    assert "part-0" not in said and "part-1" not in said, said


def test_a_file_that_changes_meanwhile_is_noticed(files, tmp_path):
    copy = tmp_path / "part.parquet"
    copy.write_bytes(files[0].read_bytes())
    passes = 0

    def changing(function, items):
        nonlocal passes
        passes += 1
        if passes == 2:
            copy.write_bytes(files[1].read_bytes())
        return map(function, items)

    with pytest.raises(ValueError, match="part.parquet"):
        model().fit_shards(copy, map=changing)
