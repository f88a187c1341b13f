"""
Depth and over-smoothing
========================

Thirty layers of SGC keep only the lowest frequency of a graph; a fidelity term brings X back in at every layer.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import torch

import unspool as us

data = us.datasets.contextual_sbm(nodes=600, classes=3, homophily=0.8, features=8, signal=2.0, seed=0)
problems = {
    "SGC: ‖BH‖²": us.Smoothness(1.0),
    "APPNP: 0.1 ‖H−X‖² + 0.9 ‖BH‖²": us.Fidelity(0.1) + us.Smoothness(0.9),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for name, objective in problems.items():
    accuracy, energy = [], []
    for depth in range(1, 31):
        with torch.no_grad():
            h = us.unroll(objective, us.GradientDescent(step=0.5), depth)(data.features, data.graph)
        means = torch.stack([h[data.split.train][data.labels[data.split.train] == c].mean(0) for c in range(3)])
        near = torch.cdist(h, means).argmin(-1)  # the nearest mean of a class: a classifier without training
        accuracy.append(float((near == data.labels)[data.split.test].float().mean()))
        energy.append(float(us.spectral.dirichlet(h, data.graph)))
    left.plot(range(1, 31), accuracy, label=name)
    right.semilogy(range(1, 31), energy, label=name)
    print(f"{name:<34} accuracy {max(accuracy):.3f} at best, {accuracy[-1]:.3f} after 30; energy left {energy[-1]:.4f}")
left.set(xlabel="layers", ylabel="accuracy on test nodes")
right.set(xlabel="layers", ylabel="Dirichlet energy of H / ‖H‖²")
left.legend(frameon=False, fontsize=8)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/depth.png", dpi=110)
