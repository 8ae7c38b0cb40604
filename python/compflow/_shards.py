"""Examples in files, too many for one machine: every pass over them is a `map` of somebody else's.

`map(function, items)` may be that of Dask's client, of an executor of `concurrent.futures`, of `multiprocessing`, joblib, mpi4py or
Ray: it returns what the function returned, or futures of it, in any case in the order of the items. What is sent is small: a shard says
where examples are, and what comes back is what they add up to. The result does not depend on who did what.
"""

from __future__ import annotations

import builtins
import glob
import json
import os
from functools import partial as bound
from pathlib import Path

from . import _composers, _engine, _folders  # noqa: F401  (a worker may import nothing else)


def add_up(job: bytes, state: bytes, dim: int, threads: int, shard: bytes) -> bytes:
    """What a shard adds up to; done wherever `map` has it done."""
    return _engine.shard_partial(job, state, shard, dim, threads)


def label(model: bytes, threads: int, shard_and_file: tuple[bytes, str]) -> tuple[str, int]:
    """Labels the examples of a shard; returns the file and the number of its rows."""
    shard, file = shard_and_file
    return file, _engine.shard_assign(model, shard, file, threads)


def results(found) -> list:
    """What a map returned: values, or futures."""
    return [one.result() if callable(getattr(one, "result", None)) else one for one in found]


def files_of(paths) -> list[str]:
    """Files by name or by pattern, in the order of their names."""
    named = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files = []
    for path in map(os.fspath, named):
        found = [path] if os.path.exists(path) or not glob.has_magic(path) else sorted(glob.glob(path))
        if not found:
            raise FileNotFoundError(f"no file matches {path}")
        files += [str(Path(file).resolve()) for file in found]
    if not files:
        raise ValueError("there are no files")
    return files


def loader_of(files: list[str]) -> str:
    """What reads these files."""
    (first, endings), name = _engine.shard_loader(files[0]), Path(files[0]).name
    if first is None:
        raise ValueError(f"{name}: expected a {endings} file; `loader` names what reads others")
    for file in files:
        if _engine.shard_loader(file)[0] != first:
            raise ValueError(f"{name} and {Path(file).name} are files of different kinds")
    return first


def job_of(estimator, data: str, files: list[str], loader, columns: dict) -> bytes:
    """What is to be done, as everybody is told it."""
    composer, held = _composers.described(getattr(estimator, "composer", None) if estimator.degree > 1 else None)
    if held is not None:
        raise ValueError("a Python function cannot be sent to others as a composer; use a name, Bilinear or a plugin")
    settings = estimator._settings(composer)
    used = settings["clusterer"][0]
    read = loader or loader_of(files)
    job = {
        "clusterer": {"name": used["use"], "params": used["params"]},
        "composer": composer and {"name": composer["use"], "params": composer.get("params", {})},
        "space": settings["space"],
        "degree": settings["degree"],
        "seed": _engine.shard_seed(settings["seed"], data, used["use"]),
        "loader": read if isinstance(read, dict) else {"name": read, "params": {}},
        "folder": os.getcwd(),
        **columns,
    }
    return json.dumps(job).encode()


class ShardFit:
    """What a fit of shards leaves behind, in the place of what one of examples in memory does."""

    held = None

    def __init__(self, model: bytes, threads: int | None):
        self.model, self.threads = model, threads
        self._assigner = None

    def assigner(self, **options) -> _engine.Assigner:
        """For new examples."""
        if options:
            raise ValueError(f"{', '.join(sorted(options))}: not known of a model of shards, which has no examples at hand")
        if self._assigner is None:
            self._assigner = _engine.shard_assigner(self.model, threads=self.threads)
        return self._assigner

    @property
    def fitted(self):
        raise AttributeError("the examples are in shards; `assign_shards` labels them")

    def __getstate__(self) -> dict:
        return {"model": self.model, "threads": self.threads, "_assigner": None}


def fit(estimator, data: str, paths, map, *, columns, loader, shards, listener) -> bytes:
    """Clusters the examples of files; returns the model."""
    files = files_of(paths)
    job = job_of(estimator, data, files, loader, columns)
    threads = estimator.threads or 1
    layout = _engine.shard_layout(job, files, shards or max(len(files), 4 * (os.cpu_count() or 1)))
    _, dim, pieces = layout

    def one_pass(state: bytes) -> list[bytes]:
        return results((map or builtins.map)(bound(add_up, job, state, dim, threads), pieces))

    return _engine.shard_fit(job, layout, one_pass, threads=estimator.threads, listener=listener)


def assign(model: bytes, paths, out, map, *, shards, threads) -> list[Path]:
    """Labels the examples of files, a Parquet file for each shard."""
    files = files_of(paths)
    folder = Path(out).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    facts = _engine.shard_facts(model)
    _, dim, pieces = _engine.shard_layout(facts["job"], files, shards or max(len(files), 4 * (os.cpu_count() or 1)))
    known = facts["shape"][1]
    if dim != known:
        raise ValueError(f"the files have {dim} features, but the model is expecting {known} features as input.")
    targets = [(piece, str(folder / f"part-{at:05}.parquet")) for at, piece in enumerate(pieces)]
    return [Path(file) for file, _ in results((map or builtins.map)(bound(label, model, threads or 1), targets))]
