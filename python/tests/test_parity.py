"""A fit finds what the command finds, bit by bit."""

import json

import numpy as np
import pytest

import compflow
from compflow import _toml

polars = pytest.importorskip("polars")

ESTIMATORS = {
    "ckm": {"n_singletons": 5},
    "cgm": {"n_singletons": 5},
    "cap": {},
    "gcr": {"base": {"use": "ac", "params": {"k": 15}}},
    "ap": {},
    "ac": {"n_singletons": 12},
    "kmeans": {"n_singletons": 12},
    "fcm": {"n_singletons": 12},
    "gmm": {"n_singletons": 5},
}


@pytest.fixture(scope="module")
def run(omniglot, command, tmp_path_factory):
    """All clusterers on one trial, by the command."""
    folder = tmp_path_factory.mktemp("parity")
    X, truth = omniglot
    np.save(folder / "examples.npy", X)
    theirs = {"n_singletons": "k"}
    params = {name: {theirs.get(key, key): value for key, value in given.items()} for name, given in ESTIMATORS.items()}
    pipeline = {
        "name": "parity",
        "seed": 3,
        "degree": 2,
        "space": {"normalize": "l2", "distance": "sqeuclidean"},
        "composer": {"use": "max"},
        "data": [{"name": "data", "loader": "npy", "path": "examples.npy"}],
        "clusterer": [{"use": name, "params": given} for name, given in params.items()],
    }
    (folder / "parity.toml").write_text(_toml.dumps(pipeline))
    command("run", "parity.toml", "--out", "out", "--jobs", 1, "--quiet", cwd=folder)
    return compflow.Results(folder / "out")


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("ignore")
def test_a_fit_finds_what_the_command_finds(name, omniglot, run):
    X, _ = omniglot
    model = compflow.clusterer(name, **ESTIMATORS[name], random_state=3).fit(X)
    of = polars.col("clusterer") == name
    cell = polars.DataFrame(run.runs).filter(of).row(0, named=True)
    assert (model.objective_, model.n_iter_, model.converged_) == (
        cell["objective"],
        cell["iterations"],
        cell["converged"],
    )
    found = polars.DataFrame(run.assignments).filter(of)
    assert model.sets_ == [tuple(members) for members in found["clusters"].to_list()]
    distances = found["distance"].to_numpy()
    if hasattr(model, "distances_"):
        assert model.distances_.tobytes() == distances.astype(np.float32).tobytes()
    else:
        assert np.isnan(distances).all()
    assert model.singletons_.shape == (model.n_singletons_, X.shape[1])
    if name in ("cap", "ap"):
        rows = {members[0]: at[0] for members, at in zip(*(model.clusters_.to_dict()[of] for of in ("clusters", "exemplars"))) if len(members) == 1}
        assert rows and all((model.singletons_[number] == X[row]).all() for number, row in rows.items())
    theirs = polars.DataFrame(run.clusters).filter(of).select("clusters", "size", "exemplars", "centroid").to_dicts()
    ours = model.clusters_.to_dict()
    ours = [dict(zip(ours, row)) for row in zip(*ours.values())]
    ours = {tuple(row["clusters"]): row for row in ours}
    assert len(ours) == len(theirs)
    for row in theirs:
        own = ours[tuple(row["clusters"])]
        assert (own["size"], own["exemplars"], own["centroid"]) == (row["size"], row["exemplars"], row["centroid"])


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("ignore")
def test_new_examples_go_where_the_command_puts_them(name, omniglot, run, command, tmp_path):
    X, _ = omniglot
    new = X[::3] * 1.5 + np.float32(0.01)
    np.save(tmp_path / "new.npy", new)
    command("assign", run.folder, tmp_path / "new.npy", "--clusterer", name, "--out", tmp_path / "labels.parquet")
    theirs = polars.read_parquet(tmp_path / "labels.parquet")
    model = compflow.clusterer(name, **ESTIMATORS[name], random_state=3).fit(X)
    found = compflow.assign(model, new)
    assert found["sets"] == [tuple(members) for members in theirs["clusters"].to_list()]
    assert found["distance"].astype(np.float32).tobytes() == theirs["distance"].to_numpy().astype(np.float32).tobytes()
    opened = compflow.load(run.folder, clusterer=name)
    assert opened.predict_sets(new) == found["sets"]
    assert opened.sets_ == model.sets_ and (opened.labels_ == model.labels_).all()
    assert [model.label_sets_[label] for label in model.predict(new)] == found["sets"]


def test_a_fit_depends_on_neither_threads_nor_order_of_fits(omniglot):
    X, _ = omniglot
    one = compflow.CKM(5, threads=1).fit(X)
    compflow.CGM(4).fit(X)
    two = compflow.CKM(5, threads=2).fit(X)
    assert one.objective_ == two.objective_ and one.sets_ == two.sets_
    assert one.singletons_.tobytes() == two.singletons_.tobytes()
    assert json.dumps(one.params_) == json.dumps(two.params_)


def test_parameters_are_those_of_the_schema():
    by_name = {component["name"]: component for component in compflow.components("clusterer")}
    for name in ESTIMATORS:
        model = compflow.clusterer(name)
        for theirs, described in by_name[name]["schema"]["properties"].items():
            own = {"k": "n_singletons"}.get(theirs, theirs)
            assert own in model.get_params(), (name, own)
            if own not in ("n_singletons", "degree"):
                default = described.get("default")
                assert getattr(model, own) == (None if isinstance(default, dict) else default)
                assert described["description"].split("\n")[0] in type(model).__doc__
