"""Estimators from components: their parameters, defaults and words are those of the component's schema."""

from __future__ import annotations

import functools
import json
import keyword
import textwrap

from . import _engine, _folders  # noqa: F401  (the folders to search)
from ._estimator import Clusterer

#: The estimators that have a name of their own, and their components.
NAMED = {
    "CKM": "ckm",
    "CGM": "cgm",
    "CAP": "cap",
    "GCR": "gcr",
    "AP": "ap",
    "AC": "ac",
    "KMeans": "kmeans",
    "FCM": "fcm",
    "GMM": "gmm",
}

#: What every estimator has besides the parameters of its component: default and words.
COMMON = {
    "degree": (2, "The most singletons that a union may have; 1 looks for no unions."),
    "composer": (
        "max",
        "Where unions lie: the name of a composer, a `Bilinear`, or a function of two matrices (see `Function`).",
    ),
    "normalize": ("l2", "What is done to examples before distances are taken: 'l2', or None."),
    "distance": ("sqeuclidean", "The distance: 'sqeuclidean' or 'euclidean'."),
    "random_state": (0, "The seed of all randomness: the same seed gives the same result. None takes another each time."),
    "threads": (None, "How many threads are used; None takes all cores. The result does not depend on it."),
    "verbose": (False, "Whether a bar shows how far it is, if tqdm is installed."),
}


def components(kind: str | None = None) -> list[dict]:
    """All components that were found: kind, name, summary, documentation, the schema of their parameters.

    >>> [component["name"] for component in components("composer")][:3]
    ['bilinear', 'max', 'mean']
    """
    found = json.loads(_engine.components())["components"]
    own = ("memory", "python")
    return [one for one in found if kind in (None, one["kind"]) and not (one["name"] in own and one["library"] == "python")]


@functools.cache
def estimator(name: str) -> type[Clusterer]:
    """One of the estimators that have a name of their own."""
    return make_class(name, NAMED[name])


def clusterer(name: str, **params) -> Clusterer:
    """An estimator of the clusterer `name`, from any plugin that was found; `library:name` where several have that name.

    >>> clusterer("kmeans", n_singletons=3)
    KMeans(n_singletons=3)
    """
    return plugin_class(name)(**params)


@functools.cache
def plugin_class(name: str) -> type[Clusterer]:
    """The class of a clusterer by its component's name."""
    for own, component in NAMED.items():
        if component == name:
            return estimator(own)
    return make_class("".join(part.capitalize() for part in name.replace(":", "_").split("_")), name, plugin=True)


def remake(name: str, state: dict) -> Clusterer:
    """An estimator of a plugin's clusterer, when it is unpickled."""
    made = plugin_class(name).__new__(plugin_class(name))
    made.__setstate__(state)
    return made


def described(name: str) -> dict:
    """The clusterer of that name."""
    library, _, component = name.rpartition(":")
    found = [one for one in components("clusterer") if one["name"] == component]
    if library:
        found = [one for one in found if f"compflow_{library}." in one["library"]]
    if not found:
        there = ", ".join(one["name"] for one in components("clusterer"))
        refused = "".join(f"; {one['library']} {one['reason']}" for one in json.loads(_engine.components())["refused"])
        raise ValueError(f"there is no clusterer named {name!r}; there are {there or 'none'}{refused}")
    return found[0]


def make_class(title: str, name: str, plugin: bool = False) -> type[Clusterer]:
    """The estimator of a component."""
    component = described(name)
    schema = component["schema"]
    properties = schema.get("properties", {})
    arguments: dict[str, object] = {}
    words: dict[str, str] = {}
    params: dict[str, tuple[str, object]] = {}
    singletons_as = None
    if "k" in properties:
        # Without a number of its own, a component that can select it does so.
        arguments["n_singletons"] = "auto" if "x-select" in properties["k"] else properties["k"].get("default")
        words["n_singletons"] = properties["k"].get("description", "").replace("for every trial", "by stability")
        params["n_singletons"] = ("k", properties["k"].get("default"))
    elif "preference" in properties and takes_number(properties["preference"], schema):
        arguments["n_singletons"] = None
        words["n_singletons"] = "Number of singletons, if it is known; takes the place of `preference`."
        singletons_as = "preference"
    for theirs, property in properties.items():
        own = theirs + "_" if keyword.iskeyword(theirs) else theirs
        # The pipeline's degree is the component's as well.
        if theirs in ("k", *COMMON):
            continue
        # A table, which could be changed by everybody who sees it, is left to the component.
        default = property.get("default")
        arguments[own] = None if isinstance(default, (dict, list)) else default
        words[own] = property.get("description", "")
        params[own] = (theirs, property.get("default"))
    for own, (default, text) in COMMON.items():
        if own == "composer" and not component["needs_composer"]:
            continue
        arguments[own], words[own] = default, text
    body = {
        "__doc__": documentation(title, component, words),
        "__module__": "compflow",
        "__qualname__": title,
        "_component": name,
        "_params": params,
        "_singletons_as": singletons_as,
        "__init__": initialiser(arguments),
        **fitting(component),
    }
    if plugin:
        body["__reduce__"] = lambda self: (remake, (name, self.__getstate__()))
    return type(title, (Clusterer,), body)


def takes_number(property: dict, schema: dict) -> bool:
    """Whether a preference may be `{ k = 5 }`."""
    named = schema.get("$defs", {}).get(property.get("$ref", "").rpartition("/")[2], property)
    return any("k" in one.get("properties", {}) for one in named.get("anyOf", []) + named.get("oneOf", []))


def initialiser(arguments: dict[str, object]):
    """`__init__` with these arguments, the first of which may be given without its name."""
    names = list(arguments)
    first = names[:1] if names[:1] == ["n_singletons"] else []
    rest = [name for name in names if name not in first]
    signature = ", ".join(["self", *(f"{name}=_{name}" for name in first), "*", *(f"{name}=_{name}" for name in rest)])
    lines = "".join(f"    self.{name} = {name}\n" for name in names)
    scope = {f"_{name}": default for name, default in arguments.items()}
    exec(f"def __init__({signature}):\n{lines}", scope)
    return scope["__init__"]


def fitting(component: dict) -> dict:
    """`fit` and what goes with it, with the arguments that the component makes use of."""
    extra = [name for name, used in (("sample_weight", "uses_weights"), ("seeds", "uses_seeds")) if component[used]]
    given = "".join(f", {name}=None" for name in extra)
    passed = "".join(f", {name}={name}" for name in extra)
    scope: dict = {}
    exec(
        textwrap.dedent(f"""
        def fit(self, X, y=None{given}):
            return self._fit_to(X{passed})

        def fit_predict(self, X, y=None{given}):
            return self._fit_to(X{passed}).labels_

        def fit_transform(self, X, y=None{given}):
            return self._fit_to(X{passed}).transform(X)
        """),
        scope,
    )
    text = "`X` is a matrix, a data frame, or an Arrow table with a column of lists; float32 in C order is not copied."
    if "sample_weight" in extra:
        text += " An example counts as if it were there `sample_weight` times."
    if "seeds" in extra:
        text += " `seeds` are sets that are known beforehand: for each example a set of names or numbers, or None."
    scope["fit"].__doc__ = f"Finds clusters. {text}"
    scope["fit_predict"].__doc__ = "Finds clusters and returns `labels_`; see `fit`."
    scope["fit_transform"].__doc__ = "Finds clusters and returns `transform(X)`; see `fit`."
    functions = {name: scope[name] for name in ("fit", "fit_predict", "fit_transform")}
    for function in functions.values():
        function.__module__ = "compflow"
    return functions


def documentation(title: str, component: dict, words: dict[str, str]) -> str:
    """The docstring, as NumPy writes them."""
    lines = [component["summary"][:1].upper() + component["summary"][1:] + ".", "", component["documentation"], ""]
    lines += ["Parameters", "----------"]
    for name, text in words.items():
        lines += [name, textwrap.indent(text or "", "    ")]
    lines += ["", "Attributes", "----------"]
    for name, text in ATTRIBUTES.items():
        lines += [name, f"    {text}"]
    return "\n".join(lines) + "\n"


#: What a fitted estimator has.
ATTRIBUTES = {
    "labels_": "The label of every example, from 0; -1 for none of them.",
    "sets_": "The set of singletons of every example, as tuples.",
    "label_sets_": "The set of every label.",
    "memberships_": "Examples by singletons, 0 or 1, sparse.",
    "clusters_": "A table of the clusters.",
    "singletons_": "A vector for each singleton: before normalisation, or a centroid if the method composes nothing.",
    "distances_": "How far every example is from its cluster.",
    "converged_": "Whether it converged.",
    "n_iter_": "Iterations done.",
    "objective_": "What was minimised or maximised.",
    "trace_": "The objective after every iteration.",
    "params_": "The component's parameters, presets and defaults filled in.",
    "resolved_": "Parameters that the method settled by itself.",
    "selection_": "What the number of singletons was selected from, if it was.",
    "names_": "What singletons are called, if seeds named some.",
}
