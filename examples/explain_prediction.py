"""
Explaining a prediction
=======================

Which hops and which neighbours speak for the predicted class of a node: for a linear propagation, shares that sum to the score.
"""

from pathlib import Path

import unspool as us

data = us.datasets.load("citeseer").row_normalised()
trial = us.train.Trial(us.models.APPNP, {"hidden": 32, "depth": 6}, us.train.TrainConfig(lr=0.01, epochs=60))
model, run = us.train.train_trial(trial, data)
print(run)
found = us.explain.explain(model, data.features, data.graph, node=100, classes=data.classes)
print(found)

Path("out").mkdir(exist_ok=True)
us.explain.plot(found, path="out/explain_prediction.png")
