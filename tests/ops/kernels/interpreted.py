"""Ops on the CPU in Triton's interpreter, against their formulas in double precision. Run by test_interpreted.py.

Prints one line per quantity: case, name and the relative error.
"""

# ruff: noqa: B023 - functions are called in the loop that makes them

from __future__ import annotations

import contextlib
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported

import torch
from torch.func import grad, vmap

from unspool import Graph
from unspool.ops import Basis, SparseFeatures, kernels, propagate, stacked_features
from unspool.ops.activated import activate, activated_product
from unspool.ops.dropout import Mask, advance, key
from unspool.ops.features import feature_product
from unspool.ops.operator import HUB, hub_pieces
from unspool.ops.stacked_features import Form, Riding, form_of, riding

TRIALS, VIEWS = 3, 2


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def masks(trials: int = TRIALS) -> Mask:
    keys = torch.stack([key(seed, 0, 1) for seed in range(trials)])
    return Mask(torch.linspace(0.2, 0.6, trials), keys, torch.arange(trials))


def in_views(mask: Mask) -> Mask:
    """Further masks of the same trials."""
    return Mask(mask.rate, torch.stack([mask.key, advance(mask.key, 7)], dim=1), mask.count)


@contextlib.contextmanager
def kernels_on_cpu():
    torch.cuda.device = lambda device: contextlib.nullcontext()
    kernels.KERNEL_DEVICES.add("cpu")
    try:
        yield
    finally:
        kernels.KERNEL_DEVICES.discard("cpu")


def values_and_gradients(run, inputs):
    """The result of a function of stacked inputs, and the gradients of an uneven sum of it."""
    leaves = [i.detach().clone().requires_grad_() for i in inputs]
    out = run(*leaves)
    weight = torch.linspace(-1, 2, out.numel(), dtype=out.dtype).view(out.shape)
    return [out.detach(), *torch.autograd.grad((out * weight).sum(), leaves)]


def compare(name: str, run, inputs) -> None:
    """Kernels in single precision under ``run(wide=False)`` against formulas in double precision."""
    wanted = values_and_gradients(lambda *i: run(*i, True), [i.double() for i in inputs])
    with kernels_on_cpu():
        found = values_and_gradients(lambda *i: run(*i, False), inputs)
    for k, (a, b) in enumerate(zip(found, wanted, strict=True)):
        assert a.shape == b.shape, (name, k, a.shape, b.shape)
        print(name, k, float((a - b).norm() / b.norm().clamp_min(1e-12)), flush=True)


def words(nodes: int = 70, features: int = 40, share: float = 0.03) -> torch.Tensor:
    x = torch.rand(nodes, features, generator=generator()) * (
        torch.rand(nodes, features, generator=generator(1)) < share
    )
    x[:, 0] = 1.0
    return x


def features() -> None:
    for width, share in ((3, 0.03), (20, 0.03), (64, 0.03), (16, 0.3)):
        x = words(150, 40, share)
        narrow, wide = SparseFeatures.from_tensor(x), SparseFeatures.from_tensor(x.double())
        assert form_of(narrow) is (Form.DENSE if share > 0.1 else Form.SPARSE)
        weight = torch.randn(TRIALS, x.shape[1], width, generator=generator(2))
        mask = masks()

        def plain(weight, double):
            return vmap(lambda w: feature_product(wide if double else narrow, w, None))(weight)

        def dropped(weight, double):
            return vmap(lambda w, *m: feature_product(wide if double else narrow, w, Mask(*m)))(weight, *mask)

        def viewed(weight, double):
            x, many = wide if double else narrow, in_views(mask)
            inner = vmap(
                lambda w, r, k, c: feature_product(x, w, Mask(r, k, c)), in_dims=(None, None, 0, None), out_dims=1
            )
            return vmap(inner)(weight, *many)

        for name, run in (("plain", plain), ("dropped", dropped), ("views", viewed)):
            compare(f"features-{name}-{width}", run, [weight])
    with kernels_on_cpu():
        ride = Riding()
        with riding(ride, collecting=True):
            dropped(weight, False)
        with riding(ride, collecting=False):
            found = plain(weight, False)
    wanted = plain(weight.double(), True)
    print("features-riding 0", float((found - wanted).norm() / wanted.norm()), flush=True)


def second_order() -> None:
    """A gradient of a gradient, through the formulas."""
    x = words(20, 6)
    mask = masks(1)
    one = Mask(*(part[0] for part in mask))
    for name in ("torch.func", "autograd"):
        found = []
        for dtype in (torch.float32, torch.float64):
            w1 = torch.randn(6, 5, generator=generator(3)).to(dtype)
            w2 = torch.randn(5, 2, generator=generator(4)).to(dtype)
            sparse = SparseFeatures.from_tensor(x.to(dtype))

            def loss(w1, w2):
                h = feature_product(sparse, w1, one)
                return activated_product(h, w2, None, w1[0], relu=True, mask=one).square().sum()

            with kernels_on_cpu() if dtype == torch.float32 else contextlib.nullcontext():
                if name == "torch.func":
                    found.append(grad(lambda a: grad(loss)(a, w2).square().sum())(w1))
                else:
                    a = w1.clone().requires_grad_()
                    (slope,) = torch.autograd.grad(loss(a, w2), a, create_graph=True)
                    found.append(torch.autograd.grad(slope.square().sum(), a)[0])
        print("second", name, float((found[0] - found[1]).norm() / found[1].norm()), flush=True)


def activated() -> None:
    mask = masks()
    for nodes, width, out in ((5, 1, 1), (100, 16, 3), (70, 20, 7), (300, 64, 16)):
        x = torch.randn(TRIALS, nodes, width, generator=generator())
        bias, weight = (
            torch.randn(TRIALS, width, generator=generator(1)),
            torch.randn(TRIALS, width, out, generator=generator(2)),
        )
        shift = torch.randn(TRIALS, out, generator=generator(3))
        label = f"{nodes}-{width}-{out}"
        compare(
            f"activate-{label}",
            lambda x, b, _: vmap(lambda x, b, *m: activate(x, b, True, Mask(*m)))(x, b, *mask),
            [x, bias],
        )
        compare(f"bias-{label}", lambda x, b, _: vmap(activate)(x, b), [x, bias])
        compare(
            f"product-{label}",
            lambda x, w, c, b, _: vmap(lambda x, w, c, b, *m: activated_product(x, w, c, b, True, Mask(*m)))(
                x, w, c, b, *mask
            ),
            [x, weight, shift, bias],
        )
        compare(
            f"bare-{label}", lambda x, w, _: vmap(lambda x, w: activated_product(x, w, relu=True))(x, w), [x, weight]
        )
        many = in_views(mask)

        def viewed(x, w, b, _):
            inner = vmap(
                lambda x, w, b, r, k, c: activated_product(x, w, None, b, True, Mask(r, k, c)),
                in_dims=(0, None, None, None, 0, None),
            )
            return vmap(inner)(torch.stack([x, -x], dim=1), w, b, *many)

        compare(f"views-{label}", viewed, [x, weight, bias])


def graph_of(nodes: int) -> Graph:
    """A random graph with a hub, so that one row is cut into pieces."""
    edges = torch.randint(nodes, (2, 3 * nodes), generator=generator(5))
    spokes = torch.stack([torch.zeros(nodes - 1, dtype=torch.int64), torch.arange(1, nodes)])
    found = Graph.from_edges(torch.cat([edges[:, edges[0] != edges[1]], spokes], dim=1), nodes=nodes, directed=False)
    csr = found.operator.forward
    cut = csr._replace(hubs=hub_pieces(csr.crow))  # which are made on a GPU alone
    assert (cut.hubs.shape[0] > 1) == (nodes > HUB)
    object.__setattr__(found.operator, "forward", cut)
    object.__setattr__(found.operator, "transpose", cut)
    return found


def series() -> None:
    for nodes, inner, outer, depth in ((40, 3, 3, 2), (HUB + 20, 7, 7, 5), (40, 16, 5, 1), (30, 2, 2, 0)):
        narrow = graph_of(nodes)
        wide = narrow.to(torch.float64)
        x = torch.randn(TRIALS, nodes, inner, generator=generator())
        for kind, shape in (("matrices", (inner, outer)), ("numbers", ())):
            hops = torch.randn(TRIALS, depth + 1, *shape, generator=generator(1)) / (depth + 1)
            for basis in Basis:

                def run(x, hops, double, basis=basis):
                    return vmap(lambda x, c: propagate(wide if double else narrow, x, c, basis))(x, hops)

                compare(f"series-{kind}-{basis.value}-{nodes}-{inner}-{outer}-{depth}", run, [x, hops])


def batches() -> None:
    """Three epochs of stacks in the order of a GPU, against the same stacks without kernels."""
    from study.batch.stack_cases import CASES, members_of, task_of
    from unspool.study.batch.stacked_batch import StackedBatch

    class Riding(StackedBatch):
        rides_on = frozenset({"cpu"})

    for name in CASES:
        if name.endswith("-each") or (TOLD and name not in TOLD):
            continue
        members = members_of(name, task_of())
        wanted = StackedBatch(members).run_epochs(3)
        with kernels_on_cpu():
            found = Riding(members).run_epochs(3)
        off = abs(found[..., :2] - wanted[..., :2]) / abs(wanted[..., :2])
        print(f"batch-{name} 0", float(off.max()), flush=True)


#: Models that the case of batches is about; all when there are none.
TOLD = sys.argv[2:]
CASES = {"batches": batches, "features": features, "second": second_order, "activated": activated, "series": series}

if __name__ == "__main__":
    torch.set_num_threads(1)
    from unspool.ops.kernels import activated_cuda, series_cuda

    stacked_features.PACKED = False
    activated_cuda.PRECISION = series_cuda.PRECISION = "ieee"  # the interpreter has no matrix units
    for name in sys.argv[1:2] or CASES:
        CASES[name]()
