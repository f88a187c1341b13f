"""Hops on the disk are ``graph @ x`` again and again, bit for bit; what is torn, changed or unfinished is never read."""

import json
import pickle
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
import torch

import unspool as us
from unspool import Graph, Normalisation, datasets
from unspool.errors import DataError, IncompatibleError, InputError
from unspool.files import read_sealed, write_sealed
from unspool.graph.building import build_graph
from unspool.graph.pattern import walk_on
from unspool.hops import budget, columns, writing
from unspool.hops.budget import LEAST, slabs_of
from unspool.ops import stored_hops

NODES, FEATURES, DEPTH = 300, 37, 3


def edges(seed=0):
    random = np.random.default_rng(seed)
    return torch.from_numpy((random.random((2, 1500)) ** 2 * (NODES - 4)).astype(np.int64)).unique(dim=1)


@pytest.fixture(scope="module")
def graph():
    return Graph.from_edges(edges(), NODES, directed=False)


@pytest.fixture(scope="module")
def x():
    return torch.randn(NODES, FEATURES, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def hops(graph, x, depth=DEPTH):
    found = [x.to(graph.dtype)]
    for _ in range(depth):
        found.append(graph @ found[-1])
    return torch.stack(found, 1)


def small(columns, graph, nodes=NODES):
    """A budget that is good for so many columns at a time."""
    size = 4 if graph.dtype is torch.float32 else 8
    return LEAST + graph.nodes * (4 + 16) + 8 * nodes + 2 * size * graph.nodes * columns


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("how", list(Normalisation))
@pytest.mark.parametrize("directed", [False, True])
def test_they_are_the_hops_made_in_memory(directed, how, dtype, x, tmp_path):
    graph = Graph.from_edges(edges(), NODES, directed=directed, normalise=how).to(dtype)
    told = []
    stored = us.hops.write(graph, x, DEPTH, tmp_path / "h", memory=small(16, graph), tell=told.append)
    assert sum(line.startswith("slab") for line in told) == -(-FEATURES // 16)
    assert torch.equal(stored.take(torch.arange(NODES)), hops(graph, x))
    assert (stored.shape, stored.depth, stored.dtype, stored.nodes) == ((NODES, FEATURES), DEPTH, dtype, None)
    assert stored.graph["edges"] == graph.edges
    assert not (tmp_path / "h" / ".writing").exists()


def test_a_graph_on_the_disk_is_never_made_whole(x, tmp_path, monkeypatch):
    index = edges()
    some = lambda: iter([(index[0].numpy(), index[1].numpy(), None)])  # noqa: E731
    build_graph(some, tmp_path / "g", memory=1 << 30, asked={}, nodes=NODES, directed=False)
    monkeypatch.setattr("unspool.graph.graph.SMALL", 0)  # as of a large graph
    graph = Graph.open(tmp_path / "g")
    stored = us.hops.write(graph, x, DEPTH, tmp_path / "h")
    assert graph._entries is None
    assert torch.equal(stored.take(torch.arange(NODES)), hops(Graph.open(tmp_path / "g"), x))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int32, bool])
def test_files_of_all_kinds_of_numbers_are_read(kind, x, graph, tmp_path):
    given = (10 * x.numpy()).astype(kind)
    np.save(tmp_path / "x.npy", given)
    stored = us.hops.write(graph, tmp_path / "x.npy", 2, tmp_path / "h", memory=small(16, graph))
    expected = hops(graph, torch.from_numpy(given.astype(np.float32)), 2)
    assert torch.equal(stored.take(torch.arange(NODES)), expected)


def test_features_in_memory_and_sparse_ones_are_taken(x, graph, tmp_path):
    few = x * (x > 1.2)
    csr, coo = scipy.sparse.csr_array(few.numpy()), few.to_sparse()
    scipy.sparse.save_npz(tmp_path / "x.npz", csr)
    (tmp_path / "x.csv").write_text("\n".join(",".join(map(repr, row)) for row in few.tolist()) + "\n")
    given = [few, few.float(), few.numpy(), csr, coo, us.nn.SparseFeatures.from_tensor(few.float()), few.tolist()]
    expected = hops(graph, few.float(), 1)
    for number, one in enumerate([*given, tmp_path / "x.npz", str(tmp_path / "x.csv")]):
        stored = us.hops.write(graph, one, 1, tmp_path / f"h{number}", memory=small(16, graph))
        assert torch.equal(stored.take(torch.arange(NODES)), expected), number


def test_some_nodes_in_their_order(x, graph, tmp_path):
    wanted = torch.tensor([7, 299, 0, 31])
    for number, given in enumerate([wanted, wanted.numpy(), wanted.tolist()]):
        stored = us.hops.write(graph, x, DEPTH, tmp_path / f"h{number}", nodes=given, memory=small(16, graph))
        assert torch.equal(stored.take(torch.arange(4)), hops(graph, x)[wanted])
        assert torch.equal(stored.nodes, wanted)
    again = us.hops.open(tmp_path / "h0")
    assert torch.equal(again.places([31, 7, 7]), torch.tensor([3, 0, 0]))
    assert again.checksum == stored.checksum
    with pytest.raises(InputError, match="nodes=5: expected one of the 4 nodes whose hops are stored"):
        again.places([7, 5])
    mask = torch.zeros(NODES, dtype=torch.bool)
    mask[[3, 9]] = True
    assert us.hops.write(graph, x, 1, tmp_path / "m", nodes=mask).nodes.tolist() == [3, 9]


def test_rows_are_read_as_they_are_asked_for(x, graph, tmp_path, monkeypatch):
    monkeypatch.setattr("unspool.ops.stored_hops.PIECE", 3000)  # a few rows are read together
    stored, whole = us.hops.write(graph, x, DEPTH, tmp_path / "h"), hops(graph, x)
    chance = torch.Generator().manual_seed(1)
    for _ in range(20):
        rows = torch.randint(NODES, (17,), generator=chance)
        depth = int(torch.randint(DEPTH + 1, (), generator=chance))
        assert torch.equal(stored.take(rows, depth), whole[rows, : depth + 1])
    assert stored.take(torch.empty(0, dtype=torch.int64)).shape == (0, DEPTH + 1, FEATURES)
    wide = stored.to(torch.float64)
    assert torch.equal(wide.take(torch.tensor([5])), whole[[5]].double())
    with pytest.raises(IncompatibleError, match="hop 4 is wanted, and hops 0 to 3 are stored"):
        stored.take(torch.tensor([0]), 4)
    with pytest.raises(InputError, match="depth=-1: expected a hop from 0 to 3"):
        stored.take(torch.tensor([0]), -1)
    for given in ([1], torch.tensor([0.5]), torch.tensor([True]), torch.tensor(1)):
        with pytest.raises(InputError, match="expected a tensor of numbers of stored rows"):
            stored.take(given)
    for rows, culprit in (([-1, 3], -1), ([NODES, 0], NODES)):
        with pytest.raises(InputError) as caught:
            stored.take(torch.tensor(rows))
        assert (caught.value.argument, caught.value.value) == ("rows", culprit)


class KilledError(BaseException):
    """The process ends here."""


@pytest.mark.long
def test_whenever_it_is_killed_the_same_work_goes_on_and_nothing_half_written_is_read(x, graph, tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "EVERY", -1.0)
    monkeypatch.setattr(writing, "PIECE", 20_000)
    how = {"memory": small(16, graph), "nodes": torch.arange(0, NODES, 2)}
    real, calls = writing.append, []
    monkeypatch.setattr(writing, "append", lambda file, values: (calls.append(file), real(file, values)))
    expected = us.hops.write(graph, x, DEPTH, tmp_path / "whole", **how)
    total, whole = len(calls), expected.take(torch.arange(NODES // 2))
    for stop in [*range(0, total, max(total // 10, 1)), total - 1]:
        folder, seen = tmp_path / "h", []
        shutil.rmtree(folder, ignore_errors=True)

        def torn(file, values, stop=stop, seen=seen):
            seen.append(file)
            if len(seen) == stop + 1:
                real(file, values[: len(values) // 2])  # half of it reaches the disk
                raise KilledError
            real(file, values)

        monkeypatch.setattr(writing, "append", torn)
        with pytest.raises(KilledError):
            us.hops.write(graph, x, DEPTH, folder, **how)
        with pytest.raises(
            DataError, match="hops were being written here and are not finished; run the same unspool hops"
        ):
            us.hops.open(folder)
        again = []
        monkeypatch.setattr(
            writing, "append", lambda file, values, again=again: (again.append(file), real(file, values))
        )
        found = us.hops.write(graph, x, DEPTH, folder, **how)
        assert len(again) <= total - stop + (DEPTH + 1) * 5  # at most one slab is written again
        assert torch.equal(found.take(torch.arange(NODES // 2)), whole)
        assert found.checksum == expected.checksum


@pytest.mark.parametrize("name", ["_put_together", "_finish"])
def test_what_was_interrupted_late_goes_on_there(name, x, graph, tmp_path, monkeypatch):
    monkeypatch.setattr(writing, name, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        us.hops.write(graph, x, DEPTH, tmp_path / "h")
    monkeypatch.undo()
    monkeypatch.setattr(columns.ArrayColumns, "read", lambda *_: pytest.fail("the features were read again"))
    assert torch.equal(us.hops.write(graph, x, DEPTH, tmp_path / "h").take(torch.arange(NODES)), hops(graph, x))


def test_a_kill_between_the_file_and_its_card_loses_nothing(x, graph, tmp_path, monkeypatch):
    monkeypatch.setattr(type(writing.HOPS), "seal", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        us.hops.write(graph, x, DEPTH, tmp_path / "h", nodes=[4, 2])
    assert (tmp_path / "h" / "hops.bin").exists()
    monkeypatch.undo()
    found = us.hops.write(graph, x, DEPTH, tmp_path / "h", nodes=[4, 2])
    assert torch.equal(found.take(torch.arange(2)), hops(graph, x)[[4, 2]])


@pytest.mark.parametrize("other", ["graph", "features", "depth", "nodes", "memory", "dtype", "file"])
def test_other_work_begins_anew(other, x, graph, tmp_path, monkeypatch):
    given = SimpleNamespace(graph=graph, x=x, depth=2, nodes=None, memory=small(16, graph))
    if other == "file":
        np.save(tmp_path / "x.npy", x.numpy())
        given.x = tmp_path / "x.npy"
    monkeypatch.setattr(writing, "_finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))

    def run():
        return us.hops.write(given.graph, given.x, given.depth, tmp_path / "h", nodes=given.nodes, memory=given.memory)

    with pytest.raises(KeyboardInterrupt):
        run()
    monkeypatch.undo()
    changed = x.clone()
    changed[3, 5] += 1
    if other == "file":
        np.save(tmp_path / "x.npy", changed.numpy())
    given.graph = {"graph": Graph.from_edges(edges(1), NODES, directed=False), "dtype": graph.to(torch.float64)}.get(other, graph)  # fmt: skip
    given.x, given.depth = changed if other == "features" else given.x, 3 if other == "depth" else 2
    given.nodes, given.memory = [5, 6] if other == "nodes" else None, small(32, graph) if other == "memory" else given.memory  # fmt: skip
    found, source = run(), changed if other in ("features", "file") else x
    expected = hops(given.graph, source, given.depth)
    assert torch.equal(found.take(torch.arange(found.shape[0])), expected if given.nodes is None else expected[given.nodes])  # fmt: skip


def test_every_flipped_bit_is_found(x, graph, tmp_path):
    facts = us.hops.NodeFacts.read(NODES, labels=np.arange(NODES) % 3)
    us.hops.write(graph, x, 1, tmp_path / "h", nodes=[4, 2, 8], facts=facts)
    random = np.random.default_rng(0)
    files = sorted(path for path in (tmp_path / "h").iterdir() if path.is_file())
    assert {file.name for file in files} == {"hops.bin", "nodes.bin", "facts.npz", "hops.json"}
    for file in files:
        content = file.read_bytes()
        for _ in range(6):
            changed = bytearray(content)
            changed[int(random.integers(len(content)))] ^= 1 << int(random.integers(8))
            file.write_bytes(changed)
            with pytest.raises(DataError, match="write them again with unspool hops"):
                us.hops.open(tmp_path / "h")
        for torn in (content[: len(content) // 2], b"", content + b"0"):
            file.write_bytes(torn)
            with pytest.raises(DataError, match="write them again with unspool hops"):
                us.hops.open(tmp_path / "h", check=False)
        file.write_bytes(content)
    (tmp_path / "h" / "hops.bin").unlink()
    with pytest.raises(DataError, match=r"its file hops.bin is missing"):
        us.hops.open(tmp_path / "h")


def test_foreign_folders_are_named(x, graph, tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist; check the path, or write hops there"):
        us.hops.open(tmp_path / "nothing")
    with pytest.raises(DataError, match="there are no hops in this folder"):
        us.hops.open(tmp_path)
    (tmp_path / "hops.json").write_text(json.dumps({"format": 1}))
    with pytest.raises(DataError, match="it carries no checksum"):
        us.hops.open(tmp_path)
    with pytest.raises(DataError, match="there are hops already; choose another folder"):
        us.hops.write(graph, x, 1, tmp_path)
    index = edges()
    build_graph(lambda: iter([(index[0].numpy(), index[1].numpy(), None)]), tmp_path / "g", memory=1 << 30, asked={})
    shutil.copy(tmp_path / "g" / "graph.json", tmp_path / "hops.json")
    with pytest.raises(DataError, match="it is not the card of hops"):
        us.hops.open(tmp_path)


@pytest.mark.parametrize("change", [{"shape": [1, 2]}, {"shape": [-1, 1, 1]}, {"dtype": "<i1"}, {"graph": None}])
def test_a_card_that_says_too_little_is_refused(change, x, graph, tmp_path):
    us.hops.write(graph, x, 1, tmp_path / "h")
    file = tmp_path / "h" / "hops.json"
    card = json.dumps({**json.loads(read_sealed(file).read()), **change}).encode()
    write_sealed(file, lambda held: held.write(card))
    with pytest.raises(DataError, match="it does not say what the hops are; write them again"):
        us.hops.open(tmp_path / "h")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"depth": 0}, r"depth=0: expected a whole number of at least 1"),
        ({"depth": 2.5}, r"depth=2.5: expected a whole number of at least 1"),
        ({"nodes": [1, NODES]}, r"nodes=300: expected numbers of nodes, from 0 to 299"),
        ({"nodes": [1, -2]}, r"nodes=-2: expected numbers of nodes, from 0 to 299"),
        ({"nodes": [5, 1, 5]}, r"nodes=5: expected every node once, and this one is there twice"),
        ({"nodes": []}, r"expected numbers of nodes, at least one, one behind the other"),
        ({"nodes": [0.5]}, r"nodes='float\d\d of shape \(1,\)': expected numbers of nodes"),
        ({"nodes": np.zeros(5, bool)}, r"nodes='bool of shape \(5,\)': expected numbers of nodes, .* or a mask over all"),
        ({"x": np.ones((NODES - 1, 2))}, r"features=299: expected a row for each of the 300 nodes of the graph"),
        ({"x": np.ones(NODES)}, r"it has shape \(300,\); features have shape \(nodes, features\)"),
        ({"x": np.ones((NODES, 2), complex)}, r"it holds complex128; features are numbers"),
        ({"x": np.array([["a"]])}, r"it holds <U1; features are numbers"),
        ({"memory": "1GB"}, r"memory='1GB': expected a number of bytes"),
        ({"memory": float("nan")}, r"memory=nan: expected a number of bytes"),
        ({"graph": "g"}, r"graph='str': expected a us.Graph; open a folder with us.Graph.open"),
        ({"facts": [1]}, r"facts='list': expected us.hops.NodeFacts"),
        ({"facts": us.hops.NodeFacts.read(7)}, r"facts='those of 7 nodes': expected those of the 300 nodes of the graph"),
        ({"memory": LEAST}, r"memory='0.0938GB': expected at least 0.\d+GB for this graph of 300 nodes"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_sentence(change, sentence, x, graph, tmp_path):
    how = {"graph": graph, "x": x, "depth": 1, "out": tmp_path / "h", **change}
    with pytest.raises(ValueError, match=sentence):
        us.hops.write(**how)
    assert not (tmp_path / "h").exists()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300])
def test_what_is_not_finite_is_named_before_anything_counts(value, x, graph, tmp_path):
    bad = x.clone()
    bad[17, 33] = value
    np.save(tmp_path / "x.npy", bad.numpy())
    for given in (bad, bad.to_sparse(), tmp_path / "x.npy"):
        with pytest.raises(InputError, match="node 17 has this as feature 33"):
            us.hops.write(graph, given, 1, tmp_path / "h", memory=small(16, graph))
        assert not (tmp_path / "h").exists()


def test_files_that_are_none_are_named(x, graph, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"x.npy does not exist; check the path"):
        us.hops.write(graph, tmp_path / "x.npy", 1, tmp_path / "h")
    (tmp_path / "x.npy").write_bytes(b"none")
    with pytest.raises(DataError, match=r"x.npy: it cannot be read"):
        us.hops.write(graph, tmp_path / "x.npy", 1, tmp_path / "h")
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match=r"o.npy: it cannot be read"):
        us.hops.write(graph, tmp_path / "o.npy", 1, tmp_path / "h")
    (tmp_path / "x.csv").write_text("id,a\n" + "".join(f"{i},1\n" for i in reversed(range(NODES))))
    with pytest.raises(DataError, match=r"its rows name the nodes, and not as 0, 1, 2"):
        us.hops.write(graph, tmp_path / "x.csv", 1, tmp_path / "h")


def test_a_full_disk_is_said_before_the_work_and_amid_it(x, graph, tmp_path, monkeypatch):
    full = SimpleNamespace(free=1000)
    monkeypatch.setattr(budget.shutil, "disk_usage", lambda _: full)
    with pytest.raises(
        DataError,
        match=r"its disk has 9.31e-07 GB free, and this takes 0.0\d+ GB, half of it until it is done; make room",
    ):
        us.hops.write(graph, x, DEPTH, tmp_path / "h")
    monkeypatch.undo()

    def no_room(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "append", no_room)
    with pytest.raises(OSError, match="No space left"):
        us.hops.write(graph, x, DEPTH, tmp_path / "h")
    assert not (tmp_path / "h").exists()
    monkeypatch.undo()
    assert us.hops.write(graph, x, DEPTH, tmp_path / "h").depth == DEPTH


def test_what_can_be_gone_on_with_stays_and_is_said(x, graph, tmp_path, monkeypatch):
    real, told = columns.ArrayColumns.read, []

    def once(self, first, out):
        if first:
            raise KeyboardInterrupt
        real(self, first, out)

    monkeypatch.setattr(columns.ArrayColumns, "read", once)
    with pytest.raises(KeyboardInterrupt):
        us.hops.write(graph, x, DEPTH, tmp_path / "h", memory=small(16, graph), tell=told.append)
    assert (
        told[-1]
        == f"{tmp_path}/h keeps what was done so far: run the same unspool hops again to go on, or remove the folder"
    )
    monkeypatch.undo()
    us.hops.write(graph, x, DEPTH, tmp_path / "h", memory=small(16, graph), tell=told.append)
    assert sum(line.startswith("slab 1 of") for line in told) == 1


def test_files_of_others_are_not_written_over(x, graph, tmp_path):
    (tmp_path / "hops.bin").write_text("mine")
    with pytest.raises(DataError, match=r"it holds a hops.bin, which would be written over; choose another folder"):
        us.hops.write(graph, x, DEPTH, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["hops.bin"]


def test_slabs_are_whole_lines_of_the_cache_and_cover_all(graph):
    for features in (1, 5, 16, 37, 128):
        for columns_ in (16, 17, 40, 100, 1000):
            slabs = slabs_of(graph, features, NODES, small(columns_, graph))
            assert [first for first, _ in slabs] == [0, *(last for _, last in slabs[:-1])]
            assert slabs[-1][1] == features
            assert max(last - first for first, last in slabs) <= columns_
            assert all((last - first) % 16 == 0 for first, last in slabs[:-1])


def test_two_do_not_write_into_one_folder(x, graph, tmp_path, monkeypatch):
    def second(*_):
        with pytest.raises(BlockingIOError, match="another run is at work"):
            us.hops.write(graph, x, 1, tmp_path / "h")
        raise KeyboardInterrupt

    monkeypatch.setattr(writing, "_write_slabs", second)
    with pytest.raises(KeyboardInterrupt):
        us.hops.write(graph, x, 1, tmp_path / "h")


def test_a_data_set_from_its_facts(tmp_path):
    data = datasets.contextual_sbm(nodes=60, classes=3, seed=0)
    us.hops.write(data.graph, data.features, 2, tmp_path / "h", facts=us.hops.NodeFacts.of(data))
    found = us.hops.dataset(tmp_path / "h")
    assert (found.nodes, found.classes, found.name) == (60, data.classes, data.name)
    assert torch.equal(found.labels, data.labels)
    assert found.split == data.split
    assert datasets.splits.repetition(found, 3) == datasets.splits.repetition(data, 3)
    assert "hops 0 to 2 on the disk" in repr(found)
    assert found.hash != data.hash
    assert found.hash == us.hops.dataset(tmp_path / "h").hash
    assert found.hash != found.in_order(list(reversed(found.classes))).hash


def test_half_precision_takes_half_the_disk_and_is_handed_out_in_single(x, graph, tmp_path):
    stored = us.hops.write(graph, x, DEPTH, tmp_path / "h", dtype=torch.bfloat16, memory=small(16, graph))
    assert stored.file.stat().st_size == 2 * NODES * (DEPTH + 1) * x.shape[1]
    assert stored.dtype == torch.float32
    found, exact, walk = stored.take(torch.arange(NODES)), hops(graph, x), walk_on(graph, torch.bfloat16)
    assert torch.equal(found[:, 0], x.bfloat16().float())
    travels, out = x.bfloat16(), torch.empty_like(x, dtype=torch.bfloat16)
    walk.begin(travels)
    for hop in range(1, DEPTH + 1):
        walk.step(travels, out)
        travels, out = out, travels
        assert torch.equal(found[:, hop], walk.signal(travels, slice(None)).float())
        assert torch.allclose(found[:, hop], exact[:, hop], rtol=0.02, atol=0.02)
    model = us.models.GraphFirstGPRGNN(x.shape[1], 3, depth=DEPTH).eval()
    assert model(us.hops.open(tmp_path / "h"), rows=torch.tensor([4])).shape == (1, 3)


def test_half_precision_needs_a_graph_without_weights(x, tmp_path):
    weighted = us.Graph.from_edges(edges(), NODES, weights=torch.rand(edges().shape[1]) + 0.1, directed=False)
    with pytest.raises(IncompatibleError, match="signals in bfloat16 go over graphs without weights"):
        us.hops.write(weighted, x, 1, tmp_path / "h", dtype=torch.bfloat16)
    with pytest.raises(InputError, match="as the graph has, or torch"):
        us.hops.write(weighted, x, 1, tmp_path / "h", dtype=torch.float64)


def test_columns_may_be_made_as_they_are_asked_for(x, graph, tmp_path):
    class Made(columns.Columns):
        shape, mark = tuple(x.shape), ["made"]

        def read(self, first, out):
            out.copy_(x[:, first : first + out.shape[1]])

    stored = us.hops.write(graph, Made(), 1, tmp_path / "h", memory=small(16, graph))
    assert torch.equal(stored.take(torch.arange(NODES)), hops(graph, x, 1))


@pytest.mark.parametrize("kind", [None, torch.bfloat16])
def test_hops_held_in_memory_are_those_on_the_disk(kind, x, graph, tmp_path, monkeypatch):
    monkeypatch.setattr("unspool.ops.stored_hops.PIECE", 5000)
    stored = us.hops.write(graph, x, 2, tmp_path / "h", dtype=kind)
    held, rows = stored.held(), torch.tensor([5, 299, 5, 0])
    assert torch.equal(held.take(rows, 1), stored.take(rows, 1))
    assert torch.equal(held.to(torch.float64).to("cpu").take(rows), stored.take(rows).double())
    assert held.checksum == stored.checksum
    again = pickle.loads(pickle.dumps(held))
    assert again._memory is None
    assert torch.equal(again.take(rows), stored.take(rows))
    with pytest.raises(InputError):
        held.take(torch.tensor([NODES]))


@pytest.mark.parametrize("way", ["preadv", "seek"])
def test_neighbours_are_read_together_and_a_file_that_was_cut_is_refused(way, x, graph, tmp_path, monkeypatch):
    if way == "seek":
        monkeypatch.delattr("os.preadv")
    stored, whole = us.hops.write(graph, x, DEPTH, tmp_path / "h"), hops(graph, x)
    calls, real = [], stored_hops.read_at
    monkeypatch.setattr(stored_hops, "read_at", lambda *given: (calls.append(given[1]), real(*given))[1])
    rows = torch.tensor([5, 6, 7, 200, 7, 8])
    assert torch.equal(stored.take(rows), whole[rows])
    assert len(calls) == 3
    assert torch.equal(stored.take(rows, 0), whole[rows, :1])
    assert len(calls) == 9
    with stored.file.open("r+b") as file:
        file.truncate(stored.file.stat().st_size - 1)
    assert torch.equal(stored.take(torch.tensor([0])), whole[[0]])
    with pytest.raises(DataError, match="it is shorter than it was"):
        stored.take(torch.tensor([NODES - 1]))
