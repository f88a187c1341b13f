"""Dropout whose masks are computed, not drawn: the same key gives the same mask, alone or among a thousand trials.

Each element's fate is a hash of its row, its column, a key and a call number. Nothing is stored for the backward
pass but these, and CPU, GPU, stacked trials, dense and sparse inputs agree bit for bit.
"""

from __future__ import annotations

import numbers
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from unspool.ops.autograd import known_signature
from unspool.ops.kernels import noise_cpu
from unspool.ops.own_rows import own_rows

# A well-mixing 32-bit finaliser (the constants are those of "lowbias32", found by C. Wellons' hash prospector, 2018).
_GOLDEN = noise_cpu.GOLDEN


def mix(bits: Tensor) -> Tensor:
    """Scramble int32 bits, one to one.

    Example:
        >>> import torch
        >>> mix(torch.tensor([0, 1, 2], dtype=torch.int32)).unique().numel()
        3
    """
    # Trap: >> on int32 keeps the sign; the masks make it a logical shift.
    bits = (bits ^ ((bits >> 16) & 0xFFFF)) * noise_cpu.FIRST
    bits = (bits ^ ((bits >> 15) & 0x1FFFF)) * noise_cpu.SECOND
    return bits ^ ((bits >> 16) & 0xFFFF)


class Mask(NamedTuple):
    """Which elements of a signal a call of dropout drops: a rate, a key, and the number of the call under that key."""

    rate: Tensor
    key: Tensor
    call: Tensor

    @staticmethod
    def of(rate: float | Tensor, key: Tensor, count: int | Tensor = 0) -> Mask:
        """A mask from numbers or tensors, checked.

        Example:
            >>> Mask.of(0.5, key(0, 0, 1)).call
            tensor(0)
        """
        return Mask(check_rate(rate, key), key, torch.as_tensor(count, dtype=torch.int64, device=key.device))


def key(
    seed: int | Tensor, epoch: int | Tensor, place: int | Tensor, device: torch.device | str | None = None
) -> Tensor:
    """One int32 key out of (seed, epoch, place); tensors of trial seeds give tensors of keys.

    Example:
        >>> int(key(0, 1, 2)) == int(key(0, 1, 2)), int(key(0, 1, 2)) == int(key(0, 2, 1))
        (True, False)
    """
    state = _word(0, device)
    for part in (seed, epoch, place):
        state = advance(state, _word(part, device))
    return state


def advance(key: Tensor, count: int | Tensor) -> Tensor:
    """The key of call number ``count`` under a key: what :func:`dropout` computes inside its kernel.

    Example:
        >>> int(advance(key(0, 1, 2), 0)) == int(key(0, 1, 2))
        False
    """
    return mix((key + _GOLDEN) ^ _word(count, key.device))


def keep_mask(
    shape: torch.Size | tuple[int, ...], rate: float | Tensor, key: Tensor, count: int | Tensor = 0
) -> Tensor:
    """Which elements survive: True with probability 1 − rate (to 16 bits).

    The formula in plain torch, which the kernels must meet: each 32-bit hash decides two neighbours in a row.
    """
    row = torch.arange(int(torch.Size(shape[:-1]).numel()), dtype=torch.int32, device=key.device)
    return _survivors(row, shape[-1], rate, key, count).reshape(shape)


def _survivors(row: Tensor, cols: int, rate: float | Tensor, key: Tensor, count: int | Tensor) -> Tensor:
    col = torch.arange((cols + 1) // 2, dtype=torch.int32, device=key.device) * _GOLDEN
    # Trap: hashing row ^ key gives keys that differ in low bits the same rows in another order.
    bits = mix(mix(mix(row) ^ advance(key, count))[:, None] + col)
    halves = torch.stack([(bits << 16) >> 16, bits >> 16], dim=-1).flatten(-2)[:, :cols]
    share = torch.as_tensor(rate, dtype=torch.float64, device=key.device)
    return halves >= (share * 2.0**16 - 2.0**15).ceil().clamp_max(2.0**15 - 1)


# -- raw ops: (blocks, rows, columns), one rate, key and count per block ------------------------------------------------

_LIBRARY = torch.library.Library("unspool", "FRAGMENT")
_LIBRARY.define("dropout_raw(Tensor x, Tensor rate, Tensor key, Tensor count) -> Tensor")
_LIBRARY.define("entries_raw(Tensor row, Tensor col, Tensor val, Tensor rate, Tensor key, Tensor count) -> Tensor")


@torch.library.impl(_LIBRARY, "dropout_raw", "CompositeExplicitAutograd")
def _dropout_now(x: Tensor, rate: Tensor, key: Tensor, count: Tensor) -> Tensor:
    return _kernels(x).drop(x, rate, key, count)


@torch.library.impl(_LIBRARY, "entries_raw", "CompositeExplicitAutograd")
def _entries_now(row: Tensor, col: Tensor, val: Tensor, rate: Tensor, key: Tensor, count: Tensor) -> Tensor:
    return _kernels(val).drop_entries(row, col, val, rate, key, count)


_raw: Any = torch.ops.unspool.dropout_raw.default
_entries: Any = torch.ops.unspool.entries_raw.default


def _kernels(x: Tensor) -> ModuleType:
    if x.is_cuda:
        from unspool.ops.kernels import noise_cuda

        return noise_cuda
    return noise_cpu


def _raw_fake(x: Tensor, rate: Tensor, key: Tensor, count: Tensor) -> Tensor:
    return x.new_empty(x.shape)


def _entries_fake(row: Tensor, col: Tensor, val: Tensor, rate: Tensor, key: Tensor, count: Tensor) -> Tensor:
    return val.new_empty(rate.shape[0], val.shape[0])


def _blocks(x: Tensor, dim: int | None, trials: int) -> Tensor:
    wide = x.movedim(dim, 0) if dim is not None else x[None].expand(trials, *x.shape)
    return wide.reshape(wide.shape[0] * wide.shape[1], *wide.shape[2:])


def _trials(op: Any, shared: int) -> Any:
    """The rule that folds trials into blocks; the first ``shared`` arguments are places and entries of sparse features."""

    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Tensor) -> tuple[Tensor, int]:
        if any(dim is not None for dim in in_dims[: max(shared - 1, 0)]):
            raise ValueError("vmap over sparse features is not supported: all trials share one input")
        if shared and in_dims[shared - 1] is not None:  # entries of their own: what the mask leaves of ones, times them
            own = args[shared - 1].movedim(in_dims[shared - 1], 0)  # type: ignore[arg-type]
            ones = torch.ones(own.shape[1:], dtype=own.dtype, device=own.device)
            dims = (*in_dims[: shared - 1], None, *in_dims[shared:])
            left, dim = rule(info, dims, *args[: shared - 1], ones, *args[shared:])
            return left * own[:, None], dim
        rest = (_blocks(a, d, info.batch_size) for a, d in zip(args[shared:], in_dims[shared:], strict=True))
        out = op(*args[:shared], *rest)
        return out.view(info.batch_size, out.shape[0] // max(info.batch_size, 1), *out.shape[1:]), 0

    return rule


torch.library.register_fake("unspool::dropout_raw", _raw_fake)
torch.library.register_fake("unspool::entries_raw", _entries_fake)
torch.library.register_vmap("unspool::dropout_raw", _trials(_raw, 0))
torch.library.register_vmap("unspool::entries_raw", _trials(_entries, 3))


@known_signature
class _Dropout(torch.autograd.Function):
    """Linear in x and its own transpose: the backward pass drops the same elements of the gradient."""

    @staticmethod
    def forward(x: Tensor, rate: Tensor, key: Tensor, count: Tensor) -> Any:
        return _raw(x, rate, key, count)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        return _trials(_Dropout.apply, 0)(info, in_dims, *args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _Dropout.apply(grads[0], *ctx.saved_tensors), None, None, None


@torch.library.custom_op("unspool::dropout", mutates_args=())
def _compiled(x: Tensor, rate: Tensor, key: Tensor, count: Tensor) -> Tensor:
    return _kernels(x).drop(x, rate, key, count)


def _compiled_setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[1:])


def _compiled_backward(ctx: Any, grad: Tensor) -> Any:
    return _compiled(grad, *ctx.saved_tensors), None, None, None


_compiled.register_fake(_raw_fake)
_compiled.register_autograd(_compiled_backward, setup_context=_compiled_setup)
torch.library.register_vmap("unspool::dropout", _trials(_compiled, 0))


# Trap: inductor recomputes cheap operations such as clone in the backward pass, from buffers that have moved on since, and
# gradients are silently wrong; an op of one's own is never recomputed.
@torch.library.custom_op("unspool::held", mutates_args=())
def _held(count: Tensor) -> Tensor:
    return count.clone()


def _held_trials(info: Any, in_dims: tuple[int | None, ...], count: Tensor) -> tuple[Tensor, int | None]:
    return _held(count), in_dims[0]


_held.register_fake(torch.empty_like)
torch.library.register_vmap("unspool::held", _held_trials)


def next_call(count: Tensor) -> Tensor:
    """The number of this call, as it is now; the counter moves on in place.

    Example:
        >>> import torch
        >>> count = torch.zeros((), dtype=torch.int64)
        >>> int(next_call(count)), int(next_call(count)), int(count)
        (0, 1, 2)
    """
    now = _held(count) if torch.compiler.is_compiling() else count.clone()
    count.add_(1)
    return now


def dropout(x: Tensor, rate: float | Tensor, key: Tensor, count: int | Tensor = 0) -> Tensor:
    """Zero each element with probability ``rate`` and scale the rest by 1 / (1 − rate).

    Args:
        x: any tensor with at least one dimension.
        rate: a number in [0, 1), or a scalar tensor (one per trial under ``vmap``).
        key: from :func:`key`.
        count: the number of this call under that key, so that a fresh mask needs no fresh key.

    Example:
        >>> import torch
        >>> x = torch.ones(1000, 10)
        >>> a, b = dropout(x, 0.5, key(0, 1, 2)), dropout(x, 0.5, key(0, 1, 2))
        >>> torch.equal(a, b), round(float(a.mean()), 1)
        (True, 1.0)
    """
    # Trap: torch.compile cannot trace a context variable.
    if not torch.compiler.is_compiling() and (rows := own_rows()) is not None:
        return dropout_rows(x, rows, rate, key, count)
    rate, count = check_rate(rate, key), torch.as_tensor(count, dtype=torch.int64, device=key.device)
    flat = x.reshape(1, -1, x.shape[-1])
    function = _compiled if torch.compiler.is_compiling() else _Dropout.apply
    return function(flat, rate[None], key[None], count[None]).view(x.shape)


def dropout_rows(x: Tensor, rows: Tensor, rate: float | Tensor, key: Tensor, count: int | Tensor = 0) -> Tensor:
    """What :func:`dropout` leaves of some rows of a signal: the elements that survive are those of the whole signal.

    Args:
        x: the rows, shape (rows, columns).
        rows: their numbers in the whole signal.
        rate, key, count: as in :func:`dropout`.

    Example:
        >>> import torch
        >>> x, rows = torch.rand(10, 4), torch.tensor([7, 2])
        >>> torch.equal(dropout_rows(x[rows], rows, 0.5, key(0, 1, 2)), dropout(x, 0.5, key(0, 1, 2))[rows])
        True
    """
    if x.ndim != 2 or x.shape[0] != rows.numel():
        raise ValueError(
            f"a signal of shape {tuple(x.shape)} for {rows.numel()} rows: expected ({rows.numel()}, columns)"
        )
    rate = check_rate(rate, key)
    kept = _survivors(rows.to(torch.int32), x.shape[-1], rate, key, count)
    share = rate.to(torch.float64)
    scale = torch.where(share < 1, 1 / (1 - share), torch.zeros_like(share)).to(x.dtype)
    return torch.where(kept, x * scale, torch.zeros_like(x))


def drop_entries(
    row: Tensor, col: Tensor, val: Tensor, rate: float | Tensor, key: Tensor, count: int | Tensor = 0
) -> Tensor:
    """What :func:`dropout` leaves of the stored entries of a sparse matrix; the zeros need no mask.

    Args:
        row: the row of each entry, int32.
        col: its column, int32.
        val: its value.
        rate, key, count: as in :func:`dropout`.

    Example:
        >>> import torch
        >>> dense = torch.tensor([[1.0, 0.0], [2.0, 3.0]])
        >>> row, col = torch.tensor([0, 1, 1]).int(), torch.tensor([0, 0, 1]).int()
        >>> kept = drop_entries(row, col, torch.tensor([1.0, 2.0, 3.0]), 0.5, key(0, 1, 2))
        >>> torch.equal(kept, dropout(dense, 0.5, key(0, 1, 2))[row.long(), col.long()])
        True
    """
    rate, count = check_rate(rate, key), torch.as_tensor(count, dtype=torch.int64, device=key.device)
    return _entries(row, col, val, rate[None], key[None], count[None])[0]


def check_rate(rate: float | Tensor, key: Tensor) -> Tensor:
    """The rate as a tensor beside the key; numbers outside [0, 1) raise."""
    if not isinstance(rate, Tensor) and not (isinstance(rate, numbers.Real) and 0 <= rate < 1):
        raise ValueError(f"dropout rate {rate}: expected a number in [0, 1)")
    return torch.as_tensor(rate, dtype=torch.float64 if not isinstance(rate, Tensor) else None, device=key.device)


def _word(part: int | Tensor, device: torch.device | str | None) -> Tensor:
    wide = torch.as_tensor(part, dtype=torch.int64, device=device)
    low = wide & 0xFFFFFFFF
    return (low - ((low >> 31) << 32)).to(torch.int32)
