"""Files that torch.save wrote of PyTorch Geometric's objects: the same data as the objects, and nothing of them is run."""

import pickle
import zipfile

import pytest
import torch
from torch_geometric.data import Data, HeteroData

from unspool import datasets
from unspool.errors import DataError, IncompatibleError, InputError

pytestmark = pytest.mark.filterwarnings("ignore::unspool.graph.EdgeDirectionWarning")


def example(**more):
    draw = torch.Generator().manual_seed(0)
    parts = torch.randperm(30, generator=draw)
    masks = {
        f"{part}_mask": torch.isin(torch.arange(30), parts[i::3]) for i, part in enumerate(("train", "val", "test"))
    }
    index = torch.randint(0, 30, (2, 80), generator=draw)
    return Data(x=torch.randn(30, 4, generator=draw), edge_index=index, y=torch.arange(30) % 3, **masks, **more)


def saved(place, held, name="data.pt"):
    torch.save(held, place / name)
    return place / name


def forms(data):
    """What people have in files: the object, PyG's processed form, and plain tensors."""
    return {"object": data, "processed": (data.to_dict(), None, Data), "two": (data, None), "tensors": data.to_dict()}


@pytest.mark.parametrize("form", ["object", "processed", "two", "tensors"])
def test_a_file_is_read_as_the_object_is(tmp_path, form):
    data = example(edge_weight=torch.rand(80, generator=torch.Generator().manual_seed(1)))
    file = datasets.from_files(saved(tmp_path, forms(data)[form]))
    held = datasets.from_pyg(data)
    assert (file.hash, file.split, file.notes) == (held.hash, held.split, held.notes)
    assert file.name == "data"
    assert datasets.from_files(tmp_path / "data.pt", directed=True, name="mine").directed


def test_fractions_are_numbers_to_predict(tmp_path):
    data = example()
    data.y = torch.randn(30, generator=torch.Generator().manual_seed(0))
    data.train_mask = data.val_mask = data.test_mask = None
    file = datasets.from_files(saved(tmp_path, data))
    assert torch.equal(file.targets[:, 0], data.y)
    assert torch.equal(datasets.from_pyg(data).targets, file.targets)


def test_several_edge_attributes(tmp_path):
    data = example(edge_attr=torch.rand(80, 3, generator=torch.Generator().manual_seed(1)))
    file = saved(tmp_path, data)
    with pytest.raises(DataError) as caught:
        datasets.from_files(file)
    assert caught.value.where == "data.pt, edge_attr"
    with pytest.raises(DataError):
        datasets.from_pyg(data)
    chosen = datasets.from_files(file, weight_column="1")
    assert chosen.hash == datasets.from_pyg(data, weight_column=1).hash
    assert chosen.notes[-1].endswith("only 1 is used, as the weight")
    data.edge_weight = data.edge_attr[:, 1]
    assert datasets.from_pyg(data).hash == chosen.hash
    assert "none is used" in datasets.from_pyg(data).notes[-1]
    assert datasets.from_files(file, drop_columns=["edge_attr"]).edge_weight is None
    for wrong in ("3", "-1", "x"):
        with pytest.raises((DataError, InputError)):
            datasets.from_files(file, weight_column=wrong)


def hetero():
    data = HeteroData()
    data["a"].x, data["b"].x = torch.ones(2, 1), torch.ones(2, 1)
    data["a", "to", "b"].edge_index = torch.tensor([[0], [1]])
    return data


def test_hetero_data_is_refused_as_such(tmp_path):
    for form in (hetero(), (hetero().to_dict(), None, HeteroData)):
        with pytest.raises(IncompatibleError, match="HeteroData"):
            datasets.from_files(saved(tmp_path, form))
    with pytest.raises(IncompatibleError, match="HeteroData"):
        datasets.from_pyg(hetero())


def test_nothing_is_read_beside_it(tmp_path):
    file = saved(tmp_path, example())
    (tmp_path / "x.csv").write_text("id,a\n0,1\n")
    for argument, value in {
        "features": tmp_path / "x.csv",
        "label_column": "y",
        "one_hot": ["a"],
        "header": False,
    }.items():
        with pytest.raises(InputError) as caught:
            datasets.from_files(file, **{argument: value})
        assert caught.value.argument == argument


class Canary:
    """Leaves a file when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return open, (str(self.mark), "w")


@pytest.mark.parametrize("held", ["alone", "inside"])
def test_code_in_a_file_is_not_run(tmp_path, held):
    canary = Canary(tmp_path / "mark")
    file = saved(tmp_path, canary if held == "alone" else {"edge_index": torch.tensor([[0], [1]]), "x": canary})
    with pytest.raises(DataError, match="code of a file is not run"):
        datasets.from_files(file)
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    "what",
    ["empty", "text", "cut", "pickle", "zip", "list", "no edges", "several", "sparse", "short y", "far"],
)
def test_bad_files_end_in_a_sentence(tmp_path, what, monkeypatch):
    file = tmp_path / "d.pt"
    whole = saved(tmp_path, example(), "whole.pt").read_bytes()
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a", "b")
    raw = {
        "empty": b"",
        "text": b"hello",
        "cut": whole[: len(whole) // 2],
        "pickle": pickle.dumps({"a": 1}),
        "zip": (tmp_path / "other.zip").read_bytes(),
    }
    held = {
        "list": [1, 2, 3, 4], "no edges": {"x": torch.ones(2, 2)}, "several": (example(), {"x": torch.tensor([0, 5, 9])}),
        "sparse": {"edge_index": torch.eye(3).to_sparse()}, "short y": {"edge_index": torch.tensor([[0], [1]]), "x": torch.ones(2, 1), "y": torch.ones(7)},
        "far": {"edge_index": torch.tensor([[0], [9]]), "x": torch.ones(2, 1)},
    }  # fmt: skip
    if what in raw:
        file.write_bytes(raw[what])
    else:
        torch.save(held[what], file)
    with pytest.raises((ValueError, TypeError)) as caught:
        datasets.from_files(file)
    assert "d.pt" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_changed_byte_is_either_harmless_or_a_sentence(tmp_path):
    whole = saved(tmp_path, example(), "whole.pt").read_bytes()
    refused = []
    for place in range(7, len(whole), len(whole) // 60):
        damaged = bytearray(whole)
        damaged[place] ^= 255
        (tmp_path / "d.pt").write_bytes(bytes(damaged))
        try:
            datasets.from_files(tmp_path / "d.pt")
        except (ValueError, TypeError) as problem:
            refused.append(str(problem))
    assert refused
    assert all("d.pt" in said and "\n" not in said for said in refused)
