"""
A signal on a sensor network
============================

Denoise a signal on a sensor graph, with a weight that the noisy signal itself chooses.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unspool as us
from unspool.estimator import GCV, SURE, GraphDenoiser

graph, place = us.graph.sensor(600, seed=0)
place = place.double().numpy()
clean = np.sin(6 * place[:, 0]) + np.cos(5 * place[:, 1])
noisy = clean + 0.7 * np.random.default_rng(0).standard_normal(600)


def error(signal):
    return np.mean((signal - clean) ** 2)


print(f"{'noisy':<30} error {error(noisy):.3f}")
for name, rule in (("weight 0.5", 0.5), ("weight chosen by GCV", GCV()), ("weight chosen by SURE", SURE())):
    denoiser = GraphDenoiser(rule).fit(noisy, graph=graph)
    noise = "" if denoiser.noise_ is None else f", noise {denoiser.noise_:.2f} (in truth 0.70)"
    print(f"{name:<30} error {error(denoiser.denoised_):.3f}, weight {denoiser.weight_:.3f}{noise}")

errors = {w: error(GraphDenoiser(w).fit_transform(noisy, graph=graph)) for w in np.geomspace(0.01, 0.9, 20)}
best = min(errors, key=errors.get)
print(f"{'best weight, by the truth':<30} error {errors[best]:.3f}, weight {best:.3f}")

# A few broken sensors: squares follow them, a fidelity that forgives whole rows does not.
broken = noisy.copy()
broken[::25] += 10
robust = us.RowSparseFidelity(0.3) + us.Smoothness(0.7)
print(f"{'broken sensors, squares':<30} error {error(GraphDenoiser().fit_transform(broken, graph=graph)):.3f}")
forgiving = GraphDenoiser(objective=robust).fit_transform(broken, graph=graph)
print(f"{robust!s:<30} error {error(forgiving):.3f}")

figure, axis = plt.subplots(figsize=(5.4, 3.6), layout="constrained")
axis.semilogx(list(errors), list(errors.values()), label="by weight")
axis.axvline(denoiser.weight_, color="tab:orange", label="chosen by SURE, without the truth")
axis.set(xlabel="weight of the fidelity", ylabel="mean squared error", ylim=0)
axis.legend(frameon=False)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/denoise_signal.png", dpi=110)
