"""The command beside a trial trains that trial: typed again, it has the same key."""

import shlex

import pytest

import unspool as us
from unspool.cli.commands.train import train
from unspool.cli.data_options import DataOptions
from unspool.cli.train_options import TrainOptions
from unspool.study.results.commands import source_words, train_command
from unspool.study.store import Store
from unspool.train import DataRecord, Stop, TrainConfig, Trial

FILES = {
    "edges": "my edges.csv",
    "features": "x.csv",
    "label_column": "a b",
    "feature_columns": ["u", "v"],
    "directed": True,
    "header": False,
}
SOURCES = (FILES, {"dataset": "cora", "split": "random:0.6/0.2/0.2"})
CONFIGS = (
    TrainConfig(),
    TrainConfig(lr=0.1 + 0.2, epochs=7, weight_decay={"first": 5e-4, "linear": 0.01}),
    TrainConfig(patience=30, stop=Stop.NEVER),
    TrainConfig(stop=Stop.ABOVE_MEAN, patience=5, min_epochs=3, optimiser=__import__("torch").optim.SGD),
)


def stored(trial, source):
    with Store(None) as store:
        store.add([trial], DataRecord("people", "5e1f", source=source))
        return store.rows()[0]


def typed(command):
    words = shlex.split(command)
    assert words[:2] == ["unspool", "train"]
    options = train.make_context("train", words[2:]).params
    data, how = DataOptions.taken_from(options), TrainOptions.taken_from(options)
    return how.trial(data).with_seed(options["first_seed"]), data, how


@pytest.mark.parametrize("source", SOURCES, ids=["files", "named"])
@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
@pytest.mark.parametrize("model", [us.models.GCN, us.models.GPRGNN, us.models.JKNet, us.models.UGDGNN])
def test_the_command_gives_the_same_trial(model, config, source):
    trial = Trial(model, {"dropout": 0.25, "depth": 3}, config, seed=4, normalise_rows=True)
    row = stored(trial, source)
    again, data, how = typed(train_command(row, "out/again"))
    assert again.key("5e1f") == row.key
    assert data.record() == source
    assert how.loss == "classes"


def test_every_model_with_its_defaults():
    for model in us.models.MODELS:
        row = stored(Trial(model, seed=1), FILES)
        assert typed(train_command(row, "out/a"))[0].key("5e1f") == row.key


def test_what_cannot_be_typed_has_no_command():
    trial = Trial(us.models.GCN)
    assert train_command(stored(trial, None), "out/a") is None

    def mine(groups, lr):
        return __import__("torch").optim.Adam(groups, lr=lr)

    own = Trial(us.models.GCN, config=TrainConfig(optimiser=mine))
    assert train_command(stored(own, FILES), "out/a") is None


def test_options_that_say_no():
    assert source_words({"directed": False, "header": False}) == ["--undirected", "--no-header"]
