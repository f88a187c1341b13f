"""Which models the fast kernels know, and what they need to know about them."""

import numpy as np
import pytest

from reference.cases import doubles
from study.batch.kernel.kernel_cases import members_of, task_of
from unspool import models
from unspool.study.batch.kernel import KernelBatch, blueprint
from unspool.study.batch.kernel.blueprints import minimiser_terms
from unspool.train import LowerLevel, PreparedTrial, TrainConfig, Trial


@pytest.fixture(autouse=True)
def _double():
    with doubles():
        yield


def test_settings_without_a_kernel_have_no_blueprint():
    free = models.UGDGNN(5, 3, mixing=models.ugdgnn.Mixing.FREE)
    for model in (free, models.GCN(5, 3, depth=3), models.GCN(5, 3, batch_norm=True), models.JKNet(5, 3, hidden=20)):
        assert blueprint(model) is None
    stranger = PreparedTrial(members_of("UGDGNN", task_of())[0].trial, free, task_of())
    with pytest.raises(ValueError, match="use StackedBatch"):
        KernelBatch([stranger])


@pytest.mark.parametrize("name", ["UGDGNN", "GPRGNN", "APPNP"])
def test_one_mask_and_one_mask_per_hop_never_share_a_batch(name):
    kind = getattr(models, name)
    once, each = (blueprint(kind(5, 3, masks=masks)) for masks in models.Masks)
    assert once is not None
    assert each is not None
    assert once.shape != each.shape
    assert each.shape == blueprint(kind(5, 3, depth=2, masks=models.Masks.EACH_HOP, propagation_dropout=0.1)).shape
    mixed = [members_of(name, task_of())[0], members_of(f"{name}-each", task_of())[0]]
    with pytest.raises(ValueError, match="blueprints agree"):
        KernelBatch(mixed)


def test_classes_beyond_sixteen_and_frozen_weights_have_no_blueprint():
    assert blueprint(models.UGDGNN(5, 17)) is None
    frozen = models.UGDGNN(5, 3)
    frozen.propagation.gamma.requires_grad_(False)
    assert blueprint(frozen) is None


def test_an_exact_lower_level_has_no_blueprint():
    """The kernels take steps; trained by them, the minimiser would be mistaken for K of its steps."""
    steps, exact = (Trial(models.APPNP, config=TrainConfig(lower_level=level)).build(5, 3) for level in LowerLevel)
    assert blueprint(steps) is not None
    assert blueprint(exact) is None
    steps, exact = (Trial(models.PPNP, config=TrainConfig(lower_level=level)).build(5, 3) for level in LowerLevel)
    assert blueprint(steps) == blueprint(exact) is not None  # it is a minimiser either way


def test_a_model_with_parts_of_another_has_no_blueprint():
    appnp = models.APPNP(5, 3)
    assert blueprint(models.GPRGNN(5, 3, depth=10)) is not None
    assert blueprint(models.GPRGNN.from_model(appnp)) is None


def test_a_class_of_ones_own_has_no_blueprint():
    class Mine(models.GCN):
        hidden = 16

    assert blueprint(Mine(5, 3)) is None


def test_a_loose_or_long_solution_is_left_to_conjugate_gradients():
    assert blueprint(models.PPNP(5, 3, tolerance=1e-10)) is not None
    assert blueprint(models.PPNP(5, 3, tolerance=1e-2)) is None  # another solution than the exact one
    assert blueprint(models.PPNP(5, 3, teleport=0.02)) is not None
    for teleport in (1e-4, 1e-16):  # thousands of terms, whose signals would all be kept
        assert blueprint(models.PPNP(5, 3, teleport=teleport)) is None


@pytest.mark.parametrize("teleport", [1.0, 0.999999, 0.9, 0.5, 0.1, 0.02])
def test_the_terms_of_the_minimiser_are_its_chebyshev_series(teleport):
    terms = minimiser_terms(teleport, 2e-16).numpy()
    a = np.cos(np.linspace(0, np.pi, 50))
    want = teleport / (1 - (1 - teleport) * a)
    np.testing.assert_allclose(np.polynomial.chebyshev.chebval(a, terms), want, rtol=0, atol=1e-14)


def test_what_the_kernels_cannot_hold_has_no_blueprint():
    assert blueprint(models.GCNII(5, 3, hidden=64)) is not None
    assert blueprint(models.GCNII(5, 3, hidden=128)) is None  # a layer's matrices exceed the shared memory of an H200
    assert blueprint(models.JKNet(5, 3)) is not None
    assert blueprint(models.JKNet(5, 3, channels=models.Channels.CLASSES)) is None
