"""The picture: what its bars show, odd names and nodes, files."""

import networkx
import pytest
import torch

import unspool as us
from reference.cases import build, graphs, signal
from unspool.explain import explain, plot

pytestmark = pytest.mark.long


GRAPHS = graphs()


def bars(axis):
    return [patch.get_width() for patch in axis.patches]


@pytest.mark.parametrize("name", ["UGDGNN", "UGDGNN-hidden", "PPNP", "GCN", "AirGNN", "MLP", "JKNet-concatenate"])
def test_bars_are_the_numbers_of_the_explanation(name):
    graph = GRAPHS["karate"][0]
    found = explain(build(name), signal(graph.nodes), graph, 33, classes=("red", "green", "blue"))
    hops, nodes, _, parts, features, _ = plot(found, top=4).axes
    if found.split.by_hop is not None:
        assert [p.get_height() for p in hops.patches] == pytest.approx(found.split.by_hop.sum(1).tolist())
    places = found.largest(4)
    if places:
        assert bars(nodes) == pytest.approx([found.parts.own, *found.split.total[places].tolist()])
        rest = found.parts.neighbours - float(found.split.total[places].sum())
        assert len(found.split.nodes) == 5 or f"others together: {rest:.3g}" in nodes.get_xlabel()
    assert bars(parts)[-1] == pytest.approx(found.score.value)
    assert sum(bars(parts)[:-1]) == pytest.approx(found.score.value, abs=1e-4)
    assert bars(features) == pytest.approx([float(found.features.shares[p]) for p in found.features.largest(4)])


@pytest.mark.parametrize("name", ["UGDGNN-hidden", "PPNP", "GCN", "MLP", "JKNet-concatenate", "DAGNN"])
@pytest.mark.parametrize("node", [0, 12])
def test_models_of_every_kind_can_be_drawn_at_ordinary_and_isolated_nodes(name, node):
    figure = plot(explain(build(name), signal(13), GRAPHS["isolated"][0], node))
    assert len(figure.axes) == 6
    assert all(axis.get_title(loc="left") for axis in figure.axes)
    figure.draw_without_rendering()


def test_one_output_hubs_and_odd_names(tmp_path):
    star = networkx.star_graph([f"a very $long$ name_{{of}} node {i}\n日本" for i in range(120)])
    graph = us.Graph.from_networkx(star).to(torch.float64)
    model = build("UGDGNN", channels=us.models.Channels.HIDDEN).eval()
    hub = explain(model, signal(120), graph, 0, classes=("a $ sign", "$x$", "c" * 200))
    figure = plot(hub, tmp_path / "hub.png", top=1000)
    assert len(figure.axes[1].patches) == 26  # itself and 25 neighbours
    assert len(max((t.get_text() for t in figure.axes[1].get_yticklabels()), key=len)) < 60
    one = explain(us.models.SGC(6, 1).double(), signal(120), graph, 3)
    plot(one, tmp_path / "one.svg")
    assert (tmp_path / "one.svg").read_bytes()[:5] == b"<?xml"


@pytest.mark.parametrize("many", [3, 13, 14, 40])
def test_names_of_distances_stand_under_their_bars(monkeypatch, many):
    rows = [("no way", 0.5), *((str(k), 0.1) for k in range(many - 1))]
    monkeypatch.setattr("unspool.explain.drawing.hop_rows", lambda found: rows)
    axis = plot(explain(us.models.SGC(6, 3).double(), signal(13), GRAPHS["isolated"][0], 0)).axes[0]
    places, names = [int(k) for k in axis.get_xticks()], [label.get_text() for label in axis.get_xticklabels()]
    assert names == [rows[k][0] for k in places]
    assert min(many, 7) <= len(names) <= 13


def test_files_are_whole_and_of_a_known_kind(tmp_path):
    found = explain(build("SGC"), signal(12), us.testing.small_graph(), 0)
    for ending, start in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
        file = tmp_path / ending / f"a.{ending}"
        plot(found, file)
        assert file.read_bytes().startswith(start)
        assert [f.name for f in file.parent.iterdir()] == [file.name]
    with pytest.raises(ValueError, match=r"written as \.png, \.svg or \.pdf"):
        plot(found, tmp_path / "a.gif")
