"""Dual steps in one pass: the formula's values and derivatives under every transform, piece by piece, and when the op is taken."""

import importlib.util

import pytest
import torch
from torch.func import grad, vmap

import unspool as us
from ops.dual_cases import cases, graph_of, op_of
from ops.op_laws import run_interpreted, second_derivatives, seeded, value_and_gradients, weighed
from unspool.ops import dual_step
from unspool.ops.dual_step import Cut
from unspool.ops.kernels import dual_cpu

CASES = {name: case for name, *case in cases()}


@pytest.fixture(params=[1, 1 << 30], ids=["pieces", "whole"])
def piece(request, monkeypatch):
    """Pieces of the least height, and all rows at once."""
    monkeypatch.setattr(dual_cpu, "_rows", lambda z: min(4, z.shape[0]) if request.param == 1 else z.shape[0])


def leaves(inputs):
    return [t.clone().requires_grad_() for t in inputs]


def close(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, atol=1e-12, rtol=1e-11)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("derivatives", [value_and_gradients, second_derivatives])
def test_the_op_is_its_formula(name, derivatives, piece):
    graph, cut, inputs = CASES[name]
    found, wanted = (derivatives(op_of(graph, cut, plain), *leaves(inputs)) for plain in (False, True))
    close(found, wanted)


@pytest.mark.parametrize("cut", Cut)
@pytest.mark.parametrize("dims", [(0, 0, 0, 0), (1, -1, 0, None), (None, 0, None, 0), (0, None, None, None)])
def test_trials_are_what_they_are_alone(cut, dims):
    graph = graph_of(6)
    inputs = next(given for g, c, given in CASES.values() if c is cut)
    many = [
        t if d is None else (t + 0.3 * seeded(3, *t.shape, seed=i)).movedim(0, d)
        for i, (t, d) in enumerate(zip(inputs, dims, strict=True))
    ]
    ops = op_of(graph, cut), op_of(graph, cut, plain=True)
    each = grad(lambda *t: weighed(ops[0](*t).sin()), argnums=(0, 1, 2, 3))
    same = grad(lambda *t: weighed(ops[1](*t).sin()), argnums=(0, 1, 2, 3))
    close([vmap(ops[0], dims)(*many)], [vmap(ops[1], dims)(*many)])
    close(vmap(each, dims)(*many), vmap(same, dims)(*many))
    found, wanted = (value_and_gradients(vmap(op, dims), *leaves(many)) for op in ops)
    close(found, wanted)


def test_gradients_of_one_result_alone():
    graph, cut, inputs = CASES["rows 6 3"]
    for which in (0, 1):
        slopes = []
        for run in (dual_step.dual_step, dual_step.formula):
            at = leaves(inputs)
            slopes.append(torch.autograd.grad(weighed(run(graph.incidence(), *at, cut)[which]), at))
        close(*slopes)


@pytest.mark.parametrize("cut", Cut)
def test_a_radius_of_zero_and_rows_of_zeros(cut):
    graph, _, (z, ahead, size, _) = CASES["rows 6 3"]
    none = 0.0 if cut is Cut.ROWS else 1e-9  # torch.clamp has no gradient for bounds that are equal
    for state, signal, radius in ((z, ahead, none), (z * 0.0, ahead, none), (z * 0.0, ahead * 0.0, 0.5)):
        inputs = [state, signal, size, torch.tensor(radius, dtype=torch.float64)]
        found, wanted = (value_and_gradients(op_of(graph, cut, plain), *leaves(inputs)) for plain in (False, True))
        assert all(bool(one.isfinite().all()) for one in found)
        close(found, wanted)


def test_leading_dimensions_are_trials():
    graph, cut, (z, ahead, size, radius) = CASES["rows 6 3"]
    many = torch.stack([z, 2 * z])[:, None], torch.stack([ahead, 3 * ahead])[:, None]
    found = dual_step.dual_step(graph.incidence(), *many, size, radius, cut)
    for i in range(2):
        close(
            [one[i, 0] for one in found],
            dual_step.formula(graph.incidence(), many[0][i, 0], many[1][i, 0], size, radius, cut),
        )


def test_what_the_op_does_not_take_goes_by_the_formula(monkeypatch):
    def refuse(*args):
        raise AssertionError("the op was taken")

    monkeypatch.setattr(dual_step._DualStep, "apply", refuse)
    graph, cut, (z, ahead, size, radius) = CASES["rows 6 3"]
    b = graph.incidence()
    by_row = radius + 0.1 * torch.arange(z.shape[0], dtype=torch.float64)[:, None]
    wanted = dual_step.formula(b, z, ahead, size, by_row, cut)
    assert all(map(torch.equal, dual_step.dual_step(b, z, ahead, size, by_row, cut), wanted))
    narrow = dual_step.dual_step(
        graph.to(torch.float32).incidence(), z[:, :0].float(), ahead[:, :0].float(), 0.7, 0.9, cut
    )
    assert narrow[0].shape == (graph.edges, 0)
    with torch.autocast("cpu"):
        dual_step.dual_step(b, z, ahead, size, radius, cut)
    with pytest.raises(AssertionError, match="the op was taken"):
        dual_step.dual_step(b, z, ahead, size, radius, cut)


def test_a_subclass_with_a_prox_of_its_own_is_asked():
    class Halved(us.EdgeSparse):
        def dual_prox(self, z, step, given):
            return 0.5 * super().dual_prox(z, step, given)

    graph = graph_of(6)
    given = us.objective.Given(seeded(6, 2), graph, {})
    z = seeded(graph.edges, 2)
    own, plain = (term.dual_step(z, 0.3, given.x, given) for term in (Halved(0.4), us.EdgeSparse(0.4)))
    close(own, [0.5 * one for one in plain])


@pytest.mark.long
@pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or torch.cuda.is_available(), reason="needs Triton's interpreter"
)
def test_kernels_keep_the_laws_of_ops():
    run_interpreted("interpreted_dual.py")
