"""What all estimators have in common. They behave as scikit-learn's do, and need it only where somebody else brings it."""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
import warnings
from pathlib import Path

import numpy as np

from . import _composers, _engine, _folders, _inputs, _sets
from ._listener import Listener, Passes
from ._table import Table

#: What data is called in pipelines; the seed of a clusterer depends on it.
DATA = "data"


class ConvergenceWarning(UserWarning):
    """A method stopped before it had converged."""


class NotFittedError(ValueError, AttributeError):
    """Something was asked for that only a fitted model has."""


def not_fitted(estimator) -> Exception:
    """scikit-learn's own exception where it is used."""
    text = f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments first."
    if "sklearn" in sys.modules:
        from sklearn.exceptions import NotFittedError as TheirNotFittedError

        return TheirNotFittedError(text)
    return NotFittedError(text)


class _Fit:
    """What a fit leaves behind; one object, so that looking at it changes nothing in the estimator."""

    def __init__(self, fitted: _engine.Fitted, pipeline: dict, held):
        self.fitted, self.pipeline, self.held = fitted, pipeline, held
        self.assigners: dict = {}

    def assigner(self, **options) -> _engine.Assigner:
        key = tuple(sorted(options.items()))
        if key not in self.assigners:
            try:
                self.assigners[key] = self.fitted.assigner(**options)
            except Exception as error:
                raise_from_composer(error, self.held)
        return self.assigners[key]


def raise_from_composer(error: Exception, held) -> None:
    """Raises an error, with what the user's own function raised as its cause."""
    cause = (held.take_raised() if held is not None else None) or error.__cause__
    if isinstance(error, ValueError):
        # In the words of Python: what parameters are called there, and what scikit-learn calls a number of examples.
        text = str(error).replace("`k`", "`n_singletons`")
        error = type(error)(re.sub(r"\b(\d+) examples?\b", r"\g<0> (n_samples=\1)", text))
    raise error from cause


class Estimator:
    """Parameters by name, as scikit-learn's `BaseEstimator` has them."""

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params):
        """Sets parameters by name."""
        names = self._names()
        for name, value in params.items():
            if name not in names:
                raise ValueError(f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: {names}.")
            setattr(self, name, value)
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        shown = []
        for name, value in self.get_params().items():
            default = defaults[name].default
            if value is not default and not (type(value) is type(default) and value == default):
                shown.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def _more_tags(self) -> dict:
        return {}

    def __sklearn_tags__(self):
        from sklearn.utils import Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="clusterer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=["float32"]),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return "_fit" in vars(self)


class Clusterer(Estimator):
    """A clusterer of some library. `compflow.clusterer(name)` makes the classes, with the parameters that each has."""

    _estimator_type = "clusterer"
    #: The component.
    _component: str = ""
    #: By the name in Python: the name in the component, and its default there.
    _params: dict[str, tuple[str, object]] = {}
    #: How a number of singletons is asked for, if the component has no parameter `k`.
    _singletons_as: str | None = None

    # -- fitting

    def _fit_to(self, X, sample_weight=None, seeds=None):
        names = _inputs.feature_names(X)
        who = type(self).__name__
        examples = _inputs.data(X, who, sample_weight=sample_weight, seeds=seeds)
        pipeline, held = self._pipeline(examples)
        listener = Listener(f"{self._component}", bool(self.verbose))
        try:
            fitted = _engine.fit(json.dumps(pipeline), os.getcwd(), threads=self.threads, listener=listener)
        except Exception as error:
            raise_from_composer(error, held)
        finally:
            listener.close()
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        self._fit = _Fit(fitted, pipeline, held)
        if names is not None:
            self.feature_names_in_ = names
        self._read(fitted, listener)
        return self

    def fit_shards(
        self,
        paths,
        map=None,
        *,
        column="embedding",
        id=None,
        sample_weight=None,
        seeds=None,
        split=None,
        loader=None,
        shards=None,
    ):
        """Finds clusters in files of any size, which are never read into memory as a whole.

        `paths` are files, patterns or folders, as `path` in a pipeline, read as if they were one; `column` has the embeddings, or is a
        pattern such as `d*` for a column each. `id`, `sample_weight` and `seeds` name columns, too; `split` stands between the names in a text of seeds. Every
        pass over the files is one call of
        `map(function, shards)`: that of a Dask client, of an executor of `concurrent.futures`, of joblib, mpi4py or Ray, or Python's
        own. `shards` is how many there are: as many as files, or four for every core, whichever is more, if not given. `loader` is the
        name of what reads the files, or a dict `{"name": …, "params": {…}}`, where their names do not say it. The model is the same bit by bit, whoever does the work, and that of a run with `stream = true`. `labels_` and `sets_`
        are not known afterwards: `assign_shards` writes them to files. With `verbose` a bar shows how far each pass is; the logger
        `compflow` has a line about it at level INFO. For `CKM` and `CGM`.
        """
        from . import _shards

        listener = Passes(self._component, bool(self.verbose))
        try:
            columns = {"embedding": column, "id": id, "weight": sample_weight, "known": seeds, "split": split}
            model = _shards.fit(
                self, DATA, paths, map, columns=columns, loader=loader, shards=shards, listener=listener
            )
        except Exception as error:
            raise_from_composer(error, None)
        finally:
            listener.close()
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        self._fit = _shards.ShardFit(model, self.threads)
        facts = _engine.shard_facts(model)
        self.names_ = facts["names"]
        self._read_model(facts, listener, 4)
        return self

    def assign_shards(self, paths, out, map=None, *, shards=None) -> list[Path]:
        """Labels the examples of files, in tables such as `compflow assign` writes: one for each shard, in the folder `out`.

        For a model of `fit_shards`, whose columns are read; `map` and `shards` are as there. A call with as many shards as an earlier one
        takes the place of its labels; with fewer, the folder must not hold the others.
        """
        from . import _shards

        fit = self._fitted()
        if not isinstance(fit, _shards.ShardFit):
            raise ValueError("this model was fitted to examples in memory; `fit_shards` fits it to files")
        listener = Passes(f"{self._component} assign", bool(self.verbose))
        try:
            return _shards.assign(
                fit.model, paths, out, map, shards=shards, threads=self.threads, listener=listener
            )
        finally:
            listener.close()

    def _read_model(self, facts: dict, listener: Listener, level: int) -> None:
        """What is known of clusters without their examples."""
        self.n_features_in_ = facts["shape"][1]
        self.n_iter_ = facts["iterations"]
        self.converged_ = facts["converged"]
        self.objective_ = facts["objective"]
        self.trace_ = facts["trace"]
        self.n_singletons_ = facts["singletons"]
        self.resolved_ = {name: json.loads(value) for name, value in facts["resolved"]}
        self.scalars_ = dict(facts["scalars"])
        if len(facts["singleton_numbers"]):
            vectors = np.full((self.n_singletons_, self.n_features_in_), np.nan, np.float32)
            vectors[facts["singleton_numbers"]] = facts["singleton_vectors"]
            self.singletons_ = vectors
        said = facts.get("warnings") or [text for level, text in listener.lines if level >= 30]
        for text in said:
            warnings.warn(text, ConvergenceWarning if not self.converged_ else UserWarning, stacklevel=level)
        if not self.converged_ and not said:
            text = f"{type(self).__name__} did not converge in {self.n_iter_} iterations"
            warnings.warn(text, ConvergenceWarning, stacklevel=level)

    def _pipeline(self, examples: _engine.Data) -> tuple[dict, object]:
        composer, held = _composers.described(getattr(self, "composer", None) if self.degree > 1 else None)
        pipeline = self._settings(composer)
        columns = {"embedding": "embedding", **{name: name for name in examples.columns if name in ("weight", "seed")}}
        table = {"name": DATA, "loader": "memory", "params": {"table": examples.number}, "columns": columns}
        pipeline["data"] = [table]
        return pipeline, held

    def _settings(self, composer: dict | None) -> dict:
        """The pipeline without its data."""
        if not isinstance(self.degree, (int, np.integer)) or self.degree < 1:
            raise ValueError(f"`degree` must be a whole number at least 1, found {self.degree!r}")
        if self.threads is not None and not (isinstance(self.threads, (int, np.integer)) and self.threads >= 1):
            raise ValueError(f"`threads` must be None or a whole number at least 1, found {self.threads!r}")
        if self.normalize not in ("l2", "none", None):
            raise ValueError(f"`normalize` must be 'l2' or None, found {self.normalize!r}")
        pipeline = {
            "name": "fit",
            "seed": seed_of(self.random_state),
            "degree": int(self.degree),
            "space": {"normalize": self.normalize or "none", "distance": self.distance},
            "clusterer": [{"use": self._component, "params": self._component_params()}],
        }
        if composer is not None:
            pipeline["composer"] = composer
        return pipeline

    def _component_params(self) -> dict:
        """What differs from the component's own defaults, which it knows best, presets included."""
        params = {}
        for name, (theirs, default) in self._params.items():
            value = plain(getattr(self, name))
            if isinstance(value, float) and not np.isfinite(value):
                raise ValueError(f"`{name}` must be finite, found {value}")
            if value is not None and not (type(value) is type(default) and value == default):
                params[theirs] = value
        if self._singletons_as and self.n_singletons is not None:
            params[self._singletons_as] = {"k": plain(self.n_singletons)}
        return params

    def _read(self, fitted: _engine.Fitted, listener: Listener) -> None:
        facts = fitted.facts()
        self.labels_ = fitted.labels()
        self.params_ = json.loads(facts["params"])
        self.names_ = facts["names"]
        self.seconds_ = facts["seconds"]
        self.selection_ = json.loads(facts["selection"])
        if len(facts["distances"]):
            self.distances_ = facts["distances"]
        self._read_model(facts, listener, 6)

    # -- what was found

    def _fitted(self) -> _Fit:
        try:
            return vars(self)["_fit"]
        except KeyError:
            raise not_fitted(self) from None

    @property
    def sets_(self) -> list[tuple[int, ...]]:
        """The set of singleton clusters of every example; empty for one that belongs to none."""
        return _sets.tuples(self._fitted().fitted.sets())

    @property
    def label_sets_(self) -> list[tuple[int, ...]]:
        """The set of every label: first those that occur, then those that new examples may be given to as well."""
        return [tuple(members) for members in self._fitted().assigner().label_sets()]

    @property
    def memberships_(self):
        """Which example belongs to which singleton: a sparse matrix of 0 and 1."""
        from scipy.sparse import csr_array

        offsets, values = self._fitted().fitted.sets()
        shape = (len(offsets) - 1, self.n_singletons_)
        return csr_array((np.ones(len(values), np.int8), values, offsets), shape=shape)

    @property
    def clusters_(self) -> Table:
        """The clusters: label, set, size, exemplars and centroid."""
        return Table(self._fitted().fitted.clusters())

    # -- new examples

    def _new(self, X) -> _engine.Data:
        self._fitted()
        names = _inputs.feature_names(X)
        who, known = type(self).__name__, getattr(self, "feature_names_in_", None)
        if known is None and names is not None:
            warnings.warn(f"X has feature names, but {who} was fitted without feature names", UserWarning, stacklevel=3)
        elif known is not None and names is None and not _inputs.is_arrow(X):
            text = f"X does not have valid feature names, but {who} was fitted with feature names"
            warnings.warn(text, UserWarning, stacklevel=3)
        elif known is not None and names is not None and list(known) != list(names):
            raise ValueError(mismatch(list(known), list(names)))
        examples = _inputs.data(X, who)
        if examples.shape[1] != self.n_features_in_:
            text = f"X has {examples.shape[1]} features, but {who} is expecting {self.n_features_in_} features as input."
            raise ValueError(text)
        return examples

    def _assign(self, X, **options) -> dict:
        examples = self._new(X)
        return self._fitted().assigner(**options).assign(examples)

    def predict(self, X) -> np.ndarray:
        """The labels of new examples: positions in `label_sets_`, -1 for none of them."""
        return self._assign(X)["labels"]

    def predict_sets(self, X, *, degree=None, seen_only=False, novel=None) -> list[tuple[int, ...]]:
        """The sets of new examples.

        `seen_only` considers only sets that occurred in the fit, `degree` larger unions or smaller ones, and `novel=0.99` leaves
        out what is farther away than 99 % of the fit's own examples are.
        """
        options = {"degree": degree, "seen_only": seen_only or None, "novel": novel}
        options = {name: value for name, value in options.items() if value is not None}
        return _sets.tuples(self._assign(X, **options)["sets"])

    def transform(self, X) -> np.ndarray:
        """The distances of examples from every set of `label_sets_`."""
        examples = self._new(X)
        return self._fitted().assigner().transform(examples)

    def score_samples(self, X) -> np.ndarray:
        """How well each example is described: its log-density up to a constant, or minus its distance."""
        return self._assign(X)["score"]

    def score(self, X, y=None) -> float:
        """The mean of `score_samples`: more is better."""
        return float(np.mean(self.score_samples(X)))

    # -- the way to the command line

    def save(self, path, X, y=None, *, sample_weight=None, seeds=None, evaluators=("cri", "ari")) -> Path:
        """Saves the model as a run that `compflow report`, `assign` and `diff` read, and `compflow.load`.

        `X`, the examples that it was fitted to, go along, as do the weights and seeds that they had; with true sets `y`, the
        run is scored.
        """
        fit = self._fitted()
        if fit.held is not None:
            raise ValueError("a run cannot name a Python function as its composer; use a name, Bilinear or a plugin")
        examples = _inputs.data(X, type(self).__name__, sample_weight=sample_weight, seeds=seeds, truth=y)
        out = Path(path)
        if (out / "run.json").exists():
            raise FileExistsError(f"{out} holds a run already")
        # A link might lead to files of somebody else, among which these would be written.
        if (out / "inputs").is_symlink():
            raise FileExistsError(f"{out / 'inputs'} is a link, and no folder of ours: remove it, or choose another folder")
        inputs = (out / "inputs").resolve()
        inputs.mkdir(parents=True, exist_ok=True)
        examples.write_parquet(inputs / "examples.parquet")
        columns = {name: name for name in examples.columns}
        data = {"name": DATA, "loader": "parquet", "path": "examples.parquet", "columns": columns}
        pipeline = {**fit.pipeline, "name": out.resolve().name, "data": [data]}
        params = dict(pipeline["clusterer"][0]["params"])
        for option in self.selection_:
            params.update(option["params"] if option["chosen"] else {})
        pipeline["clusterer"] = [{"use": self._component, "params": params}]
        if y is not None:
            pipeline["evaluator"] = [{"use": name} for name in evaluators]
        from ._toml import dumps

        (inputs / "pipeline.toml").write_text(dumps(pipeline))
        fit.fitted.save(json.dumps(pipeline), str(inputs), str(out))
        return out

    # -- pickling: the engine's result as bytes

    def __getstate__(self) -> dict:
        state = dict(vars(self))
        fit = state.pop("_fit", None)
        if isinstance(fit, _Fit):
            state["_fit"] = (fit.fitted.to_bytes(), fit.pipeline)
        elif fit is not None:
            state["_fit"] = fit
        return state

    def __setstate__(self, state: dict) -> None:
        state = dict(state)
        fit = state.pop("_fit", None)
        vars(self).update(state)
        if isinstance(fit, tuple):
            kept, pipeline = fit
            pipeline, held = dict(pipeline), None
            if pipeline.get("composer", {}).get("use") == "python":
                pipeline["composer"], held = _composers.described(self.composer)
            fitted = _engine.Fitted.from_bytes(kept, json.dumps(pipeline), os.getcwd(), threads=self.threads)
            self._fit = _Fit(fitted, pipeline, held)
        elif fit is not None:
            self._fit = fit


def seed_of(random_state) -> int:
    """A seed from whatever scikit-learn takes."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if not isinstance(random_state, (int, np.integer)) or random_state < 0:
        raise ValueError(f"`random_state` must be None, a whole number at least 0 or a generator, found {random_state!r}")
    return int(random_state)


def plain(value):
    """A parameter as JSON has it."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [plain(inner) for inner in value]
    if isinstance(value, Clusterer):
        return {"use": value._component, "params": value._component_params()}
    return value


def mismatch(known: list[str], names: list[str]) -> str:
    """In scikit-learn's words, how names differ."""
    text = "The feature names should match those that were passed during fit.\n"
    unexpected, missing = sorted(set(names) - set(known)), sorted(set(known) - set(names))
    for title, found in (("unseen at fit time", unexpected), ("seen at fit time, yet now missing", missing)):
        if found:
            text += f"Feature names {title}:\n" + "".join(f"- {name}\n" for name in found[:5])
            text += "- ...\n" if len(found) > 5 else ""
    if not unexpected and not missing:
        text += "Feature names must be in the same order as they were in fit.\n"
    return text
