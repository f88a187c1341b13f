"""One process on a GPU with NCCL: what several would say to each other, said to oneself. More than one GPU was never at hand."""

import pytest
import torch
from torch import distributed

import unspool as us
from unspool import datasets, train
from unspool.ops import propagate

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

LAYOUTS = {"columns": us.graph.Columns(), "rows": us.graph.Rows()}


@pytest.fixture(scope="module", autouse=True)
def _nccl(tmp_path_factory):
    store = tmp_path_factory.mktemp("nccl") / "store"
    distributed.init_process_group(
        "nccl", init_method=f"file://{store}", rank=0, world_size=1, device_id=torch.device("cuda", 0)
    )
    yield
    distributed.destroy_process_group()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("shape", [(6,), (6, 16), (6, 16, 8)], ids=["numbers", "diagonals", "matrices"])
def test_outputs_and_gradients_are_those_of_the_graph(layout, directed, shape):
    chance = torch.Generator().manual_seed(0)
    edges = torch.randint(0, 500, (2, 4000), generator=chance).unique(dim=1)
    graph = us.Graph.from_edges(edges[:, edges[0] != edges[1]], 510, directed=directed).to("cuda")
    x, hops = torch.randn(510, 16, generator=chance).cuda(), torch.randn(shape, generator=chance).cuda()
    found = []
    for spread in (None, LAYOUTS[layout]):
        here = graph if spread is None else us.graph.spread(graph, spread)
        own, c = x.clone().requires_grad_(), hops.clone().requires_grad_()
        y = propagate(here, own, c)
        y = y if spread is None else here.gather(y)
        y.square().mean().backward()
        found.append((y.detach(), own.grad, c.grad))
    for alone, spread in zip(*found, strict=True):
        torch.testing.assert_close(spread, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", [us.models.GPRGNN, us.models.UGDGNN, us.models.GCN])
def test_training_is_that_of_the_graph(layout, kind):
    data = datasets.load("citeseer").row_normalised()
    task, losses = train.Task.of(data).to("cuda"), []
    for spread in (None, LAYOUTS[layout]):
        torch.manual_seed(0)
        model = kind(data.features.shape[1], len(data.classes)).cuda()
        run = train.fit(model, task, train.TrainConfig(epochs=10), spread=spread)
        losses.append(torch.tensor([[epoch.train_loss, epoch.valid_loss] for epoch in run.history]))
    torch.testing.assert_close(losses[1], losses[0], rtol=0, atol=1e-4)


def test_a_graph_elsewhere_is_refused():
    with pytest.raises(us.IncompatibleError, match="the graph is on cpu"):
        us.graph.spread(us.graph.ring(5), us.graph.Columns())
