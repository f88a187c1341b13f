"""Rules that choose the weight of a denoising problem from the noisy signal alone."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unspool.denoise.content import LARGEST_EXACT, Content, random_signs
from unspool.denoise.freedom import residuals_and_freedom
from unspool.denoise.noise import Covariance
from unspool.denoise.problem import DenoisingProblem, Smooth
from unspool.errors import IncompatibleError, InputError, mention
from unspool.graph import Graph

Array = np.ndarray[Any, Any]
_SMOOTH = Smooth()

#: Random vectors for a trace: of a polynomial of the graph, and of a denoiser that has to be solved for each.
_PROBES, _SOLVED_PROBES = 32, 4
#: The median of |z| for a standard normal z.
_NORMAL_MEDIAN = 0.6744897501960817


@dataclass(frozen=True, eq=False)
class Choice:
    """What a rule found: the weight, the score of every candidate (rows of weight and score), and the noise level."""

    weight: float
    curve: Array | None = None
    noise: float | None = None


@dataclass(frozen=True)
class Criterion(ABC):
    """A rule that scores every candidate weight by its residual and its trace; the smallest score wins.

    Smooth problems are linear, and need no solve for it. Of the others the trace is measured, the degrees of freedom
    (:mod:`unspool.denoise.freedom`), with 1 + ``probes`` solves for each candidate.

    Args:
        candidates: weights in (0, 1) to choose from; when omitted, 71 of them evenly spaced in log((1 − α) / α), or the problem's 17.
        probes: random vectors for the trace. For smooth problems 32 when omitted, on graphs above 2000 nodes; below it is exact. For
            others 4.
        steps: Lanczos steps on graphs above 2000 nodes.
        seed: of the random vectors.
    """

    candidates: Sequence[float] | None = None
    probes: int | None = None
    steps: int = 80
    seed: int = 0

    def __post_init__(self) -> None:
        probes: Any = self.probes
        if probes is not None and (isinstance(probes, bool) or not isinstance(probes, int) or probes < 1):
            raise InputError("probes", probes, "a whole number of at least 1")

    @abstractmethod
    def score(self, residual: Tensor, trace: Tensor, entries: int, nodes: int, noise: float) -> Tensor:
        """The score of each candidate, from ‖X − S X‖² over all entries and tr S over the nodes."""

    @abstractmethod
    def noise_before(self, x: Tensor, graph: Graph) -> float:
        """The noise level that the score uses, NaN if it uses none."""

    def noise_known(self, covariance: Covariance) -> float:
        """The noise level that the score uses, NaN if it uses none, where the covariance is known."""
        return covariance.level

    def choose(
        self,
        x: Tensor,
        graph: Graph,
        covariance: Covariance | None = None,
        problem: DenoisingProblem = _SMOOTH,
        progress: Callable[[int, int], None] | None = None,
    ) -> Choice:
        """Score the candidates on a signal of shape (nodes, features).

        Args:
            x: the signal, complete.
            graph: an undirected graph.
            covariance: of the noise over features, for smooth problems.
            problem: what is minimised.
            progress: called with how many solves of how many are done, where there are any.
        """
        exact = graph.to(device="cpu", dtype=torch.float64)
        if graph.edges == 0:
            raise IncompatibleError(
                f"the graph has no edges, so there is nothing to smooth and no weight to choose; give one with {mention('weight')}"
            )
        x = x.detach().cpu().double()
        weight = self._weights(x, exact, problem)
        level = self.noise_before(x, exact) if covariance is None else self.noise_known(covariance)
        if problem == _SMOOTH:
            residual, trace = self._look(x, exact, weight, covariance)
        else:
            probes = _SOLVED_PROBES if self.probes is None else self.probes
            noise = noise_level(x, exact, seed=self.seed) if math.isnan(level) else level
            residual, trace = residuals_and_freedom(problem, x, exact, weight, noise, probes, self.seed, progress)
        score = self.score(residual, trace, x.numel(), graph.nodes, level)
        best = int(score.argmin())
        if math.isnan(level):
            left = x.numel() * (1 - float(trace[best]) / graph.nodes)
            level = math.sqrt(float(residual[best]) / left) if left > 0 else 0.0
        return Choice(float(weight[best]), torch.stack([weight, score], dim=1).numpy(), level)

    def _look(self, x: Tensor, graph: Graph, weight: Tensor, covariance: Covariance | None) -> tuple[Tensor, Tensor]:
        """Residual and trace of every candidate; with a covariance, sums over principal channels with weights of their own."""
        probes = _PROBES if self.probes is None else self.probes
        if covariance is None:
            content = Content.of(x, graph, probes, self.steps, self.seed)
            return content.residual(weight), content.trace(weight)
        content = Content.of(covariance.to_principal(x), graph, probes, self.steps, self.seed, by_channel=True)
        trusted = weight[:, None] / covariance.relative
        own = trusted / (trusted + 1 - weight[:, None])
        # Freedom counts by the variance that it lets through: E‖X − SX‖² = bias² + Σ_c σ_c² tr (I − S_c)².
        return content.residual(own).sum(1), (content.trace(own) * covariance.relative).mean(1)

    def _weights(self, x: Tensor, graph: Graph, problem: DenoisingProblem) -> Tensor:
        if self.candidates is None:
            if problem != _SMOOTH:
                return problem.candidates(x, graph)
            # (1 − α) / α multiplies L, whose size is that of graph.scale.
            ratio = torch.logspace(-3, 4, 71, dtype=torch.float64) / graph.scale
            return 1 / (1 + ratio)
        return read_candidates(self.candidates)


def read_candidates(candidates: Sequence[float]) -> Tensor:
    """Weights to choose from, checked."""
    weight = torch.as_tensor(np.asarray(candidates, dtype=float)).flatten()
    if weight.numel() == 0 or not bool(((weight > 0) & (weight < 1)).all()):
        raise ValueError(f"candidates={candidates!r}: expected weights between 0 and 1, both excluded")
    return weight


@dataclass(frozen=True)
class GCV(Criterion):
    r"""Generalised cross-validation: choose the weight without knowing the noise (Golub, Heath and Wahba, 1979).

    .. math:: \operatorname{GCV}(\alpha) = \frac{\lVert X - S_\alpha X\rVert_F^2 / (n d)}{(1 - \operatorname{tr} S_\alpha / n)^2},
       \qquad S_\alpha = \alpha\,(\alpha I + (1-\alpha) L)^{-1}

    Arguments are those of :class:`Criterion`. All columns share one weight; scale columns of different units before.
    Close to the best weight where much smoothing is called for; where little is (tr S above about a third of n) it
    smooths too little, and :class:`SURE` is the better choice.
    Afterwards the noise level is estimated as :math:`\hat\sigma^2 = \lVert X - SX\rVert_F^2 / (d\,(n - \operatorname{tr} S))`.
    With a covariance Σ of the noise, known up to a factor, tr S is the mean over its principal channels, each counted by its
    variance over the mean one; the argument of the original is the same then.

    Example:
        >>> import torch, unspool as us
        >>> graph, place = us.graph.sensor(300)
        >>> noise = torch.randn(300, 1, generator=torch.Generator().manual_seed(0))
        >>> choice = GCV().choose(torch.sin(6 * place[:, :1]) + 0.5 * noise, graph)
        >>> 0 < choice.weight < 0.5, 0.4 < choice.noise < 0.6
        (True, True)
    """

    def score(self, residual: Tensor, trace: Tensor, entries: int, nodes: int, noise: float) -> Tensor:
        """The mean squared residual over the squared share of freedom that is left."""
        return residual / entries / (1 - trace / nodes).square()

    def noise_before(self, x: Tensor, graph: Graph) -> float:
        """NaN: needs none."""
        return math.nan

    def noise_known(self, covariance: Covariance) -> float:
        """NaN: needs none."""
        return math.nan


@dataclass(frozen=True)
class SURE(Criterion):
    r"""Stein's unbiased risk estimate: choose the weight of least expected error, for a known noise level (Stein, 1981).

    .. math:: \operatorname{SURE}(\alpha) = \tfrac{1}{nd}\lVert X - S_\alpha X\rVert_F^2 - \sigma^2
       + \tfrac{2\sigma^2}{n} \operatorname{tr} S_\alpha

    Its mean over the noise is the risk :math:`\tfrac{1}{nd}\mathbb{E}\lVert S_\alpha X - X_0\rVert_F^2`. All columns share
    one weight and one noise level; scale columns of different units before. With a covariance Σ of the noise, σ² is the mean of
    its eigenvalues :math:`\sigma_c^2`, and the last term :math:`\tfrac{2}{nd}\sum_c \sigma_c^2 \operatorname{tr} S_{\alpha,c}` over
    the principal channels: still unbiased for the risk. For other problems than the smooth one tr S is the number of degrees of freedom,
    measured with random signs; the estimate is unbiased there, too. Outliers are no Gaussian noise, but would count as signal,
    so the problem ``robust`` is left to :class:`~unspool.denoise.HeldOut`.

    Args:
        candidates, probes, steps, seed: as in :class:`Criterion`.
        noise: σ, the standard deviation of the noise. When omitted it is estimated from the high frequencies, see
            :func:`noise_level`.

    Example:
        >>> import torch, unspool as us
        >>> graph, place = us.graph.sensor(300)
        >>> noise = torch.randn(300, 1, generator=torch.Generator().manual_seed(0))
        >>> choice = SURE(noise=0.5).choose(torch.sin(6 * place[:, :1]) + 0.5 * noise, graph)
        >>> 0 < choice.weight < 0.5, choice.noise
        (True, 0.5)
    """

    noise: float | None = None

    def score(self, residual: Tensor, trace: Tensor, entries: int, nodes: int, noise: float) -> Tensor:
        """The estimated mean squared error per entry."""
        return residual / entries - noise**2 + 2 * noise**2 * trace / nodes

    def noise_before(self, x: Tensor, graph: Graph) -> float:
        """σ as given, or as estimated."""
        if self.noise is None:
            return noise_level(x, graph, _PROBES if self.probes is None else self.probes, self.seed)
        if not (math.isfinite(self.noise) and self.noise >= 0):
            raise ValueError(f"noise={self.noise!r}: a standard deviation is a finite number of at least 0")
        return float(self.noise)

    def noise_known(self, covariance: Covariance) -> float:
        """σ of the covariance."""
        if self.noise is not None:
            raise ValueError(
                "noise is given twice, as a level SURE(noise=...) and as a covariance; leave the level out"
            )
        return covariance.level


def noise_level(x: Tensor, graph: Graph, probes: int = 32, seed: int = 0) -> float:
    r"""The standard deviation of white noise on a smooth signal, robustly, from its high graph frequencies.

    .. math:: \hat\sigma = \operatorname{median}_{i,j} \frac{|(L^2 X)_{ij}|}{\lVert (L^2)_i\rVert_2} \Big/ 0.6745

    L² damps what is smooth; the median ignores the few nodes where the signal jumps. Row norms are exact up to 2000 nodes
    and estimated with random signs above. Zero where most entries are zero, as in bags of words: give the level then.

    Example:
        >>> import torch, unspool as us
        >>> noise = torch.randn(900, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        >>> round(noise_level(3 * noise, us.graph.grid(30, 30).to(torch.float64)))
        3
    """
    rough = graph.laplacian_times(graph.laplacian_times(x))
    if graph.nodes <= LARGEST_EXACT:
        probe, share = torch.eye(graph.nodes, dtype=x.dtype), 1.0
    else:
        probe, share = random_signs(graph.nodes, probes, seed).to(x.dtype), 1.0 / probes
    seen = graph.laplacian_times(graph.laplacian_times(probe))
    size = (seen.square().sum(1, keepdim=True) * share).sqrt()
    heard = size[:, 0] > 1e-12 * size.max()  # nodes without neighbours tell nothing
    relative = (rough[heard].abs() / size[heard]).flatten()
    return float(relative.median()) / _NORMAL_MEDIAN
