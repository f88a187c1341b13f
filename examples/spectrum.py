"""
A filter by hand
================

A filter by hand: a network is fitted to a wanted frequency response, and read back.
"""

from pathlib import Path

import torch

import unspool as us

graph, _ = us.graph.sensor(200)
x = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))

wanted = us.spectral.high_pass(1.0)
model = us.models.UGDGNN.from_filter(wanted, degree=12, features=3)
print(model.fit)  # how well twelve hops follow the target
print(us.spectral.response(model))  # matrices on three channels, here all multiples of the identity

mean = [float(us.spectral.dirichlet(h, graph)) for h in (x, model(x, graph).detach())]
print(f"\nmean frequency of white noise: {mean[0]:.2f} before the filter, {mean[1]:.2f} after")

print("\nSGC, sixteen hops of plain smoothing: what is left in each band")
print(us.spectral.energy(us.models.SGC(3, 3, depth=16), x, graph, bands=(0, 0.25, 1, 2)))

Path("out").mkdir(exist_ok=True)
us.spectral.plot(model, graph, x, title="a high-pass of degree 12", path="out/spectrum.png")
