"""Single numbers as tables and pictures: outliers in signals and behind encoders, nonlinearity, the identity outside W."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import Any

from unspool.report import Block, Cell, Figure, Heading, Panel, Paragraph, Rows, Table, text_columns
from unspool.reproduce.conditions import Condition, Factor, Nodes, Phase
from unspool.reproduce.damage import damage_tests
from unspool.reproduce.experiment_files import read_experiment
from unspool.reproduce.identity import identity_tests
from unspool.reproduce.nonlinearity import nonlinearity_tests
from unspool.reproduce.records import Group, Measurement, Quantity, Results, by_group
from unspool.reproduce.sections.claim_blocks import claim_blocks
from unspool.reproduce.sections.lines import Line, key_of, lines_panel, model_title, one_scale
from unspool.reproduce.sections.names import dataset_title
from unspool.reproduce.sections.not_run import not_run
from unspool.reproduce.signals import signal_tests
from unspool.study import Sample

#: What a kind of damage is called, and its axis.
_DAMAGES = {
    (Factor.ENCODED_ROWS, Phase.AFTER_TRAINING): (
        "outliers behind the encoder, after training",
        "length of the outliers",
    ),
    (Factor.ENCODED_ROWS, Phase.MANY_STEPS): (
        "outliers behind the encoder, after training, with {many_steps} steps",
        "length of the outliers",
    ),
    (Factor.ENCODED_ROWS, Phase.ALWAYS): ("outliers behind the encoder, in training too", "length of the outliers"),
    (Factor.EDGES, Phase.AFTER_TRAINING): ("random edges added, after training", "edges added (%)"),
}


def signal_blocks(results: Results) -> list[Block]:
    """The two problems themselves, on raw signals with long rows.

    Example:
        >>> signal_blocks(Results([]))[0].markdown()
        'Not run yet: unspool reproduce robust --parts signals'
    """
    found = results.measured("signals")
    if not found:
        return not_run("robust --parts signals")
    how = read_experiment("signals")
    words = (
        f"Smooth signals of {how['channels']} channels on {how['nodes']} sensors with a little noise; {how['share']} % of the rows are replaced by "
        "vectors of random direction that are 1, 3, 10 and 30 times as long as the clean rows. Both problems are minimised exactly, each with the "
        f"weight β that was best on {how['choosing']} other draws of the same length; {how['draws']} draws are reported."
    )
    curves = {nodes: _lines(found, Quantity.ERROR, nodes, 1.0) for nodes in Nodes}
    shape = _shape(curves.values(), by_length=True)
    panels = [
        lines_panel(
            f"signals-{number}", f"{nodes.value.capitalize()} nodes", "length of the outliers", lines, shape=shape,
            upright="relative error",
        )
        for number, (nodes, lines) in enumerate(curves.items())
    ]  # fmt: skip
    caption = "Relative error of the denoised signal, mean over draws; bands are one standard deviation."
    return [
        Paragraph([words]),
        Figure(panels, caption, key_of(curves[Nodes.ALL]), [signal_table(found)]),
        *claim_blocks(signal_tests(found), "raw signals", "mean relative error"),
    ]


def damage_blocks(results: Results) -> list[Block]:
    """Outliers behind the encoder, and random edges: every robust model and its counterpart, damaged and clean nodes apart.

    Example:
        >>> damage_blocks(Results([]))[0].markdown()
        'Not run yet: unspool reproduce robust --parts damage'
    """
    found = results.measured("damage")
    if not found:
        return not_run("robust --parts damage")
    how = read_experiment("damage")
    words = (
        f"Rows of X, the encoded features, which the fidelity of the problem holds on to, are replaced at {how['share']} % of the nodes by vectors of random "
        "direction, 1 to 30 times as long as the other rows; or edges are added between random nodes. Every seed has a network and a damage of its own. "
        "A promise about the minimiser need not hold after five steps towards it, so the same trained weights are also run with "
        f"{how['many_steps']} steps, where all layers share one problem (AirGNN, APPNP)."
    )
    blocks: list[Block] = [Paragraph([words])]
    for number, (factor, phase) in enumerate(_DAMAGES):
        mine = _of_kind(found, factor, phase)
        if mine:
            blocks += _damage_figure(mine, factor, phase, number)
    what = "what is lost against the clean network on the same nodes"
    return [*blocks, *claim_blocks(damage_tests(found), "damage behind the encoder, and edges", what)]


def nonlinearity_blocks(results: Results) -> list[Block]:
    """Nonlinearity at depth.

    Example:
        >>> nonlinearity_blocks(Results([]))[0].markdown()
        'Not run yet: unspool reproduce nonlinearity'
    """
    found = results.measured("nonlinearity")
    if not found:
        return not_run("nonlinearity")
    words = (
        "“The nonlinearities are the main factor for performance degradations in deep GNNs”: one network with and without H ≥ 0, which begins as the same "
        "function either way (every W the identity, X ≥ 0), with GCN's problem and with GCNII's. After the accuracies comes the Dirichlet energy of "
        "what comes out of the layers over its size; that of the graph's smoothest signal is 0."
    )
    tested = claim_blocks(nonlinearity_tests(found), "nonlinearity", "mean")
    return [Paragraph([words]), *nonlinearity_tables(found), *tested]


def identity_blocks(results: Results) -> list[Block]:
    """The identity outside W.

    Example:
        >>> identity_blocks(Results([]))[0].markdown()
        'Not run yet: unspool reproduce identity'
    """
    found = results.measured("identity")
    if not found:
        return not_run("identity")
    words = (
        "“We have left the identity matrix outside of the weight matrix to promote the optimal weight matrices with small norms”, which “guarantees "
        "better generalization ability”: UGDGNN and JKNet on class channels are the same functions, γ(ζI + ξW) and W, trained with the same "
        "settings. Norms are Frobenius norms, root mean square over hops, of W as it is trained and of the hops that it makes."
    )
    tested = claim_blocks(identity_tests(found), "identity", "mean")
    return [Paragraph([words]), identity_table(found), *tested]


# -- tables ------------------------------------------------------------------------------------------------------------


def signal_table(found: Sequence[Measurement]) -> Table:
    """Relative errors by length of the outliers.

    Example:
        >>> from unspool.reproduce.records import example_measurement
        >>> signal_table([example_measurement(seed) for seed in range(3)]).texts[0]
        ('‖H − X‖₂,₁', 'all', '0.120')
    """
    conditions = sorted({one.condition for one in found}, key=lambda one: one.amount)
    rows: Rows = []
    for model in dict.fromkeys(one.model for one in found):
        for nodes in Nodes:
            means = _means(found, Quantity.ERROR, nodes)
            numbers = [means.get(Group(found[0].dataset, model, condition)) for condition in conditions]
            rows.append([model_title(model), nodes.value, *(Cell.number(value, 3) for value in numbers)])
    heads = [f"length {one.amount:g}" if one.amount else "none" for one in conditions]
    title = f"{found[0].dataset}: relative error, mean over {_seeds(found)} draws"
    return Table(title, [*text_columns("fidelity", "nodes"), *heads], rows)


def damage_tables(found: Sequence[Measurement], factor: Factor, phase: Phase) -> list[Table]:
    """For one kind of damage and each dataset what every model has left, before and after, damaged and clean nodes apart."""
    mine = _of_kind(found, factor, phase)
    datasets = dict.fromkeys(one.dataset for one in mine)
    return [_damage_table([one for one in mine if one.dataset == name], factor, phase) for name in datasets]


def _damage_table(here: Sequence[Measurement], factor: Factor, phase: Phase) -> Table:
    conditions = sorted({one.condition for one in here}, key=lambda one: one.amount)
    rows: Rows = []
    for model in dict.fromkeys(one.model for one in here):
        for nodes in Nodes:
            now, lost = _means(here, Quantity.ACCURACY, nodes), _means(here, Quantity.LOST, nodes)
            groups = [Group(here[0].dataset, model, condition) for condition in conditions]
            same = factor is not Factor.EDGES or nodes is Nodes.ALL  # with more edges other nodes are hit
            before = 100 * (now[groups[0]] + lost[groups[0]]) if groups[0] in now and same else None
            after = [100 * now[group] if group in now else None for group in groups]
            rows.append([model, nodes.value, *map(Cell.number, (before, *after))])
    heads = [f"{one.amount:g} %" if factor is Factor.EDGES else str(one) for one in conditions]
    title = f"{dataset_title(here[0].dataset)}: test accuracy (%), {_damage_words(factor, phase)}"
    caption = f"{title}; {_seeds(here)} seeds, each with a damage of its own"
    return Table(caption, [*text_columns("model", "nodes"), "before", *heads], rows)


def nonlinearity_tables(found: Sequence[Measurement]) -> list[Block]:
    """With and without H ≥ 0 over depth, for each dataset and problem."""
    made: list[Block] = []
    for name, factor in dict.fromkeys((one.dataset, one.condition.factor) for one in found):
        here = [one for one in found if (one.dataset, one.condition.factor) == (name, factor)]
        depths = sorted({one.condition.amount for one in here})
        rows: Rows = []
        for quantity, scale in ((Quantity.ACCURACY, 100.0), (Quantity.TRAIN_ACCURACY, 100.0), (Quantity.ENERGY, 1.0)):
            means = _means(here, quantity)
            for model in dict.fromkeys(one.model for one in here):
                values = [means.get(Group(name, model, Condition(factor, depth))) for depth in depths]
                rows.append([model, quantity.value, *(_scaled(value, scale, 3) for value in values)])
        title = f"{dataset_title(name)}, {factor.value}: with and without H ≥ 0 over depth; {_seeds(here)} seeds"
        made.append(Table(title, [*text_columns("network", "what"), *(f"K = {depth:g}" for depth in depths)], rows))
    return made


def identity_table(found: Sequence[Measurement]) -> Table:
    """Norms, accuracies and gaps of both parametrisations."""
    scales = {
        Quantity.WEIGHT_NORM: 1.0,
        Quantity.HOP_NORM: 1.0,
        Quantity.TRAIN_ACCURACY: 100.0,
        Quantity.ACCURACY: 100.0,
        Quantity.GAP: 100.0,
    }
    means = {quantity: _means(found, quantity) for quantity in scales}
    rows: Rows = []
    for group in dict.fromkeys(one.group for one in found):
        values = [_scaled(means[quantity].get(group), scale, 2) for quantity, scale in scales.items()]
        rows.append([dataset_title(group.dataset), group.model, *values])
    title = "The identity outside W (UGDGNN) and inside (JKNet on class channels), same settings"
    heads = [quantity.value for quantity in scales]
    return Table(f"{title}; {_seeds(found)} seeds", [*text_columns("dataset", "model"), *heads], rows)


# -- inside ------------------------------------------------------------------------------------------------------------


def _of_kind(found: Iterable[Measurement], factor: Factor, phase: Phase) -> list[Measurement]:
    return [one for one in found if (one.condition.factor, one.condition.phase) == (factor, phase)]


def _damage_words(factor: Factor, phase: Phase) -> str:
    return _DAMAGES[factor, phase][0].format(**read_experiment("damage"))


def _damage_figure(mine: Sequence[Measurement], factor: Factor, phase: Phase, number: int) -> list[Block]:
    """Damaged and clean nodes of each dataset, side by side on one scale; models without a counterpart are in the numbers alone."""
    words, across = _damage_words(factor, phase), _DAMAGES[factor, phase][1]
    paired = {name for pair in read_experiment("damage")["pairs"] for name in pair}
    panels: list[Panel] = []
    drawn: list[Line] = []
    for data in dict.fromkeys(one.dataset for one in mine):
        here = [one for one in mine if one.dataset == data and one.model in paired]
        curves = {nodes: _lines(here, Quantity.ACCURACY, nodes, 100.0) for nodes in (Nodes.DAMAGED, Nodes.CLEAN)}
        shape = _shape(curves.values(), by_length=factor is not Factor.EDGES)
        for nodes, lines in curves.items():
            label = f"{dataset_title(data)}: {nodes.value} nodes"
            panels.append(lines_panel(f"damage{number}-{len(panels)}", label, across, lines, shape=shape))
            drawn += lines
    caption = f"Mean test accuracy over seeds, {words}; bands are one standard deviation."
    numbers = damage_tables(mine, factor, phase)
    return [Heading(f"{words[:1].upper()}{words[1:]}"), Figure(panels, caption, key_of(drawn), numbers)]


def _means(found: Iterable[Measurement], quantity: Quantity, nodes: Nodes = Nodes.ALL) -> dict[Group, float]:
    return {group: fmean(values.values()) for group, values in by_group(found, quantity, nodes).items()}


def _seeds(found: Iterable[Measurement]) -> int:
    return len({one.seed for one in found})


def _scaled(value: float | None, scale: float, digits: int) -> Cell:
    return Cell.number(None if value is None else scale * value, digits)


def _lines(found: Sequence[Measurement], quantity: Quantity, nodes: Nodes, scale: float) -> list[Line]:
    """One line per model over the amounts."""
    values = by_group(found, quantity, nodes)
    made: list[Line] = []
    for model in dict.fromkeys(one.model for one in found):
        own = {g.condition.amount: Sample(tuple(v.values())) for g, v in values.items() if g.model == model}
        points = sorted((amount, sample) for amount, sample in own.items() if amount > 0)
        if points:
            spread = tuple(None if len(s.values) < 2 else scale * s.std for _, s in points)
            made.append(Line(model, tuple(a for a, _ in points), tuple(scale * s.mean for _, s in points), spread))
    return made


def _shape(curves: Iterable[Sequence[Line]], by_length: bool) -> Callable[[Any], None]:
    """One scale for panels side by side; lengths grow by threes, and are written as they are."""
    scale, ticks = one_scale(curves), [1, 3, 10, 30]

    def shape(axis: Any) -> None:
        scale(axis)
        if by_length:
            axis.set_xscale("log")
            axis.set_xticks(ticks, [str(k) for k in ticks])
            axis.set_xlim(0.9, 33)
            axis.minorticks_off()

    return shape
