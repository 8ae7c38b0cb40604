"""Pipelines, results, and models that become runs."""

import json

import numpy as np
import pytest

import compflow

PIPELINE = {
    "name": "first",
    "seed": 1,
    "data": [{"name": "points", "loader": "synthetic", "params": {"n": 60, "trials": 2}}],
    "composer": {"use": "max"},
    "clusterer": [{"use": "ckm", "params": {"k": 3, "restarts": 5}}, {"use": "kmeans", "params": {"k": 6}}],
    "evaluator": [{"use": "cri"}, {"use": "ari"}],
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return compflow.run(PIPELINE, out=tmp_path_factory.mktemp("run") / "first")


def test_tables_are_arrow_and_go_anywhere(results):
    runs = results.runs
    assert len(runs) == 4 and runs["status"] == ["ok"] * 4
    for module, frame in (("polars", "DataFrame"), ("pyarrow", "table")):
        library = pytest.importorskip(module)
        table = getattr(library, frame)(results.assignments)
        assert len(table) == 240
    pandas = pytest.importorskip("pandas")
    assert list(results.summary.to_pandas().columns) == results.summary.column_names
    assert isinstance(results.summary.to_pandas(), pandas.DataFrame)
    with pytest.raises(FileNotFoundError, match="no table 'memberships'; there are assignments"):
        results.memberships
    with pytest.raises(AttributeError):
        results.nothing


def test_results_show_themselves(results):
    assert "points ckm: cri" in repr(results)
    page = results._repr_html_()
    assert page.count("<tr>") == 3 and "<b>" in page and "<th>acri</th>" in page
    assert "<table>" in results.summary._repr_html_()


def test_the_report_is_that_of_the_command(results):
    report = results.report()
    page = report.path.read_text()
    assert page.startswith("<!DOCTYPE html>") and "ckm" in page
    assert report._repr_html_().startswith("<iframe srcdoc=")


def test_what_is_kept_is_not_computed_again(results):
    before = (results.folder / "assignments.parquet").read_bytes()
    again = compflow.run(PIPELINE, out=results.folder)
    assert (again.folder / "assignments.parquet").read_bytes() == before


def test_data_in_memory_takes_part(X, truth, tmp_path):
    pipeline = {**PIPELINE, "data": [{"name": "mine"}]}
    results = compflow.run(pipeline, out=tmp_path / "mine", data={"mine": (X, truth)})
    model = compflow.CKM(3, restarts=5, random_state=1, normalize=None).fit(X)
    scores = dict(zip(zip(results.summary["clusterer"], results.summary["metric"]), results.summary["mean"]))
    assert scores["ckm", "cri"] == pytest.approx(1.0)
    assert model.n_features_in_ == 8


def test_everything_that_is_wrong_is_said_at_once(tmp_path):
    wrong = {**PIPELINE, "clusterer": [{"use": "ckn"}, {"use": "kmeans", "params": {"k": 0}}]}
    with pytest.raises(ValueError) as caught:
        compflow.run(wrong, out=tmp_path / "wrong")
    text = str(caught.value)
    assert "there is no clusterer named `ckn`" in text and "`k` must be" in text
    with pytest.raises(ValueError, match="nowhere.toml"):
        compflow.run(tmp_path / "nowhere.toml")
    with pytest.raises(RuntimeError, match="1 of 2 cells failed, the first because"):
        compflow.run({**PIPELINE, "clusterer": [{"use": "kmeans", "params": {"k": {"grid": [3, 600]}}}], "data": [{"name": "points", "loader": "synthetic", "params": {"n": 60}}]}, out=tmp_path / "failed")


def test_a_model_becomes_a_run(X, truth, tmp_path, command):
    model = compflow.CKM(3, restarts=5, random_state=2).fit(X)
    folder = model.save(tmp_path / "saved", X, truth)
    opened = compflow.load(folder)
    assert opened.sets_ == model.sets_ and opened.label_sets_ == model.label_sets_
    new = X + np.float32(0.02)
    assert (opened.predict(new) == model.predict(new)).all()
    assert opened.transform(new).tobytes() == model.transform(new).tobytes()
    command("report", folder)
    assert "ckm" in (folder / "report.html").read_text()
    # The command finds the cell where the model has put it, and computes nothing.
    done = command("run", folder / "inputs" / "pipeline.toml", "--out", folder)
    assert "1 of them kept" in done.stderr
    np.save(tmp_path / "new.npy", new)
    command("assign", folder, tmp_path / "new.npy", "--out", tmp_path / "labels.parquet")
    other = compflow.CKM(2, restarts=5).fit(X).save(tmp_path / "other", X, truth)
    assert "ckm" in command("diff", folder, other).stdout
    record = json.loads((folder / "run.json").read_text())
    assert record["name"] == "saved"


def test_a_selected_model_becomes_a_run_without_selecting_again(X, tmp_path):
    selection = compflow.select_k(compflow.KMeans(degree=1), X, [3, 6, 9])
    assert selection.best == 6 and "chosen: 6" in repr(selection)
    folder = selection.model.save(tmp_path / "selected", X)
    assert compflow.load(folder).sets_ == selection.model.sets_


def test_only_the_examples_that_were_clustered_go_along(X, tmp_path):
    model = compflow.CKM(3, restarts=5).fit(X)
    with pytest.raises(ValueError, match="not the examples, weights and seeds that were clustered"):
        model.save(tmp_path / "wrong", X[::-1])
    model.save(tmp_path / "right", X)
    with pytest.raises(FileExistsError, match="holds a run already"):
        model.save(tmp_path / "right", X)
    with pytest.raises(ValueError, match="cannot name a Python function"):
        compflow.CAP(composer=np.maximum).fit(X).save(tmp_path / "function", X)


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is no results folder"):
        compflow.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="is no results folder"):
        compflow.Results(tmp_path)
