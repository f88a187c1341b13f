"""Every command on the page about studies runs, in the order of the page."""

import re
import shlex
from pathlib import Path

import pytest

from cli.people import ask, write_people

pytestmark = pytest.mark.long


PAGE = Path(__file__).parents[3] / "docs" / "studies.md"


def short(words):
    """The same command with few epochs: a page shows what people want, and a test has seconds."""
    if words[:2] == ["study", "run"]:
        less = ["--seconds", "0.5"] if "--paper-grid" in words else ["--epochs", "4", "--seeds", "2"]
        return [*words, "--jobs", "1", *less]
    return [*words, "--epochs", "4", "--no-report"] if words[0] == "train" else words


def test_the_commands_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(write_people(tmp_path))
    held = [line.split(",")[:5] for line in Path("people.csv").read_text().splitlines()]  # id, a, b, c, team
    Path("people.csv").write_text("".join(f"{','.join(cells)}\n" for cells in held))
    page = PAGE.read_text(encoding="utf-8")
    own = next(block for block in re.findall(r"```python\n(.*?)```", page, flags=re.S) if "class Calm" in block)
    Path("my_models.py").write_text(own, encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", page, flags=re.S)
    lines = [line for block in blocks for line in block.splitlines() if line]
    assert len(lines) > 15
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "unspool", line
        ask(*short(words))
    assert (tmp_path / "out" / "pictures" / "leaders.png").is_file()
    assert {path.name for path in (tmp_path / "out" / "study.db.models" / "best1").iterdir()} == {"seed0", "seed1"}
