"""Wrong input: one sentence that names the culprit and the way out."""

import importlib
import pickle
import sys

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError

import unspool as us
from unspool import models
from unspool.estimator import GCV, SURE, GraphDenoiser, NodeClassifier, NodeRegressor
from unspool.train import Monitor

GRAPH = us.graph.ring(6)
X = np.arange(12.0).reshape(6, 2)
Y = np.array([0, 1, 0, 1, -1, -1])
NAN = np.where(np.arange(12).reshape(6, 2) == 5, np.nan, X)

FITS = {
    "one dimension": (lambda: (X[:, 0], Y), "x is one-dimensional: expected \\(nodes, features\\)"),
    "three dimensions": (lambda: (X[None], Y), "features of shape \\(1, 6, 2\\)"),
    "no features": (lambda: (X[:, :0], Y), "features of shape \\(6, 0\\)"),
    "nan": (lambda: (NAN, Y), "row 2, column 1 is nan"),
    "text": (lambda: (X.astype(str), Y), "expected numbers"),
    "complex": (lambda: (X + 1j, Y), "Complex data not supported"),
    "few labels": (lambda: (X, Y[:4]), "y has 4 entries for 6 rows of x"),
    "many columns": (lambda: (X, np.eye(6)), "for one-hot rows pass y.argmax\\(1\\)"),
    "no labels": (lambda: (X, np.full(6, -1)), "no node has a label"),
    "one class": (lambda: (X, np.array([1, 1, 1, -1, -1, -1])), "only one class, 1"),
    "one class, named": (lambda: (X, np.array(["a", "a", "", "", "", ""])), "only one class, 'a'"),
    "numbers": (lambda: (X, Y + 0.5), "Unknown label type: entry 0 of y is 0.5.*use NodeRegressor"),
    "infinity": (lambda: (X, np.array([0, 1, np.inf, 0, 1, 0])), "the label of row 2 is infinity"),
    "mixed": (lambda: (X, np.array([0, "a", 1, "b", None, None], dtype=object)), "y mixes labels of type int and str"),
    "none": (lambda: (X, None), "requires y to be passed"),
    "scalar": (lambda: (X, 3), "expected one class per node"),
}


@pytest.mark.parametrize("case", FITS)
def test_what_classifiers_refuse_to_learn_from(case):
    given, sentence = FITS[case]
    with pytest.raises((ValueError, TypeError), match=sentence) as caught:
        NodeClassifier(epochs=1).fit(*given(), graph=GRAPH)
    assert "\n" not in str(caught.value)


WRONG = {
    "depth": ({"depth": 0}, "depth", 0, "a whole number from 1 to 10000"),
    "epochs": ({"epochs": 0}, "epochs", 0, "a whole number of at least 1"),
    "half an epoch": ({"epochs": 1.5}, "epochs", 1.5, "a whole number of at least 1"),
    "rate": ({"lr": -1.0}, "lr", -1.0, "a finite number above 0"),
    "decay": ({"weight_decay": -1.0}, "weight_decay", -1.0, "a number of at least 0, or one for each group of parameters"),
    "patience": ({"patience": 0}, "patience", 0, "a whole number of at least 1"),
    "monitor": ({"monitor": "best"}, "monitor", "best", "Monitor.VALID_LOSS, Monitor.VALID_SCORE, Monitor.TRAIN_LOSS, Monitor.LAST_EPOCH, or the name of a scorer of scikit-learn (sklearn.metrics.get_scorer_names())"),
    "device": ({"device": "nowhere"}, "device", "nowhere", "a device that can be used here"),
    "a choice": ({"masks": "once"}, "masks", "once", "one of Masks.ONCE, Masks.EACH_HOP"),
}  # fmt: skip


@pytest.mark.parametrize("estimator", [NodeClassifier, NodeRegressor])
@pytest.mark.parametrize("case", WRONG)
def test_settings_that_do_not_fit(case, estimator):
    settings, argument, value, expected = WRONG[case]
    made = estimator(**settings)  # nothing is checked before fit
    with pytest.raises(us.InputError) as caught:
        made.fit(X, Y, graph=GRAPH)
    assert (caught.value.argument, caught.value.value, caught.value.expected) == (argument, value, expected)


@pytest.mark.parametrize(
    ("settings", "argument", "owner", "hint"),
    [
        ({"depht": 3}, "depht", "UGDGNN", "did you mean depth?"),
        ({"epoch": 3}, "epoch", "UGDGNN", "did you mean epochs?"),  # the estimator's own
        ({"model": models.GCN, "teleport": 0.1}, "teleport", "GCN", None),
        ({"model": "gcn", "teleport": 0.1}, "teleport", "GCN", None),
    ],
)
def test_names_that_neither_model_nor_estimator_has(settings, argument, owner, hint):
    with pytest.raises(us.InputError) as caught:
        NodeClassifier(**settings).fit(X, Y, graph=GRAPH)
    assert (caught.value.argument, caught.value.owner, caught.value.hint) == (argument, owner, hint)
    known = [*getattr(models, owner).schema, "epochs", "lr", "valid_share"]
    assert all(name in caught.value.expected for name in known)


SETTINGS = {
    "instance": ({"model": models.GCN(2, 2)}, "model is a GCN already made: give the class GCN"),
    "no class": ({"model": 3}, "model=3: expected a class"),
    "a function": ({"model": models.GCN.build}, "expected a class"),
    "no name": ({"model": "gcm"}, "model='gcm': expected the name of a model .*did you mean .*GCN"),
    "share": ({"valid_share": 1.0}, "valid_share=1.0: expected a number in \\[0, 1\\)"),
    "share of text": ({"valid_share": "half"}, "valid_share='half'"),
    "seed": ({"seed": -1}, "seed=-1"),
    "no seed": ({"seed": None}, "seed=None"),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_models_shares_and_seeds_that_are_none(case):
    settings, sentence = SETTINGS[case]
    clf = NodeClassifier(**settings)
    with pytest.raises((ValueError, TypeError), match=sentence):
        clf.fit(X, Y, graph=GRAPH)


def test_errors_of_a_search_in_other_processes_keep_their_words():
    clf = NodeClassifier(epochs=1, depht=3)
    try:
        clf.fit(X, Y, graph=GRAPH)
    except us.InputError as problem:
        again = pickle.loads(pickle.dumps(problem))
    assert str(again).startswith("depht: expected a setting of UGDGNN")


def test_graphs_that_do_not_fit():
    clf = NodeClassifier(epochs=1)
    with pytest.raises(ValueError, match="there is no graph: pass graph="):
        clf.fit(X, Y)
    with pytest.raises(ValueError, match=r"x has 6 rows, but the graph has 5 nodes.*bind both"):
        clf.fit(X, Y, graph=us.graph.ring(5))
    with pytest.raises(TypeError, match="the graph is of type str"):
        clf.fit(X, Y, graph="ring")
    with pytest.raises(ValueError, match="edge 0 names node 9, but node ids run from 0 to 5"):
        clf.fit(X, Y, graph=[[9], [0]])


def test_ids_that_do_not_fit():
    clf = NodeClassifier(epochs=1, features=X, graph=GRAPH)
    with pytest.raises(ValueError, match="x names node 6, but node ids run from 0 to 5"):
        clf.fit([0, 1, 6], [0, 1, 0])
    with pytest.raises(ValueError, match="x names node 1 twice"):
        clf.fit([0, 1, 1], [0, 1, 0])
    with pytest.raises(ValueError, match="expected node ids, whole numbers; features are bound"):
        clf.fit(X, Y)
    clf.fit([0, 1, 2, 3], [0, 1, 0, 1])
    with pytest.raises(ValueError, match="x names node -1"):
        clf.predict([-1])
    free = NodeClassifier(epochs=1)
    with pytest.raises(ValueError, match="node 4 is in valid but has no label"):
        free.fit(X, Y, graph=GRAPH, valid=[4])
    with pytest.raises(ValueError, match="valid names node 7"):
        free.fit(X, Y, graph=GRAPH, valid=[7])
    with pytest.raises(ValueError, match="valid is empty"):
        free.fit(X, Y, graph=GRAPH, valid=np.zeros(6, dtype=bool))
    with pytest.raises(ValueError, match="valid holds all labelled nodes"):
        free.fit(X, Y, graph=GRAPH, valid=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="2 labelled nodes are too few to hold some back"):
        free.fit(X, [0, 1, -1, -1, -1, -1], graph=GRAPH)
    assert NodeClassifier(epochs=1, valid_share=0).fit(X, [0, 1, -1, -1, -1, -1], graph=GRAPH).n_iter_ == 1


def test_questions_that_do_not_fit():
    for one in (NodeClassifier(), NodeRegressor()):
        for ask in (one.predict, lambda one=one: one.score(X, Y), lambda one=one: one.objective_):
            with pytest.raises(NotFittedError):
                ask()
    with pytest.raises(NotFittedError):
        GraphDenoiser().transform(X)
    clf = NodeClassifier(epochs=1).fit(X, Y, graph=GRAPH)
    with pytest.raises(ValueError, match="X has 1 features, but NodeClassifier is expecting 2"):
        clf.predict(X[:, :1])
    with pytest.raises(ValueError, match="x has 4 rows, but the graph it was trained on has 6 nodes"):
        clf.predict(X[:4])
    with pytest.raises(ValueError, match="y has 3 entries for 6 rows"):
        clf.score(X, Y[:3])
    with pytest.raises(ValueError, match="no entry of y is a label"):
        clf.score(X, np.full(6, -1))


def test_targets_that_do_not_fit():
    reg = NodeRegressor(epochs=1)
    with pytest.raises(ValueError, match="targets are numbers; for names use NodeClassifier"):
        reg.fit(X, list("abcdef"), graph=GRAPH)
    with pytest.raises(ValueError, match="no node has a target"):
        reg.fit(X, np.full(6, np.nan), graph=GRAPH)
    with pytest.raises(ValueError, match="the target of row 1 is infinity"):
        reg.fit(X, [0, np.inf, 0, 0, 0, 0], graph=GRAPH)
    with pytest.raises(ValueError, match="the target of row 2 is NaN in column 1 only"):
        reg.fit(X, NAN, graph=GRAPH)
    with pytest.raises(ValueError, match="y has 3 entries for 6 rows"):
        reg.fit(X, [1.0, 2.0, 3.0], graph=GRAPH)
    assert reg.set_params(monitor=Monitor.LAST_EPOCH).fit(X, X[:, 0], graph=GRAPH).predict().shape == (6,)


def test_what_denoisers_refuse():
    for weight in (0, 1.5, -0.1, "half", np.nan):
        with pytest.raises(us.InputError) as caught:
            GraphDenoiser(weight).fit(X, graph=GRAPH)
        assert (caught.value.argument, caught.value.value) == ("weight", weight)
        assert "a number in (0, 1]" in caught.value.expected
    with pytest.raises(ValueError, match="weight and objective are both given"):
        GraphDenoiser(0.5, objective=us.Fidelity(1.0)).fit(X, graph=GRAPH)
    with pytest.raises(TypeError, match="is not an objective"):
        GraphDenoiser(objective=3).fit(X, graph=GRAPH)
    with pytest.raises(ValueError, match="row 2, column 1 is inf"):
        GraphDenoiser().fit(np.where(np.isnan(NAN), np.inf, NAN), graph=GRAPH)
    with pytest.raises(ValueError, match="x has shape \\(1, 6, 2\\)"):
        GraphDenoiser().fit(X[None], graph=GRAPH)
    with pytest.raises(us.IncompatibleError, match="this graph is directed"):
        GraphDenoiser().fit(X, graph=us.Graph.from_edges([[0, 1], [1, 2]], nodes=6, directed=True))
    with pytest.raises(us.IncompatibleError, match="no edges"):
        GraphDenoiser(GCV()).fit(X, graph=us.Graph.from_edges([[], []], nodes=6))
    with pytest.raises(ValueError, match="noise=-1: a standard deviation"):
        GraphDenoiser(SURE(noise=-1)).fit(X, graph=GRAPH)
    with pytest.raises(ValueError, match=r"candidates=\[0\.5, 1\.0\]: expected weights between 0 and 1"):
        GraphDenoiser(GCV([0.5, 1.0])).fit(X, graph=GRAPH)
    fitted = GraphDenoiser(0.5).fit(X, graph=GRAPH)
    with pytest.raises(ValueError, match="x has 4 rows, but the graph it was fitted on has 6 nodes"):
        fitted.transform(X[:4])
    with pytest.raises(ValueError, match="X has 1 features, but GraphDenoiser is expecting 2"):
        fitted.transform(X[:, 0])


def test_a_missing_scikit_learn_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)  # as if it were not installed
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'unspool\[sklearn\]'"):
        importlib.reload(sys.modules["unspool.estimator"])


class Impatient(torch.nn.Module):
    def __init__(self, in_features, out_features, patience=3):
        super().__init__()


def test_a_name_that_a_plain_module_and_the_estimator_have_is_refused():
    with pytest.raises(us.InputError, match="an argument of Impatient and of NodeClassifier; rename that of the model"):
        NodeClassifier(Impatient, patience=5).fit(X, Y, graph=GRAPH)
