"""Scores are scikit-learn's, wherever it has them."""

import json
import warnings

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from sklearn import metrics
from sklearn.calibration import calibration_curve

from unspool.errors import DataError, InputError
from unspool.evaluate import (
    Calibration,
    ClassScores,
    ProbabilityScores,
    Uncalibrated,
    calibrated,
    fit_temperature,
    from_plain,
    score_classes,
    score_numbers,
    score_probabilities,
)
from unspool.evaluate.plain import to_plain


def drawn(nodes=200, classes=4, seed=0, ties=False):
    """Outputs that know something, and unbalanced classes of which the last is rare."""
    chance = np.random.default_rng(seed)
    shares = np.arange(classes, 0, -1.0) ** 2
    truth = chance.choice(classes, nodes, p=shares / shares.sum())
    truth[:classes] = np.arange(classes)
    logits = chance.normal(0, 1.5, (nodes, classes)) + 2 * np.eye(classes)[truth]
    return (logits.round() if ties else logits), truth


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("seed", range(3))
def test_class_scores_are_scikit_learns(classes, seed):
    logits, truth = drawn(classes=classes, seed=seed)
    found, said = score_classes(softmax(logits, 1), truth), logits.argmax(1)
    assert found.accuracy == pytest.approx(metrics.accuracy_score(truth, said), abs=1e-12)
    assert found.balanced_accuracy == pytest.approx(metrics.balanced_accuracy_score(truth, said), abs=1e-12)
    assert found.macro_f1 == pytest.approx(metrics.f1_score(truth, said, average="macro"), abs=1e-12)
    wanted = metrics.precision_recall_fscore_support(truth, said, zero_division=np.nan)
    for ours, theirs in zip((found.precision, found.recall, found.f1, found.support), wanted, strict=True):
        assert [float("nan") if v is None else v for v in ours] == pytest.approx(
            theirs.tolist(), abs=1e-12, nan_ok=True
        )
    assert np.array_equal(found.confusion, metrics.confusion_matrix(truth, said))
    assert found.majority == np.bincount(truth).max() / truth.size
    assert (found.auc is None) == (classes > 2)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_two_classes_have_curves(seed, ties):
    logits, truth = drawn(classes=2, seed=seed, ties=ties)
    chances = softmax(logits, 1)
    found = score_classes(chances, truth)
    assert found.auc == pytest.approx(metrics.roc_auc_score(truth, chances[:, 1]), abs=1e-12)
    assert found.average_precision == pytest.approx(metrics.average_precision_score(truth, chances[:, 1]), abs=1e-12)


def test_what_is_not_there_is_not_scored():
    found = score_classes(np.eye(3)[[0, 0, 1]], np.array([0, 0, 0]))
    assert found.recall == (2 / 3, None, None)
    assert found.precision == (1.0, 0.0, None)
    assert found.balanced_accuracy == pytest.approx(2 / 3)
    assert score_classes(np.eye(2)[[0, 1]], np.array([0, 0])).auc is None
    assert score_classes(np.eye(60)[[0, 1]], np.array([0, 1])).confusion is None


@pytest.mark.parametrize("classes", [2, 5])
def test_probability_scores_are_scikit_learns(classes):
    logits, truth = drawn(classes=classes)
    chances = softmax(logits, 1)
    found = score_probabilities(chances, truth)
    assert found.log_loss == pytest.approx(metrics.log_loss(truth, chances), abs=1e-12)
    theirs = metrics.brier_score_loss(truth, chances[:, 1] if classes == 2 else chances)
    assert found.brier == pytest.approx(theirs, abs=1e-12)
    right, sure = chances.argmax(1) == truth, chances.max(1)
    accuracy, confidence = calibration_curve(right, sure, n_bins=10)
    assert [b.accuracy for b in found.bins if b.nodes] == pytest.approx(accuracy.tolist(), abs=1e-12)
    assert [b.confidence for b in found.bins if b.nodes] == pytest.approx(confidence.tolist(), abs=1e-12)
    share = np.array([b.nodes for b in found.bins if b.nodes]) / truth.size
    assert found.ece == pytest.approx(float((share * np.abs(accuracy - confidence)).sum()), abs=1e-12)


def test_number_scores_are_scikit_learns():
    chance = np.random.default_rng(0)
    truth = chance.normal(5, 2, 50)
    said = truth + chance.normal(0.3, 1, 50)
    found = score_numbers(said, truth, 4.0)
    assert found.rmse == pytest.approx(metrics.root_mean_squared_error(truth, said), abs=1e-12)
    assert found.mae == pytest.approx(metrics.mean_absolute_error(truth, said), abs=1e-12)
    assert found.r2 == pytest.approx(metrics.r2_score(truth, said), abs=1e-12)
    assert found.mean_rmse == pytest.approx(metrics.root_mean_squared_error(truth, np.full(50, 4.0)), abs=1e-12)
    assert score_numbers([1.0, 2.0], [3.0, 3.0], 3.0).r2 is None


# -- temperature -------------------------------------------------------------------------------------------------------


def log_loss(logits, truth, temperature):
    return -log_softmax(logits / temperature, 1)[np.arange(truth.size), truth].mean()


@pytest.mark.parametrize("scale", [0.2, 1.0, 6.0])
def test_no_other_temperature_fits_better(scale):
    logits, truth = drawn(nodes=300, classes=3)
    found = fit_temperature(scale * logits, truth)
    grid = np.exp(np.linspace(np.log(found) - 1, np.log(found) + 1, 801))
    losses = [log_loss(scale * logits, truth, t) for t in grid]
    assert grid[int(np.argmin(losses))] == pytest.approx(found, rel=2e-3)
    # In units of the outputs it is one and the same.
    assert found / scale == pytest.approx(fit_temperature(logits, truth), rel=1e-8)


def test_the_class_never_changes_and_the_scores_get_better():
    logits, truth = drawn(nodes=400, classes=4)
    sure = 8 * logits
    found = fit_temperature(sure, truth)
    assert found > 1
    raw, mild = calibrated(sure, None), calibrated(sure, found)
    assert np.array_equal(raw.argmax(1), mild.argmax(1))
    assert np.allclose(mild.sum(1), 1, atol=1e-12)
    before, after = score_probabilities(raw, truth), score_probabilities(mild, truth)
    assert after.log_loss < before.log_loss
    assert after.ece < before.ece


def test_one_channel_is_the_lead_of_the_second_class():
    logits, _ = drawn(classes=2)
    lead = logits[:, 1:] - logits[:, :1]
    assert np.allclose(calibrated(lead, 1.7), softmax(logits / 1.7, 1), atol=1e-12)


@pytest.mark.parametrize(
    ("logits", "truth", "why"),
    [
        (np.zeros((9, 2)), np.zeros(9, dtype=int), Uncalibrated.FEW_NODES),
        (5 * np.eye(2)[[0, 1] * 10], np.array([0, 1] * 10), Uncalibrated.ALL_RIGHT),
        (np.eye(2)[[1, 0] * 10], np.array([0, 1] * 10), Uncalibrated.NO_BETTER_THAN_CHANCE),
        (np.full((20, 2), np.nan), np.zeros(20, dtype=int), Uncalibrated.NOT_FINITE),
        (np.zeros((20, 3)), np.zeros(20, dtype=int), Uncalibrated.NO_BETTER_THAN_CHANCE),
    ],
    ids=lambda v: v.name if isinstance(v, Uncalibrated) else "",
)
def test_nodes_that_do_not_decide_a_temperature(logits, truth, why):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit_temperature(logits, truth) is why


# -- values in files ---------------------------------------------------------------------------------------------------


def test_scores_make_a_round_trip_through_json():
    logits, truth = drawn(classes=2)
    for made in (
        score_classes(softmax(logits, 1), truth),
        score_probabilities(softmax(logits, 1), truth),
        score_numbers([1.0, 2.0], [3.0, 3.0], 3.0),
        Calibration(None, 4, Uncalibrated.FEW_NODES),
    ):
        assert from_plain(type(made), json.loads(json.dumps(to_plain(made)))) == made


@pytest.mark.parametrize(
    "junk", [None, 3, "x", [], {"log_loss": True}, {"log_loss": 1e999, "brier": 0, "ece": 0, "bins": []}]
)
def test_files_may_say_anything(junk):
    with pytest.raises(DataError) as refused:
        from_plain(ProbabilityScores, junk)
    assert refused.value.where
    with pytest.raises(DataError):
        from_plain(ClassScores, junk)


def test_shapes_that_do_not_belong_together_are_refused():
    for bad in (lambda: score_classes(np.eye(2), [0]), lambda: score_numbers([1.0], [1.0, 2.0], 0.0)):
        with pytest.raises(InputError):
            bad()
    with pytest.raises(InputError) as refused:
        score_classes(np.eye(2), [0, 5])
    assert refused.value.argument == "target"
