"""A teacher from a folder is asked as ``unspool predict`` would ask it: rows scaled as in training, columns and classes found by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import unspool as us
from unspool import datasets, train
from unspool.datasets import Dataset
from unspool.errors import IncompatibleError
from unspool.ops import SparseFeatures
from unspool.train import CrossEntropy, Task, TrainConfig, Trial, TrialLoader
from unspool.train.run_folder import RunFolder
from unspool.train.upper import Distil

COLUMNS = tuple("abcdef")


def data_of(names: Sequence[str] = COLUMNS) -> Dataset:
    """Counts with named columns and classes."""
    made = datasets.contextual_sbm(nodes=60, classes=3, seed=0)
    x = (3 * made.features[:, :6]).round().abs()
    held = replace(made, features=x, feature_names=COLUMNS, classes=("red", "green", "blue"))
    return with_columns(held, names)


def with_columns(data: Dataset, names: Sequence[str]) -> Dataset:
    assert isinstance(data.features, Tensor)
    return replace(data, features=data.features[:, [COLUMNS.index(name) for name in names]], feature_names=tuple(names))


def with_classes(data: Dataset, names: Sequence[str]) -> Dataset:
    place = torch.tensor([names.index(name) for name in data.classes])
    return replace(data, labels=place[data.labels], classes=tuple(names))


def trained(data: Dataset, out: Path, rows: bool = False, loss: Any = None) -> tuple[Path, Tensor]:
    """The folder of a teacher, and what it says of its own data."""
    loader = TrialLoader(data, kind=loss)
    folder = RunFolder(out, Trial(us.models.GCN, {"hidden": 8}, TrainConfig(epochs=20), normalise_rows=rows), loader)
    folder.train(0)
    model = us.load(folder.place(0))
    with torch.no_grad():
        task = loader.task(0, rows)
        return folder.place(0), model(task.x, task.graph).softmax(-1)


def told(folder: Path, task: Task) -> Tensor:
    return Distil(folder).prepare(task).teacher


@pytest.mark.parametrize("taught", [False, True])
@pytest.mark.parametrize("learns", [False, True])
def test_rows_are_scaled_as_in_the_training_of_the_teacher(tmp_path: Path, taught: bool, learns: bool) -> None:
    data = data_of()
    folder, wanted = trained(data, tmp_path, taught)
    other = wanted - trained(data, tmp_path / "other", not taught)[1]
    assert other.abs().max() > 0.01
    assert torch.allclose(told(folder, TrialLoader(data).task(0, learns)), wanted, atol=1e-6)
    assert torch.allclose(Distil(us.load(folder)).prepare(TrialLoader(data).task(0, learns)).teacher, wanted, atol=1e-6)
    if taught:  # a task without names has rows that can be scaled, too
        assert torch.allclose(told(folder, replace(Task.of(data), named=None)), wanted, atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_columns_are_found_by_name(tmp_path: Path, sparse: bool) -> None:
    folder, wanted = trained(with_columns(data_of(), "abcde"), tmp_path)
    moved = data_of("fedcba")
    if sparse:
        moved = replace(moved, features=SparseFeatures.from_tensor(moved.features))
    assert torch.allclose(told(folder, Task.of(moved)), wanted, atol=1e-6)
    with pytest.raises(IncompatibleError, match="was trained on the feature e, which is missing here"):
        told(folder, Task.of(data_of("dcba")))
    with pytest.raises(IncompatibleError, match="was trained on the feature a, which occurs more than once here"):
        told(folder, Task.of(replace(data_of("abcde"), feature_names=tuple("aacde"))))
    unnamed = replace(data_of("abcde"), feature_names=None)
    assert torch.allclose(told(folder, Task.of(unnamed)), wanted, atol=1e-6)
    with pytest.raises(IncompatibleError, match="was trained on 5 features, and here are 4"):
        told(folder, Task.of(replace(data_of("abcd"), feature_names=None)))


def test_classes_are_found_by_name(tmp_path: Path) -> None:
    data = data_of()
    folder, wanted = trained(data, tmp_path)
    moved = with_classes(data, ("blue", "green", "red"))
    assert torch.allclose(told(folder, Task.of(moved)), wanted[:, [2, 1, 0]], atol=1e-6)
    numbered = replace(data, classes=("0", "1", "2"))  # no names: by their places
    assert torch.allclose(told(folder, Task.of(numbered)), wanted, atol=1e-6)
    with pytest.raises(
        IncompatibleError, match="knows the classes red, green, blue, and here they are red, green, pink"
    ):
        told(folder, Task.of(replace(data, classes=("red", "green", "pink"))))


def test_a_student_learns_what_the_teacher_says_in_a_study(tmp_path: Path) -> None:
    """Through the loader, as stacks of trials do."""
    data = data_of()
    folder, wanted = trained(data, tmp_path, rows=True)
    moved = with_classes(with_columns(data, "fedcba"), ("blue", "green", "red"))
    config = TrainConfig(epochs=3, monitor=train.Monitor.TRAIN_LOSS)
    uppers = [CrossEntropy() + Distil(folder), CrossEntropy() + Distil(wanted[:, [2, 1, 0]])]
    one, other = (
        us.study.run([Trial(us.models.SGC, {}, config.replace(upper=upper), seed=s) for s in (0, 1)], moved)
        for upper in uppers
    )
    for a, b in zip(one.rows, other.rows, strict=True):
        assert a.result is not None
        assert b.result is not None
        assert a.result.train_loss == pytest.approx(b.result.train_loss, rel=1e-5)


def test_a_teacher_of_numbers_is_refused_and_one_of_two_classes_known(tmp_path: Path) -> None:
    data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
    numbers = replace(data, targets=data.labels[:, None].double(), labels=torch.full((60,), -1), classes=())
    folder = trained(numbers, tmp_path / "numbers")[0]
    with pytest.raises(IncompatibleError, match="learnt numbers, and a teacher says probabilities of classes"):
        told(folder, Task.of(data))
    folder = trained(data, tmp_path / "binary", loss=train.TaskKind.BINARY)[0]
    with torch.no_grad():
        yes = us.load(folder)(data.features, data.graph)[:, 0].sigmoid()
    assert torch.allclose(told(folder, Task.of(data)), torch.stack([1 - yes, yes], -1), atol=1e-6)


def test_another_normalisation_of_the_graph_is_refused(tmp_path: Path) -> None:
    data = data_of()
    folder = trained(data, tmp_path)[0]
    card = us.models.pretrained.read_card(folder)
    card["data"]["normalisation"] = "random_walk"
    us.models.pretrained.write_card(folder, card)
    with pytest.raises(IncompatibleError, match="with A normalised as random_walk, and here it is symmetric"):
        told(folder, Task.of(data))


class Table:
    """Named columns, as tables of pandas and polars have them."""

    def __init__(self, values: np.ndarray, columns: list[str]) -> None:
        self.values, self.columns, self.shape, self.ndim = values, columns, values.shape, 2

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        del copy
        return np.asarray(self.values, dtype=dtype)


def test_an_estimator_asks_its_teacher_by_name(tmp_path: Path) -> None:
    data = data_of()
    folder, wanted = trained(data, tmp_path, rows=True)
    heard: list[Tensor] = []

    class Heard(Distil):
        def prepare(self, task: Any) -> Distil:
            heard.append(super().prepare(task).teacher)
            return super().prepare(task)

    x = with_columns(data, "fedcba").features
    assert isinstance(x, Tensor)
    upper, labels = train.upper.as_upper(Heard(folder)), np.array(data.classes)[data.labels]
    us.NodeClassifier(us.models.MLP, epochs=1, upper=upper).fit(
        Table(x.numpy(), list("fedcba")), labels, graph=data.graph
    )
    assert torch.allclose(heard[0], wanted[:, [2, 1, 0]], atol=1e-6)  # the classes of an estimator are sorted


def test_what_cannot_be_asked_is_refused() -> None:
    data = data_of()
    with pytest.raises(IncompatibleError, match=r"the teacher Linear is not called as model\(x, graph\)"):
        Distil(torch.nn.Linear(6, 3)).prepare(Task.of(data))


def test_a_run_does_not_go_on_with_another_teacher(tmp_path: Path) -> None:
    data, out, snapshot = data_of(), tmp_path / "t{0}", tmp_path / "run.pt"
    folder = trained(data, out)[0]

    def run(epochs: int, teacher: Any, path: Path = snapshot) -> train.Run:
        upper = CrossEntropy() + Distil(teacher)
        return train.train_trial(
            Trial(us.models.SGC, {}, TrainConfig(epochs=epochs, upper=upper)), data, snapshot=path
        )[1]

    run(2, folder)
    assert len(run(3, folder).history) == 3
    trained(data, out, rows=True)
    with pytest.raises(ValueError, match=r'began with another teacher than distil\(teacher=".*seed0"\) is now'):
        run(4, folder)

    first, other = torch.full((60, 3), 0.5), torch.full((60, 3), 0.5)
    other[7, 1] = 0.6
    run(2, first, tmp_path / "two.pt")
    assert len(run(3, first.clone(), tmp_path / "two.pt").history) == 3
    with pytest.raises(ValueError, match=r"began with another teacher than distil\(teacher=tensor\) is now"):
        run(4, other, tmp_path / "two.pt")


def test_a_finished_run_of_another_teacher_is_told(tmp_path: Path) -> None:
    data = data_of()
    folder = trained(data, tmp_path / "t")[0]
    trial = Trial(us.models.SGC, {}, TrainConfig(epochs=2, upper=CrossEntropy() + Distil(folder)))
    RunFolder(tmp_path / "s", trial, TrialLoader(data)).train(0)
    trained(data, tmp_path / "t", rows=True)
    with pytest.raises(IncompatibleError, match="was trained with another teacher, or other code of the model"):
        RunFolder(tmp_path / "s", replace(trial), TrialLoader(data)).finished(0)
