"""Ways to spoil the folder of a trained model, drawn from a seed: each takes a file and a generator, and says what it did."""

import gzip
import hashlib
import json
import os
import random
import shutil

import torch
from safetensors.torch import load, save

from unspool.models.pretrained import read_card, write_card


def flip(file, chance):
    """Some bits."""
    held = bytearray(file.read_bytes())
    for _ in range(chance.choice([1, 1, 2, 8])):
        held[chance.randrange(len(held))] ^= 1 << chance.randrange(8)
    file.write_bytes(held)


def cut(file, chance):
    """The end is missing."""
    held = file.read_bytes()
    file.write_bytes(held[: chance.randrange(len(held))])


def overwrite(file, chance):
    """A stretch of it is something else."""
    held = bytearray(file.read_bytes())
    at, many = chance.randrange(len(held)), chance.choice([1, 16, 512])
    held[at : at + many] = chance.choice([bytes(many), b"\xff" * many, chance.randbytes(many)])
    file.write_bytes(held)


def insert(file, chance):
    """Something stands in the middle, or at the end."""
    held = file.read_bytes()
    at = chance.choice([0, chance.randrange(len(held)), len(held)])
    file.write_bytes(held[:at] + chance.choice([b"\0", b"\n", b"{}", chance.randbytes(9)]) + held[at:])


def empty(file, chance):
    """Nothing is left."""
    file.write_bytes(b"")


def swap(file, chance):
    """Two halves in the wrong order."""
    held = file.read_bytes()
    at = chance.randrange(1, len(held))
    file.write_bytes(held[at:] + held[:at])


def recode(file, chance):
    """The same content in another code."""
    held = file.read_bytes()
    file.write_bytes(chance.choice([gzip.compress, lambda b: b"\xef\xbb\xbf" + b, lambda b: b.hex().encode()])(held))


def take_another(file, chance):
    """A file of its neighbourhood in its place."""
    others = sorted(path for path in file.parent.iterdir() if path.is_file() and path != file)
    shutil.copy(chance.choice(others), file)


def remove(file, chance):
    """It is gone."""
    file.unlink()


def replace(file, chance):
    """Something that is not a file in its place."""
    file.unlink()
    kind = chance.choice(["folder", "pipe", "pipe", "loop", "nowhere", "null"])
    if kind == "folder":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to({"loop": file, "nowhere": file.parent / "no", "null": "/dev/null"}[kind])


def nest(file, chance):
    """JSON without an end to its depth."""
    file.write_text(chance.choice(["[", '{"data":', '{"origin":{"origin":']) * chance.choice([50, 2000, 200_000]))


#: What can happen to any file.
ANY = [flip, cut, overwrite, insert, empty, swap, recode, take_another, remove, replace, nest]


# -- with checksums that fit: whoever makes a file can make them, too --------------------------------------------------


def _tensors(place, change):
    card = read_card(place)
    old = place / card["weights"]
    content = save(change(load(old.read_bytes())))
    old.unlink()
    mark = hashlib.sha256(content).hexdigest()
    name = f"weights-{mark[:12]}.safetensors"
    (place / name).write_bytes(content)
    write_card(place, {**card, "weights": name, "weights_sha256": mark})


def tensor(place, chance):
    """One tensor of another name, kind, shape or content."""

    def change(state):
        name = chance.choice(sorted(state))
        value = state.pop(name)
        made = {
            "gone": lambda: {},
            "renamed": lambda: {f"{name}.x": value},
            "twice": lambda: {name: value, f"{name}2": value.clone()},
            "double": lambda: {name: value.double() if value.is_floating_point() else value.float()},
            "half": lambda: {name: value.half()},
            "whole": lambda: {name: value.to(torch.int32)},
            "flat": lambda: {name: value.reshape(-1, 1, 1).contiguous()},
            "larger": lambda: {name: torch.zeros([*value.shape, 2], dtype=value.dtype)},
            "none": lambda: {name: torch.zeros([0], dtype=value.dtype)},
            "nan": lambda: {name: torch.full_like(value.float(), torch.nan)},
            "inf": lambda: {name: torch.full_like(value.float(), torch.inf)},
        }
        return {**state, **made[chance.choice(sorted(made))]()}

    _tensors(place, change)


def setting(place, chance):
    """A setting, a width or an origin that the weights do not fit, or that no machine could build."""
    card = read_card(place)
    huge = chance.choice([10**7, 10**12, 10**30, 2**63, -1, 0, 1.5, "8", None, [8], True])
    where = chance.choice(
        ["hidden", "depth", "dropout", "in_features", "out_features", "origin", "solved_exactly", "model", "other"]
    )
    if where in ("in_features", "out_features", "solved_exactly", "model"):
        card[where] = chance.choice([huge, "os:system", "torch.nn:Linear"]) if where == "model" else huge
    elif where == "origin":
        card["origin"] = chance.choice(["filter", {**card}, {"model": "GCN"}, 3, [], "x" * 1000])
    else:
        card["settings"] = {**card["settings"], where: huge}
    write_card(place, card)


def path(place, chance):
    """Weights that are to be found elsewhere."""
    names = [
        "../seed1/w",
        "/etc/passwd",
        "..",
        "",
        ".",
        "a\0b",
        "x" * 300,
        "model.json",
        "\udcff",
        "C:\\w",
        "history.csv",
    ]
    write_card(place, {**read_card(place), "weights": chance.choice(names)})


def marks(place, chance):
    """Checksums that are not checksums."""
    card = read_card(place)
    card["weights_sha256"] = chance.choice(
        [None, "", 5, card["weights_sha256"].upper(), card["weights_sha256"][:12], ["a"]]
    )
    write_card(place, card)


def doubled(place, chance):
    """Keys twice: which one counts?"""
    text = (place / "model.json").read_text()
    (place / "model.json").write_text(text.replace("{", '{"weights": "other", "model": "MLP",', 1))
    assert json.loads(text)


#: What can be made of a folder.
CRAFTED = [tensor, tensor, tensor, setting, setting, path, marks, doubled]


def cases(many, seed=0):
    """Some attacks: (number, the way, the file it spoils or None for the whole folder, a generator of its own)."""
    chance = random.Random(seed)
    for number in range(many):
        crafted = chance.random() < 0.4
        way = chance.choice(CRAFTED if crafted else ANY)
        what = None if crafted else chance.choice(["model.json", "weights", "history.csv", "run.pt"])
        yield number, way, what, random.Random(chance.random())
