"""The explorer in a real browser: its numbers are the package's, and a person can use it with keys, on a phone and in the dark."""

import json

import pytest
import torch

import unspool as us
from browser.chromium import Tab, browser

pytestmark = pytest.mark.long

BASE = {"graph": "sensor", "seed": 3, "noise": 0.5, "outliers": 8, "depth": 7}
PROBLEMS = {
    "appnp": {"alpha": 0.2, "beta": 0.8, "step": 0.5},
    "sgc": {"alpha": 0, "beta": 1, "step": 0.5, "graph": "community"},
    "long step": {"alpha": 0.3, "beta": 1.7, "step": 0.9, "ridge": 0.25, "graph": "grid"},
    "momentum": {"algorithm": "Accelerated", "automatic": True, "graph": "ring"},
    "chebyshev": {"algorithm": "Chebyshev", "ridge": 0.1},
    "air": {"fidelity": "rows", "alpha": 0.5, "beta": 0.5, "algorithm": "ProximalGradient", "step": 1},
    "sparse": {"sparse": 0.3, "nonnegative": True, "algorithm": "ProximalGradient", "automatic": True, "signal": "bump"},
    "momentum and prox": {"sparse": 0.2, "algorithm": "Accelerated", "automatic": True},
    "elastic": {"alpha": 0.5, "beta": 0.5, "edges": 0.3, "algorithm": "PrimalDual", "step": 0.5, "signal": "jumps"},
    "elastic, H ≥ 0": {"edges": 0.2, "nonnegative": True, "algorithm": "PrimalDual", "automatic": True},
    "two nodes deep": {"edges": 0.4, "beta": 0, "fidelity": "rows", "alpha": 0.7, "ridge": 0.2, "algorithm": "PrimalDual", "automatic": True},
}  # fmt: skip


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    browser()
    file = us.explore.write_page(tmp_path_factory.mktemp("page") / "explorer.html")
    with Tab() as opened:
        opened.open(file)
        yield opened


def ask(tab, wanted):
    tab.run(f"change({{...START, ...{json.dumps({**BASE, **wanted})}}})")
    code = tab.run("result.code('[' + result.x.join(', ') + ']')")
    keep = "({formula: result.formula, layers: result.layers, objective: result.objective.map(v => v === Infinity ? null : v), linear: result.linear, name: result.name.model})"
    scope: dict = {}
    exec(code.replace("print(", "str("), scope)
    return tab.run(keep), scope


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_page_computes_what_its_python_code_computes(tab, name):
    page, scope = ask(tab, PROBLEMS[name])
    net, graph, x = scope["net"], scope["graph"].to(torch.float64), scope["x"].double()
    assert page["formula"] == str(scope["objective"])
    assert len(page["layers"]) == net.depth + 1
    for depth in (1, 2, net.depth):
        h = us.unroll(scope["objective"], net.algorithm, depth)(x, graph)
        apart = (h[:, 0] - torch.tensor(page["layers"][depth], dtype=torch.float64)).abs().max()
        assert apart < 1e-6 * max(1, float(h.abs().max()))
        value = float(net.objective.value(h, x, graph))
        told = page["objective"][depth]
        assert told is None or abs(value - told) < 1e-6 * max(1, abs(value))
    if page["linear"]:
        grid = torch.linspace(0, 2, 9, dtype=torch.float64)
        wanted = (
            us.spectral.response(net)(grid)
            if callable(us.spectral.response(net))
            else us.spectral.response(net).gains(grid)
        )
        found = tab.run(f"{grid.tolist()}.map(l => respond(state, l))")
        assert (
            torch.as_tensor(wanted).double().reshape(-1) - torch.tensor(found, dtype=torch.float64)
        ).abs().max() < 1e-5


@pytest.mark.parametrize(
    ("wanted", "model"),
    [
        ("appnp", us.models.APPNP(3, 2, teleport=0.2, depth=7)),
        ("sgc", us.models.SGC(3, 2, depth=7)),
        ("air", us.models.AirGNN(3, 2, residual=0.5, depth=7)),
        ("elastic", us.models.ElasticGNN(3, 2, lambda1=0.3, lambda2=1.0, depth=7)),
    ],
)
def test_the_network_that_it_names_has_these_layers(tab, wanted, model):
    page, scope = ask(tab, PROBLEMS[wanted])
    assert page["name"] == type(model).__name__
    graph, x = scope["graph"].to(torch.float64), scope["x"].double()
    same = model.propagation.double()(x, graph)[:, 0]
    assert (same - torch.tensor(page["layers"][-1], dtype=torch.float64)).abs().max() < 1e-6


@pytest.mark.parametrize(
    "wanted",
    [
        {"nonnegative": True},
        {"edges": 0.3},
        {"sparse": 0.3, "algorithm": "Chebyshev"},
        {"alpha": 0, "algorithm": "Chebyshev"},
        {"fidelity": "rows", "sparse": 0.2, "algorithm": "ProximalGradient"},
    ],
)
def test_what_the_package_refuses_the_page_refuses(tab, wanted):
    tab.run(f"change({{...START, ...{json.dumps(wanted)}}})")
    assert tab.run("result.refused !== null && !result.layers")
    with pytest.raises((us.IncompatibleError, ValueError)):
        exec(tab.run("result.code('[' + result.x.join(', ') + ']')"), {})


def test_an_address_with_nonsense_gives_a_page_all_the_same(tab):
    tab.run("location.hash = '#alpha=NaN&depth=1e9&step=-3&graph=__proto__&signal=constructor&algorithm=eval'")
    tab.run("new Promise(r => setTimeout(r, 50))")
    state = tab.run("legal(Object.fromEntries(new URLSearchParams(location.hash.slice(1))))")
    assert (state["depth"], state["step"], state["algorithm"], state["signal"]) == (
        64,
        0.001,
        "GradientDescent",
        "smooth",
    )


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)])
def test_it_fits_and_speaks(tab, width, dark):
    tab.look(width, dark)
    tab.run("change({...START})")
    assert tab.run("document.documentElement.scrollWidth") <= width
    unnamed = "[...document.querySelectorAll('input, select')].filter(e => !e.labels.length && !e.getAttribute('aria-label')).length"
    assert tab.run(unnamed) == 0
    assert tab.run("[...document.querySelectorAll('svg')].every(s => s.getAttribute('aria-label'))")
    tab.look(1200, False)


def test_keys_alone_change_the_problem(tab):
    tab.run("change({...START}); document.getElementById('alpha-slide').focus()")
    before = tab.run("result.formula")
    tab.press("ArrowRight", 39)
    assert tab.run("result.formula") != before
    assert tab.run("location.hash").startswith("#alpha=0.21")


@pytest.mark.parametrize(("theme", "paper"), [("dark", "rgb(20, 23, 28)"), ("light", "rgb(251, 251, 249)")])
def test_a_page_around_it_chooses_the_colours(tab, theme, paper):
    """The site shows the explorer in a frame; the reader's choice of light or dark there comes as a message."""
    tab.look(1200, dark=theme == "light")  # the system says the opposite
    tab.run(f"window.postMessage({{theme: '{theme}'}}, '*')")
    wanted = "getComputedStyle(document.body).backgroundColor"
    while_waiting = 100
    while tab.run(wanted) != paper and while_waiting:
        while_waiting -= 1
    assert tab.run(wanted) == paper
    assert tab.run("isDark()") is (theme == "dark")
    tab.run("window.postMessage({theme: 'auto'}, '*')")
    tab.look(1200, dark=False)
