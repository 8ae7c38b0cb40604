"""Clusters, and which of them are unions of others.

    >>> import numpy as np, compflow
    >>> rng = np.random.default_rng(0)
    >>> parts = np.eye(3, 8, dtype=np.float32)
    >>> unions = np.maximum(parts[[0, 0, 1]], parts[[1, 2, 2]])
    >>> X = np.repeat(np.vstack([parts, unions]), 20, axis=0) + rng.normal(0, 0.05, (120, 8)).astype(np.float32)
    >>> model = compflow.CKM(3).fit(X)
    >>> model.sets_[0], model.sets_[60]
    ((0,), (0, 1))

The estimators `CKM`, `CGM`, `CAP`, `GCR`, `AP`, `AC`, `KMeans`, `FCM` and `GMM` behave as scikit-learn's do, and
`clusterer("name")` is the estimator of any plugin. `run` runs a whole pipeline, `load` opens what a run has left.
"""

from __future__ import annotations

import importlib

#: What is where; nothing is imported before it is asked for.
_HOME = {
    "Bilinear": "_composers",
    "Function": "_composers",
    "ConvergenceWarning": "_estimator",
    "Clusterer": "_estimator",
    "Results": "_results",
    "Run": "_results",
    "Selection": "_selection",
    "assign": "_results",
    "clusterer": "_components",
    "components": "_components",
    "fit_composer": "_learning",
    "load": "_results",
    "metrics": None,
    "run": "_results",
    "select_k": "_selection",
    "use_plugins": "_folders",
}
_ESTIMATORS = ("CKM", "CGM", "CAP", "GCR", "AP", "AC", "KMeans", "FCM", "GMM")

__all__ = sorted([*_HOME, *_ESTIMATORS])


def __getattr__(name: str):
    if name in _ESTIMATORS:
        value = importlib.import_module("._components", __name__).estimator(name)
    elif name == "__version__":
        value = importlib.import_module("._engine", __name__).VERSION
    elif name in _HOME:
        module = importlib.import_module(f".{_HOME[name] or name}", __name__)
        value = getattr(module, name) if _HOME[name] else module
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted([*globals(), *__all__])
