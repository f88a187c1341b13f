"""Splits are disjoint, balanced, repeatable and named by their content."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from unspool import datasets
from unspool.datasets import Split, splits
from unspool.datasets.split import DrawRule
from unspool.errors import InputError

SEEDS = range(8)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def labels_of(seed, nodes=400, classes=5, unlabelled=0.1):
    labels = torch.randint(classes, (nodes,), generator=seeded(seed))
    labels[torch.rand(nodes, generator=seeded(seed + 100)) < unlabelled] = -1
    return labels


DRAWN = {
    "per class": lambda labels, seed: splits.per_class(labels, train=7, valid=9, seed=seed),
    "random": lambda labels, seed: splits.random(labels, (0.5, 0.2, 0.3), seed=seed),
    "random, some left over": lambda labels, seed: splits.random(labels, (0.1, 0.1, 0.1), seed=seed),
}


@pytest.mark.parametrize("draw", list(DRAWN))
@pytest.mark.parametrize("seed", SEEDS)
def test_parts_are_disjoint_labelled_and_repeatable(draw, seed):
    labels = labels_of(seed)
    split = DRAWN[draw](labels, seed)
    everyone = torch.cat([split.train, split.valid, split.test])
    assert everyone.unique().numel() == everyone.numel()
    assert (labels[everyone] >= 0).all()
    assert split == DRAWN[draw](labels, seed)
    assert split != DRAWN[draw](labels, seed + 1)
    assert split.seed == seed


@pytest.mark.parametrize("seed", SEEDS)
def test_per_class_is_balanced_and_leaves_the_rest_to_test(seed):
    labels = labels_of(seed)
    split = splits.per_class(labels, train=7, valid=9, seed=seed)
    assert labels[split.train].bincount().tolist() == [7] * 5
    assert labels[split.valid].bincount().tolist() == [9] * 5
    assert split.test.numel() == int((labels >= 0).sum()) - 5 * 16


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ratios", [(0.6, 0.2, 0.2), (0.48, 0.32, 0.2), (0.1, 0.2, 0.3), (0.01, 0.01, 0.98)])
def test_random_keeps_the_mix_of_classes(ratios, seed):
    labels = labels_of(seed)
    split = splits.random(labels, ratios, seed)
    size = labels[labels >= 0].bincount()
    for part, ratio in zip((split.train, split.valid, split.test), ratios, strict=True):
        count = labels[part].bincount(minlength=5)
        assert ((count - ratio * size).abs() <= 1).all()
        assert (count >= 1).all()


@pytest.mark.parametrize("count", range(3, 12))
def test_random_gives_every_part_of_a_small_class_a_node(count):
    split = splits.random(torch.zeros(count).long(), (0.6, 0.2, 0.2), seed=0)
    assert min(split.train.numel(), split.valid.numel(), split.test.numel()) >= 1
    assert split.train.numel() + split.valid.numel() + split.test.numel() == count


def test_drawn_splits_stay_what_they_were():
    """Results are compared across machines and years: a seed names the same nodes for good."""
    labels = torch.arange(300) % 3
    assert splits.per_class(labels, seed=0).hash == "f489fafccf8926b47cfe285230764fa8"
    assert splits.random(labels, seed=1).hash == "5008315894d5fdc7dd72f7673626a8b4"


def test_seeds_differ_widely():
    labels = torch.arange(600) % 3
    found = {splits.per_class(labels, seed=seed).hash for seed in range(50)}
    assert len(found) == 50


def test_hash_sees_nodes_and_nothing_else():
    split = Split([0, 1], [2], [3], nodes=5)
    assert split == Split([1, 0], [2], [3], nodes=5, name="other", seed=9)
    assert hash(split) == hash(Split([1, 0], [2], [3], nodes=5))
    different = [
        Split([0, 1], [2], [4], 5),
        Split([0, 1], [3], [2], 5),
        Split([0, 1], [2], [3], 6),
        Split([0], [2], [3], 5),
    ]
    assert len({split.hash, *(other.hash for other in different)}) == 5


def test_codes_and_masks_say_the_same():
    split = splits.random(labels_of(3), seed=3)
    assert Split.from_codes(split.codes()) == split
    assert Split.from_masks(*(split.mask(part) for part in ("train", "valid", "test"))) == split
    with pytest.raises(ValueError, match=r"^a split has the parts train, valid and test, not 'val'$"):
        split.mask("val")


@pytest.mark.parametrize("seed", SEEDS)
def test_legacy_equals_the_plain_script_and_is_wrong_only_with_several_components(seed):
    """Positions inside the largest component used as ids: with isolated nodes before it, every id is off."""
    nodes, isolated = 200, 20
    labels = torch.arange(nodes) % 4
    chain = torch.stack([torch.arange(isolated, nodes - 1), torch.arange(isolated + 1, nodes)])
    whole = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
    broken = datasets.from_tensors(chain, torch.eye(nodes), labels)
    sound = datasets.from_tensors(whole, torch.eye(nodes), labels)
    legacy = splits.legacy_per_class(broken, 5, 5, seed)
    inside = torch.arange(isolated, nodes)
    right = splits.per_class(labels[inside], 5, 5, seed)  # ids inside the component
    assert torch.equal(legacy.train, right.train)  # used as they are
    assert int(legacy.test.max()) < inside.numel()
    plain = Split(legacy.train, legacy.valid, legacy.test, nodes=nodes, name="random", seed=seed)
    assert splits.repetition(broken.with_split(plain), 2) == plain  # a name says nothing about how it was drawn
    drawn = replace(plain, rule=DrawRule("random", ()))  # sizes are not said
    assert splits.repetition(broken.with_split(drawn), 2) == splits.random(labels, seed=seed + 2)
    again = splits.repetition(broken.with_split(legacy), 3)
    assert again == splits.legacy_per_class(broken, 5, 5, seed + 3)
    assert splits.legacy_per_class(sound, 5, 5, seed) == splits.per_class(labels, 5, 5, seed)


def test_recorded_splits_of_citeseer():
    data = datasets.load("citeseer")
    split = splits.public(data)
    assert data.split == split
    assert data.labels[split.train].bincount().tolist() == [20] * 6
    assert (split.train.numel(), split.valid.numel(), split.test.numel()) == (120, 500, 1000)
    assert splits.by_name(data, "public") == split


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("per-class", lambda d: splits.per_class(d.labels, seed=5)),
        ("per-class:10/5", lambda d: splits.per_class(d.labels, 10, 5, seed=5)),
        ("legacy", lambda d: splits.legacy_per_class(d, seed=5)),
        ("Random", lambda d: splits.random(d.labels, seed=5)),
        ("random:0.5/0.3/0.2", lambda d: splits.random(d.labels, (0.5, 0.3, 0.2), seed=5)),
        ("public", splits.public),
    ],
)
def test_text_names_splits(text, same):
    data = datasets.load("citeseer")
    assert splits.by_name(data, text, seed=5) == same(data)


@pytest.mark.parametrize("text", ["", "publik", "per-class:10", "random:1/2", "random:a/b/c", "public:3", "geom-gcn-0"])
def test_text_that_names_no_split(text):
    with pytest.raises(InputError, match=r"one of public, per-class, .* for CiteSeer") as refused:
        splits.by_name(datasets.load("citeseer"), text)
    assert (refused.value.argument, refused.value.value) == ("split", text)


BAD = [
    (lambda: Split([], [1], [2], 3), "the split is empty: it has no train nodes; every part needs at least one"),
    (lambda: Split([0], [], [2], 3), "the split is empty: it has no valid nodes; every part needs at least one"),
    (lambda: Split([0], [1], [5], 3), "test names node 5, but node ids run from 0 to 2"),
    (lambda: Split([0], [-1], [2], 3), "valid names node -1, but node ids run from 0 to 2"),
    (lambda: Split([0, 0], [1], [2], 3), "train names node 0 twice; list every node once"),
    (lambda: Split([0], [1], [0], 3), "node 0 is in both train and test; every node belongs to one part at most"),
    (lambda: Split([0.5], [1], [2], 3), "train holds float64 of shape (1,): expected node ids, a list of whole numbers"),
    (lambda: Split(torch.tensor([True, False]), [1], [2], 3), "train is a mask: give node ids, or use Split.from_masks"),
    (
        lambda: Split.from_masks(np.ones((3, 10)), np.ones(3), np.ones(3)),
        "the train mask has shape (3, 10): expected one entry per node; choose one column where a file holds several splits",
    ),
    (lambda: Split.from_masks([1, 0, 0], [0, 1, 0], [0, 1]), "the test mask has 2 entries, the train mask 3"),
    (
        lambda: splits.per_class(torch.tensor([0, 0, 0, 1]), 1, 1),
        "class 1 has 1 labelled node, fewer than the 1 + 1 asked for; ask for fewer, or merge the class with another",
    ),
    (lambda: splits.per_class(torch.zeros(9).long(), 0, 1), "train=0, valid=1: ask for at least one node per class in each"),
    (
        lambda: splits.random(torch.tensor([0, 0, 0, 1])),
        "class 1 has 1 labelled node, but train, valid and test need one each; merge the class with another, or set the label to -1",
    ),
    (lambda: splits.random(torch.zeros(9).long(), (0.6, 0.6, 0.2)), "ratios=(0.6, 0.6, 0.2): expected three positive shares with a sum of at most 1"),
    (lambda: splits.random(torch.full((3,), -1)), "no node has a label, so there is nothing to split; give labels (-1 marks unlabelled nodes)"),
    (lambda: splits.random(torch.rand(5)), "labels of shape (5,) and dtype float32: expected one class number per node"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "sentence"), BAD, ids=[sentence[:40] for _, sentence in BAD])
def test_bad_splits_have_their_sentence(make, sentence):
    with pytest.raises((TypeError, ValueError)) as caught:
        make()
    assert str(caught.value) == sentence
