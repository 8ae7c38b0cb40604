"""Sets of labels in all the forms that people have them in, and as the engine takes them: two arrays."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from . import _engine

#: Where every set ends, and all members one after the other.
Flat = tuple[np.ndarray, np.ndarray]


def tuples(flat: Flat) -> list[tuple[int, ...]]:
    """The sets as tuples."""
    offsets, values = flat[0].tolist(), flat[1].tolist()
    return [tuple(values[start:end]) for start, end in zip(offsets, offsets[1:])]


def is_sparse(thing) -> bool:
    """Whether this is one of scipy's sparse matrices, without importing it."""
    return hasattr(thing, "tocsr") and hasattr(thing, "nnz")


def members(entry) -> list:
    """The members of one set: of a collection, or of a single label."""
    if isinstance(entry, (str, bytes)) or not isinstance(entry, Iterable):
        return [entry]
    return list(entry)


def flatten(sets, what: str = "the sets") -> Flat:
    """Sets from lists of sets, a 0/1 matrix, a sparse one, an array of labels or an Arrow column."""
    if is_sparse(sets):
        matrix = sets.tocsr(copy=True)
        matrix.eliminate_zeros()
        return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    if isinstance(sets, np.ndarray) and sets.ndim == 2:
        if sets.dtype != bool and not np.isin(sets, (0, 1)).all():
            raise ValueError(f"{what}: a matrix must be an indicator of 0 and 1")
        rows, columns = np.nonzero(sets)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(sets)))])
        return offsets.astype(np.int64), columns.astype(np.int64)
    if not isinstance(sets, (np.ndarray, list, tuple)) and (
        hasattr(sets, "__arrow_c_array__") or hasattr(sets, "__arrow_c_stream__")
    ):
        return _engine.sets_of_arrow(sets)
    if isinstance(sets, np.ndarray) and sets.ndim != 1:
        raise ValueError(f"{what}: expected one set for each example, found an array of {sets.ndim} dimensions")
    numbers: dict = {}
    offsets, values = [0], []
    for entry in sets:
        for member in members(entry):
            if member is None or member != member:
                raise ValueError(f"{what}: the set of example {len(offsets) - 1} has {member!r} in it")
            values.append(numbers.setdefault(member, len(numbers)))
        offsets.append(len(values))
    return np.asarray(offsets, np.int64), np.asarray(values, np.int64)


def listed(sets, n: int, what: str, partial: bool = False) -> list[list | None]:
    """Sets as lists of one kind of member, integers or strings, for a table; `None` where nothing is known."""
    if is_sparse(sets) or (isinstance(sets, np.ndarray) and sets.ndim == 2):
        sets = tuples(flatten(sets, what))
    elif not isinstance(sets, (np.ndarray, list, tuple)) and hasattr(sets, "to_list"):
        sets = sets.to_list()
    elif not isinstance(sets, (np.ndarray, list, tuple)) and hasattr(sets, "to_pylist"):
        sets = sets.to_pylist()
    rows: list[list | None] = []
    for entry in sets:
        unknown = entry is None or (isinstance(entry, float) and entry != entry)
        if unknown and not partial:
            raise ValueError(f"{what}: the set of example {len(rows)} is missing")
        rows.append(None if unknown else members(entry))
    if len(rows) != n:
        raise ValueError(f"{what}: there are {len(rows)} for {n} examples")
    known = [member for row in rows if row is not None for member in row]
    if all(isinstance(member, (int, np.integer)) and not isinstance(member, bool) for member in known):
        return [None if row is None else [int(member) for member in row] for row in rows]
    return [None if row is None else [str(member) for member in row] for row in rows]
