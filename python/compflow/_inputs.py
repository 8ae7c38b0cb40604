"""Matrices of examples: what is taken, what is refused and why, and what is not copied."""

from __future__ import annotations

import numpy as np

from . import _engine, _sets


def is_arrow(X) -> bool:
    """Whether this is a table or column of pyarrow, Polars and the like. pandas has an Arrow interface only with pyarrow."""
    if isinstance(X, np.ndarray) or hasattr(X, "iloc"):
        return False
    return hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")


def matrix(X, who: str = "compflow") -> np.ndarray:
    """A C-contiguous float32 matrix; if `X` is one, it is `X` itself."""
    if _sets.is_sparse(X):
        text = "Sparse data was passed for X, but dense data is required. Use '.toarray()' to convert to a dense numpy array."
        raise TypeError(text)
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        row = np.argwhere(np.ma.getmaskarray(X))[0].tolist()
        raise ValueError(f"Input X has masked values, the first at {tuple(row)}: fill them in, or leave their rows out.")
    if hasattr(X, "iloc") and hasattr(X, "to_numpy"):
        X = X.to_numpy()
    given = np.asarray(X)
    if np.iscomplexobj(given):
        raise ValueError(f"Complex data not supported\n{given}\n")
    if given.dtype.kind in "mMV":
        raise TypeError(f"Input X holds {given.dtype}, which are no numbers.")
    if given.dtype.kind not in "fiub":
        # Objects may be numbers; what is none says so itself.
        try:
            given = given.astype(np.float64)
        except OverflowError:
            raise ValueError("Input X contains a whole number too large for dtype('float32').") from None
    if given.ndim != 2:
        if given.ndim == 0:
            raise ValueError(f"Expected 2D array, got scalar array instead:\narray={given}.")
        text = f"Expected 2D array, got {given.ndim}D array instead"
        if given.ndim == 1:
            text += ".\nReshape your data either using array.reshape(-1, 1) if your data has a single feature or "
            text += "array.reshape(1, -1) if it contains a single sample."
        raise ValueError(text)
    for size, what in zip(given.shape, ("sample", "feature")):
        if size == 0:
            shape = tuple(given.shape)
            text = f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required by {who}."
            raise ValueError(text)
    with np.errstate(over="ignore"):
        taken = np.ascontiguousarray(given, dtype=np.float32)
    require_finite(taken, given)
    return taken


def require_finite(taken: np.ndarray, given: np.ndarray) -> None:
    """Names the first number that is none."""
    # A sum is finite if all numbers are, but for very large ones, and needs no memory.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(taken.sum(dtype=np.float64)):
            return
    wrong = np.argwhere(~np.isfinite(taken))
    if len(wrong) == 0:
        return
    row, column = wrong[0].tolist()
    value = given[row, column]
    what = "NaN" if np.isnan(value) else "infinity or a value too large for dtype('float32')"
    raise ValueError(f"Input X contains {what}: row {row}, column {column} is {value}.")


def feature_names(X):
    """The names of the columns of a data frame, if all are texts."""
    if not hasattr(X, "iloc") or not hasattr(X, "columns"):
        return None
    names = np.asarray(X.columns, dtype=object)
    texts = [isinstance(name, str) for name in names]
    if any(texts) and not all(texts):
        kinds = sorted({type(name).__name__ for name in names})
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{kinds} as feature name / column name types. If you want feature names to be stored and validated, you must "
            "convert them all to strings, by using X.columns = X.columns.astype(str) for example. Otherwise you can remove "
            "feature / column names from your input data, or convert them all to a non-string data type."
        )
    return names if len(names) and all(texts) else None


def weights(sample_weight, n: int) -> np.ndarray | None:
    """One finite number of at least 0 for each example."""
    if sample_weight is None:
        return None
    numbers = np.asarray(sample_weight)
    if np.iscomplexobj(numbers):
        raise ValueError("Complex data not supported")
    if numbers.ndim == 0:
        numbers = np.full(n, numbers)
    if numbers.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if len(numbers) != n:
        raise ValueError(f"sample_weight.shape == {numbers.shape}, expected {(n,)}!")
    numbers = np.ascontiguousarray(numbers, dtype=np.float32)
    if not np.isfinite(numbers).all():
        raise ValueError("Input sample_weight contains NaN or infinity.")
    if (numbers < 0).any():
        raise ValueError("Negative values in data passed to `sample_weight`.")
    if not numbers.any():
        raise ValueError("every sample_weight is zero, so there is nothing to cluster")
    return numbers


def data(X, who: str, *, sample_weight=None, seeds=None, truth=None, trials=None, column=None) -> _engine.Data:
    """Examples for the engine."""
    embeddings = X if is_arrow(X) else matrix(X, who)
    plain = _engine.Data(embeddings, column=column)
    if all(extra is None for extra in (sample_weight, seeds, truth, trials)):
        return plain
    n = plain.shape[0]
    return _engine.Data(
        embeddings,
        column=column,
        weights=weights(sample_weight, n),
        seeds=None if seeds is None else _sets.listed(seeds, n, "seeds", partial=True),
        truth=None if truth is None else _sets.listed(truth, n, "the true sets"),
        trials=None if trials is None else np.ascontiguousarray(trials, dtype=np.uint32),
    )
