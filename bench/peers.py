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
    # The paper's listing is so slow that its time is that of 2 iterations, times 30.
    "CAP, degree 2, n = 150, 60 iterations": (
        150,
        "cap",
        {"preference": -300.0, "max_iter": 60, "convergence_iter": 1000},
        "cap(x, preference=-300.0, damping=0.65, max_iter=2)",
        1000.0,
        None,
    ),
}
REPEATED = {"CAP, degree 2, n = 150, 60 iterations": 30}
HEADS = {"cap": 'degree = 2\n[composer]\nuse = "sum"\n'}

PEER = r'''
import json, resource, time, warnings, sys
import numpy, pyarrow.parquet, sklearn, skfuzzy
from sklearn.cluster import AffinityPropagation, AgglomerativeClustering, KMeans
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
warnings.simplefilter("ignore")

def cap(x, preference, damping, max_iter):
    """Algorithms 1 and 2 of the paper as they are printed, over all sets of one or two, composed by their sum."""
    n, infinity = len(x), numpy.inf
    x = x.astype(float)
    sets = [(k,) for k in range(n)] + [(j, k) for j in range(n) for k in range(j + 1, n)]
    composed = numpy.array([x[list(c)].sum(axis=0) for c in sets])
    S = -((x[:, None, :] - composed[None, :, :]) ** 2).sum(axis=2)
    phi = [numpy.array([at for at, c in enumerate(sets) if k in c]) for k in range(n)]
    for i in range(n):
        S[i, phi[i]] = -infinity
        S[i, i] = preference
    member = numpy.zeros((len(sets), n), dtype=bool)
    for at, c in enumerate(sets):
        member[at, list(c)] = True
    groups, start = [numpy.arange(n)], n
    for j in range(n - 1):
        groups.append(numpy.arange(start, start + n - 1 - j))
        start += n - 1 - j
    a, abar, q = numpy.zeros((n, n)), numpy.zeros((n, n)), numpy.zeros((n, len(sets)))
    for _ in range(max_iter):
        b, bbar = numpy.empty((n, n)), numpy.empty((n, n))
        for i in range(n):  # ComputeRhoStats
            v = S[i] + q[i]
            r = numpy.array([v[phi[k]].max() for k in range(n)])
            s = numpy.full(n, -infinity)
            for psi in groups:  # FindAllMaxes
                first = psi[v[psi].argmax()]
                rest = psi[psi != first]
                outside = ~member[first]
                s[outside] = numpy.maximum(s[outside], v[first])
                if len(rest):
                    second = rest[v[rest].argmax()]
                    only = member[first] & ~member[second]
                    s[only] = numpy.maximum(s[only], v[second])
            bbar[i] = s - abar[i]
            b[i] = numpy.maximum(r - a[i], bbar[i])
        own = numpy.arange(n)
        h = S[own, own] + q[own, own] - a[own, own]
        e, ebar = b.sum(axis=0) - b[own, own], bbar.sum(axis=0) - bbar[own, own]  # ComputeAlphaStats
        anew = h + e - b
        abarnew = numpy.maximum(bbar[own, own] + ebar - bbar, anew)
        anew[own, own], abarnew[own, own] = e, ebar
        a, abar = damping * a + (1 - damping) * anew, damping * abar + (1 - damping) * abarnew
        for i in range(n):
            difference = a[i] - abar[i]
            q[i] = abar[i].sum() + numpy.array([difference[list(c)].sum() for c in sets])
    return [sets[at] for at in (S + q).argmax(axis=1)]

column = pyarrow.parquet.read_table(sys.argv[1])["embedding"].combine_chunks()
x = column.flatten().to_numpy().reshape(-1, 32)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.perf_counter()
eval(sys.argv[2])
seconds = time.perf_counter() - started
print(json.dumps([seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024]))
'''


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


def ours(folder, data, clusterer, params, more=""):
    import pyarrow.parquet as pq

    toml = ", ".join(f"{key} = {json.dumps(value)}" for key, value in params.items())
    Path(folder, "p.toml").write_text(
        f'name = "p"\n{more}[[data]]\nname = "d"\nloader = "parquet"\npath = "{data.name}"\n'
        f'[[clusterer]]\nuse = "{clusterer}"\nparams = {{ {toml} }}\n'
    )
    command = [COMPFLOW, "run", "p.toml", "--out", "out", "--fresh", "--quiet", "--jobs", "1", "--threads", THREADS]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    row = pq.read_table(Path(folder, "out/runs.parquet")).to_pylist()[0]
    return row["seconds"], row["peak_bytes"], row["objective"]


def theirs(data, code):
    environment = dict(os.environ, **{f"{name}_NUM_THREADS": THREADS for name in ("OMP", "OPENBLAS", "MKL")})
    done = subprocess.run([sys.executable, "-c", PEER, str(data), code], env=environment, check=True, capture_output=True)
    return tuple(json.loads(done.stdout))


def make_composed(folder, seed):
    """15,000 noisy compositions of up to two of five characters by OmniGlot's g, shaped as OmniGlot's are."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(ROOT / "data/omniglot/d2_n1500_test.parquet", filters=[("trial", "==", seed)])
    path = Path(folder, f"composed{seed}.parquet")
    x = table["embedding"].combine_chunks().flatten().to_numpy().reshape(table.num_rows, -1)
    groups = {}
    for row, labels in enumerate(table["labels"].to_pylist()):
        groups.setdefault(tuple(labels), []).append(row)
    rng = np.random.default_rng(seed)
    drawn = []
    for rows in groups.values():
        # Each group's own mean and covariance, so that it overlaps with others as it does in the data.
        drawn.append(rng.multivariate_normal(x[rows].mean(0), np.cov(x[rows].T), 15_000 // len(groups)))
    x = rng.permutation(np.concatenate(drawn)).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), x.shape[1])
    pq.write_table(pa.table({"embedding": column}), path)
    return path


def ckm(folder):
    """Compositional k-means beside the authors' procedure, on three data sets."""
    weights = ROOT / "data/omniglot/g.safetensors"
    more = (
        'degree = 2\nspace = { normalize = "l2" }\n'
        f'[composer]\nuse = "bilinear"\nparams = {{ weights = {json.dumps(str(weights))} }}\n'
    )
    script, mine, peer = ROOT / "bench/ckm.py", [], []
    for seed in range(RUNS):
        data = make_composed(folder, seed)
        mine.append(ours(folder, data, "ckm", {"k": 5, "restarts": 100}, more))
        command = [sys.executable, script, data, weights, "5", THREADS]
        peer.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    seconds = median([run[0] for run in mine]), median([run[0] for run in peer])
    ssd = sum(run[2] for run in mine) / RUNS, sum(run[1] for run in peer) / RUNS
    print(
        f"| CKM, n = 15,000, k = 5, d = 2, 100 restarts | {seconds[0]:.3f} s | {seconds[1]:.3f} s "
        f"| {seconds[1] / seconds[0]:.1f} | 50.0 | {median([run[1] for run in mine]) / 1e6:.0f} MB | – "
        f"| mean SSD {ssd[0]:.4f}, theirs {ssd[1]:.4f} |"
    )


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
            pairs = [(ours(folder, data, clusterer, params, HEADS.get(clusterer, "")), theirs(data, code)) for _ in range(RUNS)]
            seconds = [median([pair[side][0] for pair in pairs]) for side in (0, 1)]
            seconds[1] *= REPEATED.get(name, 1)
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
        # PyTorch takes gigabytes: bench/peers installs it if this work is asked for by name.
        if any("CKM" in word for word in wanted):
            ckm(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
