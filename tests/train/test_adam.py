"""Our Adam is torch's, bit for bit."""

import pytest
import torch

from unspool.train.adam import Adam


def parameters(dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    return [torch.nn.Parameter(torch.randn(s, generator=generator).to(dtype)) for s in ((5, 3), (7,), (), (64, 64))]


def groups(held):
    return [{"params": held[:2], "weight_decay": 5e-4}, {"params": held[2:], "weight_decay": 0.0}]


def gradient(held, step):
    generator = torch.Generator().manual_seed(step)
    for p in held:
        p.grad = torch.randn(p.shape, generator=generator).to(p.dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_numbers_of_torch(dtype):
    a, b = parameters(dtype), parameters(dtype)
    ours, theirs = Adam(groups(a), lr=0.01), torch.optim.Adam(groups(b), lr=0.01, fused=True)
    for step in range(25):
        gradient(a, step)
        gradient(b, step)
        if step == 10:
            a[1].grad = b[1].grad = None  # a parameter that was not used in this step
        ours.step()
        theirs.step()
        assert all(torch.equal(p, q) for p, q in zip(a, b, strict=True))


def test_its_state_comes_back():
    a, b = parameters(), parameters()
    first = Adam(groups(a), lr=0.01)
    for step in range(5):
        gradient(a, step)
        first.step()
    with torch.no_grad():
        for p, q in zip(b, a, strict=True):
            p.copy_(q)
    second = Adam(groups(b), lr=0.01)
    second.load_state_dict(first.state_dict())
    for held, adam in ((a, first), (b, second)):
        gradient(held, 99)
        adam.step()
    assert all(torch.equal(p, q) for p, q in zip(a, b, strict=True))
    wrong = Adam([{"params": [torch.nn.Parameter(torch.zeros(2, 2))]}], lr=0.01)
    with pytest.raises(ValueError, match=r"moments of shape \(5, 3\) for a parameter of \(2, 2\)"):
        wrong.load_state_dict(first.state_dict())


def test_gradients_are_forgotten():
    held = parameters()
    adam = Adam(groups(held), lr=0.01)
    gradient(held, 0)
    adam.zero_grad(set_to_none=False)
    assert all(float(p.grad.abs().sum()) == 0 for p in held)
    adam.zero_grad()
    assert all(p.grad is None for p in held)
