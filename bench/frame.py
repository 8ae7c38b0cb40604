"""The frame's own costs, measured side by side with Polars in one run. Started by bench/frame."""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

THREADS = os.cpu_count() or 1
os.environ["POLARS_MAX_THREADS"] = str(THREADS)

import numpy as np
import polars as pl

ROOT = Path(__file__).resolve().parent.parent
COMPFLOW = ROOT / "target/release/compflow"
RUNS = 7


def median(values):
    return sorted(values)[len(values) // 2]


def compflow(*args, folder, check=True):
    environment = dict(os.environ, COMPFLOW_LOG="info")
    return subprocess.run([COMPFLOW, *args], cwd=folder, env=environment, capture_output=True, text=True, check=check)


def seconds(call):
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def report(what, measured, promised, unit):
    verdict = "ok" if measured < promised else "MISSED"
    print(f"{what:58} {measured:10.3f} {unit:3} promised under {promised:6.2f} {unit:3} ratio {measured / promised:5.2f}  {verdict}")


def start_up(folder):
    times = [seconds(lambda: compflow("inspect", "kmeans", folder=folder)) for _ in range(RUNS)]
    report("start-up: compflow inspect kmeans, all libraries", median(times) * 1e3, 50, "ms")


def cell_overhead(folder):
    """A run with 400 empty cells against one with 40: what a cell costs is the difference by 360."""
    plugins = Path(folder) / "plugins"
    plugins.mkdir()
    shutil.copy(ROOT / "target/release/libfaulty.so", plugins / "libcompflow_faulty.so")

    def once(trials):
        Path(folder, "empty.toml").write_text(f"""
            [[data]]
            name = "made"
            loader = "synthetic"
            params = {{ n = 150, dim = 32, k = 5, trials = {trials} }}
            [[clusterer]]
            use = "faulty"
            [[evaluator]]
            use = "cri"
            [[evaluator]]
            use = "ari"
            """)
        shutil.rmtree(Path(folder, "results"), ignore_errors=True)
        args = ("--plugins", "plugins", "run", "empty.toml", "--jobs", "1", "--quiet")
        return seconds(lambda: compflow(*args, folder=folder))

    # The synthetic data itself takes time; a run that finds its cells kept pays for it as well.
    def kept():
        args = ("--plugins", "plugins", "run", "empty.toml", "--jobs", "1", "--quiet")
        return seconds(lambda: compflow(*args, folder=folder))

    costs = []
    for _ in range(3):
        fresh = once(400)
        costs.append((fresh - kept()) / 400)
    report("overhead: a cell with an empty clusterer, n = 150", median(costs) * 1e3, 0.4, "ms")


def cached_rerun(folder):
    """The paper's first experiment once more, when all its cells are kept."""
    args = ("run", str(ROOT / "pipelines/omniglot.toml"), "--out", "omniglot", "--quiet")
    compflow(*args, folder=folder)
    times = [seconds(lambda: compflow(*args, folder=folder)) for _ in range(RUNS)]
    report("rerun: omniglot.toml with all cells kept", median(times), 0.25, "s")


def scoring(folder):
    """CRI and ARI through `compflow eval`, less what reading the two files takes (an evaluator on one row)."""
    rng = np.random.default_rng(0)
    n = 1_000_000
    pairs = [[i] for i in range(5)] + [[i, j] for i in range(5) for j in range(i + 1, 5)]
    truth = rng.integers(0, 15, n)
    close = np.where(rng.random(n) < 0.8, truth, rng.integers(0, 15, n))
    many = [sorted(rng.choice(400, 2, replace=False).tolist()) for _ in range(50_000)]

    def write(name, sets, which):
        column = pl.Series("sets", sets, dtype=pl.List(pl.UInt32)).gather(which)
        pl.DataFrame({"sets": column}).write_parquet(Path(folder, name))

    write("truth.parquet", pairs, truth)
    write("few.parquet", pairs, close)
    write("many.parquet", many, rng.integers(0, len(many), n))
    for name, promised in [("few", 0.3), ("many", 3.0)]:
        files = (f"{name}.parquet:sets", "truth.parquet:sets")
        both = [seconds(lambda: compflow("eval", *files, "--evaluator", "cri", "--evaluator", "ari", folder=folder)) for _ in range(3)]
        # The same evaluators once more: the second pair costs their time and no reading.
        twice = [
            seconds(lambda: compflow("eval", *files, *["--evaluator", "cri", "--evaluator", "ari"] * 2, folder=folder))
            for _ in range(3)
        ]
        report(f"scoring: CRI + ARI, n = 1,000,000, {name} predicted sets", median(twice) - median(both), promised, "s")


def loading(folder):
    rows, dim = 1_000_000, 32
    matrix = np.random.default_rng(0).standard_normal((rows, dim), dtype=np.float32)
    frame = pl.DataFrame({"embedding": pl.Series(matrix, dtype=pl.Array(pl.Float32, dim))})
    frame.write_parquet(Path(folder, "large.parquet"))
    Path(folder, "large.toml").write_text("""
        [[data]]
        name = "large"
        loader = "parquet"
        path = "large.parquet"
        [[clusterer]]
        use = "kmeans"
        params = { k = 2 }
        """)
    del frame, matrix
    ours, theirs = [], []
    for _ in range(RUNS):
        theirs.append(seconds(lambda: pl.read_parquet(Path(folder, "large.parquet"))))
        log = compflow("check", "large.toml", folder=folder).stderr
        ours.append(float(re.search(r"large: loaded .* in ([0-9.]+) s", log).group(1)))
    print(f"{'loading 1,000,000 × 32 f32, from open to checked: compflow / Polars':58} {median(ours):10.3f} s / {median(theirs):.3f} s")
    report("loading: compflow as a multiple of Polars", median(ours) / median(theirs), 1.5, "×")
    peak = peak_bytes(folder)
    report("loading: peak memory as a multiple of the matrix", peak / (rows * dim * 4), 2.5, "×")


def peak_bytes(folder):
    script = (
        "import resource, subprocess, sys;"
        "subprocess.run(sys.argv[1:], check=True, capture_output=True);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    out = subprocess.run(
        [sys.executable, "-c", script, str(COMPFLOW), "check", "large.toml"], cwd=folder, capture_output=True, text=True, check=True
    )
    return int(out.stdout) * 1024


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        start_up(folder)
        cell_overhead(folder)
        cached_rerun(folder)
        scoring(folder)
        loading(folder)
