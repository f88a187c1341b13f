import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

import unspool
from unspool import theory
from unspool.cli.main import cli


def run(*arguments, **how):
    return subprocess.run(
        [sys.executable, "-m", "unspool.cli.main", *arguments], capture_output=True, text=True, check=False, **how
    )


def test_demo_prints_every_layer_and_draws(tmp_path):
    out = tmp_path / "deep" / "demo.png"
    done = CliRunner().invoke(cli, ["demo", "--nodes", "60", "--depth", "4", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "0.15 ‖H − X‖²  +  0.85 ‖B H‖²" in done.output
    for word in ("noisy input", "exact", "trained on 40 other noise draws", str(out.name)):
        assert word in done.output
    assert out.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert os.listdir(out.parent) == ["demo.png"]  # nothing half-written stays


def test_demo_gives_the_same_numbers_twice(tmp_path):
    texts = [
        CliRunner().invoke(cli, ["demo", "--nodes", "50", "--depth", "3", "--out", str(tmp_path / "a.png")]).output
        for _ in range(2)
    ]
    assert texts[0] == texts[1]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    done = run("demo", "--nodes", "30", "--out", str(tmp_path / "file" / "demo.png"))
    assert done.returncode == 2
    assert done.stderr.startswith("unspool: cannot write into")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments", [["demo", "--depth", "0"], ["demo", "--alpha", "1.0"], ["verify", "--trials", "0"], ["unroll"]]
)
def test_bad_options_are_one_clear_message(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert "Error" in done.stderr
    assert "Traceback" not in done.stderr


def test_verify_prints_a_table_and_json(monkeypatch):
    monkeypatch.setattr(theory, "CLAIMS", theory.CLAIMS[:3])
    monkeypatch.setattr("unspool.cli.verify.CLAIMS", theory.CLAIMS[:3])
    done = CliRunner().invoke(cli, ["verify", "--trials", "1"])
    assert done.exit_code == 0, done.output
    assert "3 of 3 claims end as documented" in done.output
    lines = CliRunner().invoke(cli, ["verify", "--trials", "1", "--json"]).output.splitlines()
    assert [json.loads(line)["verdict"] for line in lines] == ["holds when", "holds", "holds when"]


def test_verify_fails_loudly(monkeypatch):
    wrong = theory.Claim("here", "one is zero", theory.Verdict.HOLDS, lambda random: theory.Evidence(error=1.0))
    monkeypatch.setattr(theory, "CLAIMS", (wrong,))
    monkeypatch.setattr("unspool.cli.verify.CLAIMS", (wrong,))
    done = CliRunner().invoke(cli, ["verify"])
    assert done.exit_code == 1
    assert "not as documented" in done.output


def test_help_teaches():
    for command in ([], ["demo"], ["verify"]):
        done = CliRunner().invoke(cli, [*command, "--help"])
        assert done.exit_code == 0
        assert not command or "Example: unspool" in done.output
    assert unspool.__version__ in CliRunner().invoke(cli, ["--version"]).output
