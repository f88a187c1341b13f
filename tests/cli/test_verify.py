"""unspool verify: a table, JSON lines, and an exit status for what does not end as documented."""

import json

from cli.people import ask
from unspool import theory


def test_a_table_and_json(monkeypatch):
    monkeypatch.setattr(theory, "CLAIMS", theory.CLAIMS[:3])
    monkeypatch.setattr("unspool.cli.verify.CLAIMS", theory.CLAIMS[:3])
    assert "3 of 3 claims end as documented" in ask("verify", "--trials", "1")
    lines = ask("verify", "--trials", "1", "--json").splitlines()
    assert [json.loads(line)["verdict"] for line in lines] == ["holds when", "holds", "holds when"]


def test_what_does_not_hold_is_told_loudly(monkeypatch):
    wrong = theory.Claim("here", "one is zero", theory.Verdict.HOLDS, lambda random: theory.Evidence(error=1.0))
    monkeypatch.setattr(theory, "CLAIMS", (wrong,))
    monkeypatch.setattr("unspool.cli.verify.CLAIMS", (wrong,))
    assert "not as documented" in ask("verify", code=1)
