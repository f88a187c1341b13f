"""The report of a reproduction: one HTML file that needs nothing else, and its tables as Markdown and LaTeX."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import unspool
from unspool import datasets, theory
from unspool.datasets.statistics import Row
from unspool.files import write_whole
from unspool.report import Block, Contents, Folded, Page, Paragraph, Section, Table
from unspool.report.latex import PREAMBLE, latex_table
from unspool.report.text import counted
from unspool.reproduce.networks import Network
from unspool.reproduce.page_causes import causes_in, surpassed
from unspool.reproduce.page_curves import attacked, depth, robust
from unspool.reproduce.page_measured import damaged_networks, outlying_signals, sentences
from unspool.reproduce.page_models import networks, trained
from unspool.reproduce.page_others import heterophily, machine, searches
from unspool.reproduce.page_readings import readings
from unspool.reproduce.page_table2 import table2, whole_grid
from unspool.reproduce.page_theory import claims, table1, table3
from unspool.reproduce.results import Results, read
from unspool.reproduce.summary import is_cut, whole

TITLE = "Graph neural networks as unrolled algorithms, reproduced"


#: Random settings for each statement of the paper, when the report puts them to the test.
TRIALS = 3


@dataclass(frozen=True, eq=False)
class Findings:
    """Everything that a report is made of.

    Attributes:
        results: the trials, searches and machine.
        certificates: the paper's statements, tested with ``trials`` random settings each.
        sizes: the rows of Table 3.
        models: trained networks.
    """

    results: Results
    certificates: Sequence[theory.Certificate]
    sizes: Sequence[Row]
    models: Sequence[Network] = ()
    trials: int = TRIALS

    @staticmethod
    def of(folder: str | os.PathLike[str], trials: int = TRIALS) -> Findings:
        """Read a folder of results, test the paper's statements, and count the datasets that are here."""
        found = read(folder)
        return Findings(found, theory.verify(trials=trials), datasets.table3(), trained(Path(folder)), trials)


def report(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    markdown: str | os.PathLike[str] | None = None,
    latex: str | os.PathLike[str] | None = None,
    trials: int = TRIALS,
) -> Path:
    """Write the report of a folder of results.

    Args:
        folder: what ``unspool reproduce`` wrote; trained models in its subfolder ``models`` add responses and objectives.
        out: the HTML file.
        markdown: a file for the same words and tables as Markdown.
        latex: a file for the tables as LaTeX.
        trials: random settings for each statement of the paper.

    Returns:
        The HTML file.

    Example:
        >>> import tempfile
        >>> from unspool.reproduce.results import example_record, write
        >>> folder = tempfile.mkdtemp()
        >>> file = write(folder, "table2", [example_record(seed) for seed in range(3)])
        >>> page(Findings(read(folder), [], [])).title
        'Graph neural networks as unrolled algorithms, reproduced'
    """
    made = page(Findings.of(folder, trials))
    _write(out, made.html())
    if markdown is not None:
        _write(markdown, made.markdown())
    if latex is not None:
        _write(latex, PREAMBLE + "\n\n".join(latex_table(t) for t in tables(made)) + "\n")
    return Path(out)


def page(found: Findings) -> Page:
    """The page as a value."""
    results = found.results
    parts = [
        ("Table 2: accuracy, ours beside the paper's", table2(results.of("table2"), causes_in(results))),
        ("Cells that miss, and the readings that explain them", readings(results)),
        ("Beyond the paper: our best against published numbers", surpassed(results.of("table2"))),
        ("The paper's grid, searched whole", whole_grid(results.of("grid"))),
        ("Figure 1: accuracy by depth", depth(results.of("depth"))),
        ("Robustness: outliers in raw signals", outlying_signals(results.measured)),
        ("Robustness: outliers behind the encoder, and random edges", damaged_networks(results.measured)),
        ("Robustness: features damaged in front of the encoder", robust(results.of("robust"))),
        ("Robustness: attacked edges", attacked(results.of("attacked"))),
        ("Nonlinearity, and the identity outside W", sentences(results.measured)),
        ("Heterophilous graphs", heterophily(results.of("heterophily"))),
        ("Searches: spaces, trials, choices", searches(results.searches)),
        ("Trained networks: responses and objectives", networks(found.models)),
        ("Table 1: models as denoising problems", table1(found.certificates)),
        ("Certificates and errata", claims(found.certificates, found.trials)),
        ("Table 3: datasets", table3(found.sizes)),
        ("Time, hardware and commands", machine(results)),
    ]
    sections = [Section(heading, blocks) for heading, blocks in parts if blocks]
    lead: list[Block] = [Paragraph([_lead(results)]), *cut_short(results), Contents([s.heading for s in sections])]
    return Page(TITLE, lead, sections, f"Written by unspool {unspool.__version__}.")


def cut_short(results: Results) -> list[Block]:
    """A warning where the runs that are compared with the paper were shorter than the paper's.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> cut = example_record(epochs=50, settings={"epochs": 50})
        >>> cut_short(Results([example_record()])), cut_short(Results([cut]))[0].markdown()[:32]
        ([], 'Runs of table2 were cut at 50 of')
    """
    found: dict[str, tuple[int, int]] = {}
    for row in results.rows:
        if is_cut(row):
            found[row.experiment] = max((int(row.settings["epochs"]), whole(row)), found.get(row.experiment, (0, 0)))
    return [
        Paragraph(
            [f"Runs of {name} were cut at {most} of {of} epochs: these are not the numbers of the experiment."],
            "warning",
        )
        for name, (most, of) in found.items()
    ]


def tables(made: Page) -> Iterator[Table]:
    """All tables of a page, those behind a fold included.

    Example:
        >>> inner = Table("inner", ["a"], [["1"]])
        >>> [t.caption for t in tables(Page("t", [], [Section("s", [Folded("more", [inner])])]))]
        ['inner']
    """
    yield from _tables([*made.lead, *(block for section in made.sections for block in section.blocks)])


def _tables(blocks: Iterable[Block]) -> Iterator[Table]:
    for block in blocks:
        if isinstance(block, Table):
            yield block
        elif isinstance(block, Folded):
            yield from _tables(block.blocks)


def _lead(results: Results) -> str:
    rows = results.rows
    sets, models = len({r.dataset for r in rows}), len({r.model for r in rows})
    return (
        "The tables and figures of Zhang and Zhao, Towards Understanding Graph Neural Networks: An Algorithm Unrolling "
        f"Perspective (2022), run again: {len(rows):,} results of {counted(models, 'model')} on "
        f"{counted(sets, 'dataset')}. Colours say the same as the words beside them."
    )


def _write(path: str | os.PathLike[str], text: str) -> None:
    write_whole(path, lambda file: file.write(text.encode()))
