"""Noise that is not the same in all channels: T_α as the inverse of its covariance."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

import unspool as us
from unspool.denoise import Covariance, content, denoise, weight
from unspool.estimator import GCV, SURE, GraphDenoiser
from unspool.graph import Normalisation

KINDS = {"symmetric": {}, "not normalised": {"normalise": Normalisation.NONE}}
CANDIDATES = (0.02, 0.3, 0.9)
SIGMA = np.array([[1.0, 0.6, 0.0], [0.6, 0.5, 0.05], [0.0, 0.05, 0.05]])


@pytest.fixture(params=KINDS)
def scene(request):
    graph, place = us.graph.sensor(60, seed=1, **KINDS[request.param])
    place = place.double().numpy()
    clean = np.stack([np.sin(4 * place[:, 0]), place[:, 1], np.cos(5 * place[:, 1])], axis=1)
    return graph, clean, clean + drawn(60, 0)


def drawn(nodes, seed, sigma=SIGMA):
    return np.random.default_rng(seed).standard_normal((nodes, len(sigma))) @ np.linalg.cholesky(sigma).T


def laplacian(graph):
    return graph.to(torch.float64).laplacian().to_dense().numpy()


def dense(graph, alpha, noisy, sigma):
    """The minimiser of α‖H−X‖²_T + (1−α)‖BH‖², T = σ²Σ⁻¹, as one large linear system."""
    n, d = noisy.shape
    metric = np.linalg.inv(sigma) * np.trace(sigma) / d
    # Row-major vec: vec(H T) = (I ⊗ T) vec(H), vec(L H) = (L ⊗ I) vec(H).
    system = alpha * np.kron(np.eye(n), metric) + (1 - alpha) * np.kron(laplacian(graph), np.eye(d))
    return np.linalg.solve(system, alpha * (noisy @ metric).ravel()).reshape(n, d)


def smoothers(graph, alpha, sigma):
    """The smoother of each principal channel of the noise, and its variance."""
    variance, basis = np.linalg.eigh(sigma)
    lap, eye = laplacian(graph), np.eye(graph.nodes)
    strength = alpha * variance.mean() / variance
    return [t * np.linalg.inv(t * eye + (1 - alpha) * lap) for t in strength], variance, basis


@pytest.mark.parametrize("alpha", CANDIDATES)
def test_denoised_is_the_dense_solution(alpha, scene):
    graph, _, noisy = scene
    found = GraphDenoiser(alpha, noise_covariance=SIGMA).fit(noisy, graph=graph)
    assert np.allclose(found.denoised_, dense(graph, alpha, noisy, SIGMA), atol=1e-8)
    assert np.allclose(found.transform(2 * noisy[::-1]), dense(graph, alpha, 2 * noisy[::-1], SIGMA), atol=1e-8)
    same = us.minimise(found.objective_, torch.as_tensor(noisy), graph.to(torch.float64))
    assert np.allclose(found.denoised_, same.numpy(), atol=1e-8)
    assert found.report_.converged


def test_it_is_whitening_denoising_and_colouring_again(scene):
    """In whitened channels the fidelity is plain, and smoothness is measured in the signal's own units."""
    graph, _, noisy = scene
    root = np.linalg.cholesky(SIGMA / np.trace(SIGMA) * 3)
    white = torch.as_tensor(noisy @ np.linalg.inv(root).T)
    plain = us.Fidelity(0.3) + us.Smoothness(0.7, metric=torch.as_tensor(root.T @ root))
    there = us.minimise(plain, white, graph.to(torch.float64)).numpy() @ root.T
    assert np.allclose(GraphDenoiser(0.3, noise_covariance=SIGMA).fit_transform(noisy, graph=graph), there, atol=1e-8)


def test_noisier_channels_are_smoothed_more(scene):
    graph, _, noisy = scene
    lap = laplacian(graph)
    out = GraphDenoiser(0.5, noise_covariance=[1.0, 0.1, 0.01]).fit_transform(noisy[:, [0, 0, 0]], graph=graph)
    rough = [h @ lap @ h for h in out.T]
    assert rough[0] < rough[1] < rough[2]


@pytest.mark.parametrize("rule", [0.2, GCV(), SURE()], ids=str)
def test_the_same_noise_in_all_channels_changes_nothing(rule, scene):
    graph, _, noisy = scene
    known = SURE(noise=0.3) if isinstance(rule, SURE) else rule
    plain = GraphDenoiser(known).fit(noisy, graph=graph)
    for noise in (np.full(3, 0.09), 0.09 * np.eye(3)):
        found = GraphDenoiser(rule, noise_covariance=noise).fit(noisy, graph=graph)
        assert found.weight_ == plain.weight_
        assert np.allclose(found.denoised_, plain.denoised_, atol=1e-9)
        if plain.noise_ is not None:
            assert np.isclose(found.noise_, plain.noise_)
            assert np.allclose(found.curve_, plain.curve_, rtol=1e-9)


@pytest.mark.parametrize("rule", [0.2, GCV(), SURE()], ids=str)
def test_units_and_mixtures_of_channels_pass_through(rule, scene):
    graph, _, noisy = scene
    plain = GraphDenoiser(rule, noise_covariance=SIGMA).fit(noisy, graph=graph)
    tenfold = GraphDenoiser(rule, noise_covariance=100 * SIGMA).fit(10 * noisy, graph=graph)
    assert np.isclose(tenfold.weight_, plain.weight_)
    assert np.allclose(tenfold.denoised_, 10 * plain.denoised_, atol=1e-7)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    turned = GraphDenoiser(rule, noise_covariance=turn.T @ SIGMA @ turn).fit(noisy @ turn, graph=graph)
    assert np.isclose(turned.weight_, plain.weight_)
    assert np.allclose(turned.denoised_, plain.denoised_ @ turn, atol=1e-7)


def test_variances_are_a_diagonal_covariance(scene):
    graph, _, noisy = scene
    variances = np.diag(SIGMA)
    for rule in (0.2, GCV(), SURE()):
        one, other = (
            GraphDenoiser(rule, noise_covariance=n).fit(noisy, graph=graph) for n in (variances, np.diag(variances))
        )
        assert one.weight_ == other.weight_
        assert np.allclose(one.denoised_, other.denoised_, atol=1e-8)


def test_scores_are_the_dense_formulas(scene):
    graph, _, noisy = scene
    n, d = noisy.shape
    gcv, sure = (
        GraphDenoiser(rule(CANDIDATES), noise_covariance=SIGMA).fit(noisy, graph=graph) for rule in (GCV, SURE)
    )
    for row, alpha in enumerate(CANDIDATES):
        each, variance, basis = smoothers(graph, alpha, SIGMA)
        turned = noisy @ basis
        left = np.array([((turned[:, c] - s @ turned[:, c]) ** 2).sum() for c, s in enumerate(each)])
        freedom = np.array([np.trace(s) for s in each])
        risk = left.sum() / (n * d) - variance.mean() + 2 * (variance * freedom).sum() / (n * d)
        assert np.isclose(sure.curve_[row, 1], risk, rtol=1e-9)
        share = (variance / variance.mean() * freedom).sum() / (n * d)
        assert np.isclose(gcv.curve_[row, 1], left.sum() / (n * d) / (1 - share) ** 2, rtol=1e-9)
        if alpha == gcv.weight_:
            assert np.isclose(gcv.noise_**2, left.sum() / (n * d) / (1 - share))
    assert np.isclose(sure.noise_, np.sqrt(np.trace(SIGMA) / 3))


@pytest.mark.long
def test_sure_is_unbiased_for_the_risk(scene):
    graph, clean, _ = scene
    rule, draws, exact = SURE(CANDIDATES), 400, graph.to(torch.float64)
    noise, known = Covariance.read(SIGMA, 3), [smoothers(graph, alpha, SIGMA) for alpha in CANDIDATES]
    gap = []
    for draw in range(draws):
        noisy = clean + drawn(60, 100 + draw)
        outs = [np.stack([s @ c for s, c in zip(each, (noisy @ q).T, strict=True)], 1) @ q.T for each, _, q in known]
        loss = [((out - clean) ** 2).mean() for out in outs]
        gap.append(rule.choose(torch.as_tensor(noisy), exact, noise).curve[:, 1] - loss)
    gap = np.array(gap)
    error = gap.std(axis=0) / np.sqrt(draws)
    assert np.all(np.abs(gap.mean(axis=0)) < 4 * error)
    assert np.all(error < 0.05 * np.trace(SIGMA) / 3)


def test_knowing_the_covariance_lowers_the_error(scene):
    graph, clean, _ = scene
    won, ratio = 0, []
    for seed in range(20):
        noisy = clean + drawn(60, seed)
        knows = GraphDenoiser(noise_covariance=SIGMA).fit_transform(noisy, graph=graph)
        level = np.sqrt(np.trace(SIGMA) / 3)
        guesses = GraphDenoiser(SURE(noise=level)).fit_transform(noisy, graph=graph)
        ratio.append(((knows - clean) ** 2).mean() / ((guesses - clean) ** 2).mean())
        won += ratio[-1] < 1
    assert won >= 17
    assert np.mean(ratio) < 0.85


def test_large_graphs_come_close_with_probes(monkeypatch, scene):
    graph, _, noisy = scene
    exact = GraphDenoiser(GCV(probes=64), noise_covariance=SIGMA).fit(noisy, graph=graph)
    monkeypatch.setattr(content, "LARGEST_EXACT", 10)
    monkeypatch.setattr(weight, "LARGEST_EXACT", 10)
    probed = GraphDenoiser(GCV(probes=64), noise_covariance=SIGMA).fit(noisy, graph=graph)
    assert np.allclose(probed.curve_[:, 1], exact.curve_[:, 1], rtol=0.1)


def test_single_precision_one_channel_clones_and_bound_features(scene):
    graph, _, noisy = scene
    wanted = GraphDenoiser(0.2, noise_covariance=SIGMA).fit_transform(noisy, graph=graph)
    single = GraphDenoiser(0.2, noise_covariance=SIGMA).fit_transform(noisy.astype(np.float32), graph=graph)
    assert single.dtype == np.float32
    assert np.allclose(single, wanted, atol=1e-4)
    one = GraphDenoiser(0.2, noise_covariance=[0.5]).fit_transform(noisy[:, 0], graph=graph)
    assert np.allclose(one, GraphDenoiser(0.2).fit_transform(noisy[:, 0], graph=graph), atol=1e-9)
    assert clone(GraphDenoiser(noise_covariance=SIGMA)).noise_covariance is not None
    bound = GraphDenoiser(0.2, noise_covariance=SIGMA, features=noisy, graph=graph)
    assert np.allclose(bound.fit_transform([4, 1]), wanted[[4, 1]])
    found = denoise(torch.as_tensor(noisy), graph.to(torch.float64), 0.2, noise_covariance=torch.as_tensor(SIGMA))
    assert np.allclose(found.signal.numpy(), wanted)
    assert "Σ⁻¹" in str(found.objective)
    assert found.report.converged


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        (0.3, "SURE"),
        ([0.1, 0.2], "3 channels"),
        (np.eye(2), "3 channels"),
        (np.ones((3, 2)), "3 channels"),
        ([0.1, 0.0, 0.2], "positive"),
        ([0.1, -1.0, 0.2], "positive"),
        ([0.1, np.nan, 0.2], "finite"),
        (np.array([[1.0, 0.5, 0], [0.1, 1, 0], [0, 0, 1]]), "symmetric"),
        (np.array([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]]), "positive definite"),
        (np.array([[1.0, 1, 0], [1, 1, 0], [0, 0, 1]]), "positive definite"),
        ("loud", "variance"),
    ],
    ids=str,
)
def test_what_is_no_covariance_is_refused_in_a_sentence(noise, words, scene):
    graph, _, noisy = scene
    with pytest.raises(ValueError, match=rf"noise_covariance.*{words}"):
        GraphDenoiser(noise_covariance=noise).fit(noisy, graph=graph)


def test_the_noise_is_said_once(scene):
    graph, _, noisy = scene
    with pytest.raises(ValueError, match="noise"):
        GraphDenoiser(SURE(noise=0.3), noise_covariance=SIGMA).fit(noisy, graph=graph)
    with pytest.raises(ValueError, match="noise_covariance and objective"):
        GraphDenoiser(objective=us.Fidelity(0.2) + us.Smoothness(0.8), noise_covariance=SIGMA).fit(noisy, graph=graph)
