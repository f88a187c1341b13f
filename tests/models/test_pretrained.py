"""Saving and coming back: whole or not at all, nothing executed, and in words when something is wrong."""

import builtins
import dataclasses
import hashlib
import json
import pickle
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import save as packed
from torch import nn

import unspool as us
from reference.cases import CASES, IN, OUT, build, converted_models, edge_lists, signal
from unspool import identity, models
from unspool.models import pretrained
from unspool.models.pretrained import (
    CARD,
    FORMAT,
    HISTORY,
    describe,
    history_fits,
    load_with_card,
    read_card,
    write_card,
)
from unspool.models.registry import name_of
from unspool.settings.kinds import Kind

INDEX, WEIGHTS, NODES = edge_lists()["weighted"]


@pytest.mark.parametrize("name", CASES)
def test_every_model_comes_back(name, tmp_path):
    x, model = signal(NODES), build(name)
    model(x, INDEX, WEIGHTS)  # dropout has counted
    us.save(model, tmp_path)
    again = us.load(tmp_path)
    assert type(again) is type(model)
    assert again.settings == model.settings
    assert str(again.objective) == str(model.objective) == again.card["objective"]
    assert again.card["derivation"] == model.derivation
    assert not again.training
    assert torch.equal(again(x, INDEX, WEIGHTS), model.eval()(x, INDEX, WEIGHTS))
    assert torch.equal(again.train()(x, INDEX, WEIGHTS), model.train()(x, INDEX, WEIGHTS))  # and counts on


@pytest.mark.parametrize("name", converted_models())
def test_converted_models_come_back(name, tmp_path):
    x, model = signal(NODES), converted_models()[name]
    us.save(model, tmp_path)
    again = us.load(tmp_path)
    assert torch.equal(again(x, INDEX, WEIGHTS), model.eval()(x, INDEX, WEIGHTS))
    us.save(again, tmp_path)
    assert torch.equal(us.load(tmp_path)(x, INDEX, WEIGHTS), model(x, INDEX, WEIGHTS))


def test_models_that_solve_their_problem_come_back_so(tmp_path):
    model, x = build("APPNP").solve_exactly().eval(), signal(NODES)
    us.save(model, tmp_path)
    again = us.load(tmp_path)
    assert again.solved_exactly
    assert torch.equal(again(x, INDEX, WEIGHTS), model(x, INDEX, WEIGHTS))


def test_single_precision_comes_back_as_it_was(tmp_path):
    model, x = models.GCNII(IN, OUT).eval(), signal(NODES).float()
    us.save(model, str(tmp_path))
    assert torch.equal(us.load(str(tmp_path))(x, INDEX), model(x, INDEX))


def test_numbers_of_numpy_and_torch_are_saved_as_numbers(tmp_path):
    us.save(models.APPNP(IN, OUT, teleport=np.float64(0.2), depth=np.int64(3), dropout=torch.tensor(0.5)), tmp_path)
    settings = us.load(tmp_path).settings
    assert (settings["teleport"], settings["depth"], settings["dropout"]) == (0.2, 3, 0.5)
    us.save(models.GPRGNN(IN, OUT, depth=2, start=models.HopStart.WARM, warm=np.arange(3.0)), tmp_path)
    assert us.load(tmp_path).settings["warm"] == [0.0, 1.0, 2.0]


def test_the_card_says_what_the_model_is_and_what_is_known(tmp_path):
    us.save(build("APPNP"), tmp_path, metrics={"test": 0.5}, data={"classes": ["Wörter", "b"]})
    model, card = load_with_card(tmp_path)
    assert model.card == card == read_card(tmp_path)
    assert card["settings"] == models.APPNP.schema.to_plain(model.settings)
    assert {**describe(model), "metrics": {"test": 0.5}, "data": {"classes": ["Wörter", "b"]}}.items() <= card.items()
    assert set(card["versions"]) == {"unspool", "torch", "python"}
    assert models.APPNP(3, 2).card == {}


def test_settings_that_a_file_does_not_know_have_their_defaults(tmp_path):
    """A model may gain settings without files of before becoming useless."""
    for kind in models.MODELS:
        model = kind(IN, OUT).eval()
        for name in kind.schema:
            us.save(model, tmp_path)
            card = read_card(tmp_path)
            del card["settings"][name]
            write_card(tmp_path, card)
            again = us.load(tmp_path)
            assert again.settings == model.settings
    assert torch.equal(again(torch.eye(IN), us.graph.ring(IN)), model(torch.eye(IN), us.graph.ring(IN)))


# -- whole or not at all ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("calls", [0, 1, 2])
def test_an_interrupted_save_leaves_the_old_model(calls, tmp_path, monkeypatch):
    """Whichever of its files does not get onto the disk: weights, history, card."""
    old, x = build("APPNP").eval(), signal(NODES)
    us.save(old, tmp_path, history=b"epoch\n1\n")
    left, whole = [calls], pretrained.write_whole

    def broken(path, write):
        if left[0] == 0:
            raise OSError("no space left on device")
        left[0] -= 1
        whole(path, write)

    monkeypatch.setattr(pretrained, "write_whole", broken)
    with pytest.raises(OSError, match="no space"):
        us.save(build("GCN"), tmp_path, history=b"epoch\n1\n2\n")
    monkeypatch.undo()
    again = us.load(tmp_path)
    assert torch.equal(again(x, INDEX, WEIGHTS), old(x, INDEX, WEIGHTS))
    assert history_fits(tmp_path, again.card) is (calls < 2)
    us.save(build("GCN"), tmp_path)
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".csv", ".json", ".safetensors"]


def test_an_old_model_is_replaced_and_other_files_stay(tmp_path):
    us.save(build("APPNP"), tmp_path)
    (mine,) = tmp_path.glob("weights-*.safetensors")
    others = ["weights-0123456789ab.safetensors", "weights-mine.safetensors", "notes.txt"]
    for name in others:  # the first looks like ours, and its content is another
        (tmp_path / name).write_text("mine")
    (tmp_path / "weights-ba9876543210.safetensors").symlink_to(tmp_path / "notes.txt")
    us.save(build("GCN"), tmp_path)
    assert isinstance(us.load(tmp_path), models.GCN)
    assert not mine.exists()
    assert all((tmp_path / name).read_text() == "mine" for name in [*others, "weights-ba9876543210.safetensors"])


def test_what_cannot_be_saved_is_named_and_nothing_is_written(tmp_path):
    place = tmp_path / "new" / "folder"
    with pytest.raises(TypeError, match=r"Linear does not say how it was built; give built_from=BuiltFrom"):
        us.save(nn.Linear(2, 2), place)
    with pytest.raises(us.InputError) as caught:
        us.save(nn.Linear(2, 2), place, built_from=models.BuiltFrom(2, 2, {"bias": object()}))
    assert caught.value.argument == "bias"
    for facts in ({"metrics": object()}, {"metrics": {1j: 2}}, {"metrics": {"test": torch.ones(2)}}):
        with pytest.raises(us.InputError) as caught:
            us.save(build("GCN"), place, **facts)
        assert caught.value.argument == "metrics"
    for name in (*read_card(us.save(build("GCN"), tmp_path / "card", history=b"")), "checksum"):
        if name != "model":  # that one is the model itself
            with pytest.raises(us.InputError) as caught:
                us.save(build("GCN"), place, **{name: 1})
            assert caught.value.argument == name
    odd = build("GCN")
    vars(odd)["settings"]["colour"] = object()
    with pytest.raises(us.InputError) as caught:
        us.save(odd, place)
    assert caught.value.argument == "colour"
    assert not (tmp_path / "new").exists()


@dataclasses.dataclass
class Held:
    weights: object = 1


class Holding(models.SGC):
    held: Held = us.setting(Held(), "an object", of=Held)


class Odd(Kind):
    """Says that it can be stored, and cannot."""

    expected = "anything"

    def accept(self, value):
        return value

    def parse(self, text):
        return text


class Lying(models.SGC):
    odd: object = us.setting(object(), "an object", of=Odd())


def test_a_setting_that_json_cannot_hold_leaves_no_weights_behind(tmp_path):
    with pytest.raises(us.InputError) as caught:
        us.save(Holding(3, 2, held=Held(torch.ones(2))), tmp_path / "held")
    assert caught.value.argument == "held"
    with pytest.raises(TypeError):
        us.save(Lying(3, 2), tmp_path / "odd", history=b"epoch")
    assert not [*tmp_path.iterdir()]
    us.save(Holding(3, 2, held=Held([1, "a"])), tmp_path)
    assert us.load(tmp_path, model=Holding).held == Held([1, "a"])


@pytest.mark.parametrize("given", ["GCN", models.GCN(3, 2), nn.Linear, 3, dict])
def test_what_is_given_as_the_class_is_a_class(given, tmp_path):
    saved(tmp_path)
    with pytest.raises((us.InputError, us.IncompatibleError)) as caught:
        us.load(tmp_path, model=given)
    assert given is nn.Linear or (caught.value.argument, caught.value.value) == ("model", given)


# -- what is wrong with a folder --------------------------------------------------------------------------------------


class Bad:
    """Runs code where it is unpickled."""

    def __reduce__(self):
        return exec, ("import builtins; builtins.code_ran = True",)


def saved(place, model=None):
    return us.save(build("APPNP") if model is None else model, place)


def weights_of(place):
    return place / read_card(place)["weights"]


def changed(place, **changes):
    """A folder whose card says something else and is sealed again."""
    saved(place)
    write_card(place, {**read_card(place), **changes})
    return place


def holding(place, content):
    """A folder whose card vouches for whatever its weights are."""
    saved(place)
    weights_of(place).write_bytes(content)
    return changed_card(place, weights_sha256=hashlib.sha256(content).hexdigest())


def changed_card(place, **changes):
    write_card(place, {**read_card(place), **changes})
    return place


def with_state(place, **changes):
    saved(place)
    state = {**build("APPNP").state_dict(), **changes}
    return holding(place, packed({name: value for name, value in state.items() if value is not None}))


def written(path, content):
    path.write_bytes(content)
    return path.parent


def cut(path):
    path.write_bytes(path.read_bytes()[:-20])
    return path.parent


def alone(place):
    """A card whose weights are gone."""
    weights_of(saved(place)).unlink()
    return place


def emptied(place):
    place.mkdir()
    return place


def a_file(place):
    place.write_bytes(pickle.dumps(Bad()))
    return place


FIRST = "p_pre.layers.0.weight"
DAMAGED = {
    "no folder": (lambda p: p, FileNotFoundError, "there is no model .*model; give the folder that it was saved to"),
    "an empty folder": (emptied, FileNotFoundError, r"holds no finished model: model\.json is missing"),
    "a file": (a_file, FileNotFoundError, r"holds no finished model: model\.json is missing"),
    "a card that is cut": (lambda p: cut(saved(p) / CARD), ValueError, r"model\.json is damaged"),
    "a card that is empty": (lambda p: written(saved(p) / CARD, b""), ValueError, r"model\.json is damaged"),
    "a card that is text": (lambda p: written(saved(p) / CARD, b"hello"), ValueError, r"model\.json is damaged"),
    "a card that is pickled": (lambda p: written(saved(p) / CARD, pickle.dumps(Bad())), ValueError, r"model\.json is damaged"),
    "no weights": (alone, FileNotFoundError, r"holds no weights: weights-[0-9a-f]{12}\.safetensors is missing"),
    "weights that are cut": (lambda p: cut(weights_of(saved(p))), ValueError, r"\.safetensors is damaged: its checksum does not match"),
    "weights that are text": (lambda p: holding(p, b"hello"), ValueError, r"\.safetensors is damaged"),
    "weights that are pickled": (lambda p: holding(p, pickle.dumps(Bad())), ValueError, r"\.safetensors is damaged"),
    "weights elsewhere": (lambda p: changed(p, weights="../weights.safetensors"), ValueError, r"model\.json is damaged: it names no weights"),
    "weights at the root": (lambda p: changed(p, weights="/etc/passwd"), ValueError, r"model\.json is damaged: it names no weights"),
    "weights without a name": (lambda p: changed(p, weights=None), ValueError, r"model\.json is damaged: it names no weights"),
    "a newer format": (lambda p: changed(p, format=99), ValueError, f"has format 99, this version of unspool reads {FORMAT}; train again"),
    "an older format": (lambda p: changed(p, format=1), ValueError, f"has format 1, this version of unspool reads {FORMAT}"),
    "a format in words": (lambda p: changed(p, format="2"), ValueError, f"has format '2', this version of unspool reads {FORMAT}"),
    "no format": (lambda p: changed(p, format=None), ValueError, "has format None"),
    "another setting": (lambda p: changed(p, settings={"hidden": 4, "depth": 4, "breadth": 2}), ValueError, "does not fit its own .*breadth"),
    "a setting out of range": (lambda p: changed(p, settings={"hidden": 4, "depth": 0}), ValueError, "does not fit its own .*depth=0"),
    "a choice that is none": (lambda p: changed(p, settings={"hidden": 4, "masks": "never"}), ValueError, "does not fit its own .*masks='never'"),
    "no settings": (lambda p: changed(p, settings=None), ValueError, "does not fit its own description"),
    "more features": (lambda p: changed(p, in_features=9), ValueError, "does not fit its own description: .*size mismatch"),
    "many features": (lambda p: changed(p, in_features=10**15), ValueError, r"does not fit its own description: in_features=1000000000000000, but no weight"),
    "a wide layer": (lambda p: changed(p, settings={"hidden": 10**15}), ValueError, "does not fit its own description: hidden=1000000000000000, but no weight"),
    "features in words": (lambda p: changed(p, in_features="six"), ValueError, "does not fit its own description: in_features='six'"),
    "an origin that is none": (lambda p: changed(p, origin="somewhere"), ValueError, "does not fit its own description"),
    "an origin without a model": (lambda p: changed(p, origin={}), us.IncompatibleError, "holds a model None"),
    "an origin that cannot be": (lambda p: changed(p, origin=describe(build("GCN"))), ValueError, "does not fit its own description"),
    "solved, and cannot be": (lambda p: changed_card(saved(p, build("GPRGNN")), solved_exactly=True), ValueError, "does not fit its own .*cannot be solved exactly"),
    "no tensors": (lambda p: holding(p, packed({})), ValueError, "does not fit its own description: .*Missing"),
    "a tensor less": (lambda p: with_state(p, **{FIRST: None}), ValueError, f"does not fit its own description: .*{FIRST}"),
    "a tensor more": (lambda p: with_state(p, extra=torch.ones(1).double()), ValueError, "does not fit its own description: .*extra"),
    "a tensor of another size": (lambda p: with_state(p, **{FIRST: torch.ones(2, 2).double()}), ValueError, "does not fit its own description"),
    "a model that is unknown": (lambda p: changed(p, model="Transformer"), us.IncompatibleError, "holds a model Transformer, which is not imported"),
    "a model elsewhere": (lambda p: changed(p, model="os:system"), us.IncompatibleError, "holds a model os:system, which is not imported"),
    "no model": (lambda p: changed(p, model=None), us.IncompatibleError, "holds a model None"),
    "a model that is a list": (lambda p: changed(p, model=["GCN"]), us.IncompatibleError, "which is not imported"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGED)
def test_what_is_wrong_with_a_folder_is_named_and_nothing_is_executed(case, tmp_path, monkeypatch):
    monkeypatch.setattr(builtins, "code_ran", False, raising=False)
    prepare, kind, words = DAMAGED[case]
    path = prepare(tmp_path / "model")
    with pytest.raises(kind, match=words) as caught:
        us.load(path)
    assert "\n" not in str(caught.value)
    assert not builtins.code_ran


def test_whatever_a_sealed_card_says_is_taken_or_refused_in_one_sentence(tmp_path):
    """Someone who can write the checksum can write anything."""
    whole = read_card(saved(tmp_path))
    strange = [None, True, -1, 0, 10**30, 0.5, "", "x", [], {}, [[]], {"a": {}}, "../../x", "GCN"]
    for name in whole:
        for value in strange:
            write_card(tmp_path, {**whole, name: value})
            try:
                us.load(tmp_path)
            except (ValueError, FileNotFoundError) as problem:
                said = str(problem)
            else:
                said = "fine"
            assert "\n" not in said, (name, value)
            assert len(said) < 1500, (name, value)


def test_a_device_that_cannot_be_used_is_named(tmp_path):
    saved(tmp_path)
    for device in ("abacus", "meta"):
        with pytest.raises(us.InputError) as caught:
            us.load(tmp_path, device=device)
        assert (caught.value.argument, caught.value.value) == ("device", device)


def test_a_job_with_one_seed_is_a_model_and_one_with_several_is_not(tmp_path):
    us.save(build("APPNP"), tmp_path / "seed3")
    assert isinstance(us.load(tmp_path), models.APPNP)
    us.save(build("APPNP"), tmp_path / "seed1")
    with pytest.raises(ValueError, match=r"holds 2 models; take one of them, such as .*seed1"):
        us.load(tmp_path)
    us.save(build("GCN"), tmp_path)
    assert isinstance(us.load(tmp_path), models.GCN)


def test_a_history_that_is_not_that_of_the_model_is_known(tmp_path):
    us.save(build("APPNP"), tmp_path, history=b"epoch\n1\n")
    card = read_card(tmp_path)
    assert (tmp_path / HISTORY).read_bytes() == b"epoch\n1\n"
    assert history_fits(tmp_path, card)
    (tmp_path / HISTORY).write_bytes(b"epoch\n2\n")
    assert not history_fits(tmp_path, card)
    (tmp_path / HISTORY).unlink()
    assert history_fits(tmp_path, card)


def test_a_folder_may_be_moved(tmp_path):
    place, x = saved(tmp_path / "here"), signal(NODES)
    expected = us.load(place)(x, INDEX, WEIGHTS)
    shutil.move(place, tmp_path / "there")
    assert torch.equal(us.load(tmp_path / "there")(x, INDEX, WEIGHTS), expected)


# -- classes that are not of this package -----------------------------------------------------------------------------


class Mine(models.APPNP):
    """With a setting of its own and another default."""

    depth = 3
    gain: float = us.setting(2.0, "by how much the output is larger", above=0)

    def forward(self, x, graph, edge_weight=None):
        return self.gain * super().forward(x, graph, edge_weight)


class Plain(nn.Module):
    """Nothing of ours in it."""

    def __init__(self, in_features, out_features, width=4, act=torch.relu):
        super().__init__()
        self.first, self.second, self.act = nn.Linear(in_features, width), nn.Linear(width, out_features), act

    def forward(self, x, graph):
        return self.second(self.act(self.first(x)))


def test_a_class_of_ones_own_is_stored_by_name_and_refused_unless_it_is_named(tmp_path):
    model, x = Mine(IN, OUT, gain=3.0).eval(), torch.eye(IN)
    us.save(model, tmp_path)
    assert read_card(tmp_path)["model"] == name_of(Mine) == f"{Mine.__module__}:Mine"
    with pytest.raises(us.IncompatibleError, match=r"Mine, which is not imported .*model=\.\.\."):
        us.load(tmp_path)
    with pytest.raises(us.IncompatibleError, match="and not APPNP; name that one"):
        us.load(tmp_path, model=models.APPNP)
    again = us.load(tmp_path, model=Mine)
    assert again.settings == model.settings
    assert torch.equal(again(x, us.graph.ring(IN)), model(x, us.graph.ring(IN)))


def test_a_plain_module_is_stored_with_what_it_was_built_from(tmp_path):
    model, x = Plain(IN, OUT, width=5).eval(), torch.eye(IN)
    us.save(model, tmp_path, built_from=models.BuiltFrom(IN, OUT, {"width": 5}))
    again, card = load_with_card(tmp_path, model=Plain)
    assert torch.equal(again(x, None), model(x, None))
    assert not again.training
    assert again.card == card
    assert card["settings"] == {"width": 5}
    with pytest.raises(us.InputError) as caught:
        us.save(model, tmp_path, built_from=models.BuiltFrom(IN, OUT, {"width": 5, "act": torch.tanh}))
    assert caught.value.argument == "act"
    with pytest.raises(ValueError, match="does not fit its own description"):
        us.load(changed_card(tmp_path, settings={"width": 7}), model=Plain)


def test_a_class_inside_a_function_comes_back_where_it_is_given(tmp_path):
    class Inner(models.GCN):
        pass

    us.save(Inner(IN, OUT), tmp_path)
    assert type(us.load(tmp_path, model=Inner)) is Inner
    assert "<locals>" in json.loads((tmp_path / CARD).read_text())["model"]


class Leaning(us.models.SGC):
    """A model whose code and constants the tests change."""

    gain = 0.5

    def forward(self, x, graph, edge_weight=None):
        return self.gain * super().forward(x, graph, edge_weight)


def test_code_that_has_changed_since_is_refused_unless_it_is_accepted(tmp_path, monkeypatch):
    saved, sgc = us.save(Leaning(5, 2), tmp_path / "own"), us.save(us.models.SGC(5, 2), tmp_path / "ours")
    assert us.load(sgc).card["model_code"] is None
    assert isinstance(us.load(saved, model=Leaning), Leaning)
    monkeypatch.setattr(Leaning, "__doc__", "Other words.")
    assert isinstance(us.load(saved, model=Leaning), Leaning)
    monkeypatch.setattr(identity, "NUMERICS", identity.NUMERICS + 1)  # ours
    assert isinstance(us.load(saved, model=Leaning), Leaning)
    monkeypatch.setattr(Leaning, "gain", 0.25)
    with pytest.raises(us.IncompatibleError, match=r"the code of .*:Leaning has changed since .* with changed_code="):
        us.load(saved, model=Leaning)
    assert us.load(saved, model=Leaning, changed_code=True).gain == 0.25


def test_code_of_another_python_cannot_be_compared(tmp_path, monkeypatch):
    saved = us.save(Leaning(5, 2), tmp_path)
    monkeypatch.setattr(Leaning, "gain", 0.25)
    card = read_card(saved)
    write_card(saved, {**card, "model_code": f"2.7 {card['model_code'].partition(' ')[2]}"})
    assert isinstance(us.load(saved, model=Leaning), Leaning)


def test_code_of_the_model_that_gave_its_parts_counts(tmp_path, monkeypatch):
    saved = us.save(us.models.UGDGNN.from_model(Leaning(5, 2)), tmp_path)
    monkeypatch.setattr(Leaning, "gain", 0.25)
    with pytest.raises(us.IncompatibleError, match="has changed since"):
        us.load(saved, model=Leaning)
