"""The wheel in an empty environment, far from the repository; then a package of somebody else's on top of it."""

import csv
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import unspool

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


def run(*words, cwd, code=0):
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "UNSPOOL_DATA")}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False, env={**clean, "OMP_NUM_THREADS": "1"}
    )  # fmt: skip
    assert done.returncode == code, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """What would be uploaded: the sdist, and the wheel that is built from it."""
    place = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", place, ROOT, cwd=place)
    return place


@pytest.fixture(scope="module")
def wheel(built):
    (found,) = built.glob("unspool-*.whl")
    return found


def test_what_would_be_uploaded_passes_the_check_of_the_index(built):
    files = sorted(built.iterdir())
    assert [file.name for file in files] == [
        f"unspool-{unspool.__version__}-py3-none-any.whl",
        f"unspool-{unspool.__version__}.tar.gz",
    ]
    run(sys.executable, "-m", "twine", "check", "--strict", *files, cwd=built)


def test_the_sdist_holds_what_a_packager_needs(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as held:
        names = {name.partition("/")[2] for name in held.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "src/unspool/explore/explorer.html"} <= names
    assert not [
        name
        for name in names
        if name.startswith(("out/", "docs/api/", "docs/gallery/", "carry/", "experiments/study.db"))
    ]


def test_the_version_is_the_same_everywhere():
    assert f"version: {unspool.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## [{unspool.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """An environment with the wheel and what it depends on, and nothing else; its folder of commands."""
    place = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", place / "venv", cwd=place)
    home = place / "venv" / "bin"
    pip = [home / "python", "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
    run(*pip, "-c", ROOT / "constraints.txt", wheel, cwd=place)
    return home


def test_the_wheel_holds_the_package_and_no_more(wheel):
    with zipfile.ZipFile(wheel) as held:
        names = held.namelist()
        readme = held.read(next(name for name in names if name.endswith("METADATA"))).decode()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"unspool"}
    assert any(name.endswith("embedded/citeseer.npz") for name in names)
    assert not [link for link in ("](docs/", "](CONTRIBUTING", "](CHANGELOG") if link in readme]  # dead on PyPI


def test_the_main_job_runs_without_the_repository(environment, tmp_path):
    assert "Usage: unspool" in run(environment / "unspool", "--help", cwd=tmp_path)
    run(environment / "unspool", "train", "GPRGNN", "--epochs", "5", "--seeds", "2", cwd=tmp_path)
    assert (tmp_path / "out/train/report.html").is_file()
    run(environment / "unspool", "predict", "out/train", "--out", "p.csv", cwd=tmp_path)
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 3328
    run(
        environment / "unspool",
        "study",
        "run",
        "SGC",
        "--lr",
        "0.05,0.2",
        "--seeds",
        "2",
        "--epochs",
        "5",
        cwd=tmp_path,
    )
    run(environment / "unspool", "verify", "--trials", "1", cwd=tmp_path)
    told = run(environment / "unspool", "reproduce", "table1", cwd=tmp_path)
    assert "UGDGNN" in told


@pytest.fixture(scope="module")
def with_plugin(environment, tmp_path_factory):
    place = tmp_path_factory.mktemp("plugin")
    pip = [
        environment / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-compile",
        "--disable-pip-version-check",
        "--no-deps",
    ]
    run(*pip, ROOT / "examples" / "plugin", cwd=place)
    return environment / "unspool", place


def test_a_package_of_ones_own_is_served_like_the_named_models(with_plugin):
    unspool, place = with_plugin
    assert "huber" in run(unspool, "models", cwd=place)
    assert "where φ turns into a straight line" in " ".join(
        run(unspool, "models", "huber", cwd=place).replace("│", " ").split()
    )
    assert "moons" in run(unspool, "datasets", cwd=place)
    run(
        unspool,
        "train",
        "huber",
        "--dataset",
        "moons",
        "--epochs",
        "60",
        "--seeds",
        "2",
        "--setting",
        "bend=0.2",
        cwd=place,
    )
    card = json.loads((place / "out/train/seed0/model.json").read_text())
    assert (card["model"], card["settings"]["bend"]) == ("unspool_plugin.model:HuberNet", 0.2)
    assert "HuberNet" in (place / "out/train/report.html").read_text()
    run(unspool, "predict", "out/train", "--out", "p.csv", cwd=place)
    with (place / "p.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 300
    assert "HuberNet at node 7" in run(unspool, "explain", "out/train/seed0", "--node", "7", cwd=place)
    (place / "ring.csv").write_text("source,target\n" + "".join(f"{i},{(i + 1) % 60}\n" for i in range(60)))
    told = run(unspool, "spectrum", "out/train/seed0", "--edges", "ring.csv", "--json", cwd=place)
    assert json.loads(told.splitlines()[0])["model"] == "HuberNet"
    grid = ["--setting", "bend=0.05,0.2", "--seeds", "2", "--epochs", "20", "--dataset", "moons"]
    assert "kept trial" in run(unspool, "study", "run", "huber", "GPRGNN", *grid, "--keep", "1", cwd=place)
    run(unspool, "study", "best", "out/study.db", "--each", "model", cwd=place)
    run(unspool, "study", "model", "out/study.db", "1", "--out", "handed", cwd=place)
    check = (
        "import unspool as us; model = us.load('handed'); print(type(model).__name__, model.card['metrics']['epochs'])"
    )
    assert "HuberNet 20" in run(unspool.with_name("python"), "-c", check, cwd=place)


def test_the_same_by_its_full_name_and_without_registration(with_plugin, tmp_path):
    unspool, _ = with_plugin
    (tmp_path / "calm.py").write_text(
        "import unspool as us\n\n\nclass Calm(us.models.Model):\n    depth: int = us.setting(3, 'number of steps', at_least=1)\n\n"
        "    def build(self):\n        self.p_pre = us.nn.Linear(self.in_features, self.out_features)\n"
        "        self.propagation = us.unroll(us.Fidelity(0.2) + us.Smoothness(0.8), us.GradientDescent(step=0.5), self.depth)\n"
    )
    run(unspool, "train", "calm:Calm", "--setting", "depth=4", "--epochs", "5", cwd=tmp_path)
    assert "not imported just because a file names it" in run(unspool, "predict", "out/train", cwd=tmp_path, code=2)
    run(unspool, "predict", "out/train", "--model", "calm:Calm", cwd=tmp_path)
    run(unspool, "spectrum", "out/train/seed0", "--model", "calm:Calm", "--json", cwd=tmp_path)
    run(
        unspool,
        "train",
        "unspool_plugin.model:HuberNet",
        "--dataset",
        "unspool_plugin.data:two_moons",
        "--epochs",
        "3",
        "--out",
        "o",
        cwd=tmp_path,
    )
