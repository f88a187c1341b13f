"""Sparse features give what dense ones give, in evaluation and, with the same dropped entries, in training."""

import copy

import pytest
import scipy.sparse
import torch

import unspool as us
from reference.cases import CASES, build, close, edge_lists, slopes, sparse_signal

pytestmark = pytest.mark.long


INDEX, WEIGHTS, NODES = edge_lists()["weighted"]
FORMS = {
    "coo": lambda x: x.to_sparse(),
    "csr": lambda x: x.to_sparse_csr(),
    "features": us.nn.SparseFeatures.from_tensor,
    "scipy": lambda x: scipy.sparse.csr_array(x.numpy()),
}


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CASES)
def test_sparse_is_dense(name, form, training):
    graph = us.Graph.from_edges(INDEX, nodes=NODES, weights=WEIGHTS).to(torch.float64)
    model, x = build(name).train(training), sparse_signal(NODES)
    twin = copy.deepcopy(model)
    sparse = FORMS[form](x)
    for _ in range(2 if training else 1):  # the second call has masks of its own
        expected, out = twin(x, graph), model(sparse, graph)
        assert close(out, expected)
        for mine, theirs in zip(slopes(out, model), slopes(expected, twin), strict=True):
            assert close(mine, theirs)


@pytest.mark.parametrize("name", CASES)
def test_sparse_features_with_an_edge_list(name):
    model, x = build(name).eval(), sparse_signal(NODES)
    assert close(model(x.to_sparse(), INDEX, WEIGHTS), model(x, INDEX, WEIGHTS))


@pytest.mark.parametrize("name", [n for n, (_, settings) in CASES.items() if "dropout" in settings])
def test_training_drops_and_evaluation_does_not(name):
    model, x = build(name), sparse_signal(NODES)
    first, second = model(x, INDEX, WEIGHTS), model(x, INDEX, WEIGHTS)
    assert not close(first, second, 1e-3)
    assert torch.equal(model.eval()(x, INDEX, WEIGHTS), model(x, INDEX, WEIGHTS))


def test_a_row_without_entries_is_a_row_of_zeros():
    model, graph = us.models.MLP(3, 2).eval(), None
    empty = torch.zeros(4, 3).to_sparse()
    assert torch.equal(model(empty, graph), model(torch.zeros(4, 3), graph))
