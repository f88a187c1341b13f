"""What :func:`~unspool.explain.explain` found, as tensors, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unspool.explain.change import Change, Features, TermShare
from unspool.explain.edges import EdgeWeights
from unspool.explain.score import Outputs, Score
from unspool.explain.splitting import Split
from unspool.notebook import facts, table
from unspool.spectral import Response
from unspool.unrolling import ReadBack

#: The frequencies called low, middle and high.
BANDS = {"low": (0.0, 0.5), "middle": (0.5, 1.5), "high": (1.5, 2.0)}


@dataclass(frozen=True)
class Parts:
    r"""A score as a sum of few numbers: own + neighbours + bias + remainder.

    For linear networks the own part is split once more, into ``fidelity`` and ``returned``. With
    :math:`H = \sum_k c_k p_k(A) Z` the fidelity part is :math:`z_i\,p(0)\,w`: what the node's own features give without
    passing a single entry of A, be it a self-loop. For APPNP, whose last layer is
    :math:`h_i = \alpha z_i + (1-\alpha)\sum_j A_{ij} h_j`, and for PPNP, whose minimiser obeys the same equation with its
    own h on both sides, it is :math:`\alpha z_i w`, the fidelity term's pull; ``smoothness`` is the other half,
    :math:`(1-\alpha)\sum_j A_{ij} h_j w`.

    Attributes:
        own: everything that comes from the node's own features.
        neighbours: everything that comes from the features of other nodes.
        bias: what the decoder adds whatever the features.
        remainder: the score less all of these: rounding where the split is exact; biases inside the network and what a
            first-order split cannot see where it is not.
        fidelity: the part of ``own`` that passed no edge and no self-loop; None where the network is not linear.
    """

    own: float
    neighbours: float
    bias: float
    remainder: float
    fidelity: float | None = None

    @property
    def returned(self) -> float | None:
        """The part of ``own`` that came back along edges and self-loops."""
        return None if self.fidelity is None else self.own - self.fidelity

    @property
    def smoothness(self) -> float | None:
        """All that passed an edge or a self-loop: ``returned`` + ``neighbours``."""
        return None if self.fidelity is None else self.own - self.fidelity + self.neighbours

    @property
    def total(self) -> float:
        """The score."""
        return self.own + self.neighbours + self.bias + self.remainder


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why a model predicted what it did at one node; printing it gives the whole story.

    Attributes:
        model, objective: the model's name, and the problem it solves.
        node, name: the explained node.
        degree: how many other nodes it sees directly.
        score: the explained number, and all outputs.
        split: contributions by hop and node.
        distance: edges between the node and each of ``split.nodes``; −1 where there is no way.
        predicted: the predicted class of each of ``split.nodes``.
        labels: their true classes (−1 unknown), or None.
        names: names of all nodes, or None.
        change: what the denoiser did to the node.
        terms: the node's share of the objective, where that is known.
        features: raw features behind the node's own part, or None.
        response: the frequency response, where it is known exactly; else ``response_note`` says why not.
        layers: the gradient steps behind trained coefficients; else ``layers_note`` says why there are none.
        edges: how much each of the node's own edges counts, in a network that weighs them (:func:`edge_weights`); None in others.
    """

    model: str
    objective: str
    node: int
    name: str
    degree: int
    score: Score
    split: Split
    distance: Tensor
    predicted: Tensor
    labels: Tensor | None
    names: tuple[Hashable, ...] | None
    change: Change
    terms: tuple[TermShare, ...]
    features: Features | None
    response: Response | None
    response_note: str
    layers: ReadBack | None
    layers_note: str
    edges: EdgeWeights | None = None

    # -- sums ------------------------------------------------------------------------------------------------------

    @property
    def place(self) -> int:
        """Where the node itself stands in ``split.nodes``."""
        return int(torch.searchsorted(self.split.nodes, torch.tensor(self.node)))

    @property
    def parts(self) -> Parts:
        """The score as own, neighbours, bias and remainder."""
        split = self.split
        own = float(split.total[self.place])
        others = float(split.total.sum()) - own
        rest = self.score.value - own - others - split.bias
        return Parts(own, others, split.bias, rest, split.fidelity)

    @property
    def by_distance(self) -> dict[int, float]:
        """The sum of the contributions of all nodes at each distance; −1 collects those without a way."""
        steps = torch.unique(self.distance).tolist()
        return {int(d): float(self.split.total[self.distance == d].sum()) for d in steps}

    @property
    def bands(self) -> dict[str, float] | None:
        """The root mean square gain at low, middle and high frequencies."""
        if self.response is None:
            return None
        found: dict[str, float] = {}
        for name, (low, high) in BANDS.items():
            gains = self.response.gains(torch.linspace(low, high, 33, dtype=torch.float64))
            found[name] = float(gains.square().mean().sqrt())
        return found

    def largest(self, count: int | None = None) -> list[int]:
        """Places in ``split.nodes`` of the other nodes that contribute most, by size."""
        order = torch.argsort(self.split.total.abs(), descending=True, stable=True).tolist()
        return [p for p in order if p != self.place][:count]

    def name_of(self, node: int) -> str:
        """A node's name, or its number."""
        return str(node) if self.names is None else str(self.names[node])

    def class_of(self, number: int) -> str:
        """A class by its name; empty where it is not known or there are no classes."""
        names = self.score.names
        return names[number] if self.score.kind is Outputs.CLASSES and 0 <= number < len(names) else ""

    # -- telling ---------------------------------------------------------------------------------------------------

    def describe(self, top: int = 10) -> str:
        """The text, with so many neighbours and features."""
        from unspool.explain.text import describe

        return describe(self, top)

    def __str__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        parts = self.parts
        sums = [("its own features", parts.own), ("other nodes", parts.neighbours), ("bias", parts.bias)]
        head = [
            ("prediction", f"{self.score} = {self.score.value:.4g}"),
            *((name, f"{one:+.4g}") for name, one in sums),
        ]
        rows = [
            [self.name_of(node), int(self.distance[place]), f"{float(self.split.total[place]):+.4g}"]
            for place in self.largest(10)
            for node in (int(self.split.nodes[place]),)
        ]
        heads = ["node", "steps away", "adds to the score"]
        return facts(f"{self.model}, node {self.name}", head) + table("The nodes that matter most", heads, rows)

    def __repr__(self) -> str:
        return f"Explanation({self.model}, node {self.name}: {self.score} = {self.score.value:.4g}, {self.split.method.value})"

    def record(self, top: int | None = None) -> dict[str, Any]:
        """Everything as plain values; with ``top`` only so many neighbours and features, and the sum of the others."""
        from unspool.explain.record import record

        return record(self, top)

    def to_json(self, top: int | None = None) -> str:
        """:meth:`record` as JSON text."""
        return json.dumps(self.record(top), ensure_ascii=False)
