"""
From a problem to a network
===========================

From a denoising problem to a trained network in a dozen lines.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import torch

import unspool as us

graph = us.graph.grid(20, 20)  # or Graph.from_edges(edge_index, nodes=n), from_pyg, from_scipy, from_networkx
alpha = us.Learnable(0.1, per_layer=True, within=(0, 1), name="α")
objective = us.Fidelity(alpha) + us.Smoothness(1 - alpha)
net = us.unroll(objective, us.GradientDescent(step=0.5), depth=10)
print(net)

clean = torch.sin(torch.arange(400.0) / 60)[:, None]
optimiser = torch.optim.Adam(net.parameters(), lr=0.05)
for seed in range(100):
    noise = torch.randn(400, 1, generator=torch.Generator().manual_seed(seed))
    loss = (net(clean + 0.5 * noise, graph) - clean).square().mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
print(f"mean squared error after training: {float(loss.detach()):.4f} (noise alone: 0.25)")
print(net.read_back())  # the problem that each trained layer solves

noisy = clean + 0.5 * noise
figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
for axis, signal, title in zip(
    axes, (clean, noisy, net(noisy, graph).detach()), ("clean", "X", "H after ten layers"), strict=True
):
    axis.imshow(signal.view(20, 20).numpy(), vmin=-1.5, vmax=1.5, cmap="coolwarm")
    axis.set(title=title, xticks=[], yticks=[])
Path("out").mkdir(exist_ok=True)
figure.savefig("out/quickstart.png", dpi=110)
