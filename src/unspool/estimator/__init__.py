"""scikit-learn's interface: node classifiers and regressors, link predictors, a denoiser, and folds that respect a graph.

>>> from unspool import datasets, models
>>> from unspool.estimator import NodeClassifier
>>> data = datasets.contextual_sbm(nodes=120, classes=3, seed=0)
>>> labels = data.labels.clone()
>>> labels[data.split.test] = -1                       # unlabelled, as in sklearn.semi_supervised
>>> clf = NodeClassifier(models.GPRGNN, depth=4, teleport=0.1, epochs=50, seed=0)
>>> clf.fit(data.features, labels, graph=data.graph).predict().shape
(120,)

scikit-learn cuts data sets into rows, and a graph cannot be cut so. For ``GridSearchCV`` and its relatives bind
features and graph to the estimator and pass node ids as X: see :class:`NodeClassifier` and :class:`NodeSplit`.
"""

import importlib.util

if importlib.util.find_spec("sklearn") is None:
    raise ModuleNotFoundError(
        "unspool.estimator stands on scikit-learn, which is not installed: pip install 'unspool[sklearn]'",
        name="sklearn",
    )

from unspool.denoise import GCV, SURE, Criterion, HeldOut
from unspool.estimator.classifier import NodeClassifier
from unspool.estimator.cross_validation import Unseen, cross_validate_nodes
from unspool.estimator.denoiser import GraphDenoiser
from unspool.estimator.link_predictor import LinkPredictor
from unspool.estimator.regressor import NodeRegressor
from unspool.estimator.split import NodeSplit

__all__ = [
    "GCV", "SURE", "Criterion", "GraphDenoiser", "HeldOut", "LinkPredictor", "NodeClassifier", "NodeRegressor", "NodeSplit", "Unseen", "cross_validate_nodes",
]  # fmt: skip
