"""What objects look like in a notebook: well-formed, small, and other people's words stay words."""

import xml.dom.minidom
from dataclasses import replace

import pytest
import torch

import unspool as us
from unspool import datasets
from unspool.notebook import facts, mathml, table
from unspool.study.results.trial_table import example_table
from unspool.train import DataRecord

EVIL = "<img src=x onerror=alert(1)>"
OTHERS = (
    "KL(H ‖ X)", "ι[rows of H are probabilities]", "min_S Σₑ 2 sₑ ‖(B H)ₑ‖²/wₑ + 3 (sₑ − wₑ)²", "‖H‖^(3/2)", "a)b(", "x⁻¹", "_", "^", "‖", "", EVIL,
)  # fmt: skip


def elements(text):
    return xml.dom.minidom.parseString(f"<div>{text}</div>")


@pytest.mark.parametrize("formula", OTHERS)
def test_every_text_has_a_formula(formula):
    made = elements(mathml(formula))
    assert made.getElementsByTagName("math").length == 1
    assert not made.getElementsByTagName("img")


@pytest.mark.parametrize("kind", us.models.MODELS, ids=lambda kind: kind.__name__)
def test_objectives_of_all_models_are_mathml_with_nothing_lost(kind):
    objective = kind(4, 2).objective
    made = elements(objective._repr_html_())
    raised = str.maketrans("²₀₁₂ₖₑ", "2012ke")
    letters = [sign for sign in objective.formula.translate(raised) if sign not in " _^"]
    seen = [sign for math in made.getElementsByTagName("math") for sign in _text(math) if sign != " "]
    brackets = "()[]"  # those after an underscore only hold an index together
    assert sorted(s for s in seen if s not in brackets) == sorted(s for s in letters if s not in brackets)


def _text(node):
    return "".join(one.data if one.nodeType == one.TEXT_NODE else _text(one) for one in node.childNodes)


def test_exponents_and_indices_are_real_ones():
    made = elements(mathml("‖B H‖²_(I − Wₖ)"))
    assert made.getElementsByTagName("msubsup").length == 1
    assert made.getElementsByTagName("msub").length == 1
    norm = made.getElementsByTagName("msubsup")[0]
    assert [_text(child) for child in norm.childNodes if child.nodeType == child.ELEMENT_NODE] == ["‖BH‖", "I−Wk", "2"]


def test_words_of_others_are_text():
    for made in (table(EVIL, [EVIL], [[EVIL]]), facts(EVIL, [(EVIL, EVIL)])):
        assert "<img" not in made
        assert made.count("&lt;img") >= 3


def test_graphs_networks_and_traces_are_small_tables(random):
    graph = us.graph.ring(6)
    objective = us.Fidelity(0.2) + us.Smoothness(0.8)
    net = us.unroll(objective, us.GradientDescent(step=0.5), depth=3)
    trace = net.trace(torch.randn(6, 2, generator=random), graph)
    for thing, words in (
        (graph, ">6<"),
        (us.Fidelity(0.2), "<math"),
        (net, "GradientDescent"),
        (trace, "objective before"),
    ):
        made = thing._repr_html_()
        assert words in made
        elements(made)
        assert len(made) < 4000
    assert elements(trace._repr_html_()).getElementsByTagName("tr").length == 4


def test_data_sets_and_studies_do_not_carry_markup():
    data = replace(datasets.contextual_sbm(nodes=30, classes=2, seed=0), name=EVIL, notes=(EVIL,))
    rows = [replace(row, data=DataRecord(EVIL, "")) for row in example_table().rows]
    study = type(example_table()).of(rows)
    for made in (data._repr_html_(), study._repr_html_()):
        assert "<img" not in made
        assert "&lt;img" in made
        elements(made)
    assert elements(study._repr_html_()).getElementsByTagName("tr").length == 7


def test_a_study_and_an_explanation_are_tables():
    data = datasets.contextual_sbm(nodes=40, classes=2, seed=0)
    found = us.study.run(us.study.grid(us.models.GCN, seed=range(2), hidden=4, epochs=3), data)
    assert found._repr_html_() == found.table._repr_html_()
    explained = us.explain.explain(us.models.APPNP(data.features.shape[1], 2, hidden=4), data.features, data.graph, 3)
    made = elements(explained._repr_html_())
    assert made.getElementsByTagName("table").length == 2


def test_the_package_lists_what_it_has():
    names = dir(us)
    assert {"models", "NodeClassifier", "study", "save", "load", "Graph", "unroll"} <= set(names)
    assert not {"importlib", "Any", "TYPE_CHECKING", "annotations"} & set(names)
    assert all(hasattr(us, name) for name in names)
