"""
With scikit-learn
=================

scikit-learn around a graph network: a pipeline, then a grid search over the nodes of CiteSeer.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from unspool import datasets, models
from unspool.estimator import NodeClassifier, NodeSplit

data = datasets.load("citeseer")
y = data.labels.numpy()
train, valid, test = (part.numpy() for part in (data.split.train, data.split.valid, data.split.test))

# Features of all nodes go through a pipeline; -1 marks the nodes whose labels it may not see.
x = data.features.operator.to_scipy()
labels = np.full(data.nodes, -1)
labels[train], labels[valid] = y[train], y[valid]
pipe = Pipeline([("svd", TruncatedSVD(64, random_state=0)), ("clf", NodeClassifier(models.APPNP, epochs=60))])
pipe.fit(x, labels, clf__graph=data.graph, clf__valid=valid)
print(f"pipeline of SVD and APPNP: test accuracy {np.mean(pipe.predict(x)[test] == y[test]):.3f}")

# A search cuts X into rows, which would break the graph. So X is node ids, and the rest is bound to the estimator.
clf = NodeClassifier(models.GPRGNN, epochs=40, lr=0.02, features=data.row_normalised().features, graph=data.graph)
grid = {"depth": [2, 10], "dropout": [0.2, 0.6]}
search = GridSearchCV(clf, grid, cv=NodeSplit(data.split))
nodes = np.concatenate([train, valid])  # the search never sees the test nodes
search.fit(nodes, y[nodes])
for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
    print(f"  {params}: {score:.3f} on the validation nodes")
print(f"chosen: {search.best_params_}, test accuracy {search.score(test, y[test]):.3f}")
print(f"it solves {search.best_estimator_.objective_}")

figure, axis = plt.subplots(figsize=(5.4, 3.2), layout="constrained")
names = [", ".join(f"{k} {v}" for k, v in p.items()) for p in search.cv_results_["params"]]
axis.barh(names, search.cv_results_["mean_test_score"])
axis.set(xlabel="accuracy on the validation nodes", xlim=(0.5, 0.8))
Path("out").mkdir(exist_ok=True)
figure.savefig("out/sklearn_pipeline.png", dpi=110)
