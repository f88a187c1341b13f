"""One rule for the direction of edges at every door: both ways unless the caller says ``directed=True``, and never in silence."""

import warnings
from types import SimpleNamespace

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch

import unspool as us
from unspool import datasets, models
from unspool.graph import EdgeDirectionWarning
from unspool.graph.edges import listed_once, unsaid_of
from unspool.graph.merge import merged

NODES = 8
#: Each edge once, the larger end first now and then.
ONE_WAY = np.array([[0, 1, 2, 3, 4, 5, 7, 0], [1, 2, 3, 4, 5, 6, 6, 7]])
WEIGHTS = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0, 1.5, 2.0])
BOTH_WAYS = np.concatenate([ONE_WAY, ONE_WAY[::-1]], axis=1)
LABELS = np.arange(NODES) % 2
FEATURES = torch.arange(NODES * 3, dtype=torch.float32).reshape(NODES, 3) / 10


def matrix(index, weights):
    """W with (W x)ᵢ = Σⱼ Wᵢⱼ xⱼ: the edge (s, t) is the entry (t, s)."""
    made = np.zeros((NODES, NODES))
    made[index[1], index[0]] = weights
    return made


def network(index, weights):
    made = networkx.DiGraph()
    made.add_nodes_from(range(NODES))
    made.add_weighted_edges_from(zip(*index.tolist(), weights.tolist(), strict=True))
    return made


def pyg(index, weights):
    return SimpleNamespace(
        edge_index=torch.as_tensor(index), edge_weight=torch.as_tensor(weights), num_nodes=NODES, x=FEATURES, y=None
    )


def from_files(folder, index, weights, **how):
    rows = [f"n{s},n{t},{w}" for s, t, w in zip(*index.tolist(), weights, strict=True)]
    (folder / "e.csv").write_text("\n".join(["source,target,weight", *rows]) + "\n")
    table = ["id,x,team", *(f"n{i},{i}.5,{'ab'[i % 2]}" for i in range(NODES))]
    (folder / "x.csv").write_text("\n".join(table) + "\n")
    return datasets.from_files(folder / "e.csv", folder / "x.csv", label_column="team", **how).graph


def fitted(make, index, weights, **how):
    """The graph that an estimator trains on, from a matrix with weights."""
    return make(**how).fit(FEATURES, LABELS, graph=scipy.sparse.csr_array(matrix(index, weights))).graph_


def classifier(**how):
    from unspool.estimator import NodeClassifier

    return NodeClassifier(models.MLP, epochs=1, **how)


def regressor(**how):
    from unspool.estimator import NodeRegressor

    return NodeRegressor(models.MLP, epochs=1, **how)


DOORS = {
    "Graph.from_edges": lambda _, i, w, **how: us.Graph.from_edges(i, NODES, w, **how),
    "Graph.from_pyg": lambda _, i, w, **how: us.Graph.from_pyg(pyg(i, w), **how),
    "Graph.from_scipy": lambda _, i, w, **how: us.Graph.from_scipy(scipy.sparse.csr_array(matrix(i, w)), **how),
    "Graph.from_dense": lambda _, i, w, **how: us.Graph.from_dense(matrix(i, w), **how),
    "Graph.from_networkx": lambda _, i, w, **how: us.Graph.from_networkx(network(i, w), **how),
    "datasets.from_tensors": lambda _, i, w, **how: datasets.from_tensors(i, FEATURES, edge_weight=w, **how).graph,
    "datasets.from_pyg": lambda _, i, w, **how: datasets.from_pyg(pyg(i, w), **how).graph,
    "datasets.from_scipy": lambda _, i, w, **how: datasets.from_scipy(scipy.sparse.csr_array(matrix(i, w)), **how).graph,
    "datasets.from_networkx": lambda _, i, w, **how: datasets.from_networkx(network(i, w), **how).graph,
    "datasets.from_files": from_files,
    "NodeClassifier": lambda _, i, w, **how: fitted(classifier, i, w, **how),
    "NodeRegressor": lambda _, i, w, **how: fitted(regressor, i, w, **how),
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
def test_an_edge_runs_both_ways_at_every_door_and_where_that_decides_something_it_is_said(door, tmp_path):
    make = DOORS[door]
    expected = us.Graph.from_edges(BOTH_WAYS, NODES, np.tile(WEIGHTS, 2))
    with pytest.warns(EdgeDirectionWarning, match="8 edges"):
        unsaid = make(tmp_path, ONE_WAY, WEIGHTS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # who has said it is not told again, and lists with both directions need no word
        said = make(tmp_path, ONE_WAY, WEIGHTS, directed=False)
        whole = make(tmp_path, BOTH_WAYS, np.tile(WEIGHTS, 2))
    for graph in (unsaid, said, whole):
        assert graph.undirected
        assert torch.allclose(graph.to_dense(), expected.to_dense())


@pytest.mark.parametrize("door", DOORS)
def test_directed_is_asked_for_in_one_word_at_every_door(door, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = DOORS[door](tmp_path, ONE_WAY, WEIGHTS, directed=True)
    assert not kept.undirected
    expected = us.Graph.from_edges(ONE_WAY, NODES, WEIGHTS, directed=True)
    assert torch.allclose(kept.to_dense(), expected.to_dense())
    assert torch.equal(kept.to_dense() > 0, torch.as_tensor(matrix(ONE_WAY, WEIGHTS) > 0) | torch.eye(NODES).bool())


@pytest.mark.parametrize("door", DOORS)
def test_two_directions_of_different_weight_are_said_too(door, tmp_path):
    weights = np.concatenate([WEIGHTS, WEIGHTS * 2])
    with pytest.warns(EdgeDirectionWarning, match="larger"):
        made = DOORS[door](tmp_path, BOTH_WAYS, weights)
    assert torch.allclose(made.to_dense(), us.Graph.from_edges(ONE_WAY, NODES, 2 * WEIGHTS, directed=False).to_dense())


def test_a_model_called_with_an_edge_list_follows_the_same_rule():
    model = models.APPNP(3, 2).eval()
    with pytest.warns(EdgeDirectionWarning):
        found = model(FEATURES, torch.as_tensor(ONE_WAY))
    assert torch.allclose(found, model(FEATURES, torch.as_tensor(BOTH_WAYS)))


def test_the_denoiser_follows_the_same_rule():
    from unspool.estimator import GraphDenoiser

    signal = np.linspace(0.0, 1.0, NODES)
    with pytest.warns(EdgeDirectionWarning):
        found = GraphDenoiser(0.3).fit_transform(signal, graph=ONE_WAY)
    assert np.allclose(found, GraphDenoiser(0.3).fit_transform(signal, graph=BOTH_WAYS))


@pytest.mark.parametrize("directed", [None, True, False])
def test_a_networkx_graph_that_is_undirected_stays_so_whatever_is_said(directed):
    undirected = network(ONE_WAY, WEIGHTS).to_undirected()
    for made in (
        us.Graph.from_networkx(undirected, directed=directed),
        datasets.from_networkx(undirected, directed=directed).graph,
    ):
        assert made.undirected
        assert made.edges == ONE_WAY.shape[1]


@pytest.mark.parametrize("kind", ["directed", "undirected"])
def test_graphml_says_itself_whether_it_is_undirected(tmp_path, kind):
    made = network(ONE_WAY, WEIGHTS)
    networkx.write_graphml(made if kind == "directed" else made.to_undirected(), tmp_path / "g.graphml")
    for directed in (None, True, False):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            graph = datasets.from_files(tmp_path / "g.graphml", directed=directed).graph
        assert graph.undirected is not (kind == "directed" and directed is True)
        assert [w.category for w in told] == [EdgeDirectionWarning] * (kind == "directed" and directed is None)


def test_a_directed_data_set_is_another_data_set_and_says_so():
    made = {
        directed: datasets.from_tensors(ONE_WAY, FEATURES, LABELS.tolist(), directed=directed) for directed in (True, False)
    }  # fmt: skip
    assert made[True].hash != made[False].hash
    assert made[True].notes != made[False].notes
    for change in (lambda d: d.row_normalised(), lambda d: d.to("cpu"), lambda d: d.largest_component()):
        assert change(made[True]).directed
        assert not change(made[True]).graph.undirected


def test_links_without_direction_are_not_learnt_from_a_directed_graph():
    from unspool.train import link_task

    with pytest.raises(ValueError, match="directed"):
        link_task(datasets.from_tensors(ONE_WAY, FEATURES, directed=True))


def test_weights_that_differ_by_rounding_alone_are_one_weight():
    close = np.concatenate([WEIGHTS, WEIGHTS * (1 + 1e-12)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert us.Graph.from_edges(BOTH_WAYS, NODES, close).undirected


@pytest.mark.parametrize("seed", range(20))
def test_settling_leaves_symmetric_lists_as_they_are_and_makes_others_symmetric(seed):
    random = np.random.default_rng(seed)
    index = torch.as_tensor(random.integers(0, NODES, (2, int(random.integers(1, 30)))))
    weight = torch.as_tensor(random.integers(1, 4, index.shape[1]).astype(float))
    dense = torch.zeros(NODES, NODES, dtype=torch.float64).index_put((index[1], index[0]), weight, accumulate=True)
    once = listed_once(index, weight, NODES)
    assert torch.equal(torch.zeros_like(dense).index_put((once.edges[1], once.edges[0]), once.weight), dense)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some edges are listed more than once
        made = us.Graph.from_edges(index, NODES, weight, normalise=us.Normalisation.NONE, loops=0, directed=False)
    assert torch.equal(made.to(torch.float64).to_dense(), torch.maximum(dense, dense.T))
    assert (unsaid_of(merged(index, weight, NODES, directed=False)) is None) is torch.equal(dense, dense.T)
