"""The ten models written with PyTorch Geometric's own layers, taking the weights of ours: what a PyG user has today.

Graphs come normalised (``cached=True``, or weights normalised beforehand for layers that cannot cache).
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional
from torch_geometric.nn import APPNP, GCN2Conv, GCNConv, LGConv, SGConv, TAGConv

import unspool as us


def linear(layer: us.nn.Linear) -> nn.Linear:
    weight = layer.weight.detach()
    made = nn.Linear(weight.shape[0], weight.shape[1], bias=layer.bias is not None, device=weight.device)
    made.weight.data.copy_(weight.T)
    if layer.bias is not None:
        made.bias.data.copy_(layer.bias.detach())
    return made


class Peer(nn.Module):
    """Two linear layers with dropout, then something on the graph."""

    def __init__(self, model: us.models.Model) -> None:
        super().__init__()
        layers = model.p_pre.layers
        self.first = linear(layers[0])
        self.second = linear(layers[1]) if len(layers) > 1 else None
        self.rate = float(model.p_pre.dropout.rate)
        self.after = float(model.p_pre.after.rate)

    def encode(self, x):
        h = functional.relu(self.first(functional.dropout(x, self.rate, self.training)))
        if self.second is not None:
            h = self.second(functional.dropout(h, self.rate, self.training))
        return functional.dropout(h, self.after, self.training) if self.after else h


class SGCPeer(nn.Module):
    cached = True

    def __init__(self, model):
        super().__init__()
        weight = model.p_pre.weight.detach()
        self.conv = SGConv(weight.shape[0], weight.shape[1], K=model.settings["depth"], cached=self.cached).to(
            weight.device
        )
        self.conv.lin.weight.data.copy_(weight.T)
        self.conv.lin.bias.data.copy_(model.p_pos.bias.detach())

    def forward(self, x, raw, edges, weights):
        return self.conv(x, raw)


class SGCUncachedPeer(SGCPeer):
    cached = False


class APPNPPeer(Peer):
    def __init__(self, model):
        super().__init__(model)
        self.hops = APPNP(model.settings["depth"], model.settings["teleport"], cached=True)

    def forward(self, x, raw, edges, weights):
        return self.hops(self.encode(x), raw)


class PPNPPeer(Peer):
    """PyG has no PPNP layer: APPNP until the rest is below the tolerance of our solver, (1 − α)^K < 1e-6."""

    def __init__(self, model):
        super().__init__(model)
        self.hops = APPNP(131, model.settings["teleport"], cached=True)

    def forward(self, x, raw, edges, weights):
        return self.hops(self.encode(x), raw)


class JKNetPeer(Peer):
    def __init__(self, model):
        super().__init__(model)
        hops = model.propagation.hops().detach()
        self.conv = TAGConv(hops.shape[1], hops.shape[2], K=hops.shape[0] - 1, bias=False, normalize=False).to(
            hops.device
        )
        for lin, hop in zip(self.conv.lins, hops, strict=True):
            lin.weight.data.copy_(hop.T)
        self.head = linear(model.p_pos[1])

    def forward(self, x, raw, edges, weights):
        return self.head(functional.dropout(self.conv(self.encode(x), edges, weights), self.rate, self.training))


class GPRGNNPeer(Peer):
    def __init__(self, model):
        super().__init__(model)
        self.gamma = nn.Parameter(model.propagation.hops().detach().clone())
        self.hop = LGConv(normalize=False)

    def forward(self, x, raw, edges, weights):
        h = self.encode(x)
        total = self.gamma[0] * h
        for k in range(1, self.gamma.numel()):
            h = self.hop(h, edges, weights)
            total = total + self.gamma[k] * h
        return total


class GCNPeer(nn.Module):
    def __init__(self, model):
        super().__init__()
        weights = [model.p_pre.layers[0].weight, *model.propagation.weights]
        self.convs = nn.ModuleList(GCNConv(w.shape[0], w.shape[1], cached=True).to(w.device) for w in weights)
        for conv, w, b in zip(self.convs, weights, model.propagation.biases, strict=True):
            conv.lin.weight.data.copy_(w.detach().T)
            conv.bias.data.copy_(b.detach())
        self.rate = float(model.p_pre.dropout.rate)

    def forward(self, x, raw, edges, weights):
        for i, conv in enumerate(self.convs):
            x = conv(functional.dropout(x, self.rate, self.training), raw)
            x = functional.relu(x) if i + 1 < len(self.convs) else x
        return x


class GCNIIPeer(Peer):
    def __init__(self, model):
        super().__init__(model)
        how, weight = model.settings, model.propagation.coefficients["W"].detach()
        self.convs = nn.ModuleList(
            GCN2Conv(how["hidden"], how["teleport"], theta=how["strength"], layer=k + 1, cached=True)
            for k in range(how["depth"])
        ).to(weight.device)
        for conv, w in zip(self.convs, weight, strict=True):
            conv.weight1.data.copy_(w)
        self.head = linear(model.p_pos[1])

    def forward(self, x, raw, edges, weights):
        h = start = self.encode(x)
        for conv in self.convs:
            h = functional.relu(conv(functional.dropout(h, self.rate, self.training), start, raw))
        return self.head(functional.dropout(h, self.rate, self.training))


class AirGNNPeer(Peer):
    def __init__(self, model):
        super().__init__(model)
        share = model.settings["residual"]
        self.depth, self.radius = model.settings["depth"], share / (2 * (1 - share))
        self.hop = LGConv(normalize=False)

    def forward(self, x, raw, edges, weights):
        h = start = self.encode(x)
        for _ in range(self.depth):
            offset = self.hop(h, edges, weights) - start
            length = offset.norm(dim=1, keepdim=True)
            h = start + functional.relu(1 - self.radius / length.clamp_min(1e-12)) * offset
        return h


class DAGNNPeer(Peer):
    def __init__(self, model):
        super().__init__(model)
        self.depth, self.gate = model.settings["depth"], linear(model.propagation.gate)
        self.hop = LGConv(normalize=False)

    def forward(self, x, raw, edges, weights):
        h = self.encode(x)
        hops = [h]
        for _ in range(self.depth):
            hops.append(self.hop(hops[-1], edges, weights))
        stack = torch.stack(hops, dim=1)
        return (torch.sigmoid(self.gate(stack)).transpose(1, 2) @ stack).squeeze(1)


class UGDGNNPeer(Peer):
    def __init__(self, model):
        super().__init__(model)
        inside = model.propagation
        self.gamma, self.zeta = (nn.Parameter(p.detach().clone()) for p in (inside.gamma, inside.zeta))
        self.weight = nn.Parameter(inside.weight.detach().clone())
        self.hop = LGConv(normalize=False)

    def forward(self, x, raw, edges, weights):
        h, total = self.encode(x), 0
        for k in range(self.gamma.numel()):
            h = self.hop(h, edges, weights) if k else h
            total = total + self.gamma[k] * (self.zeta[k] * h + (1 - self.zeta[k]) * (h @ self.weight[k]))
        return total


class OwnPeer(Peer):
    """The steps of derived.Own: half a gradient of Σ 2 (√(1 + d²) − 1) for d = H − X, with a weight, and half of one of ‖B H‖²."""

    def __init__(self, model):
        super().__init__(model)
        self.depth, self.pull = model.settings["depth"], model.settings["pull"]
        self.hop = LGConv(normalize=False)

    def forward(self, x, raw, edges, weights):
        h = start = self.encode(x)
        for _ in range(self.depth):
            d = h - start
            rough = h - self.hop(h, edges, weights)
            h = h - self.pull * d / (1 + d.square()).sqrt() - (1 - self.pull) * rough
        return h


PEERS = {
    "SGC": SGCPeer, "SGC, not cached": SGCUncachedPeer, "PPNP": PPNPPeer, "APPNP": APPNPPeer, "JKNet": JKNetPeer, "GPRGNN": GPRGNNPeer,
    "GCN": GCNPeer, "GCNII": GCNIIPeer, "AirGNN": AirGNNPeer, "DAGNN": DAGNNPeer, "UGDGNN": UGDGNNPeer,
    "derived:GPRGNN": GPRGNNPeer, "derived:Own": OwnPeer,
}  # fmt: skip
