"""Composition functions: where the union of two things lies."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from . import _engine


class Bilinear:
    """A learned g, from a file of weights such as `fit_composer` writes.

    `path` is the file. It is read when a model is fitted.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = path

    def __repr__(self) -> str:
        return f"Bilinear({str(self.path)!r})"

    def __eq__(self, other) -> bool:
        return isinstance(other, Bilinear) and Path(self.path) == Path(other.path)

    def __hash__(self) -> int:
        return hash(Path(self.path))


class Function:
    """A Python function as g.

    `compose(left, right)` takes two float32 arrays of m rows and returns the m compositions; it must not care about the order
    of the two. `vjp(left, right, grad)`, which `CKM` and `CGM` need, returns the gradients of `left` and `right`, given those
    of the compositions. It is called from several threads, one at a time.

        >>> import numpy as np, compflow
        >>> mean = compflow.Function(lambda a, b: (a + b) / 2, vjp=lambda a, b, grad: (grad / 2, grad / 2))
        >>> mean(np.zeros((1, 2)), np.ones((1, 2)))
        array([[0.5, 0.5]])
    """

    def __init__(self, compose: Callable, vjp: Callable | None = None):
        self.compose, self.vjp = compose, vjp

    def __call__(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return self.compose(left, right)

    def __repr__(self) -> str:
        return f"Function({self.compose!r}, vjp={self.vjp!r})"


def described(composer) -> tuple[dict | None, _engine.Function | None]:
    """The `[composer]` table of a pipeline, and what must stay alive meanwhile."""
    if composer is None:
        return None, None
    if isinstance(composer, str):
        return {"use": composer}, None
    if isinstance(composer, Bilinear):
        return {"use": "bilinear", "params": {"weights": str(Path(composer.path).resolve())}}, None
    if isinstance(composer, dict):
        return composer, None
    if callable(composer):
        compose = composer.compose if isinstance(composer, Function) else composer
        held = _engine.Function(compose, getattr(composer, "vjp", None))
        return {"use": "python", "params": {"function": held.number}}, held
    raise TypeError(
        "composer must be a name such as 'max', a Bilinear, a function of two matrices or a table with `use`, "
        f"found {type(composer).__name__}"
    )
