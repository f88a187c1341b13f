"""StableGNN: features denoised by a declared problem, for training under the stability term of the upper level."""

from __future__ import annotations

import functools
from enum import Enum

import torch
from torch import nn

from unspool.algorithm import GradientDescent, Jacobi, ProximalGradient
from unspool.models import usual_settings as usual
from unspool.models.gcnii import gcnii_objective, logarithmic
from unspool.models.model import Model
from unspool.nn import Dropout, Linear, Perceptron, Start
from unspool.nn.linear import begin
from unspool.objective import EdgePenalty, Fidelity, Learnable, Log, Schedule, Smoothness
from unspool.settings import integers, log_uniform, setting
from unspool.unrolling import unroll


class Steps(Enum):
    """Which problem's steps are unrolled.

    ``UNIFORM``: αₖ = 1/(k+1), whose K gradient steps are the mean of all hops, Σ Aᵏ X / (K+1), as in GRAND. ``PPR``: the same α in all
    steps, personalised PageRank. ``LEARNT``: αₖ learnt in (0, 1), from 1/(k+1) on. ``PROXIMAL``: GCNII's proximal steps with matrices.
    ``REWEIGHTED``: smoothing that lets go of edges whose ends differ, as TWIRLS.
    """

    UNIFORM = "uniform"
    PPR = "ppr"
    LEARNT = "learnt"
    PROXIMAL = "proximal"
    REWEIGHTED = "reweighted"


class Signal(Enum):
    """What is denoised: ``HIDDEN``, what a linear encoder makes of the features; ``FEATURES``, the features as they came.

    The two are the same function where the decoder begins with a linear layer and the steps are linear, since W and the hops commute. They
    part where the decoder first normalises and drops what was denoised, as GRAND's does.
    """

    HIDDEN = "hidden"
    FEATURES = "features"


def share(layer: int) -> float:
    """αₖ = 1/(k + 1).

    Example:
        >>> share(1), share(3)
        (0.5, 0.25)
    """
    return 1 / (layer + 1)


class StableGNN(Model):
    r"""K steps on a denoising problem of the features, or of what a linear encoder makes of them, and a perceptron as decoder.

    With ``Steps.UNIFORM`` the steps have size 1/2 on :math:`\alpha_k\lVert H-X\rVert^2 + (1-\alpha_k)\lVert BH\rVert^2`,
    :math:`\alpha_k = 1/(k+1)`, and come to :math:`\frac{1}{K+1}\sum_{k=0}^K A^k X`. Batch normalisation and residual layers stand in the
    decoder, outside the unrolled part, so ``read_back`` and responses stay exact. Made for upper levels with views
    (:mod:`unspool.train.upper`): *the solution of the lower problem shall be stable under perturbations of its data*. With uniform steps,
    ``ce + consistency``, lost nodes and ``Signal.FEATURES`` it is GRAND (Feng et al., 2020).

    Example:
        >>> import torch, unspool as us
        >>> model = us.models.StableGNN(5, 3, depth=4)
        >>> print(model.objective)
        αₖ ‖H − X‖²  +  (1 − αₖ) ‖B H‖²
        >>> graph = us.graph.ring(5)
        >>> model.propagation.hops(graph, torch.eye(5)).numpy().round(4)
        array([0.2, 0.2, 0.2, 0.2, 0.2], dtype=float32)
    """

    title = "features denoised by a declared problem, made for the stability term of the upper level"
    derivation = "K steps of size 1/2 with αₖ = 1/(k+1), or those of the problem that is declared"

    hidden: int = usual.width("width of the hidden features")
    signal: Signal = setting(Signal.HIDDEN, "what is denoised: hidden features, or the features as they came")
    depth: int = usual.depth(4, "K, the number of steps")
    steps: Steps = setting(Steps.UNIFORM, "which problem's steps are unrolled")
    teleport: float = usual.teleport("α of ppr and proximal steps", 0.1)
    smoothness: float = setting(
        4.0, "λ of reweighted steps, the weight of differences across edges", above=0, search=log_uniform(0.5, 20.0)
    )
    threshold: float = setting(
        1.0,
        "τ of reweighted steps, the squared length at which forgiving sets in",
        above=0,
        search=log_uniform(0.01, 10.0),
    )
    dropout: float = usual.dropout(meaning="rate on the input of the first linear layer")
    head_dropout: float = usual.dropout(meaning="rate on the inputs of the layers after it")
    head_layers: int = setting(1, "linear layers after the first", at_least=1, at_most=100, search=integers(1, 3))
    batch_norm: bool = setting(False, "normalise what was denoised, and hidden layers behind it, over the nodes")
    skip: bool = setting(False, "whether the decoder's hidden layers add their input to what they give")
    bias: bool = setting(
        False,
        "whether the layers have one; with one, all nodes may come to say the same under a stability term without a warm-up",
    )

    def build(self) -> None:
        """Make the parts."""
        front: list[nn.Module] = []
        if self.signal is Signal.HIDDEN:
            self.p_pre = Perceptron([self.in_features, self.hidden], self.dropout, self.bias)
        else:
            front = [
                *self._norm(self.in_features),
                Dropout(self.dropout),
                Linear(self.in_features, self.hidden, self.bias),
            ]
        self._propagate(self.hidden if self.signal is Signal.HIDDEN else self.in_features)
        widths = [*[self.hidden] * self.head_layers, self.out_features]
        head = Perceptron(widths, self.head_dropout, self.bias, batch_norm=self.batch_norm, residual=self.skip)
        # Where the features are denoised, hidden ones are normalised behind the ReLU, as in GRAND.
        between = [*self._norm(self.hidden), nn.ReLU()]
        self.p_pos = nn.Sequential(*front, *(reversed(between) if front else between), head)

    def _norm(self, width: int) -> list[nn.Module]:
        return [nn.BatchNorm1d(width)] if self.batch_norm else []

    def _propagate(self, width: int) -> None:
        """Unroll the declared problem of a signal of so many channels."""
        half = GradientDescent(step=0.5)
        if self.steps is Steps.UNIFORM:
            falling = Schedule(share, name="α")
            self.propagation = unroll(Fidelity(falling) + Smoothness(1 - falling), half, self.depth)
        elif self.steps is Steps.PPR:
            self.propagation = unroll(Fidelity(self.teleport) + Smoothness(1 - self.teleport), half, self.depth)
        elif self.steps is Steps.LEARNT:
            alpha = Learnable(0.5, per_layer=True, within=(0, 1), name="α")
            self.propagation = unroll(Fidelity(alpha) + Smoothness(1 - alpha), half, self.depth)
            with torch.no_grad():
                uniform = torch.tensor([share(k) for k in range(1, self.depth + 1)], dtype=torch.float64)
                self.propagation.coefficients["α"].copy_(torch.logit(uniform))
        elif self.steps is Steps.PROXIMAL:
            lean = Schedule(functools.partial(logarithmic, 0.5), name="θ")
            objective = gcnii_objective(width, self.teleport, lean)
            self.propagation = unroll(objective, ProximalGradient(step=0.5), self.depth)
            begin(self.propagation.coefficients["W"], None, Start.UNIFORM)
        else:
            self.keeps_laplacian = True  # its layers look at B
            objective = Fidelity(1.0) + EdgePenalty(Log(self.threshold), self.smoothness)
            self.propagation = unroll(objective, Jacobi(step=1.0), self.depth)
