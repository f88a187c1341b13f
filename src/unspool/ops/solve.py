r"""Solving :math:`(p I - q S) H = R` for a symmetric sparse S with spectrum in [-1, 1], by conjugate gradients.

The system behind every strictly convex denoising problem with scalar weights; with p = 1 and q = 1 − α its solution times α
is PPNP. Linear in R and its own transpose, so derivatives of any order are more solves. Each column has its own
recurrence, and trials fold into the columns.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.ops.autograd import known_signature
from unspool.ops.conjugate import conjugate_gradients
from unspool.ops.convergence import hand_in
from unspool.ops.kernels import step_for
from unspool.ops.operator import Csr, HasOperator, Operator

_LIBRARY = torch.library.Library("unspool", "FRAGMENT")
_LIBRARY.define(
    "solve_raw(Tensor crow, Tensor col, Tensor val, Tensor hubs, Tensor right, float p, float q, float tolerance, bool asked) -> Tensor"
)


@torch.library.impl(_LIBRARY, "solve_raw", "CompositeExplicitAutograd")
def _solve_now(
    crow: Tensor,
    col: Tensor,
    val: Tensor,
    hubs: Tensor,
    right: Tensor,
    p: float,
    q: float,
    tolerance: float,
    asked: bool,
) -> Tensor:
    return _solved(Csr(crow, col, val, hubs), right, p, q, tolerance, asked)


_raw: Any = torch.ops.unspool.solve_raw.default


def default_tolerance(dtype: torch.dtype) -> float:
    """The relative residual of a solve where none is asked for.

    Example:
        >>> default_tolerance(torch.float64), default_tolerance(torch.float32)
        (1e-10, 1e-06)
    """
    return 1e-10 if dtype == torch.float64 else 1e-6


def iterations(p: float, q: float, tolerance: float) -> int:
    r"""How many steps suffice: the residual falls by :math:`2\sqrt\kappa\,((\sqrt\kappa-1)/(\sqrt\kappa+1))^k`, κ = (p+|q|)/(p−|q|).

    Example:
        >>> iterations(1.0, 0.9, 1e-6)
        37
    """
    condition = (p + abs(q)) / (p - abs(q))
    return math.ceil(0.5 * math.sqrt(condition) * math.log(2 * math.sqrt(condition) / tolerance)) + 2


def _solved(csr: Csr, right: Tensor, p: float, q: float, tolerance: float, asked: bool) -> Tensor:
    """Conjugate gradients with one recurrence per column, in a reused buffer."""
    given = right.dtype
    if q == 0:
        return right / p
    # Trap: Triton reads a Python float as float32, so the kernel's factor of S must be a number like −1.
    right = (right.to(csr.val.dtype) / abs(q)).contiguous()
    p, sign = p / abs(q), 1.0 if q > 0 else -1.0
    step, capturing = step_for(right), right.is_cuda and torch.cuda.is_current_stream_capturing()
    diagonal = torch.full((right.shape[1],), p, dtype=right.dtype, device=right.device)
    image = torch.empty_like(right)

    def apply(u: Tensor) -> Tensor:
        step(csr, u, image, -sign, u, diagonal, None)
        return image

    # A graph of kernels cannot look at numbers, so it takes the steps that suffice; a GPU should not look often. Elsewhere
    # rounding may delay convergence a little, and the bound ends the loop where it stops the residual from falling.
    enough = iterations(p, 1.0, tolerance)
    look, limit = (0, enough) if capturing else (4 if right.is_cuda else 1, 2 * enough + 10)
    found = conjugate_gradients(apply, right, None, tolerance, limit, True, look)
    if found.bent:
        raise IncompatibleError(
            "conjugate gradients met negative curvature: the matrix of the graph has eigenvalues outside [-1, 1]; "
            "build it with Normalisation.SYMMETRIC"
        )
    if found.report is not None:
        hand_in(found.report, asked, right.dtype)
    return found.h.to(given)


def _fake(
    crow: Tensor,
    col: Tensor,
    val: Tensor,
    hubs: Tensor,
    right: Tensor,
    p: float,
    q: float,
    tolerance: float,
    asked: bool,
) -> Tensor:
    return right.new_empty(right.shape)


def _fold(op: Any) -> Any:
    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Tensor, int]:
        right = args[4].movedim(in_dims[4], 1)
        wide = right.reshape(right.shape[0], info.batch_size * right.shape[2])
        return op(*args[:4], wide, *args[5:]).view(right.shape), 1

    return rule


torch.library.register_fake("unspool::solve_raw", _fake)
torch.library.register_vmap("unspool::solve_raw", _fold(_raw))


@known_signature
class _Solve(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(
        crow: Tensor,
        col: Tensor,
        val: Tensor,
        hubs: Tensor,
        right: Tensor,
        p: float,
        q: float,
        tolerance: float,
        asked: bool,
    ) -> Any:
        return _raw(crow, col, val, hubs, right, p, q, tolerance, asked)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[:4])
        ctx.numbers = inputs[5:]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        solved = _Solve.apply(*ctx.saved_tensors, grads[0], *ctx.numbers)
        return None, None, None, None, solved, None, None, None, None


@torch.library.custom_op("unspool::solve", mutates_args=())
def _compiled(
    crow: Tensor,
    col: Tensor,
    val: Tensor,
    hubs: Tensor,
    right: Tensor,
    p: float,
    q: float,
    tolerance: float,
    asked: bool,
) -> Tensor:
    return _solved(Csr(crow, col, val, hubs), right, p, q, tolerance, asked)


def _compiled_backward(ctx: Any, grad: Tensor) -> Any:
    return None, None, None, None, _compiled(*ctx.saved_tensors, grad, *ctx.numbers), None, None, None, None


_compiled.register_fake(_fake)
_compiled.register_autograd(_compiled_backward, setup_context=_Solve.setup_context)
torch.library.register_vmap("unspool::solve", _fold(_compiled))


def shifted_solve(graph: HasOperator, right: Tensor, p: float, q: float, tolerance: float | None = None) -> Tensor:
    r"""The solution of :math:`(p I - q S) H = R`.

    Args:
        graph: a symmetric operator S with eigenvalues in [-1, 1].
        right: R, shape (..., nodes, features).
        p: must exceed \|q\|.
        q: the weight of S.
        tolerance: relative residual of every column; 1e-10 in float64 and 1e-6 in float32 when omitted.

    Warns:
        ConvergenceWarning: if the tolerance was missed; see :func:`~unspool.ops.convergence.solve_reports`. Inside a CUDA
            graph nothing can be looked at, and the iterations run that suffice but for rounding.

    Example:
        >>> import torch, unspool as us
        >>> ring = us.graph.ring(4).to(torch.float64)
        >>> right = torch.eye(4, dtype=torch.float64)
        >>> h = shifted_solve(ring, right, 1.0, 0.9)
        >>> torch.allclose(h - 0.9 * (ring @ h), right)
        True
    """
    operator: Operator = graph.operator
    if not operator.symmetric:
        raise ValueError("conjugate gradients need a symmetric operator")
    if not p > abs(q):
        raise ValueError(f"p={p} must exceed |q|={abs(q)}: the system is not positive definite")
    asked = tolerance is not None
    goal = default_tolerance(right.dtype) if tolerance is None else tolerance
    wide = right.movedim(-2, 0)
    flat = wide.reshape(wide.shape[0], -1)
    function = _compiled if torch.compiler.is_compiling() else _Solve.apply
    return function(*operator.forward, flat, p, q, goal, asked).view(wide.shape).movedim(0, -2)
