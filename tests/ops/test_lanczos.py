"""Lanczos' method against dense eigenvalues, for vectors of NumPy and torch and for columns."""

import numpy as np
import pytest
import torch

from unspool.ops.lanczos import Lanczos


def symmetric(size=40):
    root = torch.randn(size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return (root + root.T) / 2


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_outer_ritz_values_are_eigenvalues(kind):
    matrix = symmetric() if kind == "torch" else symmetric().numpy()
    start = torch.ones(40, dtype=torch.float64) if kind == "torch" else np.ones(40)
    run = Lanczos(lambda v: matrix @ v, start)
    for _ in range(40):
        run.step()
    dense = np.linalg.eigvalsh(np.asarray(matrix))
    for index in (0, -1):
        value, miss = run.ritz(index)
        assert abs(value - dense[index]) <= miss + 1e-10 < 1e-4


def test_quadrature_gives_quadratic_forms_of_functions():
    matrix, columns = symmetric(), torch.randn(40, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    columns[:, 2] = 0  # nothing to follow: no weight, and no division by zero
    run = Lanczos(lambda v: matrix @ v, columns)
    for _ in range(20):
        run.step()
    node, weight = run.quadrature()
    wanted = (columns * (torch.linalg.matrix_exp(0.1 * matrix) @ columns)).sum(0)
    torch.testing.assert_close((weight * torch.exp(0.1 * node)).sum(-1), wanted)


def test_an_exhausted_space_is_told_by_the_last_coupling():
    run = Lanczos(lambda v: 2 * v, torch.ones(5, dtype=torch.float64))
    run.step()
    assert run.beside[-1] < 1e-12
    assert run.ritz(-1)[0] == pytest.approx(2)
