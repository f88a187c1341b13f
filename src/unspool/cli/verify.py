"""``unspool verify``: every certificate, as a table or as JSON lines."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from rich.progress import Progress
from rich.table import Table

from unspool.cli.terminal import Terminal, echo
from unspool.theory import CLAIMS, Certificate, Verdict
from unspool.theory import verify as certify


def run(seed: int, trials: int, as_json: bool) -> None:
    """Test every claim; status 1 where one does not end as documented."""
    found = certify(seed, trials, watch=_line) if as_json else _show(seed, trials)
    if not all(certificate.as_stated for certificate in found):
        raise click.exceptions.Exit(1)


def _line(certificate: Certificate) -> None:
    record = asdict(certificate) | {"verdict": certificate.verdict.value, "expected": certificate.expected.value}
    echo(json.dumps(record, ensure_ascii=False))


def _show(seed: int, trials: int) -> list[Certificate]:
    """Test every claim behind a progress bar, then print the table and the count."""
    console = Terminal(highlight=True)
    if not console.is_terminal:
        console = Terminal(highlight=True, width=140)  # a file has no width of its own
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("testing claims", total=len(CLAIMS))
        found = certify(seed, trials, watch=lambda c: progress.advance(task))
    console.print(_table(found, trials), markup=True)
    console.print(
        "error: the largest deviation where a claim should hold; "
        "gap: the size of the counter-example, or of the claim without its condition."
    )
    wrong = [c for c in found if not c.as_stated]
    for certificate in wrong:
        console.print(f"[bold red]not as documented[/]: {certificate}", markup=True)
    console.print(
        f"{len(found) - len(wrong)} of {len(found)} claims end as documented (docs/equations.md, docs/errata.md)."
    )
    return found


def _table(found: list[Certificate], trials: int) -> Table:
    table = Table(title=f"{len(found)} claims, {trials} random settings each, float64", expand=True)
    table.add_column("where", style="bold", min_width=10)
    table.add_column("claim", ratio=1)
    table.add_column("verdict", ratio=1)
    table.add_column("error", style="cyan", no_wrap=True)
    table.add_column("gap", style="magenta", no_wrap=True)
    table.add_column("as documented", min_width=10)
    for certificate in found:
        table.add_row(
            certificate.name,
            certificate.statement,
            _words(certificate),
            "" if certificate.error is None else f"{certificate.error:.0e}",
            "" if certificate.gap is None else f"{certificate.gap:.2g}",
            "yes" if certificate.as_stated else "[bold red]NO[/]",
        )
    return table


def _words(certificate: Certificate) -> str:
    colour, detail = {
        Verdict.HOLDS: ("green", ""),
        Verdict.HOLDS_WHEN: ("yellow", f" {certificate.condition}"),
        Verdict.FAILS: ("magenta", f": {certificate.example}"),
    }[certificate.verdict]
    return f"[{colour}]{certificate.verdict.value}[/]{detail}"
