"""The paper's statements: Table 1 with its certificates, all certificates, errata, and Table 3."""

from __future__ import annotations

from collections.abc import Sequence

from unspool.datasets.statistics import Row
from unspool.models import PAPER_MODELS
from unspool.report import Block, Cell, Column, Folded, Paragraph, Rows, Table, Tone, counted, text_columns
from unspool.report.table import Formula
from unspool.theory import Certificate, Verdict

#: What the propagation of each model computes, as in Table 1 of the paper.
LAYERS = {
    "SGC": "Aᴷ X W", "PPNP": "γ (I − (1−γ) A)⁻¹ X", "APPNP": "H ← (1−γ) A H + γ X, K times", "JKNet": "Σ Aᵏ X Wₖ",
    "GPRGNN": "Σ γₖ Aᵏ X", "GCN": "H ← ReLU(A H Wₖ), K times", "GCNII": "H ← ReLU((ζ A H + (1−ζ) X)(ξ Wₖ + (1−ξ) I)), K times",
    "AirGNN": "hᵢ ← xᵢ + ReLU(1 − (1−γ) / (2γ ‖[AH]ᵢ − xᵢ‖)) ([AH]ᵢ − xᵢ), K times", "UGDGNN": "Σ γₖ Aᵏ X (ζₖ I + ξₖ Wₖ)",
}  # fmt: skip

#: The errata in a sentence each; docs/errata.md has them in full, under the same numbers.
ERRATA = (
    "The expansions of GPRGNN and JKNet pair the wrong layer with the wrong hop.",
    '"Equivalent to an unrolled network" holds exactly where the hop coefficients sum to the identity; otherwise a linear map follows.',
    "APPNP's coefficients in the vertex and spectral lists are not those of APPNP.",
    "Eq. (5) is a gradient step only for symmetric T; a free weight matrix makes one layer a relaxation, if not always K of them.",
    "Of the two step sizes that AirGNN's proof names, only 1/(2β) gives the model.",
    "GCNII's regulariser carries no β, and its last two hop coefficients are always equal.",
    "T_β acts on channels and cannot weigh edges.",
    "The limit of SGC depends on where it starts; the problems behind SGC and GCN may have no minimiser.",
    "Table 2 itself contradicts two remarks about it: GPRGNN above APPNP everywhere, learnt filters above fixed ones.",
    "Index ranges that start at 1 must start at 0.",
    '"A smaller γ is smoother" fails for APPNP on signals with negative eigenvalues.',
    "Table 3 counts repeated links and loops as edges, and the largest component of Photo.",
    "JKNet with square matrices and UGDGNN are the same functions.",
    "SGC and GCN have the same quadratic r(H), and it does not stop over-smoothing.",
    "Unrolled GD networks are the polynomial filters that are 1 at frequency zero, not all of them.",
    '"Exact equivalence" needs one width; the GCNs of Table 2 change theirs in both layers.',
)


def table1_blocks(certificates: Sequence[Certificate]) -> list[Block]:
    """Each model with its layers, its problem as our objects print it, how the layers solve it, and what its certificate found."""
    rows: Rows = []
    for kind in PAPER_MODELS:
        name = kind.__name__
        if name in LAYERS:
            own = [c for c in certificates if c.model == name]
            made = kind(2, 2)
            rows.append([name, LAYERS[name], Formula(str(made.objective)), made.derivation, _first(own)])
    words = (
        "Problems are printed by the objects that train, with their default settings. H is the signal that is sought, X the encoded features, "
        "B the incidence matrix; the encoder comes before the propagation, the decoder after it. Propositions are the paper's, errata our corrections (below)."
    )
    columns = text_columns("model", "propagation", "denoising problem", "how the layers solve it", "certificate")
    return [Paragraph([words]), Table("Table 1: models and the problems behind them", columns, rows)]


def certificate_blocks(certificates: Sequence[Certificate], trials: int) -> list[Block]:
    """All certificates, and the errata with those that show them."""
    right = sum(c.as_stated for c in certificates)
    words = (
        f"A certificate is one statement of the paper, put to the test in float64 at {counted(trials, 'random setting')} (unspool verify). "
        f"{right} of {len(certificates)} end as documented."
    )
    names = text_columns("where", "statement", "verdict", "condition or counter-example")
    caption = (
        f"{counted(len(certificates), 'certificate')}; error: largest deviation where a claim should hold; gap: size of the counter-example, "
        "or of the claim without its condition"
    )
    columns = [*names, "error", "gap", Column("as documented", numbers=False)]
    table = Table(caption, columns, [_certificate(c) for c in certificates])
    return [Paragraph([words]), errata_table(certificates), Folded("All certificates", [table])]


def errata_table(certificates: Sequence[Certificate]) -> Table:
    """The errors of the paper, numbered as in docs/errata.md.

    Example:
        >>> len(errata_table([]).rows)
        16
    """
    columns = ["erratum", *text_columns("what is wrong", "what the certificates find")]
    rows: Rows = []
    for number, words in enumerate(ERRATA, 1):
        shown_by = [c for c in certificates if c.erratum == number]
        told = "; ".join(_found(c) for c in shown_by)
        rows.append([Cell.count(number), words, told])
    return Table("Errata of the paper: errors in it that we found, numbered as in docs/errata.md", columns, rows)


def table3_blocks(rows: Sequence[Row]) -> list[Block]:
    """Sizes of the datasets, counted, and what is printed where that differs."""
    columns = [*text_columns("dataset"), "nodes", "edges", "features", "classes", *text_columns("remark")]
    made: Rows = [[row.name, *(_count(row, k) for k in range(4)), row.remark] for row in rows]
    words = "Edges are distinct pairs of neighbours, without self-loops. Sets whose files are not on the machine that wrote this page stay blank."
    return [Paragraph([words]), Table("Table 3: sizes of the datasets, counted and printed", columns, made)]


def _first(own: Sequence[Certificate]) -> str | Cell:
    if not own:
        return Cell("not tested", tone=Tone.QUIET)
    words = "; ".join(_found(c) for c in own)
    return Cell(words, tone=None if all(c.as_stated for c in own) else Tone.WORSE)


def _found(c: Certificate) -> str:
    more = {Verdict.HOLDS: "", Verdict.HOLDS_WHEN: f" {c.condition}", Verdict.FAILS: f": {c.example}"}
    return c.verdict.value + more[c.verdict]


def _certificate(c: Certificate) -> list[str | Cell]:
    detail = c.example if c.verdict is Verdict.FAILS else c.condition
    fine = Cell("yes") if c.as_stated else Cell("no", tone=Tone.WORSE)
    return [c.name, c.statement, c.verdict.value, detail, _power(c.error), _power(c.gap), fine]


def _power(value: float | None) -> Cell:
    return Cell("–" if value is None else f"{value:.1e}".replace("-", "−"), value)


def _count(row: Row, place: int) -> Cell:
    printed, found = row.printed[place], None if row.counted is None else row.counted[place]
    if found == printed:
        return Cell(f"{found:,}\nas printed", float(printed))
    told = "–" if found is None else f"{found:,}"
    return Cell(f"{told}\nprinted {printed:,}", found, None if found is None else Tone.WORSE)
