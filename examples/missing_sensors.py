"""
Missing sensors
===============

Missing sensors: NaN entries are filled in from their neighbours, with a weight chosen by hiding some that are there.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unspool as us

graph, place = us.graph.sensor(800, seed=0, normalise=us.Normalisation.NONE, loops=0)
x, y = place.double().numpy().T
random = np.random.default_rng(0)
clean = np.sin(6 * x) + np.cos(5 * y)
noisy = clean + 0.2 * random.standard_normal(800)
missing = random.random(800) < 0.5
noisy[missing] = np.nan

denoiser = us.GraphDenoiser().fit(noisy, graph=graph)
matrix = graph.to_scipy()
seen = np.where(missing, 0.0, 1.0)
mean = np.where(matrix @ seen > 0, matrix @ np.nan_to_num(noisy) / np.maximum(matrix @ seen, 1e-9), np.nanmean(noisy))


def error(values):
    return np.mean((values - clean)[missing] ** 2)


print(f"minimises {denoiser.objective_}, the weight chosen by held-out values")
print(f"error at the {missing.sum()} missing sensors")
print(f"  filled in with the mean of all sensors        {error(np.full(800, np.nanmean(noisy))):.4f}")
print(f"  filled in with the mean of known neighbours   {error(mean):.4f}")
print(f"  filled in and denoised                        {error(denoiser.denoised_):.4f}")

figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.3), layout="constrained")
for axis, (title, values) in zip(
    axes, {"truth": clean, "half of the sensors, noisy": noisy, "filled in": denoiser.denoised_}.items(), strict=True
):
    axis.scatter(x[missing], y[missing], s=9, facecolors="none", edgecolors="0.8", linewidths=0.6)
    shown = axis.scatter(x, y, c=values, s=9, vmin=-2, vmax=2, plotnonfinite=False)
    axis.set(title=title, xticks=[], yticks=[], aspect="equal")
figure.colorbar(shown, ax=axes, shrink=0.8)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/missing_sensors.png", dpi=110)
