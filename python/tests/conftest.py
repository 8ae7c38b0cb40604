"""Examples that all tests use: singletons and unions of them."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def X():
    """120 examples of three singletons and their unions in eight dimensions."""
    rng = np.random.default_rng(0)
    parts = np.eye(3, 8, dtype=np.float32)
    centres = np.vstack([parts, np.maximum(parts[[0, 0, 1]], parts[[1, 2, 2]])])
    return (np.repeat(centres, 20, axis=0) + rng.normal(0, 0.05, (120, 8))).astype(np.float32)


@pytest.fixture(scope="session")
def truth():
    """The true sets of `X`."""
    return [members for members in [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)] for _ in range(20)]


@pytest.fixture(scope="session")
def omniglot():
    """Trial 0 of the OmniGlot examples: embeddings and true sets."""
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(ROOT / "data" / "omniglot" / "d2_n150_test.parquet", filters=[("trial", "=", 0)])
    embeddings = np.asarray(table["embedding"].to_pylist(), np.float32)
    return embeddings, [tuple(labels) for labels in table["labels"].to_pylist()]


@pytest.fixture(scope="session")
def command():
    """Runs the command that the package brings."""
    from compflow import _folders

    environment = {**os.environ, "COMPFLOW_PLUGIN_PATH": os.pathsep.join(map(str, _folders.search_path()))}

    def call(*arguments, cwd=None):
        line = [_folders.executable(), *map(str, arguments)]
        return subprocess.run(line, cwd=cwd, env=environment, capture_output=True, text=True, check=True)

    return call
