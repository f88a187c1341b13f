"""Saving and coming back: whole or not at all, and in words when something is wrong."""

import pickle

import numpy as np
import pytest
import torch

from reference.cases import CASES, IN, OUT, build, converted_models, edge_lists, signal
from unspool import models
from unspool.files import write_sealed

INDEX, WEIGHTS, NODES = edge_lists()["weighted"]


@pytest.mark.parametrize("name", CASES)
def test_every_model_comes_back(name, tmp_path):
    file, x = tmp_path / "model.pt", signal(NODES)
    model = build(name)
    model(x, INDEX, WEIGHTS)  # dropout has counted
    models.save(model, file)
    again = models.load(file)
    assert type(again) is type(model)
    assert str(again.settings) == str(model.settings)
    assert not again.training
    assert torch.equal(again(x, INDEX, WEIGHTS), model.eval()(x, INDEX, WEIGHTS))
    assert torch.equal(again.train()(x, INDEX, WEIGHTS), model.train()(x, INDEX, WEIGHTS))  # and counts on


@pytest.mark.parametrize("name", converted_models())
def test_converted_models_come_back(name, tmp_path):
    file, x, model = tmp_path / "model.pt", signal(NODES), converted_models()[name]
    models.save(model, file)
    again = models.load(file)
    assert torch.equal(again(x, INDEX, WEIGHTS), model.eval()(x, INDEX, WEIGHTS))
    models.save(again, file)
    assert torch.equal(models.load(file)(x, INDEX, WEIGHTS), model(x, INDEX, WEIGHTS))


def test_single_precision_comes_back_as_it_was(tmp_path):
    model, x = models.GCNII(IN, OUT).eval(), signal(NODES).float()
    models.save(model, str(tmp_path / "model.pt"))
    assert torch.equal(models.load(str(tmp_path / "model.pt"))(x, INDEX), model(x, INDEX))


def test_numbers_of_numpy_and_torch_are_saved_as_numbers(tmp_path):
    file = tmp_path / "model.pt"
    models.save(models.APPNP(IN, OUT, teleport=np.float64(0.2), depth=np.int64(3), dropout=torch.tensor(0.5)), file)
    assert models.load(file).settings["teleport"] == 0.2
    models.save(models.GPRGNN(IN, OUT, depth=2, start=models.HopStart.WARM, warm=np.arange(3.0)), file)
    assert models.load(file).settings["warm"] == [0.0, 1.0, 2.0]


def test_an_interrupted_save_leaves_the_old_file(tmp_path, monkeypatch):
    file, old = tmp_path / "model.pt", build("APPNP")
    models.save(old, file)
    before = file.read_bytes()

    def broken(content, where):
        where.write(b"half of it")
        raise OSError("no space left on device")

    monkeypatch.setattr(torch, "save", broken)
    with pytest.raises(OSError, match="no space"):
        models.save(build("GCN"), file)
    with pytest.raises(OSError, match="no space"):
        models.save(build("GCN"), tmp_path / "new.pt")
    monkeypatch.undo()
    assert file.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.pt"]


def test_an_old_file_is_replaced(tmp_path):
    file = tmp_path / "model.pt"
    models.save(build("APPNP"), file)
    models.save(build("GCN"), file)
    assert isinstance(models.load(file), models.GCN)
    assert [p.name for p in tmp_path.iterdir()] == ["model.pt"]


class Bad:
    """Runs code where it is unpickled."""

    def __reduce__(self):
        return exec, ("raise SystemExit('code ran')",)


def written(path, content):
    write_sealed(path, lambda file: torch.save(content, file))
    return path


def cut(path):
    models.save(build("APPNP"), path)
    path.write_bytes(path.read_bytes()[:-200])
    return path


def changed(path, **changes):
    models.save(build("APPNP"), path)
    return written(path, torch.load(path, weights_only=True) | changes)


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (lambda path: path, "there is no checkpoint .*model.pt"),
        (lambda path: path.parent, "there is no checkpoint"),
        (cut, "is no checkpoint of unspool, or is damaged"),
        (lambda path: path.write_bytes(b"") or path, "is damaged"),
        (lambda path: path.write_text("hello") and path, "is damaged"),
        (lambda path: path.write_bytes(pickle.dumps(Bad())) and path, "is damaged"),
        (lambda path: written(path, {"format": 1, "model": Bad(), "state": {}}), "is damaged"),
        (lambda path: written(path, torch.ones(3)), "holds no model; write it with unspool.models.save"),
        (lambda path: written(path, torch.nn.Linear(2, 2).state_dict()), "holds no model"),
        (lambda path: changed(path, format=99), "has format 99, this version reads 1; update unspool"),
        (lambda path: changed(path, model="Transformer"), "holds a 'Transformer', which this version"),
        (lambda path: changed(path, settings={"hidden": 4, "depth": 4, "breadth": 2}), "does not fit its own .*breadth"),
        (lambda path: changed(path, in_features=9), "does not fit its own description: .*size mismatch"),
        (lambda path: changed(path, state={}), "does not fit its own description: .*Missing"),
        (lambda path: changed(path, state="none"), "does not fit its own description"),
        (lambda path: changed(path, settings=None), "does not fit its own description"),
    ],
)  # fmt: skip
def test_files_that_are_no_checkpoints_are_named(prepare, words, tmp_path):
    path = prepare(tmp_path / "model.pt")
    with pytest.raises((FileNotFoundError, ValueError), match=f"(?s){words}"):
        models.load(path)


def test_what_cannot_be_saved_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"the folder .*nowhere does not exist; make it first"):
        models.save(build("GCN"), tmp_path / "nowhere" / "model.pt")

    class Mine(models.GCN):
        pass

    with pytest.raises(TypeError, match="Mine is no model of this package"):
        models.save(Mine(3, 2), tmp_path / "model.pt")
    with pytest.raises(TypeError, match="Linear is no model of this package"):
        models.save(torch.nn.Linear(2, 2), tmp_path / "model.pt")
    odd = build("GCN")
    odd.settings["colour"] = object()
    with pytest.raises(TypeError, match="cannot be saved"):
        models.save(odd, tmp_path / "model.pt")
    assert not list(tmp_path.iterdir())
