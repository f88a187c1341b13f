"""What the kernels of stacked ops compute, against their formulas in double precision on the CPU, as numbers on any device.

Every case yields names and relative errors. On a GPU the kernels run as they are (tests/gpu/test_gpu_ops.py), on the CPU in Triton's
interpreter (interpreted.py).
"""

# ruff: noqa: B023 - functions are called in the loop that makes them

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor
from torch.func import grad, vmap

from unspool import Graph
from unspool.ops import Basis, SparseFeatures, kernels, propagate
from unspool.ops.activated import activate, activated_product
from unspool.ops.dropout import Mask, advance, key
from unspool.ops.features import feature_product
from unspool.ops.operator import HUB, hub_pieces
from unspool.ops.stacked_features import Form, Riding, form_of, riding

TRIALS, VIEWS = 3, 2
Quantities = Iterator[tuple[str, float]]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def masks(trials: int = TRIALS) -> Mask:
    keys = torch.stack([key(seed, 0, 1) for seed in range(trials)])
    return Mask(torch.linspace(0.2, 0.6, trials), keys, torch.arange(trials))


def in_views(mask: Mask) -> Mask:
    """Further masks of the same trials."""
    return Mask(mask.rate, torch.stack([mask.key, advance(mask.key, 7)], dim=1), mask.call)


def there(mask: Mask, like: Tensor) -> Mask:
    """The same masks where a tensor lies."""
    return Mask(*(part.to(like.device) for part in mask))


@contextlib.contextmanager
def kernels_on(device: str) -> Iterator[None]:
    """Kernels run there, on the CPU in Triton's interpreter."""
    if device != "cpu":
        yield
        return
    torch.cuda.device = lambda device: contextlib.nullcontext()  # type: ignore[assignment, misc]
    kernels.KERNEL_DEVICES.add("cpu")
    try:
        yield
    finally:
        kernels.KERNEL_DEVICES.discard("cpu")


def off(found: Tensor, wanted: Tensor) -> float:
    found, wanted = found.detach().double().cpu(), wanted.detach().double().cpu()
    return float((found - wanted).norm() / wanted.norm().clamp_min(1e-12))


def values_and_gradients(run: Callable[..., Tensor], inputs: Sequence[Tensor]) -> list[Tensor]:
    """The result of a function of stacked inputs, and the gradients of an uneven sum of it."""
    leaves = [i.detach().clone().requires_grad_() for i in inputs]
    out = run(*leaves)
    weight = torch.linspace(-1, 2, out.numel(), dtype=out.dtype).view(out.shape).to(out.device)
    return [out.detach(), *torch.autograd.grad((out * weight).sum(), leaves)]


def compare(name: str, device: str, run: Callable[..., Tensor], inputs: Sequence[Tensor]) -> Quantities:
    """Kernels in single precision under ``run(..., False)`` against formulas in double precision, ``run(..., True)``."""
    wanted = values_and_gradients(lambda *i: run(*i, True), [i.double() for i in inputs])
    with kernels_on(device):
        found = values_and_gradients(lambda *i: run(*i, False), [i.to(device) for i in inputs])
    for k, (a, b) in enumerate(zip(found, wanted, strict=True)):
        assert a.shape == b.shape, (name, k, a.shape, b.shape)
        yield f"{name} {k}", off(a, b)


def words(nodes: int = 70, features: int = 40, share: float = 0.03) -> torch.Tensor:
    x = torch.rand(nodes, features, generator=generator()) * (
        torch.rand(nodes, features, generator=generator(1)) < share
    )
    x[:, 0] = 1.0
    return x


def features(device: str) -> Quantities:
    for width, share in ((3, 0.03), (20, 0.03), (64, 0.03), (16, 0.3), (136, 0.3)):
        x = words(150, 40, share)
        narrow, wide = SparseFeatures.from_tensor(x).to(device), SparseFeatures.from_tensor(x.double())
        assert form_of(narrow) is (Form.DENSE if share > 0.1 else Form.SPARSE)
        weight = torch.randn(TRIALS, x.shape[1], width, generator=generator(2))
        mask = masks()

        def plain(weight, double):
            return vmap(lambda w: feature_product(wide if double else narrow, w, None))(weight)

        def dropped(weight, double):
            return vmap(lambda w, *m: feature_product(wide if double else narrow, w, Mask(*m)))(
                weight, *there(mask, weight)
            )

        def viewed(weight, double):
            x, many = wide if double else narrow, there(in_views(mask), weight)
            inner = vmap(
                lambda w, r, k, c: feature_product(x, w, Mask(r, k, c)), in_dims=(None, None, 0, None), out_dims=1
            )
            return vmap(inner)(weight, *many)

        for name, run in (("plain", plain), ("dropped", dropped), ("views", viewed)):
            yield from compare(f"features-{name}-{width}", device, run, [weight])
    with kernels_on(device), torch.no_grad():
        ride, here = Riding(), weight.to(device)
        with riding(ride, collecting=True):
            dropped(here, False)
        with riding(ride, collecting=False):
            found = plain(here, False)
    yield "features-riding 0", off(found, plain(weight.double(), True))


def second_order(device: str) -> Quantities:
    """A gradient of a gradient, through the formulas."""
    x = words(20, 6)
    mask = masks(1)
    one = Mask(*(part[0] for part in mask))
    for name in ("torch.func", "autograd"):
        found: list[Tensor] = []
        for dtype, place in ((torch.float32, device), (torch.float64, "cpu")):
            w1 = torch.randn(6, 5, generator=generator(3)).to(place, dtype)
            w2 = torch.randn(5, 2, generator=generator(4)).to(place, dtype)
            sparse, drop = SparseFeatures.from_tensor(x.to(dtype)).to(place), there(one, w1)

            def loss(w1: Tensor, w2: Tensor) -> Tensor:
                h = feature_product(sparse, w1, drop)
                return activated_product(h, w2, None, w1[0], relu=True, mask=drop).square().sum()

            with kernels_on(device) if dtype == torch.float32 else contextlib.nullcontext():
                if name == "torch.func":
                    found.append(grad(lambda a: grad(loss)(a, w2).square().sum())(w1))
                else:
                    a = w1.clone().requires_grad_()
                    (slope,) = torch.autograd.grad(loss(a, w2), a, create_graph=True)
                    found.append(torch.autograd.grad(slope.square().sum(), a)[0])
        yield f"second {name}", off(*found)


def activated(device: str) -> Quantities:
    mask = masks()
    for nodes, width, out in ((5, 1, 1), (100, 16, 3), (70, 20, 7), (40, 100, 8), (300, 64, 16)):
        x = torch.randn(TRIALS, nodes, width, generator=generator())
        bias, weight = (
            torch.randn(TRIALS, width, generator=generator(1)),
            torch.randn(TRIALS, width, out, generator=generator(2)),
        )
        shift = torch.randn(TRIALS, out, generator=generator(3))
        label = f"{nodes}-{width}-{out}"

        def one(x, b, _):
            return vmap(lambda x, b, *m: activate(x, b, True, Mask(*m)))(x, b, *there(mask, x))

        def product(x, w, c, b, _):
            whole = vmap(lambda x, w, c, b, *m: activated_product(x, w, c, b, True, Mask(*m)))
            return whole(x, w, c, b, *there(mask, x))

        def bare(x, w, _):
            return vmap(lambda x, w: activated_product(x, w, relu=True))(x, w)

        yield from compare(f"activate-{label}", device, one, [x, bias])
        yield from compare(f"bias-{label}", device, lambda x, b, _: vmap(activate)(x, b), [x, bias])
        yield from compare(f"product-{label}", device, product, [x, weight, shift, bias])
        yield from compare(f"bare-{label}", device, bare, [x, weight])

        def viewed(x, w, b, _):
            inner = vmap(
                lambda x, w, b, r, k, c: activated_product(x, w, None, b, True, Mask(r, k, c)),
                in_dims=(0, None, None, None, 0, None),
            )
            return vmap(inner)(torch.stack([x, -x], dim=1), w, b, *there(in_views(mask), x))

        yield from compare(f"views-{label}", device, viewed, [x, weight, bias])


def graph_of(nodes: int, device: str) -> Graph:
    """A random graph with a hub, so that one row is cut into pieces."""
    edges = torch.randint(nodes, (2, 3 * nodes), generator=generator(5))
    spokes = torch.stack([torch.zeros(nodes - 1, dtype=torch.int64), torch.arange(1, nodes)])
    every = torch.cat([edges[:, edges[0] != edges[1]], spokes], dim=1).sort(dim=0).values.unique(dim=1)
    found = Graph.from_edges(every, nodes=nodes, directed=False)
    if device != "cpu":
        return found.to(device)
    csr = found.operator.forward
    cut = csr._replace(hubs=hub_pieces(csr.crow))  # which are made on a GPU alone
    assert (cut.hubs.shape[0] > 1) == (nodes > HUB)
    object.__setattr__(found.operator, "forward", cut)
    object.__setattr__(found.operator, "transpose", cut)
    return found


def series(device: str) -> Quantities:
    for nodes, inner, outer, depth in ((40, 3, 3, 2), (HUB + 20, 7, 7, 5), (40, 16, 5, 1), (30, 2, 2, 0)):
        narrow = graph_of(nodes, device)
        wide = narrow.to("cpu").to(torch.float64)
        x = torch.randn(TRIALS, nodes, inner, generator=generator())
        for kind, shape in (("matrices", (inner, outer)), ("numbers", ())):
            hops = torch.randn(TRIALS, depth + 1, *shape, generator=generator(1)) / (depth + 1)
            for basis in Basis:

                def run(x, hops, double, basis=basis):
                    return vmap(lambda x, c: propagate(wide if double else narrow, x, c, basis))(x, hops)

                label = f"series-{kind}-{basis.value}-{nodes}-{inner}-{outer}-{depth}"
                yield from compare(label, device, run, [x, hops])


def company(device: str) -> Quantities:
    """How many numbers of a trial are others alone and among thirty, whose signals are wide, on rows of many entries."""
    graph = Graph.from_edges(torch.combinations(torch.arange(12)).T, 12, directed=False).to(device)
    for kind, shape in (("matrices", (3, 3)), ("numbers", ())):
        x, hops = torch.randn(12, 3, generator=generator()), torch.randn(3, *shape, generator=generator(1))
        weight = torch.linspace(-1, 2, 36).view(12, 3).to(device)
        found: list[list[Tensor]] = []
        for trials in (1, 30):
            leaves = [t.repeat(trials, *[1] * t.ndim).to(device).requires_grad_() for t in (x, hops)]
            with kernels_on(device):
                out = vmap(lambda x, c: propagate(graph, x, c))(*leaves)
                found.append([out.detach(), *torch.autograd.grad((out * weight).sum(), leaves)])
        yield f"company-{kind} other-bits", float(sum((a[0] != b[0]).sum() for a, b in zip(*found, strict=True)))


CASES: dict[str, Callable[[str], Quantities]] = {
    "features": features, "second": second_order, "activated": activated, "series": series, "company": company,
}  # fmt: skip
