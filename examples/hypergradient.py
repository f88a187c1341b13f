"""
A hyper-parameter by its gradient
=================================

The weight of the fidelity is learnt on validation nodes through the exact minimiser of the problem below: no grid.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import torch

import unspool as us

graph, place = us.graph.sensor(400, seed=0)
clean = (place[:, :1] * 7).sin() + (place[:, 1:] * 5).cos()
random = torch.Generator().manual_seed(0)
seen = torch.rand(400, 1, generator=random) < 0.5  # half of the sensors report; the others are to be predicted
valid = ~seen & (torch.rand(400, 1, generator=random) < 0.5)
noisy = clean + 0.4 * torch.randn(400, 1, generator=random)

alpha = us.Learnable(0.97, within=(0, 1), name="α")
objective = us.NodeFidelity(seen, alpha) + us.Smoothness(1 - alpha)
net = us.unroll(objective, us.GradientDescent(), depth=1, adjoint=us.Implicit())  # the minimiser, whatever the depth
optimiser = torch.optim.Adam(net.parameters(), lr=0.1)
course = []
for _ in range(60):
    loss = (
        (net(noisy * seen, graph) - noisy)[valid].square().mean()
    )  # the upper level: nodes that the lower one has not seen
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    course.append((float(net.learnt_values()["α"].detach()), float(loss.detach())))
rest = ~seen & ~valid
with torch.no_grad():
    found = net(noisy * seen, graph)
print(f"α = {course[-1][0]:.3f}; error on the remaining nodes {float((found - clean)[rest].square().mean()):.4f}")

figure, axis = plt.subplots(figsize=(5.4, 3.4), layout="constrained")
axis.plot([a for a, _ in course], label="α")
axis.plot([loss for _, loss in course], label="loss on validation nodes")
axis.set(xlabel="step of the upper level", ylim=0)
axis.legend(frameon=False)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/hypergradient.png", dpi=110)
