"""Sparse features: read from everything, prepared once per tensor, and never stale."""

import gc
import pickle

import numpy as np
import pytest
import scipy.sparse
import torch

from unspool.ops import features
from unspool.ops.features import SparseFeatures, features_of

DENSE = torch.randn(7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).clamp_min(0)


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x, lambda x: x.to_sparse(), lambda x: x.to_sparse_csr(), lambda x: x.to_sparse_csc(),
        lambda x: scipy.sparse.csr_array(x.numpy()), lambda x: scipy.sparse.coo_matrix(x.numpy()),
        lambda x: scipy.sparse.csc_matrix(x.numpy()),
    ],
    ids=["dense", "coo", "csr", "csc", "scipy csr", "scipy coo", "scipy csc"],
)  # fmt: skip
def test_reads_every_form(read):
    x = SparseFeatures.from_tensor(read(DENSE))
    assert torch.equal(x.to_dense(), DENSE)
    assert x.shape == (7, 5)
    assert x.dtype == torch.float64
    assert x.values.numel() == int((DENSE != 0).sum())
    w = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    assert torch.allclose(x @ w, DENSE @ w, atol=1e-14)
    (slope,) = torch.autograd.grad((x @ w).square().sum(), w)
    assert torch.allclose(slope, 2 * DENSE.T @ (DENSE @ w), atol=1e-12)


def test_repeated_entries_add_and_zeros_go():
    index, value = torch.tensor([[0, 0, 1], [1, 1, 0]]), torch.tensor([1.0, 2.0, 0.0])
    x = SparseFeatures.from_tensor(torch.sparse_coo_tensor(index, value, (2, 2)))
    assert x.to_dense().tolist() == [[0.0, 3.0], [0.0, 0.0]]
    assert x.values.tolist() == [3.0]


@pytest.mark.parametrize("shape", [(4, 3), (1, 1), (0, 3)])
def test_features_without_entries(shape):
    x = SparseFeatures.from_tensor(torch.zeros(shape))
    assert (x @ torch.ones(shape[1], 2)).shape == (shape[0], 2)
    assert not (x @ torch.ones(shape[1], 2)).any()


def test_casting_and_printing():
    x = SparseFeatures.from_tensor(DENSE)
    assert torch.equal(x.to(torch.float32).to_dense(), DENSE.float())
    assert torch.equal(x.to("cpu").to_dense(), DENSE)
    assert str(x) == f"SparseFeatures(nodes=7, features=5, entries={int((DENSE != 0).sum())}, float64, cpu)"
    assert torch.equal(pickle.loads(pickle.dumps(x)).to_dense(), DENSE)
    assert SparseFeatures.from_tensor(DENSE.bfloat16()).dtype == torch.float32


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([[1.0]], "features of type list: expected a torch tensor or a SciPy sparse matrix"),
        (torch.ones(3), r"features of shape \(3,\): expected \(nodes, features\)"),
        (torch.ones(2, 2, 2).to_sparse(), r"features of shape \(2, 2, 2\)"),
        (torch.ones(2, 2).long(), r"features hold int64: expected floating-point numbers; call x.float\(\)"),
        (scipy.sparse.eye_array(3, dtype=int).tocsr(), "features hold int"),
    ],
)
def test_bad_features_are_named(given, words):
    with pytest.raises((TypeError, ValueError), match=words):
        SparseFeatures.from_tensor(given)


# -- the memo ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_a_tensor_is_prepared_once(layout):
    x = DENSE.to_sparse() if layout == "coo" else DENSE.to_sparse_csr()
    assert features_of(x) is features_of(x)
    twin = x.clone()
    assert features_of(twin) is not features_of(x)


def test_dense_tensors_and_features_pass():
    ready = SparseFeatures.from_tensor(DENSE)
    assert features_of(DENSE) is DENSE
    assert features_of(ready) is ready


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_a_change_in_place_is_seen(layout):
    x = DENSE.to_sparse().coalesce() if layout == "coo" else DENSE.to_sparse_csr()
    before = features_of(x)
    x.mul_(2.0)
    assert torch.equal(features_of(x).to_dense(), 2 * DENSE)
    assert torch.equal(before.to_dense(), DENSE)
    (x._values() if layout == "coo" else x.values()).mul_(2.0)  # through a view of its entries
    assert torch.equal(features_of(x).to_dense(), 4 * DENSE)


@pytest.mark.parametrize("change", ["numpy", "data"])
@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_a_change_behind_the_version_counter_is_seen(layout, change):
    array = np.array([1.0, 2.0, 3.0], dtype=np.float32)
    values = torch.from_numpy(array)
    if layout == "coo":
        index = torch.tensor([[0, 1, 2], [0, 1, 2]])
        x = torch.sparse_coo_tensor(index, values, (3, 3), check_invariants=False, is_coalesced=True)
    else:
        make = torch.sparse_csr_tensor if layout == "csr" else torch.sparse_csc_tensor
        x = make(torch.arange(4), torch.arange(3), values, (3, 3), check_invariants=False)
    features_of(x)
    if change == "numpy":
        array[0] = 9.0
    else:
        (x._values() if layout == "coo" else x.values()).data[0] = 9.0
    assert float(features_of(x).to_dense()[0, 0]) == float(x.to_dense()[0, 0]) == 9.0


@pytest.mark.long
def test_the_dead_are_forgotten():
    gc.collect()
    before = len(features._MADE)
    x = DENSE.to_sparse()
    features_of(x)
    assert len(features._MADE) == before + 1
    del x
    gc.collect()
    assert len(features._MADE) == before


def test_a_new_tensor_at_an_old_address_is_read_anew():
    for scale in range(1, 30):
        x = (scale * DENSE).to_sparse()
        assert torch.equal(features_of(x).to_dense(), scale * DENSE)
        del x


def test_gradients_of_the_features_are_not_lost_in_silence():
    """Sparse features are constants: asking for their gradient is refused, not answered with nothing."""
    x = DENSE.to_sparse().requires_grad_()
    assert SparseFeatures.from_tensor(x).to_dense().requires_grad is False  # on request they become constants
    with pytest.raises(TypeError, match="gradient"):
        features_of(x)


def test_a_first_call_in_inference_mode_does_no_harm():
    x = DENSE.to_sparse()
    with torch.inference_mode():
        features_of(x)
        assert torch.equal(features_of(DENSE.to_sparse()).to_dense(), DENSE)
    w = torch.ones(5, 2, dtype=torch.float64, requires_grad=True)
    (features_of(x) @ w).square().sum().backward()
    assert torch.allclose(w.grad, 2 * DENSE.T @ DENSE @ torch.ones(5, 2, dtype=torch.float64))
