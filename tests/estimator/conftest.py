"""A small data set to classify, and one to denoise."""

import numpy as np
import pytest

import unspool as us
from unspool import datasets


@pytest.fixture(scope="session")
def data():
    return datasets.contextual_sbm(nodes=90, classes=3, features=8, signal=2.0, seed=1)


@pytest.fixture
def x(data):
    return data.features.numpy()


@pytest.fixture
def partly(data):
    """Labels with every third node unlabelled."""
    y = data.labels.numpy().copy()
    y[::3] = -1
    return y


@pytest.fixture(scope="session")
def sensors():
    """A sensor graph, a smooth signal on it, and a generator of noise."""
    graph, place = us.graph.sensor(400, seed=3)
    place = place.double().numpy()
    return graph, np.sin(6 * place[:, 0]) + np.cos(5 * place[:, 1])
