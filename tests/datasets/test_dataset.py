"""A data set says what it is, what was done to it, and has one hash for one content."""

import dataclasses

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch

from unspool import Graph, datasets
from unspool.datasets.features import as_features, read_features, row_normalise, sparse, take_rows, to_numpy
from unspool.datasets.fingerprint import fingerprint
from unspool.ops.features import SparseFeatures


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def matrix_of(kind, seed=0):
    x = torch.rand(12, 30, generator=seeded(seed))
    x[x < (0.95 if "sparse" in kind else 0.3)] = 0
    x[3] = 0
    if "binary" in kind:
        x = (x > 0).float()
    if "signed" in kind:
        x = x - 0.4 * (x > 0)
    if "large" in kind:
        x = 7 * x
    return x


KINDS = ["dense", "sparse", "sparse binary", "dense signed", "sparse signed", "sparse large", "dense large"]


@pytest.mark.long  # PyG takes seconds to import
@pytest.mark.parametrize("kind", KINDS)
def test_row_normalisation_is_that_of_pyg(kind):
    import torch_geometric.transforms as pyg
    from torch_geometric.data import Data

    x = matrix_of(kind)
    expected = pyg.NormalizeFeatures()(Data(x=x.clone())).x
    for form in (x, sparse(x.numpy())):
        found = row_normalise(form)
        found = found.to_dense() if isinstance(found, SparseFeatures) else found
        assert torch.allclose(found, expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_features_equal_those_made_entry_by_entry(kind):
    x = matrix_of(kind)
    fast, plain = sparse(x.numpy()), SparseFeatures.from_tensor(x)
    for name in ("rows", "order"):
        assert torch.equal(getattr(fast, name), getattr(plain, name))
    for side in ("forward", "transpose"):
        for a, b in zip(getattr(fast.operator, side), getattr(plain.operator, side), strict=True):
            assert torch.equal(a, b)
            assert a.dtype == b.dtype


def test_few_entries_are_kept_sparse():
    assert isinstance(as_features(np.eye(6)), SparseFeatures)
    assert isinstance(as_features(np.eye(4)), torch.Tensor)
    unsorted = scipy.sparse.csr_array((np.array([1.0, 0.0, 2.0]), np.array([5, 3, 1]), np.array([0, 3])), shape=(1, 20))
    assert as_features(unsorted).to_dense()[0, [1, 5]].tolist() == [2, 1]
    assert unsorted.data.tolist() == [1, 0, 2]  # what is given is not touched


@pytest.mark.parametrize("kind", KINDS)
def test_features_are_read_alike_in_every_form(kind):
    x = matrix_of(kind)
    forms = [x, x.double(), x.numpy(), x.tolist(), x.to_sparse(), x.to_sparse_csr(), scipy.sparse.coo_matrix(x.numpy())]
    forms += [SparseFeatures.from_tensor(x)]
    for form in forms:
        read = read_features(form)
        assert read.dtype == torch.float32
        dense = read.to_dense() if isinstance(read, SparseFeatures) else read
        assert torch.equal(dense, x)
    kept = np.array([4, 0, 11])
    some = take_rows(read_features(x), kept)
    assert torch.equal(
        torch.as_tensor(to_numpy(some) if isinstance(some, torch.Tensor) else to_numpy(some).toarray()), x[kept]
    )


def own(seed=0, **changes):
    nodes = 30
    index = torch.randint(nodes, (2, 60), generator=seeded(seed)).unique(dim=1)
    given = {
        "edge_index": index,
        "features": torch.randn(nodes, 4, generator=seeded(seed + 1)),
        "labels": torch.arange(nodes) % 3,
        "edge_weight": torch.rand(index.shape[1], generator=seeded(seed + 2)) + 0.5,
        "names": [f"n{i}" for i in range(nodes)],
    }
    return datasets.from_tensors(**(given | changes))


def test_hash_names_the_content():
    data = own()
    changed = [
        own(seed=1),
        own(labels=(torch.arange(30) + 1) % 3),
        own(features=own().features + 1e-6),
        own(names=[f"m{i}" for i in range(30)]),
        own(names=None),
        own(edge_weight=own().edge_weight * 2)
        if own().edge_weight.numel() == own().edge_index.shape[1]
        else own(seed=5),
        own(edge_weight=None),
        own(classes=("a", "b", "c")),
        data.row_normalised(),
    ]
    assert len({data.hash, *(other.hash for other in changed)}) == len(changed) + 1
    same = [
        own(),
        data.to("cpu"),
        data.with_split(lambda d: datasets.splits.random(d.labels, seed=9)),
        own(name="other"),
    ]
    assert {other.hash for other in same} == {data.hash}


def test_hash_does_not_depend_on_the_order_of_edges():
    index = torch.tensor([[0, 1, 2, 5], [1, 2, 3, 4]])
    mixed = index[:, [3, 0, 2, 1]]
    assert datasets.from_tensors(index, nodes=6).hash == datasets.from_tensors(mixed, nodes=6).hash


def test_fingerprint_separates_its_parts():
    a = np.arange(6)
    parts = [
        (a,),
        (a.reshape(2, 3),),
        (a.astype(float),),
        (a[:5], a[5:]),
        ([a[:5], a[5:]],),
        ("x", a),
        ("", "x"),
        ("x", ""),
        (None,),
        (0,),
    ]
    assert len({fingerprint(*part) for part in parts}) == len(parts)
    assert fingerprint(a) == fingerprint(a.astype(np.int8)) == fingerprint(np.asfortranarray(a))
    with pytest.raises(TypeError, match=r"^a float has no fingerprint"):
        fingerprint(0.5)


def test_graph_is_the_symmetric_one():
    data = own()
    expected = Graph.from_edges(data.edge_index, 30, data.edge_weight, directed=False)
    assert torch.equal(data.graph.to_dense(), expected.to_dense())
    assert data.graph.names == data.names
    assert data.graph is data.graph
    assert data.to("cpu").graph is not None


def test_largest_component_is_that_of_networkx():
    data = own(
        seed=4, edge_index=torch.tensor([[0, 1, 2, 20, 21, 22, 23], [1, 2, 0, 21, 22, 23, 24]]), edge_weight=None
    )
    part = data.largest_component()
    network = networkx.Graph(data.edge_index.T.tolist())
    kept = sorted(max(networkx.connected_components(network), key=len))
    assert part.names == tuple(f"n{i}" for i in kept)
    assert torch.equal(part.features, data.features[kept])
    assert torch.equal(part.labels, data.labels[kept])
    ends = [(part.names[a], part.names[b]) for a, b in part.edge_index.T.tolist()]
    assert ends == [(f"n{a}", f"n{b}") for a, b in data.edge_index.T.tolist() if a in kept]
    assert part.notes[-1] == "largest component: 5 of 30 nodes"
    assert part.largest_component() is part


def test_largest_component_of_citeseer_keeps_the_split_honest():
    data = datasets.load("citeseer")
    part = data.largest_component()
    assert part.nodes == 2120
    for name in ("train", "valid", "test"):
        before, after = getattr(data.split, name), getattr(part.split, name)
        old = [int(part.names[i]) for i in after]
        assert set(old) <= set(before.tolist())
    assert part.split == datasets.splits.public(part)
    assert part.largest_component() is part


def test_statistics_count_what_they_say():
    index = torch.tensor([[0, 1, 1, 2, 3, 0], [1, 0, 2, 2, 0, 1]])
    labels = torch.tensor([0, 0, 1, -1, 1, 1])
    features = torch.ones(6, 2)
    features[4] = 0
    data = datasets.from_tensors(index, features, labels, split=lambda d: datasets.Split([0], [1], [2], 6))
    count = data.statistics()
    assert (count.nodes, count.edges, count.features, count.classes) == (6, 3, 2, 2)
    assert (count.isolated, count.zero_rows) == (2, 1)
    assert count.homophily == 0.5  # 0-1 agrees, 1-2 does not, 3 has no label
    assert count.density == pytest.approx(10 / 12)


def test_data_sets_cannot_be_changed_and_print_in_short():
    data = own()
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "x"
    text = repr(data.row_normalised())
    assert text.startswith("own data: 30 nodes, ")
    assert "split random 0.6/0.2/0.2: 18 train, 6 valid, 6 test" in text
    assert text.endswith("features row-normalised")
    assert len(text) < 400


GENERATED = {
    "sbm": datasets.contextual_sbm,
    "heterophilic sbm": lambda seed=0: datasets.contextual_sbm(homophily=0.0, seed=seed),
    "one class apart": lambda seed=0: datasets.contextual_sbm(homophily=1.0, seed=seed),
    "dense sbm": lambda seed=0: datasets.contextual_sbm(12, 3, 0.3, 7.5, 2, seed=seed),
    "grid": datasets.grid,
    "sensor": datasets.sensor,
}


@pytest.mark.parametrize("kind", list(GENERATED))
def test_generators_repeat_themselves(kind):
    one, two, other = GENERATED[kind](seed=3), GENERATED[kind](seed=3), GENERATED[kind](seed=4)
    assert one.hash == two.hash != other.hash
    assert one.split == two.split
    assert one.graph.undirected
    assert one.notes == ("generated with seed 3",)
    assert one.edge_index[:, one.edge_index[0] == one.edge_index[1]].numel() == 0


@pytest.mark.parametrize("homophily", [0.0, 0.05, 0.3, 0.5, 0.9, 1.0])
def test_block_model_has_the_homophily_and_degree_asked_for(homophily):
    data = datasets.contextual_sbm(nodes=2000, classes=5, homophily=homophily, degree=6, seed=1)
    count = data.statistics()
    assert count.edges == 6000
    assert count.homophily == pytest.approx(homophily, abs=0.03)
    assert data.labels.bincount().tolist() == [400] * 5


def test_block_model_features_have_the_signal_asked_for():
    data = datasets.contextual_sbm(nodes=6000, classes=3, features=8, signal=2.0, seed=0)
    means = torch.stack([data.features[data.labels == c].mean(0) for c in range(3)])
    assert torch.allclose(means.norm(dim=1), torch.full((3,), 2.0), atol=0.15)
    assert torch.allclose(means @ means.T, 4 * torch.eye(3), atol=0.3)
    assert data.features.sub(means[data.labels]).std() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("kind", ["grid", "sensor"])
def test_neighbours_share_regions(kind):
    data = GENERATED[kind](seed=0)
    assert data.statistics().homophily > 0.75
    clean = torch.nn.functional.one_hot(data.labels)
    assert (data.features - clean).std() == pytest.approx(0.5, abs=0.03)
