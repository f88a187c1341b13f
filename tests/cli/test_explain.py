"""unspool explain: folders, names, data from the card and from files."""

import json

import pytest
import torch

import unspool as us
from unspool import datasets
from unspool.cli.data_options import DataOptions
from unspool.cli.explain import run
from unspool.explain import explain
from unspool.models.pretrained import save_pretrained

pytestmark = pytest.mark.long


PNG = b"\x89PNG\r\n\x1a\n"


def ask(checkpoint, node, **changes):
    """Run the command with defaults for what is not said."""
    said = {"model": None, "target": None, "against": None, "top": 10, "out": None, "as_json": False, **changes}
    source = DataOptions(**{name: said.pop(name) for name in ("edges", "features", "data") if name in said})
    run(checkpoint, node, source, **said)


@pytest.fixture(scope="module")
def citeseer():
    return datasets.load("citeseer")


def facts(data, **more):
    described = {"name": data.name, "hash": data.hash, "classes": list(data.classes), "source": {"dataset": "citeseer"}}
    return {"data": {**described, **more}, "task": {"kind": "classes", "score": "accuracy"}}


@pytest.fixture
def trained(tmp_path, citeseer):
    """A folder as training writes it, on row-normalised features."""
    torch.manual_seed(0)
    model = us.models.UGDGNN(3703, 6, hidden=8, depth=3)
    ready = citeseer.row_normalised()
    return save_pretrained(model, tmp_path / "seed0", **facts(ready, transforms=["row_normalised"])), model


@pytest.fixture
def files(tmp_path):
    """Four people, whose features and names stand in files."""
    edges, people = tmp_path / "friends.csv", tmp_path / "people.csv"
    edges.write_text("source,target\nada,bob\nbob,cem\ncem,dee\n")
    people.write_text("id,age,height\nada,3.6,1\nbob,4.1,2\ncem,2.9,0\ndee,5.0,1\n")
    return edges, people


def test_data_come_from_the_card_with_its_transforms(trained, citeseer, capsys):
    folder, model = trained
    ask(folder, "5", as_json=True, top=3)
    held = json.loads(capsys.readouterr().out)
    ready = citeseer.row_normalised()
    expected = explain(model, ready.features, ready.graph, 5)
    assert held["score"] == pytest.approx(expected.score.value, abs=1e-6)
    assert held["outputs"] == pytest.approx(expected.score.outputs.tolist(), abs=1e-6)
    assert held["classes"] == list(citeseer.classes)
    assert held["notes"] == []
    assert held["label"] == int(citeseer.labels[5])
    assert len(held["nodes"]) == 4
    assert held["picture"] is None


def test_text_names_classes_and_draws(trained, tmp_path, capsys):
    out = tmp_path / "new" / "a.png"
    ask(trained[0], "100", out=out, against="runner-up")
    text = capsys.readouterr().out
    assert "UGDGNN at node 100, which has 2 neighbours" in text
    assert "minus that of" in text
    assert "true label DB" in text
    assert f"picture: {out}" in text
    assert out.read_bytes()[:8] == PNG


def test_a_class_by_name_or_number(trained, citeseer, capsys):
    for said in ("Agents", "agents", "4"):
        ask(trained[0], "100", against=said, as_json=True)
        assert json.loads(capsys.readouterr().out)["against"] == citeseer.classes.index("Agents")
    ask(trained[0], "100", target="HCI", against="0", as_json=True)
    held = json.loads(capsys.readouterr().out)
    assert (held["target"], held["against"]) == (citeseer.classes.index("HCI"), 0)
    assert held["score"] == pytest.approx(held["outputs"][held["target"]] - held["outputs"][0], abs=1e-9)
    with pytest.raises(ValueError, match="--target runner-up"):
        ask(trained[0], "100", target="runner-up")
    with pytest.raises(ValueError, match="--against Cooks: expected runner-up or one of the classes AI, ML"):
        ask(trained[0], "100", against="Cooks")


def test_other_data_than_in_training_are_noted(tmp_path, citeseer, capsys):
    folder = save_pretrained(us.models.SGC(3703, 6), tmp_path / "a", **facts(citeseer, hash="0" * 32))
    ask(folder, "5")
    said = capsys.readouterr()
    assert len(said.err.splitlines()) == 1
    assert "differs from the data the model was trained on" in said.err
    ask(folder, "5", as_json=True)
    assert "differs" in json.loads(capsys.readouterr().out)["notes"][0]


def test_a_card_may_say_no_more_of_its_data_than_their_name(tmp_path, citeseer, capsys):
    card = {"data": {"name": "CiteSeer", "hash": citeseer.hash}}
    ask(save_pretrained(us.models.SGC(3703, 6), tmp_path / "a", **card), "5", as_json=True)
    held = json.loads(capsys.readouterr().out)
    assert held["notes"] == []
    assert held["classes"] == list(citeseer.classes)


def test_own_files_and_names(tmp_path, files, capsys):
    file = us.save(us.models.GPRGNN(2, 3, depth=2), tmp_path / "model")
    ask(file, "cem", edges=files[0], features=files[1])
    text = capsys.readouterr().out
    assert "GPRGNN at node cem, which has 2 neighbours" in text
    assert "dee" in text
    with pytest.raises(ValueError, match="no node is called 'cen'; the nearest name is 'cem'"):
        ask(file, "cen", edges=files[0], features=files[1])
    with pytest.raises(ValueError, match="--features belongs to your own files; name the graph with --edges"):
        ask(file, "cem", features=files[1])


def test_files_named_by_the_card(tmp_path, files, capsys):
    labels = tmp_path / "teams.csv"
    labels.write_text("id,label\nada,red\nbob,green\ncem,blue\ndee,\n")
    source = {"edges": str(files[0]), "features": str(files[1]), "labels": str(labels), "split": "random"}
    known = DataOptions(edges=files[0], features=files[1], labels=labels).load(split_or_none=True).hash
    held = {"data": {"name": "friends", "hash": known, "classes": ["blue", "green", "red"], "source": source}}
    folder = save_pretrained(us.models.SGC(2, 3), tmp_path / "a", **held)
    ask(folder, "bob", as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert (found["name"], found["classes"][found["label"]]) == ("bob", "green")
    assert {f["name"] for f in found["features"]} == {"age", "height"}
    files[0].unlink()
    with pytest.raises(FileNotFoundError, match=r"friends\.csv, which is not here; give the data with --edges"):
        ask(folder, "bob")


def test_numbers_have_no_classes(tmp_path, files, capsys):
    folder = save_pretrained(us.models.SGC(2, 1), tmp_path / "a", task={"kind": "numbers", "score": "rmse"})
    ask(folder, "bob", edges=files[0], features=files[1])
    assert "explained: the output =" in capsys.readouterr().out
    folder = save_pretrained(us.models.SGC(2, 3), tmp_path / "c", task={"kind": "numbers", "score": "rmse"})
    ask(folder, "bob", edges=files[0], features=files[1], target="2")
    text = capsys.readouterr().out
    assert "explained: the output 2 =" in text
    assert "predicted" not in text
    two = {"data": {"classes": ["no", "yes"]}, "task": {"kind": "binary"}}
    ask(save_pretrained(us.models.SGC(2, 1), tmp_path / "b", **two), "bob", edges=files[0], features=files[1])
    assert "positive: yes" in capsys.readouterr().out


def test_double_precision_models_take_the_data_as_they_are(tmp_path, files, capsys):
    folder = save_pretrained(us.models.APPNP(2, 3).double(), tmp_path / "a")
    ask(folder, "bob", edges=files[0], features=files[1], as_json=True)
    parts = json.loads(capsys.readouterr().out)["parts"]
    assert abs(parts["remainder"]) < 1e-12


def test_what_is_missing_is_one_sentence(tmp_path, files):
    bare = save_pretrained(us.models.SGC(2, 3), tmp_path / "bare")
    with pytest.raises(us.IncompatibleError, match="does not say which data it was trained on; give them with --edges"):
        ask(bare, "0")
    with pytest.raises(FileNotFoundError, match="there is no model"):
        ask(tmp_path / "no", "0")
    with pytest.raises(ValueError, match=r"written as \.png, \.svg or \.pdf"):
        ask(bare, "0", out=tmp_path / "a.gif")
    strange = save_pretrained(us.models.SGC(2, 3), tmp_path / "c", data={"transforms": ["whitened"]})
    with pytest.raises(us.IncompatibleError, match="after 'whitened', which this version does not know"):
        ask(strange, "ada", edges=files[0], features=files[1])
    with pytest.raises(ValueError, match="no node 9: nodes are counted from 0 to 3"):
        ask(bare, "9", edges=files[0], features=files[1])
    with pytest.raises(ValueError, match="features"):
        ask(bare, "ada", edges=files[0])
