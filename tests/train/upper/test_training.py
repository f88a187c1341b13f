"""Upper levels in training: kept and continued, on the command line, in estimators, in cards and reports, and printed."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

import unspool as us
from unspool import datasets, train
from unspool.cli.errors import sentence
from unspool.cli.main import cli
from unspool.errors import IncompatibleError, InputError
from unspool.estimator import LinkPredictor, NodeClassifier, NodeRegressor
from unspool.train import Ending, TaskKind, TrainConfig, Trial, TrialLoader, train_trial
from unspool.train.upper import Consistency, Upper, as_upper

pytestmark = pytest.mark.long

TEXT = "ce + 2*warm_up(5)*consistency(views=3, temperature=0.5) under drop_nodes(0.5)"
DATA = datasets.contextual_sbm(nodes=60, classes=3, seed=0)
FEATURES = torch.as_tensor(DATA.features)  # type: ignore[arg-type]


def test_a_run_that_was_cut_off_ends_with_the_same_numbers(tmp_path: Path) -> None:
    trial = Trial(us.models.GCN, {"hidden": 8, "batch_norm": True}, TrainConfig(epochs=8, upper=TEXT))
    whole = train_trial(trial, DATA)[1]
    short = Trial(trial.model, trial.settings, trial.config.replace(epochs=3))
    train_trial(short, DATA, snapshot=tmp_path / "run.pt")
    continued = train_trial(trial, DATA, snapshot=tmp_path / "run.pt")[1]
    assert [e.to_list() for e in continued.history] == [e.to_list() for e in whole.history]
    other = Trial(trial.model, trial.settings, trial.config.replace(upper="ce"))
    with pytest.raises(ValueError, match=r"began with upper ce \+ 2\*warm_up"):
        train_trial(other, DATA, snapshot=tmp_path / "run.pt")


def test_a_run_without_a_trial_goes_on_with_the_masks_it_began_with(tmp_path: Path) -> None:
    def model() -> torch.nn.Module:
        torch.manual_seed(0)
        return us.models.SGC(DATA.features.shape[1], 3)

    task, config = train.Task.of(DATA), TrainConfig(epochs=6, upper="ce under drop_nodes(0.5)")
    whole = train.fit(model(), task, config)
    first = model()
    train.fit(first, task, config.replace(epochs=3), snapshot=tmp_path / "run.pt")
    again = model()
    torch.manual_seed(2**64 - 1)  # another process has another one
    continued = train.fit(again, task, config, snapshot=tmp_path / "run.pt")
    assert [e.to_list() for e in continued.history] == [e.to_list() for e in whole.history]


def test_seeds_have_masks_of_their_own_and_the_same_ones_again() -> None:
    def losses(seed: int) -> list[float]:
        trial = Trial(us.models.SGC, {}, TrainConfig(epochs=3, upper="ce under drop_nodes(0.5)"), seed)
        return [e.train_loss for e in train_trial(trial, DATA)[1].history]

    assert losses(0) == losses(0)
    assert losses(0) != losses(1)


def test_training_follows_the_gradient_of_the_sum() -> None:
    """One step of plain gradient descent moves the weights by the gradient of U, formed by hand from views in a loop."""
    task = train.Task.of(DATA)
    torch.manual_seed(0)
    model = us.models.SGC(DATA.features.shape[1], 3)
    by_hand = copy.deepcopy(model)
    config = TrainConfig(
        lr=0.1,
        weight_decay=0.0,
        optimiser=torch.optim.SGD,
        epochs=1,
        upper="ce + 3*consistency(views=1, temperature=0.5)",
    )
    train.fit(model, task, config)
    p = by_hand(task.x, task.graph).softmax(-1)
    target = (p.detach() ** 2) / (p.detach() ** 2).sum(-1, keepdim=True)
    loss = -p[task.train, task.target[task.train]].log().mean() + 3 * (p - target).square().sum(-1).mean()
    loss.backward()
    for now, before in zip(model.parameters(), by_hand.parameters(), strict=True):
        assert before.grad is not None
        assert torch.allclose(now, before - 0.1 * before.grad, atol=1e-6)


def test_numbers_and_links_have_upper_levels_too() -> None:
    numbers = datasets.from_tensors(DATA.edge_index, DATA.features, targets=FEATURES[:, :1].tolist(), directed=False)
    config = TrainConfig(epochs=3, upper="loss + consistency(views=2) under drop_edges(0.2)")
    for loader in (TrialLoader(numbers), TrialLoader(DATA, kind=TaskKind.LINKS)):
        assert train_trial(Trial(us.models.SGC, {}, config), loader)[1].ending is Ending.ALL_EPOCHS
    with pytest.raises(IncompatibleError, match="compares probabilities of classes, and Link learns none"):
        train_trial(
            Trial(us.models.SGC, {}, config.replace(upper="loss + entropy")), TrialLoader(DATA, kind=TaskKind.LINKS)
        )


def test_estimators_take_text_and_sums() -> None:
    how: dict[str, Any] = {"epochs": 4, "hidden": 8, "graph": DATA.edge_index, "directed": False, "seed": 0}
    found = [
        NodeClassifier("APPNP", upper=upper, **how).fit(DATA.features, DATA.labels).run_.best.train_loss
        for upper in (TEXT, Upper.parse(TEXT), None)
    ]
    assert found[0] == found[1] != found[2]
    NodeClassifier("APPNP", upper=TEXT, monitor="balanced_accuracy", **how).fit(DATA.features, DATA.labels)
    NodeRegressor("SGC", upper="loss + consistency", **{k: v for k, v in how.items() if k != "hidden"}).fit(
        DATA.features, FEATURES[:, 0]
    )
    LinkPredictor("SGC", upper="loss + consistency", epochs=3).fit(DATA.features, graph=DATA.edge_index)
    with pytest.raises(InputError, match="upper=3: expected a sum such as"):
        NodeClassifier("APPNP", upper=3, **how).fit(DATA.features, DATA.labels)
    with pytest.raises(IncompatibleError, match="asks for CrossEntropy"):
        NodeClassifier("APPNP", upper="ce", loss="binary", **how).fit(DATA.features, (DATA.labels > 0).long())


def test_the_command_line_takes_it_and_card_and_report_say_it(tmp_path: Path) -> None:
    how = ["train", "APPNP", "--epochs", "3", "--out", str(tmp_path / "out"), "--no-baselines", "--device", "cpu"]
    ran = CliRunner().invoke(cli, [*how, "--upper", TEXT], catch_exceptions=False)
    assert "makes small  CE(Y, pʳ)  +  2·min(1, e/5) ‖pʳ − sharpen(p̄, 0.5)‖²" in ran.output
    card = us.load(tmp_path / "out" / "seed0").card
    assert card["trial"]["config"]["upper"] == TEXT
    page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "What training made small (mean over nodes and 3 views r, each under DropNodes(0.5))" in page
    for text, words in (("ce + entropi", "did you mean entropy"), ("-1*ce", "at least 0")):
        refused = CliRunner().invoke(cli, [*how, "--upper", text]).exception
        assert isinstance(refused, Exception)
        told = str(sentence(refused))
        assert told.startswith(f"--upper {text}: expected a sum")
        assert words in told


def test_the_whole_problem_prints() -> None:
    trial = Trial(
        us.models.APPNP, {"depth": 3}, TrainConfig(upper=as_upper(Consistency(views=2)) + train.CrossEntropy())
    )
    told = str(train.problem_of(trial, DATA))
    assert "‖pʳ − p̄‖²  +  CE(Y, pʳ)   (mean over nodes and 2 views r)" in told
    assert "Hʳ ≈ argmin over H of  0.1 ‖H − X‖²  +  0.9 ‖B H‖²" in told
    plain = str(train.problem_of(Trial(us.models.GCN), DATA))
    assert plain.startswith("min over W   CE(Y, pʳ)   (mean over nodes)")
    assert "<math" in train.problem_of(trial, DATA).html()
