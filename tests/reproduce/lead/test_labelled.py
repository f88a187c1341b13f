"""What a search sees: labelled nodes alone, divided anew under every seed; validation nodes at the masses of the classes."""

from dataclasses import replace

import pytest
import torch

import unspool as us
from unspool import datasets
from unspool.datasets import splits
from unspool.reproduce.lead.finals import read
from unspool.reproduce.lead.labelled import COPIES, CountedLoader, LabelledLoader, balanced, counted, divided
from unspool.reproduce.lead.mass import class_masses, solved
from unspool.reproduce.lead.plan import Plan
from unspool.reproduce.lead.run import LeadRun
from unspool.reproduce.lead.search import read_choices
from unspool.train import TrainConfig, Trial, TrialLoader

pytestmark = pytest.mark.long

#: Three classes of unequal sizes.
SIZES = (240, 90, 30)


@pytest.fixture(scope="module")
def uneven():
    """A graph whose classes are unequal, under splits that take as many nodes of each."""
    classes = torch.repeat_interleave(torch.arange(3), torch.tensor(SIZES))
    draw = torch.Generator().manual_seed(0)
    features = 2.0 * torch.eye(3)[classes] + torch.randn(len(classes), 3, generator=draw)
    near = torch.rand(len(classes), len(classes), generator=draw).triu(1)
    edges = torch.nonzero((near > 0) & (near < torch.where(classes[:, None] == classes, 0.03, 0.005))).T
    data = datasets.from_tensors(edges, features, classes, directed=False, name="uneven")
    return data.with_split(lambda d: splits.per_class(d.labels, train=5, valid=8, seed=0))


def test_labelled_nodes_are_divided_anew_with_as_many_of_each_class(uneven):
    for seed in range(3):
        whole = splits.repetition(uneven, seed)
        made, again = divided(whole, uneven.labels, seed), divided(whole, uneven.labels, seed)
        assert made.hash == again.hash
        known = set(whole.train.tolist()) | set(whole.valid.tolist())
        parts = [set(part.tolist()) for part in (made.train, made.valid, made.test)]
        assert set.union(*parts) == known
        assert sum(map(len, parts)) == len(known)
        for part, many in ((made.train, 5), (made.valid, 4), (made.test, 4)):
            assert uneven.labels[part].bincount().tolist() == [many] * 3


def test_halves_of_odd_numbers_are_as_large_as_each_other():
    labels = torch.arange(60) % 4
    split = datasets.Split(torch.arange(8), torch.arange(8, 36), torch.arange(36, 60), nodes=60)
    made = divided(split, labels, seed=1)
    assert (made.train.numel(), made.valid.numel(), made.test.numel()) == (8, 14, 14)


def test_a_search_sees_no_label_of_a_test_node(uneven):
    def told(data):
        found = []
        loader = LabelledLoader(data)
        for seed in range(2):
            trial = Trial(us.models.APPNP, {"hidden": 8}, TrainConfig(epochs=5), seed)
            found.append(us.train.train_trial(trial, loader)[1].history)
        return found, class_masses(loader, Trial(us.models.APPNP, {"hidden": 8}, TrainConfig(epochs=20)), range(2))

    labels, known = uneven.labels.clone(), torch.zeros(len(uneven.labels), dtype=torch.bool)
    for seed in range(2):
        known[splits.repetition(uneven, seed).train] = True
        known[splits.repetition(uneven, seed).valid] = True
    before = told(recorded_like(uneven))
    labels[~known] = (labels[~known] + 1) % 3
    assert told(recorded_like(replace(uneven, labels=labels), uneven)) == before


def recorded_like(data, drawn_from=None):
    """The data under the two splits that the first seeds draw, kept as they are: labels that change later draw no other."""
    source = data if drawn_from is None else drawn_from
    folds = {f"fold-{k}": splits.repetition(source, k).codes() for k in range(2)}
    return replace(data, recorded=folds).with_split(lambda d: splits.recorded(d, "fold-0"))


def test_masses_are_those_of_the_unlabelled_nodes_where_split_and_network_say_otherwise(uneven):
    trial = Trial(us.models.APPNP, {"hidden": 8}, TrainConfig(epochs=60, lr=0.05))
    data = uneven.with_split(lambda d: splits.per_class(d.labels, train=5, valid=20, seed=0))
    found = class_masses(LabelledLoader(data), trial, range(8))
    unlabelled = [size - 25 for size in SIZES]  # of the third class five are left
    assert found == pytest.approx([size / sum(unlabelled) for size in unlabelled], abs=0.035)
    assert sum(found) == pytest.approx(1, abs=0.02)


def test_no_class_is_lost_where_none_is_named():
    import numpy as np

    assert min(solved(np.eye(3), np.array([0.6, 0.4, 0.0]))) == pytest.approx(1 / 30, rel=0.05)


@pytest.mark.parametrize("mass", [(0.7, 0.2, 0.1), (0.05, 0.05, 0.9)])
def test_scores_of_counted_nodes_are_weighted_means_over_classes(uneven, mass):
    plain, loader = TrialLoader(uneven).first, CountedLoader(uneven, mass=mass)
    ids = loader.first.valid
    assert torch.equal(ids.unique(), plain.valid.unique())
    assert torch.equal(loader.first.train, plain.train)
    assert torch.equal(loader.first.test, plain.test)
    output = torch.randn(len(uneven.labels), 3, generator=torch.Generator().manual_seed(2))
    right = (output.argmax(1) == uneven.labels).double()
    recall = torch.stack([right[plain.valid][uneven.labels[plain.valid] == c].mean() for c in range(3)])
    wanted = float((recall * torch.tensor(mass, dtype=torch.float64)).sum())
    found = float(loader.first.loss.score(output[ids], uneven.labels[ids]))
    assert found == pytest.approx(wanted, abs=1 / COPIES)
    assert loader.fingerprint != TrialLoader(uneven).fingerprint
    assert CountedLoader(uneven).fingerprint == TrialLoader(uneven).fingerprint


def test_balanced_splits_are_told_from_others(uneven):
    assert balanced(uneven.split, uneven.labels)
    citeseer = datasets.load("citeseer")
    assert not balanced(citeseer.split, citeseer.labels)
    assert counted(torch.arange(4), torch.tensor([0, 1, 0, 1]), ()).tolist() == [0, 1, 2, 3]


def test_masses_go_from_the_search_to_the_final_evaluations(space, small, out, uneven):
    small["data"] = uneven
    told: list[str] = []
    LeadRun(out, commit="c0ffee", say=told.append).run()
    choices = read_choices(out / "choices", Plan.read().digest)
    (mass,) = {tuple(one.mass) for one in choices}
    assert len(mass) == 3
    assert {row.mass for row in read(out / "finals.csv")} == {mass}
    assert any("classes have the masses" in line for line in told)
    small_store = [row for row in read(out / "finals.csv") if row.entry == "GRAND"]
    assert {row.split.split()[0] for row in small_store} == {"per-class"}
