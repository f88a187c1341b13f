"""The ways through a network and back, one per kind of model: which steps in which order, on which memory."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import torch
from torch import Tensor

from unspool.ops import Basis
from unspool.study.batch.kernel.blueprints import Middle, Mixer
from unspool.study.batch.kernel.state import State


class Flow:
    """Memory, way forward and way back of one kind of model.

    ``forward`` ends with outputs for training and evaluation; ``backward`` begins with ``state.grad``, the gradient of the former
    at the training nodes (zero elsewhere), and ends with the gradient that the first layer takes.
    """

    def signals(self, s: State) -> None:
        """Make what the way needs."""
        raise NotImplementedError

    def held(self, s: State) -> list[tuple[Tensor, int]]:
        """Signals that stay zero where a trial has no training node, and must be cleared for the next; their trial dimension."""
        return [(s.grad, 1)]

    def forward(self, s: State, steps: ModuleType) -> tuple[Tensor, Tensor]:
        """Outputs with dropout, outputs without; shape (nodes, trials, channels)."""
        raise NotImplementedError

    def backward(self, s: State, steps: ModuleType) -> tuple[Tensor, int, int]:
        """The gradient of the first layer's output, and its strides over nodes and trials."""
        raise NotImplementedError


def _back_hops(
    s: State, steps: ModuleType, y: Tensor, bases: Sequence[Tensor | None], turns: Sequence[Tensor]
) -> Tensor:
    for k, base in enumerate(bases):
        out = turns[k % 2]
        steps.hop(s.shared.transpose, y, out, base)
        y = out
    return y


class _Perceptron(Flow):
    """Two layers, then hops on class channels."""

    def signals(self, s: State) -> None:
        """What it needs."""
        t, n, c = s.slots, s.nodes, s.channels
        s.z = s.floats(n, t, 2, c)
        s.hidden, s.grad_hidden = s.floats(t, n, s.width), s.floats(t, n, s.width)
        s.pages = s.floats(s.hops, n, t, 2, c)  # z cₖ for a series, Aᵏ z for gates
        s.sweep = s.floats(s.hops, n, t, c)
        s.turns = [s.floats(n, t, 2, c) for _ in range(2)]


class Series(_Perceptron):
    """Σ Aᵏ Z cₖ by Horner's rule, Σ Tₖ(A) Z cₖ by Clenshaw's; back by the sweep Uₖ = Aᵀ Uₖ₋₁ or its recurrence."""

    def signals(self, s: State) -> None:
        """What it needs."""
        super().signals(s)
        s.grad = s.sweep[0]

    def forward(self, s: State, steps: ModuleType) -> tuple[Tensor, Tensor]:
        """Its way forward."""
        if s.config.mixer is not Mixer.FIXED:
            steps.mixture(s)
        steps.first_perceptron(s)
        y, before, powers = s.pages[s.config.depth], None, s.config.basis is Basis.POWERS
        for k in reversed(range(s.config.depth)):
            # In place of the one before the last: a row reads its own entries of it before it is written.
            out = s.turns[k % 2]
            steps.hop(s.shared.forward, y, out, s.pages[k], 1.0 if powers or k == 0 else 2.0, before)
            y, before = out, None if powers else y
        return y[:, :, 0], y[:, :, 1]

    def backward(self, s: State, steps: ModuleType) -> tuple[Tensor, int, int]:
        """Its way back."""
        powers = s.config.basis is Basis.POWERS
        for k in range(s.config.depth):
            plain = powers or k == 0
            before = None if plain else s.sweep[k - 1]
            steps.hop(s.shared.transpose, s.sweep[k], s.sweep[k + 1], None, 1.0 if plain else 2.0, before)
        steps.channels_backward(s, s.grad)
        if s.config.mixer is not Mixer.FIXED:
            steps.mixture_backward(s)
        return s.grad_hidden, s.width, s.nodes * s.width


class Gated(_Perceptron):
    """All powers Aᵏ Z, weighed by DAGNN's gates; back by Horner's rule."""

    def signals(self, s: State) -> None:
        """What it needs."""
        super().signals(s)
        s.grad = s.floats(s.nodes, s.slots, s.channels)
        s.back_turns = [torch.zeros_like(s.grad) for _ in range(2)]

    def held(self, s: State) -> list[tuple[Tensor, int]]:
        """The gradient of the output, and what else is written at the training nodes only."""
        return [(s.grad, 1), (s.sweep, 2)]

    def forward(self, s: State, steps: ModuleType) -> tuple[Tensor, Tensor]:
        """Its way forward."""
        steps.first_perceptron(s)
        s.pages[0].copy_(s.z)
        for k in range(s.config.depth):
            steps.hop(s.shared.forward, s.pages[k], s.pages[k + 1])
        y = s.turns[0]
        steps.gates(s, y)
        return y[:, :, 0], y[:, :, 1]

    def backward(self, s: State, steps: ModuleType) -> tuple[Tensor, int, int]:
        """Its way back."""
        steps.gates_backward(s)
        last = s.config.depth
        dz = _back_hops(s, steps, s.sweep[last], [s.sweep[k] for k in reversed(range(last))], s.back_turns)
        steps.channels_backward(s, dz)
        return s.grad_hidden, s.width, s.nodes * s.width


class Rows(Flow):
    """K times: a hop, then every row is pulled towards where it began, by at most a radius: AirGNN."""

    def signals(self, s: State) -> None:
        """What it needs."""
        t, n, c = s.slots, s.nodes, s.channels
        s.z, s.grad, s.total, s.moved = s.floats(n, t, 2, c), *(s.floats(n, t, c) for _ in range(3))
        s.hidden, s.grad_hidden = s.floats(t, n, s.width), s.floats(t, n, s.width)
        s.pages, s.sweep = s.floats(0), s.floats(0, n, t, c)
        s.inside = s.floats(s.config.depth, n, t, c)
        s.turns = [s.floats(n, t, 2, c) for _ in range(2)]
        s.back_turns = [s.floats(n, t, c) for _ in range(2)]

    def forward(self, s: State, steps: ModuleType) -> tuple[Tensor, Tensor]:
        """Its way forward."""
        steps.first_perceptron(s)
        y = s.z
        for k in range(s.config.depth):
            steps.hop(s.shared.forward, y, s.turns[k % 2])
            y = s.turns[k % 2]
            steps.pull(s, k, y)
        return y[:, :, 0], y[:, :, 1]

    def backward(self, s: State, steps: ModuleType) -> tuple[Tensor, int, int]:
        """Its way back."""
        back = s.grad
        for k in reversed(range(s.config.depth)):
            steps.pull_backward(s, k, back)
            # The perceptron's output is where the first step begins, too.
            steps.hop(s.shared.transpose, s.moved, s.back_turns[k % 2], s.total if k == 0 else None)
            back = s.back_turns[k % 2]
        steps.channels_backward(s, back)
        return s.grad_hidden, s.width, s.nodes * s.width


class Convolution(Flow):
    """A hop of hidden channels, ReLU, the second layer, a hop of class channels: GCN."""

    def signals(self, s: State) -> None:
        """What it needs."""
        t, n, c, h = s.slots, s.nodes, s.channels, s.width
        s.z, s.hidden, s.grad = s.floats(n, t, 2, c), s.floats(t, n, h), s.floats(n, t, c)
        s.pages = s.floats(0)
        s.sweep = s.floats(0, n, t, c)
        s.turns, s.back_turns = [s.floats(n, t, 2, c)], [s.floats(n, t, c)]
        s.plain = [s.floats(n, t, 2, h) for _ in range(2)]
        s.grad_hidden, s.grad_plain = s.floats(n, t, h), s.floats(n, t, h)

    def forward(self, s: State, steps: ModuleType) -> tuple[Tensor, Tensor]:
        """Its way forward."""
        steps.first_plain(s, s.plain[0])
        steps.hop(s.shared.forward, *s.plain)
        steps.middle(s, s.plain[1])
        y = s.turns[0]
        steps.hop(s.shared.forward, s.z, y)
        return y[:, :, 0], y[:, :, 1]

    def backward(self, s: State, steps: ModuleType) -> tuple[Tensor, int, int]:
        """Its way back."""
        steps.hop(s.shared.transpose, s.grad, s.back_turns[0])
        steps.channels_backward(s, s.back_turns[0])
        steps.hop(s.shared.transpose, s.grad_hidden, s.grad_plain)
        return s.grad_plain, s.slots * s.width, s.width


class Linear(Flow):
    """Hops of class channels and nothing else: SGC. Without dropout, training and evaluation see the same."""

    def signals(self, s: State) -> None:
        """What it needs."""
        t, n, c = s.slots, s.nodes, s.channels
        s.z, s.grad = s.floats(n, t, 1, c), s.floats(n, t, c)
        s.turns, s.back_turns = [torch.zeros_like(s.z) for _ in range(2)], [torch.zeros_like(s.grad) for _ in range(2)]

    def forward(self, s: State, steps: ModuleType) -> tuple[Tensor, Tensor]:
        """Its way forward."""
        steps.first_plain(s, s.z)
        y = s.z
        for k in range(s.config.depth):
            steps.hop(s.shared.forward, y, s.turns[k % 2])
            y = s.turns[k % 2]
        return y[:, :, 0], y[:, :, 0]

    def backward(self, s: State, steps: ModuleType) -> tuple[Tensor, int, int]:
        """Its way back."""
        dz = _back_hops(s, steps, s.grad, [None] * s.config.depth, s.back_turns)
        return dz, s.slots * s.channels, s.channels


class Jumps(Flow):
    """Hops of hidden channels, each with its own matrix: JKNet.

    Outputs are learnt from at the training nodes only, so the matrices meet Aᵏ X there and nowhere else. In evaluation the head
    is multiplied into the matrices, and class channels travel.
    """

    def signals(self, s: State) -> None:
        """What it needs."""
        t, n, c, h, count = s.slots, s.nodes, s.channels, s.width, s.train.shape[1]
        s.matrices, s.begin, s.total = s.floats(t, s.hops, h, c), s.floats(0), s.floats(0)
        s.signals = s.floats(s.hops, n, t, h)
        s.pages = s.floats(s.hops, n, t, c)
        s.turns = [s.floats(n, t, c) for _ in range(2)]
        s.kept, s.back_rows = s.floats(t, count, h), s.floats(s.hops, t, count, h)
        s.learnt, s.grad = s.floats(n, t, c), s.floats(n, t, c)
        s.back_turns = [s.floats(n, t, h) for _ in range(2)]

    def forward(self, s: State, steps: ModuleType) -> tuple[Tensor, Tensor]:
        """Its way forward."""
        steps.jump_matrices(s)
        steps.first_hidden(s)
        seen = s.pages[s.config.depth]
        for k in range(s.config.depth):
            steps.hop(s.shared.forward, s.signals[k], s.signals[k + 1])
        for k in reversed(range(s.config.depth)):
            steps.hop(s.shared.forward, seen, s.turns[k % 2], s.pages[k])
            seen = s.turns[k % 2]
        steps.jump_out(s, s.learnt)
        return s.learnt, seen

    def backward(self, s: State, steps: ModuleType) -> tuple[Tensor, int, int]:
        """Its way back."""
        steps.jump_back(s)
        y = s.back_turns[s.config.depth % 2]
        y.zero_()
        steps.add_rows(s, y, s.back_rows[s.config.depth])
        for k in reversed(range(s.config.depth)):
            out = s.back_turns[k % 2]
            steps.hop(s.shared.transpose, y, out)
            steps.add_rows(s, out, s.back_rows[k])
            y = out
        steps.hidden_backward(s, y)
        return y, s.slots * s.width, s.width


class Deep(Flow):
    """Layers of hidden channels that return to the first one: GCNII."""

    def signals(self, s: State) -> None:
        """What it needs."""
        t, n, c, h, depth = s.slots, s.nodes, s.channels, s.width, s.config.depth
        s.matrices, s.pages = s.floats(0), s.floats(0)
        s.begin, s.total = s.floats(n, t, 2, h), s.floats(n, t, h)
        s.signals, s.inside = s.floats(depth + 1, n, t, 2, h), s.floats(depth, n, t, h)
        s.moved = s.floats(n, t, 2, h)
        s.turns, s.grad = [s.floats(n, t, 2, c)], s.floats(n, t, c)
        s.back_turns = [s.floats(n, t, h) for _ in range(3)]

    def held(self, s: State) -> list[tuple[Tensor, int]]:
        """The gradient of the output, and what else is written at the training nodes only."""
        return [(s.grad, 1), (s.back_turns[2], 1)]

    def forward(self, s: State, steps: ModuleType) -> tuple[Tensor, Tensor]:
        """Its way forward."""
        steps.first_hidden(s)
        for layer in range(s.config.depth):
            steps.hop(s.shared.forward, s.signals[layer], s.moved)
            steps.layer_forward(s, layer, s.moved)
        y = s.turns[0]
        steps.head_forward(s, y)
        return y[:, :, 0], y[:, :, 1]

    def backward(self, s: State, steps: ModuleType) -> tuple[Tensor, int, int]:
        """Its way back."""
        grad, moved, first = s.back_turns
        steps.head_backward(s, first)  # zero but at the training nodes
        back = first
        for layer in reversed(range(s.config.depth)):
            steps.layer_backward(s, layer, back, moved)
            steps.hop(s.shared.transpose, moved, grad)
            back = grad
        steps.hidden_backward(s, grad)
        return grad, s.slots * s.width, s.width


FLOWS: dict[Middle, Flow] = {
    Middle.SERIES: Series(), Middle.GATED: Gated(), Middle.CONVOLUTION: Convolution(), Middle.LINEAR: Linear(),
    Middle.JUMPS: Jumps(), Middle.DEEP: Deep(), Middle.ROWS: Rows(),
}  # fmt: skip
