"""
Outliers
========

Outliers: a fidelity that counts distances instead of squares lets broken sensors go.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unspool as us

graph, place = us.graph.sensor(500, seed=0, normalise=us.Normalisation.NONE, loops=0)
x, y = place.double().numpy().T
random = np.random.default_rng(0)
clean = np.sin(6 * x) + np.cos(5 * y)
broken = random.random(500) < 0.1

print(f"error with {broken.sum()} of 500 sensors broken")
for size in (1, 3, 10, 30):
    noisy = clean + 0.2 * random.standard_normal(500) + np.where(broken, size * random.choice([-1, 1], 500), 0)
    found = {name: us.GraphDenoiser(problem=name).fit_transform(noisy, graph=graph) for name in ("smooth", "robust")}
    errors = {name: np.mean((values - clean) ** 2) for name, values in found.items()}
    print(f"  off by {size:>2}: squares {errors['smooth']:.4f}, robust {errors['robust']:.4f}")
    if size == 3:
        shown = noisy, found, errors

noisy, found, errors = shown
figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.3), layout="constrained")
for axis, (title, values) in zip(
    axes,
    {
        "10 % of the sensors off by 3": noisy,
        f"squares, error {errors['smooth']:.3f}": found["smooth"],
        f"robust, error {errors['robust']:.3f}": found["robust"],
    }.items(),
    strict=True,
):
    points = axis.scatter(x, y, c=values, s=9, vmin=-2, vmax=2)
    axis.set(title=title, xticks=[], yticks=[], aspect="equal")
figure.colorbar(points, ax=axes, shrink=0.8, extend="both")
Path("out").mkdir(exist_ok=True)
figure.savefig("out/outliers.png", dpi=110)
