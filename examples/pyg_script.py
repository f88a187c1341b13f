"""
In a PyG script
===============

A plain PyTorch Geometric training script in which one line has changed: the model.
"""

import warnings
from pathlib import Path

import torch
from torch.nn import functional

import unspool as us
from unspool import datasets

with warnings.catch_warnings():  # PyG still mentions torch.jit when it is imported
    warnings.simplefilter("ignore")
    from torch_geometric.data import Data

citeseer = datasets.load("citeseer").row_normalised()
split = citeseer.split
data = Data(
    x=citeseer.features.to_dense(), edge_index=citeseer.edge_index, y=citeseer.labels
)  # what a PyG loader gives
train_mask, val_mask, test_mask = (
    torch.zeros(data.num_nodes, dtype=torch.bool).index_fill_(0, ids, True)
    for ids in (split.train, split.valid, split.test)
)

torch.manual_seed(0)
# Before: torch_geometric.nn.models.GCN(data.num_features, 64, num_layers=2, out_channels=6)
model = us.models.GPRGNN(data.num_features, 6, hidden=64, depth=10, dropout=0.5)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
best = (0.0, 0.0)
for _epoch in range(80):
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)  # normalised once, for as long as edge_index is the same tensor
    functional.cross_entropy(out[train_mask], data.y[train_mask]).backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        right = model(data.x, data.edge_index).argmax(-1) == data.y
    best = max(best, (float(right[val_mask].float().mean()), float(right[test_mask].float().mean())))
print(f"validation {best[0]:.3f}, test {best[1]:.3f}")
print(f"it minimises {model.objective}")
print(us.spectral.response(model))  # what the trained model does to each graph frequency
Path("out").mkdir(exist_ok=True)
us.spectral.plot(model, citeseer.graph, title="GPRGNN in a PyG script", path="out/pyg_script.png")
