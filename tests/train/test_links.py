"""Links that are held back: the protocol, the metrics against plain counting and scikit-learn, and the baselines."""

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

import unspool as us
from unspool import datasets, train
from unspool.errors import InputError
from unspool.train.link_baselines import LinkBaseline, inner_products
from unspool.train.link_metrics import LinkMetrics, average_precision, mean_ranks
from unspool.train.link_rivals import RANKED, draw_rivals


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=90, classes=3, seed=4)


@pytest.fixture(scope="module")
def task(data):
    return train.link_task(data, valid=0.1, test=0.3, seed=5)


def plain_adjacency(task):
    """0 and 1, from the links that stay."""
    near = np.zeros((task.graph.nodes,) * 2)
    pairs, yes = task.loss.pairs.numpy(), task.target.numpy() > 0.5
    for u, v in pairs[task.train.numpy()][yes[task.train.numpy()]]:
        near[u, v] = near[v, u] = 1
    return near


# -- metrics -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [3, 7, 10**6], ids=["many ties", "some ties", "no ties"])
@pytest.mark.parametrize("seed", range(5))
def test_areas_are_those_of_scikit_learn(levels, seed):
    chance = np.random.default_rng(seed)
    score, yes = chance.integers(0, levels, 80).astype(float), chance.random(80) < 0.3
    found = LinkMetrics.of(score, yes, np.ones(1))
    assert found.auc == pytest.approx(roc_auc_score(yes, score), abs=1e-12)
    assert found.average_precision == pytest.approx(average_precision_score(yes, score), abs=1e-12)
    assert average_precision(score, yes) == found.average_precision


def test_ranks_are_the_mean_over_all_orders_of_a_tie():
    chance = np.random.default_rng(0)
    found, rivals = chance.integers(0, 4, 6).astype(float), chance.integers(0, 4, (6, 9)).astype(float)
    rivals[2, 5:] = np.nan
    plain = []
    for mine, row in zip(found, rivals, strict=True):
        others = row[~np.isnan(row)]
        higher, equal = int((others > mine).sum()), int((others == mine).sum())
        plain.append(np.mean([higher + place for place in range(1, equal + 2)]))  # every place in the tie
    assert mean_ranks(found, rivals) == pytest.approx(plain, abs=1e-15)


def test_shares_of_ranks():
    ranks = np.array([1.0, 1.5, 10.0, 10.5, 60.0])
    found = LinkMetrics.of(np.array([1.0, 0.0]), np.array([1, 0]), ranks)
    assert found.mrr == pytest.approx((1 + 1 / 1.5 + 0.1 + 1 / 10.5 + 1 / 60) / 5, abs=1e-15)
    assert found.hits == {1: 0.2, 10: 0.6, 50: 0.8}


def test_nothing_to_rank_says_nothing():
    plain = LinkMetrics.of(np.array([1.0, 0.0]), np.array([1, 0]), np.empty(0)).to_plain()
    assert plain == {
        "auc": 1.0, "average_precision": 1.0, "mrr": None, "hits@1": None, "hits@10": None, "hits@50": None,
    }  # fmt: skip


# -- rivals ------------------------------------------------------------------------------------------------------------


def test_rivals_are_not_links_and_come_once(data, task):
    pairs, yes = task.loss.pairs.numpy(), task.target.numpy() > 0.5
    asked = pairs[task.test.numpy()][yes[task.test.numpy()]]
    rivals, whole = draw_rivals(asked, pairs[yes], data.nodes, seed=5), data.graph.to_dense().numpy()
    assert sorted(map(sorted, zip(rivals.kept.tolist(), rivals.found.tolist(), strict=True))) == sorted(asked.tolist())
    for kept, row in zip(rivals.kept, rivals.others, strict=True):
        others = row[row >= 0].tolist()
        assert len(set(others)) == len(others)
        # The graph has fewer nodes than a link has rivals: all that are not linked with it, in the whole graph, are there.
        assert set(others) == {v for v in range(data.nodes) if v != kept and whole[kept, v] == 0}


def test_rivals_belong_to_the_seed(task):
    pairs, yes = task.loss.pairs.numpy(), task.target.numpy() > 0.5
    one, again, other = (draw_rivals(pairs[yes], pairs[yes], 90, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.others, again.others)
    assert np.array_equal(one.kept, again.kept)
    assert not np.array_equal(one.kept, other.kept)
    assert len(set(map(tuple, np.sort(np.stack([one.kept, one.found], 1), 1)))) == len(pairs[yes])


def test_many_rivals_are_drawn_uniformly():
    links = np.array([[0, 1], [0, 2], [0, 3]])
    counts = np.zeros(1200)
    for seed in range(60):
        rivals = draw_rivals(links, links, 1200, seed)
        assert rivals.others.shape == (3, 500)
        assert not (rivals.others == rivals.kept[:, None]).any()
        for kept, others in zip(rivals.kept, rivals.others, strict=True):
            counts += np.bincount(others, minlength=1200)
            assert kept != 0 or not np.isin(others, [1, 2, 3]).any()
    usual = counts[4:]
    assert abs(usual.mean() - 60 * 3 * 500 / 1199) < 1
    assert np.abs(usual - usual.mean()).max() < 6 * np.sqrt(usual.mean())


def test_ends_that_are_linked_with_all_are_not_kept():
    star = np.array([[0, v] for v in range(1, 6)])
    rivals = draw_rivals(star, star, 6, seed=0)
    assert (rivals.kept > 0).all()
    assert (rivals.found == 0).all()
    full = np.array([[0, 1], [0, 2], [1, 2]])
    assert draw_rivals(full, full, 3, seed=0).kept.size == 0


def test_only_so_many_links_are_ranked():
    ring = np.stack([np.arange(RANKED + 9), (np.arange(RANKED + 9) + 1) % (RANKED + 9)], 1)
    rivals = draw_rivals(ring, ring, RANKED + 9, seed=0)
    assert rivals.kept.size == RANKED
    assert rivals.kept.max() > RANKED - 20


# -- baselines ---------------------------------------------------------------------------------------------------------


def test_baselines_are_their_formulas(task):
    near = plain_adjacency(task)
    degree, x = near.sum(1), task.x.double().numpy()
    one, other = np.random.default_rng(0).integers(0, 90, (2, 200))
    common = [int((near[u] * near[v]).sum()) for u, v in zip(one, other, strict=True)]
    weighed = [
        sum(1 / np.log(degree[w]) for w in range(90) if near[u, w] and near[v, w] and degree[w] > 1)
        for u, v in zip(one, other, strict=True)
    ]
    plain = {
        LinkBaseline.COMMON_NEIGHBOURS: common, LinkBaseline.ADAMIC_ADAR: weighed,
        LinkBaseline.FEATURES: (x[one] * x[other]).sum(1),
    }  # fmt: skip
    for kind in LinkBaseline:
        rows = kind.rows(task.graph, task.x)
        assert inner_products(rows, one, other) == pytest.approx(plain[kind], abs=1e-10), kind
        wide = inner_products(rows, one, np.stack([other, np.full(200, -1), one], 1))
        assert wide[:, 0] == pytest.approx(plain[kind], abs=1e-10), kind
        assert np.isnan(wide[:, 1]).all()


def test_sparse_features_are_compared_as_dense_ones_are(task):
    dense = (task.x > 1).float()
    sparse = datasets.features.sparse(scipy.sparse.csr_array(dense.numpy()))
    one, other = np.random.default_rng(1).integers(0, 90, (2, 50))
    rows = [LinkBaseline.FEATURES.rows(task.graph, x) for x in (dense, sparse)]
    assert inner_products(rows[0], one, other) == pytest.approx(inner_products(rows[1], one, other), abs=1e-12)


# -- the whole ---------------------------------------------------------------------------------------------------------


def test_an_evaluation_is_what_one_counts_by_hand(data, task):
    torch.manual_seed(0)
    model = us.models.APPNP(data.features.shape[1], 16, hidden=16).eval()
    found = train.evaluate_links(model, task, seed=5)
    with torch.no_grad():
        h = model(task.x, task.graph).double().numpy()
    pairs, yes, test = task.loss.pairs.numpy(), task.target.numpy() > 0.5, task.test.numpy()
    score = (h[pairs[test, 0]] * h[pairs[test, 1]]).sum(1)
    assert found.network.auc == pytest.approx(roc_auc_score(yes[test], score), abs=1e-12)
    assert found.network.average_precision == pytest.approx(average_precision_score(yes[test], score), abs=1e-12)
    rivals, ranks = draw_rivals(pairs[test][yes[test]], pairs[yes], data.nodes, seed=5), []
    for kept, end, others in zip(rivals.kept, rivals.found, rivals.others, strict=True):
        mine, against = h[kept] @ h[end], h[others[others >= 0]] @ h[kept]
        ranks.append(1 + (against > mine).sum())
    assert found.network.mrr == pytest.approx(np.mean(1 / np.array(ranks)), abs=1e-12)
    assert found.network.hits[10] == pytest.approx(np.mean(np.array(ranks) <= 10), abs=1e-12)
    assert sum(found.links) == found.protocol.test == int(yes[test].sum())
    assert sum(found.others) == int((~yes[test]).sum())
    assert found.protocol.train + found.protocol.valid + found.protocol.test == int(yes.sum())
    common = found.baselines[LinkBaseline.COMMON_NEIGHBOURS]
    near = plain_adjacency(task)
    assert common.auc == pytest.approx(
        roc_auc_score(yes[test], (near @ near)[pairs[test, 0], pairs[test, 1]]), abs=1e-12
    )


def test_an_evaluation_needs_links_that_were_held_back(data):
    with pytest.raises(InputError) as caught:
        train.evaluate_links(us.models.SGC(4, 4), train.Task.of(data), seed=0)
    assert caught.value.argument == "task"


def test_of_two_directions_the_larger_weight_counts(data):
    weight = torch.rand(data.edge_index.shape[1], generator=torch.Generator().manual_seed(0)) + 0.5
    uneven = datasets.from_tensors(data.edge_index, data.features, edge_weight=weight, directed=False)
    task = train.link_task(uneven, valid=0.1, test=0.0)
    kept = task.loss.pairs[task.train[task.target[task.train] == 1]]
    whole, graph = uneven.graph.to(torch.float64), task.graph.to(torch.float64)
    weights = [g.to_dense() * (g.degree[:, None] * g.degree).sqrt() for g in (whole, graph)]
    torch.testing.assert_close(*(w[kept[:, 0], kept[:, 1]] for w in weights))


def test_no_test_links_need_be_held_back(data):
    task = train.link_task(data, valid=0.1, test=0.0)
    assert task.test.numel() == 0
    assert not torch.isnan(task.graph.operator.forward.val).any()


def test_what_is_drawn_in_training_comes_from_the_seed(data):
    trial = train.Trial(us.models.SGC, {}, train.TrainConfig(epochs=4), seed=3)
    loader = train.TrialLoader(data, kind=train.TaskKind.LINKS)
    one, again = (train.train_trial(trial, loader)[1].best for _ in range(2))
    assert one == again
