"""What `.ci/dask` runs: models and labels of any number of Dask workers, one of them killed, equal those of one process, in whatever order
shards are summed up."""

import os
import random
import signal
import subprocess
import sys
import tempfile
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

    def __init__(self, folder: Path, workers: int, **settings: str):
        self.environment = {**os.environ, **settings}
        folder = Path(tempfile.mkdtemp(dir=folder))
        self.log, address = folder / "scheduler.log", folder / "scheduler.json"
        self.processes = []
        with self.log.open("w") as log:
            command = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
            self.start([*command, "--scheduler-file", str(address)], log)
        try:
            end = time.monotonic() + 60
            while not address.exists():
                if self.processes[0].poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"the scheduler does not come up:\n{self.log.read_text()}")
                time.sleep(0.1)
            for at in range(workers):
                with (folder / f"worker-{at}.log").open("w") as log:
                    command = ["worker", "--scheduler-file", str(address), "--host", "127.0.0.1", "--nthreads", "1"]
                    self.start([*command, "--no-nanny", "--no-dashboard", "--local-directory", str(folder)], log)
            self.client = Client(scheduler_file=str(address), timeout=60)
            self.client.wait_for_workers(workers, timeout=60)
        except BaseException:
            self.end()
            raise

    def start(self, command: list[str], log) -> None:
        command = [sys.executable, "-m", "dask", *command]
        self.processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=self.environment))

    def kill_a_worker_that_has_a_task(self) -> set[str]:
        """The tasks that it had; none if it was not killed because they were done before it could be."""
        pids = self.client.run(os.getpid)
        end = time.monotonic() + 5
        while time.monotonic() < end:
            busy = [worker for worker, tasks in self.client.processing().items() if tasks]
            if not busy:
                return set()
            # One that is stopped finishes nothing, and what it sent before has been heard by then.
            os.kill(pids[busy[0]], signal.SIGSTOP)
            time.sleep(0.3)
            held = set(self.client.processing().get(busy[0], ()))
            if held:
                os.kill(pids[busy[0]], signal.SIGKILL)
                return held
            os.kill(pids[busy[0]], signal.SIGCONT)
        return set()

    def shuffled(self, function, items: list, draw: random.Random, ended: list[int]) -> list:
        """As `client.map`, but items are submitted and done in an order that is drawn; `ended` is told which one it was."""
        futures = {}
        for at in draw.sample(range(len(items)), len(items)):
            future = self.client.submit(function, items[at], pure=False, priority=draw.random())
            future.add_done_callback(lambda _, at=at: ended.append(at))
            futures[at] = future
        return [futures[at] for at in range(len(items))]

    def story(self, tasks: set[str]) -> dict[str, list[tuple[str, str]]]:
        """From which state to which the scheduler has taken tasks."""

        def told(dask_scheduler) -> list[tuple[str, str, str]]:
            return [(str(one[0]), one[1], one[2]) for one in dask_scheduler.transition_log]

        found = {task: [] for task in tasks}
        for task, before, after in self.client.run_on_scheduler(told):
            if task in found:
                found[task].append((before, after))
        return found

    def __enter__(self) -> "Cluster":
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


def found(model, files, out: Path, map) -> bytes:
    """Everything that was found, labels included."""
    labels = [path.read_bytes() for path in model.assign_shards(files, out, map=map, shards=8)]
    return b"".join([model._fit.model, *labels])


def deadly(shard: bytes) -> bytes:
    """Ends whoever sums up the shard."""
    os._exit(9)


def main(folder: Path) -> None:
    files = make(folder)
    for estimator in (compflow.CKM, compflow.CGM):
        made = lambda: estimator(4, restarts=5, normalize=None)
        start = time.perf_counter()
        model = made().fit_shards(files)
        alone = time.perf_counter() - start
        expected = found(model, files, folder / "alone", None)
        draw = random.Random(7)
        for workers in (1, 2, 3):
            passes, held, orders = 0, set(), []

            def mapped(function, items):
                nonlocal passes, held
                passes += 1
                orders.append([])
                futures = cluster.shuffled(function, items, draw, orders[-1])
                if workers == 3 and passes >= 3 and not held:
                    # While the pass is under way: what the worker has in hand is done by those that are left.
                    held = cluster.kill_a_worker_that_has_a_task()
                return futures

            with Cluster(folder, workers) as cluster:
                start = time.perf_counter()
                model = made().fit_shards(files, map=mapped, shards=8)
                seconds = time.perf_counter() - start
                equal = found(model, files, folder / f"on-{workers}", mapped) == expected
                story = cluster.story(held)
            log = cluster.log.read_text()
            print(f"{estimator.__name__}, {workers} workers: {passes} passes, {seconds:.1f} s ({alone:.1f} s without Dask)")
            assert equal, f"{workers} workers find something else"
            other = sum(order != sorted(order) for order in orders)
            print(f"in {other} of {len(orders)} passes shards ended in another order than theirs")
            assert other > len(orders) / 2, orders
            if workers == 3:
                assert "Remove worker" in log, "the scheduler did not notice that a worker was killed:\n" + log
                assert held, "no worker was killed while it had a task"
                for task, states in story.items():
                    begun = [after for _, after in states].count("processing")
                    assert begun >= 2 and ("processing", "memory") in states, f"{task} was not run again: {states}"
                print(f"{len(held)} tasks of the worker that was killed were run again by others")
    print("the models and labels are equal, byte by byte")

    # A shard that kills everybody is named; who is lost is replaced by nobody here, so the first death must do.
    with Cluster(folder, 2, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0") as cluster:

        def one_kills(function, items):
            submit = cluster.client.submit
            return [submit(deadly if at == 3 else function, item, pure=False) for at, item in enumerate(items)]

        try:
            compflow.CKM(4).fit_shards(files, map=one_kills, shards=8)
        except RuntimeError as error:
            print(error)
            assert "a shard cannot be summed up: " in str(error) and "KilledWorker" in str(error), error
            assert f"{files[3]}, rows " in str(error), error
        else:
            raise AssertionError("nobody noticed that a shard was not summed up")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
