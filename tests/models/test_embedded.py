"""Every model on the embedded citation graph with its real features, against the plain dense formulas."""

import pytest
import torch

from reference.cases import close, doubles
from reference.models import REFERENCES
from unspool import datasets, models

pytestmark = pytest.mark.slow


SMALL = {"hidden": 8, "depth": 2}


@pytest.fixture(scope="module")
def place():
    data = datasets.load("citeseer")
    graph = data.graph.to(torch.float64)
    assert int((graph.degree == 1).sum()) == 48  # isolated nodes have only their self-loop
    return data.features.to(torch.float64), graph, graph.to_dense()


@pytest.mark.parametrize("kind", models.MODELS, ids=lambda m: m.__name__)
def test_equals_its_reference(kind, place):
    features, graph, a = place
    torch.manual_seed(0)
    with doubles():
        wanted = {"SGC": {"depth": 2}, "PPNP": {"hidden": 8}, "MLP": {"hidden": 8}}.get(kind.__name__, SMALL)
        model = kind(features.shape[1], 6, **wanted).eval()
    assert close(model(features, graph), REFERENCES[kind.__name__](model, a, features.to_dense()))
