"""scikit-learn's own checks of estimators, with a graph made for whatever data they bring."""

import warnings

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

import unspool as us
from unspool import models
from unspool.estimator import GraphDenoiser, NodeClassifier, NodeRegressor

pytestmark = pytest.mark.long


def chain(x):
    """A line through the rows of x: the checks know no graphs."""
    rows = x.shape[0] if hasattr(x, "shape") else len(np.asarray(x))
    return us.Graph.from_edges(np.stack([np.arange(rows - 1), np.arange(1, rows)]), nodes=max(rows, 1), directed=False)


class Chained:
    def fit(self, x, y, *, valid=None, sample_weight=None):
        return super().fit(x, y, graph=chain(x), valid=valid, sample_weight=sample_weight)

    def _output(self, x, graph):
        return super()._output(x, chain(x) if x is not None and hasattr(self, "model_") else graph)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        for kind in (tags.classifier_tags, tags.regressor_tags):
            if kind is not None:
                kind.poor_score = True  # so few epochs are only for the interface; what is learnt is tested elsewhere
        return tags


class Classifier(Chained, NodeClassifier):
    """On a perceptron, which looks at no neighbours, laws about single rows can hold."""


class Regressor(Chained, NodeRegressor):
    pass


class Denoiser(GraphDenoiser):
    def fit(self, x, y=None, *, graph=None):
        return super().fit(x, y, graph=chain(x))

    def fit_transform(self, x, y=None, *, graph=None):
        return self.fit(x).transform(x)


SHARED = {
    "check_estimators_empty_data_messages": "no features are refused in a sentence of our own",
}
NODES = SHARED | {
    "check_estimators_nan_inf": "the sentence names row and column, and writes nan in small letters",
    "check_sample_weight_equivalence_on_dense_data": "a node that counts twice is one node: what is held back, and dropout, are drawn by node",
    "check_sample_weight_equivalence_on_sparse_data": "the same",
    "check_parameters_default_constructible": "the default of select is a member of an Enum, since a mode is a type",
}
EXPECTED = {
    Classifier: NODES | {"check_classifiers_classes": "-1 marks nodes without a label, as in sklearn.semi_supervised"},
    Regressor: NODES | {"check_fit2d_1sample": "one node cannot be held back and learnt from; said in our own words"},
    Denoiser: SHARED
    | {
        "check_methods_sample_order_invariance": "rows are nodes: another order is another signal",
        "check_methods_subset_invariance": "rows are nodes: some of them are no signal on the graph",
        "check_fit_idempotent": "transforms signals on the fitted graph, not on a part of it",
        "check_fit1d": "a single signal may be one-dimensional",
        "check_fit2d_predict1d": "a single signal may be one-dimensional",
    },
}
ESTIMATORS = [
    Classifier(models.MLP, epochs=8, hidden=8),
    Regressor(models.MLP, epochs=8, hidden=8),
    Denoiser(0.5),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_checks_of_scikit_learn(estimator):
    expected = EXPECTED[type(estimator)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # checks provoke warnings on purpose
        results = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert not failed
    # What is expected to fail does fail: the list holds no excuses that are no longer needed.
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(expected)
    assert sum(r["status"] == "passed" for r in results) >= 38
