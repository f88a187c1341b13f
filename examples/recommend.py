"""
Recommending links
==================

Which papers should cite each other? A tenth of the citations is hidden, a network is trained to score pairs, and new links are
recommended to one paper; the picture shows how hidden links score beside other pairs, and who speaks for the best recommendation.
"""

from pathlib import Path

import matplotlib.pyplot as plt

import unspool as us

data = us.datasets.load("citeseer")
links = us.LinkPredictor(us.models.SGC, depth=2, epochs=50, seed=0, device="cpu").fit(
    data.features, graph=data.edge_index
)
found = links.evaluation_
print(f"hidden links: AUC {found.network.auc:.3f}, MRR {found.network.mrr:.3f}, Hits@10 {found.network.hits[10]:.3f}")
for kind, reached in found.baselines.items():
    print(f"{kind.value}: AUC {reached.auc:.3f}, MRR {reached.mrr:.3f}, Hits@10 {reached.hits[10]:.3f}")

paper = 100
best = links.recommend([paper], k=5)
for rank, other, chance in zip(best.rank, best.other, best.probability, strict=True):
    print(f"{rank}. paper {other}, probability {chance:.3f}, topic {data.classes[data.labels[other]]}")

why = us.explain.explain_pair(links.model_, data.features, data.graph, paper, int(best.other[0]))
side = why.sides[0]
names = [f"paper {int(side.split.nodes[p])}, {int(side.distance[p])} away" for p in side.largest(8)]
shares = [float(side.split.total[p]) for p in side.largest(8)]

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
axes[0].stairs(found.others, found.bars, fill=True, alpha=0.6, color="#D55E00", label="not linked")
axes[0].stairs(found.links, found.bars, fill=True, alpha=0.6, color="#0072B2", label="hidden links")
axes[0].set(xlabel="score h · h", ylabel="pairs", title="hidden links and other pairs")
axes[0].legend(frameon=False)
axes[1].barh(names, shares, color=["#0072B2" if share > 0 else "#D55E00" for share in shares])
axes[1].invert_yaxis()
axes[1].set(xlabel="contribution to the score", title=f"why paper {int(best.other[0])} for paper {paper}")
Path("out").mkdir(exist_ok=True)
figure.savefig("out/recommend.png", dpi=110)
