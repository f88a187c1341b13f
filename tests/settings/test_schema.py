"""All settings of a class: what is given is checked, what is not comes from defaults, and names that are wrong are helped along."""

import json
import pickle

import pytest
import torch
from torch import nn

import unspool as us
from settings.samples import fitting
from unspool.errors import UNSHOWN
from unspool.settings import REQUIRED, Schema, Setting, schema_of
from unspool.settings.kinds import Anything, EnumMember, Flag, Listed, Real, Text, Whole

OWNERS = [*us.models.MODELS, us.train.TrainConfig]


def problem(call):
    with pytest.raises(us.InputError) as caught:
        call()
    return caught.value


def made(*settings, more=False):
    return Schema("Net", {one.name: one for one in settings}, more)


WIDTH, DEPTH = Setting("width", 8, "how wide", Whole(1)), Setting("depth", REQUIRED, "how deep", Whole(1))


@pytest.mark.parametrize("owner", OWNERS)
def test_defaults_are_complete_and_come_back_from_files(owner):
    schema = owner.schema
    usual = schema.complete({})
    assert list(usual) == list(schema)
    assert schema.complete(usual) == usual
    stored = json.loads(json.dumps(schema.to_plain(usual), allow_nan=False))
    assert schema.from_plain(stored) == usual
    for name in schema:
        assert schema.complete({name: schema[name].default}) == usual


@pytest.mark.parametrize("owner", OWNERS)
def test_every_value_that_fits_makes_the_round_trip_among_the_others(owner):
    schema = owner.schema
    for name, one in schema.items():
        for value in fitting(one.kind):
            every = schema.complete({name: value})
            assert every[name] == value
            assert schema.from_plain(json.loads(json.dumps(schema.to_plain(every)))) == every


@pytest.mark.parametrize("owner", OWNERS)
def test_a_name_with_a_slip_gets_the_nearest(owner):
    schema = owner.schema
    for name in schema:
        if len(name) < 4 or any(other[:-1] == name[:-1] for other in schema if other != name):
            continue  # of lambda1 and lambda2 either may be meant
        slip = name[:-1] + "z"
        for call in (schema.check, schema.complete, schema.to_plain, schema.from_plain):
            found = problem(lambda call=call, slip=slip: call({slip: 1}))
            assert (found.argument, found.value, found.owner) == (slip, UNSHOWN, owner.__name__)
            assert all(known in found.expected for known in schema)
            assert found.hint == f"did you mean {name}?"
        assert not schema.takes(slip)
        assert schema.takes(name)


def test_a_name_like_no_other_gets_no_suggestion():
    found = problem(lambda: us.models.GCN.schema.check({"colour": 1}))
    assert found.hint is None
    assert "GCN" in found.expected
    assert problem(lambda: made().of("colour")).expected == "a setting of Net, which takes none"


def test_what_has_no_default_must_be_given():
    schema = made(WIDTH, DEPTH)
    found = problem(lambda: schema.complete({"width": 3}))
    assert (found.argument, found.value, found.owner) == ("depth", UNSHOWN, "Net")
    assert schema.complete({"depth": 2}) == {"width": 8, "depth": 2}
    assert schema.check({"width": 3}) == {"width": 3}  # a part may be checked without the rest
    assert DEPTH.shown(REQUIRED) == ""
    assert "required" in repr(DEPTH)


def test_the_first_value_that_does_not_fit_is_named():
    found = problem(lambda: made(WIDTH, DEPTH).complete({"width": 0, "depth": -1}))
    assert (found.argument, found.value) == ("width", 0)


def test_a_class_may_take_more_than_it_names():
    schema = made(WIDTH, more=True)
    other = object()
    assert schema.takes("anything")
    assert schema.complete({"anything": other}) == {"width": 8, "anything": other}
    assert isinstance(schema.of("anything").kind, Anything)
    assert "anything" not in schema
    assert problem(lambda: schema.complete({"width": 0})).argument == "width"
    assert problem(lambda: schema.to_plain({"anything": other})).argument == "anything"
    assert schema.from_plain(schema.to_plain({"anything": [1, "a"]})) == {"anything": [1, "a"]}


def test_lists_of_defaults_are_not_shared():
    schema = made(Setting("widths", [8, 8], "of the layers", Listed(Whole(1))))
    schema.complete({})["widths"].append(3)
    assert schema.complete({}) == {"widths": [8, 8]}


def test_a_schema_is_a_mapping_in_the_order_of_its_declarations():
    schema = made(WIDTH, DEPTH)
    assert list(schema) == ["width", "depth"]
    assert len(schema) == 2
    assert dict(schema) == {"width": WIDTH, "depth": DEPTH}
    with pytest.raises(KeyError):
        schema["height"]


@pytest.mark.parametrize("owner", OWNERS)
def test_a_schema_goes_to_other_processes(owner):
    again = pickle.loads(pickle.dumps(owner.schema))
    assert again.owner == owner.__name__
    assert {name: (s.kind, s.default, s.search) for name, s in again.items()} == {
        name: (s.kind, s.default, s.search) for name, s in owner.schema.items()
    }


def test_errors_go_to_other_processes_with_their_fields():
    error = problem(lambda: us.models.GCN(3, 2, depht=3))
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert again.value is UNSHOWN
    assert (again.argument, again.expected, again.hint, again.owner) == (
        error.argument, error.expected, error.hint, "GCN",
    )  # fmt: skip


# -- classes that declare nothing --------------------------------------------------------------------------------------


class Plain(nn.Module):
    def __init__(self, features, classes, width=8, rate=0.5, *, name, side=us.models.Side.PRE, act=torch.relu, **rest):
        super().__init__()


class Checked(nn.Module):
    """With a name that only type checkers know, which hides all annotations."""

    def __init__(self, features, classes, width: float = 8, late: "Missing" = True):  # noqa: F821
        super().__init__()


def test_defaults_of_plain_modules_tell_their_settings():
    found = schema_of(Plain)
    assert list(found) == ["width", "rate", "name", "side", "act"]
    assert found.takes_more
    assert found["name"].default is REQUIRED
    assert [found[name].kind for name in ("width", "rate", "side")] == [Whole(), Real(), EnumMember(us.models.Side)]
    for name in ("name", "act", "whatever"):
        assert isinstance(found.of(name).kind, Anything)
    assert repr(found["act"])
    assert [one.kind for one in schema_of(Checked).values()] == [Whole(), Flag()]


class Annotated(nn.Module):
    def __init__(
        self,
        in_features: int,
        out_features: int,
        rate: float = 0,
        gate: float | None = None,
        name: str = None,  # noqa: RUF013
        count: int = 0.5,
        mode: us.models.Side = us.models.Side.PRE,
        both: int | float = 3,
        *,
        must: int,
        act=torch.relu,
    ):
        super().__init__()


def test_annotations_come_before_defaults():
    found = schema_of(Annotated)
    assert found["rate"].kind == Real()
    assert found["rate"].accept(1) == 1.0
    assert found["gate"].accept(None) is None
    assert found["gate"].accept(1) == 1.0
    assert found["name"].kind.inner == Text()  # None as a default means that it may be None
    assert isinstance(found["count"].kind, Anything)  # the default gives the annotation the lie
    assert found["mode"].parse("pos") is us.models.Side.POS
    assert found["both"].kind == Whole()  # what the annotation does not tell, the default may
    assert (found["must"].kind, found["must"].default) == (Whole(), REQUIRED)
    assert isinstance(found["act"].kind, Anything)
    assert not found.takes_more
    assert problem(lambda: found.complete({"must": 1, "rtae": 0.1})).hint == "did you mean rate?"
    assert problem(lambda: found.complete({})).argument == "must"
    assert problem(lambda: found.complete({"must": 1.5})).owner == "Annotated"


def test_what_a_class_declares_comes_before_its_constructor():
    assert schema_of(us.models.GCN) is us.models.GCN.schema
    assert schema_of(Annotated) is schema_of(Annotated)


class Flexible(nn.Module):
    def __init__(self, *widths, **settings):
        super().__init__()


class Single(nn.Module):
    def __init__(self, width):
        super().__init__()


def test_constructors_that_take_anything_take_anything():
    assert list(schema_of(Flexible)) == []
    assert schema_of(Flexible).complete({"depth": 3}) == {"depth": 3}


def test_constructors_without_two_widths_are_named():
    with pytest.raises(TypeError, match=r"Single\(width\) is not built as model\(in_features, out_features, \.\.\.\)"):
        schema_of(Single)


def test_plain_modules_are_trained_like_others():
    """Their settings are checked by the names and types that the constructor tells."""
    data = us.datasets.contextual_sbm(nodes=40, classes=2, seed=0)

    class Hops(nn.Module):
        def __init__(self, features, classes, hops: int = 1):
            super().__init__()
            self.linear, self.hops = nn.Linear(features, classes), hops

        def forward(self, x, graph):
            for _ in range(self.hops):
                x = graph @ x
            return self.linear(x)

    space = us.study.grid(Hops, seed=0, hops=[1, 2], epochs=2)
    assert len(us.study.run(space, data, device="cpu").rows) == 2
    for bad in ({"hops": 1.5}, {"hosp": 2}):
        with pytest.raises((us.InputError, ValueError, TypeError), match=r"hops|hosp"):
            us.study.run(us.study.grid(Hops, seed=0, epochs=2, **bad), data, device="cpu")


class Loose(us.models.Model):
    """Has a number that looks like a setting."""

    hidden: int = us.setting(4, "width", at_least=1)
    depth: int = 3

    def build(self):
        self.p_pre = us.nn.Linear(self.in_features, self.out_features)
        self.propagation = us.unroll(us.Fidelity(0.2) + us.Smoothness(0.8), us.GradientDescent(step=0.5), self.depth)


def test_a_plain_attribute_is_told_from_a_setting():
    said = r"Loose.depth is a plain attribute; write depth: int = us.setting\(3, '...'\)"
    with pytest.raises(us.InputError, match=said):
        Loose(4, 2, depth=5)
    with pytest.raises(us.InputError, match=said):
        us.study.grid(Loose, depth=[2, 5])
    with pytest.raises(us.InputError, match="did you mean hidden"):
        us.study.grid(Loose, hiden=[2, 5])
