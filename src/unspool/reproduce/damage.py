"""Damage where the denoiser sees it: outliers among the rows of X = p_pre(features), and edges added at random.

The problem that a layer takes a step on has X in its fidelity, and X is what the encoder gives, not what the file holds: a perceptron
that reads a damaged row may shorten it. So rows are replaced behind the encoder: in networks that were trained on clean data
(``Phase.AFTER_TRAINING``), in the same networks with many steps at test time, near the minimiser (``Phase.MANY_STEPS``), and in networks
that are trained with them (``Phase.ALWAYS``). Nodes that were hit and the others are scored apart, each against what the clean network has on the
same nodes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from unspool.datasets import Dataset
from unspool.report import counted
from unspool.reproduce.claims import Claim, ClaimTest, Topic, compare_values, corrected
from unspool.reproduce.conditions import Condition, Factor, Nodes, Phase
from unspool.reproduce.corrupt import corrupt
from unspool.reproduce.experiment_files import read_experiment
from unspool.reproduce.measuring import accuracy
from unspool.reproduce.recorded_settings import table2_settings
from unspool.reproduce.records import Measurement, Quantity, by_group, plain_settings
from unspool.reproduce.results import keep_measurements, read_measurements
from unspool.reproduce.runner import ExperimentRunner, TrainedNetwork
from unspool.train import Trial, TrialLoader
from unspool.unrolling import Unrolled, unroll


def run_damage(runner: ExperimentRunner) -> list[Measurement]:
    """Train, damage, test, and keep accuracies in ``damage.csv``, model by model; what is there is not trained again."""
    how = runner.options.experiment("damage")
    found: list[Measurement] = []
    kinds = runner.options.model_classes("damage")
    for data in runner.datasets(how["datasets"]):
        for trial in table2_settings(runner, "robust", data, kinds, how["seeds"]).chosen.values():
            found += _model(runner, data, trial, how)
    return found


def _model(runner: ExperimentRunner, data: Dataset, trial: Trial, how: dict[str, Any]) -> list[Measurement]:
    """Everything about one model on one dataset."""
    settings, seeds = plain_settings(runner.shortened(trial)), how["seeds"]
    wanted = _conditions(trial, how)
    there = [
        one
        for one in read_measurements(runner.workspace.results, "damage")
        if (one.dataset, one.model, one.settings) == (data.name, trial.name, settings) and one.seed < seeds
    ]
    whole = {c for c in wanted if len({one.seed for one in there if one.condition == c}) == seeds}
    if whole == set(wanted) or runner.workspace.stored:
        return [one for one in there if one.condition in whole]
    always = [c for c in wanted if c.phase is Phase.ALWAYS]
    many = counted(seeds * (1 + len(always)), "network")
    runner.say(f"robust on {data.name}: {trial.name}, {many}, damaged behind the encoder")
    trials = [trial.with_seed(seed) for seed in range(seeds)]
    networks = runner.train_networks(runner.loader(data), trials)
    if len(networks) < seeds:  # all seeds or none: the runner has said which failed
        return []
    made = [
        *_damaged_rows(networks, how, Phase.AFTER_TRAINING),
        *_more_edges(runner, networks, data, how),
        *_in_training(runner, networks, data, always, how),
    ]
    if any(condition.phase is Phase.MANY_STEPS for condition in wanted):
        longer = [with_steps(network, how["many_steps"]) for network in networks]
        made += _damaged_rows(longer, how, Phase.MANY_STEPS)
    new = [replace(one, dataset=data.name, settings=settings) for one in made]
    keep_measurements(runner.workspace.results, "damage", new)
    return new


def _conditions(trial: Trial, how: dict[str, Any]) -> list[Condition]:
    in_training = how["lengths_in_training"] if trial.name in how["in_training"] else []
    many_steps = how["lengths"] if _shares_one_problem(trial.build(4, 2)) else []
    lengths = {Phase.AFTER_TRAINING: how["lengths"], Phase.ALWAYS: in_training, Phase.MANY_STEPS: many_steps}
    rows = [Condition(Factor.ENCODED_ROWS, float(n), phase) for phase, some in lengths.items() for n in some]
    return [*rows, *(Condition(Factor.EDGES, float(share), Phase.AFTER_TRAINING) for share in how["edges"])]


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


Change = Callable[[Tensor], Tensor]


@contextmanager
def behind_the_encoder(model: Any, change: Change) -> Generator[None]:
    """Change X = p_pre(features) of a model as long as the block lasts."""
    handle = model.p_pre.register_forward_hook(lambda module, given, x: change(x))
    try:
        yield
    finally:
        handle.remove()


class DamagedLoader(TrialLoader):
    """Makes models whose encoded rows are damaged, in training and testing alike; the seed decides how.

    Args:
        loader: of the clean data.
        share: per cent of the nodes whose rows are replaced.
        length: of the new rows, in lengths of the others.
    """

    def __init__(self, loader: TrialLoader, share: float, length: float) -> None:
        super().__init__(loader.data, loader.device)
        self.share, self.length = share, length

    def make(self, trial: Trial) -> nn.Module:
        """The fresh model of a trial, with a hook behind its encoder."""
        model: Any = super().make(trial)
        change = _change(hit_nodes(self.data.nodes, self.share, trial.seed), self.length, trial.seed)
        model.p_pre.register_forward_hook(lambda module, given, x: change(x))
        return model


def _shares_one_problem(model: Any) -> bool:
    """Whether all layers are steps on one problem with a fidelity, so that more of them lead somewhere."""
    net = model.propagation
    if not isinstance(net, Unrolled) or net.between is not None or any(leaf.per_layer for leaf in net.leaves):
        return False
    return any(term.uses_input for term in net.objective.terms)


def with_steps(network: TrainedNetwork, steps: int) -> TrainedNetwork:
    """The same weights with more steps; of a network that is exact already, the same."""
    model = copy.deepcopy(network.model)
    old = model.propagation
    model.propagation = unroll(old.objective, old.algorithm, steps).to(network.task.target.device).eval()
    model.propagation.load_state_dict(old.state_dict())
    return replace(network, model=model)


def _damaged_rows(networks: Sequence[TrainedNetwork], how: dict[str, Any], phase: Phase) -> list[Measurement]:
    made: list[Measurement] = []
    for network in networks:
        hit, before = _hit(network, how), _output(network)
        for length in how["lengths"]:
            condition = Condition(Factor.ENCODED_ROWS, float(length), phase)
            with behind_the_encoder(network.model, _change(hit, length, network.trial.seed)):
                made += _scored(network, condition, _output(network), before, hit)
    return made


def _in_training(
    runner: ExperimentRunner,
    networks: Sequence[TrainedNetwork],
    data: Dataset,
    conditions: Sequence[Condition],
    how: dict[str, Any],
) -> list[Measurement]:
    """The same networks, trained with outliers among the rows of X."""
    made: list[Measurement] = []
    for condition in conditions:
        loader = DamagedLoader(runner.loader(data), how["share"], condition.amount)
        worse = runner.train_networks(loader, [network.trial for network in networks])
        if len(worse) == len(networks):
            for network, clean in zip(worse, networks, strict=True):
                made += _scored(network, condition, _output(network), _output(clean), _hit(network, how))
    return made


def _change(hit: Tensor, length: float, seed: int) -> Change:
    return lambda x: outlying(x, hit.to(x.device), length, seed)


def _more_edges(
    runner: ExperimentRunner, networks: Sequence[TrainedNetwork], data: Dataset, how: dict[str, Any]
) -> list[Measurement]:
    made: list[Measurement] = []
    base = data.row_normalised() if networks[0].trial.normalise_rows else data
    for network in networks:
        before = _output(network)
        for share in how["edges"]:
            condition = Condition(Factor.EDGES, float(share), Phase.AFTER_TRAINING)
            worse = corrupt(base, Factor.EDGES, share / 100, network.trial.seed)
            task = runner.loader(worse).task(network.trial.seed)
            hit = _ends(base.edge_index, worse.edge_index, base.nodes).to(task.target.device)
            with torch.no_grad():
                made += _scored(network, condition, network.model(task.x, task.graph), before, hit)
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


def _hit(network: TrainedNetwork, how: dict[str, Any]) -> Tensor:
    target = network.task.target
    return hit_nodes(target.shape[0], how["share"], network.trial.seed).to(target.device)


@torch.no_grad()
def _output(network: TrainedNetwork) -> Tensor:
    return network.model(network.task.x, network.task.graph)


def _scored(
    network: TrainedNetwork, condition: Condition, output: Tensor, before: Tensor, hit: Tensor
) -> list[Measurement]:
    """Accuracies of test nodes, and what is lost against the clean network on the same nodes."""
    test, trial = network.task.test, network.trial
    damaged = torch.isin(test, hit)
    made: list[Measurement] = []
    for part, nodes in zip(Nodes, (test, test[damaged], test[~damaged]), strict=True):
        if nodes.numel():
            now, once = (accuracy(one, network.task, nodes) for one in (output, before))
            made += [
                Measurement("damage", "", trial.name, condition, trial.seed, quantity, part, value)
                for quantity, value in ((Quantity.ACCURACY, now), (Quantity.LOST, once - now))
            ]
    return made


# -- what it says ------------------------------------------------------------------------------------------------------


def damage_tests(measurements: Sequence[Measurement]) -> list[ClaimTest]:
    """Whether the robust model of each pair loses less than its counterpart; p-values are corrected over amounts and sets (Holm).

    Example:
        >>> from unspool.reproduce.records import example_measurement
        >>> edges = Condition(Factor.EDGES, 50.0, Phase.AFTER_TRAINING)
        >>> found = [
        ...     example_measurement(s, experiment="damage", dataset="cora", model=m, condition=edges, quantity=Quantity.LOST,
        ...                         value=v + 0.001 * (s * len(m) % 5))
        ...     for s in range(6) for m, v in (("AirGNN", 0.02), ("APPNP", 0.2))
        ... ]
        >>> [(test.claim.text, str(test.condition), test.verdict.value) for test in damage_tests(found)]
        [('AirGNN loses less than APPNP to random edges', 'edges 50 %', 'holds')]
    """
    tests: list[ClaimTest] = []
    for robust, other in read_experiment("damage")["pairs"]:
        for (factor, phase), words in DAMAGES.items():
            for nodes in Nodes:
                where = "" if nodes is Nodes.ALL else f", on {nodes.value} nodes"
                claim = Claim(Topic.LOSES_LESS, f"{robust} loses less than {other} to {words}{where}", lower=True)
                lost = by_group(measurements, Quantity.LOST, nodes)
                mine = [g for g in lost if (g.model, g.condition.factor, g.condition.phase) == (robust, factor, phase)]
                each: list[ClaimTest] = []
                for group in sorted(mine, key=lambda g: (g.dataset, g.condition.amount)):
                    theirs = lost.get(group._replace(model=other), {})
                    each += compare_values(
                        claim, group.dataset, group.condition, (robust, lost[group]), (other, theirs)
                    )
                tests += corrected(each)
    return tests


#: What is done, as claims call it.
DAMAGES = {
    (Factor.ENCODED_ROWS, Phase.AFTER_TRAINING): "outliers behind the encoder after training",
    (Factor.ENCODED_ROWS, Phase.MANY_STEPS): "outliers behind the encoder after training, with many steps",
    (Factor.ENCODED_ROWS, Phase.ALWAYS): "outliers behind the encoder in training",
    (Factor.EDGES, Phase.AFTER_TRAINING): "random edges",
}
