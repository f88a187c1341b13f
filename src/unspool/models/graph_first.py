"""Networks that propagate before anything that is not linear: from Aᵏ X at some nodes they say what they say of them on the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from unspool.errors import IncompatibleError
from unspool.graph import Graph, ring
from unspool.nn import Bias, Dropout, Linear, Perceptron
from unspool.nn.flatten import Densify
from unspool.ops import Basis
from unspool.ops.stored_hops import StoredHops
from unspool.unrolling import Input, Polynomial, Unrolled

if TYPE_CHECKING:
    from unspool.models.model import Model

#: Parts of a decoder that see one node at a time, in training too.
_ROW_BY_ROW = (Linear, Bias, nn.Identity, nn.ReLU)
#: What to take instead of a network that encodes first.
_INSTEAD = "take one that propagates first, such as SGC, GraphFirstGPRGNN, GraphFirstUGDGNN or SIGN"


def from_stored_hops(model: Model, x: StoredHops, graph: Any, rows: Tensor | None) -> Tensor:
    """What a model says of some rows of stored hops, which is what it says of these nodes on the graph, to rounding.

    With a linear encoder X W and a polynomial of the graph, Σₖ Aᵏ (X W) cₖ = Σₖ (Aᵏ X) W cₖ, and row i of that needs row i of each Aᵏ X and
    nothing else. Masks of dropout are those of the rows' numbers, as on the graph.

    Args:
        model: the network; refused where something that is not linear, or adds a bias, stands before its propagation.
        x: the hops.
        graph: not needed; where it is given, it must be one that the hops may come from.
        rows: which rows; all of them by default. In evaluation they are looked at in pieces.

    Example:
        >>> import tempfile, torch, unspool as us
        >>> graph, x = us.graph.ring(6), torch.eye(6)
        >>> model = us.models.GraphFirstGPRGNN(6, 3, depth=2).eval()
        >>> stored = us.hops.write(graph, x, depth=2, out=tempfile.mkdtemp() + "/hops")
        >>> torch.allclose(model(stored, rows=torch.tensor([4, 1])), model(x, graph)[[4, 1]], atol=1e-6)
        True
    """
    _check(model, x, graph)
    weight, hops, parts = _encoder(model), _coefficients(model), _decoder(model)
    ids = torch.arange(x.shape[0]) if rows is None else rows
    pieces = (ids,) if model.training else ids.split(x.piece)
    depth = hops.shape[0] - 1
    return torch.cat([
        _decoded(parts, _mixed(x.take(piece, depth), weight, hops), piece.to(x.device)) for piece in pieces
    ])  # fmt: skip


def propagates_first(model: nn.Module) -> str | None:
    """Why a network cannot say anything of stored hops; None where it can.

    Example:
        >>> import unspool as us
        >>> propagates_first(us.models.SGC(5, 3)) is None
        True
        >>> print(propagates_first(us.models.GCN(5, 3)))
        GCN cannot use stored hops: ...
    """
    from unspool.models.mlp import MLP  # which looks at hop 0 alone

    if isinstance(model, MLP):
        return None
    try:
        _encoder(model)
        _coefficients(model)
        _decoder(model)
    except IncompatibleError as problem:
        return str(problem)
    return None


def check_uses(model: nn.Module, x: StoredHops) -> None:
    """Refuse, before any work, a network that cannot use these hops.

    Example:
        >>> import tempfile, torch, unspool as us
        >>> stored = us.hops.write(us.graph.ring(6), torch.eye(6), depth=2, out=tempfile.mkdtemp() + "/hops")
        >>> check_uses(us.models.SIGN(6, 3, depth=4), stored)
        Traceback (most recent call last):
            ...
        unspool.errors.IncompatibleError: hop 4 is wanted, and hops 0 to 2 are stored; take a network of depth 2 at most, or write more hops
    """
    from unspool.models.mlp import MLP  # which looks at hop 0 alone

    if (why := propagates_first(model)) is not None:
        raise IncompatibleError(why)
    if not isinstance(model, MLP):
        x.check_depth(_coefficients(model).shape[0] - 1)


def own_features(model: Model, x: StoredHops, rows: Tensor | None) -> tuple[Tensor, Tensor]:
    """Hop 0 of some rows, which are the features themselves, and the numbers of these rows."""
    _check(model, x, None)
    ids = torch.arange(x.shape[0]) if rows is None else rows
    return x.take(ids, 0)[:, 0], ids.to(x.device)


def _mixed(pages: Tensor, weight: Tensor | None, hops: Tensor) -> Tensor:
    """Σₖ (Aᵏ X) W cₖ at some rows, from pages of shape (rows, K + 1, features)."""
    hops = hops.to(pages.dtype)
    if hops.ndim == 1:  # one product with W in place of K + 1
        h = torch.einsum("nkf,k->nf", pages, hops)
        return h if weight is None else h @ weight
    if hops.ndim == 3:
        return (pages if weight is None else pages @ weight).flatten(1) @ hops.flatten(0, 1)
    if weight is None:
        return (pages * hops).sum(1)
    total = pages.new_zeros(pages.shape[0], hops.shape[1])
    for k, channels in enumerate(
        hops.unbind(0)
    ):  # a hop is multiplied into the channels that it reaches, and into no others
        reached = torch.nonzero(channels).flatten()
        hop = pages[:, k] @ (weight[:, reached] * channels[reached])
        total = total.index_add(1, reached, hop.to(total.dtype))
    return total


def _coefficients(model: Any) -> Tensor:
    """The hop coefficients of a polynomial in powers of A that does not depend on the graph."""
    propagation, name = model.propagation, type(model).__name__
    basis = getattr(propagation, "basis", Basis.POWERS)
    if isinstance(propagation, Unrolled):
        linear = isinstance(propagation.adjoint, Polynomial) and isinstance(propagation.start, Input)
        if not linear or not propagation._plain_terms or model.keeps_laplacian:  # pyright: ignore[reportPrivateUsage]
            raise IncompatibleError(
                f"{name} cannot use stored hops: its propagation is no fixed polynomial of the graph; {_INSTEAD}"
            )
        basis = propagation.adjoint.basis or Basis.POWERS  # type: ignore[union-attr]
        like = next(model.parameters(), torch.zeros(0))
        hops = propagation.hops(ring(3).to(like.device).to(like.dtype).with_general_laplacian(), like)
    else:
        held: Any = getattr(propagation, "hops", None)
        hops = held() if callable(held) else held
    if not isinstance(hops, Tensor):
        raise IncompatibleError(
            f"{name} cannot use stored hops: its propagation is no polynomial of the graph; {_INSTEAD}"
        )
    if basis is not Basis.POWERS:
        raise IncompatibleError(
            f"{name} cannot use stored hops: its coefficients belong to Chebyshev polynomials, and powers of the graph are stored; {_INSTEAD}"
        )
    return hops


def _encoder(model: Any) -> Tensor | None:
    """W of an encoder X W; None where there is none."""
    part = model.p_pre
    if type(part) is Densify:
        return None
    layer = part.layers[0] if type(part) is Perceptron and len(part.layers) == 1 else part
    plain = type(part) is not Perceptron or (part.open_end and not part.held and part.dropout.idle and part.after.idle)
    if type(layer) is Linear and layer.bias is None and plain:
        return layer.weight
    raise IncompatibleError(
        f"{type(model).__name__} cannot use stored hops: its encoder is more than a matrix, and stands before the propagation; {_INSTEAD}"
    )


def _decoder(model: Any) -> list[nn.Module]:
    """The parts of a decoder, all of which see one node at a time."""
    p_pos = model.p_pos
    parts = list(p_pos) if type(p_pos) is nn.Sequential else [p_pos]
    for part in parts:
        alone = type(part) is Perceptron and part.norms is None and not part.held
        if not (type(part) in (*_ROW_BY_ROW, Dropout) or alone):
            raise IncompatibleError(
                f"{type(model).__name__} cannot use stored hops: {type(part).__name__} in its decoder may look at other nodes; build the "
                "decoder of Linear, Bias, ReLU, Dropout and Perceptron without batch normalisation"
            )
    return parts


def _decoded(parts: list[nn.Module], h: Tensor, rows: Tensor) -> Tensor:
    """The decoder at some rows, with the masks of their numbers."""
    for part in parts:
        h = part.at_rows(h, rows) if isinstance(part, Dropout | Perceptron) else part(h)
    return h


def _check(model: Model, x: StoredHops, graph: Any) -> None:
    """Raise one sentence where widths, types or places do not fit, or the graph is another one."""
    if x.shape[1] != model.in_features:
        raise ValueError(f"x has {x.shape[1]} features, but the model was built for {model.in_features}")
    like = next(model.parameters(), None)
    if like is not None and like.device != x.device:
        raise ValueError(f"x is on {x.device}, the model on {like.device}: call x.to({str(like.device)!r})")
    if like is not None and like.dtype != x.dtype and not torch.is_autocast_enabled(x.device.type):
        mine, theirs = (str(d).removeprefix("torch.") for d in (like.dtype, x.dtype))
        raise TypeError(f"x is {theirs}, the model {mine}: call x.to(torch.{mine})")
    if graph is not None:
        _check_graph(x, graph)


def _check_graph(x: StoredHops, graph: Any) -> None:
    if not isinstance(graph, Graph):
        raise TypeError("x are stored hops, which have seen their graph; leave the edges out")
    here = {"nodes": graph.nodes, "entries": graph.adjacency.entries, "normalisation": graph.normalisation.value}
    for name, value in here.items():
        if x.graph[name] != value:
            raise ValueError(
                f"x are hops on a graph with {name} {x.graph[name]}, and this one has {value}: leave the graph out, or write its own hops"
            )
