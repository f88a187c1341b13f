"""Programs of torch.export: equal to the network, loaded where this package is not."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

import unspool as us
from unspool import datasets, models
from unspool.deploy import Answer, Meaning, export_torch
from unspool.deploy.plain_ops import resolvent_terms
from unspool.deploy.torch_program import check_same
from unspool.errors import IncompatibleError

#: Runs a program, or a file of NumPy, in a process in which some packages cannot be imported.
BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())
"""


def run_without(names, code, folder):
    """Run code in a new process where ``names`` cannot be imported; returns what it prints."""
    text = BLOCKED.format(names=set(names)) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", text], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=40, classes=3, seed=0)


def trained_like(kind, data, seed=0):
    """A model with weights that are not those it begins with."""
    torch.manual_seed(seed)
    model = kind(data.features.shape[1], 3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model.eval()


@pytest.mark.slow
@pytest.mark.parametrize("kind", models.MODELS)
def test_every_named_model_is_exported_and_equal(kind, data, tmp_path):
    model = trained_like(kind, data)
    file = export_torch(model, data.graph, tmp_path / "m.pt2")
    program = torch.export.load(file)
    new = torch.randn(data.features.shape, generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        for x in (data.features, new):
            assert torch.allclose(program.module()(x), model(x, data.graph), atol=1e-6, rtol=1e-6)
    names = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert all(name.startswith(("aten.", "<built-in")) for name in names), names
    held = file.read_bytes()
    assert b"unspool" not in held
    assert str(Path(us.__file__).parents[2]).encode() not in held


@pytest.mark.long
def test_a_program_loads_without_the_package(data, tmp_path):
    model = trained_like(models.GPRGNN, data)
    answer = Answer(Meaning.CLASSES, ("a", "b", "c"))
    export_torch(model, data.graph, tmp_path / "m.pt2", answer=answer)
    torch.save(data.features, tmp_path / "x.pt")
    code = """
    import torch
    program = torch.export.load("m.pt2").module()
    torch.save(program(torch.load("x.pt")), "y.pt")
    print(any(name.partition(".")[0] == "unspool" for name in sys.modules))
    """
    assert run_without(["unspool"], code, tmp_path).strip() == "False"
    with torch.no_grad():
        wanted = model(data.features, data.graph).softmax(-1)
    assert torch.allclose(torch.load(tmp_path / "y.pt"), wanted, atol=1e-6)


@pytest.mark.long
def test_a_module_of_ones_own_is_exported(data, tmp_path):
    class Twice(torch.nn.Module):
        def __init__(self, in_features, out_features):
            super().__init__()
            self.in_features = in_features
            self.layer = torch.nn.Linear(in_features, out_features)

        def forward(self, x, graph):
            return graph @ (graph @ self.layer(x)).relu()

    model = Twice(data.features.shape[1], 2)
    file = export_torch(model, data.graph, tmp_path / "own.pt2")
    with torch.no_grad():
        wanted = model(data.features, data.graph)
        assert torch.allclose(torch.export.load(file).module()(data.features), wanted, atol=1e-6)


@pytest.mark.long
def test_what_looks_at_values_is_refused_and_nothing_written(data, tmp_path):
    class Looks(torch.nn.Module):
        in_features = 8

        def forward(self, x, graph):
            return x if float(x.sum()) > 0 else graph @ x

    with pytest.raises(IncompatibleError, match="Looks"):
        export_torch(Looks(), data.graph, tmp_path / "no.pt2")
    assert not (tmp_path / "no.pt2").exists()


def test_a_module_that_does_not_say_its_width_is_refused(data, tmp_path):
    with pytest.raises(IncompatibleError, match="in_features"):
        export_torch(torch.nn.Identity(), data.graph, tmp_path / "no.pt2")


def test_an_export_that_differs_is_refused():
    check_same(torch.ones(2), torch.ones(2), "GCN")
    for wrong in (torch.ones(2) + 1e-4, torch.full((2,), torch.nan)):
        with pytest.raises(IncompatibleError):
            check_same(wrong, torch.ones(2), "GCN")


@pytest.mark.parametrize(("p", "q"), [(1.0, 0.9), (1.0, -0.9), (2.0, 0.1), (1.0, 0.0)])
def test_terms_of_a_solve(p, q):
    graph = us.graph.sensor(20)[0].to(torch.float64)
    a = graph.to_dense()
    wanted = torch.linalg.inv(p * torch.eye(20, dtype=torch.float64) - q * a)
    hops = torch.tensor(resolvent_terms(p, q), dtype=torch.float64)
    found = us.propagate(graph, torch.eye(20, dtype=torch.float64), hops, us.Basis.CHEBYSHEV)
    assert torch.allclose(found, wanted, atol=1e-8)


def test_a_solve_of_too_many_terms_is_refused():
    with pytest.raises(IncompatibleError):
        resolvent_terms(1.0, 1 - 1e-6)


def test_answers_of_cards():
    answer = Answer.of_card(
        {"task": {"kind": "numbers", "centre": [3.0], "scale": [2.0]}, "data": {"transforms": ["row_normalised"]}}
    )
    assert answer == Answer(Meaning.NUMBERS, (), (3.0,), (2.0,), True)
    assert float(answer.read(torch.ones(1, 1))) == 5.0
    assert torch.equal(Answer(Meaning.YES).read(torch.zeros(1, 1)), torch.full((1, 1), 0.5))
    with pytest.raises(IncompatibleError, match="tea leaves"):
        Answer.of_card({"task": {"kind": "tea leaves"}})
