"""Random sizes, graphs and parameters for certificates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from unspool.graph import Graph
from unspool.models import Model

Random = torch.Generator


def number(random: Random, low: float = 0.0, high: float = 1.0) -> float:
    """A uniform number."""
    return low + (high - low) * float(torch.rand((), generator=random, dtype=torch.float64))


def whole(random: Random, low: int, high: int) -> int:
    """A whole number from low to high, both included."""
    return int(torch.randint(low, high + 1, (), generator=random))


def normal(random: Random, *shape: int) -> Tensor:
    """Standard normal numbers."""
    return torch.randn(*shape, generator=random, dtype=torch.float64)


def symmetric(random: Random, features: int) -> Tensor:
    """A random symmetric matrix, exactly so."""
    a = normal(random, features, features)
    return (a + a.T) / 2


def graph(random: Random) -> Graph:
    """A connected weighted graph of eight to twenty nodes with self-loops, symmetrically normalised."""
    nodes = whole(random, 8, 20)
    ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    chords = torch.triu((torch.rand(nodes, nodes, generator=random) < 0.2).long(), diagonal=2).nonzero().T
    chords = chords[:, ~((chords[0] == 0) & (chords[1] == nodes - 1))]
    index = torch.cat([ring, chords], dim=1)
    weights = 0.5 + torch.rand(index.shape[1], generator=random, dtype=torch.float64)
    return Graph.from_edges(index, nodes=nodes, weights=weights, directed=False).to(torch.float64)


def gap(a: Tensor, b: Tensor) -> float:
    """‖a − b‖ / max(1, ‖b‖)."""
    a, b = a.detach(), b.detach()
    return float((a - b).norm()) / max(1.0, float(b.norm()))


def model(random: Random, kind: type[Model], *widths: int, **settings: Any) -> Any:
    """A named model in float64 and evaluation mode, every parameter random, without touching torch's own generator."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(whole(random, 0, 2**31 - 1))
        made = kind(*widths, **settings).double().eval()
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.requires_grad:
                parameter.copy_(normal(random, *parameter.shape) / max(parameter.shape[-1:] or (1,)) ** 0.5)
    return made


def eye(a: Tensor) -> Tensor:
    """The identity of the size of a matrix."""
    return torch.eye(a.shape[0], dtype=a.dtype)


def steps(layer: Callable[[Tensor], Tensor], h: Tensor, depth: int) -> Tensor:
    """K layers, one after another."""
    for _ in range(depth):
        h = layer(h)
    return h


def gradient(value: Callable[[Tensor], Tensor], h: Tensor) -> Tensor:
    """The gradient of a function at h, by autograd."""
    leaf = h.detach().clone().requires_grad_()
    (found,) = torch.autograd.grad(value(leaf), leaf)
    return found
