"""Tests lie where their source lies: tests/graph/ for src/unspool/graph/, tests/test_text.py for src/unspool/text.py."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE, TESTS = ROOT / "src" / "unspool", ROOT / "tests"
#: Files that `make quick` leaves out as a whole.
LEFT_OUT = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.(long|slow)\b", re.MULTILINE)
#: What looks at the package from outside.
OUTSIDE = {"browser", "gpu", "package", "reference", "release"}


def packages():
    """Folders that hold modules, not data alone."""
    return sorted({file.parent.relative_to(SOURCE) for file in SOURCE.rglob("*.py")} - {Path()})


def files():
    return [file.relative_to(TESTS) for file in TESTS.rglob("test_*.py")]


@pytest.mark.parametrize("package", packages(), ids=str)
def test_every_package_has_tests_of_its_own(package):
    found = [file.read_text(encoding="utf-8") for file in (TESTS / package).glob("test_*.py")]
    assert found, f"tests/{package} has no tests"
    assert not all(map(LEFT_OUT.search, found)), f"make quick has nothing of tests/{package}"


@pytest.mark.parametrize("module", sorted(file.stem for file in SOURCE.glob("[!_]*.py")))
def test_every_module_beside_the_packages_has_its_file(module):
    assert (TESTS / f"test_{module}.py").is_file()


def test_every_folder_of_tests_is_a_package_or_looks_from_outside():
    known = {Path(), *packages()}
    lost = {str(file) for file in files() if file.parent not in known and file.parts[0] not in OUTSIDE}
    assert lost == set()


def test_nothing_but_modules_is_tested_beside_the_packages():
    here = {file.stem.removeprefix("test_") for file in files() if file.parent == Path()}
    assert here == {file.stem for file in SOURCE.glob("[!_]*.py")}
