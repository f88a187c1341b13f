"""
Label propagation
=================

Label propagation: known labels are the fidelity, smoothness carries them to everybody else; no features, no training.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch

import unspool as us
from unspool import datasets

data = datasets.contextual_sbm(nodes=1000, classes=4, homophily=0.8, degree=10, signal=1.0, seed=0)
random = np.random.default_rng(0)
order = [random.permutation(np.flatnonzero(data.labels.numpy() == c)) for c in range(4)]
counts, carried, features = [1, 2, 5, 10, 20, 50], [], []
for count in counts:
    known = torch.as_tensor(np.concatenate([nodes[:count] for nodes in order]))
    others = np.setdiff1d(np.arange(1000), known.numpy())
    objective = us.objective.labels(data.labels, known, classes=4) + us.Smoothness(1.0) + us.Ridge(0.01)
    h = us.minimise(objective, torch.zeros(1000, 4), data.graph)
    carried.append(float((h.argmax(1) == data.labels)[others].float().mean()))
    # The quadratic baseline that sees features and no edges: ridge regression on the same labels.
    x, y = data.features[known], torch.eye(4)[data.labels[known]]
    w = torch.linalg.solve(x.T @ x + torch.eye(x.shape[1]), x.T @ y)
    features.append(float(((data.features @ w).argmax(1) == data.labels)[others].float().mean()))
    print(
        f"{count:>2} labels in each class: propagated {carried[-1]:.3f}, ridge regression on features {features[-1]:.3f}"
    )
print(objective)

figure, axis = plt.subplots(figsize=(5.4, 3.6), layout="constrained")
axis.plot(counts, carried, marker="o", label="label propagation (edges alone)")
axis.plot(counts, features, marker="o", label="ridge regression (features alone)")
axis.axhline(0.25, color="0.7", linewidth=1, linestyle="--")
axis.set(xlabel="labels in each class", ylabel="accuracy on the others", xscale="log", ylim=(0.2, 1))
axis.set_xticks(counts, [str(c) for c in counts])
axis.minorticks_off()
axis.legend(frameon=False)
axis.spines[["top", "right"]].set_visible(False)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/label_propagation.png", dpi=110)
