"""Makes the overlaid digits: `python make.py`, in this folder. Packages: requirements.txt.

An example is one of scikit-learn's 8x8 digits, or the element-wise maximum of two of them: raw pixels, 0 to 16. Images that
are in `val` are not in `test`.
"""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.datasets import load_digits

SEED = 15
DIGITS = load_digits()


def pools(split):
    """The images of each digit: every third is for validation."""
    rows = {digit: np.flatnonzero(DIGITS.target == digit) for digit in range(10)}
    return {digit: rows[np.arange(len(rows)) % 3 == 2 if split == "val" else np.arange(len(rows)) % 3 != 2]
            for digit, rows in rows.items()}


def trial(random, pools, k, degree, per_set):
    """Equally many examples of all sets of up to `degree` of k digits. An image comes again only after all others."""
    classes = sorted(int(digit) for digit in random.choice(10, k, replace=False))
    queues = {digit: itertools.cycle(random.permutation(pools[digit])) for digit in classes}
    sets = [s for size in range(1, degree + 1) for s in itertools.combinations(classes, size)]
    examples = [(DIGITS.data[[next(queues[digit]) for digit in s]].max(axis=0), s) for s in sets for _ in range(per_set)]
    return [examples[row] for row in random.permutation(len(examples))]


NAMES = "zero one two three four five six seven eight nine".split()


def known(labels, each=2):
    """Names of the first `each` examples of every digit alone, and null."""
    seen = {}
    def name(members):
        seen[members] = seen.get(members, 0) + 1
        return [NAMES[members[0]]] if len(members) == 1 and seen[members] <= each else None
    return [name(tuple(members)) for members in labels]


def write(name, split, k, per_set, trials, degree=2, seeds=False):
    number, ids, pixels, labels = [], [], [], []
    for t in range(trials):
        random = np.random.default_rng([SEED, split == "val", k, per_set, t])
        for at, (image, members) in enumerate(trial(random, pools(split), k, degree, per_set)):
            number.append(t)
            ids.append(at)
            pixels.append(image)
            labels.append(list(members))
    pixels = np.asarray(pixels, np.float32)
    table = pa.table({
        "trial": pa.array(number, pa.uint32()),
        "id": pa.array(ids, pa.uint32()),
        "embedding": pa.FixedSizeListArray.from_arrays(pa.array(pixels.ravel()), pixels.shape[1]),
        "labels": pa.array(labels, pa.list_(pa.uint32())),
    })
    if seeds:
        table = table.append_column("known", pa.array(known(labels), pa.list_(pa.string())))
    pq.write_table(table, f"{name}.parquet", compression="snappy")
    print(name, table.num_rows, pixels.shape[1])


write("d2_n150_val", "val", k=5, per_set=10, trials=5)
write("d2_n150_test", "test", k=5, per_set=10, trials=10)
write("d2_n750_test", "test", k=5, per_set=50, trials=5)
write("k10_n550_test", "test", k=10, per_set=10, trials=5)
write("known_n150_test", "test", k=5, per_set=10, trials=1, seeds=True)
