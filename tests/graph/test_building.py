"""A graph built on the disk is the graph made in memory, bit for bit; what is torn, changed or unfinished is never read."""

import json
import warnings

import numpy as np
import pytest
import torch

import unspool as us
from unspool import Graph, Normalisation
from unspool.errors import DataError, InputError
from unspool.graph import building
from unspool.graph.building import LEAST, PER_ENTRY, build_graph

pytestmark = pytest.mark.long

NODES = 1500


def listed(seed, weighted=False, edges=4000):
    """Edges with repeats, loops and both directions, in five chunks."""
    random = np.random.default_rng(seed)
    index = (random.random((2, edges)) ** 2 * (NODES - 5)).astype(np.int64)
    index = np.concatenate([index, index[::-1, ::3]], axis=1)
    weight = random.integers(0, 5, index.shape[1]) / 4.0 if weighted else None
    return index, weight


def reading(index, weight):
    def read():
        for part in np.array_split(np.arange(index.shape[1]), 5):
            yield index[0, part], index[1, part], None if weight is None else weight[part]

    return read


def small(entries=6000):
    """A budget that is good for so many entries at a time."""
    return LEAST + 16 * NODES + PER_ENTRY * entries


def built(folder, index, weight=None, read=None, **how):
    chosen = {"memory": small(), "asked": {"edges": index.shape[1]}, "nodes": NODES, **how}
    return build_graph(reading(index, weight) if read is None else read, folder, weighted=weight is not None, **chosen)


def made(index, weight=None, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Graph.from_edges(index, NODES, weight, **how)


def same(one, other):
    pairs = [(getattr(one.adjacency, way), getattr(other.adjacency, way)) for way in ("forward", "transpose")]
    for a, b in pairs:
        assert torch.equal(a.crow, b.crow)
        assert torch.equal(a.col, b.col)
    assert torch.equal(one.degree, other.degree)
    for a, b in ((one, other), (one.to(torch.float64), other.to(torch.float64))):
        assert torch.equal(a.operator.forward.val, b.operator.forward.val)
        assert torch.equal(a.operator.transpose.val, b.operator.transpose.val)
    assert (one.undirected, one.symmetric, one.edges, one.notes) == (
        other.undirected,
        other.symmetric,
        other.edges,
        other.notes,
    )


@pytest.mark.parametrize("loops", [1.0, 0, 0.25])
@pytest.mark.parametrize("directed", [None, False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_graph_made_in_memory(weighted, directed, loops, tmp_path):
    index, weight = listed(0, weighted)
    built(tmp_path / "g", index, weight, directed=directed, loops=loops)
    for how in Normalisation:
        same(
            Graph.open(tmp_path / "g", normalise=how),
            made(index, weight, directed=directed, loops=loops, normalise=how),
        )
    assert not (tmp_path / "g" / ".building").exists()


def test_buckets_were_used(tmp_path):
    index, _ = listed(0)
    told = []
    built(tmp_path / "g", index, tell=told.append)
    assert sum(line.startswith("bucket") for line in told) >= 3


def test_a_directed_list_that_holds_both_directions_is_undirected(tmp_path):
    index, _ = listed(1)
    both = np.concatenate([index, index[::-1]], axis=1)
    built(tmp_path / "g", both, directed=True, memory=small(12_000))
    found = Graph.open(tmp_path / "g")
    assert found.undirected
    same(found, made(both, directed=True))


def test_it_works_as_any_graph(tmp_path):
    index, _ = listed(2)
    built(tmp_path / "g", index, directed=False)
    graph, twin = Graph.open(tmp_path / "g"), made(index, directed=False)
    x = torch.randn(NODES, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    net = us.unroll(us.Fidelity(0.2) + us.Smoothness(0.8), us.GradientDescent(step=0.5), depth=3)
    for g in (graph, twin):
        net(x, g).square().sum().backward()
    assert torch.equal(net(x, graph), net(x, twin))
    some = torch.arange(0, NODES, 3)
    assert torch.equal(us.graph.part_of(graph, some).to_dense(), us.graph.part_of(twin, some).to_dense())


class KilledError(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("every", [-1.0, 60.0])
def test_whenever_it_is_killed_the_same_build_goes_on_and_nothing_half_written_is_read(
    weighted, directed, every, tmp_path, monkeypatch
):
    monkeypatch.setattr(building, "EVERY", every)
    index, weight = listed(3, weighted, edges=1500)
    expected = made(index, weight, directed=directed)
    real, calls = building.append, []
    monkeypatch.setattr(building, "append", lambda file, values: (calls.append(file), real(file, values)))
    built(tmp_path / "whole", index, weight, directed=directed)
    total = len(calls)
    for stop in range(0, total, max(total // 12, 1)):
        folder, seen = tmp_path / f"g{stop}", []

        def torn(file, values, stop=stop, seen=seen):
            seen.append(file)
            if len(seen) == stop + 1:
                real(file, values[: max(len(values) // 2, 0)])  # half of it reaches the disk
                raise KilledError
            real(file, values)

        monkeypatch.setattr(building, "append", torn)
        with pytest.raises(KilledError):
            built(folder, index, weight, directed=directed)
        with pytest.raises(DataError, match=r"a graph was being built here and is not finished; run the same"):
            Graph.open(folder)
        monkeypatch.setattr(building, "append", real)
        built(folder, index, weight, directed=directed)
        same(Graph.open(folder), expected)


def test_a_build_that_goes_on_does_not_begin_anew(tmp_path, monkeypatch):
    index, _ = listed(4)
    real, seen = building._sort, []
    monkeypatch.setattr(building, "_sort", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        built(tmp_path / "g", index)
    monkeypatch.setattr(building, "_sort", real)

    def read():
        seen.append(1)
        return reading(index, None)()

    built(tmp_path / "g", index, read=read)
    assert seen == []


def test_other_edges_begin_anew(tmp_path, monkeypatch):
    (index, _), (other, _) = listed(5), listed(6)
    monkeypatch.setattr(building, "_finished", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        built(tmp_path / "g", index)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="names node"):  # a slip costs nothing
        built(tmp_path / "g", index, nodes=10)
    assert (tmp_path / "g" / ".building" / "progress.json").exists()
    built(tmp_path / "g", other, asked={"edges": "others"}, directed=False)
    same(Graph.open(tmp_path / "g"), made(other, directed=False))


def test_every_flipped_bit_is_found(tmp_path):
    index, weight = listed(7, weighted=True, edges=300)
    built(tmp_path / "g", index, weight, directed=True)
    random = np.random.default_rng(0)
    files = sorted(path for path in (tmp_path / "g").iterdir() if path.is_file())
    assert {file.stem for file in files} >= {"crow", "col", "weight", "degree", "crow_t", "col_t", "weight_t", "graph"}
    for file in files:
        content = file.read_bytes()
        for _ in range(4):
            changed = bytearray(content)
            changed[int(random.integers(len(content)))] ^= 1 << int(random.integers(8))
            file.write_bytes(changed)
            with pytest.raises(DataError, match=r"build it again"):
                Graph.open(tmp_path / "g")
        for torn in (content[: len(content) // 2], b"", content + b"0"):
            file.write_bytes(torn)
            with pytest.raises(DataError, match=r"build it again"):
                Graph.open(tmp_path / "g", check=False)
        file.write_bytes(content)
    (tmp_path / "g" / "col.bin").unlink()
    with pytest.raises(DataError, match=r"its file col.bin is missing"):
        Graph.open(tmp_path / "g")


def test_foreign_folders_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist; check the path"):
        Graph.open(tmp_path / "nothing")
    with pytest.raises(DataError, match="there is no graph in this folder"):
        Graph.open(tmp_path)
    with pytest.raises(TypeError, match=r"normalise='symmetric': expected Normalisation.SYMMETRIC"):
        Graph.open(tmp_path, normalise="symmetric")
    (tmp_path / "graph.json").write_text(json.dumps({"format": 1}))
    with pytest.raises(DataError, match="it carries no checksum"):
        Graph.open(tmp_path)
    index, _ = listed(8, edges=10)
    with pytest.raises(DataError, match="there is a graph already; choose another folder"):
        built(tmp_path, index)


def test_what_is_written_into_the_tensors_stays_off_the_disk(tmp_path):
    index, _ = listed(9, edges=100)
    built(tmp_path / "g", index)
    Graph.open(tmp_path / "g").adjacency.forward.col[:5] = 0
    assert Graph.open(tmp_path / "g").nodes == NODES


def test_too_small_a_memory_is_refused_with_what_is_needed(tmp_path):
    index, _ = listed(10)
    with pytest.raises(InputError, match=r"memory='0.125GB': expected at least 0.\d+GB for this graph of 1500 nodes"):
        built(tmp_path / "g", index, memory=LEAST)
    assert not (tmp_path / "g").exists()


@pytest.mark.parametrize(
    ("edges", "sentence"),
    [
        ([[0, -1], [1, 2]], "edge 1 names node -1, but node ids count from 0"),
        ([[0, NODES], [1, 2]], "edge 1 names node 1500, but node ids run from 0 to 1499"),
        ([[0, 2**31], [1, 2]], "at most 2147483647 nodes can be numbered"),
    ],
)
def test_ids_that_are_none_are_named(edges, sentence, tmp_path):
    index = np.array(edges)
    with pytest.raises(ValueError, match=sentence):
        built(tmp_path / "g", index, nodes=None if "2147" in sentence or "-1," in sentence else NODES)


def test_a_full_disk_is_said_and_leaves_no_graph(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    index, _ = listed(11, edges=50)
    monkeypatch.setattr(building, "append", full)
    with pytest.raises(OSError, match="No space left"):
        built(tmp_path / "g", index)
    with pytest.raises(DataError, match="not finished"):
        Graph.open(tmp_path / "g")
