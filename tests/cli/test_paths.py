"""Where modules come from: the current folder, after everything that is installed."""

import subprocess
import sys
from pathlib import Path

import pytest

from cli.people import refuse
from unspool.cli.paths import look_here

pytestmark = pytest.mark.long


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != ""])
    return tmp_path


def test_the_current_folder_comes_last_and_once(here):
    before = [*sys.path]
    look_here("GCN")
    assert sys.path == before
    for _ in range(2):
        look_here("my_models:Net")
    assert sys.path == [*before, str(here)]


@pytest.mark.parametrize("file", ["torch.py", "torch/__init__.py", "statistics.py"])
def test_a_file_with_the_name_of_a_package_is_said_not_to_be_taken(here, file, capsys):
    (here / file).parent.mkdir(exist_ok=True)
    (here / file).write_text("")
    name = Path(file).parts[0].removesuffix(".py")
    look_here(f"{name}:Net")
    said = capsys.readouterr().err
    assert said.startswith(f"{name} is the installed package ")
    assert said.endswith(f"and not {file} here; rename yours to use it\n")


def test_a_file_of_ones_own_and_a_package_alone_are_taken_without_a_word(here, capsys):
    (here / "my_own_models.py").write_text("")
    (here / "torch").mkdir()  # a folder of data, and no package
    for name in ("my_own_models:Net", "torch.nn:Bilinear", "nowhere_at_all:Net", "a b:Net", ":Net"):
        look_here(name)
    assert capsys.readouterr().err == ""


@pytest.mark.long
def test_no_file_here_takes_the_place_of_a_package_that_is_imported_later(tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise SystemExit('the wrong one')")
    (tmp_path / "own_roads.py").write_text(
        "from unspool import datasets\n\n\ndef roads():\n    return datasets.grid(5, 6)\n"
    )
    code = "import sys; from unspool.cli.paths import look_here; look_here('own_roads:roads'); import own_roads, matplotlib; print(matplotlib.__version__)"
    # Trap: -c puts the current folder first by itself; -P does not.
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_work_that_fails_before_it_wrote_anything_leaves_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refuse("train", "SGC", "--dataset", "contextual_sbm", "--setting", "dpeth=3", "--out", "out/people")
    assert not (tmp_path / "out").exists()
    (tmp_path / "there").mkdir()
    refuse("train", "SGC", "--dataset", "contextual_sbm", "--setting", "dpeth=3", "--out", "there")
    assert (tmp_path / "there").is_dir()
