"""Training on a spread graph is training: the same losses, snapshots, refusals; and a process that ends ends all."""

import os

import pytest
import torch

import unspool as us
from graph.ranks import on_ranks, said
from unspool import datasets, train
from unspool.models.spreading import why_not_spread
from unspool.ops import SparseFeatures
from unspool.train import upper

LAYOUTS = {"columns": us.graph.Columns(), "rows": us.graph.Rows()}
#: Those whose layers look at edges themselves, go to a minimiser, or have a forward of their own.
REFUSED = {"PPNP", "ElasticGNN", "PGNN", "TWIRLS", "FairGNN", "SignedGNN", "TrustGNN"}
FEW = (us.models.GPRGNN, us.models.UGDGNN, us.models.GCN)


def task(sparse=False):
    data = datasets.contextual_sbm(nodes=60, classes=3, seed=0)
    found = train.Task.of(data)
    if not sparse:
        return found
    kept = torch.rand(found.x.shape, generator=torch.Generator().manual_seed(1)) > 0.5
    x = SparseFeatures.from_tensor(found.x * kept)
    return train.Task(x, found.graph, found.target, found.train, found.valid, found.test)


def fitted(kind, sparse=False, epochs=4, settings=None, **how):
    """Losses and scores of each epoch; masks of dropout are drawn in every one."""
    torch.manual_seed(5)
    learnt = task(sparse)
    model = kind(learnt.x.shape[1], 3, **(settings or {}))
    run = train.fit(model, learnt, train.TrainConfig(epochs=epochs, lr=0.02), **how)
    return torch.tensor([epoch.to_list() for epoch in run.history], dtype=torch.float64)


def runs(models):
    each_hop = {"masks": us.models.Masks.EACH_HOP}
    return [*((kind, sparse, {}) for kind in models for sparse in (False, True)), (us.models.GPRGNN, False, each_hop)]


def work(models, folder=None):
    def of(rank):
        found = {}
        for name, layout in LAYOUTS.items():
            for place, (kind, sparse, settings) in enumerate(runs(models)):
                found[name, place] = fitted(kind, sparse, settings=settings, spread=layout)
        if folder is not None:
            found |= more(rank, folder)
        return found

    return of


def more(rank, folder):
    """Snapshots, refusals, and at last the end of process 1."""
    layout, file = LAYOUTS["rows"], folder / f"run{rank}.pt"  # of which that of process 0 alone is written
    alone = folder / "alone.pt"
    found = {
        "begun": fitted(us.models.GCN, epochs=2, spread=layout, snapshot=folder / "run0.pt" if rank == 0 else file),
        "continued": fitted(us.models.GCN, spread=layout, snapshot=folder / "run0.pt" if rank == 0 else file),
        "from one process": fitted(us.models.GCN, spread=layout, snapshot=alone),
        "settings": said(lambda: fitted(us.models.GCN, settings={"hidden": 8 + rank}, spread=layout)),
        "epochs": said(lambda: fitted(us.models.GCN, epochs=2 + rank, spread=layout)),
        "stopped": fitted(us.models.GCN, spread=layout, callbacks=[stops(rank)]),
    }
    leave = [lambda moment: os._exit(7) if moment.epoch == 2 else None] if rank == 1 else []
    last = {"snapshot": folder / "last.pt", "snapshot_every": 0.0, "spread": layout, "callbacks": leave}
    return found | {"lost": said(lambda: fitted(us.models.GCN, **last))}


def stops(rank):
    """A callback of one process alone asks to stop after two epochs."""
    return lambda moment: train.Verdict.STOP if rank == 1 and moment.epoch == 2 else None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("spread")


@pytest.fixture(scope="module")
def found(folder):
    fitted(us.models.GCN, epochs=2, snapshot=folder / "alone.pt")
    first, _ = on_ranks(2, work(FEW, folder), gone=(1,))
    return first


def check(models, found):
    for place, (kind, sparse, settings) in enumerate(runs(models)):
        alone = fitted(kind, sparse, settings=settings)
        for name in LAYOUTS:
            together = found[name, place]
            where = (kind.__name__, sparse, settings, name)
            # GRAFF's loss is the largest and moves most.
            near = 1e-5 if kind is us.models.GRAFF else 1e-6
            assert (together[:, 1:3] - alone[:, 1:3]).abs().max() <= near, where
            assert torch.equal(together[:, 3:], alone[:, 3:]), where


def test_losses_and_scores_are_those_of_one_process(found):
    check(FEW, found)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 4])
def test_every_model_on_any_number_of_processes(size):
    models = [kind for kind in us.models.MODELS if kind.__name__ not in REFUSED]
    for told in on_ranks(size, work(models)):
        check(models, told)


def test_a_run_goes_on_where_it_was_and_on_any_number_of_processes(found, folder):
    whole = fitted(us.models.GCN)
    assert len(found["begun"]) == 2
    for name in ("continued", "from one process"):
        assert (found[name] - whole).abs().max() <= 1e-6, name
    assert not (folder / "run1.pt").exists()
    back = fitted(us.models.GCN, epochs=6, snapshot=folder / "run0.pt")  # on one process again
    assert torch.equal(back[:4], found["continued"])


def test_processes_that_were_told_different_things_are_refused(found):
    assert "process 1 has settings other than process 0" in found["settings"]
    assert "process 1 has a training configuration other than process 0" in found["epochs"]


def test_one_process_that_asks_to_stop_stops_all(found):
    assert len(found["stopped"]) == 2


def test_a_process_that_ends_ends_the_others_and_leaves_the_snapshot_whole(found, folder):
    assert found["lost"].startswith("RankLost: another of the 2 processes ended")
    whole = fitted(us.models.GCN)
    gone_on = fitted(us.models.GCN, snapshot=folder / "last.pt")
    assert (gone_on - whole).abs().max() <= 1e-6


def test_models_that_see_more_than_products_are_refused():
    told = {kind.__name__: why_not_spread(kind(5, 3)) for kind in us.models.MODELS}
    assert {name for name, why in told.items() if why is not None} == REFUSED
    assert all(name in why for name, why in told.items() if why is not None)
    assert "batch_norm=False" in why_not_spread(us.models.GCN(5, 3, batch_norm=True))
    assert "Implicit" in why_not_spread(us.models.APPNP(5, 3).solve_exactly())


class Centred(torch.nn.Module):
    def forward(self, x, graph):
        return graph @ (x - x.mean(0))


class Plain(torch.nn.Module):
    node_by_node = True

    def forward(self, x, graph):
        return graph @ x


class OwnModel(us.models.Model):
    def build(self):
        self.p_pre = Centred()
        self.propagation = us.HopNetwork([0.5, 0.5])


def test_a_module_of_ones_own_says_that_it_sees_nodes_one_by_one():
    assert "node_by_node = True" in why_not_spread(Centred())
    assert "Centred may look at all nodes" in why_not_spread(OwnModel(3, 3))
    assert why_not_spread(Plain()) is None
    net = us.unroll(us.Fidelity(1.0) + us.Smoothness(1.0), us.GradientDescent(step=0.25), depth=2)
    assert why_not_spread(net) is None
    other = us.unroll(
        us.Fidelity(1.0) + us.Smoothness(1.0) + us.NonNegative(), us.Anderson(us.ProximalGradient(step=0.25)), depth=2
    )
    assert "Anderson may look at all nodes" in why_not_spread(other)


@pytest.mark.parametrize(
    "config",
    [
        {"batch_size": 8},
        {"precision": train.Precision.BFLOAT16},
        {"upper": train.CrossEntropy() + 0.1 * upper.Entropy()},
    ],
    ids=str,
)
def test_what_takes_other_paths_is_refused(config):
    learnt = task()
    with pytest.raises(us.IncompatibleError):
        train.fit(us.models.GCN(learnt.x.shape[1], 3), learnt, train.TrainConfig(**config), spread=us.graph.Columns())


def test_without_processes_the_way_to_start_them_is_named():
    learnt = task()
    with pytest.raises(us.IncompatibleError, match="torchrun"):
        train.fit(us.models.GCN(learnt.x.shape[1], 3), learnt, train.TrainConfig(), spread=us.graph.Rows())
