"""What runs on the metal: the same sparse step for CPU and GPU, behind one signature."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

from unspool.ops.kernels import cpu
from unspool.ops.operator import Csr
from unspool.ops.own_rows import own_rows


class Step(Protocol):
    """``out = scale * M y + weight * base - lagged`` on two-dimensional contiguous tensors."""

    def __call__(  # noqa: D102 - the class docstring is the contract
        self,
        csr: Any,
        y: Tensor,
        out: Tensor,
        scale: float,
        base: Tensor | None,
        weight: Tensor | None,
        lagged: Tensor | None,
    ) -> None: ...


class HasStep(Protocol):
    """A matrix that knows its own step, as one that is cut into pieces which different processes hold."""

    @property
    def step(self) -> Step:
        """The step."""
        ...


def step_for(x: Tensor, matrix: Csr | HasStep | None = None) -> Step:
    """The implementation for the device of ``x``, or that of a matrix which has its own."""
    if matrix is not None and not isinstance(matrix, Csr):
        return matrix.step
    if x.is_cuda:
        from unspool.ops.kernels import cuda

        return cuda.step
    return cpu.step


#: The widest signal that one kernel multiplies by a matrix of each trial: matrices of wider ones do not fit beside it.
WIDEST = 128
#: Kinds of devices that have the kernels; tests add the CPU, where Triton's interpreter runs them.
KERNEL_DEVICES = {"cuda"}


def fused(*tensors: Tensor) -> bool:
    """Whether ops on these tensors run as kernels that take all trials at once: single precision on an NVIDIA GPU,
    without autocast and outside of compilers.

    Nor where somebody watches torch's operations (a dispatch mode), who would not see what kernels do, nor on some rows of a
    signal, as kernels of masks count rows for themselves.

    Example:
        >>> fused(torch.ones(2))
        False
    """
    watched = torch.compiler.is_compiling() or is_in_torch_dispatch_mode(include_infra_modes=False)
    plain = not (watched or torch.is_autocast_enabled("cuda") or own_rows() is not None)
    return plain and all(t.device.type in KERNEL_DEVICES and t.dtype == torch.float32 for t in tensors)


def one_pass(*tensors: Tensor) -> bool:
    """Whether ops that have a pass of their own take it: where kernels do, and on the CPU in full precision, without autocast.

    Nor where a compiler or a dispatch mode looks at torch's operations.

    Example:
        >>> one_pass(torch.ones(2)), one_pass(torch.ones(2, dtype=torch.bfloat16))
        (True, False)
    """
    if fused(*tensors):
        return True
    watched = torch.compiler.is_compiling() or is_in_torch_dispatch_mode(include_infra_modes=False)
    full = all(t.device.type == "cpu" and t.dtype in (torch.float32, torch.float64) for t in tensors)
    return full and len({t.dtype for t in tensors}) == 1 and not (watched or torch.is_autocast_enabled("cpu"))
