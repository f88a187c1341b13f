"""Shared by all tests: a strict torch, and small graphs to try things on."""

import re
from pathlib import Path

import pytest
import torch

import unspool as us

torch.set_num_threads(1)  # two test processes share two cores, and tiny products wait long for a second thread


#: Rooms whose tests name each edge once, as people's files do.
FILES = {"cli", "datasets", "report"}


#: The line that makes a whole file long.
LONG = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.long\b", re.MULTILINE)


def pytest_ignore_collect(collection_path, config):
    """`make quick` does not import what it leaves out: files that are long as a whole take a third of its minute to collect."""
    if "not long" in config.option.markexpr and collection_path.suffix == ".py":
        return True if LONG.search(collection_path.read_text(encoding="utf-8")) else None
    return None


def pytest_collection_modifyitems(items):
    """What is said about edges that are listed once is tested in graph/test_direction.py and cli/test_direction.py.

    Long files come first, so that two processes which take one file after another end together.
    """
    here = Path(__file__).parent
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: item.path not in long)
    for item in items:
        if item.path.is_relative_to(here) and item.path.relative_to(here).parts[0] in FILES:
            item.add_marker(pytest.mark.filterwarnings("ignore::unspool.graph.EdgeDirectionWarning"))


@pytest.fixture(autouse=True)
def _same_numbers_every_time():
    torch.manual_seed(0)
    yield
    assert torch.get_default_dtype() == torch.float32


@pytest.fixture
def random():
    return torch.Generator().manual_seed(0)


@pytest.fixture
def graph():
    """A weighted undirected graph in float64."""
    return us.testing.small_graph()


@pytest.fixture
def x(graph, random):
    return torch.randn(graph.nodes, 3, dtype=torch.float64, generator=random)
