"""Data sets of other packages: found by name or by path, and never because a file says so."""

import sys
from importlib.metadata import EntryPoint

import pytest

from unspool import datasets
from unspool.datasets import registry
from unspool.errors import InputError

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


def test_asking_imports_nothing(package):
    assert registry.is_foreign(f"{package}:roads")
    assert not registry.is_registered(f"{package}:roads")
    assert package not in sys.modules
