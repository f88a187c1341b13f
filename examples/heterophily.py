"""
Heterophily
===========

Heterophily: edges get signs that are computed from the features of their ends, so unlike neighbours push apart.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import torch

import unspool as us
from unspool import datasets, train


class Net(torch.nn.Module):
    """An encoder, four steps on 0.3‖H − X‖² plus a penalty on edges, and a decoder."""

    def __init__(self, edges):
        super().__init__()
        self.encoder = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh())
        self.propagation = us.unroll(us.Fidelity(0.3) + edges, us.GradientDescent(step=0.5), depth=4)
        self.decoder = torch.nn.Linear(32, 4)

    def forward(self, x, graph):
        return self.decoder(self.propagation(self.encoder(x), graph))


def accuracy(edges, data):
    with train.seeded(0):
        net, split = Net(edges()), data.split
        optimiser = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
        for _ in range(100):
            optimiser.zero_grad()
            output = net(data.features, data.graph)[split.train]
            torch.nn.functional.cross_entropy(output, data.labels[split.train]).backward()
            optimiser.step()
    return float((net(data.features, data.graph).argmax(1) == data.labels)[split.test].float().mean())


kinds = {
    "plain edges": lambda: us.Smoothness(0.7),
    "signed edges": lambda: us.EdgeSmoothness(us.Computed(us.nn.EdgeScore(32), name="w(X)"), 0.7),
}
homophily, found = [0.05, 0.35, 0.65, 0.95], {name: [] for name in kinds}
for share in homophily:
    data = datasets.contextual_sbm(nodes=500, classes=4, homophily=share, degree=8, signal=2.0, seed=0)
    for name, edges in kinds.items():
        found[name].append(accuracy(edges, data))
    print(f"homophily {share:.2f}: accuracy " + ", ".join(f"{name} {scores[-1]:.3f}" for name, scores in found.items()))

figure, axis = plt.subplots(figsize=(5.4, 3.6), layout="constrained")
for name, scores in found.items():
    axis.plot(homophily, scores, marker="o", label=name)
axis.set(xlabel="homophily: share of edges within a class", ylabel="accuracy on test nodes", ylim=(0.2, 1.02))
axis.legend(frameon=False, loc="lower right")
Path("out").mkdir(exist_ok=True)
figure.savefig("out/heterophily.png", dpi=110)
