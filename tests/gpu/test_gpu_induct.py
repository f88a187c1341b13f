"""New nodes and batches that are graphs, on a GPU, against the CPU."""

import copy

import pytest
import torch

import unspool as us
from unspool import datasets, deploy, models, train

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=300, classes=3, seed=0)


@pytest.mark.parametrize("kind", [models.SGC, models.GCN, models.GPRGNN, models.PPNP])
@pytest.mark.parametrize("sparse", [False, True])
def test_new_nodes(kind, sparse, data):
    x = data.features.to_dense().double() if not isinstance(data.features, torch.Tensor) else data.features.double()
    old, graph, edges = (
        x[:298],
        data.graph.subgraph(torch.arange(298)).to(torch.float64),
        [[298, 299, 299], [4, 9, 298]],
    )
    old = us.nn.SparseFeatures.from_tensor(old) if sparse else old
    model = kind(x.shape[1], 3).double().eval()
    wanted = deploy.predict_new_nodes(model, old, graph, x[298:], edges).output
    found = deploy.predict_new_nodes(model.to("cuda"), old.to("cuda"), graph.to("cuda"), x[298:].to("cuda"), edges)
    assert torch.allclose(found.output.cpu(), wanted, atol=1e-8)
    whole = us.graph.enlarged(graph.to("cuda"), 2, edges)
    assert torch.allclose(whole.to_dense().cpu(), us.graph.enlarged(graph, 2, edges).to_dense())


@pytest.mark.parametrize("degrees", us.graph.Degrees)
def test_batches(degrees, data):
    torch.manual_seed(0)
    model = models.GCN(data.features.shape[1], 3, hidden=8, dropout=0.0)
    losses = []
    for device in ("cpu", "cuda"):
        task, net = train.Task.of(data).to(device), copy.deepcopy(model).to(device)
        source = train.ClusterBatches(task, many=6, at_once=2, degrees=degrees)
        run = train.fit(net, task, train.TrainConfig(epochs=5), batches=source)
        losses.append(torch.tensor([epoch.train_loss for epoch in run.history]))
    assert torch.allclose(losses[0], losses[1], rtol=1e-4)
