"""Kinds of values: what fits is kept, stored, typed and shown; what does not is refused, and nothing else is ever raised."""

import collections
import contextlib
import dataclasses
import enum
import json
import math

import numpy as np
import pytest
import torch

import unspool as us
from settings.samples import KINDS, Box, Point, Side, fitting, foreign, settings
from unspool.settings.kinds import (
    Anything,
    EnumMember,
    Instance,
    Kind,
    Listed,
    Mismatch,
    Nullable,
    Real,
    Text,
    Whole,
    kind_named,
    kind_of,
)
from unspool.settings.schema import schema_of
from unspool.train.config import Decay, OptimiserKind

DECLARED = dict(settings())
EVERY = [*KINDS, *{one.kind: None for one in DECLARED.values()}]
TEXTS = ["", " ", "x", "none", "nan", "inf", "-inf", "1e400", "-1e400", "0x10", "1_0", "٣", "9" * 5000, "true", "[1]", "{}", "1,2", "1/x", "=", "a=", "=1", "first=", "first=-1", "box(", "box)", "box(width)", "box(width=)", "box(width=x)", "box(height=1)", "point(width=1)", "\x00", "os.system"]  # fmt: skip
PLAINS = [None, True, -1, 10**400, 0.5, math.nan, "", "x", [], [[]], ["x", None], {}, {"type": "Box"}, {"type": "Box", "width": "x"}, {"type": "system"}, {"type": "Box", "eval": 1}, {"first": "x"}, {"type": ["Box"]}]  # fmt: skip


def same(a, b):
    """Equal, and of the same type all through: 1, 1.0 and True are three values."""
    if isinstance(a, list | dict):
        items = zip(a, b, strict=True) if isinstance(a, list) else ((a[k], b[k]) for k in a)
        return type(a) is type(b) and len(a) == len(b) and all(same(x, y) for x, y in items)
    return type(a) is type(b) and a == b


def label(thing):
    return repr(thing)[:60]


@pytest.mark.parametrize("kind", EVERY, ids=label)
def test_what_fits_is_kept_stored_typed_and_shown(kind):
    for value in fitting(kind):
        check_round_trips(kind, value)


def check_round_trips(kind, value):
    kept = kind.accept(value)
    assert kept == value
    assert same(kind.accept(kept), kept)
    plain = kind.to_plain(kept)
    text = json.dumps(plain, allow_nan=False)
    assert same(kind.from_plain(json.loads(text)), kept)
    if kept in ("", [], None) and not isinstance(kind, Nullable):
        return  # nothing cannot be typed
    typed = kind.parse(kind.shown(kept))
    assert same(typed, kept) or (isinstance(kind, Anything) and str(typed) == str(kept))
    assert "," not in kind.shown(kept) or isinstance(kind, Anything)  # which separates the values of a search


@pytest.mark.parametrize("kind", EVERY, ids=label)
def test_what_does_not_fit_is_refused(kind):
    for value in foreign(kind):
        with pytest.raises(Mismatch):
            print(f"{value!r} is accepted as {kind.accept(value)!r}")


@pytest.mark.parametrize("kind", EVERY, ids=label)
def test_whatever_is_typed_is_a_value_or_refused(kind):
    for text in TEXTS:
        with contextlib.suppress(Mismatch):
            found = kind.parse(text)
            assert same(kind.accept(found), found), text


@pytest.mark.parametrize("kind", EVERY, ids=label)
def test_whatever_a_file_holds_is_a_value_or_refused(kind):
    for plain in PLAINS:
        with contextlib.suppress(Mismatch):
            assert kind.accept(kind.from_plain(plain)) is not None or plain is None, plain


@pytest.mark.parametrize("kind", EVERY, ids=label)
def test_what_is_expected_is_said(kind):
    assert kind.expected
    assert "\n" not in kind.expected
    assert kind == type(kind)(*(getattr(kind, name) for name in kind.__dataclass_fields__))  # kinds are values


@pytest.mark.parametrize("name", DECLARED)
def test_every_declared_setting_names_itself_when_it_refuses(name):
    one = DECLARED[name]
    owner, _, own = name.partition(".")
    for value in foreign(one.kind):
        with pytest.raises(us.InputError) as caught:
            one.accept(value)
        found = caught.value
        assert (found.argument, found.expected, found.hint) == (own, one.kind.expected, one.hint)
        assert found.value is value
        assert found.owner == owner
    for text in ("", "nothing of the kind"):
        with pytest.raises(us.InputError) as caught:
            one.parse(text)
        assert (caught.value.argument, caught.value.value, caught.value.expected) == (own, text, one.typed)
    with pytest.raises(us.InputError) as caught:
        one.from_plain({"type": "system"})
    assert caught.value.argument == own


@pytest.mark.parametrize("name", DECLARED)
def test_every_declared_setting_says_what_it_is(name):
    one = DECLARED[name]
    assert one.name == name.partition(".")[2]
    assert one.meaning
    assert one.meaning[0] == one.meaning[0].lower() or not one.meaning[1].islower()  # half a sentence
    assert not one.meaning.endswith(".")
    assert same(one.accept(one.default), one.default)
    assert one.shown(one.default)
    assert one.typed in repr(one)


@pytest.mark.parametrize(
    ("kind", "given", "kept"),
    [
        (Whole(), np.int64(3), 3),
        (Whole(), np.array(3), 3),
        (Whole(), torch.tensor(3), 3),
        (Real(), 1, 1.0),
        (Real(), np.float32(0.5), 0.5),
        (Real(), np.int8(2), 2.0),
        (Real(), torch.tensor(0.5), 0.5),
        (Listed(Real()), (1, 2), [1.0, 2.0]),
        (Listed(Real()), np.arange(2), [0.0, 1.0]),
        (Listed(Whole()), torch.arange(2), [0, 1]),
        (Listed(Whole()), range(2), [0, 1]),
        (Decay(), 0, 0.0),
        (Decay(), {"first": 1}, {"first": 1.0}),
    ],
)
def test_numbers_of_numpy_and_torch_are_kept_as_pythons(kind, given, kept):
    assert same(kind.accept(given), kept)


def test_a_list_that_was_given_is_not_the_one_that_is_kept():
    given = [1.0, 2.0]
    kept = Listed(Real()).accept(given)
    given.append(3.0)
    assert kept == [1.0, 2.0]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (EnumMember(Side), "LEFT", Side.left),
        (EnumMember(Side), "right-hand", Side.RIGHT_HAND),
        (EnumMember(Side), "Right_Hand", Side.RIGHT_HAND),
        (Instance((Box, Point)), "Box", Box()),
        (Instance((Box, Point)), "box()", Box()),
        (Instance((Box, Point)), "box(depth=5)", Box(depth=5)),
        (Instance((Box, Point)), " box ( depth = 5 ; width = -2.5 )", Box(-2.5, 5)),
        (Instance((Box, Point)), "point", Point()),
        (Nullable(Whole()), "None", None),
        (Listed(Real()), "0.5 / 1e-3", [0.5, 1e-3]),
        (Real(), "1e-3", 1e-3),
        (Whole(), "-3", -3),
        (Text(), "none", "none"),
        (Decay(), "first=5e-4; convolution=0.01", {"first": 5e-4, "convolution": 0.01}),
        (OptimiserKind(), "AdamW", torch.optim.AdamW),
        (Anything(), "3", 3),
        (Anything(), "3.5", 3.5),
        (Anything(), "yes", True),
        (Anything(), "relu", "relu"),
    ],
)
def test_how_values_are_typed(kind, text, value):
    assert same(kind.parse(text), value)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Whole(), "a whole number"),
        (Whole(low=1), "a whole number of at least 1"),
        (Whole(high=5), "a whole number of at most 5"),
        (Whole(2, 7), "a whole number from 2 to 7"),
        (Real(), "a finite number"),
        (Real(0.0), "a finite number of at least 0"),
        (Real(0.0, low_open=True), "a finite number above 0"),
        (Real(high=1.0, high_open=True), "a finite number below 1"),
        (Real(0.0, 1.0, high_open=True), "a number in [0, 1)"),
        (Real(0.0, 1.0, low_open=True), "a number in (0, 1]"),
        (EnumMember(Side), "one of Side.left, Side.RIGHT_HAND"),
        (Instance((Box, Point)), "one of Box(...), Point(...)"),
        (Nullable(Whole(1)), "a whole number of at least 1, or None"),
        (Listed(Whole(1)), "a list, each a whole number of at least 1"),
    ],
)
def test_ranges_in_words(kind, expected):
    assert kind.expected == expected


@pytest.mark.parametrize("text", ["=1", "first=0.1;=1", "first=0.1;", "first", "first=0.1,linear=0.1"])
def test_decays_by_groups_that_cannot_be_read(text):
    with pytest.raises(Mismatch):
        Decay().parse(text)


def test_a_decay_by_groups_is_shown_without_the_groups_that_have_none():
    """What is shown, typed again, decays every group as before."""
    held = {"first": 0.1, "hops": 0.0}
    assert Decay().shown(held) == "first=0.1"
    for given in (held, {"hops": 0.0}):
        again = Decay().parse(Decay().shown(given))
        for group in ("first", "linear", "hops"):
            configs = [us.train.TrainConfig(weight_decay=one) for one in (given, again)]
            assert configs[0].decay_of(group) == configs[1].decay_of(group)


def test_enums_that_files_cannot_tell_apart_are_refused():
    case = enum.Enum("Case", {"relu": 1, "RELU": 2})
    hyphen = enum.Enum("Hyphen", {"a-b": 1, "a_b": 2})
    for kind, word in ((case, "relu"), (hyphen, "a_b")):
        with pytest.raises(TypeError, match=f"{kind.__name__} has more than one member that is written {word}"):
            kind_named(kind)
    alias = enum.Enum("Alias", {"relu": 1, "RELU": 1})  # one member with two names
    assert EnumMember(alias).parse("ReLU") is alias.relu
    single = enum.Enum("Single", {"A-B": 1})
    assert EnumMember(single).from_plain(EnumMember(single).to_plain(single(1))) is single(1)


@pytest.mark.parametrize("default", [1, 3, 0])
def test_flags_are_no_choices(default):
    flags = enum.Flag("Flags", {"A": 1, "B": 2})
    with pytest.raises(TypeError, match=r"^Flags is a Flag, whose members can be combined.*: make it an Enum$"):
        us.setting(flags(default), "some of them")

    class Plain(torch.nn.Module):
        def __init__(self, in_features, out_features, flags=flags(default)):  # noqa: B008
            super().__init__()

    assert isinstance(schema_of(Plain)["flags"].kind, Anything)


@pytest.mark.parametrize(
    ("default", "given", "kept"),
    [
        ((1, 2), (3, (4,)), (3, (4,))),
        ((1, 2), [3, [4]], (3, (4,))),
        (None, (3, (4,)), [3, [4]]),
        ([1], [3, (4,)], [3, [4]]),
    ],
)
def test_sequences_of_which_nothing_is_known_come_back_as_they_were(default, given, kept):
    one = us.setting(default, "whatever", of=object)
    assert same(one.accept(given), kept)
    assert same(one.from_plain(json.loads(json.dumps(one.to_plain(one.accept(given))))), kept)


def test_sequences_of_another_class_are_not_stored():
    with pytest.raises(Mismatch):
        Anything().to_plain(collections.namedtuple("Pair", "a b")(1, 2))


@dataclasses.dataclass(frozen=True)
class Shaped:
    sizes: tuple[int, ...]
    ends: list[float] = dataclasses.field(default_factory=list)
    pair: object = (1, 2)
    area: int = dataclasses.field(init=False, default=0)

    def __post_init__(self):
        object.__setattr__(self, "area", math.prod(self.sizes))


def test_objects_come_back_with_tuples_and_with_what_follows_from_their_fields():
    kind, value = Instance((Shaped,)), Shaped((2, 3), [0.5], (4, (5,)))
    again = kind.from_plain(json.loads(json.dumps(kind.to_plain(value))))
    assert again == value
    assert again.area == 6
    assert kind.names == ("shaped(sizes=...; ends=...; pair=...)",)
    assert "area" not in kind.shown(value)


@pytest.mark.parametrize("value", [Shaped((torch.ones(2),)), Shaped((), pair=[1, 2]), Shaped((), pair={"a": 1}), Shaped([2], pair=Side.left)])  # fmt: skip
def test_objects_that_could_not_be_made_again_are_not_stored(value):
    with pytest.raises(Mismatch):
        Instance((Shaped,)).to_plain(value)


def test_a_field_called_type_is_refused():
    kind = dataclasses.make_dataclass("Typed", [("type", str)])
    with pytest.raises(TypeError, match=r"^Typed has a field called type, .*; rename the field$"):
        us.setting(kind("a"), "an object", of=kind)


def test_an_optimiser_of_ones_own_is_known_to_files_by_name_only():
    from functools import partial

    def mine(groups, lr):
        return torch.optim.SGD(groups, lr=lr)

    kind = OptimiserKind()
    assert kind.accept(mine) is mine
    assert kind.to_plain(mine) == "mine"
    assert kind.to_plain(partial(torch.optim.SGD, momentum=0.9)) == "SGD(momentum=0.9)"
    for stored in ("mine", "SGD(momentum=0.9)", "Optimizer", "os.system", 3, None):
        with pytest.raises(Mismatch):
            kind.from_plain(stored)


def test_objects_of_which_nothing_is_known_are_shown_and_not_stored():
    kind, thing = Anything(), object()
    assert kind.accept(thing) is thing
    assert kind.shown(thing) == "object"
    for unknown in (thing, Side.left, {"a": 1}, np.ones(2), [thing]):
        with pytest.raises(Mismatch):
            kind.to_plain(unknown)


@pytest.mark.parametrize(
    ("value", "kind"),
    [(0.5, Real()), (3, Whole()), (True, kind_named(bool)), ("a", Text()), (Side.left, EnumMember(Side)), (None, None), ([1], None), (Box(), None)],
)  # fmt: skip
def test_the_kind_that_a_default_tells(value, kind):
    assert kind_of(value) == kind


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (int, Whole()), (float, Real()), (str, Text()), (object, Anything()), (Side, EnumMember(Side)), ([float], Listed(Real())),
        ([[int]], Listed(Listed(Whole()))), (Box, Instance((Box,))), ((Box, Point), Instance((Box, Point))), (Whole(3), Whole(3)),
    ],
)  # fmt: skip
def test_the_kind_that_a_type_tells(given, kind):
    assert kind_named(given) == kind


@pytest.mark.parametrize("given", [dict, list, [int, float], (Box, int), Box(), 3, None, torch.Tensor])
def test_types_that_tell_no_kind_are_named(given):
    with pytest.raises(TypeError, match="a setting is a number, a truth value, text, a choice, a list or a dataclass"):
        kind_named(given)


def test_a_kind_of_ones_own():
    class Even(Kind):
        expected = "an even number"

        def accept(self, value):
            if not isinstance(value, int) or value % 2:
                raise Mismatch
            return value

        def parse(self, text):
            return self.accept(int(text))

    class Pairs(us.models.Model):
        pairs: int = us.setting(2, "how many", of=Even())

        def build(self):
            self.propagation = us.unroll(us.Fidelity(1.0), us.GradientDescent(step=0.5), self.pairs)

    assert Pairs(3, 3, pairs=4).pairs == 4
    assert Pairs.schema["pairs"].from_plain(Pairs.schema["pairs"].to_plain(6)) == 6
    with pytest.raises(us.InputError) as caught:
        Pairs(3, 3, pairs=3)
    assert (caught.value.argument, caught.value.value, caught.value.expected) == ("pairs", 3, "an even number")
