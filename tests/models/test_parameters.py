"""Parameters by role, and what the propagation keeps of them and of the nodes."""

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

import unspool as us
from reference.cases import CASES, build, converted_models, signal, trainable
from unspool import models

ROLES = {
    "SGC": {"first": {"p_pre.weight"}, "linear": {"p_pos.bias"}},
    "SGC-pos": {"linear": {"p_pos.weight", "p_pos.bias"}},
    "PPNP": {"first": {"p_pre.layers.0.weight"}, "linear": {"p_pre.layers.1.weight"}},
    "APPNP": {"first": {"p_pre.layers.0.weight"}, "linear": {"p_pre.layers.1.weight"}},
    "JKNet": {
        "first": {"p_pre.layers.0.weight", "p_pre.layers.0.bias"},
        "linear": {"p_pos.1.weight", "p_pos.1.bias"},
        "convolution": {"propagation.coefficients"},
    },
    "JKNet-max": {
        "first": {"p_pre.layers.0.weight"},
        "linear": {"p_pos.1.weight", "p_pos.1.bias"},
        "convolution": {f"propagation.weights.{i}" for i in range(3)} | {f"propagation.biases.{i}" for i in range(4)},
    },
    "GPRGNN": {
        "first": {"p_pre.layers.0.weight", "p_pre.layers.0.bias"},
        "linear": {"p_pre.layers.1.weight", "p_pre.layers.1.bias"},
        "hops": {"propagation.coefficients"},
    },
    "GCN": {
        "first": {"p_pre.layers.0.weight"},
        "convolution": {"propagation.weights.0", "propagation.biases.0", "propagation.biases.1"},
    },
    "GCNII": {
        "first": {"p_pre.layers.0.weight", "p_pre.layers.0.bias"},
        "linear": {"p_pos.1.weight", "p_pos.1.bias"},
        "convolution": {"propagation.coefficients.W"},
    },
    "AirGNN": {
        "first": {"p_pre.layers.0.weight", "p_pre.layers.0.bias"},
        "linear": {"p_pre.layers.1.weight", "p_pre.layers.1.bias"},
    },
    "DAGNN": {
        "first": {"p_pre.layers.0.weight", "p_pre.layers.0.bias"},
        "linear": {"p_pre.layers.1.weight", "p_pre.layers.1.bias"},
        "gate": {"propagation.gate.weight", "propagation.gate.bias"},
    },
    "UGDGNN": {
        "first": {"p_pre.layers.0.weight", "p_pre.layers.0.bias"},
        "linear": {"p_pre.layers.1.weight", "p_pre.layers.1.bias"},
        "hops": {"propagation.gamma", "propagation.zeta"},
        "convolution": {"propagation.weight"},
    },
    "UGDGNN-hidden-free": {
        "first": {"p_pre.layers.0.weight", "p_pre.layers.0.bias"},
        "linear": {"p_pos.1.weight", "p_pos.1.bias"},
        "hops": {"propagation.gamma", "propagation.zeta", "propagation.xi"},
        "convolution": {"propagation.weight"},
    },
    "UGDGNN-general": {
        "first": {"p_pre.layers.0.weight", "p_pre.layers.0.bias"},
        "linear": {"p_pre.layers.1.weight", "p_pre.layers.1.bias"},
        "hops": {f"propagation.coefficients.{n}" for n in ("η", "α", "β")},
        "convolution": {f"propagation.coefficients.{n}" for n in ("Tα", "Tβ")},
    },
    **{
        name: {
            "first": {"p_pre.layers.0.weight", "p_pre.layers.0.bias"},
            "linear": {"p_pre.layers.1.weight", "p_pre.layers.1.bias"},
        }
        for name in ("MLP", "ElasticGNN", "PGNN", "TWIRLS", "TrustGNN", "GNNLF", "GNNHF")
    },
    "GraphFirstGPRGNN": {
        "first": {"p_pre.weight"},
        "linear": {"p_pos.0.bias", "p_pos.3.weight", "p_pos.3.bias"},
        "hops": {"propagation.coefficients"},
    },
    "GraphFirstUGDGNN": {
        "first": {"p_pre.weight"},
        "linear": {"p_pos.0.bias", "p_pos.3.weight", "p_pos.3.bias"},
        "hops": {"propagation.gamma", "propagation.zeta"},
        "convolution": {"propagation.weight"},
    },
    "SIGN": {"first": {"p_pre.weight"}, "linear": {"p_pos.0.bias", "p_pos.3.weight", "p_pos.3.bias"}},
    "StableGNN": {"first": {"p_pre.layers.0.weight"}, "linear": {"p_pos.1.layers.0.weight"}},
    "GRAFF": {
        "first": {"p_pre.layers.0.weight", "p_pre.layers.0.bias"},
        "linear": {"p_pos.1.weight", "p_pos.1.bias"},
        "hops": {f"propagation.coefficients.{n}" for n in ("Ω", "W", "W̃")},
    },
    "FairGNN": {
        "first": {"p_pre.encode.layers.0.weight", "p_pre.encode.layers.0.bias"},
        "linear": {"p_pre.encode.layers.1.weight", "p_pre.encode.layers.1.bias"},
    },
    "SignedGNN": {
        "first": {"p_pre.layers.0.weight", "p_pre.layers.0.bias"},
        "linear": {"p_pos.1.weight", "p_pos.1.bias"},
        "hops": {f"propagation.computed.w.{n}.bias" for n in ("layer", "score")},
        "convolution": {f"propagation.computed.w.{n}.weight" for n in ("layer", "score")},
    },
}


@pytest.mark.parametrize("name", [*CASES, *converted_models()])
def test_groups_hold_every_parameter_once(name):
    model = build(name) if name in CASES else converted_models()[name]
    found = [id(p) for group in model.parameter_groups().values() for p in group]
    assert sorted(found) == sorted(id(p) for p in trainable(model))
    assert len(set(found)) == len(found)
    assert set(model.parameter_groups()) <= {"first", "linear", "convolution", "hops", "gate"}


@pytest.mark.parametrize("name", ROLES)
def test_roles(name):
    model = build(name)
    names = {id(p): n for n, p in model.named_parameters()}
    assert {role: {names[id(p)] for p in group} for role, group in model.parameter_groups().items()} == ROLES[name]


def test_every_model_has_its_roles_written_down():
    assert {CASES[name][0] for name in ROLES} == set(models.MODELS)


def test_frozen_parameters_are_in_no_group():
    model = build("GCNII")
    model.p_pos[1].bias.requires_grad_(False)
    found = [p for group in model.parameter_groups().values() for p in group]
    assert not any(p is model.p_pos[1].bias for p in found)
    assert not any(p is model.propagation.coefficients["θ"] for p in found)


@pytest.mark.parametrize("name", CASES)
def test_no_parameter_that_trains_has_a_gradient_of_rounding_alone(name):
    """Adam would make whole steps of it. Nothing at all, as of a unit that sleeps, is fine."""
    model, x = build(name).train(), signal(12)
    output = model(x, us.graph.grid(3, 4).to(torch.float64))
    wanted = torch.randn(output.shape, generator=torch.Generator().manual_seed(1), dtype=output.dtype)
    slopes = torch.autograd.grad((output - wanted).square().sum(), trainable(model))
    assert not any(0 < float(slope.abs().max()) < 1e-9 for slope in slopes)


# -- memory ------------------------------------------------------------------------------------------------------------

NODES, WIDTH = 600, 4
GRID = us.graph.grid(20, 30).to(torch.float64)


def kept(model):
    """How many signals autograd keeps for the propagation, the first one and the graph apart, and how many bytes in all."""
    x = signal(NODES, WIDTH).requires_grad_()
    csr = [t for half in (GRID.operator.forward, GRID.operator.transpose) for t in half]
    known = {t.untyped_storage().data_ptr() for t in (x, *csr, *model.parameters())}
    sizes = {}

    def pack(t):
        place = t.untyped_storage().data_ptr()
        if place not in known:
            sizes[place] = t.untyped_storage().nbytes()
        return t

    with saved_tensors_hooks(pack, lambda t: t):
        out = model.propagation(x, GRID)
    assert out.requires_grad
    return sum(size // x.nbytes for size in sizes.values()), sum(sizes.values())


CONSTANT = {
    "UGDGNN": lambda depth: models.UGDGNN(3, WIDTH, depth=depth),
    "UGDGNN-hidden": lambda depth: models.UGDGNN(3, 2, hidden=WIDTH, depth=depth, channels=models.Channels.HIDDEN),
    "UGDGNN-chebyshev": lambda depth: models.UGDGNN(3, WIDTH, depth=depth, basis=us.Basis.CHEBYSHEV),
    "UGDGNN-general": lambda depth: models.UGDGNN(3, WIDTH, depth=depth, layers=models.Layers.GENERAL),
    "GPRGNN": lambda depth: models.GPRGNN(3, WIDTH, depth=depth),
    "APPNP": lambda depth: models.APPNP(3, WIDTH, depth=depth),
    "SGC": lambda depth: models.SGC(3, WIDTH, depth=depth),
    "JKNet": lambda depth: models.JKNet(3, 2, hidden=WIDTH, depth=depth),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_linear_models_keep_nothing_per_hop(name):
    (few, _), (many, size) = kept(CONSTANT[name](4).double()), kept(CONSTANT[name](40).double())
    assert few == many == 0  # the signal itself is kept, and is not counted
    # Matrices of 4 by 4, a few for each hop; the general layers carry a polynomial from layer to layer.
    assert size <= 41 * WIDTH**2 * 8 * (80 if name == "UGDGNN-general" else 6)


@pytest.mark.parametrize("name", ["GCNII", "AirGNN", "DAGNN"])
def test_the_counter_sees_models_that_keep_their_layers(name):
    def build(depth):
        kind = getattr(models, name)
        return kind(3, WIDTH, hidden=WIDTH, depth=depth, dropout=0.0).double()

    assert kept(build(12))[0] >= kept(build(4))[0] + 8


def test_checkpointed_airgnn_keeps_less():
    stored = kept(models.AirGNN(3, WIDTH, depth=24).double())[0]
    less = kept(models.AirGNN(3, WIDTH, depth=24, adjoint=us.Checkpointed(every=6)).double())[0]
    assert less < stored / 3
