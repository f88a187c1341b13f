"""What is predicted is decided once: seen in the data, checked against it, with its outputs and its loss."""

import pytest
import torch

import unspool as us
from unspool import datasets, train
from unspool.train import TaskKind, TrainConfig, Trial, TrialLoader


def classes(count=3):
    return datasets.contextual_sbm(nodes=60, classes=count, seed=0)


def numbers(columns=1):
    made = classes()
    random = torch.Generator().manual_seed(0)
    return datasets.from_tensors(made.edge_index, made.features, targets=torch.randn(60, columns, generator=random))


def several():
    made = classes()
    rows = torch.stack([made.labels == 0, made.labels != 1], 1).float()
    return datasets.from_tensors(made.edge_index, made.features, rows, classes=["red", "round"])


def counts():
    made = classes()
    return datasets.from_tensors(made.edge_index, made.features, targets=3.0 * made.labels + 1)


def ordered():
    made = classes()
    names = [("low", "mid", "high")[label] for label in made.labels.tolist()]
    return datasets.from_tensors(made.edge_index, made.features, names, class_order=["low", "mid", "high"])


DATA = {
    "three classes": classes(),
    "two classes": classes(2),
    "one number": numbers(),
    "two numbers": numbers(2),
    "two labels": several(),
    "one count": counts(),
    "ordered classes": ordered(),
}
OUTPUTS = {
    ("three classes", TaskKind.CLASSES): 3,
    ("two classes", TaskKind.CLASSES): 2,
    ("two classes", TaskKind.BINARY): 1,
    ("one number", TaskKind.NUMBERS): 1,
    ("two numbers", TaskKind.NUMBERS): 2,
    ("one number", TaskKind.RANKING): 1,
    ("three classes", TaskKind.LINKS): 64,
    ("one number", TaskKind.LINKS): 64,
    ("two labels", TaskKind.MULTILABEL): 2,
    ("one count", TaskKind.COUNTS): 1,
    ("one count", TaskKind.NUMBERS): 1,
    ("ordered classes", TaskKind.ORDINAL): 2,
    ("ordered classes", TaskKind.CLASSES): 3,
    ("two classes", TaskKind.ORDINAL): 1,
}
#: What is wrong, by the argument that would put it right.
REFUSED = {
    ("three classes", TaskKind.BINARY): "loss",
    ("three classes", TaskKind.NUMBERS): "target_columns",
    ("three classes", TaskKind.RANKING): "target_columns",
    ("one number", TaskKind.CLASSES): "label_column",
    ("one number", TaskKind.BINARY): "label_column",
    ("two numbers", TaskKind.RANKING): "loss",
    ("three classes", TaskKind.MULTILABEL): "label_columns",
    ("two numbers", TaskKind.MULTILABEL): "label_columns",
    ("three classes", TaskKind.COUNTS): "target_columns",
    ("one number", TaskKind.ORDINAL): "label_column",
    ("two labels", TaskKind.CLASSES): "label_column",
    ("two labels", TaskKind.NUMBERS): "target_columns",
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [("three classes", TaskKind.CLASSES), ("two classes", TaskKind.CLASSES), ("one number", TaskKind.NUMBERS), ("two numbers", TaskKind.NUMBERS),
     ("two labels", TaskKind.MULTILABEL), ("one count", TaskKind.NUMBERS), ("ordered classes", TaskKind.ORDINAL)],
)  # fmt: skip
def test_what_data_ask_for_is_seen(name, kind):
    assert TaskKind.seen_in(DATA[name]) is kind
    assert TrialLoader(DATA[name]).kind is kind


@pytest.mark.parametrize(("name", "kind"), OUTPUTS, ids=str)
def test_every_kind_is_trained_with_its_outputs_and_its_score(name, kind):
    loader = TrialLoader(DATA[name], kind=kind)
    assert kind.outputs(DATA[name]) == loader.outputs == OUTPUTS[name, kind]
    model, run = train.train_trial(Trial(us.models.SGC, config=TrainConfig(epochs=2)), loader)
    assert model.out_features == loader.outputs
    assert len(run.history) == 2
    assert loader.score == loader.task().loss.score_name == loader.record.score
    assert kind is TaskKind.LINKS or type(loader.task().loss) is type(kind.loss())


@pytest.mark.parametrize(("name", "kind"), REFUSED, ids=str)
def test_what_the_data_do_not_have_is_named(name, kind):
    with pytest.raises(us.InputError) as caught:
        TrialLoader(DATA[name], kind=kind)
    assert caught.value.argument == REFUSED[name, kind]
    assert caught.value.expected


def test_every_kind_is_under_these_laws():
    assert {kind for _, kind in OUTPUTS} == set(TaskKind)
