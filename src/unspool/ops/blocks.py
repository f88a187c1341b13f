"""Trials side by side: how ``vmap`` rules fold a dimension of trials into the blocks of a signal.

A signal of many trials has shape (nodes, blocks, channels), so that a sparse product moves all of them in one wide row. What belongs
to a block (a number, a vector, a matrix) has the blocks first. Several blocks in a row may share such a thing: with G of them for B
blocks, block b has number b // (B / G). So passes of one trial that differ in their masks alone share its weights.
"""

from __future__ import annotations

from torch import Tensor


def fold_signal(x: Tensor, dim: int | None, trials: int) -> Tensor:
    """A signal (nodes, blocks, ...) with trials in dimension ``dim``, as (nodes, trials · blocks, ...); repeated where it has none.

    Example:
        >>> import torch
        >>> fold_signal(torch.ones(3, 5, 2, 4), 0, 3).shape, fold_signal(torch.ones(5, 2, 4), None, 3).shape
        (torch.Size([5, 6, 4]), torch.Size([5, 6, 4]))
    """
    wide = x.movedim(dim, 1) if dim is not None else x[:, None].expand(-1, trials, *x.shape[1:])
    return wide.reshape(wide.shape[0], wide.shape[1] * wide.shape[2], *wide.shape[3:])


def unfold_signal(x: Tensor, trials: int) -> Tensor:
    """The way back: trials in dimension 1.

    Example:
        >>> import torch
        >>> unfold_signal(torch.ones(5, 6, 4), 3).shape
        torch.Size([5, 3, 2, 4])
    """
    return x.view(x.shape[0], trials, x.shape[1] // max(trials, 1), *x.shape[2:])


def fold_own(value: Tensor, dim: int | None, trials: int) -> Tensor:
    """What belongs to blocks, (blocks, ...), with trials in dimension ``dim``, as (trials · blocks, ...); repeated where it has none.

    Example:
        >>> import torch
        >>> fold_own(torch.ones(2, 4, 3), 2, 3).shape, fold_own(torch.ones(2, 4), None, 3).shape
        (torch.Size([6, 4]), torch.Size([6, 4]))
    """
    wide = value.movedim(dim, 0) if dim is not None else value[None].expand(trials, *value.shape)
    return wide.reshape(wide.shape[0] * wide.shape[1], *wide.shape[2:])


def fold_shared(value: Tensor, dim: int | None, trials: int) -> Tensor:
    """The same for what several blocks share: one thing for all trials stays one.

    Example:
        >>> import torch
        >>> fold_shared(torch.ones(1, 4), None, 3).shape, fold_shared(torch.ones(2, 4), None, 3).shape
        (torch.Size([1, 4]), torch.Size([6, 4]))
    """
    return value if dim is None and value.shape[0] == 1 else fold_own(value, dim, trials)
