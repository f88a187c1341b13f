"""Implicit to any order: derivatives of the minimiser against finite differences, and a hypergradient on CiteSeer."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch

import unspool as us
from unspool import datasets

pytestmark = pytest.mark.long


SMOOTH = torch.tensor([[1.0, 0.2, 0.0], [0.2, 0.7, 0.1], [0.0, 0.1, 1.3]])


@dataclass(frozen=True, eq=False)
class Robust(us.SmoothTerm):
    """Σ ρ(h − x) with ρ between a parabola and a modulus, as users write it; ``kind`` says which."""

    kind: str
    weight: Any = 1.0

    def __post_init__(self):
        object.__setattr__(self, "weight", us.objective.coefficient.as_coefficient(self.weight))

    def value(self, h, given):
        u = h - given.x
        rho = {
            "log-cosh": lambda: torch.log(torch.cosh(u)),
            "pseudo-Huber": lambda: (1 + u * u).sqrt() - 1,
            "Huber": lambda: torch.where(u.abs() < 0.4, u * u / 2, 0.4 * (u.abs() - 0.2)),
        }[self.kind]()
        return rho.sum((-2, -1)) * given[self.weight]

    def gradient(self, h, given):
        u = h - given.x
        slope = {
            "log-cosh": lambda: torch.tanh(u),
            "pseudo-Huber": lambda: u / (1 + u * u).sqrt(),
            "Huber": lambda: torch.clamp(u, -0.4, 0.4),
        }[self.kind]()
        return slope * given[self.weight]

    def lipschitz(self, given):
        return given[self.weight]

    def formula(self):
        return f"{self.weight.factor} Σ {self.kind}(H − X)"


def alpha():
    return us.Learnable(0.4, within=(0, 1), name="α")


def tied(extra=None):
    """One weight in two terms and one matrix metric in three."""
    a, metric = alpha(), us.Symmetric(3, psd=True, initial=SMOOTH, name="T")
    objective = us.Fidelity(a, metric=metric) + us.Smoothness(1 - a, metric=metric) + us.Ridge(0.3, metric=1 + metric)
    return objective if extra is None else objective + extra


def positive(value, name):
    return us.Learnable(value, within=(0, None), name=name)


def robust(kind):
    return us.Smoothness(positive(0.7, "β")) + us.Ridge(positive(0.2, "ρ")) + Robust(kind, positive(1.5, "w"))


QUADRATIC = {
    "tied": tied,
    "diagonal": lambda: us.Fidelity(0.4, metric=us.Diagonal(3, name="Δ")) + us.Smoothness(positive(0.7, "β")),
    "fixed metric": lambda: us.Fidelity(0.4, metric=SMOOTH) + us.Smoothness(0.6),
    "numbers": lambda: us.Fidelity(0.4) + us.Smoothness(0.6),
    "edges": lambda: (
        us.Fidelity(positive(0.5, "α"))
        + us.EdgeSmoothness(us.Learnable(torch.linspace(0.1, 1.0, 17), name="w"), weight=positive(0.5, "β"))
    ),
}
NONLINEAR = {kind: (lambda kind=kind: robust(kind)) for kind in ("log-cosh", "pseudo-Huber", "Huber")}
NONLINEAR["tied log-cosh"] = lambda: tied(Robust("log-cosh", positive(0.8, "w")))
ROUGH = {
    "non-negative": lambda: tied(us.NonNegative()),
    "sparse": lambda: tied(us.Sparse(positive(0.1, "ρ"))),
    "robust rows": lambda: tied(us.RowSparseFidelity(positive(0.2, "ρ"))),
    "tanh": lambda: tied(us.Activation(torch.nn.Tanh(), weight=positive(0.5, "ρ"))),
    "log-cosh and box": lambda: robust("log-cosh") + us.Box(-0.5, 0.5),
}
PROBLEMS = QUADRATIC | NONLINEAR | ROUGH
ALONG = [("input",) * 3, ("coefficients",) * 3, ("both", "coefficients", "input")]
#: Three ways through smooth problems, the mixed one through those that take longer.
CASES = [(name, along) for name in QUADRATIC | NONLINEAR for along in ALONG if name not in ("numbers", "fixed metric")]
CASES += [(name, ALONG[0]) for name in ("numbers", "fixed metric")] + [(name, ALONG[2]) for name in ROUGH]


def network(objective, solver):
    if solver == "Exact":
        return us.unroll(objective, us.Exact(tolerance=1e-14)).double()
    algorithm = us.GradientDescent() if objective.smooth else us.ProximalGradient()
    return us.unroll(objective, algorithm, 1, adjoint=us.Implicit(tolerance=1e-14)).double()


@dataclass
class Scene:
    """A loss of the minimiser as a function of the input and of all raw parameters."""

    net: Any
    graph: Any
    linear: bool

    def loss(self, point):
        names = [n for n, _ in self.net.named_parameters()]
        h = torch.func.functional_call(self.net, dict(zip(names, point[1:], strict=True)), (point[0], self.graph))
        weight = torch.cos(torch.arange(h.numel(), dtype=h.dtype)).view(h.shape)
        return (h * weight).sum() if self.linear else (torch.sin(h) * weight + h.pow(3)).sum()

    def slope(self, point, directions):
        """The mixed directional derivative along all directions, by autograd alone."""
        point = [t.detach().clone().requires_grad_() for t in point]
        value = self.loss(point)
        for order, direction in enumerate(directions, start=1):
            if not value.requires_grad:
                return 0.0  # constant: a linear loss of what is linear
            found = torch.autograd.grad(value, point, create_graph=order < len(directions), allow_unused=True)
            parts = [(g * u).sum() for g, u in zip(found, direction, strict=True) if g is not None]
            value = sum(parts, torch.zeros((), dtype=torch.float64))
        return float(value.detach())


def moved(point, direction, size):
    return [p + size * u for p, u in zip(point, direction, strict=True)]


def direction_of(point, which, seed):
    random = torch.Generator().manual_seed(seed)
    drawn = [torch.randn(t.shape, generator=random, dtype=t.dtype) for t in point]
    size = torch.sqrt(sum(u.square().sum() for u in drawn))
    keep = [which != "coefficients"] + [which != "input"] * (len(point) - 1)
    return [u / size * k for u, k in zip(drawn, keep, strict=True)]


def in_release(name, along):
    """The Huber losses have the path of log-cosh, so `make test` goes one way through them."""
    return name in ("pseudo-Huber", "Huber") and along != ALONG[2]


@pytest.mark.parametrize(
    ("name", "along"),
    [pytest.param(*case, marks=pytest.mark.slow if in_release(*case) else []) for case in CASES],
    ids=str,
)
def test_three_derivatives_are_those_of_finite_differences(name, along, graph, x):
    for solver, linear in (("Implicit", True), ("Exact", False))[: 1 if name in ROUGH else 2]:
        net = network(PROBLEMS[name](), solver)
        scene, point = Scene(net, graph, linear), [x, *(p.detach() for p in net.parameters())]
        directions = [direction_of(point, which, seed) for seed, which in enumerate(along)]
        step = 1e-4
        for order in range(1, 4):
            exact = scene.slope(point, directions[:order])
            *before, last = directions[:order]
            ahead, behind = (scene.slope(moved(point, last, s), before) for s in (step, -step))
            assert exact == pytest.approx((ahead - behind) / (2 * step), rel=1e-5, abs=1e-6), (solver, order)


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name != "tanh"])
def test_inputs_alone_and_losses_linear_in_h_are_right(name, graph, x):
    """The two ways past an error node: ``grad(..., inputs)`` of one tensor, and a first derivative without v in it."""
    net = network(PROBLEMS[name](), "Exact")
    scene, point = Scene(net, graph, True), [x, *(p.detach() for p in net.parameters())]

    def squared(at):
        (first,) = torch.autograd.grad(scene.loss(at), [at[0]], create_graph=True)
        return first.square().sum()

    for which in range(len(point)):
        at = [t.clone().requires_grad_() for t in point]
        value = squared(at)
        second = torch.autograd.grad(value, [at[which]], allow_unused=True)[0] if value.requires_grad else None
        place = torch.zeros_like(point[which])
        place.view(-1)[place.numel() // 2] = 1.0
        sides = []
        for size in (1e-4, -1e-4):
            near = [t.clone().requires_grad_() for t in point]
            near[which] = (point[which] + size * place).requires_grad_()
            sides.append(float(squared(near).detach()))
        found = 0.0 if second is None else float((second * place).sum())
        assert found == pytest.approx((sides[0] - sides[1]) / 2e-4, rel=1e-5, abs=1e-6)


def test_a_learnt_step_inside_the_problem(graph, x):
    """φ/η is another term at another η, so the minimiser depends on the step."""
    step = us.Learnable(0.3, within=(0, None), name="η")
    objective = us.Fidelity(alpha()) + us.Smoothness(0.5) + us.Activation(torch.nn.Tanh())
    net = us.unroll(objective, us.ProximalGradient(step=step), 1, adjoint=us.Implicit(tolerance=1e-14)).double()
    scene, point = Scene(net, graph, False), [x, *(p.detach() for p in net.parameters())]
    directions = [direction_of(point, "coefficients", seed) for seed in range(3)]
    for order in range(1, 4):
        exact = scene.slope(point, directions[:order])
        *before, last = directions[:order]
        ahead, behind = (scene.slope(moved(point, last, s), before) for s in (1e-4, -1e-4))
        assert exact == pytest.approx((ahead - behind) / 2e-4, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_minimiser_and_what_it_came_from_is_all_that_is_kept(name, graph, x):
    net = network(PROBLEMS[name](), "Exact")
    out = net(x.clone().requires_grad_(), graph)
    if name == "numbers":
        return  # one linear solve, which keeps nothing but the graph
    learnt = sum(p.numel() for p in net.parameters())
    assert sum(t.numel() for t in out.grad_fn.saved_tensors) == 2 * x.numel() + learnt
    assert all("AccumulateGrad" in type(node).__name__ for node, _ in out.grad_fn.next_functions if node is not None)


@pytest.mark.parametrize("outer", ["vmap", "grad"])
def test_function_transforms_are_refused_in_words(outer, graph, x):
    net = us.unroll(tied(), us.Exact()).double()
    run = lambda signal: net(signal, graph).square().sum()  # noqa: E731
    with pytest.raises(us.IncompatibleError, match=r"torch\.func"):
        torch.func.vmap(run)(torch.stack([x, x])) if outer == "vmap" else torch.func.grad(run)(x)


def test_tensors_outside_the_coefficients_are_refused_by_name(graph, x):
    hidden = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)

    class Hidden(Robust):
        def gradient(self, h, given):
            return super().gradient(h, given) * hidden

    net = us.unroll(us.Fidelity(alpha()) + us.Smoothness(0.5) + Hidden("log-cosh"), us.Exact()).double()
    with pytest.raises(us.IncompatibleError, match="Hidden"):
        net(x, graph)


def test_gradients_that_autograd_cannot_see_into_are_refused_by_name(graph, x):
    class Cut(Robust):
        def gradient(self, h, given):
            leaf = h.detach().requires_grad_()
            with torch.enable_grad():
                return torch.autograd.grad(self.value(leaf, given).sum(), leaf)[0]

    net = us.unroll(us.Fidelity(alpha()) + us.Smoothness(0.5) + Cut("log-cosh"), us.Exact()).double()
    with torch.no_grad():
        assert net(x, graph).shape == x.shape
    with pytest.raises(us.IncompatibleError, match="Cut"):
        net(x, graph)


@pytest.fixture(scope="module")
def citeseer():
    data = datasets.load("citeseer")
    features = data.features.to_dense() if hasattr(data.features, "to_dense") else data.features
    random = torch.Generator().manual_seed(0)
    narrow = features.double() @ torch.randn(features.shape[1], 4, generator=random, dtype=torch.float64)
    return data, narrow / narrow.std(), data.graph.to(torch.float64)


def hypergradient(net, data, x, graph):
    """d(validation loss after one training step of encoder and head) / d(raw weight α), and the loss."""
    random = torch.Generator().manual_seed(1)
    classes = int(data.labels.max()) + 1
    encoder = (
        torch.eye(4, dtype=torch.float64) + 0.1 * torch.randn(4, 4, generator=random, dtype=torch.float64)
    ).requires_grad_()
    head = torch.randn(4, classes, generator=random, dtype=torch.float64).requires_grad_()

    def loss(encoder, head, part):
        scores = net(x @ encoder, graph) @ head
        return torch.nn.functional.cross_entropy(scores[part], data.labels[part])

    steps = torch.autograd.grad(loss(encoder, head, data.split.train), [encoder, head], create_graph=True)
    after = loss(encoder - 2.0 * steps[0], head - 2.0 * steps[1], data.split.valid)
    (raw,) = net.parameters()
    (found,) = torch.autograd.grad(after, [raw])
    return float(found), float(after.detach())


def test_a_hypergradient_on_citeseer_is_that_of_great_depth(citeseer):
    data, x, graph = citeseer
    a = us.Learnable(0.2, within=(0, 1), name="α")
    objective = us.Fidelity(a) + us.Smoothness(1 - a)
    exact, loss = hypergradient(us.unroll(objective, us.Exact(tolerance=1e-12)).double(), data, x, graph)
    deep = us.unroll(objective, us.Chebyshev(), 80).double()
    assert isinstance(deep.adjoint, us.Polynomial)
    there, same = hypergradient(deep, data, x, graph)
    assert loss == pytest.approx(same, rel=1e-9)
    assert exact == pytest.approx(there, rel=1e-6)
    assert abs(exact) > 1e-4


def test_models_solved_exactly_have_second_derivatives(graph, x):
    torch.manual_seed(0)
    model = us.models.APPNP(3, 2, hidden=4, teleport=0.3, dropout=0.0).double().solve_exactly().eval()
    names = [n for n, _ in model.named_parameters()]

    def loss(*values):
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), (x, graph)).pow(3).sum()

    values = tuple(p.detach().clone().requires_grad_() for p in model.parameters())
    assert torch.autograd.gradgradcheck(loss, values, atol=1e-4, rtol=1e-4)
