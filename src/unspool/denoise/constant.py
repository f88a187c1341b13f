"""Whether the graph of a denoising problem leaves constant signals as they are."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from unspool.graph import Graph
from unspool.graph.edges import callers_level

#: A mean that is bent by more than this many standard deviations of the signal decides the result.
MOST = 1.0


class BentMeanWarning(UserWarning):
    """The graph's normalisation rescales constant signals, and the mean of the signal is large: the result will follow the degrees."""


def bent_mean(x: Tensor, graph: Graph) -> float:
    r"""How far one application of L moves the mean of a signal, in standard deviations of the signal; the largest over channels.

    .. math:: |\bar x| \cdot \mathrm{rms}(L 1) / \mathrm{std}(x)

    It is 0 for the plain Laplacian, and for symmetric normalisation where all nodes have the same degree.

    Example:
        >>> import torch, unspool as us
        >>> x = torch.tensor([[1000.0], [1001.0], [999.0]])
        >>> bent_mean(x, us.graph.ring(3)), bent_mean(x, us.graph.path(3)) > 100
        (0.0, True)
    """
    ones = torch.ones(graph.nodes, 1, dtype=graph.dtype, device=graph.device)
    bend = float(graph.laplacian_times(ones).double().square().mean().sqrt())
    if bend < 1e-6:  # rounding
        return 0.0
    held = x.double()
    seen = ~held.isnan()
    count = seen.sum(0).clamp(min=1)
    mean = torch.where(seen, held, 0.0).sum(0) / count
    spread = (torch.where(seen, held - mean, 0.0).square().sum(0) / count).sqrt()
    ratio = bend * mean.abs() / spread.clamp(min=torch.finfo(torch.float64).tiny)
    return float(ratio.max()) if ratio.numel() else 0.0


def tell_of_bent_mean(x: Tensor, graph: Graph) -> None:
    """Warn where the normalisation of the graph, and not the noise, decides what is taken away from a signal."""
    times = bent_mean(x, graph)
    if times > MOST:
        warnings.warn(
            f"the {graph.normalisation.value} normalisation of this graph rescales constant signals by the degrees of the nodes, and the mean of "
            f"this one is large: it is bent by {times:.3g} standard deviations of the signal; subtract the mean first, or use a graph that is not "
            "normalised (Normalisation.NONE, loops=0)",
            BentMeanWarning,
            stacklevel=callers_level(),
        )
