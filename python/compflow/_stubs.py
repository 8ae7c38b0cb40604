"""Writes `__init__.pyi`: what type checkers and editors know of the estimators, from the schemas of their components.

`python -m compflow._stubs` writes it anew; a test says when that is needed.
"""

from __future__ import annotations

import inspect
from pathlib import Path

from . import _components
from ._components import ATTRIBUTES, COMMON, NAMED

#: The types of what every estimator has.
TYPES = {
    "n_singletons": "int | str | dict[str, Any] | None",
    "degree": "int",
    "composer": "str | dict[str, Any] | Bilinear | Callable[[np.ndarray, np.ndarray], Any] | None",
    "normalize": "str | None",
    "distance": "str",
    "random_state": "int | np.random.RandomState | np.random.Generator | None",
    "threads": "int | None",
    "verbose": "bool",
}
FOUND = {
    "labels_": "np.ndarray",
    "sets_": "list[tuple[int, ...]]",
    "label_sets_": "list[tuple[int, ...]]",
    "memberships_": "Any",
    "clusters_": "Table",
    "singletons_": "np.ndarray",
    "distances_": "np.ndarray",
    "converged_": "bool",
    "n_iter_": "int",
    "objective_": "float",
    "trace_": "np.ndarray",
    "params_": "dict[str, Any]",
    "resolved_": "dict[str, Any]",
    "selection_": "list[dict[str, Any]]",
    "names_": "list[str]",
}
HEAD = '''"""Clusters, and which of them are unions of others."""

# Written by `python -m compflow._stubs`.

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from . import metrics as metrics
from ._components import clusterer as clusterer, components as components
from ._composers import Bilinear as Bilinear, Function as Function
from ._estimator import Clusterer as Clusterer, ConvergenceWarning as ConvergenceWarning
from ._folders import use_plugins as use_plugins
from ._learning import fit_composer as fit_composer
from ._results import Results as Results, Run as Run, assign as assign, load as load, run as run
from ._selection import Selection as Selection, select_k as select_k
from ._table import Table

__version__: str
'''


def type_of(described: dict, schema: dict) -> str:
    """The type of a parameter, as far as its schema is simple."""
    if "$ref" in described:
        described = schema.get("$defs", {}).get(described["$ref"].rpartition("/")[2], {})
    names = {"integer": "int", "number": "float", "boolean": "bool", "string": "str", "null": "None"}
    kinds = described.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and all(kind in names for kind in kinds):
        return " | ".join(names[kind] for kind in kinds)
    options = described.get("oneOf") or described.get("anyOf") or []
    if options and all(option.get("type") == "string" for option in options):
        return "str"
    return "Any"


def text() -> str:
    """What the file ought to say."""
    assert list(FOUND) == list(ATTRIBUTES)
    lines = [HEAD]
    for title, component in NAMED.items():
        made, described = _components.estimator(title), _components.described(component)
        properties = described["schema"]["properties"]
        lines += ["", f"class {title}(Clusterer):"]
        names = list(inspect.signature(made.__init__).parameters)[1:]
        arguments = ["self", "n_singletons", "*"] if names[0] == "n_singletons" else ["self", "*"]
        arguments += [name for name in names if name != "n_singletons"]
        lines.append("    def __init__(")
        for name in arguments:
            if name in ("self", "*"):
                lines.append(f"        {name},")
                continue
            kind = TYPES.get(name) or type_of(properties.get(name.rstrip("_"), {}), described["schema"])
            lines.append(f"        {name}: {kind} = ...,")
        lines.append("    ) -> None: ...")
        extra = [name for name in ("sample_weight", "seeds") if name in inspect.signature(made.fit).parameters]
        given = "".join(f", {name}: Any = ..." for name in extra)
        for name, found in (("fit", "Self"), ("fit_predict", "np.ndarray"), ("fit_transform", "np.ndarray")):
            lines.append(f"    def {name}(self, X: Any, y: Any = ...{given}) -> {found}: ...")
        lines += [f"    {name}: {kind}" for name, kind in FOUND.items()]
        lines += [f"    {name}: {TYPES[name]}" for name in COMMON if name in names]
    return "\n".join(lines) + "\n"


def path() -> Path:
    """Where it is."""
    return Path(__file__).with_name("__init__.pyi")


def current() -> str:
    """What the file says."""
    return path().read_text()


if __name__ == "__main__":
    path().write_text(text())
