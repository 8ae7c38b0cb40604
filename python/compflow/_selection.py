"""How many clusters there are."""

from __future__ import annotations

from ._table import shown


class Selection(list):
    """What was compared, a dictionary for each value; `best` is the value that was chosen, `model` what was fitted with it."""

    best: object
    model: object

    def __repr__(self) -> str:
        rows = [f"chosen: {self.best}"]
        for one in self:
            value = next(iter(one["params"].values()))
            marks = ("*" if one["chosen"] else "") + (" gap" if one["gap_chosen"] else "")
            if one.get("error"):
                rows.append(f"  {value}: {one['error']}")
            else:
                rows.append(f"  {value}: worth {shown(one['worth'])}, stability {shown(one['stability'])} {marks}".rstrip())
        return "\n".join(rows)


def select_k(model, X, values=None, **fit_params) -> Selection:
    """Fits `model` with every number of singletons of `values`, and takes the one whose clusters are worth most.

    `model` is an estimator with `n_singletons`; without `values`, those that the method proposes are tried. It is not
    changed; `selection.model` is fitted with the number that was chosen.

    >>> import numpy as np, compflow
    >>> X = np.random.default_rng(0).normal(0, 0.1, (200, 8)) + np.eye(8).repeat(25, axis=0)
    >>> compflow.select_k(compflow.KMeans(degree=1), X, [4, 8, 12]).best
    8
    """
    wanted = "auto" if values is None else {"select": [int(value) for value in values]}
    fitted = type(model)(**{**model.get_params(), "n_singletons": wanted})
    fitted.fit(X, **fit_params)
    selection = Selection(fitted.selection_)
    chosen = next((one["params"] for one in selection if one["chosen"]), {})
    selection.best = next(iter(chosen.values()), fitted.params_.get("k"))
    fitted.set_params(n_singletons=selection.best)
    selection.model = fitted
    return selection
