"""What Dask costs: `target/python/env/bin/python bench/shards.py`, after `.ci/python` and `.ci/dask`.

Eight files of 250,000 examples with 32 numbers each. A run with `stream = true` and two threads in one process, against the same by shards
on Dask: one worker with two threads, and two with one. Of several rounds, one after the other, the least seconds of each, and the
processor seconds of whoever computes.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow
import pyarrow.parquet as parquet
from distributed import Client

import compflow

FILES, ROWS, DIM, K = 8, 250_000, 32, 5
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3


def make(folder: Path) -> list[Path]:
    """Five singletons and their unions."""
    rng = np.random.default_rng(1)
    parts = rng.normal(0, 2, (K, DIM)).astype(np.float32)
    files = []
    for at in range(FILES):
        pairs = rng.integers(0, K, (ROWS, 2))
        X = np.maximum(parts[pairs[:, 0]], parts[pairs[:, 1]]) + rng.normal(0, 1.0, (ROWS, DIM))
        lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(X.astype(np.float32).ravel()), DIM)
        files.append(folder / f"part-{at}.parquet")
        parquet.write_table(pyarrow.table({"embedding": lists}), files[-1], compression="none")
    return files


class Workers:
    """A scheduler and so many workers with so many threads each."""

    def __init__(self, folder: Path, workers: int, threads: int):
        folder = Path(tempfile.mkdtemp(dir=folder))
        address = folder / "scheduler.json"
        self.processes = [self.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", address)]
        try:
            end = time.monotonic() + 60
            while not address.exists():
                if self.processes[0].poll() is not None or time.monotonic() > end:
                    raise RuntimeError("the scheduler does not come up")
                time.sleep(0.1)
            for _ in range(workers):
                options = ["--host", "127.0.0.1", "--nthreads", threads, "--no-nanny", "--no-dashboard", "--local-directory", folder]
                self.processes.append(self.start("worker", "--scheduler-file", address, *options))
            self.client = Client(scheduler_file=str(address), timeout=60)
            self.client.wait_for_workers(workers, timeout=60)
        except BaseException:
            self.end()
            raise

    def start(self, *command) -> psutil.Popen:
        command = [sys.executable, "-m", "dask", *map(str, command)]
        return psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def processor(self) -> float:
        return sum(sum(process.cpu_times()[:2]) for process in self.processes)

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_) -> None:
        """Nobody stays behind, whatever went wrong."""
        try:
            self.client.close()
        finally:
            self.end()

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


def streamed(estimator, files: list[Path], folder: Path) -> tuple[float, float, object]:
    """Of a run in one process: what the clusterer took, what the process took in all, and what it found."""
    params = {"k": K, "restarts": 10, "stream": True}
    pipeline = {
        "name": "one",
        "composer": {"use": "max"},
        "data": [{"name": "data", "loader": "parquet", "path": str(files[0].parent / "part-*.parquet")}],
        "clusterer": [{"use": estimator._component, "params": params}],
    }
    before = sum(psutil.Process().cpu_times()[:2])
    results = compflow.run(pipeline, out=Path(tempfile.mkdtemp(dir=folder)) / "out", threads=2, jobs=1)
    runs = results.runs.to_dict()
    return runs["seconds"][0], sum(psutil.Process().cpu_times()[:2]) - before, runs["objective"][0]


def sharded(estimator, files: list[Path], cluster: Workers) -> tuple[float, float, object]:
    before, start = cluster.processor(), time.perf_counter()
    model = estimator(K, restarts=10, normalize=None, random_state=0)
    model.fit_shards(files, map=lambda function, items: cluster.client.map(function, items, pure=False), shards=FILES)
    return time.perf_counter() - start, cluster.processor() - before, model.objective_


def main(folder: Path) -> None:
    files = make(folder)
    with Workers(folder, 1, 2) as one, Workers(folder, 2, 1) as two:
        clusters = {"one worker, two threads": one, "two workers, one thread": two}
        for estimator in (compflow.CKM, compflow.CGM):
            ways = {"stream = true, two threads": lambda: streamed(estimator, files, folder)}
            for name, cluster in clusters.items():
                ways[name] = lambda cluster=cluster: sharded(estimator, files, cluster)
            times = {name: [way() for _ in range(1)] for name, way in ways.items()}
            for _ in range(ROUNDS - 1):
                for name, way in ways.items():
                    times[name].append(way())
            for name, found in times.items():
                seconds, processor, objectives = zip(*found)
                print(f"{estimator.__name__}, {name}: {min(seconds):.2f} s, {min(processor):.2f} processor seconds")
                assert len(set(objectives)) == 1
            assert len({found[0][2] for found in times.values()}) == 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        main(Path(made))
