"""Composition functions: names, files and Python's own."""

import numpy as np
import pytest

import compflow


def pull_max(left, right, grad):
    ours = left >= right
    return grad * ours, grad * ~ours


def test_a_python_function_does_what_the_library_does(X):
    own = compflow.Function(np.maximum, vjp=pull_max)
    named, ours = compflow.CKM(3, restarts=5).fit(X), compflow.CKM(3, restarts=5, composer=own).fit(X)
    assert ours.sets_ == named.sets_
    np.testing.assert_allclose(ours.objective_, named.objective_, rtol=1e-4)
    assert (ours.predict(X) == ours.labels_).all()
    assert compflow.CAP(composer=np.maximum).fit(X).sets_ == compflow.CAP().fit(X).sets_
    base = compflow.AC(6)
    named = compflow.GCR(base=base).fit(X)
    assert compflow.GCR(base=base, composer=lambda a, b: np.maximum(a, b)).fit(X).sets_ == named.sets_


def test_without_gradients_it_is_said_who_needs_them(X):
    with pytest.raises(ValueError, match="needs gradients, and the composer `python` has none"):
        compflow.CKM(3, composer=np.maximum).fit(X)


def test_what_a_function_raises_is_the_cause(X):
    def broken(left, right):
        raise ZeroDivisionError("no such union")

    with pytest.raises(ValueError, match="the composer raised ZeroDivisionError: no such union") as caught:
        compflow.CAP(composer=broken).fit(X)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    "returned, text",
    [
        (lambda a, b: a[:, :2], "must return an array of shape"),
        (lambda a, b: a[0], "must return an array of shape"),
        (lambda a, b: "union", "the composer raised ValueError"),
        (lambda a, b: None, "the composer raised TypeError"),
        (lambda a, b: a * np.nan, "gave NaN"),
    ],
)
def test_what_is_no_composition_is_refused(X, returned, text):
    with pytest.raises((ValueError, RuntimeError), match=text):
        compflow.CAP(composer=returned).fit(X)


def test_a_vjp_that_returns_one_matrix_is_refused(X):
    wrong = compflow.Function(np.maximum, vjp=lambda left, right, grad: grad)
    with pytest.raises(ValueError, match="vjp"):
        compflow.CKM(3, composer=wrong).fit(X)


def test_a_composer_is_learned_and_used(tmp_path, X, truth):
    judged = compflow.fit_composer(X, truth, tmp_path / "g.safetensors", normalize=None)
    assert judged["examples"] == 120 and judged["labels"] == 3
    assert (tmp_path / "g.safetensors").exists()
    assert {one["name"] for one in judged["composers"]} >= {"max", "sum", "mean"}
    model = compflow.CKM(3, restarts=5, composer=compflow.Bilinear(tmp_path / "g.safetensors")).fit(X)
    assert compflow.metrics.cri(truth, model.sets_) > 0.95
    assert compflow.CKM(3, restarts=5, composer=judged.composer).fit(X).n_features_in_ == 8
    with pytest.raises(ValueError, match="true sets: there are 2 for 120 examples"):
        compflow.fit_composer(X, [(0,), (1,)], tmp_path / "g.safetensors")
    with pytest.raises(ValueError):
        compflow.fit_composer(X, [(0,)] * 120, tmp_path / "h.safetensors")
