"""Probabilities of the estimator are those of the command line: one temperature, from the nodes that were held back."""

import csv

import numpy as np
import pytest
from sklearn.base import clone

from cli.people import ask
from unspool import datasets
from unspool.estimator import NodeClassifier
from unspool.evaluate import Uncalibrated, score_probabilities
from unspool.models import APPNP

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=300, classes=3, seed=0)


def fitted(data, **more):
    labels = data.labels.clone()
    labels[data.split.test] = -1
    held = {} if "valid_share" in more else {"valid": data.split.valid.numpy()}
    made = NodeClassifier(APPNP, hidden=8, epochs=40, device="cpu", **more)
    return made.fit(data.features, labels, graph=data.graph, **held)


def test_the_class_stays_and_the_probabilities_change(data):
    model = fitted(data)
    warm, raw = model.predict_proba(), model.predict_proba(calibrate=False)
    assert model.calibration_.nodes == data.split.valid.numel()
    assert np.allclose(warm.sum(1), 1)
    assert not np.allclose(warm, raw, atol=1e-4)
    assert np.array_equal(model.classes_[warm.argmax(1)], model.predict())
    assert np.array_equal(warm.argmax(1), raw.argmax(1))
    valid = data.split.valid.numpy()
    losses = [score_probabilities(p[valid], data.labels.numpy()[valid]).log_loss for p in (warm, raw)]
    assert losses[0] < losses[1]


def test_nothing_held_back_is_nothing_to_calibrate_by(data):
    model = fitted(data, valid_share=0.0)
    assert model.calibration_.temperature is None
    assert model.calibration_.reason is Uncalibrated.FEW_NODES
    assert np.array_equal(model.predict_proba(), model.predict_proba(calibrate=False))
    assert not hasattr(clone(model), "calibration_")


def test_the_command_line_writes_the_same(data, tmp_path):
    edges = ["source,target", *(f"{a},{b}" for a, b in data.edge_index.T.tolist() if a < b)]
    (tmp_path / "e.csv").write_text("\n".join(edges) + "\n")
    part = np.full(data.nodes, "test", dtype=object)
    part[data.split.train.numpy()], part[data.split.valid.numpy()] = "train", "valid"
    rows = [
        ",".join([str(i), *(f"{v:.6f}" for v in row), f"c{label}", part[i]])
        for i, (row, label) in enumerate(zip(data.features.tolist(), data.labels.tolist(), strict=True))
    ]
    names = [f"f{k}" for k in range(data.features.shape[1])]
    (tmp_path / "n.csv").write_text("\n".join([",".join(["id", *names, "y", "part"]), *rows]) + "\n")
    said = [
        "--edges",
        tmp_path / "e.csv",
        "--features",
        tmp_path / "n.csv",
        "--label-column",
        "y",
        "--split-column",
        "part",
    ]
    ask(
        "train",
        "APPNP",
        *said,
        "--hidden",
        8,
        "--epochs",
        40,
        "--no-baselines",
        "--no-report",
        "--device",
        "cpu",
        "--out",
        tmp_path / "t",
    )
    ask("predict", tmp_path / "t", "--out", tmp_path / "p.csv", "--device", "cpu")
    ask("predict", tmp_path / "t", "--out", tmp_path / "raw.csv", "--device", "cpu", "--uncalibrated")
    model = fitted(
        datasets.from_files(
            tmp_path / "e.csv", tmp_path / "n.csv", label_column="y", split_column="part", directed=False
        )
    )
    for name, calibrate in (("p.csv", True), ("raw.csv", False)):
        with (tmp_path / name).open(newline="") as file:
            held = list(csv.DictReader(file))
        there = np.array([[float(row[f"p_c{k}"]) for k in range(3)] for row in held])
        assert np.allclose(there, model.predict_proba(calibrate=calibrate), atol=1e-5)
