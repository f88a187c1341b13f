"""A normalisation that bends large means: said where it decides the result, and nowhere else."""

import warnings

import pytest
import torch

import unspool as us
from unspool.denoise import BentMeanWarning, denoise
from unspool.denoise.constant import bent_mean
from unspool.estimator import GraphDenoiser

PLAIN = {"normalise": us.Normalisation.NONE, "loops": 0.0}


def signal(mean):
    return mean + torch.randn(20, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_the_measure_is_its_formula():
    graph, x = us.graph.path(20).to(torch.float64), signal(500.0)
    bend = torch.ones(20, dtype=torch.float64) - graph.to_dense().sum(1)
    wanted = (x.mean(0).abs() * bend.square().mean().sqrt() / x.std(0, correction=0)).max()
    assert bent_mean(x, graph) == pytest.approx(float(wanted), rel=1e-9)
    assert bent_mean(x, us.graph.path(20, **PLAIN).to(torch.float64)) == 0
    assert bent_mean(x, us.graph.ring(20).to(torch.float64)) == 0  # all degrees are equal


def test_gaps_do_not_count():
    graph, x = us.graph.path(20).to(torch.float64), signal(500.0)
    held = bent_mean(x[:, :1], graph)
    x[3, 1] = float("nan")
    x[:, 1] = torch.where(x[:, 1].isnan(), x[:, 1], x[:, 1] - 500.0)
    assert bent_mean(x, graph) == pytest.approx(held)


@pytest.mark.parametrize(("mean", "how", "warned"), [(500.0, {}, True), (0.0, {}, False), (500.0, PLAIN, False)])
def test_who_is_warned(mean, how, warned):
    graph, x = us.graph.path(20, **how).to(torch.float64), signal(mean)
    for run in (lambda: denoise(x, graph, 0.3), lambda: GraphDenoiser(0.3).fit(x.numpy(), graph=graph)):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            run()
        assert [one.category for one in said] == ([BentMeanWarning] if warned else [])
        assert all(one.filename == __file__ for one in said)  # at the line of the caller
