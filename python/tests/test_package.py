"""The package itself: what it costs to import, what its documentation says, what it brings."""

import doctest
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import compflow

MODULES = ["_components", "_composers", "_learning", "_results", "_selection", "metrics"]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_documentation_run(name):
    module = importlib.import_module(f"compflow.{name}")
    done = doctest.testmod(module)
    assert (done.failed, done.attempted > 0) == (0, True)


def test_the_example_of_the_package_runs():
    assert doctest.testmod(compflow).failed == 0


def test_the_examples_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).resolve().parents[2] / "docs" / "python.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    here = [block for block in blocks if "distributed" not in block]
    assert len(here) >= 3
    for block in here:
        exec(block, {})


def test_everything_that_is_offered_is_there():
    for name in compflow.__all__:
        assert getattr(compflow, name) is not None
        assert name in dir(compflow)
    with pytest.raises(AttributeError):
        compflow.nothing
    assert compflow.__version__ == "0.2.0"


def test_estimators_say_what_they_do():
    text = inspect.getdoc(compflow.CKM)
    assert text.startswith("Compositional k-means") and "n_singletons" in text and "labels_" in text
    assert list(inspect.signature(compflow.CKM).parameters)[0] == "n_singletons"
    assert "seeds" in inspect.signature(compflow.CKM.fit).parameters
    assert "seeds" not in inspect.signature(compflow.KMeans.fit).parameters


def test_importing_is_quick():
    code = "import time; start = time.perf_counter(); import compflow; print(time.perf_counter() - start)"
    seconds = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(3)]
    assert min(seconds) < 0.15


def test_nothing_is_imported_that_is_not_needed():
    code = "import sys, compflow; compflow.CKM(3); print([name for name in ('sklearn', 'scipy', 'pandas', 'pyarrow') if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


def test_the_command_is_there(command):
    assert command("--version").stdout.startswith("compflow 0.2.0")
    names = command("plugins").stdout
    assert all(name in names for name in ("ckm", "cgm", "cap", "parquet", "cri"))
    line = [sys.executable, "-m", "compflow", "--version"]
    assert subprocess.check_output(line, text=True).startswith("compflow 0.2.0")


def test_the_stubs_know_every_parameter():
    """A type checker sees what there is: `python -m compflow._stubs` writes the file."""
    from compflow import _stubs

    assert _stubs.current() == _stubs.text(), "python -m compflow._stubs writes it anew"
