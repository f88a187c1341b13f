"""Classes that declare their settings: inheritance, changed defaults, names that are taken, and what is fixed once it is built."""

import copy
import dataclasses
import inspect
import math
import pickle

import numpy as np
import pytest
import torch
from torch import nn

import unspool as us
from unspool.models.mlp import Still
from unspool.models.model import RESERVED
from unspool.settings import REQUIRED, Declared, choice, integers, uniform
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


def test_a_plain_class_changes_a_default():
    class Deep:
        depth = 20

    class Mixed(Deep, Parent):
        pass

    class Other(Parent, Deep):
        """Python finds the setting first."""

    assert Mixed(3, 2).depth == Mixed(3, 2).settings["depth"] == 20
    assert Mixed(3, 2, depth=8).depth == Mixed(3, 2, depth=8).settings["depth"] == 8
    assert Other(3, 2).depth == Parent(3, 2).depth == 4
    assert Mixed.depth is Mixed.schema["depth"]

    class Wrong:
        depth = "deep"

    assert problem(lambda: type("Bad", (Wrong, Parent), {})).argument == "depth"
    assert type("Anew", (Wrong, Parent), {"depth": us.setting(2, "layers")})(3, 2).depth == 2


def test_a_default_that_is_assigned_to_a_class_is_refused():
    late = type("Late", (Parent,), {})
    below = type("Below", (late,), {})
    late.depth = 20
    for kind in (late, below):
        with pytest.raises(
            TypeError, match=rf"^{kind.__name__}\.depth is a setting, and was assigned after .* in a subclass$"
        ):
            kind(3, 2, depth=8)
    assert type("After", (late,), {})(3, 2).depth == 20
    assert Parent(3, 2).depth == 4


def test_one_declaration_under_two_names_is_two_settings():
    one = us.setting(4, "a number", at_least=1)

    class Twice(us.models.Model):
        depth: int = one
        width: int = one
        build = parts

    class Again(us.models.Model):
        height: int = one
        build = parts

    assert {name: s.name for name, s in Twice.schema.items()} == {"depth": "depth", "width": "width"}
    assert (Twice(3, 2, depth=7).depth, Twice(3, 2, depth=7).width) == (7, 4)
    assert problem(lambda: Twice(3, 2, width=0)).argument == "width"
    assert (Again(3, 2, height=2).height, Again.height.owner) == (2, "Again")


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("name", sorted(RESERVED))
def test_names_of_training_studies_and_estimators_are_refused(name, mixed):
    held = {name: us.setting(1, "a number")}
    bases = (type("Plain", (), held), us.models.Model) if mixed else (us.models.Model,)
    with pytest.raises(TypeError, match=rf"^Bad\.{name} cannot be a setting: training, studies and estimators have"):
        type("Bad", bases, {"build": parts} | ({} if mixed else held))


def test_every_name_of_training_studies_and_estimators_is_known():
    taken = set(us.train.TrainConfig.schema)
    for call in (us.study.grid, us.study.random, us.NodeClassifier, us.NodeRegressor):
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        taken |= {one.name for one in inspect.signature(call).parameters.values() if one.kind in kinds}
    assert taken | {"model"} == RESERVED


@pytest.mark.parametrize("name", ["self", "train"])
def test_a_plain_class_cannot_bring_such_names_either(name):
    plain = type("Plain", (), {name: us.setting(1, "a number")})
    for bases in ((us.models.Model, plain), (plain, us.models.Model)):
        with pytest.raises(TypeError, match=rf"^Bad\.{name} cannot be a setting"):
            type("Bad", bases, {})


@pytest.mark.parametrize(
    "name",
    [
        "train", "eval", "forward", "to", "half", "parameters", "training", "_modules", "type", "apply",  # of torch.nn.Module
        "settings", "schema", "card", "objective", "derivation", "origin", "p_pre", "propagation", "p_pos", "solve_exactly",
        "in_features", "out_features", "__doc__", "self",
    ],
)  # fmt: skip
def test_names_that_mean_something_else_are_refused(name):
    with pytest.raises(TypeError, match=rf"^Bad\.{name} cannot be a setting: every .* has something else of that name"):
        type("Bad", (us.models.Model,), {name: us.setting(1, "a number"), "build": parts})


def test_a_constructor_of_ones_own_is_refused():
    with pytest.raises(TypeError, match=r"^Bad writes an __init__: declare its settings .*in build\(self\)$"):
        type("Bad", (us.models.Model,), {"__init__": lambda self: None})


def test_a_constructor_that_is_put_there_afterwards_is_refused():
    @dataclasses.dataclass
    class Bad(us.models.Model):
        depth: int = 3
        build = parts

    for make in (lambda: Bad(depth=5), lambda: Bad(3, 2), lambda: type("Bad", (Bad,), {})):
        with pytest.raises(TypeError, match=r"^Bad writes an __init__: declare its settings"):
            make()


def test_a_model_without_parts_is_refused():
    with pytest.raises(TypeError, match=r"Bad has no build\(self\)"):
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
    with pytest.raises(AttributeError, match=r"^depth is a setting of Parent, fixed when it is built"):
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


@pytest.mark.parametrize("held", [Parent(3, 2), us.train.TrainConfig()], ids=["model", "config"])
def test_the_settings_of_an_object_are_read_only(held):
    before = dict(held.settings)
    name = next(iter(before))
    with pytest.raises(TypeError):
        held.settings[name] = 99
    with pytest.raises(AttributeError):
        held.settings = {name: 99}
    for again in (held, copy.copy(held), copy.deepcopy(held), pickle.loads(pickle.dumps(held))):
        assert again.settings == before
        assert getattr(again, name) == before[name]
        with pytest.raises(TypeError):
            again.settings[name] = 99


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


@dataclasses.dataclass
class Basket:
    inside: list[int] = dataclasses.field(default_factory=lambda: [1])


def test_models_do_not_share_what_is_inside_a_default():
    class Nested(us.models.Model):
        widths: list[list[int]] = us.setting([[8], [8]], "of the layers", of=[[int]])
        loose: object = us.setting([{"a": [1]}, ([2],)], "whatever", of=object)
        basket: Basket = us.setting(Basket(), "an object", of=Basket)
        build = parts

    before = copy.deepcopy(dict(Nested(3, 2).settings))
    one = Nested(3, 2)
    one.widths[0].append(9)
    one.loose[0]["a"].append(9)
    one.loose[1][0].append(9)
    one.basket.inside.append(9)
    assert dict(Nested(3, 2).settings) == before


def test_a_default_that_holds_a_tensor_is_still_the_default():
    class Weighted(us.models.Model):
        weights: object = us.setting([torch.ones(2)], "of the layers", of=object)
        build = parts

    assert Weighted(3, 2).weights == Weighted.schema["weights"].default
    assert us.train.Trial(Weighted).key("") == us.train.Trial(Weighted).key("")


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
        (0, {"above": -0.5}, Whole(0)),
        (2, {"below": 2.5}, Whole(high=2)),
        (1, {"at_least": 0.5, "at_most": 7.5}, Whole(1, 7)),
        (1, {"at_most": 10**400}, Whole(high=10**400)),
        (1.0, {"at_least": np.float64(0.5)}, Real(0.5)),
        (1.0, {"at_least": 1, "at_most": 1}, Real(1, 1)),
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


@pytest.mark.parametrize("default", [1, 1.0])
@pytest.mark.parametrize("end", ["at_least", "at_most", "above", "below"])
@pytest.mark.parametrize("value", ["1", math.nan, math.inf, True, [1], 1j])
def test_an_end_is_a_number(default, end, value):
    found = problem(lambda: us.setting(default, "a number", **{end: value}))
    assert (found.argument, found.value, found.expected) == (end, value, "a finite number")


@pytest.mark.parametrize(("one", "other"), [("at_least", "above"), ("at_most", "below")])
def test_an_end_is_said_once(one, other):
    with pytest.raises(TypeError, match=rf"^{one}=0.4 and {other}=0 are one end said twice"):
        us.setting(0.5, "a number", **{one: 0.4, other: 0})


@pytest.mark.parametrize(
    ("of", "limits"), [(int, {"at_least": 5, "at_most": 2}), (int, {"above": 1, "below": 2}), (float, {"above": 1, "at_most": 1})]
)  # fmt: skip
def test_ends_have_numbers_between_them(of, limits):
    with pytest.raises(ValueError, match="no number lies between these ends"):
        us.setting(None, "a number", of=of, **limits)


@pytest.mark.parametrize(
    ("default", "limits", "search"),
    [
        (5, {"at_least": 5}, integers(1, 9)),
        (5, {"at_most": 8}, integers(1, 9)),
        (5, {}, uniform(1, 9)),
        (0.5, {"above": 0}, uniform(0, 1)),
        (0.5, {}, choice([0.1, "x"])),
        (True, {}, integers(1, 9)),
    ],
)
def test_a_search_looks_where_the_setting_can_be(default, limits, search):
    assert problem(lambda: us.setting(default, "something", **limits, search=search)).argument == "search"


@pytest.mark.parametrize("search", [[1, 2], (1, 9), 3, "integers"])
def test_a_search_is_a_range(search):
    found = problem(lambda: us.setting(5, "a number", search=search))
    assert (found.argument, found.value) == ("search", search)
    assert "choice([1, 2])" in found.hint


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
