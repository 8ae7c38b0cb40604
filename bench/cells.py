"""What a cell costs around its clusterer: `target/python/env/bin/python bench/cells.py [ROUNDS]`, after `cargo build --release --workspace` and
`.ci/python`.

10,000 cells of 150 examples with 32 numbers each: 100 points of a grid, 100 trials. One part computes all of them, `status` looks, and the
run without `--part` writes the tables. Of several rounds the least seconds; the most memory of each process. `chrt -f 50` before it runs it ahead of
other work.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMPFLOW = Path(__file__).parent.parent / "target/release/compflow"
POINTS, TRIALS = 100, 100
PIPELINE = f"""
name = "cells"
seed = 1

[[data]]
name = "made"
loader = "synthetic"
params = {{ n = 150, dim = 32, k = 5, noise = 0.3, trials = {TRIALS} }}

[[clusterer]]
use = "kmeans"
params = {{ k = 5, max_iter = {{ grid = {list(range(101, 101 + POINTS))} }} }}

[[evaluator]]
use = "ari"
"""


def measured(folder: Path, *command: str) -> tuple[float, float, float]:
    """Seconds, processor seconds and megabytes of a command."""
    start = time.perf_counter()
    process = subprocess.Popen([COMPFLOW, *command], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = process.stderr.read().decode()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, said
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000


def main(folder: Path) -> dict[str, tuple[float, float, float]]:
    (folder / "cells.toml").write_text(PIPELINE)
    found = {
        "one part with all cells": measured(folder, "run", "cells.toml", "--out", "out", "--part", "1/1", "--quiet"),
        "status": measured(folder, "status", "cells.toml", "--out", "out"),
        "the run that writes the tables": measured(folder, "run", "cells.toml", "--out", "out", "--quiet"),
        "status with the tables": measured(folder, "status", "cells.toml", "--out", "out"),
    }
    kept = [entry.stat().st_size for entry in (folder / "out/cells").iterdir()]
    assert len(kept) == POINTS * TRIALS, len(kept)
    print(f"the folder: {sum(kept) / 1e6:.0f} MB in {len(kept)} cells")
    return found


def own_seconds(folder: Path) -> float:
    """What the clusterers took, on average."""
    # Not before: a process that is started reports at least the memory of the one that started it.
    import pyarrow.parquet as parquet

    seconds = parquet.read_table(folder / "out/runs.parquet", columns=["seconds"])["seconds"]
    return sum(seconds.to_pylist()) / len(seconds)


if __name__ == "__main__":
    rounds, own = [], []
    with tempfile.TemporaryDirectory() as made:
        folders = [Path(made) / str(at) for at in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3)]
        for folder in folders:
            folder.mkdir()
            rounds.append(main(folder))
        own = min(map(own_seconds, folders))
    for what in rounds[0]:
        seconds, processor, _ = (min(numbers) for numbers in zip(*(found[what] for found in rounds)))
        memory = max(found[what][2] for found in rounds)
        print(f"{what}: {seconds:.2f} s, {processor:.2f} processor seconds, {memory:.0f} MB")
    processor = min(found["one part with all cells"][1] for found in rounds) / (POINTS * TRIALS)
    print(f"a cell: {1000 * processor:.2f} ms of processor time, {1000 * own:.2f} ms of them the clusterer's own")
