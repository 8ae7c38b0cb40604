"""What `.ci/dask` runs: models and labels of any number of Dask workers, one of them killed, equal those of one process."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet as parquet
from distributed import Client

import compflow

ROWS, DIM, FILES = 2_000_000, 16, 8


def make(folder: Path) -> list[Path]:
    """Four singletons and their unions."""
    rng = np.random.default_rng(1)
    parts = rng.normal(0, 2, (4, DIM)).astype(np.float32)
    files = []
    for at in range(FILES):
        pairs = rng.integers(0, 4, (ROWS // FILES, 2))
        X = np.maximum(parts[pairs[:, 0]], parts[pairs[:, 1]]) + rng.normal(0, 0.4, (ROWS // FILES, DIM))
        lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(X.astype(np.float32).ravel()), DIM)
        files.append(folder / f"part-{at}.parquet")
        parquet.write_table(pyarrow.table({"embedding": lists}), files[-1])
    return files


class Cluster:
    """A scheduler and workers with one thread each, as processes."""

    def __init__(self, folder: Path, workers: int):
        folder = Path(tempfile.mkdtemp(dir=folder))
        self.log, address = folder / "scheduler.log", folder / "scheduler.json"
        self.processes = []
        with self.log.open("w") as log:
            command = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
            self.start([*command, "--scheduler-file", str(address)], log)
        while not address.exists():
            time.sleep(0.1)
        for at in range(workers):
            with (folder / f"worker-{at}.log").open("w") as log:
                command = ["worker", "--scheduler-file", str(address), "--host", "127.0.0.1", "--nthreads", "1"]
                self.start([*command, "--no-nanny", "--no-dashboard", "--local-directory", str(folder)], log)
        self.client = Client(scheduler_file=str(address))
        self.client.wait_for_workers(workers, timeout=60)

    def start(self, command: list[str], log) -> None:
        self.processes.append(subprocess.Popen([sys.executable, "-m", "dask", *command], stdout=log, stderr=log))

    def kill_a_worker(self) -> None:
        os.kill(self.processes[-1].pid, signal.SIGKILL)

    def close(self) -> str:
        self.client.close()
        for process in self.processes:
            process.kill()
            process.wait()
        return self.log.read_text()


def found(model, files, out: Path, map) -> bytes:
    """Everything that was found, labels included."""
    labels = [path.read_bytes() for path in model.assign_shards(files, out, map=map, shards=8)]
    return b"".join([model.singletons_.tobytes(), np.float64(model.objective_).tobytes(), *labels])


def main(folder: Path) -> None:
    files = make(folder)
    for estimator in (compflow.CKM, compflow.CGM):
        made = lambda: estimator(4, restarts=5, normalize=None)
        start = time.perf_counter()
        model = made().fit_shards(files)
        alone = time.perf_counter() - start
        expected = found(model, files, folder / "alone", None)
        for workers in (1, 2, 3):
            cluster = Cluster(folder, workers)
            passes = 0

            def mapped(function, items):
                nonlocal passes
                passes += 1
                futures = cluster.client.map(function, items, pure=False)
                if workers == 3 and passes == 3:
                    # While the pass is under way: its tasks are done by those that are left.
                    threading.Timer(0.05, cluster.kill_a_worker).start()
                return futures

            start = time.perf_counter()
            model = made().fit_shards(files, map=mapped, shards=8)
            seconds = time.perf_counter() - start
            equal = found(model, files, folder / f"on-{workers}", mapped) == expected
            log = cluster.close()
            print(f"{estimator.__name__}, {workers} workers: {passes} passes, {seconds:.1f} s ({alone:.1f} s without Dask)")
            assert equal, f"{workers} workers find something else"
            if workers == 3:
                assert "Remove worker" in log, "the scheduler did not notice that a worker was killed:\n" + log
    print("the models and labels are equal, byte by byte")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
