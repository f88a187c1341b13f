"""Every term against its formula written out with loops, and its gradient against finite differences."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

import unspool as us
from unspool import datasets, train
from unspool.errors import IncompatibleError, InputError
from unspool.train import CrossEntropy, Task
from unspool.train.upper import (
    ClassMass,
    Consistency,
    Distil,
    Entropy,
    Labels,
    Neighbours,
    OwnTerm,
    PseudoLabels,
    Seen,
    Upper,
    WarmUp,
    as_upper,
)

VIEWS, NODES, CLASSES = 3, 7, 4
TEACHER = torch.rand(NODES, CLASSES, generator=torch.Generator().manual_seed(5)).double().softmax(-1)


def seen(outputs: Tensor | None = None, weight: Tensor | None = None, epoch: int = 1) -> Seen:
    generator = torch.Generator().manual_seed(3)
    if outputs is None:
        outputs = 2 * torch.randn(VIEWS, NODES, CLASSES, generator=generator, dtype=torch.float64)
    target = torch.tensor([0, 1, 2, 3, 0, 1, 2])
    graph = us.graph.ring(NODES).to(torch.float64)
    return Seen(outputs, target, torch.tensor([0, 1, 4, 2]), graph, CrossEntropy(), torch.tensor(epoch), weight)


def sharp(p: list[float], temperature: float) -> list[float]:
    powers = [v ** (1 / temperature) for v in p]
    return [v / sum(powers) for v in powers]


def written_out(name: str, given: Seen) -> float:
    """The same terms with sums over indices."""
    p = given.outputs.softmax(-1).tolist()
    mean = [[sum(p[r][i][c] for r in range(VIEWS)) / VIEWS for c in range(CLASSES)] for i in range(NODES)]
    labels, known = given.target.tolist(), given.train.tolist()
    everyone = range(NODES)

    def apart(target: list[list[float]], nodes: list[int]) -> float:
        squares = [sum((p[r][i][c] - target[i][c]) ** 2 for c in range(CLASSES)) for r in range(VIEWS) for i in nodes]
        return sum(squares) / (VIEWS * len(nodes))

    def entropy_against(target: list[list[float]]) -> float:
        return (
            -sum(target[i][c] * math.log(p[r][i][c]) for r in range(VIEWS) for i in everyone for c in range(CLASSES))
            / VIEWS
            / NODES
        )

    if name == "labels":
        return -sum(math.log(p[r][i][labels[i]]) for r in range(VIEWS) for i in known) / (VIEWS * len(known))
    if name == "consistency":
        return apart([sharp(m, 0.5) for m in mean], list(everyone))
    if name == "confident":
        return apart(mean, [i for i in everyone if max(mean[i]) >= 0.4])
    if name == "neighbours":
        a = given.graph.to_dense().tolist()
        told = [[sum(a[i][j] * mean[j][c] for j in everyone) for c in range(CLASSES)] for i in everyone]
        return apart([sharp([v / sum(row) for v in row], 0.7) for row in told], list(everyone))
    if name == "entropy":
        return -sum(v * math.log(v) for view in p for row in view for v in row) / VIEWS / NODES
    if name == "pseudo":
        free = [i for i in everyone if i not in known]
        sure = [i for i in free if max(mean[i]) >= 0.35]
        named = {i: mean[i].index(max(mean[i])) for i in sure}
        return -sum(math.log(p[r][i][named[i]]) for r in range(VIEWS) for i in sure) / VIEWS / len(free)
    if name == "distil":
        return entropy_against([sharp(row, 2.0) for row in TEACHER.tolist()])
    free = [i for i in everyone if i not in known]
    before = [sum(labels[i] == c for i in known) / len(known) for c in range(CLASSES)]
    said = [sum(mean[i][c] for i in free) / len(free) for c in range(CLASSES)]
    shift = [
        0.8 * math.log((0.9 * said[c] + 0.1 * before[c]) / before[c]) if before[c] else 0.0 for c in range(CLASSES)
    ]
    total = 0.0
    for view in given.outputs.tolist():
        for i in known:
            moved = [view[i][c] - shift[c] for c in range(CLASSES)]
            total += math.log(sum(map(math.exp, moved))) - moved[labels[i]]
    return total / VIEWS / len(known)


TERMS = {
    "labels": Labels(), "consistency": Consistency(VIEWS, 0.5), "confident": Consistency(VIEWS, confidence=0.4),
    "neighbours": Neighbours(0.7), "entropy": Entropy(), "pseudo": PseudoLabels(0.35), "distil": Distil(TEACHER, 2.0), "mass": ClassMass(0.8),
}  # fmt: skip


@pytest.mark.parametrize("name", TERMS)
def test_the_value_is_that_of_the_formula(name: str) -> None:
    given = seen()
    assert float(as_upper(TERMS[name]).value(given)) == pytest.approx(written_out(name, given), rel=1e-12)


@pytest.mark.parametrize("name", TERMS)
def test_the_gradient_is_that_of_the_formula_where_targets_are_held(name: str) -> None:
    """Finite differences of the term with p̄, the class masses and the neighbours as they were."""
    first = seen()
    start = first.outputs.clone().requires_grad_()
    as_upper(TERMS[name]).value(seen(start)).backward()
    assert start.grad is not None
    held = {"mean": first.mean, "unlabelled": first.unlabelled}
    direction = torch.randn(start.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def at(step: float) -> float:
        moved = seen(start.detach() + step * direction)
        vars(moved).update(held)
        return float(as_upper(TERMS[name]).value(moved))

    slope = (at(1e-5) - at(-1e-5)) / 2e-5
    assert float((start.grad * direction).sum()) == pytest.approx(slope, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", TERMS)
def test_trials_of_a_pack_have_numbers_of_their_own(name: str) -> None:
    """Under vmap over trials, numbers and outputs of each trial give what it gives alone."""
    upper = 2.0 * WarmUp(10) * TERMS[name]
    outputs = torch.randn(2, VIEWS, NODES, CLASSES, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    numbers = {k: torch.tensor([v, 0.8 * v], dtype=torch.float64) for k, v in upper.numbers.items()}

    first = seen()

    def one(out: Tensor, held: dict[str, Tensor], train_ids: Tensor) -> Tensor:
        return upper.value(Seen(out, first.target, train_ids, first.graph, first.loss, torch.tensor(5)), held)

    ids = torch.stack([first.train, torch.tensor([1, 3, 5, 6])])
    together = torch.func.vmap(one)(outputs, numbers, ids)
    alone = [one(outputs[t], {k: v[t] for k, v in numbers.items()}, ids[t]) for t in range(2)]
    assert torch.allclose(together, torch.stack(alone), rtol=1e-12)


def test_a_sum_is_the_sum_and_weights_grow() -> None:
    upper = CrossEntropy() + 2.0 * WarmUp(100) * Consistency(VIEWS, 0.5) + 0.1 * Entropy()
    parts = [float(as_upper(t).value(seen())) for t in (Labels(), Consistency(VIEWS, 0.5), Entropy())]
    for epoch, share in ((25, 0.25), (100, 1.0), (400, 1.0)):
        wanted = parts[0] + 2 * share * parts[1] + 0.1 * parts[2]
        assert float(upper.value(seen(epoch=epoch))) == pytest.approx(wanted, rel=1e-12)
    assert upper.views == VIEWS


def test_weights_of_nodes_count_in_both_losses_of_labels() -> None:
    weight = torch.tensor([2.0, 0.0, 1.0, 9.0, 1.0, 9.0, 9.0], dtype=torch.float64)
    given = seen(weight=weight)
    each = -torch.stack([given.log_p[:, i, int(given.target[i])].mean() for i in given.train])
    own = weight[given.train]
    assert float(as_upper(Labels()).value(given)) == pytest.approx(float((own * each).sum() / own.sum()), rel=1e-12)
    plain = as_upper(ClassMass(strength=0)).value(given)
    assert float(plain) == pytest.approx(float(as_upper(Labels()).value(given)), rel=1e-12)


def test_a_term_of_ones_own_sees_no_label_but_those_of_training_nodes() -> None:
    labels: list[Tensor] = []

    def look(outputs: Tensor, known: Tensor, graph: us.Graph) -> Tensor:
        labels.append(known)
        return outputs.mean() + 0 * graph.laplacian_times(outputs[0]).sum()

    as_upper(OwnTerm(look)).value(seen())
    assert labels[0].tolist() == [0, 1, 2, -1, 0, -1, -1]
    with pytest.raises(TypeError, match="the term wrong is a tensor of shape \\(7, 4\\)"):
        as_upper(OwnTerm(lambda outputs, known, graph: outputs[0], symbol="wrong")).value(seen())


def test_class_masses_are_found_where_labels_are_balanced_and_nodes_are_not() -> None:
    """Two overlapping classes in shares 0.85 and 0.15, and training nodes half and half: the term finds the shares of all nodes."""
    target = (torch.arange(1000) % 20 >= 17).long()
    noise = torch.randn(1000, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x, graph = noise + 2.0 * target[:, None], us.graph.ring(1000).to(torch.float64)
    ids = torch.cat([torch.nonzero(target == c).flatten()[:60] for c in (0, 1)])
    shares: dict[float, float] = {}
    for strength in (0.0, 1.0):
        torch.manual_seed(0)
        layer, upper = torch.nn.Linear(1, 2, dtype=torch.float64), as_upper(ClassMass(strength))
        for _ in range(100):
            loss = upper.value(Seen(layer(x)[None], target, ids, graph, CrossEntropy(), torch.tensor(1)))
            slopes = torch.autograd.grad(loss, list(layer.parameters()))
            with torch.no_grad():
                for parameter, slope in zip(layer.parameters(), slopes, strict=True):
                    parameter.sub_(slope)
        shares[strength] = float(layer(x).detach().softmax(-1)[:, 1].mean())
    assert abs(shares[1.0] - 0.15) < 0.04
    assert shares[0.0] > 0.3


def numbers_task() -> Task:
    data = datasets.from_tensors([[0, 1], [1, 0]], targets=[float(i % 5) for i in range(30)])
    return Task.of(data)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("loss + entropy", "the term entropy compares probabilities of classes, and Regression learns none"),
        ("loss + consistency(temperature=0.5)", "a temperature or a confidence is for classes"),
        ("ce", "asks for CrossEntropy, and what is learnt here has Regression"),
        ("class_mass", "the term class_mass compares probabilities"),
    ],
)
def test_terms_without_meaning_are_refused(text: str, words: str) -> None:
    with pytest.raises(IncompatibleError, match=words):
        Upper.parse(text).check(numbers_task())


def test_consistency_of_numbers_is_their_spread() -> None:
    task = numbers_task()
    outputs = torch.randn(3, 30, 1, generator=torch.Generator().manual_seed(0))
    given = Seen(outputs, task.target, task.train, task.graph, task.loss, torch.tensor(1))
    found = as_upper(Consistency(3)).value(given)
    assert float(found) == pytest.approx(float(outputs.var(0, unbiased=False).mean()), rel=1e-5)
    Upper.parse("loss + consistency(views=3)").check(task)


@pytest.mark.parametrize("kind", [train.TaskKind.BINARY, train.TaskKind.ORDINAL, train.TaskKind.CLASSES])
def test_class_terms_run_on_every_kind_of_classes(kind: train.TaskKind) -> None:
    data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
    data = data if kind is not train.TaskKind.ORDINAL else datasets.contextual_sbm(nodes=60, classes=2, seed=0)
    loader = train.TrialLoader(data, kind=kind)
    text = (
        "loss + consistency(views=2, temperature=0.5) + entropy + neighbours + pseudo_labels(0.6) under drop_nodes(0.3)"
    )
    trial = train.Trial(us.models.APPNP, {"hidden": 8}, train.TrainConfig(epochs=3, upper=text))
    assert math.isfinite(train.train_trial(trial, loader)[1].best.train_loss)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Consistency(views=0), "views=0: expected a whole number from 1 to 100"),
        (lambda: Consistency(temperature=0), "temperature=0: expected a finite number above 0"),
        (lambda: PseudoLabels(1.5), r"confidence=1.5: expected a number in \[0, 1\]"),
        (
            lambda: -1.0 * Entropy(),
            "weight=-1.0: expected a finite number of at least 0; the upper level is made small",
        ),
        (lambda: Distil(3), "teacher=3: expected the folder of a trained model"),
        (lambda: OwnTerm(3), "function=3: expected a function"),  # type: ignore[arg-type]
    ],
)
def test_bad_numbers_are_named(make: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()  # type: ignore[operator]
