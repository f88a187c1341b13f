"""One rule for threads, one for shares, and what needs no drawing, whichever door one comes in by."""

import json
import sys

import pytest
import torch
from click.testing import CliRunner

import unspool as us
from unspool import datasets, study, train
from unspool.train import epochs
from unspool.train.threads import SMALL, asked_threads, threads_for, use_threads

pytestmark = pytest.mark.long


@pytest.fixture
def cli():
    from unspool.cli.main import cli

    return cli


@pytest.mark.parametrize(("nodes", "asked", "expected"), [(10, None, 1), (SMALL, None, 1), (SMALL + 1, None, 3), (10, 2, 2), (SMALL + 1, 1, 1)])  # fmt: skip
def test_small_graphs_take_one_thread_unless_another_number_is_asked_for(monkeypatch, nodes, asked, expected):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    with use_threads(asked):
        assert threads_for(nodes) == expected
    assert asked_threads() is None
    with pytest.raises(ValueError, match="threads=0"), use_threads(0):
        pass


def test_fit_and_studies_train_with_the_number_asked_for(monkeypatch):
    data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
    seen, whole = [], epochs.Epochs.__call__
    monkeypatch.setattr(epochs.Epochs, "__call__", lambda self: (seen.append(torch.get_num_threads()), whole(self))[1])
    with use_threads(2):
        train.train_trial(train.Trial(us.models.SGC, config=train.TrainConfig(epochs=1)), data)
    study.run(study.grid(us.models.SGC, seed=0, epochs=1), data, device="cpu", threads=2)
    study.run(study.grid(us.models.SGC, seed=0, epochs=1), data, device="cpu")
    assert (seen[:-1], seen[-1]) == ([2] * (len(seen) - 1), 1)
    assert torch.get_num_threads() == 1  # as the tests have it


@pytest.mark.parametrize("model", [us.models.UGDGNN, us.models.GCN])
def test_numbers_do_not_depend_on_the_number_of_threads(model):
    data = datasets.contextual_sbm(nodes=300, classes=3, seed=0)
    found = []
    for count in (1, 2, 3):
        with use_threads(count):
            trial = train.Trial(model, {"hidden": 32}, train.TrainConfig(epochs=10))
            found.append(train.train_trial(trial, data)[1].best)
    for other in found[1:]:
        assert other.epoch == found[0].epoch
        assert other.valid_loss == pytest.approx(found[0].valid_loss, rel=1e-5)


@pytest.mark.parametrize("loss", [train.CrossEntropy(), train.Binary(), train.Ranking(), train.Regression()])
def test_shares_are_shown_in_per_cent_everywhere(cli, loss):
    from unspool.report.score import Score
    from unspool.study.results.exporting import spread
    from unspool.train.loss import SHARES

    share = loss.score_name in SHARES
    assert share is not isinstance(loss, train.Regression)
    assert ("%" in spread(0.81, 0.01, loss.score_name)) is share
    assert (Score(loss.score_name, percent=share).unit == " %") is share
    import unspool.cli.train  # noqa: F401 - the module that shows shares on the command line

    doors = {
        name: vars(module)["SHARES"]
        for name, module in sys.modules.items()
        if name.startswith("unspool.") and "SHARES" in vars(module)
    }
    assert {name.split(".")[1] for name in doors} >= {"cli", "report", "study", "train"}
    assert all(one is SHARES for one in doors.values())


def test_spectrum_in_json_and_the_demo_need_nothing_to_draw_with(cli, tmp_path, monkeypatch):
    from unspool.cli import demo, spectrum
    from unspool.models.pretrained import save_pretrained

    save_pretrained(us.models.APPNP(4, 2), tmp_path / "model")
    for module in (demo, spectrum):
        monkeypatch.setattr(module, "can_draw", lambda: False)
    out = tmp_path / "h.png"
    done = CliRunner().invoke(cli, ["spectrum", str(tmp_path / "model"), "--json", "--out", str(out)])
    assert done.exit_code == 0, repr(done.exception)
    assert json.loads(done.output)["picture"] is None
    done = CliRunner().invoke(cli, ["spectrum", str(tmp_path / "model"), "--out", str(out)])
    assert done.exit_code == 0, repr(done.exception)
    assert "matplotlib" in done.output
    assert not out.exists()
    done = CliRunner().invoke(cli, ["demo", "--nodes", "40", "--depth", "2", "--out", str(out)])
    assert done.exit_code == 0, repr(done.exception)
    assert "unspool[plot]" in done.output
    assert not out.exists()
