"""Activations as proximity operators: each minimises the potential it names, at weight one and at any other."""

import math

import pytest
import torch
from torch import nn

from unspool.errors import IncompatibleError
from unspool.ops.activation import (
    ELU,
    Arctan,
    Hardtanh,
    LeakyReLU,
    Potential,
    ReLU,
    Sigmoid,
    Softshrink,
    Softsign,
    Tanh,
    not_a_prox,
    potential_of,
)

# each potential beside torch's own activation
PAIRS = [
    (ReLU(), nn.ReLU()),
    (LeakyReLU(), nn.LeakyReLU()),
    (LeakyReLU(0.3), nn.LeakyReLU(0.3)),
    (LeakyReLU(1.0), nn.LeakyReLU(1.0)),
    (ELU(), nn.ELU()),
    (ELU(0.4), nn.ELU(0.4)),
    (Tanh(), nn.Tanh()),
    (Sigmoid(), nn.Sigmoid()),
    (Softsign(), nn.Softsign()),
    (Softshrink(), nn.Softshrink()),
    (Softshrink(1.7), nn.Softshrink(1.7)),
    (Hardtanh(), nn.Hardtanh()),
    (Hardtanh(0.0, 6.0), nn.ReLU6()),
    (Hardtanh(-0.2, 1.5), nn.Hardtanh(-0.2, 1.5)),
]
POTENTIALS = [*(potential for potential, _ in PAIRS), Arctan()]
each_potential = pytest.mark.parametrize("potential", POTENTIALS, ids=repr)
V = torch.linspace(-4.03, 4.01, 61, dtype=torch.float64)


def lowest(potential, weight, v, y):
    """The least cost weight·φ(r) + (r − v)²/2 among rivals on a fine grid, around y and at random."""
    generator = torch.Generator().manual_seed(0)
    near = [y + offset for scale in (1e-4, 1e-2, 1.0) for offset in (scale, -scale)]
    anywhere = 6 * torch.rand(400, 1, generator=generator, dtype=torch.float64) - 3
    grid = torch.linspace(-6, 6, 1201, dtype=torch.float64)[:, None]
    rivals = torch.cat([torch.stack(near), anywhere.expand(-1, v.numel()), grid.expand(-1, v.numel())])
    return (weight * potential.value(rivals) + (rivals - v) ** 2 / 2).min(0).values


@each_potential
def test_activation_beats_all_rivals(potential):
    y = potential.activation(V)
    cost = potential.value(y) + (y - V) ** 2 / 2
    assert bool(cost.isfinite().all())
    assert bool((cost <= lowest(potential, 1.0, V, y) + 1e-9).all())


@pytest.mark.parametrize("weight", [0.05, 0.3, 1.0, 2.7, 40.0])
@each_potential
def test_prox_beats_all_rivals(potential, weight):
    y = potential.prox(V, weight)
    cost = weight * potential.value(y) + (y - V) ** 2 / 2
    assert bool(cost.isfinite().all())
    assert bool((cost <= lowest(potential, weight, V, y) + 1e-9).all())


@each_potential
def test_prox_of_weight_one_is_the_activation(potential):
    assert torch.allclose(potential.prox(V, 1.0), potential.activation(V), rtol=0, atol=1e-13)
    far = torch.tensor([-30.0, 30.0], dtype=torch.float64)
    assert torch.allclose(potential.prox(far, 1.0), potential.activation(far), rtol=0, atol=1e-13)


@pytest.mark.parametrize("weight", [0.3, 2.7])
@each_potential
def test_prox_is_stationary(potential, weight):
    """v − y lies in w ∂φ(y), where φ'(y) = σ⁻¹(y) − y: the activation of y + (v − y)/w is y again."""
    y = potential.prox(V, weight)
    assert torch.allclose(potential.activation(y + (V - y) / weight), y, atol=1e-10)


@pytest.mark.long
@pytest.mark.parametrize("weight", [0.3, 1.0, 2.7])
@each_potential
def test_prox_has_gradients_in_signal_and_weight(potential, weight):
    v = torch.tensor([-3.1, -0.9, -0.23, 0.17, 0.81, 3.3], dtype=torch.float64, requires_grad=True)  # no kinks here
    w = torch.tensor(weight, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v, w: potential.prox(v, w).sin(), (v, w))


@each_potential
def test_prox_takes_one_weight_per_trial(potential):
    weight = torch.tensor([0.3, 1.0, 2.7], dtype=torch.float64)
    v = torch.stack([V, V.flip(0), 2 * V])
    each = torch.stack([potential.prox(one, w) for one, w in zip(v, weight, strict=True)])
    assert torch.allclose(potential.prox(v, weight[:, None]), each, rtol=0, atol=1e-13)
    assert torch.allclose(torch.func.vmap(potential.prox)(v, weight), each, rtol=0, atol=1e-13)


@each_potential
def test_prox_in_float32(potential):
    assert potential.prox(V.float(), 2.7).dtype == torch.float32
    assert torch.allclose(potential.prox(V.float(), 2.7).double(), potential.prox(V, 2.7), atol=2e-6)


@each_potential
def test_slope_is_that_of_a_prox(potential):
    slope = potential.slope(V)
    assert float(slope.min()) >= 0
    assert float(slope.max()) <= 1
    change = (potential.activation(V + 1e-6) - potential.activation(V - 1e-6)) / 2e-6
    assert torch.allclose(slope, change, atol=1e-5)


@each_potential
def test_value_is_convex_enough(potential):
    """φ + y²/2 is convex: its value at a middle is at most the mean of the ends."""
    generator = torch.Generator().manual_seed(0)
    a, b = (6 * torch.rand(2000, generator=generator, dtype=torch.float64) - 3 for _ in range(2))

    def convex(y):
        return potential.value(y) + y**2 / 2

    assert bool((convex((a + b) / 2) <= (convex(a) + convex(b)) / 2 + 1e-12).all())
    assert bool((potential.value((a + b) / 2) <= (potential.value(a) + potential.value(b)) / 2 + 1e-12).all())


DOMAINS = [
    (ReLU(), 0.0, math.inf), (ELU(0.4), -0.4, math.inf), (Tanh(), -1.0, 1.0), (Sigmoid(), 0.0, 1.0),
    (Softsign(), -1.0, 1.0), (Arctan(), -1.0, 1.0), (Hardtanh(-0.2, 1.5), -0.2, 1.5),
]  # fmt: skip


@pytest.mark.parametrize(("potential", "low", "high"), DOMAINS)
def test_value_is_infinite_outside_the_domain_alone(potential, low, high):
    y = torch.linspace(-2.005, 2.005, 402, dtype=torch.float64)
    assert torch.equal(potential.value(y).isfinite(), (y > low) & (y < high))


@pytest.mark.parametrize(("potential", "module"), PAIRS, ids=repr)
def test_activation_is_torchs_own(potential, module):
    assert torch.equal(potential.activation(V), module(V))
    assert potential_of(module) == potential
    assert not_a_prox(module) is None


def test_arctan_rises_with_slope_one_to_one():
    assert torch.allclose(Arctan().activation(V), (2 / math.pi) * torch.atan(math.pi * V / 2))
    assert float(Arctan().slope(torch.zeros(1, dtype=torch.float64))) == pytest.approx(1.0)
    assert float(Arctan().activation(torch.tensor(1e9, dtype=torch.float64))) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (
            nn.GELU(),
            r"GELU is not a proximity operator: it falls near v = -1\.00, and a proximity operator never falls",
        ),
        (nn.SiLU(), r"SiLU is not a proximity operator: it falls near v = -1\.\d\d"),
        (nn.Mish(), r"Mish is not a proximity operator: it falls near v = -1\.\d\d"),
        (nn.SELU(), r"SELU is not a proximity operator: its slope reaches 1\.7\d+, and .* never rises faster"),
        (nn.ELU(1.5), r"ELU with a = 1\.5 is not a proximity operator: its slope reaches 1\.5, above 1; use 0 < a ≤ 1"),
        (nn.Hardshrink(), r"Hardshrink is not a proximity operator: its slope reaches \d+"),
        (
            nn.LeakyReLU(-0.1),
            r"leaky ReLU with slope -0\.1 is not a proximity operator: the slope must lie in \(0, 1\]",
        ),
        (nn.LeakyReLU(1.1), r"leaky ReLU with slope 1\.1 is not a proximity operator"),
        (nn.Softplus(), r"Softplus may be a proximity operator, but its potential is not on file; subclass Potential"),
    ],
    ids=lambda case: type(case).__name__ if isinstance(case, nn.Module) else "",
)
def test_others_are_refused_with_the_reason(module, reason):
    with pytest.raises(IncompatibleError, match=reason):
        potential_of(module)


def test_parameters_that_make_no_prox_are_refused():
    with pytest.raises(IncompatibleError, match=r"softshrink with radius -1 .* must not be negative"):
        Softshrink(-1.0)
    with pytest.raises(ValueError, match=r"hardtanh needs low < high, not \[1, -1\]"):
        Hardtanh(1.0, -1.0)
    for a in (0.0, -0.5):
        with pytest.raises(IncompatibleError, match="ELU"):
            ELU(a)


def test_a_users_own_potential_only_needs_activation_and_value():
    """Half of v: φ(y) = y²/2, whose prox of weight w divides by 1 + w."""

    class Half(Potential):
        def activation(self, v):
            return v / 2

        def value(self, y):
            return y**2 / 2

    assert torch.allclose(Half().prox(V, 2.7), V / 3.7)


@pytest.mark.parametrize("potential", [Tanh(), Sigmoid(), ELU(0.5)], ids=repr)
def test_second_derivatives_of_prox(potential):
    v = torch.tensor([0.7, -0.4, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda v: potential.prox(v, 2.7), (v,))


def test_prox_of_nothing_and_of_less():
    v = torch.linspace(-2, 2, 9, dtype=torch.float64)
    assert torch.equal(Tanh().prox(v, 0.0), v)
    with pytest.raises(IncompatibleError, match="not convex"):
        Tanh().prox(v, -1.0)
