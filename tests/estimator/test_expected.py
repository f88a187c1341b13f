"""What users of scikit-learn and PyG expect: models by name, Data objects, scorers, callbacks, warm starts, names of features."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import average_precision_score, get_scorer, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from torch_geometric.data import Data

import unspool as us
from unspool import models, train
from unspool.estimator import NodeClassifier, NodeRegressor, NodeSplit
from unspool.evaluate import Calibration, Uncalibrated
from unspool.train import Ending, Monitor, Rates, TaskKind, Verdict

pytestmark = pytest.mark.long

QUICK = {"epochs": 15, "seed": 3}
PLAIN = Calibration(None, 0, Uncalibrated.FEW_NODES)


class Plain(torch.nn.Module):
    """A model of one's own."""

    def __init__(self, in_features, out_features, width=4):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(in_features, width), torch.nn.ReLU(), torch.nn.Linear(width, out_features)
        )

    def forward(self, x, graph):
        return graph @ self.layers(x.to_dense() if not isinstance(x, torch.Tensor) else x)


# -- models ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"), [("GPRGNN", models.GPRGNN), ("gcn", models.GCN), (f"{__name__}:Plain", Plain)]
)
def test_models_by_name_are_the_same_as_by_class(name, kind, data, x, partly):
    named = NodeClassifier(name, **QUICK).fit(x, partly, graph=data.graph)
    given = NodeClassifier(kind, **QUICK).fit(x, partly, graph=data.graph)
    assert type(named.model_).__name__ == kind.__name__
    assert np.array_equal(named.predict_proba(), given.predict_proba())
    assert clone(named).model == name


def test_a_search_walks_over_models_by_name(data, x):
    clf = NodeClassifier(features=x, graph=data.graph, **QUICK)
    search = GridSearchCV(clf, {"model": ["SGC", "MLP"]}, cv=NodeSplit(2)).fit(np.arange(90), data.labels.numpy())
    assert search.best_params_["model"] in ("SGC", "MLP")


# -- Data objects of PyG -----------------------------------------------------------------------------------------------


@pytest.fixture
def pyg(data):
    """The same data as PyG has them, with masks."""
    coo = data.graph.to_scipy().tocoo()
    apart = coo.row != coo.col
    made = Data(
        x=data.features,
        edge_index=torch.as_tensor(np.stack([coo.col[apart], coo.row[apart]])).long(),
        y=data.labels,
    )
    mask = torch.arange(90) % 6
    made.train_mask, made.val_mask, made.test_mask = mask < 2, mask == 2, mask == 3
    return made


def test_fit_of_a_data_object_is_fit_of_its_parts(pyg, data, x):
    clf = NodeClassifier("APPNP", **QUICK).fit(pyg)
    labels = np.where((pyg.train_mask | pyg.val_mask).numpy(), data.labels.numpy(), -1)
    valid = np.flatnonzero(pyg.val_mask)
    apart = NodeClassifier("APPNP", **QUICK).fit(x, labels, graph=data.graph, valid=valid)
    assert np.allclose(clf.predict_proba(), apart.predict_proba(), atol=1e-6)
    assert np.array_equal(clf.predict(pyg), clf.predict())
    test = pyg.test_mask.numpy()
    assert clf.score(pyg) == np.mean(clf.predict()[test] == data.labels.numpy()[test])


def test_a_data_object_without_masks_is_learnt_from_as_a_whole(pyg, data, x):
    bare = Data(x=pyg.x, edge_index=pyg.edge_index, y=pyg.y)
    clf = NodeClassifier("SGC", **QUICK).fit(bare)
    apart = NodeClassifier("SGC", **QUICK).fit(x, data.labels.numpy(), graph=data.graph)
    assert np.allclose(clf.predict_proba(), apart.predict_proba(), atol=1e-6)
    assert clf.score(bare) == clf.score(x, data.labels.numpy())


def test_numbers_of_a_data_object(pyg, x):
    pyg.y = pyg.x[:, 0] * 3
    reg = NodeRegressor("APPNP", epochs=60, dropout=0.0, depth=1).fit(pyg)
    learnt = (pyg.train_mask | pyg.val_mask).numpy()
    only = np.where(learnt, pyg.y.numpy(), np.nan)
    valid = np.flatnonzero(pyg.val_mask)
    apart = NodeRegressor("APPNP", epochs=60, dropout=0.0, depth=1).fit(x, only, graph=pyg, valid=valid)
    assert np.allclose(reg.predict(), apart.predict(), atol=1e-5)


def test_hidden_labels_of_a_data_object_do_not_count(pyg):
    before = NodeClassifier("APPNP", **QUICK).fit(pyg).predict_proba()
    changed = pyg.clone()
    hidden = ~(pyg.train_mask | pyg.val_mask)
    changed.y = torch.where(hidden, (pyg.y + 1) % 3, pyg.y)
    assert np.array_equal(NodeClassifier("APPNP", **QUICK).fit(changed).predict_proba(), before)


def test_what_a_data_object_cannot_be(pyg):
    with pytest.raises(us.InputError) as caught:
        NodeClassifier("SGC").fit(pyg, pyg.y)
    assert caught.value.argument == "y"
    pyg.train_mask = torch.stack([pyg.train_mask] * 2, dim=1)
    with pytest.raises(us.InputError) as caught:
        NodeClassifier("SGC").fit(pyg)
    assert caught.value.argument == "train_mask"
    assert "[:, 0]" in caught.value.hint
    del pyg.y
    with pytest.raises(us.InputError) as caught:
        NodeClassifier("SGC").fit(pyg)
    assert caught.value.argument == "y"


# -- training ----------------------------------------------------------------------------------------------------------


def test_callbacks_of_an_estimator(data, x, partly):
    seen = []

    def stop(moment):
        seen.append(moment.epoch)
        return Verdict.STOP if moment.epoch == 4 else None

    clf = NodeClassifier("GCN", callbacks=[stop], **QUICK).fit(x, partly, graph=data.graph)
    assert seen == [1, 2, 3, 4]
    assert clf.n_iter_ == 4
    assert clf.run_.ending is Ending.STOPPED
    assert clone(clf).callbacks[0] is stop


def test_rates_and_clipping_of_an_estimator(data, x, partly):
    how = {"lr_schedule": Rates.COSINE, "lr_epochs": 15, "clip": 0.1}
    clf = NodeClassifier("GCN", **how, **QUICK).fit(x, partly, graph=data.graph)
    plain = NodeClassifier("GCN", **QUICK).fit(x, partly, graph=data.graph)
    config = train.TrainConfig(epochs=15, patience=100, **how)
    assert clf._config(True).to_plain() == config.to_plain()
    assert not np.array_equal(clf.predict_proba(), plain.predict_proba())
    for name, value in (("clip", -1.0), ("lr_schedule", "cosine"), ("lr_epochs", 0)):
        with pytest.raises(us.InputError) as caught:
            NodeClassifier("GCN", **{name: value}).fit(x, partly, graph=data.graph)
        assert caught.value.argument == name


def test_a_warm_start_goes_on_where_training_ended(data, x, partly):
    clf = NodeClassifier("SGC", epochs=20, valid_share=0, warm_start=True).fit(x, partly, graph=data.graph)
    first = clf.run_.history[-1].train_loss
    clf.fit(x, partly, graph=data.graph)
    assert clf.run_.history[0].train_loss < first
    again = NodeClassifier("SGC", epochs=20, valid_share=0).fit(x, partly, graph=data.graph)
    assert again.fit(x, partly, graph=data.graph).run_.history[0].train_loss > first
    assert not hasattr(clone(clf), "model_")


def test_a_warm_start_takes_new_labels_and_a_new_graph(data, x, partly):
    clf = NodeClassifier("SGC", epochs=5, warm_start=True).fit(x, partly, graph=data.graph)
    ring = us.graph.ring(90)
    assert clf.fit(x, data.labels.numpy(), graph=ring).graph_ is ring


@pytest.mark.parametrize("change", ["classes", "features", "settings", "model"])
def test_weights_that_do_not_belong_there_are_refused(change, data, x, partly):
    clf = NodeClassifier("GCN", hidden=8, warm_start=True, **QUICK).fit(x, partly, graph=data.graph)
    y, other = partly.copy(), x
    if change == "classes":
        y[y == 2] = 1
    elif change == "features":
        other = x[:, :5]
    else:
        clf.set_params(**({"hidden": 9} if change == "settings" else {"model": "APPNP"}))
    with pytest.raises(us.IncompatibleError):
        clf.fit(other, y, graph=data.graph)


# -- scores ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def two(data):
    return (data.labels.numpy() > 0).astype(int)


@pytest.mark.parametrize(
    "name", ["roc_auc", "average_precision", "f1", "balanced_accuracy", "neg_log_loss", "neg_brier_score"]
)
def test_scorers_of_scikit_learn(name, data, x, two):
    clf = NodeClassifier("APPNP", features=x, graph=data.graph, **QUICK)
    found = cross_val_score(clf, np.arange(90), two, cv=NodeSplit(3), scoring=name)
    assert found.shape == (3,)
    assert np.isfinite(found).all()
    clf.fit(np.arange(45), two[:45])
    rest = np.arange(45, 90)
    assert np.isfinite(get_scorer(name)(clf, rest, two[45:]))


def test_scorers_for_several_classes_and_numbers(data, x):
    clf = NodeClassifier("APPNP", features=x, graph=data.graph, **QUICK)
    for name in ("roc_auc_ovr", "f1_macro", "top_k_accuracy"):
        assert cross_val_score(clf, np.arange(90), data.labels.numpy(), cv=NodeSplit(3), scoring=name).shape == (3,)
    reg = NodeRegressor("APPNP", features=x, graph=data.graph, **QUICK)
    for name in ("neg_mean_absolute_error", "r2"):
        assert cross_val_score(reg, np.arange(90), x[:, 0], cv=NodeSplit(3), scoring=name).shape == (3,)


@pytest.mark.parametrize("monitor", ["roc_auc", "balanced_accuracy", "neg_log_loss"])
def test_any_scorer_chooses_the_epoch(monitor, data, x, two):
    """The score that is written down is that of the weights of the epoch, by the scorer itself."""
    held, found, labels = np.arange(0, 90, 3), [], np.array(["no", "yes"])[two]

    def look(moment):
        probe = NodeClassifier("GCN", features=x, graph=data.graph)
        probe.classes_, probe.model_, probe.n_features_in_ = np.array(["no", "yes"]), moment.model, 8
        probe.features_, probe.graph_ = data.features, data.graph
        probe.kind_, probe.calibration_ = TaskKind.CLASSES, PLAIN
        found.append(get_scorer(monitor)(probe, held, labels[held]))

    clf = NodeClassifier("GCN", hidden=8, monitor=monitor, callbacks=[look], **QUICK)
    clf.fit(x, labels, graph=data.graph, valid=held)
    assert [epoch.valid_score for epoch in clf.run_.history] == pytest.approx(found)
    assert clf.run_.best.valid_score == max(epoch.valid_score for epoch in clf.run_.history)
    clf.set_params(features=x)  # so that it takes ids
    clf.calibration_ = PLAIN  # while it trains, probabilities are the network's own
    assert get_scorer(monitor)(clf, held, labels[held]) == pytest.approx(max(found))


def test_a_scorer_of_ones_own_chooses_the_epoch(data, x, two):
    precision = make_scorer(average_precision_score, response_method="predict_proba")
    clf = NodeClassifier("GCN", hidden=8, monitor=precision, **QUICK).fit(x, two, graph=data.graph)
    assert clf.run_.best.valid_score == max(epoch.valid_score for epoch in clf.run_.history)


def test_early_stopping_by_a_scorer(data, x, two):
    clf = NodeClassifier("GCN", monitor="roc_auc", patience=3, epochs=200).fit(x, two, graph=data.graph)
    assert clf.run_.ending is Ending.STOPPED
    assert clf.n_iter_ == clf.run_.best.epoch + 3


def test_a_monitor_for_numbers(data, x):
    reg = NodeRegressor("APPNP", monitor="neg_median_absolute_error", **QUICK).fit(x, x[:, 0], graph=data.graph)
    assert reg.run_.best.valid_score == max(epoch.valid_score for epoch in reg.run_.history)


def test_the_training_loss_needs_nobody_held_back(data, x, partly):
    clf = NodeClassifier("GCN", valid_share=0, monitor=Monitor.TRAIN_LOSS, **QUICK).fit(x, partly, graph=data.graph)
    assert clf.run_.best.train_loss == min(epoch.train_loss for epoch in clf.run_.history)


@pytest.mark.parametrize("monitor", ["no_such_score", 3])
def test_what_is_not_a_monitor(monitor, data, x, partly):
    with pytest.raises(us.InputError) as caught:
        NodeClassifier("GCN", monitor=monitor).fit(x, partly, graph=data.graph)
    assert (caught.value.argument, caught.value.value) == ("monitor", monitor)


# -- names of features -------------------------------------------------------------------------------------------------


class Table:
    """As much of a data frame as is looked at."""

    def __init__(self, values, columns):
        self.values, self.columns, self.shape, self.ndim = values, columns, values.shape, 2

    def __array__(self, dtype=None, copy=None):
        return self.values if dtype is None else self.values.astype(dtype)

    def __len__(self):
        return len(self.values)


NAMES = [f"f{i}" for i in range(8)]


def test_names_are_learnt_and_compared(data, x, partly):
    clf = NodeClassifier("SGC", **QUICK).fit(Table(x, NAMES), partly, graph=data.graph)
    assert clf.feature_names_in_.tolist() == NAMES
    assert np.array_equal(clf.predict(Table(x, NAMES)), clf.predict())
    for wrong in ([*NAMES[:7], "g"], NAMES[::-1]):
        with pytest.raises(ValueError, match="feature names should match"):
            clf.predict(Table(x, wrong))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        clf.predict(x)
    clf.fit(x, partly, graph=data.graph)
    assert not hasattr(clf, "feature_names_in_")
    with pytest.warns(UserWarning, match="fitted without feature names"):
        clf.predict(Table(x, NAMES))


def test_names_of_bound_features(data, x):
    clf = NodeClassifier("SGC", features=Table(x, NAMES), graph=data.graph, **QUICK)
    clf.fit(np.arange(60), data.labels.numpy()[:60])
    assert clf.feature_names_in_.tolist() == NAMES
    assert clf.predict(np.arange(60, 90)).shape == (30,)


def test_columns_that_are_numbered_have_no_names(data, x, partly):
    clf = NodeClassifier("SGC", **QUICK).fit(Table(x, list(range(8))), partly, graph=data.graph)
    assert not hasattr(clf, "feature_names_in_")
