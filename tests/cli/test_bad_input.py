"""What cannot be done has its sentence: one line, the culprit and the way out, exit code 2, no traceback.

The lists are printed into docs/bad-input.md by tools/bad_inputs.py.
"""

import functools
import shutil
import sys

import numpy as np
import pytest
import torch

import unspool as us
from cli.bad_input import COMMANDS, DISTURBED, team, write
from cli.people import own, train, write_people
from unspool import datasets, models
from unspool import train as training
from unspool.cli.main import main
from unspool.cli.train import Reporter
from unspool.errors import InputError
from unspool.estimator import GraphDenoiser, NodeClassifier, NodeRegressor
from unspool.models import registry
from unspool.train import run_folder

pytestmark = pytest.mark.long


def task(**changes):
    """A task of five nodes on a ring."""
    ids = {"train": [0, 1], "valid": [2], "test": [3, 4]}
    given = {"x": torch.eye(5), "graph": us.graph.ring(5), "target": torch.tensor([0, 1, 0, 1, 0]), **ids, **changes}
    return training.Task(**{name: torch.as_tensor(v) if name in ids else v for name, v in given.items()})


def fit(model=None, **config):
    return training.fit(models.SGC(5, 2) if model is None else model, task(), training.TrainConfig(epochs=1, **config))


def classify(x=None, y=(0, 1, 0, 1, -1), graph=None, **how):
    x, graph = torch.eye(5) if x is None else x, us.graph.ring(5) if graph is None else graph
    return NodeClassifier(epochs=1, **how).fit(x, y, graph=graph)


#: (what is wrong, how in Python, the sentence): training and estimators without the command line.
LIBRARY = [
    ("a task without training nodes", lambda p: task(train=torch.empty(0, dtype=torch.int64)), "the train set is empty: nothing can be learnt"),
    ("a task without validation nodes", lambda p: task(valid=torch.empty(0, dtype=torch.int64)), "the valid set is empty: nothing can be chosen"),
    ("a test node that is not there", lambda p: task(test=[7]), "the test set names item 7, but there are 5 targets"),
    ("a training node without a label", lambda p: task(target=torch.tensor([0, -1, 0, 1, 0])), "node 1 is in the train set but has no label; take it out of the split"),
    ("too few targets", lambda p: task(target=torch.tensor([0, 1])), "2 targets for 5 nodes: give one per node"),
    ("features of other nodes than the graph's", lambda p: task(graph=us.graph.ring(6)), "x has 5 rows, but the graph has 6 nodes"),
    ("a class in the place of a loss", lambda p: task(loss=training.CrossEntropy), "loss=CrossEntropy is the class; give an instance, CrossEntropy()"),
    ("a loss that is not a function", lambda p: task(loss="mse"), "loss='mse': expected a Loss such as CrossEntropy(), or a function of output and target"),
    ("a loss that comes to several numbers", lambda p: training.fit(models.SGC(5, 2), task(loss=lambda a, b: a), training.TrainConfig(epochs=1)), "the loss is a tensor of shape (2, 2): expected a tensor with one number; take its mean or sum"),
    ("yes and no that are neither", lambda p: task(loss=training.Binary(), target=torch.tensor([0, 1, 2, 1, 0])), "target 2 of item 2 in the valid set: yes is 1 and no is 0"),
    ("a part that holds only no", lambda p: task(loss=training.Binary()), "the valid set holds only no: AUC compares yes with no; choose another split"),
    ("numbers that are missing", lambda p: task(loss=training.Regression(), target=torch.tensor([1, torch.nan, 1, 1, 1])), "node 1 is in the train set but has no number; take it out of the split"),
    ("ranking of equal numbers", lambda p: task(loss=training.Ranking(), target=torch.ones(5)), "all targets of the train set are equal: there is nothing to rank; choose another split"),
    ("ranking by two outputs", lambda p: training.fit(models.SGC(5, 2), task(loss=training.Ranking(), train=[0, 1], valid=[2, 3], test=[3, 4]), training.TrainConfig(epochs=1)), "ranking reads one output per item, found 2; build the model with out_features=1"),
    ("data without a split", lambda p: training.Task.of(datasets.from_tensors([[0, 1], [1, 2]])), "own data has no split; give it one with data.with_split(...)"),
    ("too few links to hold some back", lambda p: training.link_task(datasets.from_tensors([[0, 1], [1, 2]])), "2 links are too few to hold 0.05 and 0.1 of them back; give a graph with more edges, or larger shares"),
    ("a graph of nearly all links", lambda p: training.link_task(datasets.from_tensors(torch.combinations(torch.arange(8)).T)), "the graph links more than half of all pairs of its 8 nodes: too few are left as negative examples"),
    ("all links held back", lambda p: training.link_task(datasets.grid(5, 5), valid=0.5, test=0.5), "valid=0.5: shares of the links lie between 0 and 1, and some must stay for training"),
    ("a rate of zero", lambda p: training.TrainConfig(lr=0.0), "lr=0.0: expected a finite number above 0"),
    ("a configuration without epochs", lambda p: training.TrainConfig(epochs=0), "epochs=0: expected a whole number of at least 1"),
    ("a decay below zero", lambda p: training.TrainConfig(weight_decay={"first": -1.0}), "weight_decay={'first': -1.0}: expected a number of at least 0, or one for each group of parameters"),
    ("a configuration without patience", lambda p: training.TrainConfig(patience=0), "patience=0: expected a whole number of at least 1"),
    ("decay by group for a network without groups", lambda p: fit(torch.nn.Linear(5, 2), weight_decay={"first": 0.1}), "weight_decay is given by group, but Linear has no parameter_groups(); give one number"),
    ("an optimiser that has no decay", lambda p: fit(weight_decay=0.1, optimiser=torch.optim.Rprop), "Rprop has no weight decay; give weight_decay=0, or another optimiser"),
    ("no seeds", lambda p: training.repeat(training.Trial(models.SGC), datasets.grid(5, 5), seeds=0), "no seeds: give a number of at least 1, or the seeds themselves"),
    ("a snapshot that is empty", lambda p: training.fit(models.SGC(5, 2), task(), training.TrainConfig(), snapshot=write(p, "run.pt")), "{}/run.pt cannot be continued (it carries no checksum: it belongs to another model, another version, or is damaged); remove it to start again"),
    ("a module that does not say how it was built", lambda p: us.save(torch.nn.Linear(2, 2), p / "a"), "Linear does not say how it was built; give built_from=BuiltFrom(in_features, out_features, settings), or make it an unspool.models.Model"),
    ("no model to load", lambda p: us.load(p / "a"), "there is no model {}/a; give the folder that it was saved to"),
    ("a classifier with a misspelt setting", lambda p: classify(model=models.SGC, dephth=3), "dephth: expected a setting of SGC, which takes depth, bias, weights, or of NodeClassifier, which takes batch_size, callbacks, class_order, class_weight, clip, device, directed, epochs, features, graph, loss, lr, lr_epochs, lr_schedule, model, monitor, normalise_rows, patience, seed, upper, valid_share, warm_start, weight_decay; did you mean depth?"),
    ("a classifier of a model already made", lambda p: classify(model=models.SGC(5, 2)), "model is a SGC already made: give the class SGC, so that every fit starts again"),
    ("a classifier without a graph", lambda p: NodeClassifier().fit(torch.eye(5), [0, 1, 0, 1, 0]), "there is no graph: pass graph=... to fit, or give it to the constructor"),
    ("a classifier on a graph of another size", lambda p: classify(graph=us.graph.ring(6)), "x has 5 rows, but the graph has 6 nodes: give one row per node; inside a grid search bind both, features=x and graph=graph, and pass node ids as X"),
    ("a classifier with too few labels", lambda p: classify(y=(0, 1)), "y has 2 entries for 5 rows of x: give one per row, -1 (a class) or NaN (a number) where there is none"),
    ("a classifier with one class", lambda p: classify(y=(1, 1, 1, -1, -1)), "the labelled nodes have only one class, 1: give at least two (-1, NaN, None and '' mark nodes without a label)"),
    ("a classifier for numbers", lambda p: classify(y=(0.5, 1.5, 0.5, 1.0, 0.0)), "Unknown label type: entry 0 of y is 0.5, but classes are whole numbers or names; for numbers use NodeRegressor"),
    ("a classifier with a NaN", lambda p: classify(x=np.array([[1.0], [2.0], [np.nan], [1.0], [1.0]])), "features: row 2, column 0 is nan; fill or drop it first"),
    ("a classifier with a share of two", lambda p: classify(valid_share=2), "valid_share=2: expected a number in [0, 1)"),
    ("a regressor for names", lambda p: NodeRegressor().fit(torch.eye(5), list("abcde"), graph=us.graph.ring(5)), "y holds <U1: targets are numbers; for names use NodeClassifier"),
    ("a regressor with half a row", lambda p: NodeRegressor().fit(torch.eye(2), [[1.0, np.nan], [2.0, 3.0]], graph=us.graph.path(2)), "the target of row 0 is NaN in column 1 only: give all columns of a node, or NaN in all of them"),
    ("a denoiser with a weight of zero", lambda p: GraphDenoiser(0).fit(torch.eye(5), graph=us.graph.ring(5)), "weight=0: expected a number in (0, 1], or a rule such as SURE() or GCV()"),
    ("a denoiser on a directed graph", lambda p: GraphDenoiser(0.5).fit(torch.eye(3), graph=us.Graph.from_edges([[0, 1], [1, 2]], directed=True)), "this graph is directed, so no Laplacian BᵀB exists and smoothness is not defined; build it without directed=True"),
]  # fmt: skip

CASES = [*COMMANDS, *DISTURBED, *LIBRARY]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The people with finished jobs, and one that was cut off."""
    place = write_people(tmp_path_factory.mktemp("jobs") / "DIR")
    signals = [",".join(line.split(",")[:3]) for line in (place / "people.csv").read_text().splitlines()]
    (place / "signals.csv").write_text("\n".join(signals) + "\n")
    train(place / "classes", *own(place, "--label-column", "team"), "--seeds", 2)
    train(place / "binary", *own(place, "--label-column", "vip", "--loss", "binary"), epochs=2)
    train(place / "links", *own(place, "--loss", "links"), epochs=2)
    train(place / "grid", "--dataset", "grid", epochs=2)
    with pytest.MonkeyPatch.context() as patch:
        watch = Reporter.__call__

        def broken(self, now, best):
            if now.epoch == 4:
                raise KeyboardInterrupt
            watch(self, now, best)

        patch.setattr(Reporter, "__call__", broken)
        train(place / "cut", *own(place, "--label-column", "team"), "--snapshot-every", 0, code=130)
    return place


@pytest.fixture
def place(trained, tmp_path):
    """A copy to spoil. Cards name the files of the original, which stay as they were."""
    return shutil.copytree(trained, tmp_path / "DIR")


def said(arguments, patch, capsys):
    """What the command prints to stderr, and its exit code."""
    patch.setattr(sys, "argv", ["unspool", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err, ended.value.code


def half_written(place):
    return [path for path in place.rglob(".*") if path.is_file()]


@pytest.mark.parametrize(("what", "how", "sentence"), COMMANDS, ids=[case[0] for case in COMMANDS])
def test_the_sentence_of_a_command(place, monkeypatch, capsys, what, how, sentence):
    arguments = how(place)
    if "cuda" in arguments and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    err, code = said(arguments, monkeypatch, capsys)
    assert (err, code) == (f"unspool: {sentence.replace('{}', str(place))}\n", 2)
    assert not half_written(place)
    assert not list(place.glob("out.*"))


@pytest.mark.parametrize(("what", "how", "sentence"), DISTURBED, ids=[case[0] for case in DISTURBED])
def test_the_sentence_of_a_disturbed_command(place, monkeypatch, capsys, what, how, sentence):
    (place / "out.csv").write_text("old\n")
    with monkeypatch.context() as patch:
        err, code = said(how(place, patch), patch, capsys)
    assert (err, code) == (f"unspool: {sentence.replace('{}', str(place))}\n", 2)
    assert not half_written(place)
    assert (place / "out.csv").read_text() == "old\n"
    assert not list(place.glob("out/seed*/model.json"))


@pytest.mark.parametrize(("what", "how", "sentence"), LIBRARY, ids=[case[0] for case in LIBRARY])
def test_the_sentence_of_the_library(tmp_path, what, how, sentence):
    with pytest.raises((OSError, TypeError, ValueError)) as caught:
        how(tmp_path)
    assert str(caught.value) == sentence.replace("{}", str(tmp_path))
    assert "\n" not in sentence


def test_an_interrupt_before_the_first_epoch_leaves_nothing(place, monkeypatch, capsys):
    def stopped(*how, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_folder, "train_trial", stopped)
    err, code = said(team(place), monkeypatch, capsys)
    assert (err.strip(), code) == ("interrupted", 130)
    assert not list((place / "out").rglob("model.json"))


def test_faults_of_the_program_keep_their_traceback(place, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["unspool", *map(str, team(place))])
    with monkeypatch.context() as patch:
        patch.setattr(
            registry, "shipped", functools.partial({}.__getitem__, "a fault")
        )  # raised by no line of a person's
        with pytest.raises(KeyError, match="a fault"):
            main()
    monkeypatch.setenv("UNSPOOL_TRACEBACK", "1")
    monkeypatch.setattr(sys, "argv", ["unspool", "models", "GNC"])
    with pytest.raises(InputError) as raised:
        main()
    assert (raised.value.argument, raised.value.value) == ("NAME", "GNC")


def test_there_are_many():
    names = [case[0] for case in CASES]
    assert len(set(names)) == len(names) >= 40
