"""``unspool study report`` on files of one's own: a page, and a command on it that can be typed."""

import re
import shlex

import pytest
from click.testing import CliRunner

from unspool.cli.main import cli

pytestmark = pytest.mark.long


def invoke(*words, code=0):
    done = CliRunner().invoke(cli, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def own_study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nodes = [f"n{k}" for k in range(60)]
    edges = [f"{nodes[k]},{nodes[(k + step) % 60]}" for k in range(60) for step in (2, 4)]
    (tmp_path / "edges.csv").write_text("source,target\n" + "\n".join(edges))
    rows = [f"{name},{k % 2 + 0.1 * (k % 7)},{k % 3},{'even' if k % 2 == 0 else 'odd'}" for k, name in enumerate(nodes)]
    (tmp_path / "nodes.csv").write_text("id,a,b,team\n" + "\n".join(rows))
    data = ["--edges", "edges.csv", "--features", "nodes.csv", "--label-column", "team"]
    invoke(
        "study",
        "run",
        "GCN",
        "MLP",
        *data,
        "--dropout",
        "0.2,0.5",
        "--seeds",
        3,
        "--epochs",
        6,
        "--hidden",
        8,
        "--out",
        "own.db",
        "--quiet",
        "--jobs",
        1,
    )
    return tmp_path


def test_a_page_beside_the_file(own_study):
    done = invoke("study", "report", "own.db")
    assert done.stdout.startswith("page: own.html")
    text = (own_study / "own.html").read_text(encoding="utf-8")
    assert "What to try next" in text
    assert "unspool study model own.db" in text


def test_the_command_that_show_prints_repeats_the_trial(own_study):
    shown = invoke("study", "show", "own.db", 2).stdout
    score = re.search(r"test score ([\d.]+);", shown).group(1)
    command = next(line.strip() for line in shown.splitlines() if line.strip().startswith("unspool train"))
    said = invoke(*shlex.split(command)[1:], "--no-report", "--jobs", 1).stdout
    assert f"test {score}" in said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("own.db", "--out", "page.pdf"), ".html"),
        (("own.db", "--markdown", "own.db"), "the study itself"),
        (("own.db", "--where", "model=SGC"), "SGC"),
        (("own.db", "--dataset", "cora"), "cora"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(own_study, words, told):
    done = CliRunner().invoke(cli, ["study", "report", *words])
    assert done.exit_code != 0
    assert isinstance(done.exception, ValueError | SystemExit)
    assert told in f"{done.output}{done.exception}"
    assert not list(own_study.glob("page*"))
