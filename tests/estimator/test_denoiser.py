"""Denoising: formulas against dense matrices, unbiasedness, closeness to the best weight, symmetries."""

import numpy as np
import pytest
import scipy.sparse
import torch

import unspool as us
from unspool.denoise import content, weight
from unspool.denoise.weight import noise_level
from unspool.estimator import GCV, SURE, GraphDenoiser
from unspool.graph import Normalisation

KINDS = {"symmetric": {}, "no loops": {"loops": 0}, "not normalised": {"normalise": Normalisation.NONE}}
CANDIDATES = (0.02, 0.3, 0.9)


def smoother(graph, alpha):
    n = graph.nodes
    lap = graph.to(torch.float64).laplacian().to_dense().numpy()
    return alpha * np.linalg.inv(alpha * np.eye(n) + (1 - alpha) * lap)


@pytest.fixture(params=KINDS)
def scene(request):
    graph, place = us.graph.sensor(80, seed=1, **KINDS[request.param])
    random = np.random.default_rng(0)
    clean = np.stack([np.sin(4 * place[:, 0].numpy()), place[:, 1].numpy()], axis=1).astype(float)
    return graph, clean, clean + 0.3 * random.standard_normal(clean.shape)


def test_denoised_is_the_dense_solution(scene):
    graph, _, noisy = scene
    for alpha in CANDIDATES:
        denoiser = GraphDenoiser(alpha).fit(noisy, graph=graph)
        assert np.allclose(denoiser.denoised_, smoother(graph, alpha) @ noisy, atol=1e-8)
        assert np.array_equal(denoiser.fit_transform(noisy, graph=graph), denoiser.transform(noisy))
        assert np.allclose(denoiser.transform(2 * noisy[::-1]), smoother(graph, alpha) @ (2 * noisy[::-1]), atol=1e-8)
        assert denoiser.weight_ == alpha
    assert np.allclose(GraphDenoiser(1.0).fit_transform(noisy, graph=graph), noisy)


def test_scores_are_the_dense_formulas(scene):
    graph, _, noisy = scene
    n, d = noisy.shape
    gcv = GraphDenoiser(GCV(CANDIDATES)).fit(noisy, graph=graph)
    sure = GraphDenoiser(SURE(CANDIDATES, noise=0.3)).fit(noisy, graph=graph)
    assert np.array_equal(gcv.curve_[:, 0], CANDIDATES)
    for row, alpha in enumerate(CANDIDATES):
        s = smoother(graph, alpha)
        residual, freedom = ((noisy - s @ noisy) ** 2).sum(), np.trace(s)
        assert np.isclose(gcv.curve_[row, 1], residual / (n * d) / (1 - freedom / n) ** 2, rtol=1e-10)
        assert np.isclose(sure.curve_[row, 1], residual / (n * d) - 0.09 + 2 * 0.09 * freedom / n, rtol=1e-10)
    for found in (gcv, sure):
        assert found.weight_ == found.curve_[found.curve_[:, 1].argmin(), 0]
        assert np.allclose(found.denoised_, smoother(graph, found.weight_) @ noisy, atol=1e-8)
    s = smoother(graph, gcv.weight_)
    left = d * (n - np.trace(s))
    assert np.isclose(gcv.noise_, np.sqrt(((noisy - s @ noisy) ** 2).sum() / left))
    assert sure.noise_ == 0.3


def test_noise_level_is_its_dense_formula(scene):
    graph, _, noisy = scene
    lap = graph.to(torch.float64).laplacian().to_dense().numpy()
    square = lap @ lap
    relative = np.abs(square @ noisy) / np.linalg.norm(square, axis=1, keepdims=True)
    found = noise_level(torch.as_tensor(noisy), graph.to(torch.float64))
    assert np.isclose(found, np.sort(relative.ravel())[(relative.size - 1) // 2] / 0.6744897501960817)


@pytest.mark.long
def test_sure_is_unbiased_for_the_risk(scene):
    graph, clean, _ = scene
    rule, draws = SURE(CANDIDATES, noise=0.4), 400
    exact = graph.to(torch.float64)
    random = np.random.default_rng(5)
    smoothers = [smoother(graph, alpha) for alpha in CANDIDATES]
    gap = []
    for _ in range(draws):
        noisy = clean + 0.4 * random.standard_normal(clean.shape)
        loss = [((s @ noisy - clean) ** 2).mean() for s in smoothers]
        gap.append(rule.choose(torch.as_tensor(noisy), exact).curve[:, 1] - loss)
    gap = np.array(gap)
    # The mean of the differences is zero up to four standard errors, far below the risks themselves.
    error = gap.std(axis=0) / np.sqrt(draws)
    assert np.all(np.abs(gap.mean(axis=0)) < 4 * error)
    assert np.all(error < 0.05 * 0.16)


@pytest.mark.long
@pytest.mark.parametrize("sigma", [0.5, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_chosen_weights_are_near_the_best(kind, sigma):
    graph, place = us.graph.sensor(500, seed=2, **KINDS[kind])
    place = place.double().numpy()
    clean = np.sin(6 * place[:, 0]) + np.cos(5 * place[:, 1])
    value, mode = us.graph.frequencies_and_modes(graph)
    value, mode = value.clamp_min(0).numpy(), mode.numpy()
    limits = {"gcv": 1.5, "known": 1.1, "estimated": 1.15}
    ratio = {name: [] for name in limits}
    for seed in range(3):
        noisy = clean + sigma * np.random.default_rng(seed).standard_normal(500)
        losses = {}
        rules = {"gcv": GCV(), "known": SURE(noise=sigma), "estimated": SURE()}
        choices = {n: r.choose(torch.as_tensor(noisy)[:, None], graph) for n, r in rules.items()}
        for alpha in choices["gcv"].curve[:, 0]:
            passed = alpha / (alpha + (1 - alpha) * value)
            losses[alpha] = ((mode @ (passed * (mode.T @ noisy)) - clean) ** 2).mean()
        for name, choice in choices.items():
            ratio[name].append(losses[choice.weight] / min(losses.values()))
        assert abs(choices["estimated"].noise / sigma - 1) < 0.15
    for name, limit in limits.items():
        assert np.mean(ratio[name]) < limit, (name, ratio[name])


@pytest.mark.parametrize("rule", [GCV(), SURE(), SURE(noise=0.3), 0.2], ids=str)
def test_permutations_and_units_pass_through(rule, scene):
    graph, _, noisy = scene
    plain = GraphDenoiser(rule).fit(noisy, graph=graph)
    order = np.random.default_rng(0).permutation(len(noisy))
    i, j = us.graph.edge_list(graph).numpy()
    place = np.argsort(order)
    weights = np.asarray(graph.to(torch.float64).to_scipy()[i, j]).ravel()
    bare = us.Graph.from_edges(
        np.stack([i, j]), nodes=80, weights=weights, directed=False, loops=0, normalise=Normalisation.NONE
    )
    moved = us.Graph.from_edges(
        np.stack([place[i], place[j]]),
        nodes=80,
        weights=weights,
        directed=False,
        loops=0,
        normalise=Normalisation.NONE,
    )
    here = GraphDenoiser(rule).fit(noisy, graph=bare)
    there = GraphDenoiser(rule).fit(noisy[order], graph=moved)
    assert np.isclose(there.weight_, here.weight_, rtol=1e-12)
    assert np.allclose(there.denoised_, here.denoised_[order], atol=1e-8)
    scaled = SURE(noise=3.0) if rule == SURE(noise=0.3) else rule
    tenfold = GraphDenoiser(scaled).fit(10 * noisy, graph=graph)
    assert np.isclose(tenfold.weight_, plain.weight_, rtol=1e-12)
    assert np.allclose(tenfold.denoised_, 10 * plain.denoised_, atol=1e-7)
    if plain.noise_ is not None:
        assert np.isclose(tenfold.noise_, 10 * plain.noise_)


@pytest.mark.parametrize("rule", [GCV(), SURE()], ids=str)
def test_units_of_edge_weights_pass_through(rule):
    noisy = np.random.default_rng(0).standard_normal(30) + np.arange(30) / 5
    edges, how = np.stack([np.arange(29), np.arange(1, 30)]), {"directed": False, "normalise": Normalisation.NONE}
    found = []
    for unit in (1.0, 1e6):
        graph = us.Graph.from_edges(edges, nodes=30, weights=np.full(29, unit), **how)
        found.append(GraphDenoiser(rule).fit_transform(noisy, graph=graph))
    assert np.allclose(found[0], found[1], atol=1e-6)
    assert not np.allclose(found[0], noisy, atol=0.1)


def test_large_graphs_come_close_with_probes(monkeypatch, sensors):
    graph, clean = sensors
    exact_graph = graph.to(torch.float64)
    noisy = torch.as_tensor(clean + 0.5 * np.random.default_rng(0).standard_normal(400))[:, None]
    alpha = torch.tensor([0.001, 0.01, 0.1, 0.5, 0.9], dtype=torch.float64)
    exact, level = content.Content.of(noisy, exact_graph), noise_level(noisy, exact_graph)
    chosen = GCV().choose(noisy, exact_graph)
    monkeypatch.setattr(content, "LARGEST_EXACT", 10)
    monkeypatch.setattr(weight, "LARGEST_EXACT", 10)
    probed = content.Content.of(noisy, exact_graph, probes=64)
    assert torch.allclose(probed.residual(alpha), exact.residual(alpha), rtol=1e-4)
    assert float((probed.trace(alpha) - exact.trace(alpha)).abs().max()) < 0.01 * 400
    assert abs(noise_level(noisy, exact_graph, probes=64) / level - 1) < 0.05
    assert np.allclose(GCV().choose(noisy, exact_graph).curve[:, 1], chosen.curve[:, 1], rtol=0.05)
    assert GCV(seed=1).choose(noisy, exact_graph).weight == GCV(seed=1).choose(noisy, exact_graph).weight


def test_quadrature_is_exact_once_the_space_is_exhausted():
    graph = us.graph.complete(30, loops=0).to(torch.float64)  # two frequencies: Lanczos ends after two steps
    x = torch.randn(30, 2, dtype=torch.float64)
    frequency, energy = content._quadrature(graph, x, 20)
    value, mode = us.graph.frequencies_and_modes(graph)
    for f in (torch.exp, lambda v: 1 / (0.1 + v), torch.ones_like):
        wanted = (f(value.clamp_min(0)) * (mode.T @ x).square().sum(1)).sum()
        assert torch.allclose((f(frequency) * energy).sum(), wanted, rtol=1e-10)
    zero = content._quadrature(graph, torch.zeros(30, 1, dtype=torch.float64), 5)
    assert float(zero[1].sum()) == 0


def test_objectives_of_ones_own_need_not_be_smooth(sensors):
    graph, clean = sensors
    random = np.random.default_rng(0)
    spiked = clean.copy()
    spiked[random.choice(400, 20, replace=False)] += 8  # few and large: what a row-sparse fidelity is for
    robust = us.RowSparseFidelity(0.2) + us.Smoothness(0.8)
    denoiser = GraphDenoiser(objective=robust).fit(spiked, graph=graph)
    x = torch.as_tensor(spiked)[:, None]
    wanted = us.minimise(robust, x, graph.to(torch.float64)).numpy()[:, 0]
    assert np.array_equal(denoiser.denoised_, wanted)
    plain = GraphDenoiser().fit(spiked, graph=graph)
    assert ((denoiser.denoised_ - clean) ** 2).mean() < 0.5 * ((plain.denoised_ - clean) ** 2).mean()
    assert denoiser.objective_ is robust
    assert denoiser.weight_ is denoiser.curve_ is denoiser.noise_ is None


def test_kinds_of_signals_agree(sensors):
    graph, clean = sensors
    wide = np.stack([clean, clean**2], axis=1) * (np.abs(clean) > 0.5)[:, None]
    wanted = GraphDenoiser(0.2).fit_transform(wide, graph=graph)
    assert wanted.dtype == np.float64
    for kind in (torch.as_tensor(wide), scipy.sparse.csr_array(wide), torch.as_tensor(wide).to_sparse(), wide.tolist()):
        assert np.allclose(GraphDenoiser(0.2).fit_transform(kind, graph=graph), wanted, atol=1e-12)
    single = GraphDenoiser(0.2).fit_transform(wide.astype(np.float32), graph=graph)
    assert single.dtype == np.float32
    assert np.allclose(single, wanted, atol=1e-4)
    assert np.allclose(GraphDenoiser(0.2).fit_transform(wide[:, 0], graph=graph), wanted[:, 0], atol=1e-12)
    fixed = wide.copy()
    fixed.setflags(write=False)
    assert np.array_equal(GraphDenoiser(0.2).fit_transform(fixed, graph=graph), wanted)
    backwards = GraphDenoiser(0.2).fit_transform(wide[::-1, ::-1][::-1, ::-1], graph=graph)
    assert np.array_equal(backwards, wanted)
    assert GraphDenoiser(0.2).fit(wide, graph=graph).transform(wide[:, ::-1]).shape == (400, 2)
    bound = GraphDenoiser(0.2, features=wide, graph=graph)
    assert np.array_equal(bound.fit_transform([5, 0]), wanted[[5, 0]])
    assert list(bound.get_feature_names_out()) == ["x0", "x1"]
