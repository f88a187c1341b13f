"""A folder counts when its card is there and fits; graphs and hops on the disk are such folders, and test it thoroughly."""

import json

import pytest

from unspool.errors import DataError
from unspool.files import write_sealed
from unspool.sealed_folder import FolderKind, digest, file_of

TOY = FolderKind(
    what="toy", card="toy.json", format=2, work=".toying", absent="there is no toy", unfinished="a toy is half made", foreign="it is no toy's",
    make="make one", again="make it again", go_on="go on",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    file_of(tmp_path, "a").write_bytes(b"12")
    file_of(tmp_path, "b.txt").write_bytes(b"")
    TOY.seal(tmp_path, ["a", "b.txt"], size=3)
    return tmp_path


def test_what_was_sealed_is_opened(folder):
    card = TOY.opened(folder, check=True)
    assert (card["size"], list(card["arrays"])) == (3, ["a", "b.txt"])
    assert card["arrays"]["a"] == {"bytes": 2, "sha256": digest(folder / "a.bin")}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda p: (p / "toy.json").unlink(), "there is no toy; make it again"),
        (lambda p: ((p / "toy.json").unlink(), (p / ".toying").mkdir()), "a toy is half made; go on"),
        (lambda p: (p / "toy.json").write_bytes(b"{}"), r"it is damaged \(it carries no checksum\); make it again"),
        (lambda p: (p / "a.bin").unlink(), "its file a.bin is missing"),
        (lambda p: (p / "a.bin").write_bytes(b"1"), "it has 1 bytes, not the 2 that were written"),
        (lambda p: (p / "a.bin").write_bytes(b"13"), "its checksum does not match"),
        (lambda p: replaced("what", "game").seal(p, ["a"]), "it is no toy's"),
        (lambda p: replaced("format", 1).seal(p, ["a"]), "it has format 1, and this version reads 2"),
    ],
)
def test_what_does_not_fit_is_one_sentence(change, sentence, folder):
    change(folder)
    with pytest.raises(DataError, match=sentence):
        TOY.opened(folder, check=True)


def replaced(name, value):
    return FolderKind(**{**vars(TOY), name: value})


def test_a_place_that_is_none(folder):
    for place, what in ((folder / "nowhere", "does not exist"), (folder / "a.bin", "is a file, not a folder")):
        with pytest.raises(FileNotFoundError, match=f"{what}; check the path, or make one"):
            TOY.opened(place, check=False)


@pytest.mark.parametrize("arrays", [None, ["a"], {"a": 3}, {"a": {"bytes": 2}}, {"../a": {"bytes": 2, "sha256": ""}}])
def test_a_card_that_does_not_list_its_files_is_refused(arrays, folder):
    card = json.dumps({"format": 2, "what": "toy", "arrays": arrays}).encode()
    write_sealed(folder / "toy.json", lambda file: file.write(card))
    with pytest.raises(DataError, match="it does not say which files belong to it; make it again"):
        TOY.opened(folder, check=False)
