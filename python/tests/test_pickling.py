"""Models that are kept and come back."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import compflow


def own_max(left, right):
    return np.maximum(left, right)


@pytest.mark.parametrize("name", ["CKM", "CGM", "CAP", "GCR", "AC", "FCM", "GMM", "KMeans", "AP"])
@pytest.mark.filterwarnings("ignore")
def test_a_model_comes_back_whole(name, X, tmp_path):
    number = {"CAP": {}, "AP": {}, "GCR": {"base": compflow.AC(6)}}.get(name, {"n_singletons": 3})
    model = getattr(compflow, name)(**number).fit(X)
    back = pickle.loads(pickle.dumps(model))
    assert type(back) is type(model) and repr(back) == repr(model)
    assert back.sets_ == model.sets_ and back.label_sets_ == model.label_sets_
    new = X + np.float32(0.02)
    assert (back.predict(new) == model.predict(new)).all()
    assert back.transform(new).tobytes() == model.transform(new).tobytes()
    assert copy.deepcopy(model).sets_ == model.sets_


def test_it_comes_back_in_another_process(X, tmp_path):
    model = compflow.CKM(3, restarts=5).fit(X)
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(model))
    np.save(tmp_path / "X.npy", X)
    code = "import pickle, numpy; model = pickle.load(open('model.pickle', 'rb')); print(model.predict(numpy.load('X.npy')).tolist())"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(model.labels_.tolist())


def test_a_function_comes_back_if_python_can_keep_it(X):
    model = compflow.CAP(composer=own_max).fit(X)
    assert (pickle.loads(pickle.dumps(model)).predict(X) == model.labels_).all()
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(compflow.CAP(composer=lambda a, b: a).fit(X))


def test_bytes_that_are_damaged_are_refused(X):
    from compflow import _engine

    model = compflow.CKM(3, restarts=5).fit(X)
    kept, pipeline = model.__getstate__()["_fit"]
    for wrong in (kept[:-1], b"", kept[:40] + b"?" + kept[41:]):
        with pytest.raises(ValueError, match="no fitted clusterer"):
            _engine.Fitted.from_bytes(wrong, "{}", ".")
