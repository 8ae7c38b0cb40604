"""Clusterers of other people's libraries."""

import pickle
import shutil
import subprocess

import pytest

import compflow
from compflow import _folders

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The example in C, built on the spot."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("plugins")
    source = ROOT / "examples" / "c-clusterer" / "cmedoids.c"
    library = folder / "libcompflow_cmedoids.so"
    line = ["cc", "-O2", "-shared", "-fPIC", f"-I{ROOT / 'crates' / 'api' / 'include'}", str(source), "-o", str(library), "-lm"]
    subprocess.run(line, check=True)
    compflow.use_plugins(folder)
    yield folder
    _folders._asked.remove(folder)
    _folders.refresh()


def test_a_plugin_has_an_estimator_with_its_parameters(built, X, truth):
    model = compflow.clusterer("cmedoids", n_singletons=3)
    assert type(model).__name__ == "Cmedoids" and model.max_iter == 50
    model.fit(X)
    # k-medoids from one start: a plugin's answer, not a good one.
    assert compflow.metrics.cri(truth, model.sets_) > 0.7
    assert (model.predict(X) == model.labels_).all()
    assert (pickle.loads(pickle.dumps(model)).predict(X) == model.labels_).all()
    with pytest.raises(TypeError):
        compflow.clusterer("cmedoids", damping=3)


def test_folders_that_are_not_there_are_named():
    with pytest.raises(FileNotFoundError, match="there is no folder nowhere"):
        compflow.use_plugins("nowhere")


def test_a_library_that_is_refused_is_named(tmp_path):
    (tmp_path / "libcompflow_broken.so").write_bytes(b"no library")
    compflow.use_plugins(tmp_path)
    try:
        with pytest.raises(ValueError, match="libcompflow_broken.so cannot be loaded"):
            compflow.clusterer("broken")
    finally:
        _folders._asked.remove(tmp_path)
        _folders.refresh()
