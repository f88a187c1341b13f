"""Robustness where the claim is made, nonlinearity and the identity outside W, on the page: sizes, damaged and clean nodes apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from unspool.report import Block, Column, Figure, Folded, Heading, Paragraph, Table, Tone
from unspool.report import Cell as Shown
from unspool.report.figure import MISSING, Panel, can_draw
from unspool.reproduce.claims import Answer, Verdict, counted
from unspool.reproduce.damage import EDGES, damage_answers
from unspool.reproduce.grids import DAMAGES, Grid, grids, norm
from unspool.reproduce.identity import identity_answers
from unspool.reproduce.measured import Measured, chosen
from unspool.reproduce.nonlinearity import nonlinearity_answers
from unspool.reproduce.page_cells import called, distinct, signed
from unspool.reproduce.page_claims import answers_blocks, comparisons
from unspool.reproduce.page_lines import Key, Line, lines_panel
from unspool.reproduce.settings import read_settings
from unspool.reproduce.signals import signal_answers
from unspool.study import Sample

#: Which nodes a panel is about.
_NODES = {"": "all nodes", " on damaged": "damaged nodes", " on clean": "clean nodes"}


def outlying_signals(found: Sequence[Measured]) -> list[Block]:
    """The two problems themselves, on raw signals with long rows.

    Example:
        >>> outlying_signals([])[0].markdown()
        'Not run yet: unspool reproduce robust --parts signals'
    """
    mine = [one for one in found if one.experiment == "signals"]
    if not mine:
        return [Paragraph(["Not run yet: unspool reproduce robust --parts signals"])]
    how = read_settings("signals")
    words = (
        f"Smooth signals of {how['channels']} channels on {how['nodes']} sensors with a little noise; {how['share']} % of the rows are replaced by "
        "vectors of random direction that are 1, 3, 10 and 30 times as long as the clean rows. Both problems are minimised exactly, each with the "
        f"weight β that was best on {how['choosing']} other draws of the same length; {how['draws']} draws are reported."
    )
    curves = {part: _lines(mine, f"error{part}", "outliers", 1.0, norm) for part in _NODES}
    shape = _shape(curves.values(), by_length=True)
    panels = [
        lines_panel(
            f"signals-{number}", _NODES[part].capitalize(), "length of the outliers", lines, shape=shape, upright="relative error",
        )
        for number, (part, lines) in enumerate(curves.items()) if can_draw()
    ]  # fmt: skip
    caption = "Relative error of the denoised signal, mean over draws; bands are one standard deviation."
    return [
        Paragraph([words]),
        *_drawn(panels, caption, sorted({norm(one.model) for one in mine})),
        *_tested(signal_answers(mine), "raw signals", "mean relative error"),
        *_tables(grids(mine, "signals")),
    ]


def damaged_networks(found: Sequence[Measured]) -> list[Block]:
    """Outliers behind the encoder, and random edges: every robust model beside its twin, damaged and clean nodes apart.

    Example:
        >>> damaged_networks([])[0].markdown()
        'Not run yet: unspool reproduce robust --parts damage'
    """
    mine = [one for one in found if one.experiment == "damage"]
    if not mine:
        return [Paragraph(["Not run yet: unspool reproduce robust --parts damage"])]
    how = read_settings("damage")
    words = (
        f"Rows of X = p_pre(features), which the fidelity of the problem holds on to, are replaced at {how['share']} % of the nodes by vectors of random "
        "direction, 1 to 30 times as long as the other rows; or edges are added between random nodes. Every seed has a network and a damage of its own. "
        "A promise about the minimiser need not hold after five steps towards it, so the same trained weights are also run with "
        f"{how['many_steps']} steps, where all layers share one problem (AirGNN, APPNP)."
    )
    pairs = read_settings("damage")["pairs"]
    shown = [name for pair in pairs for name in pair]
    blocks: list[Block] = [Paragraph([words])]
    for number, (kind, (title, across)) in enumerate(DAMAGES.items()):
        panels: list[Panel] = []
        names = [name for name in shown if any((one.model, one.kind) == (name, kind) for one in mine)]
        for data in dict.fromkeys(one.dataset for one in mine):
            here = [one for one in mine if (one.dataset, one.kind) == (data, kind) and one.model in shown]
            curves = {part: _lines(here, f"accuracy{part}", kind, 100.0, str) for part in (" on damaged", " on clean")}
            shape = _shape(curves.values(), by_length=kind != EDGES)
            for part, lines in curves.items() if here and can_draw() else ():
                label = f"{called(data)}: {_NODES[part]}"
                panels.append(lines_panel(f"damage{number}-{len(panels)}", label, across, lines, shape=shape))
        if panels:
            caption = f"Mean test accuracy over seeds, {title}; bands are one standard deviation."
            blocks += [Heading(f"{title[:1].upper()}{title[1:]}"), *_drawn(panels, caption, names)]
    answers = damage_answers(mine)
    name, what = "damage behind the encoder, and edges", "what is lost against the clean network on the same nodes"
    tested: list[Block] = [
        counts(answers),
        Folded(f"The paired tests behind this: {name}", [comparisons(answers, name, what)]),
    ]
    blocks += tested if answers else []
    return [*blocks, *_tables(grids(mine, "damage"))]


def counts(answers: Sequence[Answer]) -> Table:
    """How often each sentence holds, as a table where there are many, with the largest difference that stands."""
    heads = [Column("sentence", numbers=False), "holds", "fails", "cannot be told", "largest difference (points)"]
    rows: list[list[str | Shown]] = []
    for count in counted(answers):
        mine = [100 * one.comparison.difference for one in answers if one.sentence == count.sentence]
        sure = [
            v
            for v, one in zip(mine, (a for a in answers if a.sentence == count.sentence), strict=True)
            if one.verdict is not Verdict.OPEN
        ]
        most = max(sure, key=abs, default=None)
        every = count.holds + count.fails + count.open
        tone = Tone.BETTER if count.holds == every else Tone.WORSE if count.fails else Tone.NEAR
        numbers = [Shown(str(n), float(n)) for n in (count.fails, count.open)]
        last = Shown("–" if most is None else signed(most), most)
        rows.append([count.sentence, Shown(f"{count.holds} of {every}", float(count.holds), tone), *numbers, last])
    caption = "Who loses less: paired by seed, p < 0.05 after Holm's correction; differences are first less second, so negative ones favour the first"
    return Table(caption, heads, rows)


def sentences(found: Sequence[Measured]) -> list[Block]:
    """Nonlinearity at depth, and the identity outside W.

    Example:
        >>> [block.markdown()[:12] for block in sentences([])]
        ['Not run yet:', 'Not run yet:']
    """
    blocks: list[Block] = []
    texts = {
        "nonlinearity": (
            "“The nonlinearities are the main factor for performance degradations in deep GNNs”: one network with and without H ≥ 0, which begins as the same "
            "function either way (every W the identity, X ≥ 0), with GCN's problem and with GCNII's. Beside accuracies stands the Dirichlet energy of "
            "what comes out of the layers over its size; that of the graph's smoothest signal is 0.",
            nonlinearity_answers,
        ),
        "identity": (
            "“We have left the identity matrix outside of the weight matrix to promote the optimal weight matrices with small norms”, which “guarantees "
            "better generalization ability”: UGDGNN and JKNet on class channels are the same functions, γ(ζI + ξW) and W, trained with the same "
            "settings. Norms are Frobenius norms, root mean square over hops, of W as it is trained and of the hops that it makes.",
            identity_answers,
        ),
    }  # fmt: skip
    for name, (words, answers) in texts.items():
        mine = [one for one in found if one.experiment == name]
        if not mine:
            blocks.append(Paragraph([f"Not run yet: unspool reproduce {name}"]))
            continue
        blocks += [
            Heading({"nonlinearity": "Nonlinearity and depth", "identity": "The identity outside W"}[name]),
            Paragraph([words]),
        ]
        blocks += _tables(grids(mine, name), open_=True)
        blocks += _tested(answers(mine), name, "mean")
    return blocks


# -- inside ------------------------------------------------------------------------------------------------------------


def _lines(found: Sequence[Measured], quantity: str, kind: str, times: float, name: Any) -> list[Line]:
    """One line per model over the amounts."""
    values = chosen(found, quantity, lambda one: one.kind == kind)
    made: list[Line] = []
    for model in dict.fromkeys(one.model for one in found):
        points = sorted(
            (cell[3], Sample(tuple(v.values()))) for cell, v in values.items() if cell[1] == model and cell[3] > 0
        )
        if points:
            spread = tuple(None if len(s.values) < 2 else times * s.std for _, s in points)
            made.append(
                Line(name(model), tuple(a for a, _ in points), tuple(times * s.mean for _, s in points), spread)
            )
    return made


def _drawn(panels: Sequence[Panel], caption: str, names: Sequence[str]) -> list[Block]:
    if not can_draw():
        return [Paragraph([MISSING], "warning")]
    return [Key(distinct(names, names)), Figure(panels, caption)] if panels else []


def _tested(answers: Sequence[Answer], name: str, what: str) -> list[Block]:
    return answers_blocks(answers, name, what)


def _tables(found: Sequence[Grid], open_: bool = False) -> list[Block]:
    """Grids as tables, behind one fold unless they are what the section is about."""
    made: list[Block] = []
    for grid in found:
        heads = [*(Column(word, numbers=False) for word in grid.words), *grid.heads]
        rows: list[list[str | Shown]] = [
            [*words, *(Shown(text, value) for text, value in zip(texts[len(words) :], numbers, strict=True))]
            for (words, numbers), texts in zip(grid.rows, grid.texts, strict=True)
        ]
        made.append(Table(grid.title, heads, rows))
    return made if open_ or not made else [Folded("The numbers, damaged and clean nodes apart", made)]


def _shape(curves: Iterable[Sequence[Line]], by_length: bool) -> Callable[[Any], None]:
    """One scale for panels side by side; lengths grow by threes, and are written as they are."""
    ends = [
        m + sign * (0 if s is None else s)
        for lines in curves
        for line in lines
        for m, s in zip(line.mean, line.spread, strict=True)
        for sign in (-1, 1)
    ]
    ticks = [1, 3, 10, 30]

    def shape(axis: Any) -> None:
        room = 0.04 * (max(ends) - min(ends)) if ends else 0.0
        if room:
            axis.set_ylim(min(ends) - room, max(ends) + room)
        if by_length:
            axis.set_xscale("log")
            axis.set_xticks(ticks, [str(k) for k in ticks])
            axis.set_xlim(0.9, 33)
            axis.minorticks_off()

    return shape
