"""The explorer's file: whole, small, alone, and safe with other people's words."""

import json
import re

import numpy as np
import pytest
import torch

import unspool as us
from unspool.explore.layout import place_nodes


@pytest.fixture(scope="module")
def text():
    return us.explore.page()


def graphs_of(text):
    return json.loads(re.search(r'id="graphs">(.*?)</script>', text, flags=re.S).group(1))


def test_the_page_is_small_and_asks_for_nothing(text):
    assert len(text.encode()) < 1_000_000
    assert "{{" not in text
    assert not re.search(r"(src|href)=|https?://|fetch\(|import\(", text)


def test_the_graphs_of_the_page_are_those_of_its_code(text):
    for held in graphs_of(text):
        scope = {"us": us}
        exec(held["code"], scope)
        graph = scope["graph"].to(torch.float64)
        dense = torch.zeros(graph.nodes, graph.nodes, dtype=torch.float64)
        for i, j, a in held["edges"]:
            dense[i, j] = dense[j, i] = a
        dense += torch.diag(torch.tensor(held["own"], dtype=torch.float64))
        assert torch.allclose(dense, graph.to_dense(), atol=1e-7), held["name"]
        places = np.array(held["positions"])
        assert places.shape == (graph.nodes, 2)
        assert places.min() >= 0
        assert places.max() <= 1


def test_words_of_others_do_not_become_markup():
    text = us.explore.page(us.graph.path(4), title="</script><script>alert(1)</script>")
    assert "</script><script>alert" not in text
    assert graphs_of(text)[0]["title"] == "</script><script>alert(1)</script>"


@pytest.mark.parametrize(
    ("graph", "how", "argument"),
    [
        (us.graph.path(4), {"signal": [1.0, 2.0]}, "signal"),
        (us.graph.path(4), {"signal": [1.0, 2.0, float("nan"), 0.0]}, "signal"),
        (us.graph.path(4), {"positions": [[0, 0]]}, "positions"),
        (us.graph.path(us.explore.LARGEST + 1), {}, "graph"),
        (us.graph.path(4, normalise=us.Normalisation.NONE), {}, "graph"),
        ("a graph", {}, "graph"),
    ],
)
def test_what_cannot_be_shown_is_refused(graph, how, argument):
    with pytest.raises(us.InputError) as problem:
        us.explore.page(graph, **how)
    assert problem.value.argument == argument


def test_a_file_that_is_not_a_page_is_refused(tmp_path):
    with pytest.raises(us.InputError):
        us.explore.write_page(tmp_path / "explorer.txt")
    assert not list(tmp_path.iterdir())


def test_neighbours_are_drawn_near_each_other():
    graph = us.graph.ring(24)
    places = place_nodes(graph)
    source, target = us.graph.edge_list(graph).numpy()
    near = np.linalg.norm(places[source] - places[target], axis=1).mean()
    every = np.linalg.norm(places[:, None] - places, axis=-1).mean()
    assert near < every / 2
    assert (places == place_nodes(graph)).all()
