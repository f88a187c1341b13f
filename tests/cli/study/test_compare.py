"""unspool study compare: one sentence about two sides."""

from importlib.metadata import EntryPoint

import pytest

import unspool as us
from cli.people import ask
from cli.study.small import lines, run
from unspool.models import registry


def test_one_sentence(file):
    text = ask("study", "compare", file, "GCN", "MLP")
    assert len(text.splitlines()) == 1
    assert text.startswith("GCN ")
    assert "95 % interval" in text
    assert "GCN (dropout 0.2)" in ask("study", "compare", file, "GCN,dropout=0.2", "GCN,dropout=0.5")
    assert "Wilcoxon" in ask("study", "compare", file, "gcn", "mlp", "--test", "wilcoxon", "--confidence", "0.9")


def test_all_pairs(file):
    (told,) = lines("compare", file, "--all")
    assert told["p_corrected"] is not None
    assert told["difference"] == pytest.approx(told["a"]["test_mean"] - told["b"]["test_mean"], abs=1e-6)


class Calmer(us.models.MLP):
    """Registered by a package, as it were."""


def test_models_that_packages_register_are_named_as_they_are_registered(tmp_path, monkeypatch):
    entry = EntryPoint("calm", f"{__name__}:Calmer", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry])
    out = tmp_path / "study.db"
    run(out, "--seeds", "2", models=("calm", "GCN"))
    assert "Calmer" in ask("study", "compare", out, "calm", "GCN")
    assert "Calmer" in ask("study", "best", out, "--where", "model=Calm")
