"""Damage where the denoiser sees it: outliers among the rows of X = p_pre(features), and edges added at random.

The problem that a layer takes a step on has X in its fidelity, and X is what the encoder gives, not what the file holds: a perceptron
that reads a damaged row may shorten it. So rows are replaced behind the encoder, in networks that were trained on clean data
(``channels``), in the same networks with many steps at test time, near the minimiser (``channels, many steps``), and in networks that
are trained with them (``channels in training``). Nodes that were hit and the others are scored
apart, each against what the clean network has on the same nodes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from unspool import study
from unspool.datasets import Dataset
from unspool.report.text import counted
from unspool.reproduce.alone import Trained, accuracy, settings_of, train_each, where_to_train
from unspool.reproduce.bench import Bench
from unspool.reproduce.claims import Answer, compare_values, corrected
from unspool.reproduce.corrupt import Kind, corrupt
from unspool.reproduce.measured import Measured, chosen, keep, read_measured
from unspool.reproduce.recorded import settled
from unspool.reproduce.settings import read_settings
from unspool.study import Trial
from unspool.unrolling import Unrolled, unroll

#: What is done: rows of X replaced after training, with as many steps as in training or many; or in training too; edges added.
CHANNELS, LONG, TRAINED, EDGES = "channels", "channels, many steps", "channels in training", "edges"
#: Which nodes a number is about: all test nodes, those that were hit, the others.
PARTS = ("", " on damaged", " on clean")


def run_damage(bench: Bench) -> list[Measured]:
    """Train, damage, test, and keep accuracies in ``damage.csv``, model by model; what is there is not trained again."""
    how = bench.scope.asked("damage")
    found: list[Measured] = []
    for name in how["datasets"]:
        data = bench.data(name)
        if data is None:
            continue
        trials = settled(bench, "robust", data, bench.scope.kinds("damage"), how["seeds"]).chosen
        for trial in trials.values():
            found += _model(bench, data, trial, how)
    return found


def _model(bench: Bench, data: Dataset, trial: Trial, how: dict[str, Any]) -> list[Measured]:
    """Everything about one model on one data set."""
    told = settings_of(bench.shortened(trial), data)
    wanted = _cells(trial, how)
    there = [one for one in read_measured(bench.place.results, "damage") if one.settings == told]
    seeds = set(range(how["seeds"]))
    whole = {cell for cell in wanted if {o.seed for o in there if (o.kind, o.amount) == cell} >= seeds}
    mine = [one for one in there if one.dataset == data.name and one.model == trial.name and one.seed in seeds]
    if whole == set(wanted) or bench.place.stored:
        return [one for one in mine if (one.kind, one.amount) in whole]
    base = data.row_normalised() if trial.normalise_rows else data
    trials = [bench.shortened(replace(trial, seed=seed)) for seed in range(how["seeds"])]
    more = len([amount for kind, amount in wanted if kind == TRAINED])
    bench.say(
        f"robust on {data.name}: {trial.name}, {counted(len(trials) * (1 + more), 'network')}, damaged behind the encoder"
    )
    nets = train_each(bench, base, trials)
    if len(nets) < len(trials):  # all seeds or none: the bench has said which failed
        return []
    made = [
        *_channels(nets, how, CHANNELS),
        *_edges(bench, nets, base, how),
        *_in_training(bench, nets, base, wanted, how),
    ]
    if any(kind == LONG for kind, _ in wanted):
        made += _channels([_longer(net, how["many_steps"]) for net in nets], how, LONG)
    new = [replace(one, dataset=data.name, settings=told) for one in made]
    keep(bench.place.results, "damage", new)
    return new


def _cells(trial: Trial, how: dict[str, Any]) -> list[tuple[str, float]]:
    lengths = how["lengths_in_training"] if trial.name in how["in_training"] else []
    shared = how["lengths"] if _shares_one_problem(trial.build(4, 2)) else []
    pairs = [(CHANNELS, how["lengths"]), (EDGES, how["edges"]), (TRAINED, lengths), (LONG, shared)]
    return [(kind, float(amount)) for kind, amounts in pairs for amount in amounts]


# -- what is done ------------------------------------------------------------------------------------------------------


def hit_nodes(nodes: int, share: float, seed: int) -> Tensor:
    """The nodes whose rows are replaced, a share in per cent, in order.

    Example:
        >>> hit_nodes(40, 10, seed=3).numel(), bool((hit_nodes(40, 10, 3) == hit_nodes(40, 10, 3)).all())
        (4, True)
    """
    random = torch.Generator().manual_seed(seed)
    return torch.randperm(nodes, generator=random)[: round(share / 100 * nodes)].sort().values


def outlying(x: Tensor, hit: Tensor, length: float, seed: int) -> Tensor:
    """Rows replaced by vectors of random direction, so many times as long as the other rows are on average.

    Example:
        >>> x = torch.ones(10, 4)
        >>> outlying(x, torch.tensor([2]), 3.0, seed=0).norm(dim=1)[1:4].tolist()
        [2.0, 6.0, 2.0]
    """
    random = torch.Generator().manual_seed(10_000 + seed)  # other numbers than those that choose the nodes
    ways = torch.randn(hit.numel(), x.shape[-1], generator=random).to(x)
    mask = torch.zeros(x.shape[-2], dtype=torch.bool, device=x.device)
    mask[hit] = True
    size = x[~mask].detach().norm(dim=-1).mean()
    rows = torch.zeros_like(x).index_copy(0, hit, length * size * nn.functional.normalize(ways, dim=-1))
    return torch.where(mask[:, None], rows, x)


@contextmanager
def behind_the_encoder(model: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Change X = p_pre(features) of a model, in training and testing alike, as long as the block lasts."""
    handle = model.p_pre.register_forward_hook(lambda module, given, x: change(x))
    try:
        yield
    finally:
        handle.remove()


def _shares_one_problem(model: Any) -> bool:
    """Whether all layers are steps on one problem with a fidelity, so that more of them lead somewhere."""
    net = model.propagation
    if not isinstance(net, Unrolled) or net.between is not None or any(leaf.per_layer for leaf in net.leaves):
        return False
    return any(term.uses_input for term in net.objective.terms)


def _longer(net: Trained, steps: int) -> Trained:
    """The same weights with more steps; of a network that is exact already, the same."""
    model = copy.deepcopy(net.model)
    old = model.propagation
    model.propagation = unroll(old.objective, old.algorithm, steps).to(net.task.target.device).eval()
    model.propagation.load_state_dict(old.state_dict())
    return replace(net, model=model)


def _channels(nets: Sequence[Trained], how: dict[str, Any], kind: str) -> list[Measured]:
    made: list[Measured] = []
    for net in nets:
        hit, before = _hit(net, how), _output(net)
        for length in how["lengths"]:
            with behind_the_encoder(net.model, _change(net, hit, length)):
                made += _scored(net, kind, length, _output(net), before, hit)
    return made


def _in_training(
    bench: Bench, nets: Sequence[Trained], base: Dataset, wanted: Sequence[tuple[str, float]], how: dict[str, Any]
) -> list[Measured]:
    """The same networks, trained with outliers among the rows of X."""
    made: list[Measured] = []
    for length in [amount for kind, amount in wanted if kind == TRAINED]:

        def prepare(trial: Trial, model: Any, length: float = length) -> None:
            net = next(one for one in nets if one.trial.seed == trial.seed)
            model.p_pre.register_forward_hook(_hook(_change(net, _hit(net, how), length)))

        worse = train_each(bench, base, [net.trial for net in nets], prepare)
        if len(worse) == len(nets):
            for net, clean in zip(worse, nets, strict=True):
                made += _scored(net, TRAINED, length, _output(net), _output(clean), _hit(net, how))
    return made


def _hook(change: Callable[[Tensor], Tensor]) -> Callable[[Any, Any, Tensor], Tensor]:
    return lambda module, given, x: change(x)


def _change(net: Trained, hit: Tensor, length: float) -> Callable[[Tensor], Tensor]:
    seed = net.trial.seed
    return lambda x: outlying(x, hit.to(x.device), length, seed)


def _edges(bench: Bench, nets: Sequence[Trained], base: Dataset, how: dict[str, Any]) -> list[Measured]:
    made: list[Measured] = []
    for net in nets:
        before = _output(net)
        for share in how["edges"]:
            worse = corrupt(base, Kind.EDGES, share / 100, net.trial.seed)
            task = study.Provider(worse, where_to_train(bench)).task(replace(net.trial, normalise_rows=False))
            hit = _ends(base.edge_index, worse.edge_index, base.nodes).to(task.target.device)
            with torch.no_grad():
                made += _scored(net, EDGES, share, net.model(task.x, task.graph), before, hit)
    return made


def _ends(old: Tensor, new: Tensor, nodes: int) -> Tensor:
    """The nodes at the ends of edges that were added.

    Example:
        >>> _ends(torch.tensor([[0, 1], [1, 0]]), torch.tensor([[0, 1, 1, 3], [1, 0, 3, 1]]), 5)
        tensor([1, 3])
    """
    known = torch.isin(new[0] * nodes + new[1], torch.cat([old[0] * nodes + old[1], old[1] * nodes + old[0]]))
    return new[:, ~known].unique()


# -- what is measured --------------------------------------------------------------------------------------------------


def _hit(net: Trained, how: dict[str, Any]) -> Tensor:
    return hit_nodes(net.task.target.shape[0], how["share"], net.trial.seed).to(net.task.target.device)


@torch.no_grad()
def _output(net: Trained) -> Tensor:
    return net.model(net.task.x, net.task.graph)


def _scored(net: Trained, kind: str, amount: float, output: Tensor, before: Tensor, hit: Tensor) -> list[Measured]:
    """Accuracies of test nodes, and what is lost against the clean network on the same nodes."""
    test = net.task.test
    damaged = torch.isin(test, hit)
    made: list[Measured] = []
    for words, nodes in zip(PARTS, (test, test[damaged], test[~damaged]), strict=True):
        if nodes.numel():
            now, once = (accuracy(one, net.task, nodes) for one in (output, before))
            for quantity, value in ((f"accuracy{words}", now), (f"lost{words}", once - now)):
                name, seed = net.trial.name, net.trial.seed
                made.append(Measured("damage", "", name, kind, float(amount), seed, quantity, value))
    return made


# -- what it says ------------------------------------------------------------------------------------------------------


def damage_answers(found: Sequence[Measured]) -> list[Answer]:
    """Whether the robust model of each pair loses less than its twin; p-values are corrected over amounts and sets (Holm).

    Example:
        >>> from unspool.reproduce.measured import example_measured
        >>> rows = [
        ...     example_measured(s, experiment="damage", dataset="cora", model=m, kind="edges", amount=50.0, quantity="lost",
        ...                      value=v + 0.001 * (s * len(m) % 5))
        ...     for s in range(6) for m, v in (("AirGNN", 0.02), ("APPNP", 0.2))
        ... ]
        >>> [(answer.sentence, answer.dataset, answer.verdict.value) for answer in damage_answers(rows)]
        [('AirGNN loses less than APPNP to random edges', 'cora (edges 50 %)', 'holds')]
    """
    answers: list[Answer] = []
    for robust, twin in read_settings("damage")["pairs"]:
        for kind, words in WORDS.items():
            for part in PARTS:
                lost = chosen(
                    found, f"lost{part}", lambda one, kind=kind: one.experiment == "damage" and one.kind == kind
                )
                cells = sorted(cell for cell in lost if cell[1] == robust)
                sentence = f"{robust} loses less than {twin} to {words}" + (f",{part} nodes" if part else "")
                each = [
                    one
                    for cell in cells
                    for one in compare_values(
                        sentence, f"{cell[0]} ({amount_words(kind, cell[3])})", (robust, lost[cell]),
                        (twin, lost.get((cell[0], twin, kind, cell[3]), {})), lower=True,
                    )
                ]  # fmt: skip
                answers += corrected(each)
    return answers


#: The kinds of damage in words.
WORDS = {
    CHANNELS: "outliers behind the encoder after training",
    LONG: "outliers behind the encoder after training, with many steps",
    TRAINED: "outliers behind the encoder in training",
    EDGES: "random edges",
}


def amount_words(kind: str, amount: float) -> str:
    """An amount in words.

    Example:
        >>> amount_words("edges", 30.0), amount_words("channels", 3.0)
        ('edges 30 %', 'length 3')
    """
    return f"edges {amount:g} %" if kind == EDGES else f"length {amount:g}"
