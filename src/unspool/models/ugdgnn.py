"""UGDGNN: the paper's own model, unrolled gradient descent (Zhang and Zhao)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from enum import Enum
from typing import Any

import torch
from torch import Tensor, nn

from unspool.algorithm import GradientDescent
from unspool.errors import IncompatibleError
from unspool.graph import Graph, check_input
from unspool.models import usual_settings as usual
from unspool.models.channels import Channels
from unspool.models.convert import adopt, power_hops
from unspool.models.hop_start import HopStart, hop_start
from unspool.models.masks import Masks
from unspool.models.model import Model
from unspool.nn import Dropout, Linear, Perceptron, Start
from unspool.nn.flatten import Densify
from unspool.nn.linear import begin
from unspool.objective import Fidelity, Learnable, Objective, Relaxed, Smoothness
from unspool.ops import Basis, propagate
from unspool.settings import setting
from unspool.spectral import Fit, fit_filter
from unspool.unrolling import ReadBack, read_back_hops, unroll

#: Where ζ begins. The paper does not say; a public implementation starts at 1/K, which leaves hops of random channel mixtures.
#: On the public splits of Cora and CiteSeer 1/K gives 82.6 and 66.4 per cent, starts from 0.7 to 1 give 83.3 to 83.7 and 70.4 to 71.1
#: (benchmarks/ugdgnn_start.py: 3 seeds, 300 epochs). Below 1, W has a gradient from the first step.
NEAR_IDENTITY = 0.8
#: α where γ begins as GPRGNN's does.
TELEPORT = 0.1


class Mixing(Enum):
    """``TIED``: ξ = 1 − ζ, as in the paper's experiments. ``FREE``: ξ learnt beside ζ. The same functions either way."""

    TIED = "tied"
    FREE = "free"


class Layers(Enum):
    """``REDUCED``: Σ γₖ Aᵏ X (ζₖ I + ξₖ Wₖ). ``GENERAL``: K layers of eq. (5) with all their η, α, β, Tα, Tβ."""

    REDUCED = "reduced"
    GENERAL = "general"


class UGDGNN(Model):
    r"""Unrolled gradient descent, reparametrised: :math:`\sum_{k=0}^K \gamma_k A^k X(\zeta_k I + \xi_k W_k)`.

    Proposition 11: K general gradient steps on :math:`\alpha\lVert H-X\rVert_{T_\alpha}^2 + \beta\lVert BH\rVert_{T_\beta}^2`, where the
    coefficients sum to I; others with an invertible sum S are, nearly always, such a network followed by p_pos = S (docs/errata.md, 2).
    Contains SGC, APPNP, JKNet (linear sum) and GPRGNN: :meth:`from_model`; and every polynomial filter: :meth:`from_filter`.
    Memory does not grow with depth (with ``Masks.EACH_HOP`` it does, in training).


    Example:
        >>> import torch, unspool as us
        >>> model = us.models.UGDGNN(5, 3, depth=4)
        >>> print(model.objective)
        αₖ ‖H − X‖²_Tαₖ  +  βₖ ‖B H‖²_Tβₖ
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    title = "the paper's own model, unrolled gradient descent (Zhang and Zhao)"
    derivation = "K general gradient steps where the hop coefficients sum to I; otherwise their sum joins the decoder (Proposition 11)"

    hidden: int = usual.width("width of the encoder")
    depth: int = usual.depth(10)
    dropout: float = usual.dropout(meaning="rate on the input of every linear layer")
    propagation_dropout: float = usual.dropout(0.0, "rate on the encoder's output, before the hops")
    masks: Masks = setting(Masks.ONCE, "whether all hops share one mask of it, or each has a fresh one")
    channels: Channels = setting(Channels.CLASSES, "which features travel")
    mixing: Mixing = setting(Mixing.TIED, "whether ξ is 1 − ζ or free")
    layers: Layers = setting(Layers.REDUCED, "the paper's reduced form, or the K general layers it was reduced from")
    bias: bool = setting(True, "whether encoder and head have one")
    basis: Basis = setting(
        Basis.POWERS, "powers of A as in the paper; Chebyshev polynomials keep their digits at any depth"
    )
    start: HopStart = setting(
        HopStart.UNIFORM, "how γ begins in the reduced form: at 1/K, as GPRGNN with α = 0.1 (ppr), and so on"
    )

    def build(self) -> None:
        """Make the parts."""
        held, general = self.masks is Masks.EACH_HOP, self.layers is Layers.GENERAL
        if held and general:
            raise IncompatibleError(
                "masks=Masks.EACH_HOP: the K steps of Layers.GENERAL have no hops to mask one by one; take Layers.REDUCED or Masks.ONCE"
            )
        if self.start is not HopStart.UNIFORM and general:
            raise IncompatibleError(
                f"start=HopStart.{self.start.name}: Layers.GENERAL has no γ to begin with; take Layers.REDUCED"
            )
        end: dict[str, Any] = {"after": self.propagation_dropout, "held": held}
        width = self.out_features if self.channels is Channels.CLASSES else self.hidden
        if self.channels is Channels.CLASSES:
            widths = [self.in_features, self.hidden, self.out_features]
            self.p_pre = Perceptron(widths, self.dropout, self.bias, Start.GLOROT, **end)
        else:
            widths = [self.in_features, self.hidden]
            self.p_pre = Perceptron(widths, self.dropout, self.bias, Start.GLOROT, open_end=False, **end)
            self.p_pos = nn.Sequential(Dropout(self.dropout), Linear(self.hidden, self.out_features, self.bias))
        if general:
            eta = Learnable(0.5, per_layer=True, name="η")
            self.propagation = unroll(general_objective(width, self.depth), GradientDescent(step=eta), self.depth)
        else:
            self.propagation = MixedHops(width, self.depth, self.mixing, self.basis, self.start)

    @property
    def objective(self) -> Objective:
        """α‖H − X‖²_Tα + β‖BH‖²_Tβ, everything per layer."""
        if self.layers is Layers.GENERAL:
            return self.propagation.objective  # type: ignore[return-value]
        width = self.propagation.weight.shape[-1]  # type: ignore[union-attr]
        return general_objective(int(width), self.depth)

    @classmethod
    def from_model(cls, model: Any) -> UGDGNN:
        """The UGDGNN that computes what another model computes, with its trained weights.

        Numbers cₖ become γₖ = cₖ, ζₖ = 1, ξₖ = 0; matrices Cₖ become γₖ = 1, ζₖ = 0, ξₖ = 1, Wₖ = Cₖ. Where ξ = 0, W has no
        gradient until training moves ζ.

        Example:
            >>> import torch, unspool as us
            >>> appnp, graph, x = us.models.APPNP(5, 3).eval(), us.graph.ring(5), torch.eye(5)
            >>> torch.allclose(us.models.UGDGNN.from_model(appnp).eval()(x, graph), appnp(x, graph), atol=1e-6)
            True
        """
        hops = power_hops(model)
        travelling = model.in_features if isinstance(model.p_pre, Densify) else model.out_features
        width = hops.shape[-1] if hops.ndim > 1 else int(travelling)
        return _filled(cls(model.in_features, model.out_features, depth=hops.shape[0] - 1), hops, width, model)

    @classmethod
    def from_filter(
        cls, response: Callable[[Tensor], Tensor], degree: int, features: int = 1, graph: Graph | None = None
    ) -> UGDGNN:
        """A UGDGNN set to a spectral response h(λ), λ in [0, 2], on raw signals; ``model.fit`` reports the error.

        Theorem 12: every polynomial filter of degree K is a K-layer UGDGNN.

        Args:
            response: h, a function of a tensor of frequencies.
            degree: K.
            features: channels of the signals to be filtered.
            graph: weigh the fit by this graph's own frequencies.

        Example:
            >>> import torch, unspool as us
            >>> model = us.models.UGDGNN.from_filter(lambda f: f**2 / 4, degree=2)  # a high-pass
            >>> graph, x = us.graph.ring(6), torch.randn(6, 1)
            >>> l = torch.eye(6) - graph.to_dense()
            >>> torch.allclose(model(x, graph), l @ l @ x / 4, atol=1e-6)
            True
            >>> model.fit.max_error < 1e-12
            True
        """
        if not callable(response):
            raise TypeError(
                f"{response!r} is not a response: give a function of the frequency, such as spectral.low_pass(0.5)"
            )
        if degree < 1:
            raise ValueError(f"degree={degree}: a filter on the graph has a degree of at least 1")
        fit = fit_filter(response, degree) if graph is None else fit_filter(response, degree, graph=graph)
        made = filter_shell(features, degree, fit.basis)
        made.fit = fit
        with torch.no_grad():
            made.propagation.gamma.copy_(fit.hops)  # type: ignore[union-attr]
            made.propagation.zeta.fill_(1.0)  # type: ignore[union-attr]
        return made

    #: How well :meth:`from_filter` met its target; None otherwise.
    fit: Fit | None = None


def filter_shell(features: int, degree: int, basis: Basis) -> UGDGNN:
    """A UGDGNN on raw signals: no encoder, no decoder."""
    made = UGDGNN(features, features, depth=degree, basis=basis)
    made.p_pre, made.p_pos, made.origin = Densify(), nn.Identity(), "filter"
    return made


def general_objective(features: int, depth: int) -> Objective:
    """α‖H − X‖²_Tα + β‖BH‖²_Tβ with everything free and per layer, started as APPNP with γ = 1/(K+1)."""
    share = 1 / (depth + 1)
    alpha = Learnable(share, per_layer=True, name="α")
    beta = Learnable(1 - share, per_layer=True, name="β")
    t_alpha = Relaxed(features, per_layer=True, name="Tα")
    t_beta = Relaxed(features, per_layer=True, name="Tβ")
    return Fidelity(alpha, metric=t_alpha) + Smoothness(beta, metric=t_beta)


class MixedHops(nn.Module):
    r"""The reduced propagation :math:`\sum_k \gamma_k A^k X(\zeta_k I + \xi_k W_k)`; γ begins as ``start`` says, ζ near 1.

    Example:
        >>> import torch, unspool as us
        >>> MixedHops(3, depth=4)(torch.ones(5, 3), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    def __init__(
        self,
        features: int,
        depth: int,
        mixing: Mixing = Mixing.TIED,
        basis: Basis = Basis.POWERS,
        start: HopStart = HopStart.UNIFORM,
    ) -> None:
        super().__init__()
        if start is HopStart.WARM:
            raise ValueError(
                "start=HopStart.WARM: UGDGNN begins with values of one's own through UGDGNN.from_model or from_filter"
            )
        self.gamma = nn.Parameter(hop_start(start, depth, TELEPORT).to(torch.get_default_dtype()))
        self.zeta = nn.Parameter(torch.full((depth + 1,), NEAR_IDENTITY))
        self.xi = nn.Parameter(torch.full((depth + 1,), 1 - NEAR_IDENTITY)) if mixing is Mixing.FREE else None
        self.weight = nn.Parameter(torch.empty(depth + 1, features, features))
        begin(self.weight, None, Start.UNIFORM)
        self.basis = basis

    def hops(self) -> Tensor:
        """The matrices cₖ = γₖ (ζₖ I + ξₖ Wₖ), shape (K+1, features, features)."""
        xi = 1 - self.zeta if self.xi is None else self.xi
        eye = torch.eye(self.weight.shape[-1], dtype=self.weight.dtype, device=self.weight.device)
        return (self.gamma * self.zeta)[:, None, None] * eye + (self.gamma * xi)[:, None, None] * self.weight

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """Σ Aᵏ X cₖ."""
        check_input(x, graph)
        return propagate(graph, x, self.hops(), self.basis)

    def read_back(self, *, symmetric: bool = False) -> ReadBack:
        """Gradient layers that give these coefficients: see :func:`~unspool.unrolling.read_hops.read_back_hops`."""
        return read_back_hops(self.hops(), basis=self.basis, symmetric=symmetric)

    def extra_repr(self) -> str:
        """Degree, width, mixing."""
        mixing = "ξ = 1 − ζ" if self.xi is None else "ξ free"
        return f"degree {self.gamma.numel() - 1}, {self.weight.shape[-1]} channels, {mixing}"


def _filled(made: UGDGNN, hops: Tensor, width: int, source: Any) -> UGDGNN:
    propagation = MixedHops(width, hops.shape[0] - 1)
    numbers = hops.ndim == 1
    like = next(source.parameters())
    propagation.to(like.device, like.dtype)
    with torch.no_grad():
        propagation.zeta.fill_(1.0 if numbers else 0.0)
        propagation.gamma.copy_(hops if numbers else torch.ones(hops.shape[0]))
        if not numbers:
            propagation.weight.copy_(torch.diag_embed(hops) if hops.ndim == 2 else hops)
    return adopt(made, copy.deepcopy(source.p_pre), propagation, copy.deepcopy(source.p_pos), source)
