"""The command ``unspool report``."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.people import ask
from report.jobs import make_job
from unspool import theory
from unspool.cli.main import cli, main
from unspool.models import find_model

pytestmark = pytest.mark.long


CALM = """
import unspool as us


class Calm(us.models.Model):
    def build(self):
        self.p_pre = us.nn.Linear(self.in_features, self.out_features)
        self.propagation = us.unroll(us.Fidelity(0.2) + us.Smoothness(0.8), us.GradientDescent(step=0.5), 3)
"""
EXAMPLE = Path(__file__).parents[1] / "reproduce" / "example_results"


@pytest.fixture(autouse=True)
def _few_claims_and_no_data(monkeypatch):
    monkeypatch.setattr(theory, "CLAIMS", theory.CLAIMS[:2])
    monkeypatch.delenv("UNSPOOL_DATA", raising=False)


@pytest.fixture
def failed(monkeypatch, capsys):
    def go(*arguments):
        monkeypatch.setattr(sys, "argv", ["unspool", "report", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        message = capsys.readouterr().err
        assert len(message.strip().splitlines()) == 1
        return left.value.code, message

    return go


def test_a_page_and_both_exports(tmp_path):
    out = tmp_path / "new"
    names = ["--out", out / "a.html", "--markdown", out / "a.md", "--latex", out / "a.tex"]
    done = CliRunner().invoke(cli, ["report", str(EXAMPLE), *map(str, names), "--trials", "1"])
    assert done.exit_code == 0, done.output
    assert sorted(file.name for file in out.iterdir()) == ["a.html", "a.md", "a.tex"]
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["page", "Markdown", "LaTeX"]
    assert done.stderr.splitlines()[0].startswith("testing the paper's statements")
    assert (out / "a.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_training_job_is_a_folder_too(tmp_path):
    folder, _ = make_job(tmp_path / "job", seeds=2, epochs=5)
    text = ask("report", folder)
    assert [line.split(":")[0] for line in text.splitlines()] == [
        "note", "page", "Markdown", "model card",
    ]  # fmt: skip
    assert (folder / "report.html").is_file()
    one = tmp_path / "one.html"
    ask("report", folder / "seed0", "--out", one)
    assert "GPRGNN on Toy" in one.read_text(encoding="utf-8")


def test_a_model_of_ones_own_is_named_by_the_user_alone(tmp_path, monkeypatch):
    (tmp_path / "calm_model.py").write_text(CALM)
    monkeypatch.syspath_prepend(tmp_path)
    folder, _ = make_job(tmp_path / "job", seeds=1, epochs=5, kind=find_model("calm_model:Calm"))
    page = folder / "report.md"
    ask("report", folder)
    assert "is not imported just because a file names it" in page.read_text(encoding="utf-8")
    ask("report", folder, "--model", "calm_model:Calm")
    assert "is not imported" not in page.read_text(encoding="utf-8")


def test_a_model_in_the_current_folder_is_found(tmp_path, monkeypatch):
    (tmp_path / "calm_here.py").write_text(CALM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    small = ["--dataset", "contextual_sbm", "--epochs", "3", "--seeds", "1", "--out", "job"]
    ask("train", "calm_here:Calm", *small, "--no-report")
    ask("report", "job", "--model", "calm_here:Calm")
    assert "not imported" not in Path("job/report.md").read_text(encoding="utf-8")


def test_a_report_that_is_written_again_is_no_poorer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["train", "SGC", "--dataset", "contextual_sbm", "--epochs", "3", "--seeds", "1", "--out", "job"]
    monkeypatch.setattr(sys, "argv", ["unspool", *words])
    ask(*words)
    told = Path("job/report.md").read_text(encoding="utf-8")
    assert "1000 nodes, 4000 edges, 16 features" in told
    ask("report", "job")
    again = Path("job/report.md").read_text(encoding="utf-8")
    assert "1000 nodes, 4000 edges, 16 features" in again
    assert f"unspool {' '.join(words)}" in again
    assert [line for line in told.splitlines() if line not in again] == []


def test_the_hint_is_in_both_spellings(tmp_path, monkeypatch):
    (tmp_path / "calm_model.py").write_text(CALM)
    monkeypatch.syspath_prepend(tmp_path)
    folder, _ = make_job(tmp_path / "job", seeds=1, epochs=5, kind=find_model("calm_model:Calm"))
    ask("report", folder)
    assert "--model calm_model:Calm (in Python model=...)" in (folder / "report.html").read_text(encoding="utf-8")


def test_nothing_to_report_names_both_commands(failed, tmp_path):
    (tmp_path / "empty").mkdir()
    for folder, what in ((tmp_path / "empty", "is empty"), (tmp_path / "none", "does not exist")):
        message = failed(folder)[1]
        assert what in message
        assert "`unspool train`" in message


def test_a_folder_is_needed():
    assert "FOLDER" in ask("report", code=2)


def test_wrong_places_are_one_sentence(failed, tmp_path):
    assert failed(tmp_path / "none", "--out", tmp_path / "a.html")[0] == 2
    code, message = failed(EXAMPLE, "--out", tmp_path / "a.pdf")
    assert code == 2
    assert ".html" in message
    (tmp_path / "file").write_text("")
    assert "cannot write into" in failed(EXAMPLE, "--out", tmp_path / "file" / "a.html")[1]


def test_help_teaches():
    assert "unspool report out/train" in CliRunner().invoke(cli, ["report", "--help"]).output
