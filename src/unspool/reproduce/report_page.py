"""The report of a reproduction: one HTML file that needs nothing else, and its tables as Markdown and LaTeX."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import unspool
from unspool import datasets, theory
from unspool.datasets.statistics import Row
from unspool.files import write_whole
from unspool.report import Block, Figure, Notes, Page, Paragraph, Section, Shown, Table, counted
from unspool.report.figure import can_draw
from unspool.report.latex import PREAMBLE, latex_table
from unspool.report.page import unfolded
from unspool.reproduce.all_claims import Subject, all_claims
from unspool.reproduce.claims import Verdict
from unspool.reproduce.lead.finals import Final
from unspool.reproduce.lead.finals import read as read_finals
from unspool.reproduce.networks import Network
from unspool.reproduce.records import Results
from unspool.reproduce.results import read
from unspool.reproduce.sections.curves import attacked_blocks, depth_blocks, robust_blocks
from unspool.reproduce.sections.interpretations import interpretation_blocks
from unspool.reproduce.sections.lead import lead_blocks
from unspool.reproduce.sections.machine import machine_blocks
from unspool.reproduce.sections.measurements import damage_blocks, identity_blocks, nonlinearity_blocks, signal_blocks
from unspool.reproduce.sections.networks import network_blocks, trained_networks
from unspool.reproduce.sections.not_run import NotRun
from unspool.reproduce.sections.overview import overview_blocks
from unspool.reproduce.sections.searches import heterophily_blocks, search_blocks
from unspool.reproduce.sections.table2 import grid_blocks, published_blocks, table2_blocks
from unspool.reproduce.sections.theory import certificate_blocks, table1_blocks, table3_blocks
from unspool.reproduce.summary import is_cut, preset_epochs

TITLE = "Graph neural networks as unrolled algorithms, reproduced"

#: Random settings for each statement of the paper, when the report puts them to the test.
TRIALS = 3


@dataclass(frozen=True)
class Step:
    """How far a report is: what is being done, and how much of it is."""

    stage: str
    done: int
    total: int


Watch = Callable[[Step], None]


@dataclass(frozen=True, eq=False)
class Findings:
    """Everything that a report is made of.

    Attributes:
        results: the trials, searches and machine.
        certificates: the paper's statements, tested with ``trials`` random settings each.
        sizes: the rows of Table 3.
        networks: trained networks.
        finals: final evaluations of ``unspool reproduce lead``, beside the folder of results or in it.
    """

    results: Results
    certificates: Sequence[theory.Certificate] = ()
    sizes: Sequence[Row] = ()
    networks: Sequence[Network] = ()
    trials: int = TRIALS
    finals: Sequence[Final] = ()

    @staticmethod
    def of(folder: str | os.PathLike[str], trials: int = TRIALS, watch: Watch | None = None) -> Findings:
        """Read a folder of results, test the paper's statements, and count the datasets that are here."""
        found = read(folder)
        ended: list[theory.Certificate] = []

        def tell(certificate: theory.Certificate) -> None:
            ended.append(certificate)
            if watch is not None:
                watch(Step("testing the paper's statements", len(ended), len(theory.CLAIMS)))

        theory.verify(trials=trials, watch=tell)
        finals = [
            row for place in (Path(folder), Path(folder).resolve().parent) for row in read_finals(place / "finals.csv")
        ]
        return Findings(found, ended, datasets.table3(), trained_networks(Path(folder)), trials, finals)

    @cached_property
    def claims(self) -> list[Subject]:
        """The paper's claims that the results say something about."""
        return all_claims(self.results)


#: How many comparisons end in a verdict, in a gist.
_WORDS = {Verdict.HOLDS: "hold", Verdict.FAILS: "fail", Verdict.OPEN: "undecided"}


@dataclass(frozen=True)
class SectionSpec:
    """A section of the report: its heading, the command that runs it, what makes its blocks, and which subjects of claims it answers."""

    heading: str
    command: str
    make: Callable[[Findings], list[Block]]
    subjects: tuple[str, ...] = ()

    def gist(self, found: Findings) -> str:
        """How the section ends, in half a sentence; empty where it tests no claim."""
        own = [test.verdict for one in found.claims if one.title.startswith(self.subjects) for test in one.tests]
        if not self.subjects or not own:
            return ""
        counts = [f"{own.count(verdict)} {word}" for verdict, word in _WORDS.items()]
        return f"of {counted(len(own), 'comparison')} {', '.join(counts)}"


def _of_results(heading: str, command: str, make: Callable[[Results], list[Block]], *subjects: str) -> SectionSpec:
    return SectionSpec(heading, command, lambda found: make(found.results), subjects)


#: The sections in their order; ``unspool reproduce COMMAND`` prints those of its command.
SECTIONS = (
    _of_results("Summary", "", overview_blocks),
    _of_results("Table 2: accuracy, ours and the paper's", "table2", table2_blocks, "Table 2, preset paper"),
    _of_results("Cells that miss, and the interpretations that explain them", "interpretations", interpretation_blocks),
    _of_results("Beyond the paper: our best against published numbers", "table2", published_blocks),
    SectionSpec("The upper level: StableGNN and GRAND in one space", "lead", lambda found: lead_blocks(found.finals)),
    SectionSpec("The upper level where neighbours differ", "lead", lambda found: lead_blocks(found.finals, "upper_heterophily")),
    _of_results("The paper's grid, searched whole", "grid", grid_blocks, "Table 2, preset grid"),
    _of_results("Figure 1: accuracy by depth", "depth", depth_blocks, "depth", "GCN and GCNII at depth"),
    _of_results("Robustness: outliers in raw signals", "robust", signal_blocks, "robustness: outliers in raw signals"),
    _of_results("Robustness: outliers behind the encoder, and random edges", "robust", damage_blocks, "robustness: outliers behind"),
    _of_results("Robustness: features damaged in front of the encoder", "robust", robust_blocks, "robustness: features damaged"),
    _of_results("Robustness: attacked edges", "attacked", attacked_blocks, "robustness: attacked edges"),
    _of_results("Nonlinearity", "nonlinearity", nonlinearity_blocks, "nonlinearity"),
    _of_results("The identity outside W", "identity", identity_blocks, "the identity outside W"),
    _of_results("Heterophilous graphs", "heterophily", heterophily_blocks),
    _of_results("Searches: spaces, trials, choices", "", search_blocks),
    SectionSpec("Trained networks: responses and objectives", "networks", lambda found: network_blocks(found.networks)),
    SectionSpec("Table 1: models as denoising problems", "table1", lambda found: table1_blocks(found.certificates)),
    SectionSpec(
        "Certificates and errata", "table1", lambda found: certificate_blocks(found.certificates, found.trials)
    ),
    SectionSpec("Table 3: datasets", "datasets", lambda found: table3_blocks(found.sizes)),
    _of_results("Time, hardware and commands", "", machine_blocks),
)  # fmt: skip


def sections_of(command: str, found: Findings) -> list[Section]:
    """The sections that one command is about and that have results, and the searches that it made.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> [one.heading for one in sections_of("table2", Findings(Results([example_record(seed) for seed in range(3)])))]
        ["Table 2: accuracy, ours and the paper's"]
    """
    made = [Section(spec.heading, spec.make(found)) for spec in SECTIONS if spec.command == command]
    mine = [one for one in found.results.searches if one.experiment == command]
    if mine:
        made.append(Section("Searches", search_blocks(replace(found.results, searches=mine))))
    return [section for section in made if not _is_empty(section)]


def write_report(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    markdown: str | os.PathLike[str] | None = None,
    latex: str | os.PathLike[str] | None = None,
    trials: int = TRIALS,
    watch: Watch | None = None,
) -> Path:
    """Write the report of a folder of results.

    Args:
        folder: what ``unspool reproduce`` wrote; trained models in its subfolder ``models`` add responses and objectives.
        out: the HTML file.
        markdown: a file for the same words and tables as Markdown.
        latex: a file for the tables as LaTeX.
        trials: random settings for each statement of the paper.
        watch: called after each step; the whole takes a minute for the full set of experiments.

    Returns:
        The HTML file.

    Example:
        >>> import tempfile
        >>> from unspool.reproduce.results import example_record, write
        >>> folder = tempfile.mkdtemp()
        >>> file = write(folder, "table2", [example_record(seed) for seed in range(3)])
        >>> report_page(Findings(read(folder))).title
        'Graph neural networks as unrolled algorithms, reproduced'
    """
    made = report_page(Findings.of(folder, trials, watch))
    for place, section in enumerate(made.sections, 1):
        _draw(section)
        if watch is not None:
            watch(Step("drawing the sections", place, len(made.sections)))
    texts = [(out, made.html())]
    if markdown is not None:
        texts.append((markdown, made.markdown()))
    if latex is not None:
        texts.append((latex, PREAMBLE + "\n\n".join(latex_table(t) for t in tables(made)) + "\n"))
    for path, text in texts:
        write_whole(path, lambda file, text=text: file.write(text.encode()))
    return Path(out)


def report_page(found: Findings) -> Page:
    """The page as a value: a summary, then folded sections, and at the end what was not run."""
    every = [
        Section(spec.heading, blocks, spec.gist(found), Shown.FOLDED)
        for spec in SECTIONS
        if (blocks := spec.make(found))
    ]
    there, missing = [one for one in every if not _is_empty(one)], [one for one in every if _is_empty(one)]
    first = [replace(one, shown=Shown.OPEN) if one.heading == SECTIONS[0].heading else one for one in there]
    if missing:
        words = [
            f"{one.heading}: {block.words}" for one in missing for block in one.blocks if isinstance(block, NotRun)
        ]
        first.append(Section("Not run in this folder", [Notes(words)], counted(len(missing), "section"), Shown.FOLDED))
    lead: list[Block] = [Paragraph([_lead(found.results)]), *cut_short(found.results)]
    return Page(TITLE, lead, first, f"Written by unspool {unspool.__version__}.")


def _is_empty(section: Section) -> bool:
    return all(isinstance(block, NotRun) for block in section.blocks)


def _draw(section: Section) -> None:
    """Draw what the section shows; each panel keeps its drawing."""
    for block in unfolded(section.blocks):
        for panel in block.panels if isinstance(block, Figure) and can_draw() else ():
            _ = panel.svg


def cut_short(results: Results) -> list[Block]:
    """A warning where the runs that are compared with the paper were shorter than the paper's.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> cut = example_record(epochs=50, settings={"epochs": 50})
        >>> cut_short(Results([example_record()])), cut_short(Results([cut]))[0].markdown()[:32]
        ([], 'Runs of table2 were cut at 50 of')
    """
    found: dict[str, tuple[int, int]] = {}
    for one in results.records:
        if is_cut(one):
            here = (int(one.settings["epochs"]), preset_epochs(one))
            found[one.experiment] = max(here, found.get(one.experiment, (0, 0)))
    words = "Runs of {} were cut at {} of {} epochs: these are not the numbers of the experiment."
    return [Paragraph([words.format(name, *epochs)], "warning") for name, epochs in found.items()]


def tables(made: Page) -> Iterator[Table]:
    """All tables of a page, those behind a fold included.

    Example:
        >>> from unspool.report import Folded
        >>> inner = Table("inner", ["a"], [["1"]])
        >>> [t.caption for t in tables(Page("t", [], [Section("s", [Folded("more", [inner])])]))]
        ['inner']
    """
    return (block for block in made.blocks() if isinstance(block, Table))


def _lead(results: Results) -> str:
    records = results.records
    sets, models = len({one.dataset for one in records}), len({one.model for one in records})
    return (
        "The tables and figures of Zhang and Zhao, Towards Understanding Graph Neural Networks: An Algorithm Unrolling "
        f"Perspective (2022), run again: {len(records):,} results of {counted(models, 'model')} on "
        f"{counted(sets, 'dataset')}. A heading opens its section."
    )
