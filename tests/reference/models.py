"""Every model again, in the fewest plain dense lines: what the package must agree with.

Each function takes a model for its parameters, the dense normalised A and dense features, and gives the output in
evaluation mode. Nothing of the package is used.
"""

import math

import torch
from torch.linalg import matrix_power


def linear(x, layer):
    return x @ layer.weight if layer.bias is None else x @ layer.weight + layer.bias


def normal(h, norm):
    return (h - norm.running_mean) / (norm.running_var + norm.eps).sqrt() * norm.weight + norm.bias


def perceptron(x, net):
    last = len(net.layers) - 1
    for i, layer in enumerate(net.layers):
        x = linear(x, layer)
        x = normal(x, net.norms[i]) if net.norms is not None and i < last else x
        x = torch.relu(x) if i < last or not net.open_end else x
    return x


def eye(a):
    return torch.eye(a.shape[0], dtype=a.dtype)


def sgc(model, a, x):
    hops = matrix_power(a, model.settings["depth"]) @ x
    if model.settings["weights"].value == "pos":
        return linear(hops, model.p_pos)
    return hops @ model.p_pre.weight + (model.p_pos.bias if model.settings["bias"] else 0)


def ppnp(model, a, x):
    gamma = model.settings["teleport"]
    return gamma * torch.linalg.solve(eye(a) - (1 - gamma) * a, perceptron(x, model.p_pre))


def appnp(model, a, x):
    gamma = model.settings["teleport"]
    h = x = perceptron(x, model.p_pre)
    for _ in range(model.settings["depth"]):
        h = (1 - gamma) * a @ h + gamma * x
    return h


def jknet(model, a, x):
    if model.settings["combine"].value == "sum":
        weights = model.propagation.coefficients
        if model.settings["channels"].value == "classes":
            return sum(matrix_power(a, k) @ perceptron(x, model.p_pre) @ w for k, w in enumerate(weights))
        h = torch.relu(linear(x, model.p_pre.layers[0]))
        return linear(sum(matrix_power(a, k) @ h @ w for k, w in enumerate(weights)), model.p_pos[1])
    layers, (first,) = [], model.p_pre.layers
    for w, b in zip([first.weight, *model.propagation.weights], model.propagation.biases, strict=True):
        layers.append(torch.relu(a @ (layers[-1] if layers else x) @ w + b))
    joined = torch.cat(layers, 1) if model.settings["combine"].value == "concatenate" else torch.stack(layers).amax(0)
    return linear(joined, model.p_pos[1])


def gprgnn(model, a, x):
    h = perceptron(x, model.p_pre)
    return sum(c * matrix_power(a, k) @ h for k, c in enumerate(model.propagation.coefficients))


def gcn(model, a, x):
    h, net = x, model.propagation
    for k, w in enumerate([model.p_pre.layers[0].weight, *net.weights]):
        h = a @ h @ w + (0 if net.biases is None else net.biases[k])
        if k < len(net.weights):
            h = torch.relu(h if net.norms is None else normal(h, net.norms[k]))
    return h


def gcnii(model, a, x):
    h = x = torch.relu(linear(x, model.p_pre.layers[0]))
    s = model.settings
    for layer, w in enumerate(model.propagation.coefficients["W"], 1):
        theta = math.log(s["strength"] / layer + 1) if s["identity"].value == "logarithmic" else s["strength"]
        h = (1 - s["teleport"]) * a @ h + s["teleport"] * x
        h = torch.relu(theta * h @ w + (1 - theta) * h)
    return linear(h, model.p_pos[1])


def airgnn(model, a, x):
    lam = model.settings["residual"]
    h = x = perceptron(x, model.p_pre)
    for _ in range(model.settings["depth"]):
        move = a @ h - x
        length = torch.linalg.vector_norm(move, dim=1, keepdim=True).clamp_min(1e-30)
        h = x + torch.relu(1 - lam / (2 * (1 - lam) * length)) * move
    return h


def dagnn(model, a, x):
    h = perceptron(x, model.p_pre)
    hops = [matrix_power(a, k) @ h for k in range(model.settings["depth"] + 1)]
    return sum(torch.sigmoid(linear(hop, model.propagation.gate)) * hop for hop in hops)


def ugdgnn(model, a, x):
    x = perceptron(x, model.p_pre)
    h = general_layers(model, a, x) if model.settings["layers"].value == "general" else mixed_hops(model, a, x)
    return linear(h, model.p_pos[1]) if model.settings["channels"].value == "hidden" else h


def mixed_hops(model, a, x):
    net, total = model.propagation, 0
    now, after = eye(a), a
    for k, w in enumerate(net.weight):
        xi = 1 - net.zeta[k] if net.xi is None else net.xi[k]
        total = total + net.gamma[k] * now @ x @ (net.zeta[k] * eye(w) + xi * w)
        chebyshev = model.settings["basis"].value == "chebyshev"
        now, after = after, 2 * a @ after - now if chebyshev else a @ after
    return total


def general_layers(model, a, x):
    """Eq. (5): H(I − 2ηαTα − 2ηβTβ) + 2ηβ A H Tβ + 2ηα X Tα."""
    h, c = x, model.propagation.coefficients
    for eta, alpha, beta, t_a, t_b in zip(c["η"], c["α"], c["β"], c["Tα"], c["Tβ"], strict=True):
        keep = eye(t_a) - 2 * eta * alpha * t_a - 2 * eta * beta * t_b
        h = h @ keep + 2 * eta * beta * a @ h @ t_b + 2 * eta * alpha * x @ t_a
    return h


def mlp(model, a, x):
    return perceptron(x, model.p_pre)


def incidence(a):
    """B from A alone: √d is where A has the eigenvalue 1, and the edge (i, j) is √a (√(uⱼ/uᵢ) eᵢ − √(uᵢ/uⱼ) eⱼ) with u = √d."""
    values, vectors = torch.linalg.eigh(a)
    kept = vectors[:, values > 1 - 1e-9]
    u = kept @ kept.T.sum(1)
    rows = []
    for i, j in torch.triu(a, 1).nonzero().tolist():
        row = torch.zeros(a.shape[0], dtype=a.dtype)
        row[i], row[j] = (a[i, j] * u[j] / u[i]).sqrt(), -(a[i, j] * u[i] / u[j]).sqrt()
        rows.append(row)
    return torch.stack(rows)


def elasticgnn(model, a, x):
    """Y = γX + (1−γ)AH; H̄ = Y − γBᵀZ; Z ← Π(Z + βBH̄); H ← Y − γBᵀZ."""
    s, b = model.settings, incidence(a)
    gamma, l1 = 1 / (1 + s["lambda2"]), s["lambda1"]
    h = x = perceptron(x, model.p_pre)
    z = torch.zeros(b.shape[0], x.shape[1], dtype=x.dtype)
    for _ in range(s["depth"]):
        y = gamma * x + (1 - gamma) * a @ h
        z = z + b @ (y - gamma * b.T @ z) / (2 * gamma)
        length = torch.linalg.vector_norm(z, dim=1, keepdim=True) if s["rows"] else z.abs()
        z = z * (l1 / length.clamp_min(1e-30)).clamp(max=1)
        h = y - gamma * b.T @ z
    return h


def squares(b, h):
    """‖(BH)ᵢⱼ‖² as a dense symmetric matrix, zero where there is no edge."""
    n = h.shape[0]
    places = [torch.nonzero(row).flatten().tolist() for row in b]
    table = torch.zeros(n, n, dtype=h.dtype)
    i, j = torch.tensor(places).T
    length = (b @ h).square().sum(1)
    return table.index_put((i, j), length).index_put((j, i), length)


def shares(b):
    """wᵢⱼ/dᵢ as a dense matrix, the square of what B has at node i for the edge (i, j)."""
    table = torch.zeros(b.shape[1], b.shape[1], dtype=b.dtype)
    for row in b:
        i, j = torch.nonzero(row).flatten().tolist()
        table[i, j], table[j, i] = row[i] ** 2, row[j] ** 2
    return table


def pgnn(model, a, x):
    """hᵢ ← αᵢ Σⱼ Mᵢⱼ hⱼ/√(dᵢdⱼ) + (2μ/p) αᵢ xᵢ, αᵢ = (Σⱼ Mᵢⱼ/dᵢ + 2μ/p)⁻¹; wᵢⱼ stands in A and in the shares."""
    s, b = model.settings, incidence(a)
    off, share, pull = a - a.diagonal().diag(), shares(b), 2 * s["mu"] / s["p"]
    h = x = perceptron(x, model.p_pre)
    for _ in range(s["depth"]):
        m = (squares(b, h) + s["smoothing"] ** 2) ** ((s["p"] - 2) / 2)
        alpha = 1 / ((m * share).sum(1, keepdim=True) + pull)
        h = alpha * ((m * off) @ h) + pull * alpha * x
    return h


def twirls(model, a, x):
    """H ← (1−a)H + a (λD_Γ + I)⁻¹(λ(Γ∘A)H + X), with D_Γ the diagonal of BᵀΓB."""
    s, b = model.settings, incidence(a)
    off, share = a - a.diagonal().diag(), shares(b)
    slope = {
        "log": lambda q: 1 / (1 + q / s["threshold"]),
        "capped": lambda q: torch.relu(1 - q / s["threshold"]),
        "norm": lambda q: 0.5 / (q + s["threshold"] ** 2).sqrt(),
    }[s["penalty"].value]
    h = x = perceptron(x, model.p_pre)
    for _ in range(s["depth"]):
        gamma = slope(squares(b, h))
        scale = 1 + s["smoothness"] * (gamma * share).sum(1, keepdim=True)
        h = (1 - s["step"]) * h + s["step"] * (s["smoothness"] * (gamma * off) @ h + x) / scale
    return h


def gnnlf(model, a, x):
    """H ← H − 2η[(μI + (1−μ)A)(H − X) + (1/α − 1)LH]."""
    mu, smooth = model.settings["mu"], 1 / model.settings["teleport"] - 1
    eta = 1 / (2 * (mu + smooth))
    h = x = perceptron(x, model.p_pre)
    for _ in range(model.settings["depth"]):
        h = h - 2 * eta * ((mu * eye(a) + (1 - mu) * a) @ (h - x) + smooth * (h - a @ h))
    return h


def gnnhf(model, a, x):
    """H ← H − 2η[(I + βL)(H − X) + (1/α − 1)LH]."""
    beta, alpha = model.settings["beta"], model.settings["teleport"]
    laplacian = eye(a) - a
    eta = 1 / (2 * (beta + 1 / alpha))
    h = x = perceptron(x, model.p_pre)
    for _ in range(model.settings["depth"]):
        h = h - 2 * eta * ((eye(a) + beta * laplacian) @ (h - x) + (1 / alpha - 1) * laplacian @ h)
    return h


def graff(model, a, x):
    """H ← H − τ(HΩ − AHW − XW̃)."""
    c, tau, width = model.propagation.coefficients, model.settings["step"], model.settings["hidden"]
    h = x = torch.relu(linear(x, model.p_pre.layers[0]))
    for k in range(model.settings["depth"]):
        omega, raw, source = (c[n] if model.settings["tied"] else c[n][k] for n in ("Ω", "W", "W̃"))
        row, col = torch.tril_indices(width, width)
        lower = torch.zeros(width, width, dtype=x.dtype).index_put((row, col), raw)
        w = lower + lower.tril(-1).T
        h = h - tau * (h * omega - a @ h @ w - x * source)
    return linear(h, model.p_pos[1])


def signedgnn(model, a, x):
    """H ← H − 2ηBᵀdiag(w)BH − 2ηα(H − X), wₑ = tanh s(xᵢ, xⱼ)."""
    s, b, score = model.settings, incidence(a), model.propagation.computed["w"]
    x = torch.relu(linear(x, model.p_pre.layers[0]))
    z = torch.tanh(x @ score.layer.weight.T + score.layer.bias)
    i, j = torch.triu(a, 1).nonzero().T
    ends = torch.cat([(z[i] - z[j]).abs(), z[i] * z[j]], 1)
    w = torch.tanh(ends @ score.score.weight.T + score.score.bias)
    h = x
    for _ in range(s["depth"]):
        h = h - 2 * s["step"] * (b.T @ (w * (b @ h)) + s["alpha"] * (h - x))
    return linear(h, model.p_pos[1])


def trustgnn(model, a, x):
    """hᵢ ← (λ Σⱼ wᵢⱼ aᵢⱼ hⱼ + xᵢ) / (λ Σⱼ wᵢⱼ sᵢⱼ + 1), w from the features at length one."""
    s, b = model.settings, incidence(a)
    off, share = a - a.diagonal().diag(), shares(b)
    unit = x / x.norm(dim=1, keepdim=True).clamp_min(1e-300)
    apart = _apart(unit)
    if s["smoothings"]:  # once: means over neighbours by their cosine, and over oneself by 0.1
        mean = (1 - apart / 2).clamp_min(0) * (off != 0) + 0.1 * torch.eye(len(a), dtype=a.dtype)
        smooth = mean @ unit / mean.sum(1, keepdim=True)
        apart = _apart(smooth / smooth.norm(dim=1, keepdim=True).clamp_min(1e-300))
    w = {
        "log": 1 / (1 + apart / s["threshold"]),
        "capped": torch.relu(1 - apart / s["threshold"]),
        "norm": 0.5 / (apart + s["threshold"] ** 2).sqrt(),
    }[s["penalty"].value]
    scale = 1 + s["smoothness"] * (w * share).sum(1, keepdim=True)
    h = x = perceptron(x, model.p_pre)
    for _ in range(s["depth"]):
        h = (s["smoothness"] * (w * off) @ h + x) / scale
    return h


def _apart(unit):
    """Squared distances of all pairs of rows."""
    length = unit.square().sum(1)
    return (length[:, None] + length - 2 * unit @ unit.T).clamp_min(0)


def fairgnn(model, a, x):
    """Y = γX + (1−γ)AH; u ← clip(u + βΔ softmax(H̄)); H ← Y − γ ∂_H⟨u, Δ softmax(H)⟩, the derivative taken by a Jacobian."""
    s, first = model.settings, x[:, model.settings["group"]] > 0
    delta = first.to(x.dtype) / first.sum() - (~first).to(x.dtype) / (~first).sum()
    gamma, l1 = 1 / (1 + s["lambda2"]), s["lambda1"]
    h = x = perceptron(x, model.p_pre.encode)
    u = torch.zeros(x.shape[1], dtype=x.dtype)

    def pull(h, u):
        p = torch.softmax(h, 1)
        jacobian = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
        return delta[:, None] * (jacobian @ u)

    for _ in range(s["depth"]):
        y = gamma * x + (1 - gamma) * a @ h
        u = (u + delta @ torch.softmax(y - gamma * pull(h, u), 1) / (2 * gamma)).clamp(-l1, l1)
        h = y - gamma * pull(h, u)
    return h


def stablegnn(model, a, x):
    """The five problems: mean of hops, PageRank, learnt α, GCNII's layers, Jacobi steps of TWIRLS; then ReLU and perceptron."""
    s, kind = model.settings, model.settings["steps"].value
    early = s["signal"].value == "features"  # these are denoised as they came, and W comes after
    h = x = x if early else perceptron(x, model.p_pre)
    if kind == "uniform":
        h = sum(matrix_power(a, k) @ x for k in range(s["depth"] + 1)) / (s["depth"] + 1)
    elif kind == "reweighted":
        h = twirls_steps(a, x, s["depth"], s["smoothness"], lambda d: 1 / (1 + d / s["threshold"]))
    elif kind == "proximal":
        for k, w in enumerate(model.propagation.coefficients["W"], start=1):
            theta = math.log(0.5 / k + 1)
            h = torch.relu(((1 - s["teleport"]) * a @ h + s["teleport"] * x) @ (theta * w + (1 - theta) * eye(w)))
    else:
        learnt = kind == "learnt"
        alphas = model.propagation.coefficients["α"].sigmoid() if learnt else [s["teleport"]] * s["depth"]
        for alpha in alphas:
            h = (1 - alpha) * a @ h + alpha * x
    head = list(model.p_pos)
    if early:
        h = normal(h, head[0]) if s["batch_norm"] else h
        h = torch.relu(linear(h, head[2 if s["batch_norm"] else 1]))
        h = normal(h, head[-2]) if s["batch_norm"] else h
    else:
        h = torch.relu(normal(h, head[0]) if s["batch_norm"] else h)
    *hidden, last = head[-1].layers
    for i, layer in enumerate(hidden):
        new = linear(h, layer)
        new = torch.relu(normal(new, head[-1].norms[i]) if s["batch_norm"] else new)
        h = new + h if s["skip"] else new
    return linear(h, last)


def twirls_steps(a, x, depth, smoothness, forgive):
    """Full Jacobi steps on ‖H − X‖² + λ Σ ρ(‖(BH)ₑ‖²), edge by edge."""
    b, h = incidence(a), x
    off, share = a - a.diagonal().diag(), shares(b)
    for _ in range(depth):
        w = forgive(squares(b, h))
        h = (smoothness * (w * off) @ h + x) / (1 + smoothness * (w * share).sum(1, keepdim=True))
    return h


def after_hops(h, p_pos):
    """A bias, ReLU and the last layer."""
    h = h + p_pos[0].bias if len(p_pos) == 4 else h
    return linear(torch.relu(h), p_pos[-1])


def graph_first_gprgnn(model, a, x):
    """ReLU(Σ γₖ Aᵏ X W₁ + b) W₂ + c, the sum of hops first."""
    filtered = sum(c * matrix_power(a, k) @ x for k, c in enumerate(model.propagation.coefficients))
    return after_hops(filtered @ model.p_pre.weight, model.p_pos)


def graph_first_ugdgnn(model, a, x):
    """ReLU(Σ γₖ Aᵏ X W (ζₖ I + ξₖ Wₖ) + b) W₂ + c."""
    net = model.propagation
    xi = 1 - net.zeta if model.settings["mixing"].value == "tied" else net.xi
    total = 0
    for k, (gamma, zeta, free, w) in enumerate(zip(net.gamma, net.zeta, xi, net.weight, strict=True)):
        total = total + gamma * (matrix_power(a, k) @ x @ model.p_pre.weight) @ (zeta * eye(w) + free * w)
    return after_hops(total, model.p_pos)


def sign(model, a, x):
    """ReLU([X W₀, A X W₁, ..., Aᴷ X W_K] + b) Ω + c."""
    weights = model.p_pre.weight.split(model.settings["hidden"], dim=1)
    return after_hops(torch.cat([matrix_power(a, k) @ x @ w for k, w in enumerate(weights)], 1), model.p_pos)


REFERENCES = {
    "SGC": sgc, "PPNP": ppnp, "APPNP": appnp, "JKNet": jknet, "GPRGNN": gprgnn, "GCN": gcn, "GCNII": gcnii,
    "AirGNN": airgnn, "DAGNN": dagnn, "UGDGNN": ugdgnn, "MLP": mlp, "ElasticGNN": elasticgnn,
    "PGNN": pgnn, "TWIRLS": twirls, "GNNLF": gnnlf, "GNNHF": gnnhf, "GRAFF": graff, "SignedGNN": signedgnn, "TrustGNN": trustgnn,
    "FairGNN": fairgnn, "StableGNN": stablegnn, "GraphFirstGPRGNN": graph_first_gprgnn, "GraphFirstUGDGNN": graph_first_ugdgnn,
    "SIGN": sign,
}  # fmt: skip
