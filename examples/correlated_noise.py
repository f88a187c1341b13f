"""
Two sensors in one housing
==========================

Two sensors in one housing: their noise is correlated, and knowing how makes the denoiser better.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unspool as us
from unspool.estimator import SURE, GraphDenoiser

graph, place = us.graph.sensor(600, seed=0)
place = place.double().numpy()
clean = np.stack([np.sin(12 * place[:, 0]), np.cos(11 * place[:, 1])], axis=1)
covariance = np.array([[1.0, 0.98], [0.98, 1.0]])  # what shakes one shakes the other: their difference is nearly clean
noisy = clean + np.random.default_rng(0).standard_normal((600, 2)) @ np.linalg.cholesky(covariance).T


def error(signal):
    return np.mean((signal - clean) ** 2)


known = {"the level": GraphDenoiser(SURE(noise=1.0)), "the covariance": GraphDenoiser(noise_covariance=covariance)}
print(f"{'noisy':<22} error {error(noisy):.4f}")
for name, denoiser in known.items():
    found = denoiser.fit_transform(noisy, graph=graph)
    print(f"knowing {name:<14} error {error(found):.4f}, minimises {denoiser.objective_}")

# The same by hand: in sum and difference the noise is independent, and each gets the weight that its variance asks for.
turn = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
weight = known["the covariance"].weight_
sides = []
for channel, variance in zip((noisy @ turn).T, (1.98, 0.02), strict=True):
    trusted = weight / variance
    sides.append(GraphDenoiser(trusted / (trusted + 1 - weight)).fit_transform(channel, graph=graph))
print(f"by hand, off by {np.abs(np.stack(sides, axis=1) @ turn - found).max():.1e}")

figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
level = known["the level"].denoised_
for axis, signal, title in zip(
    axes, (noisy, level, found), ("noisy", "knowing the level", "knowing the covariance"), strict=True
):
    axis.plot(clean[:, 0], signal[:, 0], ".", markersize=3)
    axis.set(title=f"{title}: {error(signal):.3f}", xlabel="clean", ylim=(-3.5, 3.5))
Path("out").mkdir(exist_ok=True)
figure.savefig("out/correlated_noise.png", dpi=110)
