"""unspool study importance: shares that sum to one."""

import pytest

from cli.people import ask
from cli.study.small import lines


def test_shares_sum_to_one(file):
    (told,) = lines("importance", file)
    shares = [*told["shares"].values(), *(pair["share"] for pair in told["interactions"]), told["rest"]]
    assert sum(shares) == pytest.approx(1)
    assert "model" in ask("study", "importance", file)
    assert list(lines("importance", file, "--where", "GCN", "--by", "loss")[0]["shares"]) == ["dropout"]
