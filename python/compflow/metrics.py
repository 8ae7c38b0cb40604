"""How well predicted sets agree with true ones.

Sets are lists of tuples, sets or labels, a 0/1 matrix (dense or sparse), or an Arrow column of lists. What labels are called
does not matter: predictions and truth have names of their own. As in scikit-learn, the truth comes first.

    >>> from compflow.metrics import cri
    >>> cri([{0}, {1}, {0, 1}], [("a",), ("b",), ("b", "a")])
    1.0
"""

from __future__ import annotations

import json

import numpy as np

from . import _engine, _folders  # noqa: F401  (the folders to search)
from . import _sets

__all__ = ["acri", "ami", "ari", "bcubed", "cri", "der", "jer", "nmi", "omega", "score", "set_f1", "unions"]


def score(evaluator: str, truth, predicted, *, columns: dict | None = None, **params) -> dict[str, float]:
    """All scores of an evaluator, of any plugin, by name.

    >>> score("ari", [0, 0, 1], [1, 1, 0])
    {'ari': 1.0}
    """
    columns = {name: values for name, values in (columns or {}).items()}
    flat = [_sets.flatten(sets, what) for sets, what in ((truth, "truth"), (predicted, "predicted"))]
    return dict(_engine.score(evaluator, json.dumps(params), *flat, columns))


def cri(truth, predicted) -> float:
    """The compositional Rand index: how often which set contains which is the same."""
    return score("cri", truth, predicted)["cri"]


def acri(truth, predicted) -> float:
    """The compositional Rand index, corrected for chance."""
    return score("cri", truth, predicted)["acri"]


def ari(truth, predicted) -> float:
    """The adjusted Rand index of the partitions into equal sets."""
    return score("ari", truth, predicted)["ari"]


def nmi(truth, predicted) -> float:
    """The normalised mutual information of the partitions into equal sets."""
    return score("nmi", truth, predicted)["nmi"]


def ami(truth, predicted) -> float:
    """The adjusted mutual information of the partitions into equal sets."""
    return score("ami", truth, predicted)["ami"]


def omega(truth, predicted) -> float:
    """The omega index: in how many clusters two examples are together, corrected for chance."""
    return score("omega", truth, predicted)["omega"]


def bcubed(truth, predicted) -> dict[str, float]:
    """BCubed for overlapping clusters: F, precision and recall."""
    return score("bcubed", truth, predicted)


def set_f1(truth, predicted) -> float:
    """The F1 of memberships after the best matching of clusters with labels."""
    return score("set_f1", truth, predicted)["set_f1"]


def unions(truth, predicted) -> dict[str, float]:
    """How well unions are told from singletons."""
    return score("unions", truth, predicted)


def segments(start, end, file) -> dict:
    """Where in recordings examples are."""
    start, end = np.asarray(start, np.float64).tolist(), np.asarray(end, np.float64).tolist()
    file = ["recording"] * len(start) if file is None else [str(name) for name in file]
    return {"start": start, "end": end, "file": file}


def der(truth, predicted, *, start, end, file=None, **params) -> float:
    """The diarization error rate: examples are segments of recordings, from `start` to `end` in seconds; less is better."""
    return score("der", truth, predicted, columns=segments(start, end, file), **params)["der"]


def jer(truth, predicted, *, start, end, file=None, **params) -> float:
    """The Jaccard error rate of diarization; less is better."""
    return score("jer", truth, predicted, columns=segments(start, end, file), **params)["jer"]
