"""Laws of ops that are one kernel over all trials: values and derivatives under every transform, and the bits of a trial.

In single precision the kernels compute, in double precision the formulas, which the laws compare. On a GPU nothing needs to be
prepared; :func:`interpret` replaces it by Triton's interpreter, in a process of its own.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.func import grad, vmap

from unspool.ops import kernels

TESTS = Path(__file__).parents[1]


def interpret() -> None:
    """Run kernels in Triton's interpreter from here on; call it before Triton is imported."""
    os.environ["TRITON_INTERPRET"] = "1"
    torch.set_num_threads(1)
    torch.cuda.device = lambda device: contextlib.nullcontext()  # there is none
    kernels.fused = lambda *tensors: all(t.dtype == torch.float32 for t in tensors)


def run_interpreted(script: str, *names: str) -> None:
    """Run a script beside this file that prints laws and differences, and look at them."""
    ran = subprocess.run(
        [sys.executable, Path(__file__).parent / script, *names], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent / "src")])},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    lines = [line.rsplit(" ", 1) for line in ran.stdout.splitlines()]
    assert lines
    assert not [line for line in lines if not float(line[1]) < 2e-5]


def seeded(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def difference(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> float:
    assert [a.shape for a in found] == [b.shape for b in wanted]
    assert all(bool(a.isfinite().all()) for a in found)
    gaps = (
        (a.double() - b).abs().max() / b.abs().max().clamp_min(1e-3)
        for a, b in zip(found, wanted, strict=True)
        if b.numel()
    )
    return max(float(gap.detach()) for gap in gaps)


def in_both(run: Callable[..., Sequence[Tensor]], inputs: Sequence[Tensor]) -> float:
    """The same with kernels in single and formulas in double precision."""
    found, wanted = (
        run(*(t.detach().to(dtype).requires_grad_() for t in inputs)) for dtype in (torch.float32, torch.float64)
    )
    return difference(found, wanted)


def weighed(out: Tensor) -> Tensor:
    return (out * torch.cos(torch.arange(out.numel(), dtype=torch.float64) + 1).view(out.shape).to(out)).sum()


def value_and_gradients(op: Callable[..., Tensor], *inputs: Tensor) -> Sequence[Tensor]:
    out = op(*inputs)
    return out, *torch.autograd.grad(weighed(out), inputs)


def second_derivatives(op: Callable[..., Tensor], *inputs: Tensor) -> Sequence[Tensor]:
    first = torch.autograd.grad(weighed(op(*inputs).sin()), inputs, create_graph=True)
    total = sum((f.sin() * torch.cos(torch.arange(f.numel()) + 2.0).view(f.shape).to(f)).sum() for f in first)
    return torch.autograd.grad(total, inputs)


def laws(
    op: Callable[..., Tensor], inputs: Sequence[Tensor], trials: int = 3, views: int = 2, twice: bool = True
) -> Iterator[tuple[str, float]]:
    """Each law of an op with the largest relative difference; inputs of one trial, others are made of them by adding noise."""
    count = len(inputs)
    many = [t + 0.3 * seeded(trials, *t.shape, seed=i + 1).to(t) for i, t in enumerate(inputs)]
    yield "alone", in_both(lambda *t: value_and_gradients(op, *t), inputs)
    if twice:
        yield "twice", in_both(lambda *t: second_derivatives(op, *t), inputs)
    yield "trials", in_both(lambda *t: value_and_gradients(vmap(op), *t), many)
    last = [t.movedim(0, -1) for t in many]
    yield "trials last", in_both(lambda *t: value_and_gradients(vmap(op, -1, -1), *t), last)
    for dims in some_have_trials(count):
        some = [a if d == 0 else b for a, b, d in zip(many, inputs, dims, strict=True)]
        yield f"trials in {dims}", in_both(lambda *t, dims=dims: value_and_gradients(vmap(op, dims), *t), some)
    seen = [inputs[0] + 0.3 * seeded(trials, views, *inputs[0].shape).to(inputs[0]), *many[1:]]
    inner = vmap(op, (0, *(None,) * (count - 1)))
    yield "views", in_both(lambda *t: value_and_gradients(vmap(inner), *t), seen)
    gradient = grad(lambda *t: weighed(op(*t).sin()), argnums=tuple(range(count)))
    yield "func.grad", in_both(gradient, inputs)
    yield "func.grad of trials", in_both(vmap(gradient), many)
    yield "many gradients at once", in_both(lambda *t: gradients_at_once(op, *t), inputs)
    yield "every bit of a trial alone", 0.0 if same_bits(op, [t.float() for t in many]) else 1.0


def some_have_trials(count: int) -> Iterator[tuple[int | None, ...]]:
    """One input has trials, then all but one."""
    for i in range(count if count > 1 else 0):
        yield tuple(0 if j == i else None for j in range(count))
    for i in range(count if count > 2 else 0):
        yield tuple(None if j == i else 0 for j in range(count))


def gradients_at_once(op: Callable[..., Tensor], *inputs: Tensor) -> Sequence[Tensor]:
    out = op(*inputs)
    sides = torch.stack([torch.ones_like(out), out.detach().cos()])
    return vmap(lambda side: torch.autograd.grad(out, inputs, side, retain_graph=True))(sides)


def same_bits(op: Callable[..., Tensor], many: Sequence[Tensor]) -> bool:
    """Whether every trial has the values and gradients that it has alone."""
    trials = many[0].shape[0]
    alone = [value_and_gradients(op, *(t[i].clone().requires_grad_() for t in many)) for i in range(trials)]
    leaves = [t.clone().requires_grad_() for t in many]
    out = vmap(op)(*leaves)
    together = (out, *torch.autograd.grad(sum(weighed(out[i]) for i in range(trials)), leaves))
    return all(torch.equal(torch.stack(a), b) for a, b in zip(zip(*alone, strict=True), together, strict=True))
