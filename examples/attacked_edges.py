"""
Wrong edges
===========

Wrong edges: a penalty that forgives large differences cuts them, where squares average over them.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch

import unspool as us
from unspool import datasets

data = datasets.contextual_sbm(nodes=800, classes=2, homophily=1.0, degree=8, features=8, signal=6.0, seed=0)
clean = torch.stack([data.features[data.labels == c].mean(0) for c in range(2)])[data.labels]
random = np.random.default_rng(0)
right = data.edge_index.numpy()
steps, share = 30, np.linspace(0, 1, 6)
curves = {"squares": [], "log": [], "capped": []}
for added in share:
    wrong = random.integers(0, 800, (2, int(added * 800 * 8 / 2)))
    pairs = np.sort(np.concatenate([right, wrong[:, wrong[0] != wrong[1]]], axis=1), axis=0)
    graph = us.Graph.from_edges(np.unique(pairs, axis=1), 800, directed=False)
    penalties = {
        "squares": us.Smoothness(4.0),
        "log": us.EdgePenalty(us.Log(0.5), 4.0),
        "capped": us.EdgePenalty(us.Capped(3.0), 4.0),
    }
    for name, penalty in penalties.items():
        net = us.unroll(us.Fidelity(1.0) + penalty, us.Jacobi(), depth=steps)
        with torch.no_grad():
            curves[name].append(float((net(data.features, graph) - clean).square().mean()))
for added, *errors in zip(share, *curves.values(), strict=True):
    told = ", ".join(f"{name} {error:.3f}" for name, error in zip(curves, errors, strict=True))
    print(f"{added:4.0%} wrong edges for each right one: error {told}")

figure, axis = plt.subplots(figsize=(5.4, 3.6), layout="constrained")
for name, errors in curves.items():
    axis.plot(100 * share, errors, marker="o", label=name)
axis.set(xlabel="random wrong edges, % of the right ones", ylabel="mean squared error", ylim=0)
axis.legend(frameon=False)
axis.spines[["top", "right"]].set_visible(False)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/attacked_edges.png", dpi=110)
