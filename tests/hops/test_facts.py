"""What is known of stored nodes: written and read again without loss, taken at some of them, refused where it does not fit."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import unspool as us
from unspool import datasets
from unspool.datasets import Split
from unspool.errors import DataError, IncompatibleError
from unspool.hops import NodeFacts

NODES = 30


def kinds():
    chance = np.random.default_rng(0)
    several = (chance.random((NODES, 3)) > 0.5).astype(float)
    several[4, 1] = np.nan
    numbers = chance.random(NODES)
    numbers[7] = np.nan
    split = Split(range(10), range(10, 20), range(20, 30), nodes=NODES, name="mine", seed=4)
    return {
        "nothing": NodeFacts.read(NODES),
        "classes": NodeFacts.read(NODES, labels=np.arange(NODES) % 4 - 1, split=split),
        "names of classes": NodeFacts.read(NODES, labels=["a", None, "b"] * 10),
        "numbers": NodeFacts.read(NODES, labels=numbers),
        "several": NodeFacts.read(NODES, labels=several, split=split),
        "a data set": replace(
            NodeFacts.of(datasets.contextual_sbm(nodes=NODES, classes=3, seed=0)), names=tuple(f"n{i}" for i in range(NODES)),
            sample_weight=torch.rand(NODES), recorded={"fold-0": (torch.arange(NODES) % 4).to(torch.uint8)}, ordered=True,
            feature_names=("a", "b"), categories={"b": ("x", "y")}, notes=("one",),
        ),
    }  # fmt: skip


def same(one, other):
    for name in NodeFacts.__dataclass_fields__:
        a, b = getattr(one, name), getattr(other, name)
        if isinstance(a, torch.Tensor):
            assert a.dtype == b.dtype
            assert torch.equal(a.nan_to_num(-9), b.nan_to_num(-9)), name
        elif name == "recorded":
            assert list(a) == list(b)
            assert all(torch.equal(a[key], b[key]) for key in a)
        elif name == "split" and a is not None:
            assert (a, a.name, a.seed, a.rule) == (b, b.name, b.seed, b.rule)
        else:
            assert a == b, name


@pytest.mark.parametrize("name", kinds())
def test_they_come_back_as_they_were(name, tmp_path):
    facts = kinds()[name]
    (tmp_path / "facts.npz").write_bytes(facts.packed())
    same(NodeFacts.unpacked(tmp_path / "facts.npz"), facts)


@pytest.mark.parametrize("name", kinds())
def test_a_data_set_of_some_nodes_has_theirs(name, tmp_path):
    facts, graph = kinds()[name], us.graph.ring(NODES)
    nodes = torch.cat([torch.arange(NODES - 1, 0, -1), torch.tensor([0])])
    us.hops.write(graph, torch.eye(NODES), 1, tmp_path / "h", nodes=nodes, facts=facts)
    data = us.hops.dataset(tmp_path / "h")
    assert torch.equal(data.labels, facts.labels[nodes])
    if facts.targets is not None:
        assert torch.equal(data.targets.nan_to_num(-9), facts.targets[nodes].nan_to_num(-9))
    if facts.split is not None:
        assert [sorted(nodes[getattr(data.split, part)].tolist()) for part in ("train", "valid", "test")] == [
            getattr(facts.split, part).tolist() for part in ("train", "valid", "test")
        ]
    names = range(NODES) if facts.names is None else facts.names
    assert data.names == tuple(names[i] for i in nodes.tolist())
    assert data.multilabel == (name == "several")


def test_splits_of_files_are_read_as_ids_and_as_masks():
    parts = {"train": [0, 5], "valid": [1], "test": [9, 2]}
    masks = {f"{part}_mask": np.isin(np.arange(NODES), ids) for part, ids in parts.items() if part != "valid"}
    expected = Split([0, 5], [1], [9, 2], nodes=NODES)
    for given in (parts, {"train": [0, 5], "val": [1], "test": [9, 2]}, {**masks, "valid_idx": [1]}):
        assert NodeFacts.read(NODES, split=given).split == expected


@pytest.mark.parametrize(
    ("split", "sentence"),
    [
        ({"train": [0], "test": [1]}, "the split: it has no part valid, and holds train, test"),
        ({"train": [0], "valid": [NODES], "test": [1]}, "valid names node 30, but node ids run from 0 to 29"),
        ({"train": [0], "valid": [0], "test": [1]}, "node 0 is in both train and valid"),
        ({"train": [0.5], "valid": [0], "test": [1]}, "train holds float64 of shape"),
        (Split([0], [1], [2], nodes=3), "the split: it is one of 3 nodes, and the graph has 30"),
    ],
)
def test_splits_that_do_not_fit_are_named(split, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        NodeFacts.read(NODES, split=split)


def test_a_split_beyond_the_chosen_nodes_is_refused(tmp_path):
    facts = kinds()["classes"]
    with pytest.raises(DataError, match=r"its valid nodes hold node 15, which is not among those to be stored; add it"):
        us.hops.write(
            us.graph.ring(NODES), torch.eye(NODES), 1, tmp_path / "h", nodes=[*range(15), *range(20, 30)], facts=facts
        )


def test_what_needs_edges_says_that_there_are_none(tmp_path):
    us.hops.write(us.graph.ring(NODES), torch.eye(NODES), 1, tmp_path / "h", facts=kinds()["classes"])
    data = us.hops.dataset(tmp_path / "h")
    asks = [
        lambda: data.graph, lambda: data.edge_index.shape, data.largest_component, lambda: datasets.check(data),
        lambda: us.train.link_task(data),
    ]  # fmt: skip
    for ask in asks:
        with pytest.raises(
            IncompatibleError, match="the data are hops on the disk, which have seen the graph and do not hold it"
        ):
            ask()
    with pytest.raises(IncompatibleError, match="which cannot be row-normalised, as they have seen the graph"):
        data.row_normalised()
    assert data.statistics().isolated is None
    assert data.to("cpu").nodes == NODES


def test_facts_that_are_none_are_named(tmp_path):
    for content in (b"", b"none", us.hops.NodeFacts.read(3).packed()[:200]):
        (tmp_path / "facts.npz").write_bytes(content)
        with pytest.raises(DataError, match="it cannot be understood"):
            NodeFacts.unpacked(tmp_path / "facts.npz")
