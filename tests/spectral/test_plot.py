"""Pictures: the right panels for each kind of network, drawn headless, written whole or not at all."""

import subprocess
import sys

import pytest
import torch

import unspool as us
from unspool.spectral import fit_filter, high_pass, plot, response

pytestmark = pytest.mark.long


def smooth(weight):
    return us.Fidelity(weight) + us.Smoothness(1 - weight)


CASES = {
    "numbers": (lambda: us.unroll(smooth(0.1), us.GradientDescent(step=0.5), 4), ["response", "coefficients"]),
    "chebyshev": (lambda: us.unroll(smooth(0.1), us.Accelerated(), 4), ["response", "coefficients"]),
    "diagonals": (lambda: us.HopNetwork(torch.randn(4, 3)), ["response", "coefficients"]),
    "matrices": (lambda: us.HopNetwork(torch.randn(4, 3, 3)), ["response", "coefficients"]),
    "wide": (lambda: us.HopNetwork(torch.randn(4, 3, 20)), ["response", "coefficients"]),
    "minimiser": (lambda: us.unroll(smooth(0.1), us.Exact()), ["response"]),
    "measured": (lambda: us.unroll(smooth(0.1) + us.Sparse(0.1), us.ProximalGradient(), 4), ["response", "linear"]),
    "fit": (lambda: fit_filter(high_pass(1.0), 6), ["response", "coefficients"]),
    "response": (lambda: response(us.HopNetwork([0.5, 0.5])), ["response", "coefficients"]),
}


def titles(figure):
    return [axis.get_title(loc="left") for axis in figure.axes if axis.get_title(loc="left")]


@pytest.mark.parametrize("name", list(CASES))
def test_every_kind_has_its_panels(name, tmp_path):
    make, panels = CASES[name]
    graph = us.graph.grid(4, 4)
    what = make()
    figure = plot(what, graph, torch.randn(16, 3), tmp_path / "deep" / "a.png", title="t", features=3)
    found = titles(figure)
    assert len(found) == len(panels) + 1
    assert all(word in title for word, title in zip([*panels, "energy"], found, strict=True))
    assert (tmp_path / "deep" / "a.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert [f.name for f in (tmp_path / "deep").iterdir()] == ["a.png"]
    if name != "measured":
        assert len(titles(plot(what))) == len(panels)


def test_a_dying_signal_can_be_drawn(tmp_path):
    net = us.HopNetwork([0.0, 0.0])
    plot(net, us.graph.ring(5), torch.ones(5, 1), tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")


def test_it_needs_a_graph_to_follow_a_signal_and_a_known_format(tmp_path):
    net = us.HopNetwork([1.0, 0.5])
    with pytest.raises(ValueError, match="give graph= too"):
        plot(net, x=torch.ones(3, 1))
    with pytest.raises(ValueError, match=r"a.jpg: pictures are written as"):
        plot(net, path=tmp_path / "a.jpg")
    assert list(tmp_path.iterdir()) == []


def test_looking_loads_no_drawing_and_drawing_no_pyplot():
    code = (
        "import sys, unspool as us, unspool.spectral as s; assert 'matplotlib' not in sys.modules;"
        "s.plot(us.HopNetwork([1.0, 0.5])); assert 'matplotlib.pyplot' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ValueError, match="pip install 'unspool"):
        plot(us.HopNetwork([1.0, 0.5]))
