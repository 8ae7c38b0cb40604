"""Makes the documents of one or two topics: `python make.py`, in this folder. Packages: requirements.txt.

A document is made of sentences from the words of its topic (words.toml) and common ones; one of two topics is two documents,
one after the other. The embedding is TF-IDF, reduced to 32 dimensions by a truncated SVD, of all documents of the split.
`python make.py --show N` prints N documents instead.
"""

import itertools
import sys
import tomllib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

SEED = 15
DIMENSIONS = 32
OFF_TOPIC = 0.45  # share of words that are common ones
WORDS = tomllib.load(open("words.toml", "rb"))
TEMPLATES = [
    "The N of the N V, and the A N V.",
    "One N V when the N is A.",
    "Every N V near the A N.",
    "The A N has the N and V again.",
    "Without the N, no N V.",
    "This N is A, but that N is A too.",
]


def word(random, topic, kind):
    source = WORDS["common"] if random.random() < OFF_TOPIC else topic
    return random.choice(source[kind].split())


def sentence(random, topic):
    kinds = {"N": "nouns", "V": "verbs", "A": "adjectives"}
    template = random.choice(TEMPLATES)
    words = [word(random, topic, kinds[w[0]]) + w[1:] if w[0] in kinds and w.strip(".,") in kinds else w
             for w in template.split()]
    return " ".join(words)


def document(random, topics, members):
    """Each topic has three to nine sentences, so the topics of a document seldom have equal shares."""
    sentences = [sentence(random, topics[m]) for m in members for _ in range(random.integers(3, 10))]
    return " ".join(sentences)


def trial(random, topics, k, degree, per_set):
    classes = sorted(str(name) for name in random.choice(list(topics), k, replace=False))
    sets = [s for size in range(1, degree + 1) for s in itertools.combinations(classes, size)]
    # The first topic of a document is not always the same.
    examples = [(document(random, topics, random.permutation(s)), s) for s in sets for _ in range(per_set)]
    return [examples[row] for row in random.permutation(len(examples))]


def corpus(split, k, per_set, trials, degree=2):
    """Trial, number in the trial, text and topics of every document."""
    return [(t, at, text, members) for t in range(trials)
            for at, (text, members) in enumerate(trial(
                np.random.default_rng([SEED, split == "test", k, per_set, t]), WORDS[split], k, degree, per_set))]


def write(split, files):
    corpora = {name: corpus(split, **shape) for name, shape in files.items()}
    model = TfidfVectorizer(sublinear_tf=True)
    vectors = model.fit_transform([row[2] for rows in corpora.values() for row in rows])
    vectors = TruncatedSVD(DIMENSIONS, random_state=SEED).fit_transform(vectors)
    # Ten bits are plenty, and what has few distinct values is a small file.
    vectors = (np.round(vectors * 1024) / 1024).astype(np.float32)
    for name, rows in corpora.items():
        mine, vectors = vectors[:len(rows)], vectors[len(rows):]
        table = pa.table({
            "trial": pa.array([row[0] for row in rows], pa.uint32()),
            "id": pa.array([row[1] for row in rows], pa.uint32()),
            "embedding": pa.FixedSizeListArray.from_arrays(pa.array(mine.ravel()), DIMENSIONS),
            "labels": pa.array([row[3] for row in rows], pa.list_(pa.string())),
        })
        pq.write_table(table, f"{name}.parquet", compression="snappy")
        print(name, table.num_rows, DIMENSIONS)


if sys.argv[1:2] == ["--show"]:
    for _, _, text, members in corpus("test", k=5, per_set=10, trials=1)[:int(sys.argv[2])]:
        print(f"{' + '.join(members)}: {text}\n")
else:
    write("validation", {"d2_n150_val": {"k": 5, "per_set": 10, "trials": 5}})
    write("test", {
        "d2_n150_test": {"k": 5, "per_set": 10, "trials": 10},
        "d2_n750_test": {"k": 5, "per_set": 50, "trials": 5},
    })
