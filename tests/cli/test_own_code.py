"""Code of the user's own that fails: one sentence that names the line, and never a silent end."""

import sys

import pytest

from unspool.cli import main

pytestmark = pytest.mark.long

NET = """
import torch
import unspool as us


class Net(us.models.Model):
    depth: int = us.setting(3, "number of steps", at_least=1)

    def build(self):
        BODY
        self.p_pre = us.nn.Linear(self.in_features, self.out_features)
        self.propagation = us.unroll(us.Fidelity(0.3) + us.Smoothness(0.7), us.GradientDescent(step=0.5), self.depth)
"""
PLAIN = """
import torch


class Net(torch.nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = torch.nn.Linear(in_features, out_features)

    def forward(self, x, graph):
        return {}["boom"]
"""
BARE = NET.partition("    def build")[0]
EMPTY = (
    BARE
    + """
    def build(self):
        self.propagation = us.unroll(us.Fidelity(0.3) + us.Smoothness(0.7), us.GradientDescent(step=0.5), 3)
"""
)
#: (what is in the module, what is said)
FAILING = {
    "an import that ends the program": ("import sys\nsys.exit(0)", "importing own_net failed: SystemExit: 0 (own_net.py, line 2)"),
    "an import that fails": ("{}['boom']", "importing own_net failed: KeyError: 'boom' (own_net.py, line 1)"),
    "a dependency that is not there": ("import nowhere_at_all", "importing own_net failed: ModuleNotFoundError: No module named 'nowhere_at_all' (own_net.py, line 1)"),
    "a build that ends the program": (NET.replace("BODY", "raise SystemExit(0)"), "code of yours failed: SystemExit: 0 (own_net.py, line 10)"),
    "a build with a key": (NET.replace("BODY", "{}['boom']"), "code of yours failed: KeyError: 'boom' (own_net.py, line 10)"),
    "a build with an attribute": (NET.replace("BODY", "None.x"), "code of yours failed: AttributeError: 'NoneType' object has no attribute 'x' (own_net.py, line 10)"),
    "a build with a value": (NET.replace("BODY", "raise ValueError('odd')"), "code of yours failed: ValueError: odd (own_net.py, line 10)"),
    "a build with torch": (NET.replace("BODY", "torch.ones(2, 3) @ torch.ones(2)"), "code of yours failed: RuntimeError: size mismatch, got input (2), mat (2x3), vec (2) (own_net.py, line 10)"),
    "no build": (BARE, "Net has no build(self), which makes self.p_pre, self.propagation, self.p_pos; write one"),
    "no parameters": (EMPTY, "Net has no parameters that training could change; give it some, such as a p_pre"),
    "a forward with a key": (PLAIN, "code of yours failed: KeyError: 'boom' (own_net.py, line 11)"),
}  # fmt: skip


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder where the command is run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != ""])
    yield tmp_path
    sys.modules.pop("own_net", None)


def run(monkeypatch, capsys, *words):
    """The command as it is typed: how it ends, and what it says on standard error."""
    monkeypatch.setattr(sys, "argv", ["unspool", *words])
    with pytest.raises(SystemExit) as ended:
        main.main()
    return ended.value.code, capsys.readouterr().err


TRAIN = ("train", "own_net:Net", "--dataset", "grid", "--epochs", "2", "--quiet", "--no-report", "--out", "job")


@pytest.mark.parametrize("case", FAILING)
def test_code_that_fails_is_named(case, here, monkeypatch, capsys):
    source, said = FAILING[case]
    (here / "own_net.py").write_text(source)
    assert run(monkeypatch, capsys, *TRAIN) == (2, f"unspool: {said}\n")


@pytest.mark.parametrize("case", ["an import that fails", "a build with a key", "a forward with a key"])
def test_the_traceback_is_shown_to_whoever_asks(case, here, monkeypatch, capsys):
    (here / "own_net.py").write_text(FAILING[case][0])
    monkeypatch.setenv("UNSPOOL_TRACEBACK", "1")
    monkeypatch.setattr(sys, "argv", ["unspool", *TRAIN])
    with pytest.raises((KeyError, ImportError)):
        main.main()


def test_the_traceback_of_code_that_ends_the_program_is_shown(here, monkeypatch, capsys):
    (here / "own_net.py").write_text(FAILING["a build that ends the program"][0])
    monkeypatch.setenv("UNSPOOL_TRACEBACK", "1")
    code, said = run(monkeypatch, capsys, *TRAIN)
    assert code == 2
    assert said.startswith("Traceback")
