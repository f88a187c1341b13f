"""Whatever stands in a file, a name or a path is shown on the terminal, never carried out."""

import ast
import io
from pathlib import Path

import pytest
from click.testing import CliRunner

from unspool.cli import terminal
from unspool.cli.main import cli, main
from unspool.cli.terminal import Terminal

SOURCE = Path(terminal.__file__).parent


def hidden(text):
    """Signs that a terminal obeys instead of showing."""
    return [sign for sign in text if sign not in "\n\t" and (ord(sign) < 32 or 127 <= ord(sign) < 160)]


@pytest.mark.parametrize("text", ["[/red]", "[bold]a[/bold]", ":cat:", "[link=http://x]a[/link]"])
def test_markup_in_a_name_is_text(text):
    from rich.table import Table

    out = io.StringIO()
    table = Table("name")
    table.add_row(text + "\x1b[31m")
    shown = Terminal(file=out, width=60)
    shown.print(f"features: {text}\x1b[31m")
    shown.print(table)
    assert out.getvalue().count(text) == 2
    assert not hidden(out.getvalue())


@pytest.mark.parametrize("module", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_there_is_no_other_door(module):
    if module.name == "terminal.py":
        return
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in ("click.echo", "click.secho", "print", "Console", "sys.stdout.write"), (
                f"{module.name}, line {node.lineno}: {called} writes names raw; use terminal.echo or terminal.Terminal"
            )


def files(place):
    """A ring of twelve nodes with a column whose name is an attack."""
    (place / "e.csv").write_text("source,target\n" + "".join(f"{i},{(i + 1) % 12}\n" for i in range(12)))
    rows = "".join(f"{i},{i % 5},{i % 2}\n" for i in range(12))
    (place / "x.csv").write_text(f"id,a\x1b[31m[/red],team\n{rows}")
    return ["--edges", str(place / "e.csv"), "--features", str(place / "x.csv")]


def test_a_column_name_with_escapes(tmp_path):
    asked = [
        "train",
        "APPNP",
        *files(tmp_path),
        "--label-column",
        "team",
        "--epochs",
        "2",
        "--out",
        str(tmp_path / "[/o]"),
    ]
    found = CliRunner().invoke(cli, asked, standalone_mode=False)
    assert found.exception is None
    assert "[/red]" in found.output
    assert "[/o]" in found.output
    assert not hidden(found.output)


@pytest.mark.parametrize(
    "wrong", [["--feature-column", "no"], ["--feature-colum\x1b[31m", "a"], ["--choose", "\x1b[31m"]]
)
def test_a_refusal_with_escapes(tmp_path, capsys, monkeypatch, wrong):
    monkeypatch.setattr("sys.argv", ["unspool", "denoise", *files(tmp_path), "--out", str(tmp_path / "o.csv"), *wrong])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "1b[31m" in said
    assert not hidden(said)
