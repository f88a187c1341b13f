"""unspool models: everything that exists is listed with its settings, and nothing else."""

import json
import sys

import pytest

import unspool as us
from cli.people import ask, refuse
from unspool import models
from unspool.reproduce.presets import OFFICIAL, PAPER

PRESETS = {"paper": PAPER, "official": OFFICIAL}


def lines(*arguments):
    return [json.loads(line) for line in ask(*arguments, "--json").splitlines()]


def test_every_model_is_listed_with_its_problem():
    text, records = ask("models"), lines("models")
    assert [record["model"] for record in records] == [kind.__name__ for kind in models.MODELS]
    for kind, record in zip(models.MODELS, records, strict=True):
        made = kind(4, 2)
        assert kind.__name__ in text
        assert (record["objective"], record["derivation"]) == (str(made.objective), made.derivation)
        assert record["title"]


@pytest.mark.parametrize("kind", models.MODELS, ids=lambda kind: kind.__name__)
def test_a_model_is_listed_with_its_settings(kind):
    (record,) = lines("models", kind.__name__.lower())
    assert list(record["settings"]) == list(kind.schema)
    text = ask("models", kind.__name__)
    for name, told in record["settings"].items():
        one = kind.schema[name]
        assert told == {"default": one.shown(one.default), "takes": one.typed, "meaning": one.meaning}
        assert told["meaning"]
        # What is shown can be typed: through --setting it is the default again.
        assert one.default is None or one.parse(told["default"]) == one.default
        assert name in text


@pytest.mark.parametrize("kind", models.MODELS, ids=lambda kind: kind.__name__)
def test_every_choice_that_is_listed_can_be_typed(kind):
    (record,) = lines("models", kind.__name__)
    for name, told in record["settings"].items():
        if told["takes"].startswith("one of "):
            for word in told["takes"].removeprefix("one of ").removesuffix(" or none").split(", "):
                typed = word.replace("...", "2")  # fields of objects are numbers
                assert kind.schema[name].shown(kind.schema[name].parse(typed)) == typed


@pytest.mark.parametrize("which", PRESETS)
def test_the_presets_of_a_model_are_listed(which):
    rows = [row for row in ask("models", "GCNII").splitlines() if which in row]
    for where in ("cora", "citeseer", "pubmed", "cs", "photo"):
        try:
            trial = PRESETS[which].trial(models.GCNII, where)
        except ValueError:
            assert not any(f" {where} " in row for row in rows)
            continue
        (row,) = [row for row in rows if f" {where} " in row]
        assert f" {trial.config.lr:g} " in row


def test_presets_tell_what_is_decayed_and_what_is_searched():
    ugdgnn, ppnp = (ask("models", name) for name in ("ugdgnn", "ppnp"))
    assert "0.0005" in ugdgnn
    assert "gate" not in ugdgnn  # one number for all groups
    assert "prints no settings" not in ugdgnn
    assert "first=0.005" in ppnp  # of the official settings: the first layer alone
    assert (
        "The paper prints no settings of PPNP: its rows are where a search over dropout, lr, teleport, weight_decay begins"
        in ppnp
    )


OWN = """
import torch, unspool as us


class Calm(us.models.Model):
    title = "as calm as can be"
    depth: int = us.setting(3, "number of steps", at_least=1)
    pull: float | None = us.setting(None, "how strongly", of=float, above=0)

    def build(self):
        self.p_pre = us.nn.Linear(self.in_features, self.out_features)
        self.propagation = us.unroll(us.Fidelity(0.3) + us.Smoothness(0.7), us.GradientDescent(step=0.5), self.depth)


class Plain(torch.nn.Module):
    def __init__(self, in_features, out_features, *, width, bias=True):
        super().__init__()
"""


def test_a_class_of_ones_own_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "own_to_list.py").write_text(OWN)
    (record,) = lines("models", "own_to_list:Calm")
    assert record["model"] == "own_to_list:Calm"
    assert record["title"] == "as calm as can be"
    assert record["objective"] == str(us.Fidelity(0.3) + us.Smoothness(0.7))
    assert record["settings"]["pull"] == {
        "default": "none",
        "takes": "a finite number above 0 or none",
        "meaning": "how strongly",
    }
    (record,) = lines("models", "own_to_list:Plain")  # it cannot be built without a width, and is shown all the same
    assert list(record["settings"]) == ["width", "bias"]
    assert record["settings"]["width"]["default"] == ""
    assert "preset" not in ask("models", "own_to_list:Calm")
    assert refuse("models", "own_to_list:Wild").startswith("NAME own_to_list:Wild: expected package.module:Class")
