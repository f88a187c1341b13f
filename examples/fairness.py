"""
Fairness
========

Fairness: one group scores higher for no merit of its own; a penalty on the gap of the means takes that out.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch

import unspool as us

graph, place = us.graph.sensor(600, seed=0, normalise=us.Normalisation.NONE, loops=0)
x, y = place.double().numpy().T
random = np.random.default_rng(0)
group = torch.as_tensor((x + 0.15 * random.standard_normal(600) > 0.5).astype(int))  # groups live apart
merit = np.sin(7 * y)
scores = torch.as_tensor(merit + 0.8 * group.numpy() + 0.3 * random.standard_normal(600))[:, None]


def gap(h):
    return float((h[group == 1].mean() - h[group == 0].mean()).abs())


weights = [0.0, 20.0, 60.0, 100.0, 150.0, 250.0]
found = []
for weight in weights:
    objective = us.Fidelity(0.7) + us.Smoothness(0.3)
    if weight:
        objective = objective + us.GroupGap(group, weight)
    h = us.minimise(objective, scores, graph.to(torch.float64))
    found.append((gap(h), float((h[:, 0] - torch.as_tensor(merit)).var())))
    print(
        f"λ = {weight:>5.0f}: gap of the groups {found[-1][0]:.3f}, error against merit {found[-1][1]:.3f}   {objective}"
    )

figure, axis = plt.subplots(figsize=(5.4, 3.6), layout="constrained")
axis.plot(weights, [f[0] for f in found], marker="o", label="gap between the groups' means")
axis.plot(weights, [f[1] for f in found], marker="o", label="error against merit (variance)")
axis.set(xlabel="λ of λ ‖Δ H‖₁", ylim=0)
axis.legend(frameon=False)
axis.spines[["top", "right"]].set_visible(False)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/fairness.png", dpi=110)
