"""Our clusterers beside their Python peers. Started by bench/peers, which installs the peers.

Every measurement runs in a process of its own: seconds are those of the clustering alone (ours as `runs.parquet` has
them), memory is by how much the process grew meanwhile. The median of several runs counts. Times on a busy machine are
worth little; ratios of two measurements next to one another are worth more.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

THREADS = str(os.cpu_count() or 1)
RUNS = 3
ROOT = Path(__file__).resolve().parent.parent
COMPFLOW = ROOT / "target/release/compflow"

# name: (rows, clusterer, its parameters, the peer's code, times faster, share of memory or bytes)
WORKS = {
    "AP, n = 3000, 100 iterations": (
        3000,
        "ap",
        {"max_iter": 100, "convergence_iter": 1000, "damping": 0.9},
        "AffinityPropagation(damping=0.9, max_iter=100, convergence_iter=1000, random_state=0).fit(x)",
        8.0,
        1 / 3,
    ),
    "Ward, n = 15,000": (
        15_000,
        "ac",
        {"k": 17},
        "AgglomerativeClustering(n_clusters=17).fit(x)",
        4.0,
        100e6,
    ),
    "FCM, k = 18, n = 15,000, 50 iterations": (
        15_000,
        "fcm",
        {"k": 18, "m": 2.0, "error": 0.0, "max_iter": 50},
        "skfuzzy.cmeans(x.T.astype(float), 18, 2.0, error=0.0, maxiter=50, seed=0)",
        5.0,
        None,
    ),
    "GMM full, k = 18, n = 15,000, 50 iterations": (
        15_000,
        "gmm",
        {"k": 18, "tol": 0.0, "max_iter": 50, "init": "random"},
        "GaussianMixture(18, tol=0.0, max_iter=50, init_params='random', random_state=0).fit(x)",
        4.0,
        None,
    ),
    "Bayesian GMM, k = 18, n = 15,000, 50 iterations": (
        15_000,
        "gmm",
        {"k": 18, "tol": 0.0, "max_iter": 50, "init": "random", "variant": "bayes"},
        "BayesianGaussianMixture(n_components=18, tol=0.0, max_iter=50, init_params='random', random_state=0).fit(x)",
        4.0,
        None,
    ),
    "k-means, k = 15, n = 1,000,000, 20 iterations": (
        1_000_000,
        "kmeans",
        {"k": 15, "restarts": 1, "max_iter": 20, "tol": 0.0, "init": "random"},
        "KMeans(15, n_init=1, max_iter=20, tol=0.0, init='random', random_state=0).fit(x)",
        1.5,
        None,
    ),
}

PEER = """
import json, resource, time, warnings, sys
import numpy, pyarrow.parquet, sklearn, skfuzzy
from sklearn.cluster import AffinityPropagation, AgglomerativeClustering, KMeans
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
warnings.simplefilter("ignore")
column = pyarrow.parquet.read_table(sys.argv[1])["embedding"].combine_chunks()
x = column.flatten().to_numpy().reshape(-1, 32)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.perf_counter()
eval(sys.argv[2])
seconds = time.perf_counter() - started
print(json.dumps([seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024]))
"""


def make(folder, rows):
    """Overlapping Gaussian blobs, so that no method converges before its iterations are used up."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(folder, f"{rows}.parquet")
    if not path.exists():
        rng = np.random.default_rng(rows)
        centres = rng.standard_normal((30, 32))
        x = (centres[rng.integers(0, 30, rows)] + rng.standard_normal((rows, 32))).astype(np.float32)
        column = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), 32)
        pq.write_table(pa.table({"embedding": column}), path)
    return path


def ours(folder, data, clusterer, params):
    import pyarrow.parquet as pq

    toml = ", ".join(f"{key} = {json.dumps(value)}" for key, value in params.items())
    Path(folder, "p.toml").write_text(
        f'name = "p"\n[[data]]\nname = "d"\nloader = "parquet"\npath = "{data.name}"\n'
        f'[[clusterer]]\nuse = "{clusterer}"\nparams = {{ {toml} }}\n'
    )
    command = [COMPFLOW, "run", "p.toml", "--out", "out", "--fresh", "--quiet", "--jobs", "1", "--threads", THREADS]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    row = pq.read_table(Path(folder, "out/runs.parquet")).to_pylist()[0]
    return row["seconds"], row["peak_bytes"]


def theirs(data, code):
    environment = dict(os.environ, **{f"{name}_NUM_THREADS": THREADS for name in ("OMP", "OPENBLAS", "MKL")})
    done = subprocess.run([sys.executable, "-c", PEER, str(data), code], env=environment, check=True, capture_output=True)
    return tuple(json.loads(done.stdout))


def median(values):
    return sorted(values)[len(values) // 2]


def main(wanted):
    print(f"{THREADS} threads each, median of {RUNS} runs\n")
    print("| work | ours | peer | times faster | promised | ours | peer | memory |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, (rows, clusterer, params, code, faster, memory) in WORKS.items():
            if wanted and not any(word in name for word in wanted):
                continue
            data = make(folder, rows)
            pairs = [(ours(folder, data, clusterer, params), theirs(data, code)) for _ in range(RUNS)]
            seconds = [median([pair[side][0] for pair in pairs]) for side in (0, 1)]
            peak = [median([pair[side][1] for pair in pairs]) for side in (0, 1)]
            ratio = seconds[1] / seconds[0]
            if memory is None:
                verdict = "–"
            elif memory < 1:
                verdict = f"{peak[0] / peak[1]:.2f} of theirs, promised {memory:.2f}"
            else:
                verdict = f"promised under {memory / 1e6:.0f} MB"
            print(
                f"| {name} | {seconds[0]:.3f} s | {seconds[1]:.3f} s | {ratio:.1f} | {faster:.1f} "
                f"| {peak[0] / 1e6:.0f} MB | {peak[1] / 1e6:.0f} MB | {verdict} |",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
