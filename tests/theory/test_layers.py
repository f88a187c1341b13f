"""What K layers can be: the certificates hold, and each fails once its claim is broken."""

from dataclasses import replace

import pytest
import torch

from unspool.errors import IncompatibleError
from unspool.theory import CLAIMS, Verdict, layers, propositions
from unspool.theory.setting import graph, normal

BY_TEST = {claim.test.__name__: claim for claim in layers.CLAIMS}


@pytest.mark.parametrize("claim", layers.CLAIMS, ids=lambda claim: claim.test.__name__)
def test_registered(claim):
    assert claim in CLAIMS


def spoilt(hops, **how):
    """A reading with one wrong number in its first layer."""
    found = layers_read(hops, **how)
    first = found.layers[0]
    return replace(found, layers=(replace(first, smoothness=first.smoothness + 1e-6), *found.layers[1:]))


layers_read = layers.read_back_hops


@pytest.mark.parametrize("name", ["_theorem", "_matrices", "_factor", "_every_filter"])
def test_a_wrong_layer_is_seen(name, monkeypatch):
    monkeypatch.setattr(layers, "read_back_hops", spoilt)
    assert BY_TEST[name].certify(trials=1).verdict is Verdict.FAILS


def test_a_reading_with_a_layer_too_many_is_seen(monkeypatch):
    idle = layers_read(torch.tensor([1.0, 0.0], dtype=torch.float64)).layers

    def longer(hops, **how):
        found = layers_read(hops, **how)
        return replace(found, layers=(*idle, *found.layers))

    monkeypatch.setattr(layers, "read_back_hops", longer)
    assert not BY_TEST["_theorem"].certify(trials=1).as_stated


def test_the_theorem_fails_where_some_filter_cannot_be_read(monkeypatch):
    def short_of_it(hops, **how):
        return layers_read(hops.abs() / hops.abs().sum(), **how)  # only γ ≥ 0, say

    monkeypatch.setattr(layers, "read_back_hops", short_of_it)
    assert not BY_TEST["_theorem"].certify(trials=2).as_stated


def test_the_condition_on_matrices_goes_when_its_counter_example_does(monkeypatch):
    monkeypatch.setattr(
        layers, "one_and_square", lambda a: torch.diag(torch.tensor([1 + a, 1 + a + a * a], dtype=torch.float64))
    )
    assert not BY_TEST["_matrices"].certify(trials=1).as_stated


def test_a_high_pass_that_is_read_after_all_is_seen(monkeypatch):
    def willing(hops, **how):
        try:
            return layers_read(hops, **how)
        except IncompatibleError:
            return layers_read(torch.tensor([0.5, 0.5], dtype=torch.float64))

    monkeypatch.setattr(layers, "read_back_hops", willing)
    assert not BY_TEST["_factor"].certify(trials=1).as_stated


def test_the_printed_form_reaches_what_has_no_partial_sum_of_one(monkeypatch):
    monkeypatch.setattr(layers, "BEYOND_THE_PRINTED", (0.5, 1.5, -1.0))
    assert not BY_TEST["_printed_form"].certify(trials=1).as_stated


@pytest.mark.parametrize(
    "layer", [(0.4, 0.5, 0.5), (0.7, 0.5, 0.5), (0.9, -0.5, 1.0)], ids=["small step", "beyond 2/L", "negative weight"]
)
def test_the_sign_of_gamma_is_decided_by_the_example(layer, monkeypatch):
    monkeypatch.setattr(layers, "CONVEX", layer)
    assert not BY_TEST["_negative"].certify(trials=1).as_stated


def test_without_symmetric_layers_the_twins_are_gone(monkeypatch):
    def free(self, *, symmetric):
        return layers_read(self.hops())

    monkeypatch.setattr("unspool.models.ugdgnn.MixedHops.read_back", free, raising=True)
    assert not BY_TEST["_symmetric_twins"].certify(trials=1).as_stated


@pytest.mark.parametrize("wrong", ["alpha", "beta"])
def test_the_layers_of_the_propositions_are_their_own(wrong, monkeypatch):
    whole = propositions._printed_layers

    def off(hops):
        return [(a * (1 + 1e-6 * (wrong == "alpha")), b * (1 + 1e-6 * (wrong == "beta"))) for a, b in whole(hops)]

    monkeypatch.setattr(propositions, "_printed_layers", off)
    for name in ("Proposition 5, JKNet", "Proposition 6, GPRGNN"):
        (claim,) = (c for c in propositions.CLAIMS if c.name == name)
        assert not claim.certify(trials=1).as_stated


def test_replaying_is_eq_5():
    random = torch.Generator().manual_seed(0)
    g = graph(random)
    x, hops = normal(random, g.nodes, 3), normal(random, 4, 3, 3)
    a = g.to_dense()
    exact = sum(torch.linalg.matrix_power(a, k) @ x @ c for k, c in enumerate(hops))
    assert torch.allclose(layers.replay(layers_read(hops), x, g), exact, atol=1e-9)
