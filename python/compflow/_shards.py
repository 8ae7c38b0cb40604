"""Examples in files, too many for one machine: every pass over them is a `map` of somebody else's.

`map(function, items)` may be that of Dask's client, of an executor of `concurrent.futures`, of `multiprocessing`, joblib, mpi4py or
Ray: it returns what the function returned, or futures of it, in any case in the order of the items. What is sent is small: a shard says
where examples are, and what comes back is what they add up to. The result does not depend on who did what.
"""

from __future__ import annotations

import builtins
import json
import operator
import os
from functools import partial as bound
from pathlib import Path

from . import _composers, _engine, _folders  # noqa: F401  (a worker may import nothing else)


def add_up(job: bytes, state: bytes, dim: int, threads: int, shard: bytes) -> bytes:
    """What a shard adds up to; done wherever `map` has it done."""
    return _engine.shard_partial(job, state, shard, dim, threads)


def label(model: bytes, kit: bytes, threads: int, shard_and_file: tuple[bytes, str]) -> tuple[str, int]:
    """Labels the examples of a shard; returns the file and the number of its rows."""
    shard, file = shard_and_file
    return file, _engine.shard_assign(model, kit, shard, file, threads)


def results(found, shards: list[bytes], doing: str, arrived) -> list:
    """What a map returned for these shards: values, or futures; `arrived` is told how many of them."""
    got, left = [], iter(found)
    while True:
        try:
            one = next(left, left)
            if one is left:
                return got
            got.append(one.result() if callable(getattr(one, "result", None)) else one)
            arrived(len(got))
        except Exception as error:
            where = pieces_of(shards[len(got)]) if len(got) < len(shards) else []
            # What we say ourselves names the file. That all who tried are dead, for one, does not.
            if not where or any(path in str(error) for path, _ in where):
                raise
            rows = "; ".join(f"{path}, {rows}" for path, rows in where)
            raise RuntimeError(f"a shard cannot be {doing}: {rows}: {type(error).__name__}: {error}") from error


def pieces_of(shard: bytes) -> list[tuple[str, str]]:
    """Where the examples of a shard are."""
    pieces = json.loads(shard)["pieces"]
    return [(one["path"], f"rows {one['first']} to {one['first'] + one['rows'] - 1}") for one in pieces]


def count_of(shards, files: list[str]) -> int:
    """How many shards are wanted."""
    if shards is None:
        return max(len(files), 4 * (os.cpu_count() or 1))
    try:
        count = operator.index(shards)
    except TypeError:
        count = 0
    if count < 1:
        raise ValueError(f"`shards` must be None or a whole number at least 1, found {shards!r}")
    return count


def files_of(paths, loader) -> list[str]:
    """Files by name, by pattern or by folder, as a run with such a path and loader takes them."""
    named = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files = []
    for path in map(os.fspath, named):
        found = _engine.shard_files(path, loader["name"] if isinstance(loader, dict) else loader)
        if not found:
            raise FileNotFoundError(f"no file matches {path}")
        if gone := [file for file in found if not os.path.exists(file)]:
            raise FileNotFoundError(f"there is no file {gone[0]}")
        files += map(str, found)
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
    files = files_of(paths, loader)
    count = count_of(shards, files)
    job = job_of(estimator, data, files, loader, columns)
    threads = estimator.threads or 1
    layout = _engine.shard_layout(job, files, count)
    _, dim, pieces = layout

    def one_pass(state: bytes) -> list[bytes]:
        arrived = listener.begin(len(pieces))
        summed = (map or builtins.map)(bound(add_up, job, state, dim, threads), pieces)
        return results(summed, pieces, "summed up", arrived)

    return _engine.shard_fit(job, layout, one_pass, threads=estimator.threads, listener=listener)


def assign(model: bytes, paths, out, map, *, shards, threads, listener) -> list[Path]:
    """Labels the examples of files, a Parquet file for each shard."""
    facts = _engine.shard_facts(model)
    files = files_of(paths, json.loads(facts["job"])["loader"])
    count = count_of(shards, files)
    # Links are not followed, as they may lead elsewhere where the labels are written.
    folder = Path(out).absolute()
    _, dim, pieces = _engine.shard_layout(facts["job"], files, count)
    known = facts["shape"][1]
    if dim != known:
        raise ValueError(f"the files have {dim} features, but the model is expecting {known} features as input.")
    targets = [str(folder / f"part-{at:05}.parquet") for at in range(len(pieces))]
    require_own(folder, targets, files)
    folder.mkdir(parents=True, exist_ok=True)
    arrived = listener.begin(len(pieces))
    labelled = (map or builtins.map)(bound(label, model, _engine.shard_kit(model), threads or 1), list(zip(pieces, targets)))
    return [Path(file) for file, _ in results(labelled, pieces, "labelled", arrived)]


def require_own(folder: Path, targets: list[str], files: list[str]) -> None:
    """Labels neither overwrite the examples nor lie beside those of an earlier call, with which they would be read."""
    examples = set(map(os.path.realpath, files))
    if over := [target for target in targets if os.path.realpath(target) in examples]:
        raise ValueError(f"{over[0]} has examples, and labels would take its place: choose another folder for them")
    found = set(map(str, folder.glob("part-*.parquet"))) - set(targets)
    others = sorted(file for file in found if os.path.realpath(file) not in examples)
    if others:
        which = others[0] if len(others) == 1 else f"{others[0]} and {len(others) - 1} more"
        raise ValueError(
            f"{which} would be taken for labels of this call, which writes {len(targets)} files: remove what an earlier one"
            " has left, or choose another folder"
        )
