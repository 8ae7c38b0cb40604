"""Scores of sets in all their forms."""

import numpy as np
import pytest

from compflow import metrics

TRUTH = [(0,), (1,), (0, 1), (0,), (1,), (2,)]
FOUND = [("b",), ("a",), ("a", "b"), ("b",), ("b",), ("c",)]


def test_names_do_not_matter_and_the_same_sets_score_1():
    renamed = [{"xyz"[member] for member in members} for members in TRUTH]
    for metric in (metrics.cri, metrics.acri, metrics.ari, metrics.nmi, metrics.ami, metrics.omega, metrics.set_f1):
        assert metric(TRUTH, renamed) == pytest.approx(1.0)
    assert all(value == pytest.approx(1.0) for value in metrics.bcubed(TRUTH, renamed).values())


def test_the_forms_of_sets_score_the_same():
    pa, sparse = pytest.importorskip("pyarrow"), pytest.importorskip("scipy.sparse")
    expected = metrics.cri(TRUTH, FOUND)
    assert 0 < expected < 1
    indicator = np.array([[name in members for name in "abc"] for members in FOUND])
    for found in (
        indicator,
        indicator.astype(int),
        sparse.csr_array(indicator.astype(np.int8)),
        pa.array([list(members) for members in FOUND]),
        [list(reversed(members)) for members in FOUND],
        pa.table({"clusters": [list(members) for members in FOUND]}),
    ):
        assert metrics.cri(TRUTH, found) == expected


def test_it_is_what_scikit_learn_says_of_partitions():
    theirs = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    truth, found = rng.integers(4, size=200), rng.integers(5, size=200)
    assert metrics.ari(truth, found) == pytest.approx(theirs.adjusted_rand_score(truth, found))
    assert metrics.nmi(truth, found) == pytest.approx(theirs.normalized_mutual_info_score(truth, found))


def test_diarization():
    start, end = [0, 1, 2, 3], [1, 2, 3, 4]
    truth, found = [("anna",), ("ben",), ("anna", "ben"), ("anna",)], [(0,), (1,), (0,), (0,)]
    assert metrics.der(truth, found, start=start, end=end) == pytest.approx(1 / 5)
    with pytest.raises(ValueError, match="needs the column"):
        metrics.score("der", truth, found)


def test_what_cannot_be_scored_is_refused_in_words():
    with pytest.raises(ValueError, match="there are 6 true and 2 predicted sets"):
        metrics.cri(TRUTH, FOUND[:2])
    with pytest.raises(ValueError, match="an indicator of 0 and 1"):
        metrics.cri(TRUTH, np.full((6, 2), 3))
    with pytest.raises(ValueError, match="has nan in it"):
        metrics.cri(TRUTH, [np.nan] * 6)
    with pytest.raises(ValueError, match="there is no evaluator named `crI`"):
        metrics.score("crI", TRUTH, FOUND)
    with pytest.raises(ValueError, match="needs embeddings"):
        metrics.score("silhouette", TRUTH, FOUND)
