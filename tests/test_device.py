"""One rule for the device, whichever door one comes in by."""

import pytest
import torch
from click.testing import CliRunner

from unspool.cli.main import cli
from unspool.device import check_device, device_for
from unspool.errors import InputError
from unspool.estimator import NodeClassifier


def test_a_gpu_is_taken_where_there_is_one_and_nothing_is_said(monkeypatch):
    for there in (True, False):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert device_for(None) == ("cuda" if there else "cpu")
        assert device_for("cpu") == "cpu"


def test_every_door_asks_the_same_rule():
    said = {command: _device_option(cli, command) for command in (("train",), ("study", "run"), ("predict",))}
    assert set(said.values()) == {None}
    assert NodeClassifier().device is None


def _device_option(command, names):
    for name in names:
        command = command.commands[name]
    (option,) = [p for p in command.params if p.name == "device"]
    return option.default if isinstance(option.default, str) else None


def test_the_command_prints_where_it_trains(tmp_path):
    typed = ["train", "SGC", "--dataset", "contextual_sbm", "--epochs", "2", "--no-report", "--threads", "2"]
    done = CliRunner().invoke(cli, [*typed, "--device", "cpu", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "on cpu, 2 threads" in done.output


@pytest.mark.parametrize("device", ["abacus", "meta", "cuda:99"])
def test_a_device_that_cannot_be_used_is_named(device):
    check_device("cpu")
    with pytest.raises(InputError) as caught:
        check_device(device)
    assert (caught.value.argument, caught.value.value) == ("device", device)
