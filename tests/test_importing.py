"""Names of the form package.module:Class."""

import pytest

from unspool.errors import InputError
from unspool.importing import import_named


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


def test_a_module_that_lacks_what_it_imports_says_so_itself(tmp_path, monkeypatch):
    (tmp_path / "half_there.py").write_text("import nowhere_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="nowhere_at_all"):
        import_named("half_there:Thing", "model", "package.module:Class")
