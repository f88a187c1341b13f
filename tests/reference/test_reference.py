import unspool as us
from reference.cases import CASES
from reference.models import REFERENCES


def test_every_model_has_a_reference_and_is_under_the_laws():
    names = {kind.__name__ for kind in us.models.MODELS}
    assert names == set(REFERENCES)
    assert names == {kind.__name__ for kind, _ in CASES.values()}


def test_every_exported_model_is_listed():
    exported = {
        thing
        for name in us.models.__all__
        if isinstance(thing := getattr(us.models, name), type) and issubclass(thing, us.models.Model)
    }
    assert exported - {us.models.Model} == set(us.models.MODELS)


def test_every_choice_is_under_the_laws():
    def values(setting):
        return {settings[setting] for _, settings in CASES.values() if setting in settings}

    m = us.models
    for setting, choices in {
        "combine": m.Combine, "start": m.HopStart, "identity": m.IdentityMapping, "channels": m.Channels, "mixing": m.Mixing,
        "layers": m.Layers, "basis": us.Basis, "weights": m.Side,
    }.items():  # fmt: skip
        assert len(set(choices) - values(setting)) <= 1, setting  # the default need not be named
