"""``unspool verify`` as a table."""

from __future__ import annotations

from rich.progress import Progress
from rich.table import Table

from unspool.cli.terminal import Terminal
from unspool.theory import CLAIMS, Certificate, Verdict
from unspool.theory import verify as certify


def show(seed: int, trials: int) -> list[Certificate]:
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
