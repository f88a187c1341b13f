"""
A large graph on a laptop
=========================

Hops of a linear network need two or three buffers whatever the depth: 200,000 nodes, 32 channels, 4 and 64 layers, with gradients.
"""

import resource
import time
from pathlib import Path

import matplotlib.pyplot as plt
import torch

import unspool as us

nodes, entries = 200_000, 1_000_000
random = torch.Generator().manual_seed(0)
ends = (torch.rand(2, entries, generator=random) ** 2 * nodes).long()  # some nodes have many neighbours
graph = us.Graph.from_edges(torch.unique(ends.sort(0).values, dim=1), nodes=nodes, directed=False)
x = torch.randn(nodes, 32, generator=random)
depths, seconds, memory = [1, 4, 16, 64], [], []
for depth in depths:
    alpha = us.Learnable(0.1, per_layer=True, within=(0, 1), name="α")
    net = us.unroll(us.Fidelity(alpha) + us.Smoothness(1 - alpha), us.GradientDescent(step=0.5), depth)
    began = time.perf_counter()
    net(x, graph).square().mean().backward()
    seconds.append(time.perf_counter() - began)
    memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    print(f"{depth:>3} layers: {seconds[-1]:6.2f} s forward and backward, {memory[-1]:.0f} MB at most so far")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
left.plot(depths, seconds, marker="o")
left.set(xlabel="layers", ylabel="seconds, forward and backward", ylim=0)
right.plot(depths, memory, marker="o")
right.set(xlabel="layers", ylabel="peak memory of the process, MB", ylim=0)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/huge_graph.png", dpi=110)
