"""Networks in one file of NumPy: equal to the network, run where neither torch nor this package is."""

import csv
import json
import runpy
import subprocess
import sys

import numpy as np
import pytest
import torch
from tests.deploy.test_torch_program import run_without, trained_like

import unspool as us
from unspool import datasets, models
from unspool.deploy import Answer, Meaning, export_numpy
from unspool.deploy.layers import layers_of
from unspool.errors import IncompatibleError

pytestmark = pytest.mark.long

LINEAR = [
    models.SGC, models.PPNP, models.APPNP, models.JKNet, models.GPRGNN, models.UGDGNN, models.MLP, models.GNNLF, models.GNNHF, models.GRAFF, models.StableGNN, models.GraphFirstGPRGNN,
    models.GraphFirstUGDGNN, models.SIGN,
]  # fmt: skip


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=40, classes=3, seed=0)


def exported(model, graph, folder, **options):
    file = export_numpy(model, graph, folder / "model.py", **options)
    return runpy.run_path(str(file))


@pytest.mark.parametrize("kind", models.MODELS)
def test_linear_propagations_are_equal_and_others_refused(kind, data, tmp_path):
    model = trained_like(kind, data)
    if kind not in LINEAR:
        with pytest.raises(IncompatibleError, match=kind.__name__):
            export_numpy(model, data.graph, tmp_path / "model.py")
        assert not (tmp_path / "model.py").exists()
        return
    predict = exported(model, data.graph, tmp_path)["predict"]
    new = torch.randn(data.features.shape, generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        for x in (data.features, new):
            assert np.allclose(predict(x.numpy()), model(x, data.graph).numpy(), atol=1e-6, rtol=1e-6)


def test_layers_that_add_their_input_are_refused(data, tmp_path):
    model = models.StableGNN(16, 3, hidden=8, head_layers=2, skip=True).eval()
    with pytest.raises(
        IncompatibleError, match="StableGNN cannot be written with NumPy alone: its layers add their input"
    ):
        export_numpy(model, data.graph, tmp_path / "model.py")


def test_it_runs_without_torch_and_without_the_package(data, tmp_path):
    model = trained_like(models.APPNP, data)
    export_numpy(model, data.graph, tmp_path / "model.py", answer=Answer(Meaning.CLASSES, ("a", "b", "c")))
    np.save(tmp_path / "x.npy", data.features.numpy())
    code = """
    import json, numpy, model
    found = model.predict(numpy.load("x.npy"))
    print(json.dumps([found.tolist(), model.ABOUT["classes"], sorted({"torch", "unspool", "scipy"} & set(sys.modules))]))
    """
    found, classes, loaded = json.loads(run_without(["unspool", "torch", "scipy"], code, tmp_path))
    with torch.no_grad():
        wanted = model(data.features, data.graph).softmax(-1).numpy()
    assert np.allclose(found, wanted, atol=1e-6)
    assert classes == ["a", "b", "c"]
    assert loaded == []


def test_from_the_shell(data, tmp_path):
    model = trained_like(models.SGC, data)
    file = export_numpy(model, data.graph, tmp_path / "model.py", answer=Answer(Meaning.CLASSES, ("a", "b", "c")))
    names = ",".join(f"f{i}" for i in range(data.features.shape[1]))
    np.savetxt(tmp_path / "x.csv", data.features.numpy(), delimiter=",", header=names, comments="")
    words = [sys.executable, str(file), "x.csv", "y.csv"]
    subprocess.run(words, cwd=tmp_path, check=True)
    assert (tmp_path / "y.csv").read_text().splitlines()[0] == "p_a,p_b,p_c"
    with torch.no_grad():
        wanted = model(data.features, data.graph).softmax(-1).numpy()
    assert np.allclose(np.loadtxt(tmp_path / "y.csv", delimiter=",", skiprows=1), wanted, atol=1e-6)
    for words in ([], ["none.npy", "y.npy"]):
        done = subprocess.run(
            [sys.executable, str(file), *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert "Traceback" not in done.stderr


def test_names_of_classes_with_commas_stay_in_their_columns(data, tmp_path):
    names = ("a, b", 'say "c"', "d")
    model = trained_like(models.SGC, data)
    file = export_numpy(model, data.graph, tmp_path / "model.py", answer=Answer(Meaning.CLASSES, names))
    np.save(tmp_path / "x.npy", data.features.numpy())
    subprocess.run([sys.executable, str(file), "x.npy", "y.csv"], cwd=tmp_path, check=True)
    with (tmp_path / "y.csv").open(newline="") as held:
        rows = list(csv.reader(held))
    assert rows[0] == [f"p_{name}" for name in names]
    assert {len(row) for row in rows} == {3}


def test_other_graphs(data, tmp_path):
    model = trained_like(models.GPRGNN, data)
    predict = exported(model, data.graph, tmp_path)["predict"]
    edges, x = np.array([[0, 1, 1, 3, 2], [1, 2, 2, 3, 1]]), data.features[:6]
    with pytest.warns(UserWarning, match="more than once"):
        graph = us.Graph.from_edges(edges, 6, directed=False)
    with torch.no_grad():
        assert np.allclose(predict(x.numpy(), edges=edges), model(x, graph).numpy(), atol=1e-6)
    for wrong in ([[0], [9]], [[0.5], [1.0]], [0, 1]):
        with pytest.raises(ValueError):
            predict(x.numpy(), edges=np.array(wrong))


def test_a_graph_of_another_normalisation_takes_no_edges(data, tmp_path):
    graph = us.Graph.from_edges(torch.tensor([[0, 1], [1, 2]]), 4, directed=True)
    model = trained_like(models.GPRGNN, data)
    predict = exported(model, graph, tmp_path)["predict"]
    x = data.features[:4]
    with torch.no_grad():
        assert np.allclose(predict(x.numpy()), model(x, graph).numpy(), atol=1e-6)
    with pytest.raises(ValueError, match="normalised"):
        predict(x.numpy(), edges=np.array([[0], [1]]))


@pytest.mark.parametrize("x", [np.ones((39, 8)), np.ones((40, 7)), np.full((40, 8), np.nan), np.ones(8)])
def test_wrong_features(x, data, tmp_path):
    predict = exported(trained_like(models.SGC, data), data.graph, tmp_path)["predict"]
    with pytest.raises(ValueError):
        predict(x if x.shape[-1] != 8 else np.repeat(x, data.features.shape[1] // 8, axis=-1) if x.ndim == 2 else x)


def test_rows_yes_and_numbers(data, tmp_path):
    model = models.APPNP(data.features.shape[1], 1).eval()
    x = data.features.abs() * 3
    for answer in (
        Answer(Meaning.YES, ("no", "yes"), normalise_rows=True),
        Answer(Meaning.NUMBERS, centre=(3.0,), scale=(2.0,)),
    ):
        space = exported(model, data.graph, tmp_path, answer=answer)
        with torch.no_grad():
            wanted = answer.read(model(answer.prepare(x), data.graph)).numpy()
        assert np.allclose(space["predict"](x.numpy()), wanted, atol=1e-6)
    assert space["ABOUT"]["columns"] == ["predicted_0"]


def test_batch_norms_go_into_their_layers():
    made = us.nn.Perceptron([4, 5, 3], batch_norm=True)
    for norm in made.norms:
        torch.nn.init.normal_(norm.weight)
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2.0)
    x = torch.randn(7, 4)
    h = x.double().numpy()
    for layer in layers_of(made.eval(), "own"):
        h = h @ layer.weight + layer.bias
        h = np.maximum(h, 0) if layer.positive else h
    assert np.allclose(h, made(x).detach().numpy(), atol=1e-6)
