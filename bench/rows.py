"""Rows that do not fit into memory: `target/python/env/bin/python bench/rows.py [MILLIONS] [FOLDER]`, after `.ci/python`.

Files of a million examples with 32 numbers each (132 MB), five singletons and their unions, removed afterwards. CKM with one restart clusters
them in shards with two processes, and in a run with `stream = true` and two threads; seconds of each pass, and the most memory.
"""

import multiprocessing
import resource
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet as parquet

import compflow

ROWS, DIM, K = 1_000_000, 32, 5


def make(at_and_file: tuple[int, Path]) -> None:
    at, file = at_and_file
    parts = np.random.default_rng(1).normal(0, 2, (K, DIM)).astype(np.float32)
    rng = np.random.default_rng((2, at))
    pairs = rng.integers(0, K, (ROWS, 2))
    X = np.maximum(parts[pairs[:, 0]], parts[pairs[:, 1]])
    X += rng.standard_normal((ROWS, DIM), dtype=np.float32)
    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(X.ravel()), DIM)
    parquet.write_table(pyarrow.table({"embedding": lists}), file, compression="none", use_dictionary=False)


def memory(who: int) -> int:
    return resource.getrusage(who).ru_maxrss // 1000


def in_shards(files: list[Path]) -> None:
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        passes, start = [], time.perf_counter()

        def timed(function, items):
            begun = time.perf_counter()
            found = list(pool.map(function, items))
            passes.append(time.perf_counter() - begun)
            return found

        compflow.CKM(K, restarts=1, normalize=None, random_state=0).fit_shards(files, map=timed)
        all_in_all = time.perf_counter() - start
        worker = max(pool.map(memory, [resource.RUSAGE_SELF] * 2))
    seconds = ", ".join(f"{one:.1f}" for one in passes)
    print(f"in shards, two processes: {all_in_all:.0f} s, {len(passes)} passes: {seconds} s")
    print(f"driver {memory(resource.RUSAGE_SELF)} MB, a worker {worker} MB", flush=True)


def streamed(files: list[Path], out: Path) -> None:
    pipeline = {
        "name": "rows",
        "composer": {"use": "max"},
        "data": [{"name": "data", "loader": "parquet", "path": str(files[0].parent / "part-*.parquet")}],
        "clusterer": [{"use": "ckm", "params": {"k": K, "restarts": 1, "stream": True}}],
    }
    start = time.perf_counter()
    runs = compflow.run(pipeline, out=out, threads=2, jobs=1).runs.to_dict()
    print(f"stream = true, two threads: {time.perf_counter() - start:.0f} s, {runs['seconds'][0]:.0f} s of them clustering")
    print(f"{memory(resource.RUSAGE_SELF)} MB, the labels of all examples among them")


def main(millions: int, folder: Path) -> None:
    files = [folder / f"part-{at:04}.parquet" for at in range(millions)]
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(make, enumerate(files)))
    in_shards(files)
    streamed(files, folder / "out")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as made:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 100, Path(made))
