"""The package as a whole: what it loads, what it exports, what its examples and docs say."""

import ast
import importlib
import inspect
import json
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import unspool as us

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
#: What a new user runs first; the other examples run in the release check.
FIRST = ("quickstart", "own_term")

#: Every page with code; that of the estimators is run in tests/estimator.
PAGES = sorted(
    page.name
    for page in (ROOT / "docs").glob("*.md")
    if "```python" in page.read_text(encoding="utf-8") and page.name not in ("estimators.md", "changelog.md")
)
#: Pages whose code trains for many seconds run in the release check.
LONG_PAGES = ("deploy.md", "links.md", "models.md", "studies.md", "training.md")


def modules():
    found = pkgutil.walk_packages(us.__path__, "unspool.")
    return [m.name for m in found if not m.name.endswith("cuda")]  # Triton needs a GPU


def loaded(code):
    """The modules that some code loads in a new process."""
    said = f"{code}; import sys; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.long
def test_importing_loads_what_is_used():
    heavy = {"click", "rich", "matplotlib", "scipy", "sklearn", "networkx", "torch_geometric", "pandas", "triton"}
    at_once = loaded("import unspool")
    assert {name for name in at_once if name.startswith("unspool")} == {"unspool"}
    assert not at_once & {*heavy, "torch", "numpy"}
    used = loaded("import unspool; unspool.unroll, unspool.Graph, unspool.models.UGDGNN")
    assert "unspool.unrolling" in used
    assert not (used - loaded("import torch")) & heavy


def test_every_public_name_teaches():
    for name in us.__all__:
        thing = getattr(us, name)
        assert inspect.getdoc(thing), f"{name} has no docstring"
    assert len(set(us.__all__)) == len(us.__all__)


@pytest.mark.parametrize("name", modules())
def test_modules_are_documented_and_of_human_size(name):
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    text = Path(module.__file__).read_text(encoding="utf-8")
    assert text.count("\n") <= 400, f"{name} has grown too long"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first = node.body[1] if len(node.body) > 1 and ast.get_docstring(node) else node.body[0]
            assert node.end_lineno - first.lineno <= 60, f"{name}.{node.name} is too long"


@pytest.mark.parametrize("name", modules())
def test_no_name_shadows_a_module(name):
    module, (parent, _, leaf) = importlib.import_module(name), name.rpartition(".")
    # ``import unspool.train.fitting as m`` takes the attribute of the package, not the module of that path.
    assert getattr(importlib.import_module(parent), leaf) is module, f"{parent} has another {leaf}"


def test_exported_terms_and_algorithms_have_a_running_example():
    wanted = [
        getattr(us, n) for n in us.__all__ if inspect.isclass(getattr(us, n)) and not inspect.isabstract(getattr(us, n))
    ]
    kinds = (us.Term, us.Algorithm, us.Coefficient)
    for kind in (c for c in wanted if issubclass(c, kinds)):
        assert ">>>" in kind.__doc__, f"{kind.__name__} has no example"


def runs(file):
    return pytest.param(file, marks=pytest.mark.long if file.stem in FIRST else pytest.mark.slow, id=file.name)


@pytest.mark.parametrize("file", [runs(file) for file in EXAMPLES])
def test_examples_run_in_any_folder(file, tmp_path):
    command = [sys.executable, "-W", "error", str(file)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("name", ["own_term.py", "own_algorithm.py", "own_model.py"])
def test_own_parts_are_short(name):
    assert len((ROOT / "examples" / name).read_text(encoding="utf-8").splitlines()) < 50


@pytest.mark.long
def test_readme_code_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.S)
    assert blocks
    for block in blocks:
        file = tmp_path / "readme.py"
        file.write_text(block, encoding="utf-8")
        done = subprocess.run([sys.executable, "-W", "error", str(file)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def run_in_fork():
    """Runs scripts that share the seconds that importing takes, and nothing else; gives exit code and output."""
    if not hasattr(os, "fork"):
        pytest.skip("forks")
    words = [sys.executable, "-W", "error", str(Path(__file__).with_name("forked.py"))]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as runner:

        def run(script, folder):
            print(json.dumps([str(script), str(folder)]), file=runner.stdin, flush=True)
            return json.loads(runner.stdout.readline())

        yield run
        runner.stdin.close()


@pytest.mark.long
def test_a_script_that_fails_in_a_fork_is_told(run_in_fork, tmp_path):
    (tmp_path / "wrong.py").write_text("import warnings\nprint('so far')\nwarnings.warn('much')\n", encoding="utf-8")
    status, said = run_in_fork(tmp_path / "wrong.py", tmp_path)
    assert status == 1
    assert said.startswith("so far")
    assert "UserWarning: much" in said


@pytest.mark.long
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.slow if page in LONG_PAGES else []) for page in PAGES]
)
def test_code_in_the_docs_runs(page, run_in_fork, tmp_path):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    file = tmp_path / "page.py"
    file.write_text("\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.S)), encoding="utf-8")
    status, said = run_in_fork(file, tmp_path)
    assert status == 0, said


def test_equations_name_things_that_exist():
    text = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
    names = re.findall(r"`((?:unspool\.)[\w.]+)`", text)
    assert len(names) > 15
    for name in names:
        parts = name.split(".")
        for cut in range(len(parts), 0, -1):
            try:
                thing = importlib.import_module(".".join(parts[:cut]))
            except ImportError:
                continue
            for part in parts[cut:]:
                thing = getattr(thing, part)
            break
        else:
            pytest.fail(f"{name} does not exist")
    for file, test in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text):
        assert f"def {test}" in (ROOT / file).read_text(encoding="utf-8"), f"{file}::{test} does not exist"


def test_links_in_the_docs_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            made = target.startswith(("gallery/", "api/"))  # by make docs, which finds what is missing
            assert made or (page.parent / target).exists(), f"{page.name} links to {target}"
