"""``unspool predict --nodes``: a few nodes by their ids, computed from their neighbourhood alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from unspool.deploy import NodePredictions, predict_nodes
from unspool.errors import IncompatibleError, InputError, mention
from unspool.explain import find_node


@dataclass(eq=False)
class FewNodes:
    """The nodes that were asked for, and how much of the graph their predictions took."""

    ids: Tensor
    found: list[NodePredictions] = field(default_factory=list[NodePredictions])

    @staticmethod
    def named(text: str, data: Any, kind: str) -> FewNodes:
        """From ids with commas between, as the tables of the data have them."""
        if kind == "ranking":
            raise IncompatibleError(
                f"ranks compare all nodes with one another, so a few nodes have none; leave {mention('nodes')} out"
            )
        words = [word.strip() for word in text.split(",")]
        if not all(words):
            raise InputError("nodes", text, "ids of nodes with commas between, such as 4,7")
        ids = [find_node(word, data.nodes, data.names) for word in words]
        if len(set(ids)) < len(ids):
            raise InputError("nodes", text, "every node once")
        return FewNodes(torch.tensor(ids))

    def say(self, model: Any, x: Any, graph: Any) -> Tensor:
        """What a model says of them."""
        self.found.append(predict_nodes(model, x, graph, self.ids))
        return self.found[-1].output

    def record(self) -> dict[str, int]:
        """How much of the graph was read, for programs."""
        return {
            "nodes_read": max(f.nodes_read for f in self.found),
            "edges_read": max(f.edges_read for f in self.found),
        }

    def sentence(self, nodes: int) -> str:
        """The same for people."""
        hops, read = self.found[0].hops, max(f.nodes_read for f in self.found)
        if hops is None:
            return f"read all {nodes} nodes: the model looks at the whole graph at once"
        return f"read {read} of {nodes} nodes: all that lie within {hops} hop{'s'[: hops != 1]}"
