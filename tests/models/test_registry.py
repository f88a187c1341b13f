"""Models by name: people may name anything that can be imported, files only what is known, registered, or given by a person."""

import importlib
import sys
from importlib.metadata import EntryPoint

import pytest
import torch
from torch import nn

import unspool as us
from unspool import models
from unspool.models import registry
from unspool.models.registry import GROUP, find_model, find_stored, name_of, registered, shipped, unnamed
from unspool.train import Trial


class Mine(models.GCN):
    """Of one's own."""

    class Inner(nn.Module):
        """Inside another."""


def problem(call):
    with pytest.raises(us.InputError) as caught:
        call()
    return caught.value


CANARY = """
import builtins
builtins.unspool_canary = True
import torch

class Net(torch.nn.Module):
    def __init__(self, in_features, out_features, width: int = 3):
        super().__init__()
        self.linear = torch.nn.Linear(in_features, out_features)

    def forward(self, x, graph):
        return self.linear(x)

NUMBER = 3
"""


@pytest.fixture
def canary(tmp_path, monkeypatch):
    """A package that sets a flag when it is imported; it exports at the top what it defines in a module."""
    import builtins

    place = tmp_path / "path" / "canary_package"
    place.mkdir(parents=True)
    (place / "__init__.py").write_text("from canary_package.net import Net\n")
    (place / "net.py").write_text(CANARY)
    monkeypatch.syspath_prepend(str(place.parent))
    monkeypatch.setattr(builtins, "unspool_canary", False, raising=False)
    importlib.invalidate_caches()
    yield lambda: builtins.unspool_canary
    for name in [one for one in sys.modules if one.startswith("canary_package")]:
        del sys.modules[name]


def register(monkeypatch, **values):
    """As if installed packages had registered these."""
    entries = [EntryPoint(name, one, GROUP) for name, value in values.items() for one in value.split()]

    def entry_points(group):
        assert group == GROUP == "unspool.models"
        return entries

    monkeypatch.setattr(registry, "entry_points", entry_points)


# -- names that people give --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", models.MODELS)
def test_named_models_are_found_in_any_case(kind):
    name = kind.__name__
    assert shipped()[name] is kind
    for typed in (name, name.lower(), name.upper()):
        assert find_model(typed) is kind
    assert name_of(kind) == name
    assert find_stored(name) is kind
    assert find_model(f"{kind.__module__}:{name}") is kind


@pytest.mark.parametrize(
    ("typed", "hint"),
    [("UGDGN", "UGDGNN"), ("apnp", "APPNP"), ("GPR-GNN", "GPRGNN"), ("Transformer", None)],
)
def test_names_of_nothing_get_the_nearest(typed, hint):
    found = problem(lambda: find_model(typed))
    assert (found.argument, found.value) == ("model", typed)
    assert all(kind.__name__ in found.expected for kind in models.MODELS)
    assert found.hint is None if hint is None else hint in found.hint


@pytest.mark.parametrize("name", [None, 3, models.GCN, b"GCN"])
def test_a_name_is_text(name):
    with pytest.raises(TypeError, match="is not the name of a model"):
        find_model(name)


def test_what_a_person_names_is_imported(canary):
    assert not canary()
    kind = find_model("canary_package:Net")
    assert canary()
    assert name_of(kind) == "canary_package.net:Net"  # where it is at home
    assert find_model(name_of(kind)) is kind
    assert find_model(name_of(Mine.Inner)) is Mine.Inner


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_such_package.models:Net", "no_such_package"),
        ("canary_package.none:Net", r"canary_package\.none"),
        ("canary_package:Missing", "has no Missing"),
        ("canary_package:Net.inner", r"has no Net\.inner"),
        ("canary_package:", "has no"),
        ("canary_package.net:NUMBER", r"a subclass of torch\.nn\.Module"),
        ("torch:relu", r"a subclass of torch\.nn\.Module"),
        ("builtins:dict", r"a subclass of torch\.nn\.Module"),
        (":Net", "the name of a module before the colon"),
        (".net:Net", "the name of a module before the colon"),
        ("a..b:Net", "the name of a module before the colon"),
        ("C:\\models\\net.py", "no module C"),
        ("net.py:Net", "write it without .py: net:Net"),
    ],
)
def test_names_that_cannot_be_imported(name, words, canary):
    found = problem(lambda: find_model(name))
    assert (found.argument, found.value) == ("model", name)
    with pytest.raises(us.InputError, match=words):
        raise found


def test_what_is_wrong_inside_a_module_is_not_taken_for_its_absence(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, line in {
        "lacking": "import not_there_at_all",
        "odd": "raise ValueError('odd')",
        "bare": "None.x",
    }.items():
        (tmp_path / f"canary_{name}.py").write_text(line)
    importlib.invalidate_caches()
    with pytest.raises(ImportError, match=r"^importing canary_lacking failed: .*not_there_at_all"):
        find_model("canary_lacking:Net")
    with pytest.raises(ImportError, match=r"^importing canary_odd failed: ValueError: odd \(canary_odd\.py, line 1\)$"):
        find_model("canary_odd:Net")
    with pytest.raises(ImportError, match=r"^importing canary_bare failed: AttributeError: .*NoneType"):
        find_model("canary_bare:Net")


def test_estimators_and_commands_take_names(canary):
    data = us.datasets.contextual_sbm(nodes=30, classes=2, seed=0)
    clf = us.NodeClassifier("canary_package:Net", width=4, epochs=2)
    assert not canary()
    clf.fit(data.features, data.labels, graph=data.graph)
    assert type(clf.model_).__name__ == "Net"


# -- names that files bring along --------------------------------------------------------------------------------------

FOREIGN = ["canary_package:Net", "canary_package.net:Net", "canary_package", "os:system", "torch.nn:Linear", "Transformer", "gcn", "", None, 3, ["GCN"], {"a": 1}]  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_never_causes_an_import(name, canary):
    before = set(sys.modules)
    with pytest.raises(us.IncompatibleError, match="is not imported just because a file names it"):
        find_stored(name)
    with pytest.raises(us.IncompatibleError):
        find_stored(name, models.GCN)
    assert not canary()
    assert set(sys.modules) == before


def test_a_stored_model_and_a_stored_trial_never_cause_an_import(canary, tmp_path):
    kind = find_model("canary_package:Net")
    model = kind(3, 2)
    us.save(model, tmp_path / "model", built_from=models.BuiltFrom(3, 2, {"width": 5}))
    plain = Trial(kind, {"width": 5}).to_plain()
    import builtins

    for name in [one for one in sys.modules if one.startswith("canary_package")]:
        del sys.modules[name]
    builtins.unspool_canary = False
    for read in (lambda: us.load(tmp_path / "model"), lambda: Trial.from_plain(plain)):
        with pytest.raises(us.IncompatibleError, match=r"canary_package\.net:Net, which is not imported"):
            read()
    assert not canary()
    again = find_model("canary_package:Net")  # a person names it
    assert Trial.from_plain(plain, again).settings == {"width": 5}
    loaded = us.load(tmp_path / "model", model=again)
    assert torch.equal(loaded.linear.weight, model.linear.weight)
    assert loaded.card["settings"] == {"width": 5}


def test_the_class_that_is_given_must_be_the_one_that_is_named():
    assert find_stored(name_of(Mine), Mine) is Mine
    assert find_stored("Mine", Mine) is Mine  # of a script that has moved
    with pytest.raises(us.IncompatibleError, match=r"the file holds a model GCN, and not .*:Mine; name that one"):
        find_stored("GCN", Mine)
    assert find_stored("GCN", models.GCN) is models.GCN


def test_a_class_that_is_called_like_a_named_model_is_not_it():
    other = type("GCN", (models.GCN,), {"__module__": "my_models"})
    assert name_of(other) == "my_models:GCN"
    with pytest.raises(us.IncompatibleError):
        find_stored(name_of(other))
    assert find_stored(name_of(other), other) is other


def test_a_class_of_a_script_has_the_name_of_the_script(monkeypatch, tmp_path):
    from types import ModuleType

    script = ModuleType("__main__")
    script.__file__, script.__spec__ = str(tmp_path / "my_script.py"), None
    monkeypatch.setitem(sys.modules, "__main__", script)
    kind = type("Net", (nn.Module,), {"__module__": "__main__"})
    assert name_of(kind) == "my_script:Net"
    del script.__file__
    assert name_of(kind) == "__main__:Net"  # in a notebook


# -- names that packages register --------------------------------------------------------------------------------------


def test_registered_models_are_found_by_people_and_files(canary, monkeypatch):
    register(monkeypatch, CanaryNet="canary_package.net:Net")
    assert list(registered()) == ["CanaryNet"]
    assert find_model("gcn") is models.GCN
    assert "CanaryNet" in problem(lambda: find_model("Transformer")).expected
    assert "CanaryNet" in problem(lambda: find_model("canarynett")).hint
    assert not canary()  # looking for others imports nothing
    kind = find_model("canarynet")
    assert canary()
    assert find_stored(name_of(kind)) is kind
    assert find_stored("canary_package.net:Net") is kind


def test_what_a_package_exports_at_its_top_is_known_by_its_home(canary, monkeypatch, tmp_path):
    """The entry point names the package, files name the module in which the class is written."""
    register(monkeypatch, CanaryNet="canary_package:Net", Other="other_package:Net", Odd="canary_package:Odd")
    kind = find_model("CanaryNet")
    assert name_of(kind) == "canary_package.net:Net"
    assert find_stored(name_of(kind)) is kind
    model = kind(3, 2)
    us.save(model, tmp_path, built_from=models.BuiltFrom(3, 2, {}))
    assert type(us.load(tmp_path)) is kind
    assert find_stored("canary_package:Net") is kind


def test_registering_one_class_opens_no_door_to_others(canary, monkeypatch):
    register(monkeypatch, CanaryNet="canary_package.net:Net")
    for name in ("canary_package.net:Other", "canary_package:NUMBER", "other_package.net:Net", "CanaryNet"):
        with pytest.raises(us.IncompatibleError):
            find_stored(name)
    assert not canary()
    with pytest.raises(us.IncompatibleError):
        find_stored("canary_package.other:Net")


def test_what_is_registered_must_be_a_model(canary, monkeypatch):
    register(monkeypatch, Number="canary_package.net:NUMBER")
    assert problem(lambda: find_model("number")).value == "canary_package.net:NUMBER"


def test_a_package_cannot_take_the_name_of_a_named_model(canary, monkeypatch):
    register(monkeypatch, gcn="canary_package.net:Net")
    with pytest.warns(UserWarning, match=r"^GCN is unspool's model; another package .* is canary_package\.net:Net$"):
        assert find_model("GCN") is models.GCN
    assert find_stored("GCN") is models.GCN
    assert registered() == {}
    assert [entry.value for entry in unnamed()] == ["canary_package.net:Net"]
    assert not canary()
    assert find_stored("canary_package.net:Net") is find_model("canary_package:Net")


@pytest.mark.parametrize("names", [{"huber": "canary_package:Net other_package:Net"}, {"huber": "canary_package:Net", "HUBER": "other_package:Net"}])  # fmt: skip
def test_a_name_that_two_packages_register_is_nobodys(names, canary, monkeypatch):
    register(monkeypatch, **names)
    for typed in ("huber", "Huber"):
        found = problem(lambda typed=typed: find_model(typed))
        assert (found.argument, found.value) == ("model", typed)
        assert found.hint == "write canary_package:Net or other_package:Net"
    assert registered() == {}
    assert len(unnamed()) == 2
    assert not canary()
    assert find_stored("canary_package.net:Net") is find_model("canary_package:Net")  # files know it by its path


def test_what_is_registered_twice_and_is_the_same_is_one(canary, monkeypatch):
    register(monkeypatch, huber="canary_package:Net canary_package:Net")
    assert list(registered()) == ["huber"]
    assert unnamed() == []
    assert find_model("HUBER").__name__ == "Net"


def test_what_is_registered_and_not_there_is_named(canary, monkeypatch):
    register(monkeypatch, lone="canary_package:Missing")
    found = problem(lambda: find_model("lone"))
    assert "has no Missing" in found.expected
    assert "registered as lone" in found.hint


def test_nothing_is_registered_here():
    assert all(isinstance(entry, EntryPoint) for entry in registered().values())
