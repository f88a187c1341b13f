"""Dropout with masks that are counted, not drawn."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unspool.ops import SparseFeatures
from unspool.ops.dropout import Mask, check_rate, dropout, dropout_rows, key, next_call


class Dropout(nn.Module):
    """Zero each element with probability ``rate`` in training, and scale the rest by 1 / (1 − rate).

    The mask is a hash of (key, number of the call, row, column). The key is taken from torch's generator when the module is
    made, the number counts calls in training; both are buffers. So ``torch.manual_seed`` before building fixes all masks,
    a loaded state dict continues where the saved one stopped, stacked trials have masks of their own, and nothing is
    kept for the backward pass. Sparse features lose the same elements as dense ones.

    Args:
        rate: a number in [0, 1); 0 makes the module do nothing, unless it is stacked with others or loads their state.

    Example:
        >>> import torch
        >>> _ = torch.manual_seed(0)
        >>> drop = Dropout(0.5)
        >>> first, second = drop(torch.ones(100, 10)), drop(torch.ones(100, 10))
        >>> torch.equal(first, second), bool((drop.eval()(torch.ones(2)) == 1).all())
        (False, True)
    """

    rate: Tensor
    key: Tensor
    count: Tensor

    def __init__(self, rate: float = 0.5) -> None:
        super().__init__()
        seed = torch.randint(2**31, (), dtype=torch.int64)
        self.register_buffer("rate", check_rate(rate, seed).to(torch.float32))
        self.register_buffer("key", key(seed, 0, 0))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self._zero = self.rate if float(rate) == 0 else None

    @property
    def idle(self) -> bool:
        """Whether the module does nothing as it is: in evaluation, or because its rate is 0.

        Example:
            >>> Dropout(0.0).idle, Dropout(0.5).idle, Dropout(0.5).eval().idle
            (True, False, True)
        """
        # Trap: in a stack of trials self.rate is that of all trials, and this module only the first of them.
        return not self.training or (self._zero is not None and self.rate is self._zero)

    def forward(self, x: Any) -> Any:
        """Drop elements of a tensor, or of sparse features, whose mask is laid on where they are multiplied."""
        mask = self.draw()
        if mask is None:
            return x
        return x.dropped(*mask) if isinstance(x, SparseFeatures) else dropout(x, *mask)

    def draw(self) -> Mask | None:
        """The mask of the next call, for an op that lays it on itself; None where nothing is dropped.

        Example:
            >>> drop = Dropout(0.5)
            >>> int(drop.draw().call), int(drop.draw().call), drop.eval().draw()
            (0, 1, None)
        """
        return None if self.idle else Mask(self.rate, self.key, next_call(self.count))

    def at_rows(self, x: Tensor, rows: Tensor) -> Tensor:
        """What the module leaves of some rows of a signal, which are given with their numbers; the call is counted."""
        drop = self.draw()
        return x if drop is None else dropout_rows(x, rows, *drop)

    def _apply(self, fn: Any, recurse: bool = True) -> Dropout:
        still, before = self.rate is self._zero, self.rate
        super()._apply(fn, recurse)
        if self.rate.dtype != before.dtype:  # a rate is no signal: half precision would change the masks
            self.rate = before.to(self.rate.device)
        self._zero = self.rate if still else None
        return self

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: Any,
        local_metadata: Any,
        strict: Any,
        missing_keys: Any,
        unexpected_keys: Any,
        error_msgs: Any,
    ) -> None:
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
        self._zero = self.rate if self.rate.ndim == 0 and float(self.rate) == 0 else None

    def extra_repr(self) -> str:
        """The rate."""
        return f"rate={float(self.rate):.4g}" if self.rate.ndim == 0 else "stacked"
