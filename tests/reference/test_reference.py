import importlib
from pathlib import Path

import pytest

import unspool as us
from reference.cases import CASES
from reference.models import REFERENCES
from unspool.models.registry import shipped
from unspool.settings.kinds import EnumMember, Flag


def test_every_model_has_a_reference_and_is_under_the_laws():
    names = {kind.__name__ for kind in us.models.MODELS}
    assert names == set(REFERENCES)
    assert names == {kind.__name__ for kind, _ in CASES.values()}


def test_every_exported_model_is_listed():
    exported = {
        thing for thing in vars(us.models).values() if isinstance(thing, type) and issubclass(thing, us.models.Model)
    }
    assert exported - {us.models.Model} == set(us.models.MODELS)
    assert set(shipped().values()) == set(us.models.MODELS)


def test_every_model_file_is_listed():
    """Whoever adds a model imports it in models/__init__.py."""
    files = Path(us.models.__file__).parent.glob("*.py")
    modules = [importlib.import_module(f"unspool.models.{file.stem}") for file in files if file.stem != "__init__"]
    found = {
        thing
        for module in modules
        for thing in vars(module).values()
        if isinstance(thing, type) and issubclass(thing, us.models.Model) and thing is not us.models.Model
    }
    assert found == set(us.models.MODELS)


#: Starts of γ that are under the laws as GPRGNN's, which has them from the same function.
UNTRIED = {
    ("UGDGNN", "start"): {us.models.HopStart[name] for name in ("SGC", "NPPR", "RANDOM", "WARM")},
    ("GraphFirstGPRGNN", "start"): {us.models.HopStart[name] for name in ("UNIFORM", "SGC", "NPPR", "RANDOM", "WARM")},
    ("GraphFirstUGDGNN", "start"): {us.models.HopStart[name] for name in ("SGC", "NPPR", "RANDOM", "WARM")},
    ("StableGNN", "steps"): {us.models.Steps.REWEIGHTED},  # needs B, unlike the others: tests/models/test_stable.py
}


def choices(kind):
    if isinstance(kind, EnumMember):
        return set(kind.enum)
    return {True, False} if isinstance(kind, Flag) else set()


@pytest.mark.parametrize("kind", us.models.MODELS)
def test_every_choice_is_under_the_laws(kind):
    """Each member of each enum, and both truth values; a default need not be named."""
    cases = [settings for model, settings in CASES.values() if model is kind]
    for name, one in kind.schema.items():
        tried = [settings.get(name, one.default) for settings in cases]
        missing = {choice for choice in choices(one.kind) if choice not in tried}
        assert missing <= UNTRIED.get((kind.__name__, name), set()), name
