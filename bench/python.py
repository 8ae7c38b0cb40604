"""What the Python package costs, and what it is worth: `target/python/env/bin/python bench/python.py`, after `.ci/python`.

The peer is compositional k-means as one would write it in NumPy: from examples drawn at random, by turns every example takes the
nearest of the singletons and their pairwise maxima, and Adam moves the singletons. Times on a busy machine are worth little.
"""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl

from compflow import CKM

ROOT = Path(__file__).resolve().parent.parent
RESTARTS, STEPS, LR, K = 100, 100, 0.2, 5


def digits() -> np.ndarray:
    """1500 images of digits, some over one another."""
    images = pl.read_parquet(ROOT / "data/digits/d2_n750_test.parquet").filter(pl.col("trial") < 2)
    return np.ascontiguousarray(images["embedding"].to_numpy(), dtype=np.float32)


def peer(X: np.ndarray) -> float:
    """The lowest sum of squared distances that is found."""
    rng = np.random.default_rng(0)
    left, right = np.triu_indices(K, 1)
    norms = (X**2).sum(axis=1)

    def assign(m):
        centres = np.vstack([m, np.maximum(m[left], m[right])])
        squared = norms[:, None] - 2 * X @ centres.T + (centres**2).sum(axis=1)
        return centres, squared.argmin(axis=1), squared

    lowest = np.inf
    for _ in range(RESTARTS):
        m = X[rng.choice(len(X), K, replace=False)].copy()
        first, second = np.zeros_like(m), np.zeros_like(m)
        for step in range(1, STEPS + 1):
            centres, nearest, _ = assign(m)
            counts = np.bincount(nearest, minlength=len(centres))
            sums = (nearest == np.arange(len(centres))[:, None]).astype(np.float32) @ X
            grad = 2 * (counts[:, None] * centres - sums)
            moved, pairs = grad[:K].copy(), grad[K:]
            larger = m[left] >= m[right]
            np.add.at(moved, left, pairs * larger)
            np.add.at(moved, right, pairs * ~larger)
            moved /= len(X)
            first, second = 0.9 * first + 0.1 * moved, 0.999 * second + 0.001 * moved**2
            m = m - LR * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        lowest = min(lowest, float(assign(m)[2].min(axis=1).astype(np.float64).sum()))
    return lowest


def timed(work) -> tuple[float, object]:
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def main() -> None:
    code = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"
    for statement in ("import compflow", "from compflow import CKM", "import numpy"):
        seconds = [float(subprocess.check_output([sys.executable, "-c", code.format(statement)])) for _ in range(5)]
        print(f"{statement}: {1000 * min(seconds):.0f} ms")

    small = np.random.default_rng(0).random((150, 32), dtype=np.float32)
    # What is around a fit is the same however long it takes; short ones are many, and seldom interrupted by others.
    model = CKM(5, restarts=1)
    overheads = sorted(timed(lambda: model.fit(small))[0] - model.seconds_ for _ in range(1000))
    least, median = 1000 * overheads[0], 1000 * overheads[500]
    print(f"CKM(5).fit at n = 150: {least:.2f} ms around the clusterer at least, {median:.2f} ms in the middle")

    X = digits()
    ours = CKM(K, normalize=None)
    seconds = min(timed(lambda: ours.fit_predict(X))[0] for _ in range(3))
    theirs, lowest = timed(lambda: peer(X))
    print(f"fit_predict, digits, n = {len(X)}: {seconds:.2f} s, NumPy {theirs:.2f} s, {theirs / seconds:.0f} times")
    print(f"sum of squared distances: {ours.objective_:.6g}, NumPy {lowest:.6g}")


if __name__ == "__main__":
    main()
