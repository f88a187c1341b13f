"""Certificates of later models: they hold, and each fails when what it is about is changed."""

import sys

import pytest

import unspool as us
from unspool.theory import CLAIMS, later_edges, later_filters, later_labels

pytestmark = pytest.mark.long

LATER = later_edges.CLAIMS + later_filters.CLAIMS + later_labels.CLAIMS

ONES = us.Fidelity(1.0)


def wrong_score(self, x, graph):
    return right_score(self, x, graph) * (1 + 0.1 * x[..., graph.incidence().forward.col.long()[::2], 0].tanh())


right_score = us.nn.EdgeScore.forward
elastic, condat_vu, p_layer = later_edges.elastic, later_edges.condat_vu, later_edges.p_layer
twirls_layer, trust, energy = later_edges.twirls_layer, later_edges.trust, later_filters.graff_energy
low_layer, high_layer, high_minimiser = later_filters.low_layer, later_filters.high_layer, later_filters.high_minimiser
hop_mean, side_by_side, filtered = later_filters.hop_mean, later_filters.side_by_side, later_filters.filtered
fair_slope, labels, correct = later_labels.fair_slope, later_labels.propagate_labels, later_labels.correct

#: What is put in the place of a part of a claim so that it is not true any more.
BROKEN = {
    "ElasticGNN": ("elastic", lambda a, b, x, l1, *rest: elastic(a, b, x, 1.1 * l1, *rest)),
    "ElasticGNN, steps": ("EdgeSparse", lambda weight: us.EdgeSparse(2 * weight)),
    "ElasticGNN, Condat–Vũ": ("condat_vu", lambda gamma, beta, *rest: condat_vu(gamma / 2, beta / 8, *rest)),
    "p-Laplacian": ("p_layer", lambda b, h, x, p, *rest: p_layer(b, h, x, p + 0.1, *rest)),
    "TWIRLS": ("twirls_layer", lambda a, h, x, weight, share, rho: twirls_layer(a, h, x, weight, 0.9 * share, rho)),
    "TrustGNN": ("trust", lambda features, scale: trust(features, 1.2 * scale)),
    "TWIRLS, majoriser": ("Log", lambda scale: us.Power(3.0)),
    "TWIRLS, descent": ("Jacobi", lambda step: us.Jacobi(step=2.5 * step)),
    "TWIRLS, influence": ("Log", lambda scale: us.Power(2.0)),
    "GNN-LF": ("low_layer", lambda a, h, x, mu, *rest: low_layer(a, h, x, mu - 0.1, *rest)),
    "GNN-LF, convexity": (
        "FilteredFidelity",
        lambda w, **how: us.FilteredFidelity(w, filter=(1.0, how["filter"][1] - 0.3)),
    ),
    "GNN-HF": ("high_layer", lambda a, h, x, beta, *rest: high_layer(a, h, x, beta + 0.1, *rest)),
    "GNN-HF, minimiser": ("high_minimiser", lambda a, x, beta, alpha: high_minimiser(a, x, beta + 0.1, alpha)),
    "GRAFF": ("graff_energy", lambda a, h, x, omega, w, source: energy(a, h, x, omega, w, 0 * source)),
    "GRAND, uniform hops": ("hop_mean", lambda a, x, depth: hop_mean(a, x, depth + 1)),
    "SIGN": ("side_by_side", lambda a, x, weights: side_by_side(a, x, weights[::-1])),
    "Graph first": ("filtered", lambda a, x, hops: filtered(a, x, 1.1 * hops)),
    "Graph first, UGDGNN": ("filtered", lambda a, x, hops: filtered(a, x, hops.flip(0))),
    "SignedGNN": (us.nn.EdgeScore, "forward", wrong_score),
    "SignedGNN, minimiser": ("EdgeSmoothness", lambda w: us.EdgeSmoothness(w.abs())),
    "FairGNN": ("fair_slope", lambda h, between, u: 2 * fair_slope(h, between, u)),
    "Label propagation": ("propagate_labels", lambda *told, weight, **how: labels(*told, weight=2 * weight, **how)),
    "Missing entries": ("NodeFidelity", lambda seen, weight: ONES * weight),
    "Correct and smooth": ("correct", lambda *told, scale, **how: correct(*told, scale=2 * scale, **how)),
}


@pytest.mark.parametrize("claim", LATER, ids=lambda claim: claim.name)
def test_the_claims_are_certified_and_registered(claim):
    assert claim in CLAIMS
    assert claim.certify(seed=3, trials=1).as_stated


@pytest.mark.parametrize("claim", LATER, ids=lambda claim: claim.name)
def test_each_can_fail(claim, monkeypatch):
    *place, what = BROKEN[claim.name]
    place = (sys.modules[claim.test.__module__], *place) if len(place) == 1 else place
    monkeypatch.setattr(*place, what)
    assert not claim.certify(trials=1).as_stated


def test_there_is_one_for_every_later_model():
    shown = {claim.model for claim in LATER}
    assert shown >= {kind.__name__ for kind in us.models.MODELS} - {kind.__name__ for kind in us.models.PAPER_MODELS}
    assert set(BROKEN) == {claim.name for claim in LATER}
