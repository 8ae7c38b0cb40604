"""scikit-learn's own checks, and what people do with its estimators."""

import numpy as np
import pytest

import compflow

sklearn = pytest.importorskip("sklearn")
from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV, KFold  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

NAMES = ["CKM", "CGM", "CAP", "GCR", "AP", "AC", "KMeans", "FCM", "GMM"]

#: Small, so that the checks are fast: they are about manners.
SMALL = {
    "CKM": {"n_singletons": 2, "restarts": 5},
    "CGM": {"n_singletons": 2, "restarts": 5},
    "GCR": {"base": compflow.AC(3)},
    "AC": {"n_singletons": 2},
    "KMeans": {"n_singletons": 2},
    "FCM": {"n_singletons": 2},
    "GMM": {"n_singletons": 2},
}

#: scikit-learn expects the same of its own KMeans: starts are drawn from the rows, so that copies of a row draw others than
#: a weight does. Here labels are also numbered in the order of the rows, which that check shuffles.
WEIGHTS = {"check_sample_weight_equivalence_on_dense_data": "starts are drawn from the rows, and labels follow their order"}
EXPECTED = {name: WEIGHTS for name in ("CKM", "CGM", "KMeans", "GMM")}


def failures(model, expected):
    """The checks that fail and are not expected to."""
    results = check_estimator(model, expected_failed_checks=expected, on_fail=None, on_skip=None)
    assert len(results) > 40
    return [(one["check_name"], repr(one["exception"])) for one in results if one["status"] == "failed"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_the_checks_pass_at_degree_1(name):
    model = getattr(compflow, name)(**SMALL.get(name, {}), degree=1, normalize=None)
    assert failures(model, EXPECTED.get(name, {})) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_the_checks_pass_at_degree_2(name):
    model = getattr(compflow, name)(**SMALL.get(name, {}), normalize=None)
    assert failures(model, EXPECTED.get(name, {})) == []


def test_they_clone_and_search_and_go_into_pipelines(X):
    model = compflow.CKM(3, restarts=5, composer=compflow.Bilinear("nowhere"))
    copy = clone(model)
    assert copy.get_params() == model.get_params() and not hasattr(copy, "labels_")
    halves = KFold(2, shuffle=True, random_state=0)
    search = GridSearchCV(compflow.KMeans(restarts=2, degree=1), {"n_singletons": [2, 6]}, cv=halves).fit(X)
    assert search.best_params_ == {"n_singletons": 6}
    labels = make_pipeline(StandardScaler(), compflow.KMeans(6)).fit_predict(X)
    assert len(set(labels)) == 6


def test_weights_count_as_copies_where_the_start_does_not_matter(X):
    """What the check above is after: the same centres, whatever they are called."""
    weights = np.arange(len(X)) % 3
    weighted = compflow.KMeans(6, degree=1, normalize=None).fit(X, sample_weight=weights)
    copied = compflow.KMeans(6, degree=1, normalize=None).fit(np.repeat(X, weights, axis=0))
    centres = [np.array(sorted(model.clusters_["centroid"])) for model in (weighted, copied)]
    np.testing.assert_allclose(*centres, atol=1e-5)


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
