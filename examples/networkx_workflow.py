"""
A NetworkX graph
================

A NetworkX graph in, predictions and their reasons back on the graph: Zachary's karate club from two known members.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import networkx as nx
import torch

import unspool as us
from unspool import datasets, train

club = nx.karate_club_graph()
people = list(club)
true = [club.nodes[person]["club"] for person in people]
# Every member is described by nothing but himself; only the two leaders' sides are known.
split = datasets.Split([0, 33], [1, 32], [p for p in people if p not in (0, 1, 32, 33)], nodes=len(people))
data = datasets.from_networkx(club, label="club", split=split)
print(data)

settings = {"hidden": 16, "depth": 10, "teleport": 0.1, "dropout": 0.2}
trial = train.Trial(us.models.APPNP, settings, train.TrainConfig(lr=0.02, weight_decay=5e-4, epochs=60))
runs = train.repeat(trial, data, seeds=3)
print(runs)

model = runs.models[0]
with torch.no_grad():
    sides = model(data.features, data.graph).argmax(-1)
nx.set_node_attributes(club, {p: data.classes[int(s)] for p, s in zip(people, sides, strict=True)}, "predicted")
wrong = [p for p in people if club.nodes[p]["predicted"] != true[p]]
print(f"placed on the wrong side: {wrong}")
print(us.explain.explain(model, data.features, data.graph, node=8, classes=data.classes))

figure, axis = plt.subplots(figsize=(5.4, 4), layout="constrained")
colours = ["tab:blue" if club.nodes[p]["predicted"] == "Mr. Hi" else "tab:orange" for p in people]
edges = ["black" if p in wrong else "white" for p in people]
nx.draw_networkx(
    club,
    nx.spring_layout(club, seed=1),
    node_color=colours,
    edgecolors=edges,
    edge_color="#bbbbbb",
    font_size=8,
    ax=axis,
)
axis.set(title="predicted sides; wrong ones with a rim")
axis.axis("off")
Path("out").mkdir(exist_ok=True)
figure.savefig("out/networkx_workflow.png", dpi=110)
