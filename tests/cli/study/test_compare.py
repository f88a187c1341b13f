"""unspool study compare: one sentence about two sides."""

import pytest

from cli.people import ask
from cli.study.small import lines


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
