"""Learning g from labelled examples."""

from __future__ import annotations

import json
import os
from pathlib import Path

from . import _engine, _folders, _inputs  # noqa: F401  (the folders to search)
from ._composers import Bilinear
from ._listener import Listener
from ._table import Table, shown


class Judgement(dict):
    """What was found out about composers; `composer` is the one to take."""

    composer: object

    def __repr__(self) -> str:
        rows = [f"take {self['take']!r}; composition {'holds' if self['holds'] else 'does not hold, or nobody can tell'}"]
        for one in self["composers"]:
            rows.append(f"  {one['name']}: nearest {shown(one['nearest'])}, error {shown(one['error'])}")
        return "\n".join(rows)


def fit_composer(
    X,
    sets,
    path: str | os.PathLike,
    *,
    trials=None,
    normalize: str | None = "l2",
    composers: tuple[str, ...] = ("max", "sum", "mean"),
    random_state: int = 0,
    threads: int | None = None,
    verbose: bool = False,
) -> Judgement:
    """Learns a bilinear g from examples and their true sets, writes its weights to `path`, and judges it beside others.

    Labels mean the same thing only within a trial, if there are `trials`. `composer` of what is returned can be given to an
    estimator.

    >>> import numpy as np, tempfile
    >>> rng = np.random.default_rng(0)
    >>> labels = [(0,), (1,), (2,), (3,), (0, 1), (0, 2), (1, 2), (1, 3), (2, 3)] * 20
    >>> X = np.array([np.max([np.eye(4)[label] for label in labels_], axis=0) for labels_ in labels])
    >>> X = X + rng.normal(0, 0.01, X.shape)
    >>> judged = fit_composer(X, labels, tempfile.mkdtemp() + "/g.safetensors", normalize=None)
    >>> judged["take"]
    'max'
    """
    path = Path(path)
    examples = _inputs.data(X, "fit_composer", truth=sets, trials=trials)
    listener = Listener("fit_composer", verbose)
    try:
        judged = _engine.learn_composer(
            examples,
            str(path),
            normalize=normalize or "none",
            composers=list(composers),
            seed=random_state,
            threads=threads,
            listener=listener,
        )
    finally:
        listener.close()
    judgement = Judgement(json.loads(judged))
    judgement.composer = judgement["take"] if judgement["take"] in composers else Bilinear(path)
    return judgement
