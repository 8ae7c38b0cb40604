"""Whole pipelines, and what they leave behind."""

from __future__ import annotations

import json
import os
import subprocess
from html import escape
from pathlib import Path

import numpy as np

from . import _engine, _folders, _inputs, _sets
from ._listener import Listener
from ._table import Table, shown


def run(
    pipeline: str | os.PathLike | dict,
    *,
    out: str | os.PathLike | None = None,
    data: dict | None = None,
    set: dict | None = None,
    only: list[str] | tuple[str, ...] = (),
    jobs: int | None = None,
    threads: int | None = None,
    fresh: bool = False,
    strict: bool = False,
    verbose: bool = False,
) -> Results:
    """Runs a pipeline: a file, or a dictionary of what one says. Cells that an earlier run has kept are not computed again.

    `data` are matrices or tables in memory by the name of the pipeline's data, which then needs no loader; a pair is examples
    and their true sets. `set` is laid over the pipeline: `{"clusterer.CAP.damping": 0.9}`.

    >>> import tempfile
    >>> pipeline = {
    ...     "name": "first",
    ...     "data": [{"name": "points", "loader": "synthetic", "params": {"n": 60}}],
    ...     "composer": {"use": "max"},
    ...     "clusterer": [{"use": "ckm", "params": {"k": 3}}],
    ...     "evaluator": [{"use": "cri"}],
    ... }
    >>> results = run(pipeline, out=tempfile.mkdtemp() + "/first")
    >>> results.metrics.column_names
    ['data', 'trial', 'clusterer', 'metric', 'value']
    """
    held = []
    arguments: dict = {"folder": os.getcwd()}
    if isinstance(pipeline, dict):
        pipeline = json.loads(json.dumps(pipeline))
        for name, given in (data or {}).items():
            held.append(in_memory(pipeline, name, given))
        arguments["json"] = json.dumps(pipeline)
    else:
        if data:
            raise ValueError("data in memory goes with a pipeline that is a dictionary; read the file with tomllib")
        arguments["file"] = os.fspath(pipeline)
    listener = Listener("cells", verbose)
    settings = [f"{key}={json.dumps(value)}" for key, value in (set or {}).items()]
    try:
        folder, cells, failed = _engine.run(
            **arguments,
            out=None if out is None else os.fspath(out),
            set=settings,
            only=list(only),
            jobs=jobs,
            threads=threads,
            fresh=fresh,
            strict=strict,
            listener=listener,
        )
    finally:
        listener.close()
    results = Results(folder)
    if failed:
        errors = [text for text in results.runs["error"] if text]
        raise RuntimeError(f"{failed} of {cells} cells failed, the first because: {errors[0] if errors else 'unknown'}")
    return results


def in_memory(pipeline: dict, name: str, given) -> _engine.Data:
    """Puts data that is in memory in the place of a `[[data]]` table."""
    examples, truth = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    table = _inputs.data(examples, "run", truth=truth)
    described = next((one for one in pipeline.setdefault("data", []) if one.get("name") == name), None)
    if described is None:
        described = {"name": name}
        pipeline["data"].append(described)
    columns = {column: column for column in table.columns}
    described.update({"loader": "memory", "params": {"table": table.number}, "columns": columns})
    return table


class Results:
    """The folder that a run has left: tables by name, as `results.summary`, and `report()`."""

    _TABLES = (
        "runs",
        "metrics",
        "summary",
        "assignments",
        "clusters",
        "singletons",
        "densities",
        "factors",
        "selection",
        "memberships",
        "traces",
    )

    def __init__(self, folder: str | os.PathLike):
        self.folder = Path(folder)
        if not (self.folder / "run.json").is_file():
            raise FileNotFoundError(f"{self.folder} is no results folder: it has no run.json")

    @property
    def record(self) -> dict:
        """`run.json`: the pipeline, versions, hashes, times."""
        return json.loads((self.folder / "run.json").read_text())

    def table(self, name: str) -> Table:
        """A table by name; see docs/tables.md for their columns."""
        path = self.folder / f"{name}.parquet"
        if not path.is_file():
            there = ", ".join(sorted(file.stem for file in self.folder.glob("*.parquet")))
            raise FileNotFoundError(f"{self.folder} has no table {name!r}; there are {there}")
        return Table(_engine.read_table(str(path)))

    def __getattr__(self, name: str) -> Table:
        if name in Results._TABLES:
            return self.table(name)
        raise AttributeError(f"'Results' object has no attribute {name!r}")

    def __dir__(self):
        return [*super().__dir__(), *Results._TABLES]

    def __repr__(self) -> str:
        rows = [f"Results of {self.record.get('name')} in {self.folder}"]
        for (data, clusterer), scores in self._scores().items():
            rows.append(f"  {data} {clusterer}: " + ", ".join(f"{metric} {text}" for metric, (text, _) in scores.items()))
        return "\n".join(rows)

    def _scores(self) -> dict:
        """By data and clusterer: metrics, each as text and whether it is the best."""
        summary = self.summary.to_dict()
        scores: dict = {}
        columns = ("data", "clusterer", "metric", "mean", "se", "best")
        for data, clusterer, metric, mean, error, best in zip(*(summary[name] for name in columns)):
            text = shown(mean) if error is None else f"{shown(mean)} ({error:.2g})"
            scores.setdefault((data, clusterer), {})[metric] = (text, bool(best))
        return scores

    def _repr_html_(self) -> str:
        scores = self._scores()
        metrics = list(dict.fromkeys(metric for row in scores.values() for metric in row))
        head = "".join(f"<th>{escape(name)}</th>" for name in ("data", "clusterer", *metrics))
        body = ""
        for (data, clusterer), row in scores.items():
            cells = [f"<td>{escape(data)}</td><td>{escape(clusterer)}</td>"]
            for metric in metrics:
                text, best = row.get(metric, ("", False))
                cells.append(f"<td><b>{escape(text)}</b></td>" if best else f"<td>{escape(text)}</td>")
            body += f"<tr>{''.join(cells)}</tr>"
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def report(self, out: str | os.PathLike | None = None) -> Report:
        """Makes the report, one HTML page, and shows it in a notebook."""
        out = Path(out) if out is not None else self.folder / "report.html"
        command = [_folders.executable(), "report", str(self.folder), "--out", str(out)]
        environment = {**os.environ, "COMPFLOW_PLUGIN_PATH": os.pathsep.join(map(str, _folders.search_path()))}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return Report(out)


class Report:
    """A page; notebooks show it."""

    def __init__(self, path: Path):
        self.path = path

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"Report({str(self.path)!r})"

    def _repr_html_(self) -> str:
        page = escape(self.path.read_text(encoding="utf-8"), quote=True)
        return f'<iframe srcdoc="{page}" width="100%" height="800" style="border: 0"></iframe>'


class Run:
    """One cell of a run, ready for new examples: what `load` returns."""

    def __init__(self, folder, assigner: _engine.Assigner, cell: tuple[str, int, str], arguments: dict):
        self.results = Results(folder)
        self.data, self.trial, self.clusterer = cell
        self._assigner, self._arguments = assigner, arguments

    def __repr__(self) -> str:
        return f"Run of {self.clusterer} on {self.data}, trial {self.trial}, in {self.results.folder}"

    def _rows(self, table: str) -> dict[str, list]:
        columns = self.results.table(table).to_dict()
        key = zip(columns["data"], columns["trial"], columns["clusterer"])
        rows = [at for at, found in enumerate(key) if found == (self.data, self.trial, self.clusterer)]
        return {name: [values[at] for at in rows] for name, values in columns.items()}

    @property
    def sets_(self) -> list[tuple[int, ...]]:
        """The sets of the run's own examples."""
        return [tuple(members) for members in self._rows("assignments")["clusters"]]

    @property
    def labels_(self) -> np.ndarray:
        """The labels of the run's own examples: positions in `label_sets_`."""
        numbers = {members: label for label, members in enumerate(self.label_sets_)}
        return np.asarray([numbers.get(members, -1) for members in self.sets_], np.int64)

    @property
    def ids_(self) -> list:
        """What the run's own examples are called."""
        return self._rows("assignments")["id"]

    @property
    def label_sets_(self) -> list[tuple[int, ...]]:
        """The set of every label."""
        return [tuple(members) for members in self._assigner.label_sets()]

    def _assign(self, X, **options) -> dict:
        examples = _inputs.data(X, "Run")
        if examples.shape[1] != self._assigner.dim:
            text = f"X has {examples.shape[1]} features, but the run is expecting {self._assigner.dim} features as input."
            raise ValueError(text)
        options = {name: value for name, value in options.items() if value}
        assigner = self._assigner
        if options:
            assigner, _ = _engine.open_run(str(self.results.folder), **{**self._arguments, **options})
        return assigner.assign(examples)

    def predict(self, X) -> np.ndarray:
        """The labels of new examples."""
        return self._assign(X)["labels"]

    def predict_sets(self, X, *, degree=None, seen_only=False, novel=None) -> list[tuple[int, ...]]:
        """The sets of new examples."""
        return _sets.tuples(self._assign(X, degree=degree, seen_only=seen_only, novel=novel)["sets"])

    def transform(self, X) -> np.ndarray:
        """The distances of examples from every set of `label_sets_`."""
        return self._assigner.transform(_inputs.data(X, "Run"))

    def score_samples(self, X) -> np.ndarray:
        """How well each example is described."""
        return self._assign(X)["score"]


def load(folder: str | os.PathLike, *, clusterer=None, data=None, trial=None, threads=None) -> Run:
    """Opens a cell of a run, whoever ran it, for new examples. What is not said must leave no choice."""
    arguments = {"clusterer": clusterer, "data": data, "trial": trial, "threads": threads}
    assigner, cell = _engine.open_run(os.fspath(folder), **arguments)
    return Run(folder, assigner, cell, arguments)


def assign(model, X, *, degree=None, seen_only=False, novel=None) -> dict[str, np.ndarray | list]:
    """Gives new examples to the clusters of a fitted estimator, or of a run that was `load`ed: sets, labels, and how surely.

    >>> import compflow, numpy as np
    >>> X = np.eye(4, dtype=np.float32).repeat(5, axis=0)
    >>> found = compflow.assign(compflow.KMeans(4).fit(X), X[:1])
    >>> found["sets"], found["distance"]
    ([(0,)], array([0.]))
    """
    options = {"degree": degree, "seen_only": seen_only or None, "novel": novel}
    found = model._assign(X, **{name: value for name, value in options.items() if value is not None})
    return {**found, "sets": _sets.tuples(found["sets"])}
