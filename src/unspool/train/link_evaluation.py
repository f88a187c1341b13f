"""A network that looks for links, measured on those that were held back, beside scores that nobody has to train."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from unspool.errors import InputError
from unspool.train.link_baselines import LinkBaseline, Rows, inner_products
from unspool.train.link_metrics import LinkMetrics, mean_ranks
from unspool.train.link_rivals import Rivals, draw_rivals
from unspool.train.loss import Link
from unspool.train.task import Task

Array = np.ndarray[Any, Any]

#: Bars of the histogram of scores.
BARS = 40


@dataclass(frozen=True)
class LinkProtocol:
    """What was held back, and what stood against it.

    Attributes:
        seed: which links, and which pairs against them.
        train, valid, test: how many links each part has, and as many pairs that are not links anywhere in the whole graph.
        ranked: how many of the test links are ranked.
        rivals: the most rivals that a ranked link has.
    """

    seed: int
    train: int
    valid: int
    test: int
    ranked: int
    rivals: int


@dataclass(frozen=True, eq=False)
class LinkEvaluation:
    """What a network reaches on the links of the test set, and what is reached without one.

    Attributes:
        protocol: how it was measured.
        network: of the network.
        baselines: of scores that need no training, on the same pairs and rivals.
        bars: the ends of the histogram's bars, scores h_u · h_v; one more than there are bars.
        links, others: how many test links and other pairs lie in each bar.
    """

    protocol: LinkProtocol
    network: LinkMetrics
    baselines: Mapping[LinkBaseline, LinkMetrics]
    bars: tuple[float, ...]
    links: tuple[int, ...]
    others: tuple[int, ...]

    def to_plain(self) -> dict[str, Any]:
        """The same for a card."""
        return {
            "protocol": asdict(self.protocol),
            "network": self.network.to_plain(),
            "baselines": {kind.name.lower(): found.to_plain() for kind, found in self.baselines.items()},
            "histogram": {"bars": list(self.bars), "links": list(self.links), "others": list(self.others)},
        }


@torch.no_grad()
def evaluate_links(model: nn.Module, task: Task, seed: int) -> LinkEvaluation:
    """Measure a network on the test links of its task, on the graph that it was trained on.

    Args:
        model: trained; called as ``model(x, graph)`` as it stands, so put it into evaluation mode.
        task: what :func:`~unspool.train.link_task` made.
        seed: the seed of the task, which draws the rivals too.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> task = train.link_task(datasets.contextual_sbm(nodes=80, classes=2, seed=0), seed=3)
        >>> found = evaluate_links(us.models.SGC(task.x.shape[1], 8).eval(), task, seed=3)
        >>> found.protocol.test, sorted(found.network.hits), [kind.value for kind in found.baselines][0]
        (..., [1, 10, 50], 'common neighbours')
    """
    if not isinstance(task.loss, Link) or not task.test.numel():
        raise InputError("task", type(task.loss).__name__, "a task of links with a test set", "make it with link_task")
    pairs, yes = task.loss.pairs.cpu().numpy(), task.target.cpu().numpy() > 0.5
    test = task.test.cpu().numpy()
    rivals = draw_rivals(pairs[test][yes[test]], pairs[yes], task.graph.nodes, seed)
    train, valid, held = (int(yes[part.cpu().numpy()].sum()) for part in (task.train, task.valid, task.test))
    most = int((rivals.others >= 0).sum(1).max(initial=0))
    protocol = LinkProtocol(seed, train, valid, held, len(rivals.kept), most)
    h = model(task.x, task.graph).double().cpu().numpy()
    asked = pairs[test], yes[test]
    score, network = _measured(h, *asked, rivals)
    bars = np.histogram_bin_edges(score, BARS)
    counted = [np.histogram(score[asked[1] == kind], bars)[0].tolist() for kind in (True, False)]
    baselines = {kind: _measured(kind.rows(task.graph, task.x), *asked, rivals)[1] for kind in LinkBaseline}
    return LinkEvaluation(protocol, network, baselines, tuple(bars.tolist()), tuple(counted[0]), tuple(counted[1]))


def _measured(rows: Rows, pairs: Array, yes: Array, rivals: Rivals) -> tuple[Array, LinkMetrics]:
    score = inner_products(rows, pairs[:, 0], pairs[:, 1])
    # Trap: a link and its rivals in one product, or equal scores would differ by a rounding error.
    both = inner_products(rows, rivals.kept, np.concatenate([rivals.found[:, None], rivals.others], axis=1))
    return score, LinkMetrics.of(score, yes, mean_ranks(both[:, 0], both[:, 1:]))
