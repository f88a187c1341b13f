"""GraphML: every part of the standard is honoured, or refused by name."""

import numpy as np
import pytest

from unspool import datasets

NODES = '<node id="a"/><node id="b"/><node id="c"/>'
EDGES = '<edge source="a" target="b"/><edge source="b" target="c"/>'
WEIGHT = '<key id="w" for="edge" attr.name="weight" attr.type="double"/>'


def read(place, body=NODES + EDGES, head="", after="", default="undirected", **how):
    text = f'<graphml>{head}<graph edgedefault="{default}">{body}</graph>{after}</graphml>'
    (place / "g.graphml").write_text(text)
    return datasets.from_files(place / "g.graphml", **how)


def weighted(text, name="w"):
    return f'{NODES}<edge source="a" target="b"><data key="{name}">{text}</data></edge><edge source="b" target="c"/>'


def dense(data):
    return data.graph.to_dense().numpy()


@pytest.mark.parametrize("default", ["5", "0.25"])
def test_a_default_weight_counts(tmp_path, default):
    head = WEIGHT.replace("/>", f"><default>{default}</default></key>")
    body = NODES + '<edge source="a" target="b"/><edge source="b" target="c"><data key="w">1</data></edge>'
    written = body.replace('"b"/><edge', f'"b"><data key="w">{default}</data></edge><edge')
    assert written != body
    assert np.array_equal(dense(read(tmp_path, body, head)), dense(read(tmp_path, written, WEIGHT)))


def test_a_default_of_a_node_counts(tmp_path):
    head = '<key id="f" for="node" attr.name="f"><default>7</default></key><key id="g" for="node" attr.name="g"><default>red</default></key>'
    body = NODES.replace('"a"/>', '"a"><data key="f">2</data><data key="g">blue</data></node>') + EDGES
    data = read(
        tmp_path, body, head, feature_columns=["f"], label_column="g", split=datasets.Split([0], [1], [2], nodes=3)
    )
    assert data.features.tolist() == [[2], [7], [7]]
    assert [data.classes[k] for k in data.labels] == ["blue", "red", "red"]


def test_keys_of_nodes_and_edges_may_share_a_name(tmp_path):
    """A default of the nodes' weight is not one of the edges'."""
    head = WEIGHT + '<key id="v" for="node" attr.name="weight"><default>9</default></key>'
    data = read(tmp_path, weighted("2"), head, feature_columns=["weight"])
    assert data.features.tolist() == [[9]] * 3
    assert np.array_equal(dense(data), dense(read(tmp_path, weighted("2"), WEIGHT)))


@pytest.mark.parametrize("text", ["1_0", "٣", "0x1F", ""])
def test_numbers_are_those_of_tables(tmp_path, text):
    with pytest.raises(ValueError, match="edge 0: the weight"):
        read(tmp_path, weighted(text), WEIGHT)
    body = "".join(f'<node id="{n}"><data key="f">{text}</data></node>' for n in "abc") + EDGES
    with pytest.raises(ValueError, match="attribute 'f' of node 'a'"):
        read(tmp_path, body, '<key id="f" for="node" attr.name="f"/>', feature_columns=["f"])


REFUSED = {
    "hyperedge": {"body": NODES + EDGES + '<hyperedge><endpoint node="a"/><endpoint node="c"/></hyperedge>'},
    "nested graph": {"body": NODES.replace('"a"/>', '"a"><graph><node id="d"/></graph></node>') + EDGES},
    "nested graph in an edge": {"body": NODES + '<edge source="a" target="b"><graph/></edge>'},
    "port": {"body": NODES.replace('"a"/>', '"a"><port name="n"/></node>') + EDGES},
    "port of an edge": {"body": NODES + '<edge source="a" target="b" sourceport="n"/>'},
    "second graph": {"after": '<graph edgedefault="undirected"><node id="d"/></graph>'},
    "two keys": {"body": weighted('3</data><data key="v">4'), "head": WEIGHT + WEIGHT.replace('"w"', '"v"')},
    "directed edge": {"body": NODES + '<edge source="a" target="b" directed="true"/>'},
    "undirected edge": {"body": NODES + '<edge source="a" target="b" directed="false"/>', "default": "directed"},
    "two data": {"body": weighted('3</data><data key="w">4'), "head": WEIGHT},
    "locator": {"body": NODES.replace('"a"/>', '"a"><locator href="x"/></node>') + EDGES},
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_read_is_refused(tmp_path, what):
    with pytest.raises(ValueError, match=r"^g\.graphml") as caught:
        read(tmp_path, **REFUSED[what])
    assert what.removeprefix("un").split()[0] in str(caught.value)


def test_two_keys_of_one_name_are_read_where_no_edge_has_both(tmp_path):
    """networkx writes one for whole numbers and one for fractions."""
    body = weighted("3").replace('target="c"/>', 'target="c"><data key="v">0.5</data></edge>')
    two = read(tmp_path, body, WEIGHT + WEIGHT.replace('"w"', '"v"'))
    assert np.array_equal(dense(two), dense(read(tmp_path, body.replace('key="v"', 'key="w"'), WEIGHT)))


def test_flags_that_agree_are_read(tmp_path):
    body = NODES + '<edge source="a" target="b" directed="false"/><edge source="b" target="c"/>'
    assert np.array_equal(dense(read(tmp_path, body)), dense(read(tmp_path)))
