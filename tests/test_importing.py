"""Names of the form package.module:Class."""

import importlib.metadata
import sys
from importlib.metadata import EntryPoint

import pytest

from unspool.cli.errors import sentence
from unspool.errors import InputError
from unspool.importing import broken_package, entry_points, import_named, load_entry


def test_nested_names_are_found():
    assert import_named("pathlib:Path.home", "dataset", "package.module:function").__name__ == "home"


@pytest.mark.parametrize(
    "name", ["no/module:Thing", ":Thing", "nowhere_at_all:Thing", "pathlib:Nothing", "pathlib:Path."]
)
def test_what_leads_nowhere_is_refused_with_its_argument(name):
    with pytest.raises(InputError) as caught:
        import_named(name, "model", "package.module:Class")
    assert (caught.value.argument, caught.value.value) == ("model", name)
    assert caught.value.expected.startswith("package.module:Class")


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all' (half_there.py, line 1)"),
        ("\n{}['boom']", "KeyError: 'boom' (half_there.py, line 2)"),
        ("undefined", "NameError: name 'undefined' is not defined (half_there.py, line 1)"),
        ("x = 1\ndef f(:", "SyntaxError: invalid syntax (half_there.py, line 2)"),
        ("assert False", "AssertionError (half_there.py, line 1)"),
        ("raise RuntimeError('in\\n two lines')", "RuntimeError: in two lines (half_there.py, line 1)"),
        ("raise ValueError('v')", "ValueError: v (half_there.py, line 1)"),
        ("raise OSError(2, 'gone')", "FileNotFoundError: [Errno 2] gone (half_there.py, line 1)"),
        ("import json\njson.loads('x')", "JSONDecodeError: Expecting value: line 1 column 1 (char 0) (half_there.py, line 2)"),
        ("import unspool as us\nus.setting(0, '', at_least=1)", "InputError: default=0: expected a whole number of at least 1 (half_there.py, line 2)"),
        ("import sys\nsys.exit(0)", "SystemExit: 0 (half_there.py, line 2)"),
        ("import half_there.inner", "ModuleNotFoundError: No module named 'half_there.inner'; 'half_there' is not a package (half_there.py, line 1)"),
    ],
)  # fmt: skip
def test_what_goes_wrong_in_a_module_is_said_with_its_line(tmp_path, monkeypatch, source, told):
    (tmp_path / "half_there.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "half_there", raising=False)
    with pytest.raises(ImportError) as caught:
        import_named("half_there:Thing", "model", "package.module:Class")
    assert str(caught.value) == f"importing half_there failed: {told}"
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("problem", [KeyboardInterrupt, MemoryError])
def test_what_is_no_fault_of_a_module_passes(tmp_path, monkeypatch, problem):
    (tmp_path / "half_there.py").write_text(f"raise {problem.__name__}")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(problem):
        import_named("half_there:Thing", "model", "package.module:Class")


def installed(folder, name, entry_points):
    """A package as an installer leaves it, without code."""
    place = folder / f"{name}-1.0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (place / "entry_points.txt").write_text(entry_points)


def test_a_list_that_cannot_be_read_is_left_out_with_a_warning(tmp_path, monkeypatch):
    installed(tmp_path, "evil", "[unspool.canaries]\nno equals sign\n")
    installed(tmp_path, "good", "[unspool.canaries]\nnet = good.nets:Net\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.warns(UserWarning, match=r"what the package evil registers is left out.*install it again"):
        (found,) = entry_points("unspool.canaries")
    assert (found.name, found.value) == ("net", "good.nets:Net")
    assert broken_package(KeyError("x")) is None


def test_a_package_that_stops_others_from_being_imported_is_named(tmp_path, monkeypatch):
    """As torch reads the lists of all packages, and does not survive one that cannot be read."""
    installed(tmp_path, "evil", "[unspool.canaries]\nno equals sign\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Exception, match=r".") as caught:
        [one.entry_points for one in importlib.metadata.distributions()]
    assert broken_package(caught.value) == "evil"
    assert sentence(caught.value).startswith("the entry_points.txt of the installed package evil cannot be read")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("no_such_package:Net", "there is no module no_such_package"),
        ("no_such_models.py:Net", "write it without .py: no_such_models:Net"),
        ("fractions:Nothing", "fractions has no Nothing"),
        ("fractions", "fractions has no"),
        ("3 4", "the name of a module before the colon"),
        ("", "the name of a module before the colon"),
    ],
)
def test_what_a_package_registers_in_vain_is_named(value, words):
    with pytest.raises(InputError, match=words) as caught:
        load_entry(EntryPoint("lone", value, "unspool.models"), "model", "package.module:Class")
    assert "it is registered as lone" in caught.value.hint


def test_extras_of_an_entry_do_not_matter():
    found = load_entry(EntryPoint("f", "fractions:Fraction [fast]", "unspool.models"), "model", "package.module:Class")
    assert found.__name__ == "Fraction"


def test_a_name_that_is_nearly_right_is_helped_along():
    with pytest.raises(InputError, match=r"and fractions has no Fractoin; did you mean fractions:Fraction\?"):
        import_named("fractions:Fractoin", "model", "package.module:Class")
