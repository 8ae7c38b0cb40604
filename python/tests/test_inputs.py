"""What examples may come as."""

import numpy as np
import pytest

import compflow


@pytest.fixture(scope="module")
def expected(X):
    return compflow.CKM(3, restarts=5).fit(X).labels_


def fitted(X, **fit):
    return compflow.CKM(3, restarts=5).fit(X, **fit).labels_


def test_numpy_of_any_layout(X, expected):
    for given in (X.astype(np.float64), np.asfortranarray(X), X[:, ::-1][:, ::-1], X.tolist(), X.astype(object)):
        assert (fitted(given) == expected).all()


def test_arrow_of_any_shape(X, expected):
    pa = pytest.importorskip("pyarrow")
    lists = pa.array(X.tolist(), pa.list_(pa.float32()))
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), X.shape[1])
    ids = pa.array(range(len(X)))
    chunked = pa.chunked_array([fixed[:50], fixed[50:]])
    wide = pa.table({f"x{at}": X[:, at] for at in range(X.shape[1])})
    for given in (lists, fixed, chunked, wide, pa.table({"id": ids, "embedding": lists}), lists.cast(pa.large_list(pa.float64()))):
        assert (fitted(given) == expected).all()
    assert (compflow.CKM(3, restarts=5).fit(fixed).predict(wide) == expected).all()
    with pytest.raises(ValueError, match="several columns hold lists: a, b"):
        fitted(pa.table({"a": lists, "b": fixed}))
    with pytest.raises(ValueError, match="row 1: the embedding has another length"):
        fitted(pa.array([[1.0, 2.0], [1.0]]))
    with pytest.raises(ValueError, match="null"):
        fitted(pa.array([[1.0, 2.0], None]))
    with pytest.raises(ValueError, match="must be numbers"):
        fitted(pa.table({"name": ["a", "b"]}))


def test_polars_and_pandas(X, expected):
    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    names = [f"x{at}" for at in range(X.shape[1])]
    for given in (
        polars.DataFrame({"embedding": X}),
        polars.DataFrame({"embedding": X.tolist()}),
        polars.DataFrame(X, schema=names),
        polars.Series("embedding", X),
        pandas.DataFrame(X, columns=names),
        pandas.DataFrame(X),
    ):
        assert (fitted(given) == expected).all()
    model = compflow.CKM(3, restarts=5).fit(pandas.DataFrame(X, columns=names))
    assert list(model.feature_names_in_) == names
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        model.predict(pandas.DataFrame(X, columns=names[::-1]))


def test_the_matrix_is_not_copied():
    """A copy would show in how much the process grows."""
    import resource

    X = np.random.default_rng(0).normal(size=(400_000, 64)).astype(np.float32)
    compflow.KMeans(2, degree=1, normalize=None, restarts=1, max_iter=1, init="random", threads=1).fit(X[:1000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    examples = compflow._inputs.data(X, "test")
    assert examples.shape == X.shape
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert grown < X.nbytes / 4, f"{grown} of {X.nbytes}"
    # What is lent is the matrix itself: it has one more reference as long as it is.
    import sys

    lent = sys.getrefcount(X)
    del examples
    assert sys.getrefcount(X) == lent - 1


def test_a_matrix_is_let_go_after_the_fit(X):
    import sys

    own = X.copy()
    before = sys.getrefcount(own)
    model = compflow.CKM(3, restarts=2).fit(own)
    assert sys.getrefcount(own) == before
    own[:] = 7
    assert (model.predict(X) == model.labels_).all()


def test_weights_and_seeds(X):
    plain = compflow.KMeans(6, degree=1).fit(X)
    assert (compflow.KMeans(6, degree=1).fit(X, sample_weight=np.ones(len(X))).labels_ == plain.labels_).all()
    seeds = [None] * len(X)
    seeds[0], seeds[25], seeds[61] = ("b",), ["a"], {"a", "b"}
    model = compflow.CKM(3, restarts=5).fit(X, seeds=seeds)
    assert model.names_[:2] == ["a", "b"]
    assert model.sets_[0] == (1,) and model.sets_[25] == (0,) and model.sets_[61] == (0, 1)
    with pytest.raises(TypeError):
        compflow.AP().fit(X, sample_weight=np.ones(len(X)))
    for weight, text in (([1.0] * 3, "expected"), (-np.ones(len(X)), "Negative"), (np.full(len(X), np.nan), "NaN")):
        with pytest.raises(ValueError, match=text):
            compflow.KMeans(3).fit(X, sample_weight=weight)


BAD = {
    "nan": (np.array([[1.0, np.nan]]), ValueError, "contains NaN: row 0, column 1"),
    "infinite": (np.array([[1.0, 2.0], [np.inf, 0.0]]), ValueError, "contains infinity.*row 1, column 0"),
    "too large": (np.array([[1e300, 1.0]]), ValueError, "too large for dtype"),
    "huge integers": ([[10**400, 1]], ValueError, "too large for dtype"),
    "dates": (np.array([["2026-01-01"]] * 3, "datetime64[D]"), TypeError, "no numbers"),
    "masked": (np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 0], [0, 1]]), ValueError, r"masked.*\(1, 1\)"),
    "large integers": ([[2**70, 1], [1, 2], [3, 1]], None, None),
    "1-D": (np.ones(5), ValueError, "Expected 2D array, got 1D array instead"),
    "3-D": (np.ones((2, 2, 2)), ValueError, "Expected 2D array, got 3D array instead"),
    "scalar": (3.0, ValueError, "got scalar array"),
    "no rows": (np.ones((0, 3)), ValueError, r"0 sample\(s\) \(shape=\(0, 3\)\)"),
    "no columns": (np.ones((3, 0)), ValueError, r"0 feature\(s\) \(shape=\(3, 0\)\)"),
    "complex": (np.ones((3, 2), complex), ValueError, "Complex data not supported"),
    "texts": (np.array([["a", "b"]]), ValueError, "could not convert"),
    "objects": (np.array([[{}, 1]], dtype=object), TypeError, "argument must be"),
    "nothing": (None, (ValueError, TypeError), None),
}


@pytest.mark.parametrize("what", BAD)
@pytest.mark.filterwarnings("ignore")
def test_what_is_no_matrix_is_refused_in_words(what):
    given, error, text = BAD[what]
    if error is None:
        compflow.KMeans(2, normalize=None).fit(given)
        return
    for call in (compflow.KMeans(1).fit, compflow.KMeans(1).fit(np.ones((2, 2))).predict):
        with pytest.raises(error, match=text):
            call(given)


def test_sparse_matrices_are_refused():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="dense data is required"):
        compflow.KMeans(2).fit(sparse.csr_array(np.eye(3)))


def test_parameters_that_cannot_be_are_refused_in_words(X):
    for params, text in (
        ({"n_singletons": 0}, "`n_singletons` must be a whole number at least 1, found 0"),
        ({"n_singletons": 500}, "to find 500 clusters, and data `data` has 120 examples.*`n_singletons` can be at most 120"),
        ({"n_singletons": 3, "optimizer": "sdg"}, "optimizer"),
        ({"n_singletons": 3, "degree": 0}, "`degree` must be a whole number at least 1"),
        ({"n_singletons": 3, "normalize": "max"}, "`normalize` must be 'l2' or None"),
        ({"n_singletons": 3, "composer": "mox"}, "there is no composer named `mox`.*did you mean `max`"),
        ({"n_singletons": 3, "random_state": -1}, "`random_state`"),
        ({"n_singletons": 3, "threads": 0}, "`threads` must be None or a whole number at least 1, found 0"),
        ({"n_singletons": float("nan")}, "`n_singletons` must be finite, found nan"),
        ({"n_singletons": 3, "composer": compflow.Bilinear("nowhere.safetensors")}, "nowhere.safetensors"),
    ):
        with pytest.raises(ValueError, match=text):
            compflow.CKM(**params).fit(X)
    with pytest.raises(TypeError, match="composer must be a name"):
        compflow.CKM(3, composer=3).fit(X)
    with pytest.raises(ValueError, match="X has 3 features, but CKM is expecting 8 features"):
        compflow.CKM(3, restarts=2).fit(X).predict(X[:, :3])
    with pytest.raises(ValueError, match="there is no clusterer named 'kmeens'"):
        compflow.clusterer("kmeens")
