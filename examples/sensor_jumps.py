"""
Jumps and bends
===============

Sensor data with jumps and bends: total variation keeps borders sharp, a trend filter keeps slopes straight.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unspool as us

graph = us.graph.grid(20, 20, normalise=us.Normalisation.NONE, loops=0)  # a field of 400 sensors
x, y = np.divmod(np.arange(400), 20) / np.float64(19)
noise = 0.5 * np.random.default_rng(0).standard_normal(400)
zones = 4.0 * (x > 0.5) + 2.0 * (y > 0.6)  # climate zones: constant, with borders
valley = 20 * np.abs(x - 0.5) + 10 * np.maximum(y - 0.5, 0)  # slopes, with bends
scenes = {"tv": ("jumps", zones), "trend": ("bends", valley)}
found = {}
for problem, (what, clean) in scenes.items():
    found[problem] = {"truth": clean, "noisy": clean + noise}
    for name in ("smooth", problem):
        denoiser = us.GraphDenoiser(problem=name).fit(clean + noise, graph=graph)
        found[problem][name] = denoiser.denoised_
        print(f"{what}, {name:<6} error {np.mean((denoiser.denoised_ - clean) ** 2):.4f}   {denoiser.objective_}")

figure, axes = plt.subplots(2, 4, figsize=(12, 5.6), layout="constrained")
for row, panels in zip(axes, found.values(), strict=True):
    clean = panels["truth"]
    for axis, (name, values) in zip(row, panels.items(), strict=True):
        shown = axis.scatter(x, y, c=values, s=36, marker="s", vmin=clean.min() - 0.5, vmax=clean.max() + 0.5)
        title = name if name == "truth" else f"{name}: error {np.mean((values - clean) ** 2):.3f}"
        axis.set(title=title, xticks=[], yticks=[], aspect="equal")
    figure.colorbar(shown, ax=row, shrink=0.8)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/sensor_jumps.png", dpi=110)
