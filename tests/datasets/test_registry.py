"""Data sets of other packages: found by name or by path, and never because a file says so."""

import sys
from importlib.metadata import EntryPoint

import pytest

from unspool import datasets
from unspool.datasets import registry
from unspool.errors import DataError, InputError

SOURCE = """
from unspool import datasets

def roads():
    return datasets.grid(4, 5)

def nothing():
    return 7
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    (tmp_path / "road_data.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "road_data"
    sys.modules.pop("road_data", None)


def test_a_function_is_named_by_its_path(package):
    assert datasets.load(f"{package}:roads").nodes == 20
    with_split = datasets.load(f"{package}:roads", split=lambda d: datasets.splits.random(d.strata, seed=4))
    assert with_split.split.seed == 4


def test_a_registered_name_is_enough(package, monkeypatch):
    entry = EntryPoint("Roads", f"{package}:roads", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry] if group == registry.GROUP else [])
    assert datasets.load("roads").nodes == 20
    assert [e.where for e in datasets.catalogue() if e.name == "roads"] == ["another package"]
    assert registry.is_registered(f"{package}:roads")


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("road_data:streets", "has no streets"),
        ("road_data:nothing", "gives a int"),
        ("no_such_package:roads", "can be imported"),
    ],
)
def test_what_leads_nowhere_is_named(package, name, what):
    with pytest.raises(InputError, match=what) as refused:
        datasets.load(name)
    assert (refused.value.argument, refused.value.value) == ("dataset", name)


def register(monkeypatch, *entries):
    """As if installed packages had registered these."""
    made = [EntryPoint(name, value, registry.GROUP) for name, value in entries]
    monkeypatch.setattr(registry, "entry_points", lambda group: made if group == registry.GROUP else [])


@pytest.mark.parametrize("name", ["citeseer", "CiteSeer", "film", "grid"])
def test_a_package_cannot_take_the_name_of_a_set_of_ours(package, monkeypatch, name):
    register(monkeypatch, (name, f"{package}:nothing"))
    with pytest.warns(UserWarning, match=rf"^{name} is unspool's data set; another package .* is road_data:nothing$"):
        assert not registry.is_foreign(name)
    assert registry.registered() == {}
    assert package not in sys.modules
    (entry,) = [one for one in datasets.catalogue() if one.name == f"{package}:nothing"]
    assert entry.where == f"another package; the name that it registers, {name}, is taken"


def test_a_name_that_two_packages_register_is_nobodys(package, monkeypatch):
    register(monkeypatch, ("roads", f"{package}:roads"), ("Roads", "other_data:roads"))
    with pytest.raises(InputError) as refused:
        datasets.load("ROADS")
    assert (refused.value.argument, refused.value.value) == ("dataset", "ROADS")
    assert refused.value.hint == "write road_data:roads or other_data:roads"
    assert package not in sys.modules
    assert datasets.load(f"{package}:roads").nodes == 20
    assert registry.is_registered(f"{package}:roads")


def test_what_is_registered_and_not_there_is_named(package, monkeypatch):
    register(monkeypatch, ("streets", f"{package}:streets"))
    with pytest.raises(InputError, match=r"has no streets; it is registered as streets"):
        datasets.load("streets")


@pytest.mark.parametrize(
    ("body", "told"),
    [("sys.exit(0)", "SystemExit: 0"), ("{}['boom']", "KeyError: 'boom'"), ("assert 0", "AssertionError")],
)
def test_a_function_that_fails_is_named(tmp_path, monkeypatch, body, told):
    (tmp_path / "sad_data.py").write_text(f"import sys\n\ndef roads():\n    {body}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "sad_data", raising=False)
    with pytest.raises(DataError) as refused:
        datasets.load("sad_data:roads")
    assert str(refused.value) == f"sad_data:roads: its function failed: {told} (sad_data.py, line 4)"


def test_asking_imports_nothing(package):
    assert registry.is_foreign(f"{package}:roads")
    assert not registry.is_registered(f"{package}:roads")
    assert package not in sys.modules
