"""The steps of a fast batch in plain torch: the mathematics of the kernels, any device, any precision.

Each function does what the function of the same name in ``cuda.py`` does. It is written to be read and to be compared with, one
trial after the other; on a CPU :class:`~unspool.study.batch.stacked_batch.StackedBatch` is the faster batch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from unspool.ops import recurrence
from unspool.ops.dropout import keep_mask
from unspool.ops.prox import row_shrink
from unspool.study.batch.kernel.blueprints import Middle, Mixer
from unspool.study.batch.kernel.state import PIECES, State


def hash_masks(s: State, back: bool) -> None:
    """Nothing: masks are made where they are used."""


def _dropped_x(s: State, trial: int) -> Tensor:
    """X after dropout, dense."""
    return s.shared.x.to_dense() * _mask(s, 0, trial, (s.nodes, s.features))


def _mask(s: State, number: int, trial: int, shape: tuple[int, int], more: int = 0) -> Tensor:
    """The factors of a dropout site: 0 or 1 / (1 − rate); ``more`` calls further on."""
    site = s.config.sites[number]
    if site is None:
        return torch.ones(shape, dtype=s.small.dtype, device=s.small.device)
    rate = (int(s.threshold[number, trial]) + 2**15) / 2**16  # the same threshold, whatever the rate was
    calls = int(s.depth[trial]) + 1 if number == 2 and s.config.each_hop else site.calls
    count = int(s.epoch[trial]) * calls + site.place + more
    kept = keep_mask(shape, rate, s.key[number, trial], count)
    return kept.to(s.small.dtype) * s.scale[number, trial]


def _hop_masks(s: State, trial: int) -> Tensor:
    """The factors of every hop, where each has its own: shape (hops, nodes, classes)."""
    return torch.stack([_mask(s, 2, trial, (s.nodes, s.classes), k) for k in range(s.hops)])


def first_plain(s: State, out: Tensor) -> None:
    """X W for all trials, in both modes if there are two."""
    x = s.shared.x.to_dense()
    for t in range(s.slots):
        if s.nets == 2:
            out[:, t, 0, : s.width] = _dropped_x(s, t) @ s.weight[t]
        out[:, t, -1, : s.width] = x @ s.weight[t]


def _part(s: State, role: str, trial: int, shape: tuple[int, ...]) -> Tensor:
    at = s.layout.at(role)
    return s.small[trial, at : at + s.layout.sizes[role]].view(shape)


def first_perceptron(s: State) -> None:
    """The perceptron of all trials, with z cₖ for the hops of a series."""
    plain = torch.zeros(s.nodes, s.slots, 2, s.width, dtype=s.small.dtype, device=s.small.device)
    first_plain(s, plain)
    middle(s, plain)


def middle(s: State, signal: Tensor) -> None:
    """The second half of the perceptron on the first layer's products."""
    for t in range(s.slots):
        some, everything = signal[:, t, 0], signal[:, t, 1]
        if s.layout.has("b1"):
            some, everything = (v + _part(s, "b1", t, (s.width,)) for v in (some, everything))
        s.hidden[t] = some.relu() * _mask(s, 1, t, (s.nodes, s.width))
        w2 = _part(s, "w2", t, (s.width, s.classes))
        learnt, seen = s.hidden[t] @ w2, everything.relu() @ w2
        if s.layout.has("b2"):
            learnt, seen = (v + _part(s, "b2", t, (s.classes,)) for v in (learnt, seen))
        s.z[:, t, 0, : s.classes] = learnt if s.config.each_hop else learnt * _mask(s, 2, t, (s.nodes, s.classes))
        s.z[:, t, 1, : s.classes] = seen
    if s.config.middle is Middle.SERIES:
        s.pages.copy_(torch.einsum("itnc,tkcd->kitnd", s.z, s.coefficients))
        for t in range(s.slots if s.config.each_hop else 0):
            seen = _hop_masks(s, t) * s.z[:, t, 0, : s.classes]
            s.pages[:, :, t, 0] = seen @ s.coefficients[t, :, : s.classes]


def hop(
    csr: Any, y: Tensor, out: Tensor, base: Tensor | None = None, scale: float = 1.0, lagged: Tensor | None = None
) -> None:
    """out = scale A y + base − lagged, all trials side by side."""
    found = scale * recurrence.product(csr, y.reshape(y.shape[0], -1)).view(out.shape)
    found = found if base is None else found + base
    out.copy_(found if lagged is None else found - lagged)


def pull(s: State, layer: int, y: Tensor) -> None:
    """Rows towards those of the perceptron, in place; what they were away by is kept for the way back."""
    s.inside[layer] = (y - s.z)[:, :, 0]
    y.copy_(row_shrink(y, s.radius[:, None, None], s.z))


def pull_backward(s: State, layer: int, grad: Tensor) -> None:
    """The gradient before the pull, and what goes to the perceptron past it."""
    offset, radius = s.inside[layer], s.radius[:, None]
    squared = (offset * offset).sum(-1, keepdim=True)
    outside = squared > radius * radius
    length = torch.where(outside, squared, 1.0).sqrt()
    along = (offset * grad).sum(-1, keepdim=True)
    s.moved.copy_(torch.where(outside, (1 - radius / length) * grad + radius / length**3 * along * offset, 0.0))
    rest = grad - s.moved
    s.total.copy_(rest if layer + 1 == s.config.depth else s.total + rest)


def _gate(s: State, y: Tensor) -> Tensor:
    """σ(y s + t) for y of shape (..., trials, nets, channels)."""
    c = s.classes
    lean = s.small[:, s.layout.at("gate") : s.layout.at("gate") + c]
    shift = s.small[:, s.layout.at("gate_bias")]
    return torch.sigmoid(torch.einsum("...tnc,tc->...tn", y[..., :c], lean) + shift[:, None])


def gates(s: State, out: Tensor) -> None:
    """DAGNN's weighted sum of hops."""
    out.copy_((_gate(s, s.pages)[..., None] * s.pages).sum(0))


def gates_backward(s: State) -> None:
    """The gradients of all hops and of the gate."""
    c, y = s.classes, s.pages[:, :, :, 0]
    gate = _gate(s, s.pages)[..., 0]
    lean = (s.grad * y).sum(-1) * gate * (1 - gate)
    s.sweep.copy_(gate[..., None] * s.grad)
    at = s.layout.at("gate")
    s.sweep[..., :c] += lean[..., None] * s.small[:, at : at + c]
    s.partial[PIECES, :, at : at + c] = torch.einsum("kit,kitc->tc", lean, y[..., :c])
    s.partial[PIECES, :, s.layout.at("gate_bias")] = lean.sum((0, 1))


def losses(s: State, learnt: Tensor, seen: Tensor) -> None:
    """Training loss with its gradient, and the numbers of the evaluation."""
    turn = int(s.turn)
    for t in range(s.slots):
        shift = _part(s, "last", t, (s.classes,)) if s.layout.has("last") else 0.0
        train, valid, test = (ids[int(s.which[t])].long() for ids in (s.train, s.valid, s.test))
        labels, out = s.shared.labels.long(), seen[:, t, : s.classes] + shift
        mine = learnt[train, t, : s.classes] + shift
        s.now[t] = functional.cross_entropy(mine, labels[train])
        back = (mine.softmax(-1) - functional.one_hot(labels[train], s.classes)) / train.numel()
        s.grad[train, t, : s.classes] = back
        if s.layout.has("last"):
            at = s.layout.at("last")
            s.partial[PIECES, t, at : at + s.classes] = back.sum(0)
        s.ring[turn, t, 1] = functional.cross_entropy(out[valid], labels[valid])
        s.ring[turn, t, 2] = (out[valid].argmax(-1) == labels[valid]).double().mean()
        s.ring[turn, t, 3] = (out[test].argmax(-1) == labels[test]).double().mean()


def channels_backward(s: State, dz: Tensor) -> None:
    """From the class channels back to the hidden layer, with the gradients of everything between."""
    c = s.classes
    if s.config.middle is Middle.SERIES and not s.config.each_hop:
        dz = torch.einsum("kitd,tkcd->itc", s.sweep, s.coefficients)
        s.partial_coefficients[0] = torch.einsum("itc,kitd->tkcd", s.z[:, :, 0], s.sweep)
    for t in range(s.slots):
        back = _each_backward(s, t) if s.config.each_hop else dz[:, t, :c] * _mask(s, 2, t, (s.nodes, c))
        h, w2 = s.hidden[t], _part(s, "w2", t, (s.width, s.classes))
        dh = torch.where(h > 0, (back @ w2.T) * s.scale[1, t], 0.0)
        (s.grad_hidden[:, t] if s.config.middle is Middle.CONVOLUTION else s.grad_hidden[t]).copy_(dh)
        for role, value in (("w2", h.T @ back), ("b1", dh.sum(0)), ("b2", back.sum(0))):
            if s.layout.has(role):
                at = s.layout.at(role)
                s.partial[0, t, at : at + value.numel()] = value.flatten()


def _each_backward(s: State, t: int) -> Tensor:
    """dz = Σ mask ⊙ Uₖ cₖᵀ of one trial, and its dcₖ = (mask ⊙ z)ᵀ Uₖ."""
    masks, c, u = _hop_masks(s, t), s.classes, s.sweep[:, :, t]
    s.partial_coefficients[0, t, :, :c] = (masks * s.z[:, t, 0, :c]).mT @ u
    return (masks * (u @ s.coefficients[t].mT)[..., :c]).sum(0)


def _adam(s: State, w: Tensor, m: Tensor, v: Tensor, grad: Tensor) -> None:
    shape = (-1,) + (1,) * (w.ndim - 1)
    m.lerp_(grad, 1 - 0.9)
    v.mul_(0.999).addcmul_(grad, grad, value=1 - 0.999)
    w.sub_(s.step_size.view(shape) * m / (v.sqrt() * s.root.view(shape) + 1e-8))


def first_backward(s: State, signal: Tensor, row_stride: int, trial_stride: int) -> None:
    """The gradient of the first layer's weights, and Adam's step on them."""
    grads = []
    for t in range(s.slots):
        back = signal.as_strided((s.nodes, s.width), (row_stride, 1), signal.storage_offset() + t * trial_stride)
        x = s.shared.x.to_dense() if s.nets == 1 else _dropped_x(s, t)
        grads.append(x.T @ back + s.decay[t] * s.weight[t])
    _adam(s, s.weight, s.mean, s.square, torch.stack(grads))


def small_adam(s: State) -> None:
    """Adam on all other parameters."""
    grad = s.partial.sum(0) + s.small_decay[:, s.group.long()] * s.small
    _adam(s, s.small, s.small_mean, s.small_square, grad)


def _mixer_parts(s: State) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """γ, ζ, W of all trials, and which hops each one has."""
    at, c, k = s.layout, s.classes, s.hops
    gamma = s.small[:, at.at("gamma") : at.at("gamma") + k]
    there = (torch.arange(k, device=s.small.device)[None] <= s.depth[:, None]).to(s.small.dtype)
    if s.config.mixer is not Mixer.MATRICES:
        return gamma, torch.ones_like(gamma), gamma.new_zeros(s.slots, k, c, c), there
    zeta = s.small[:, at.at("zeta") : at.at("zeta") + k]
    weight = s.small[:, at.at("weight") : at.at("weight") + k * c * c].view(s.slots, k, c, c)
    return gamma, zeta, weight, there


def mixture(s: State) -> None:
    """Hop coefficients from the learnt parameters."""
    gamma, zeta, weight, there = _mixer_parts(s)
    eye = torch.eye(s.classes, dtype=s.small.dtype, device=s.small.device)
    c = (gamma * there)[..., None, None] * (zeta[..., None, None] * eye + (1 - zeta)[..., None, None] * weight)
    s.coefficients[..., : s.classes, : s.classes] = c


def mixture_backward(s: State) -> None:
    """Gradients of the learnt parameters from those of the coefficients."""
    gamma, zeta, weight, there = _mixer_parts(s)
    d = s.partial_coefficients.sum(0)[..., : s.classes, : s.classes] * there[..., None, None]
    trace, along = d.diagonal(dim1=-2, dim2=-1).sum(-1), (d * weight).sum((-2, -1))
    found = {"gamma": zeta * trace + (1 - zeta) * along}
    if s.config.mixer is Mixer.MATRICES:
        found.update(zeta=gamma * (trace - along), weight=(gamma * (1 - zeta))[..., None, None] * d)
    for role, value in found.items():
        at = s.layout.at(role)
        s.partial[PIECES, :, at : at + s.layout.sizes[role]] = value.flatten(1)


def begin_step(s: State) -> None:
    """Record the training loss and prepare Adam's corrections."""
    step = s.epoch.double() + 1
    s.step_size.copy_(s.rate / (1 - 0.9**step))
    s.root.copy_(1 / (1 - 0.999**step).sqrt())
    s.ring[int(s.turn), :, 0] = s.now


# -- hidden channels: JKNet and GCNII ----------------------------------------------------------------------------------


def first_hidden(s: State) -> None:
    """ReLU(X W + b), and what the hops begin with."""
    plain = torch.zeros(s.nodes, s.slots, 2, s.width, dtype=s.small.dtype, device=s.small.device)
    first_plain(s, plain)
    at = s.layout.at("b1")
    both = (plain + s.small[:, None, at : at + s.width]).relu()
    masks = torch.stack([_mask(s, 1, t, (s.nodes, s.width)) for t in range(s.slots)], dim=1)
    if s.config.middle is Middle.JUMPS:
        s.signals[0] = both[:, :, 0] * masks
        s.pages.copy_(torch.einsum("ith,tkhc->kitc", both[:, :, 1], s.matrices))
        return
    s.begin.copy_(both)
    s.signals[0] = both
    s.signals[0, :, :, 0] *= masks


def _hops(s: State) -> Tensor:
    """The matrices of all hops (layers), zero beyond the depth of a trial."""
    at, size = s.layout.at("hops"), s.layout.sizes["hops"]
    count = size // s.width**2
    found = s.small[:, at : at + size].view(s.slots, count, s.width, s.width)
    if s.config.middle is not Middle.JUMPS:
        return found
    there = torch.arange(count, device=s.small.device)[None] <= s.depth[:, None]
    return found * there[..., None, None]


def _head(s: State) -> Tensor:
    at = s.layout.at("head")
    return s.small[:, at : at + s.width * s.classes].view(s.slots, s.width, s.classes)


def jump_matrices(s: State) -> None:
    """The matrices of all hops, times the head."""
    s.matrices[..., : s.classes] = _hops(s) @ _head(s)[:, None]


def jump_out(s: State, y: Tensor) -> None:
    """Outputs of the training nodes."""
    for t in range(s.slots):
        ids = s.train[int(s.which[t])].long()
        h = torch.einsum("kih,khj->ij", s.signals[:, ids, t], _hops(s)[t])
        s.kept[t] = h * _mask(s, 2, t, (s.nodes, s.width))[ids]
        y[ids, t, : s.classes] = s.kept[t] @ _head(s)[t]


def jump_back(s: State) -> None:
    """Gradients of head and matrices, and of all hops at the training nodes."""
    at, head = s.layout.at("hops"), s.layout.at("head")
    for t in range(s.slots):
        ids = s.train[int(s.which[t])].long()
        g = s.grad[ids, t, : s.classes]
        dh = (g @ _head(s)[t].T) * _mask(s, 2, t, (s.nodes, s.width))[ids]
        used = (torch.arange(s.hops, device=s.small.device) <= s.depth[t])[:, None, None]
        dw = torch.einsum("kih,ij->khj", s.signals[:, ids, t], dh) * used
        s.partial[PIECES, t, at : at + dw.numel()] = dw.flatten()
        s.partial[PIECES, t, head : head + s.width * s.classes] = (s.kept[t].T @ g).flatten()
        s.back_rows[:, t] = torch.einsum("ij,khj->kih", dh, _hops(s)[t])


def add_rows(s: State, y: Tensor, rows: Tensor) -> None:
    """Add the rows of all trials to a signal at their training nodes."""
    for t in range(s.slots):
        y[s.train[int(s.which[t])].long(), t] += rows[t]


def hidden_backward(s: State, signal: Tensor) -> None:
    """Back through dropout and ReLU of the first layer, in place."""
    deep = s.config.middle is Middle.DEEP
    dropped = s.signals[0, :, :, 0] if deep else s.signals[0]
    g = torch.where(dropped > 0, signal * s.scale[1][:, None], 0.0)
    if deep:
        g = torch.where(s.begin[:, :, 0] > 0, g + s.total, 0.0)
    signal.copy_(g)
    at = s.layout.at("b1")
    s.partial[0, :, at : at + s.width] = g.sum(0)


def _mapping(s: State, layer: int) -> Tensor:
    """θ W + (1 − θ) I of one layer."""
    lean = s.leans[:, layer, None, None]
    return lean * _hops(s)[:, layer] + (1 - lean) * torch.eye(s.width, dtype=s.small.dtype, device=s.small.device)


def layer_forward(s: State, layer: int, moved: Tensor) -> None:
    """One layer of GCNII after its hop."""
    a = s.teleport[:, None, None]
    p = (1 - a) * moved + a * s.begin
    s.inside[layer] = p[:, :, 0]
    h = torch.einsum("itnh,thj->itnj", p, _mapping(s, layer)).relu()
    last = layer + 1 == s.config.depth
    for t in range(s.slots):
        h[:, t, 0] *= _mask(s, 2 if last else 1, t, (s.nodes, s.width), 0 if last else layer + 1)
    s.signals[layer + 1] = h


def layer_backward(s: State, layer: int, grad: Tensor, moved: Tensor) -> None:
    """Back through one layer of GCNII, to before its hop."""
    last = layer + 1 == s.config.depth
    g = torch.where(s.signals[layer + 1, :, :, 0] > 0, grad * s.scale[2 if last else 1][:, None], 0.0)
    dm = torch.einsum("ith,itj->thj", s.inside[layer], g) * s.leans[:, layer, None, None]
    at = s.layout.at("hops") + layer * s.width**2
    s.partial[0, :, at : at + s.width**2] = dm.flatten(1)
    dp = torch.einsum("itj,thj->ith", g, _mapping(s, layer))
    a = s.teleport[:, None]
    moved.copy_((1 - a) * dp)
    s.total.copy_(a * dp if last else s.total + a * dp)


def head_forward(s: State, y: Tensor) -> None:
    """The last layer."""
    y[..., : s.classes] = torch.einsum("itnh,thc->itnc", s.signals[s.config.depth], _head(s))


def head_backward(s: State, back: Tensor) -> None:
    """Gradients of the last layer and of its input."""
    at = s.layout.at("head")
    for t in range(s.slots):
        ids = s.train[int(s.which[t])].long()
        g = s.grad[ids, t, : s.classes]
        back[ids, t] = g @ _head(s)[t].T
        s.partial[PIECES, t, at : at + s.width * s.classes] = (s.signals[s.config.depth, ids, t, 0].T @ g).flatten()
