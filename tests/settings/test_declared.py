"""Classes that declare their settings: inheritance, changed defaults, names that are taken, and what is fixed once it is built."""

import copy
import inspect
import pickle

import pytest
import torch
from torch import nn

import unspool as us
from unspool.models.mlp import Still
from unspool.settings import REQUIRED, Declared, choice
from unspool.settings.kinds import Anything, Nullable, Real, Whole

OWNERS = [*us.models.MODELS, us.train.TrainConfig]


def parts(self):
    """A build that makes as little as possible."""
    self.propagation = Still()


class Parent(us.models.Model):
    depth: int = us.setting(4, "number of layers", at_least=1)
    rate: float = us.setting(0.5, "how much", at_least=0, below=1, search=choice([0.1, 0.5]), hint="take less")
    build = parts


class Child(Parent):
    gate: bool = us.setting(True, "whether there is one")
    depth = 20


def problem(call):
    with pytest.raises(us.InputError) as caught:
        call()
    return caught.value


def test_settings_are_inherited_added_and_changed():
    assert list(Child.schema) == ["depth", "rate", "gate"]
    assert Child(3, 2).settings == {"depth": 20, "rate": 0.5, "gate": True}
    assert Parent(3, 2).settings == {"depth": 4, "rate": 0.5}
    assert Child.schema.owner == "Child"
    changed, before = Child.schema["depth"], Parent.schema["depth"]
    assert (changed.meaning, changed.kind, changed.search, changed.hint) == (
        before.meaning, before.kind, before.search, before.hint,
    )  # fmt: skip
    assert problem(lambda: Child(3, 2, depth=0)).owner == "Child"
    assert Child.depth is changed
    assert Child(3, 2, depth=7).depth == 7


def test_a_changed_default_must_fit():
    found = problem(lambda: type("Bad", (Parent,), {"depth": 0}))
    assert (found.argument, found.value, found.expected) == ("depth", 0, Whole(1).expected)
    assert found.owner == "Bad"


def test_a_setting_may_be_declared_anew():
    class Wider(Parent):
        depth: float = us.setting(0.5, "another thing of the same name")

    assert list(Wider.schema) == ["depth", "rate"]  # in its old place
    assert Wider(3, 2).settings == {"depth": 0.5, "rate": 0.5}


def test_named_models_are_extended():
    class Deep(us.models.APPNP):
        depth = 50
        extra: int = us.setting(1, "something else")

    model = Deep(4, 2, hidden=3)
    assert model.settings == {**us.models.APPNP(4, 2, hidden=3).settings, "depth": 50, "extra": 1}
    assert model(torch.eye(4), us.graph.ring(4)).shape == (4, 2)


def test_two_parents_are_looked_up_as_python_looks_attributes_up():
    class Deep(Parent):
        depth = 9

    class Other(Parent):
        gate: bool = us.setting(False, "whether there is one")

    for bases in ((Deep, Other), (Other, Deep)):
        kind = type("Both", bases, {})
        assert kind(3, 2).settings == {"depth": 9, "rate": 0.5, "gate": False}
        assert kind.depth.default == kind.schema["depth"].default == 9


def test_settings_of_a_plain_class_come_along():
    class Gated:
        gate: bool = us.setting(True, "whether there is one")

    class Mixed(Gated, Parent):
        pass

    assert Mixed(3, 2, gate=False).settings == {"depth": 4, "rate": 0.5, "gate": False}


@pytest.mark.parametrize(
    "name",
    [
        "train", "eval", "forward", "to", "half", "parameters", "training", "_modules", "type", "apply",  # of torch.nn.Module
        "settings", "schema", "card", "objective", "derivation", "origin", "p_pre", "propagation", "p_pos", "solve_exactly",
        "in_features", "out_features", "__doc__",
    ],
)  # fmt: skip
def test_names_that_mean_something_else_are_refused(name):
    with pytest.raises(TypeError, match=rf"^Bad\.{name} cannot be a setting: every .* has something else of that name"):
        type("Bad", (us.models.Model,), {name: us.setting(1, "a number"), "build": parts})


def test_a_constructor_of_ones_own_is_refused():
    with pytest.raises(TypeError, match=r"^Bad writes an __init__: declare its settings .*in build\(self\)$"):
        type("Bad", (us.models.Model,), {"__init__": lambda self: None})


def test_a_model_without_parts_is_refused():
    with pytest.raises(NotImplementedError, match=r"Bad has no build\(self\)"):
        type("Bad", (us.models.Model,), {})(3, 2)
    with pytest.raises(TypeError, match=r"Bad\.build sets no propagation; write self\.propagation = "):
        type("Bad", (us.models.Model,), {"build": lambda self: None})(3, 2)


def test_ends_that_are_left_out_are_the_signal_itself():
    model, x = Parent(3, 3), torch.eye(3)
    assert torch.equal(model(x, us.graph.ring(3)), x)
    assert torch.equal(model(x.to_sparse(), us.graph.ring(3)), x)  # a sparse one, too


@pytest.mark.parametrize("value", [5, nn.Linear(1, 1), nn.Parameter(torch.ones(1)), torch.ones(1), None])
def test_settings_are_fixed_once_a_model_is_built(value):
    model = Parent(3, 2)
    with pytest.raises(AttributeError, match=r"^depth is a setting of Parent, fixed when it is built"):
        model.depth = value
    with pytest.raises(AttributeError):
        del model.depth
    assert model.depth == 4
    assert "depth" not in dict(model.named_modules())


def test_a_build_that_names_a_part_like_a_setting_is_told():
    class Bad(us.models.Model):
        gate: bool = us.setting(True, "whether there is one")

        def build(self):
            self.gate = nn.Linear(2, 2)

    with pytest.raises(AttributeError, match="gate is a setting of Bad"):
        Bad(3, 2)


def test_values_are_read_as_attributes():
    model = Parent(3, 2, depth=7)
    assert (model.depth, model.rate, model.in_features, model.out_features) == (7, 0.5, 3, 2)
    assert Parent.depth is Parent.schema["depth"]
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert again.settings == model.settings
        assert again.depth == 7


def test_models_do_not_share_lists():
    class Listing(us.models.Model):
        widths: list[int] = us.setting([8, 8], "of the layers", of=[int])
        build = parts

    given = [1, 2]
    one, other = Listing(3, 2), Listing(3, 2, widths=given)
    one.widths.append(3)
    given.append(3)
    assert Listing(3, 2).widths == [8, 8]
    assert other.widths == [1, 2]


def test_a_setting_without_a_default_must_be_given():
    class Must(us.models.Model):
        depth: int = us.setting(REQUIRED, "number of layers", of=int, at_least=1)
        build = parts

    assert Must(3, 2, depth=2).depth == 2
    found = problem(lambda: Must(3, 2))
    assert (found.argument, found.owner) == ("depth", "Must")
    assert inspect.signature(Must).parameters["depth"].default is inspect.Parameter.empty


def test_settings_are_keywords():
    with pytest.raises(TypeError):
        us.models.GCN(3, 2, 8)
    with pytest.raises(TypeError):
        us.train.TrainConfig(0.1)


@pytest.mark.parametrize("owner", OWNERS)
def test_help_and_editors_see_the_settings(owner):
    found = inspect.signature(owner).parameters
    widths = [] if owner is us.train.TrainConfig else ["in_features", "out_features"]
    assert list(found) == [*widths, *owner.schema]
    for name, one in owner.schema.items():
        assert found[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert found[name].default == one.default


def test_the_signature_is_that_of_the_class_itself():
    assert str(inspect.signature(Child)).replace("'int'", "int") == (
        "(in_features: int, out_features: int, *, depth=20, rate=0.5, gate=True)"
    )


# -- one declaration ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("default", [None, [1], {}, object(), (1, 2)])
def test_defaults_that_tell_no_kind_are_named(default):
    with pytest.raises(TypeError, match=r"does not tell what the setting is; say it with of=, such as of=float"):
        us.setting(default, "something")


@pytest.mark.parametrize(
    ("default", "limits", "kind"),
    [
        (1, {"at_least": 1}, Whole(1)),
        (1, {"above": 0}, Whole(1)),
        (1, {"below": 5, "at_least": 0}, Whole(0, 4)),
        (0.5, {"above": 0, "at_most": 1}, Real(0, 1, low_open=True)),
        (0.5, {"at_least": 0, "below": 1}, Real(0, 1, high_open=True)),
        (0.5, {}, Real()),
        (None, {"of": float, "above": 0}, Nullable(Real(0, low_open=True))),
        (3, {"of": float}, Real()),
    ],
)
def test_ranges(default, limits, kind):
    assert us.setting(default, "a number", **limits).kind == kind


@pytest.mark.parametrize(
    ("default", "limits"), [(True, {"at_least": 0}), ("a", {"below": 3}), (us.Basis.POWERS, {"above": 1})]
)
def test_ends_are_for_numbers(default, limits):
    with pytest.raises(TypeError, match="ends are for numbers"):
        us.setting(default, "something", **limits)


@pytest.mark.parametrize(("default", "limits"), [(0, {"at_least": 1}), (1.0, {"below": 1}), ("a", {"of": int}), ([0], {"of": [int], "above": 0})])  # fmt: skip
def test_a_default_fits_its_own_range(default, limits):
    assert problem(lambda: us.setting(default, "a number", **limits)).argument == "default"


def test_whatever_is_accepted_may_be_none():
    assert us.setting(None, "anything", of=object).kind == Anything()


def test_a_hint_is_shown_where_a_value_does_not_fit():
    found = problem(lambda: Parent(3, 2, rate=1.0))
    assert (found.argument, found.value, found.expected, found.hint) == ("rate", 1.0, "a number in [0, 1)", "take less")


def test_anything_may_declare_settings():
    class Recipe(Declared):
        salt: float = us.setting(0.5, "how much", at_least=0)

        def __init__(self, **settings):
            self.settings = self.schema.complete(settings)

    assert Recipe(salt=1).salt == 1.0
    assert problem(lambda: Recipe(slat=1)).hint == "did you mean salt?"


# -- the configuration of training ------------------------------------------------------------------------------------


def test_configurations_are_values():
    config = us.train.TrainConfig(lr=0.1, weight_decay={"first": 0.1, "linear": 0.2})
    same = us.train.TrainConfig(lr=0.1, weight_decay={"linear": 0.2, "first": 0.1})
    assert config == same
    assert hash(config) == hash(same)
    assert config != config.replace(lr=0.2)
    assert config.replace(lr=0.2).lr == 0.2
    assert config.lr == 0.1
    assert config != "a configuration"
    for again in (copy.deepcopy(config), pickle.loads(pickle.dumps(config)), config.replace()):
        assert again == config
    with pytest.raises(AttributeError, match=r"never changes; make another with config\.replace\(lr=\.\.\.\)"):
        config.lr = 0.2
    assert repr(config) == "TrainConfig(lr=0.1, weight_decay={'first': 0.1, 'linear': 0.2})"
    assert problem(lambda: config.replace(epoch=3)).hint == "did you mean epochs?"
    assert problem(lambda: config.replace(epochs=0)).argument == "epochs"


@pytest.mark.parametrize("change", [{}, {"lr": 0.5, "monitor": us.train.Monitor.LAST_EPOCH, "stop": us.train.Stop.ABOVE_MEAN, "patience": 7, "min_epochs": 3, "optimiser": torch.optim.SGD, "precision": us.train.Precision.BFLOAT16, "lower_level": us.train.LowerLevel.EXACT, "weight_decay": {"hops": 0.1}}])  # fmt: skip
def test_configurations_come_back_from_plain_values(change):
    import json

    config = us.train.TrainConfig(**change)
    plain = config.to_plain()
    assert us.train.TrainConfig.from_plain(json.loads(json.dumps(plain))) == config
    assert list(plain) == list(us.train.TrainConfig.schema)


def test_a_configuration_of_ones_own():
    class Mine(us.train.TrainConfig):
        lr = 0.5
        warm_up: int = us.setting(0, "epochs with a smaller rate", at_least=0)

    assert Mine().lr == 0.5
    assert Mine(warm_up=3).replace(lr=0.1).settings["warm_up"] == 3
    assert isinstance(Mine.from_plain(Mine(warm_up=3).to_plain()), Mine)
