"""BERTopic with our clusters, where it is installed (`.ci/bertopic`): topics, and which of them are two topics at once."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from compflow import CGM, metrics

bertopic = pytest.importorskip("bertopic")
parquet = pytest.importorskip("pyarrow.parquet")
TOPICS = Path(__file__).resolve().parents[2] / "data" / "topics"


def test_documents_of_two_topics_are_the_unions_of_two():
    from bertopic.dimensionality import BaseDimensionalityReduction
    from sklearn.feature_extraction.text import CountVectorizer

    # The documents of the first trial, of which the data set has the embeddings.
    shown = subprocess.run([sys.executable, "make.py", "--show", "150"], cwd=TOPICS, capture_output=True, text=True, check=True)
    documents = [line.split(": ", 1)[1] for line in shown.stdout.split("\n\n") if line.strip()]
    table = parquet.read_table(TOPICS / "d2_n150_test.parquet", filters=[("trial", "=", 0)])
    X = np.asarray(table["embedding"].to_pylist(), np.float32)
    assert len(documents) == len(X) == 150

    clusters = CGM(5, composer="mean")
    topics = bertopic.BERTopic(
        hdbscan_model=clusters,
        umap_model=BaseDimensionalityReduction(),
        vectorizer_model=CountVectorizer(stop_words="english"),
    )
    found, _ = topics.fit_transform(documents, embeddings=X)
    # It numbers topics by their size; each is one of our sets.
    sets = dict(zip(found, clusters.sets_))
    assert [sets[topic] for topic in found] == clusters.sets_
    assert len(sets) == 15 and sum(len(members) == 1 for members in sets.values()) == 5
    assert metrics.acri(table["labels"].to_pylist(), clusters.sets_) > 0.8
    again, _ = topics.transform(documents[:20], embeddings=X[:20])
    assert list(again) == found[:20]
