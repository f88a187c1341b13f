"""
Straight lines with bends
=========================

Sensors along a line: straight slopes with bends, where a penalty on ‖L H‖ bends the result in few places only.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unspool as us

graph = us.graph.path(200, normalise=us.Normalisation.NONE, loops=0)  # 200 sensors, or moments, each next to the last
place = np.arange(200) / 200
clean = np.interp(place, [0, 0.2, 0.5, 0.75, 1], [0, 4, -1, 3, 0])
noisy = clean + 0.4 * np.random.default_rng(0).standard_normal(200)
noisy[60:75] = np.nan  # a gap

figure, axes = plt.subplots(2, 2, figsize=(9, 5.4), layout="constrained", sharex=True, sharey=True)
for axis, problem in zip(axes.flat, ("smooth", "tv", "trend", "slopes"), strict=True):
    denoiser = us.GraphDenoiser(problem=problem).fit(noisy, graph=graph)
    error = np.mean((denoiser.denoised_ - clean) ** 2)
    print(f"{problem:<6} error {error:.4f}   {denoiser.objective_}")
    axis.plot(place, noisy, ".", color="0.8", markersize=4)
    axis.plot(place, clean, color="0.4", linewidth=1)
    axis.plot(place, denoiser.denoised_, linewidth=2)
    axis.set(title=f"{problem}: error {error:.4f}")
    axis.spines[["top", "right"]].set_visible(False)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/sensor_line.png", dpi=110)
