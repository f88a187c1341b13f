"""
Communities without labels
==========================

Communities without labels: the bilevel problem with modularity as the upper loss.
"""

import itertools
from pathlib import Path

import matplotlib.pyplot as plt
import torch

import unspool as us
from unspool import datasets, train

data = datasets.contextual_sbm(nodes=300, classes=3, homophily=0.9, seed=0)
index, nodes = data.edge_index, data.nodes
degree = torch.bincount(index[0], minlength=nodes).float()
total = degree.sum()


def modularity_loss(output, everyone):
    """Minus Newman's modularity of a soft partition, plus a pull towards parts of equal size."""
    part = output.softmax(-1)
    inside = (part[index[0]] * part[index[1]]).sum()
    expected = (degree @ part).square().sum() / total
    size = part.mean(0)
    return -(inside - expected) / total + (size * size.log()).sum()


def agreement(output, everyone):
    """The share of nodes in the right part, under the best naming of the parts (looked at, never trained on)."""
    found = output.argmax(-1)
    return max(float((torch.tensor(p)[found] == data.labels).float().mean()) for p in itertools.permutations(range(3)))


everyone = torch.arange(nodes)
upper = train.Own(modularity_loss, agreement, "agreement")
task = train.Task(data.features, data.graph, everyone, everyone, everyone, everyone, upper)
config = train.TrainConfig(lr=0.01, weight_decay=5e-4, epochs=100)
found = []
for seed in range(3):
    with train.seeded(seed):
        model = us.models.UGDGNN(data.features.shape[1], 3, hidden=32, depth=4, dropout=0.2)
        found.append(train.fit(model, task, config).best)
best = min(found, key=lambda epoch: epoch.valid_loss)
print(f"loss by seed: {', '.join(f'{epoch.valid_loss:.3f}' for epoch in found)}; the lowest is kept")
print(f"agreement with the true communities: {best.test_score:.3f} (chance: 0.333)")

with torch.no_grad():
    parts = model.eval()(data.features, data.graph).softmax(-1)
figure, axis = plt.subplots(figsize=(5.4, 3.2), layout="constrained")
order = data.labels.argsort()
axis.imshow(parts[order].T.numpy(), aspect="auto", interpolation="nearest", cmap="Blues")
axis.set(xlabel="nodes, by their true community", ylabel="part", yticks=range(3))
Path("out").mkdir(exist_ok=True)
figure.savefig("out/clustering.png", dpi=110)
