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


REFERENCES = {
    "SGC": sgc, "PPNP": ppnp, "APPNP": appnp, "JKNet": jknet, "GPRGNN": gprgnn, "GCN": gcn, "GCNII": gcnii,
    "AirGNN": airgnn, "DAGNN": dagnn, "UGDGNN": ugdgnn, "MLP": mlp,
}  # fmt: skip
