"""Writes conversations.parquet: conversations made of the recordings in data/speech.

    python3 -m venv venv
    venv/bin/pip install numpy==2.4.6 polars==2.1.0
    venv/bin/python data/conversation/make.py

A trial is a series of conversations among the same four people. A conversation is a row of turns: somebody speaks for one to
five segments of 2 s, then comes a pause, or the next falls in while the former still speaks. Embeddings are those of real
recordings of one or of two at once, none used twice within a trial; only their order is made up.
"""

import pathlib

import numpy
import polars

TRIALS, FILES, SPEAKERS = 10, 3, 4
SEGMENTS = 60  # of a conversation
LENGTH = 2.0  # of a segment, in seconds: so long is the speech that an embedding is of
FALLS_IN = 0.45  # how often the next one falls in
SEED = 20250611

folder = pathlib.Path(__file__).resolve().parent
rng = numpy.random.default_rng(SEED)
speech = polars.read_parquet(folder.parent / "speech" / "d2_n1500_test.parquet")


def conversation(shares):
    """Who speaks in every segment, and when it starts."""
    time, speaker, segments = float(rng.uniform(0, 3)), int(rng.choice(SPEAKERS, p=shares)), []

    def say(speakers, count):
        nonlocal time
        for _ in range(count):
            segments.append((round(time, 2), sorted(speakers)))
            time += LENGTH

    while len(segments) < SEGMENTS:
        say([speaker], int(rng.integers(1, 6)))
        others = numpy.where(numpy.arange(SPEAKERS) == speaker, 0, shares)
        following = int(rng.choice(SPEAKERS, p=others / others.sum()))
        if rng.random() < FALLS_IN:
            say([speaker, following], int(rng.integers(1, 4)))
        else:
            time += float(rng.exponential(0.8))
        speaker = following
    return segments[:SEGMENTS]


rows = []
for trial in range(TRIALS):
    of_trial = speech.filter(polars.col("trial") == trial).sort("id")
    classes = sorted(rng.choice(5, size=SPEAKERS, replace=False).tolist())
    # What there is of every set of speakers, in an order of its own.
    recordings = {}
    for labels, embedding in zip(of_trial["labels"].to_list(), of_trial["embedding"].to_numpy()):
        recordings.setdefault(tuple(labels), []).append(embedding)
    recordings = {key: iter(rng.permutation(numpy.array(found))) for key, found in sorted(recordings.items())}
    # Some talk more than others.
    shares = rng.dirichlet([4.0] * SPEAKERS)
    for file in range(FILES):
        for start, speakers in conversation(shares):
            embedding = next(recordings[tuple(classes[speaker] for speaker in speakers)])
            name = f"conversation-{trial}-{file}"
            rows.append((trial, name, start, round(start + LENGTH, 2), embedding.tolist(), speakers))

schema = {
    "trial": polars.UInt32,
    "file": polars.String,
    "start": polars.Float64,
    "end": polars.Float64,
    "embedding": polars.Array(polars.Float32, 32),
    "speakers": polars.List(polars.UInt32),
}
table = polars.DataFrame(rows, schema=schema, orient="row")
# Clustering does not get to see the order of time.
table = table.sample(fraction=1.0, shuffle=True, seed=SEED).sort("trial", maintain_order=True)
table.insert_column(1, table.select(polars.int_range(polars.len(), dtype=polars.UInt32).over("trial").alias("id"))["id"])
table.write_parquet(folder / "conversations.parquet", compression="zstd", compression_level=19)
