"""Fetching over a real connection to this machine: what comes is checked, recorded, and kept whole or not at all."""

import hashlib
import http.server
import threading
from dataclasses import replace

import pytest

from cli.people import ask, refuse
from datasets.test_load import made
from unspool import datasets
from unspool.datasets import fetch, published, sources

FILE = "raw/amazon_electronics_photo.npz"


class Handler(http.server.BaseHTTPRequestHandler):
    """Sends what the test has laid out."""

    def do_GET(self):
        status, body, headers = self.server.answers.get(self.path, (404, b"", {}))
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Be silent."""


@pytest.fixture
def served(tmp_path, monkeypatch):
    """Photo, published at 127.0.0.1; the answers of the server, by path."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("UNSPOOL_DATA", raising=False)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        body = made(tmp_path / "server").read_bytes()
        server.answers = {"/photo.npz": (200, body, {})}
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/photo.npz"
        monkeypatch.setitem(sources.SOURCES, "photo", replace(sources.SOURCES["photo"], addresses={FILE: address}))
        whole = datasets.load("photo", tmp_path / "server", cache=tmp_path / "c")
        monkeypatch.setitem(published.PUBLISHED, "photo", (published.mark(whole),))
        yield server.answers
        server.shutdown()


def place(tmp_path):
    return tmp_path / "root" / "Amazon" / "Photo"


def files(tmp_path):
    return sorted(str(p.relative_to(place(tmp_path))) for p in (tmp_path / "root").rglob("*") if p.is_file())


def test_a_set_is_fetched_and_its_checksum_recorded(tmp_path, served):
    assert datasets.load("photo", tmp_path / "root", download=True).nodes == 120
    assert files(tmp_path) == ["SHA256SUMS", FILE]
    digest = hashlib.sha256((place(tmp_path) / FILE).read_bytes()).hexdigest()
    assert (place(tmp_path) / "SHA256SUMS").read_text() == f"{digest}  {FILE}\n"
    served.clear()
    assert datasets.load("photo", tmp_path / "root", download=True).nodes == 120  # nothing is asked for again


@pytest.mark.parametrize(
    "answer",
    [(404, b"", {}), (200, b"half", {"Content-Length": "4000"}), (200, b"junk", {}), (302, b"", {"Location": "http://example.org/x"})],
    ids=["absent", "broken off", "junk", "led away"],
)  # fmt: skip
def test_nothing_is_kept_of_what_went_wrong(tmp_path, served, answer):
    served["/photo.npz"] = answer
    with pytest.raises((ConnectionError, ValueError), match=r"photo\.npz"):
        datasets.load("photo", tmp_path / "root", download=True)
    assert not [p for p in (tmp_path / "root").rglob("*") if p.is_file()]


def test_another_file_than_before_is_refused_by_name(tmp_path, served, monkeypatch):
    datasets.load("photo", tmp_path / "root", download=True)
    before = (place(tmp_path) / "SHA256SUMS").read_text()
    (place(tmp_path) / FILE).unlink()
    served["/photo.npz"] = (200, made(tmp_path / "other", value=2.0).read_bytes(), {})
    monkeypatch.delitem(published.PUBLISHED, "photo")  # nobody knows what it should be but the record
    with pytest.raises(ValueError, match=r"amazon_electronics_photo\.npz as fetched .* is not the file .* before"):
        datasets.load("photo", tmp_path / "root", cache=tmp_path / "d", download=True)
    assert files(tmp_path) == ["SHA256SUMS"]
    assert (place(tmp_path) / "SHA256SUMS").read_text() == before


def test_damaged_records_are_named(tmp_path, served):
    place(tmp_path).mkdir(parents=True)
    (place(tmp_path) / "SHA256SUMS").write_text("what?\n")
    with pytest.raises(ValueError, match="SHA256SUMS is damaged"):
        datasets.load("photo", tmp_path / "root", download=True)


def test_a_changed_file_among_fetched_ones_is_named(tmp_path):
    raw = tmp_path / "Planetoid" / "Cora"
    (raw / "raw").mkdir(parents=True)
    (raw / "raw" / "ind.cora.x").write_bytes(b"changed")
    (raw / "SHA256SUMS").write_text(f"{'0' * 64}  raw/ind.cora.x\n")
    with pytest.raises(ValueError, match=r"ind\.cora\.x has changed since it was fetched"):
        fetch.fetch_set(sources.SOURCES["cora"], raw)


def test_the_command_line_fetches_when_told_to(tmp_path, served):
    root = ["--data", tmp_path / "root"]
    assert "--download" in refuse("datasets", "photo", *root)
    said = ask("datasets", "photo", *root, "--download")
    assert str(tmp_path / "root") in said
    assert "a processed copy, which loads faster, is kept as" in said
    assert "120" in said
    assert "a processed copy" not in ask("datasets", "photo", *root)  # once is enough
    assert "--edges" in refuse("train", "--edges", "e.csv", "--download", "--out", tmp_path / "o")
    assert "name it" in refuse("datasets", "--download")
