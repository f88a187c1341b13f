"""Links with a trained network: score pairs, recommend new ones, measure what was held back.

>>> import unspool as us
>>> from unspool import datasets, links, train
>>> data = datasets.contextual_sbm(nodes=80, classes=2, seed=0)
>>> loader = train.TrialLoader(data, kind=train.TaskKind.LINKS)
>>> model, run = train.train_trial(train.Trial(us.models.SGC, config=train.TrainConfig(epochs=20)), loader)
>>> scored = links.score_pairs(model, data.features, data.graph, [[0, 1], [0, 2]])
>>> scored.probability.shape, scored.edge.dtype
(torch.Size([2]), torch.bool)
>>> links.recommend(model, data.features, data.graph, nodes=[5], k=3).rank.tolist()
[1, 2, 3]
"""

from unspool.links.scoring import LinkScorer, Recommendations, ScoredPairs, recommend, score_pairs
from unspool.train import LinkBaseline, LinkEvaluation, LinkMetrics, LinkProtocol, evaluate_links, link_task

__all__ = [
    "LinkBaseline", "LinkEvaluation", "LinkMetrics", "LinkProtocol", "LinkScorer", "Recommendations", "ScoredPairs", "evaluate_links",
    "link_task", "recommend", "score_pairs",
]  # fmt: skip
