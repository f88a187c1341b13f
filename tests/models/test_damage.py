"""One flipped bit in what a model or a run is kept in: found, or without effect."""

import hashlib
import json
import random
import shutil

import pytest
import torch
from safetensors.torch import save as packed

from unspool import datasets, models, train
from unspool.models.pretrained import history_fits, load_with_card, read_card, save_pretrained, write_card

pytestmark = pytest.mark.long


FLIPS = 120


def flipped(content, place):
    changed = bytearray(content)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


def model():
    torch.manual_seed(0)
    return models.APPNP(4, 2, hidden=3)


def numbers(found):
    return {name: value.tolist() for name, value in found.state_dict().items()}


def folder(place):
    save_pretrained(model(), place, metrics={"test": 0.5}, data={"name": "Wörter", "classes": ["a", "b"]})

    def read():
        found, said = load_with_card(place)
        return numbers(found), json.dumps(said, sort_keys=True)

    return read


def weights(place):
    read = folder(place)
    return next(place.glob("*.safetensors")), read


def card(place):
    read = folder(place)
    return place / "model.json", read


def snapshot(place):
    file, data = place / "run.pt", datasets.contextual_sbm(nodes=30, classes=2, features=4, seed=0)
    task, config = train.Task.of(data), train.TrainConfig(epochs=2)
    train.fit(model(), task, config, snapshot=file)

    def read():
        again = model()
        run = train.fit(again, task, config, snapshot=file)
        return numbers(again), run.history

    return file, read


@pytest.mark.parametrize("kind", [weights, card, snapshot])
def test_a_flipped_bit_is_named_or_changes_nothing(kind, tmp_path):
    file, read = kind(tmp_path)
    whole, expected, chance = file.read_bytes(), read(), random.Random(0)
    said = []
    for place in chance.sample(range(8 * len(whole)), FLIPS):
        file.write_bytes(flipped(whole, place))
        try:
            found = read()
        except (ValueError, FileNotFoundError) as problem:
            said.append(str(problem))
        else:
            assert found == expected, place
    assert len(said) > FLIPS / 2
    assert all(file.name in line and "\n" not in line for line in said)
    file.write_bytes(whole)
    assert read() == expected


def test_weights_of_another_model_are_not_taken(tmp_path):
    """A folder whose files come from two runs, whole each, is not a model."""
    one, two = (
        save_pretrained(model(), tmp_path / "one"),
        save_pretrained(models.APPNP(4, 2, hidden=3), tmp_path / "two"),
    )
    (mine,), (other,) = (list(place.glob("*.safetensors")) for place in (one, two))
    shutil.copy(other, mine)
    with pytest.raises(ValueError, match=f"{mine.name} is damaged: its checksum does not match"):
        load_with_card(one)


def test_a_card_may_be_laid_out_anew_and_not_changed(tmp_path):
    place = save_pretrained(model(), tmp_path, metrics={"test": 0.5}, numbered={1: "a", 10: "b", 9: "c"})
    said = json.loads((place / "model.json").read_text())
    (place / "model.json").write_text(json.dumps(said, sort_keys=True))
    assert load_with_card(place)[1]["metrics"] == {"test": 0.5}
    for name in said:
        changed = {**said, name: "other"} if said[name] != "other" else {}
        (place / "model.json").write_text(json.dumps(changed))
        with pytest.raises(ValueError, match=r"model\.json is damaged: its checksum does not match"):
            load_with_card(place)
    said.pop("checksum")
    (place / "model.json").write_text(json.dumps(said))
    with pytest.raises(ValueError, match=r"model\.json carries no checksum"):
        load_with_card(place)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[]", "3", '"card"', "null", "", "{}", "1" * 5000])
def test_json_that_is_not_a_card_is_named(text, tmp_path):
    place = save_pretrained(model(), tmp_path)
    (place / "model.json").write_text(text)
    with pytest.raises(ValueError, match=r"model\.json (is damaged|carries no checksum)"):
        load_with_card(place)


@pytest.mark.parametrize("bits", range(0, 8 * 60, 37))
def test_a_flipped_bit_in_the_history_is_noticed_and_the_model_still_comes(bits, tmp_path):
    content = b"epoch,train_loss,valid_loss\n1,1.5,1.25\n2,1.125,1.0\n3,1.0,0.875\n"
    place = save_pretrained(model(), tmp_path, history=content)
    said = load_with_card(place)[1]
    assert history_fits(place, said)
    (place / "history.csv").write_bytes(flipped(content, bits))
    assert not history_fits(place, load_with_card(place)[1])


def test_snapshots_without_a_checksum_are_refused(tmp_path):
    file, read = snapshot(tmp_path)
    torch.save(torch.load(file, weights_only=True), file)  # the same content, unsealed
    with pytest.raises(ValueError, match=r"run\.pt cannot be continued \(it carries no checksum"):
        read()


@pytest.mark.parametrize("kind", [torch.complex64, torch.int64, torch.float64, torch.bool])
def test_numbers_of_another_kind_are_not_squeezed_in(kind, tmp_path):
    place = save_pretrained(model(), tmp_path)
    state = model().state_dict()
    last = next(reversed([name for name, value in state.items() if value.is_floating_point()]))
    content = packed({**state, last: state[last].to(kind)})
    next(place.glob("*.safetensors")).write_bytes(content)
    write_card(place, {**read_card(place), "weights_sha256": hashlib.sha256(content).hexdigest()})
    with pytest.raises(ValueError, match=r"does not fit its own description: .* holds torch"):
        load_with_card(place)
