"""What is shipped has its licence with it, and what is installed for the tests has its version written down."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def pins():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    return {plain(line.partition("==")[0]): line.partition("==")[2] for line in lines}


def test_every_licence_in_the_package_is_a_licence_file():
    inside = {path.relative_to(ROOT).as_posix() for path in (ROOT / "src").rglob("LICENSE*")}
    assert inside | {"LICENSE"} == set(PROJECT["license-files"])
    assert all((ROOT / name).is_file() for name in PROJECT["license-files"])


def needed(name, extras, seen):
    """What a distribution needs here, in turn, as far as it is installed."""
    try:
        held = distribution(name)
    except PackageNotFoundError:
        return
    for line in held.requires or []:
        asked = Requirement(line)
        if asked.marker is None or any(asked.marker.evaluate({"extra": extra}) for extra in extras):
            found = (plain(asked.name), frozenset(asked.extras))
            if found not in seen:
                seen.add(found)
                needed(asked.name, asked.extras | {""}, seen)


def test_everything_that_is_needed_is_pinned():
    seen = set()
    groups = [
        *PROJECT["dependencies"],
        *(line for group in PROJECT["optional-dependencies"].values() for line in group),
    ]
    for line in groups:
        asked = Requirement(line)
        seen.add((plain(asked.name), frozenset(asked.extras)))
        needed(asked.name, asked.extras | {""}, seen)
    names = {name for name, _ in seen} - {"unspool"}
    assert len(names) > 40
    ours = re.compile("nvidia-|cuda-")  # torch says which of these
    assert sorted(name for name in names - set(pins()) if not ours.match(name)) == []


@pytest.mark.parametrize("name", sorted(pins()))
def test_a_pin_is_one_version(name):
    assert re.fullmatch(r"[0-9][0-9a-z.]*", pins()[name])
