"""scikit-learn's own checks, and what people do with its estimators."""

import numpy as np
import pytest

import compflow

sklearn = pytest.importorskip("sklearn")
from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

NAMES = ["CKM", "CGM", "CAP", "GCR", "AP", "AC", "KMeans", "FCM", "GMM"]

#: Small, so that the checks are fast: they are about manners.
SMALL = {
    "CKM": {"n_singletons": 2, "restarts": 5},
    "CGM": {"n_singletons": 2, "restarts": 5},
    "AC": {"n_singletons": 2},
    "KMeans": {"n_singletons": 2},
    "FCM": {"n_singletons": 2},
    "GMM": {"n_singletons": 2},
}

WEIGHTS = "starts are drawn from the examples, so that weights and copies of examples start elsewhere"
EXPECTED_AT_ANY_DEGREE = {
    name: {
        "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    }
    for name in ("CKM", "CGM", "KMeans", "GMM")
}
EXPECTED_AT_DEGREE_2: dict[str, dict[str, str]] = {}


def failures(model, expected):
    """The checks that fail and are not expected to."""
    results = check_estimator(model, expected_failed_checks=expected, on_fail=None, on_skip=None)
    assert len(results) > 40
    return [(one["check_name"], repr(one["exception"])) for one in results if one["status"] == "failed"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_the_checks_pass_at_degree_1(name):
    model = getattr(compflow, name)(**SMALL.get(name, {}), degree=1, normalize=None)
    assert failures(model, EXPECTED_AT_ANY_DEGREE.get(name, {})) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_the_checks_pass_at_degree_2_but_for_a_few(name):
    model = getattr(compflow, name)(**SMALL.get(name, {}), normalize=None)
    expected = {**EXPECTED_AT_ANY_DEGREE.get(name, {}), **EXPECTED_AT_DEGREE_2.get(name, {})}
    assert failures(model, expected) == []


def test_they_clone_and_search_and_go_into_pipelines(X):
    model = compflow.CKM(3, restarts=5, composer=compflow.Bilinear("nowhere"))
    copy = clone(model)
    assert copy.get_params() == model.get_params() and not hasattr(copy, "labels_")
    search = GridSearchCV(compflow.KMeans(restarts=2, degree=1), {"n_singletons": [2, 6]}, cv=2).fit(X)
    assert search.best_params_ == {"n_singletons": 6}
    labels = make_pipeline(StandardScaler(), compflow.KMeans(6)).fit_predict(X)
    assert len(set(labels)) == 6


def test_that_it_is_not_fitted_is_said_in_their_words(X):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError, match="CKM instance is not fitted yet"):
        compflow.CKM(3).predict(X)
    assert not hasattr(compflow.CKM(3), "sets_")


def test_an_object_with_fit_predict_and_labels_is_all_that_topic_models_ask_for(X):
    """BERTopic calls `fit`, reads `labels_`, and calls `predict` on new documents."""
    model = compflow.CGM(3)
    model.fit(X, y=None)
    assert model.labels_.dtype == np.int64 and model.labels_.min() >= 0
    assert (model.predict(X) == model.labels_).all()
