"""What the laws of models run over: every model in every variant, and graphs of every kind."""

import contextlib

import networkx
import torch

import unspool as us
from unspool import models

IN, OUT, HIDDEN = 6, 3, 4

_SMALL = {"hidden": HIDDEN, "depth": 4, "dropout": 0.5}
_EACH = {**_SMALL, "propagation_dropout": 0.4, "masks": models.Masks.EACH_HOP}
_FLAT = {"hidden": HIDDEN, "dropout": 0.5}
CASES = {
    "SGC": (models.SGC, {"depth": 3}),
    "SGC-pos": (models.SGC, {"depth": 3, "weights": models.Side.POS}),
    "SGC-no-bias": (models.SGC, {"depth": 2, "bias": False}),
    "PPNP": (models.PPNP, {**_FLAT, "teleport": 0.2}),
    "PPNP-tolerance": (models.PPNP, {**_FLAT, "teleport": 0.2, "bias": True, "tolerance": 1e-13}),
    "APPNP": (models.APPNP, {**_SMALL, "teleport": 0.2}),
    "APPNP-bias": (models.APPNP, {**_SMALL, "bias": True}),
    "APPNP-once": (models.APPNP, {**_SMALL, "propagation_dropout": 0.4}),
    "APPNP-each-hop": (models.APPNP, {**_EACH, "teleport": 0.2}),
    "JKNet": (models.JKNet, _SMALL),
    "JKNet-concatenate": (models.JKNet, {**_SMALL, "combine": models.Combine.CONCATENATE}),
    "JKNet-max": (models.JKNet, {**_SMALL, "combine": models.Combine.MAX}),
    "JKNet-classes": (models.JKNet, {**_SMALL, "channels": models.Channels.CLASSES}),
    "GPRGNN": (models.GPRGNN, _SMALL),
    "GPRGNN-uniform": (models.GPRGNN, {**_SMALL, "start": models.HopStart.UNIFORM}),
    "GPRGNN-sgc": (models.GPRGNN, {**_SMALL, "start": models.HopStart.SGC, "propagation_dropout": 0.0}),
    "GPRGNN-nppr": (models.GPRGNN, {**_SMALL, "start": models.HopStart.NPPR, "bias": False}),
    "GPRGNN-random": (models.GPRGNN, {**_SMALL, "start": models.HopStart.RANDOM}),
    "GPRGNN-warm": (models.GPRGNN, {**_SMALL, "start": models.HopStart.WARM, "warm": [1.0, -1.0, 0.5, 0.0, 2.0]}),
    "GPRGNN-each-hop": (models.GPRGNN, _EACH),
    "GCN": (models.GCN, {**_SMALL, "depth": 2}),
    "GCN-single": (models.GCN, {**_SMALL, "depth": 1}),
    "GCN-no-bias": (models.GCN, {**_SMALL, "bias": False}),
    "GCN-batch-norm": (models.GCN, {**_SMALL, "batch_norm": True}),
    "GCNII": (models.GCNII, {**_SMALL, "teleport": 0.2}),
    "GCNII-constant": (models.GCNII, {**_SMALL, "identity": models.IdentityMapping.CONSTANT, "strength": 0.3}),
    "AirGNN": (models.AirGNN, {**_SMALL, "residual": 0.4}),
    "AirGNN-checkpointed": (models.AirGNN, {**_SMALL, "adjoint": us.Checkpointed(every=3)}),
    "DAGNN": (models.DAGNN, _SMALL),
    "DAGNN-batch-norm": (models.DAGNN, {**_SMALL, "batch_norm": True}),
    "UGDGNN": (models.UGDGNN, _SMALL),
    "UGDGNN-free": (models.UGDGNN, {**_SMALL, "mixing": models.Mixing.FREE, "bias": False}),
    "UGDGNN-ppr": (models.UGDGNN, {**_SMALL, "start": models.HopStart.PPR}),
    "UGDGNN-hidden": (models.UGDGNN, {**_SMALL, "channels": models.Channels.HIDDEN}),
    "UGDGNN-hidden-free": (
        models.UGDGNN,
        {**_SMALL, "channels": models.Channels.HIDDEN, "mixing": models.Mixing.FREE},
    ),
    "UGDGNN-chebyshev": (models.UGDGNN, {**_SMALL, "basis": us.Basis.CHEBYSHEV}),
    "UGDGNN-general": (models.UGDGNN, {**_SMALL, "layers": models.Layers.GENERAL}),
    "UGDGNN-general-hidden": (
        models.UGDGNN,
        {**_SMALL, "layers": models.Layers.GENERAL, "channels": models.Channels.HIDDEN},
    ),
    "UGDGNN-once": (models.UGDGNN, {**_SMALL, "propagation_dropout": 0.4}),
    "UGDGNN-each-hop": (models.UGDGNN, _EACH),
    "UGDGNN-hidden-each-hop": (models.UGDGNN, {**_EACH, "channels": models.Channels.HIDDEN}),
    "UGDGNN-chebyshev-each-hop": (models.UGDGNN, {**_EACH, "basis": us.Basis.CHEBYSHEV}),
    "MLP": (models.MLP, _FLAT),
    "MLP-no-bias": (models.MLP, {**_FLAT, "bias": False}),
    "ElasticGNN": (models.ElasticGNN, {**_SMALL, "lambda1": 0.3, "lambda2": 0.8}),
    "ElasticGNN-entries": (models.ElasticGNN, {**_SMALL, "lambda1": 0.3, "rows": False}),
    "PGNN": (models.PGNN, {**_SMALL, "p": 1.4, "mu": 0.3}),
    "PGNN-three": (models.PGNN, {**_SMALL, "p": 3.0, "mu": 2.0}),
    "TWIRLS": (models.TWIRLS, {**_SMALL, "smoothness": 2.0, "threshold": 0.7, "step": 0.8}),
    "TWIRLS-capped": (models.TWIRLS, {**_SMALL, "penalty": models.Robust.CAPPED, "threshold": 5.0}),
    "TWIRLS-norm": (models.TWIRLS, {**_SMALL, "penalty": models.Robust.NORM, "threshold": 0.2}),
    "GNNLF": (models.GNNLF, {**_SMALL, "mu": 0.6, "teleport": 0.2}),
    "GNNHF": (models.GNNHF, {**_SMALL, "beta": 0.7, "teleport": 0.2}),
    "GRAFF": (models.GRAFF, _SMALL),
    "GRAFF-untied": (models.GRAFF, {**_SMALL, "tied": False}),
    "FairGNN": (models.FairGNN, {**_SMALL, "lambda1": 0.4, "lambda2": 0.8}),
    "SignedGNN": (models.SignedGNN, _SMALL),
    "TrustGNN": (models.TrustGNN, {**_SMALL, "smoothness": 3.0, "threshold": 2.5}),
    "TrustGNN-norm": (models.TrustGNN, {**_SMALL, "penalty": models.Robust.NORM, "threshold": 0.3}),
    "TrustGNN-smoothed": (models.TrustGNN, {**_SMALL, "smoothings": 1, "threshold": 1.5}),
    "TrustGNN-log": (models.TrustGNN, {**_SMALL, "penalty": models.Robust.LOG, "threshold": 0.5}),
    "StableGNN": (models.StableGNN, _SMALL),
    "StableGNN-decoder": (
        models.StableGNN,
        {**_SMALL, "head_layers": 3, "skip": True, "batch_norm": True, "bias": True},
    ),
    "StableGNN-ppr": (models.StableGNN, {**_SMALL, "steps": models.Steps.PPR, "teleport": 0.3}),
    "StableGNN-learnt": (models.StableGNN, {**_SMALL, "steps": models.Steps.LEARNT, "head_layers": 2}),
    "StableGNN-proximal": (models.StableGNN, {**_SMALL, "steps": models.Steps.PROXIMAL}),
    "StableGNN-features": (models.StableGNN, {**_SMALL, "signal": models.Signal.FEATURES, "batch_norm": True}),
    "StableGNN-features-learnt": (
        models.StableGNN,
        {**_SMALL, "signal": models.Signal.FEATURES, "steps": models.Steps.LEARNT, "head_layers": 2, "bias": True},
    ),
    "GraphFirstGPRGNN": (models.GraphFirstGPRGNN, _SMALL),
    "GraphFirstGPRGNN-no-bias": (models.GraphFirstGPRGNN, {**_SMALL, "bias": False}),
    "GraphFirstUGDGNN": (models.GraphFirstUGDGNN, _SMALL),
    "GraphFirstUGDGNN-free": (
        models.GraphFirstUGDGNN,
        {**_SMALL, "mixing": models.Mixing.FREE, "start": models.HopStart.PPR, "bias": False},
    ),
    "SIGN": (models.SIGN, _SMALL),
    "SIGN-no-bias": (models.SIGN, {**_SMALL, "depth": 1, "bias": False}),
}
#: Those whose propagation comes before anything that is not linear: they train from hops on the disk.
GRAPH_FIRST = ("SGC", "SGC-pos", "SGC-no-bias", "GraphFirstGPRGNN", "GraphFirstGPRGNN-no-bias", "GraphFirstUGDGNN", "GraphFirstUGDGNN-free", "SIGN", "SIGN-no-bias", "StableGNN-features-learnt")  # fmt: skip
#: Models that look at the incidence matrix, and so refuse directed graphs.
BY_EDGES = (models.ElasticGNN, models.PGNN, models.TWIRLS, models.SignedGNN, models.TrustGNN)


@contextlib.contextmanager
def doubles():
    """float64 as the default inside, so that nothing passes through float32."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def build(name, seed=0, **changes):
    """A model in float64, away from its start: every parameter is moved by random numbers."""
    kind, settings = CASES[name]
    torch.manual_seed(seed)
    with doubles():
        model = kind(IN, OUT, **{**settings, **changes})
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.requires_grad:
                    parameter.add_(0.3 * torch.randn_like(parameter))
            for key, buffer in model.named_buffers():
                if "running" in key:
                    buffer.add_(0.5 * torch.rand_like(buffer))
    return model


def high_pass(frequency):
    return frequency**2 / 4


def converted_models():
    """Models that were made from others, and from filters."""
    return {
        "UGDGNN of APPNP": models.UGDGNN.from_model(build("APPNP")),
        "UGDGNN of JKNet": models.UGDGNN.from_model(build("JKNet")),
        "UGDGNN of GPRGNN of SGC": models.UGDGNN.from_model(models.GPRGNN.from_model(build("SGC"))),
        "UGDGNN of SGC": models.UGDGNN.from_model(build("SGC-pos")),
        "GPRGNN of APPNP": models.GPRGNN.from_model(build("APPNP")),
        "UGDGNN of UGDGNN": models.UGDGNN.from_model(build("UGDGNN-hidden-free")),
        "filter": models.UGDGNN.from_filter(high_pass, 4, features=IN).double(),
        "steep filter": models.UGDGNN.from_filter(us.spectral.band_pass(0.5, 0.7), 30, features=IN).double(),
    }


def signal(nodes, features=IN, seed=0):
    return torch.randn(nodes, features, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def sparse_signal(nodes, seed=0):
    """Few entries, and rows without any."""
    x = signal(nodes, IN, seed) * (signal(nodes, IN, seed + 1) > 0.3)
    x[1] = 0
    return x


def _pairs(nodes, share, seed, both=True, loops=0):
    """A random edge list whose last two nodes are isolated, with a few self-loops."""
    generator = torch.Generator().manual_seed(seed)
    hit = torch.rand(nodes, nodes, generator=generator) < share
    hit = torch.triu(hit, 1) | torch.triu(hit, 1).T if both else hit.fill_diagonal_(False)
    hit[-2:], hit[:, -2:] = False, False
    hit[range(loops), range(loops)] = True
    return hit.nonzero().T.contiguous()


def edge_lists():
    """Edge lists by name: (edge_index, weights or None, nodes)."""
    plain, directed = _pairs(13, 0.3, 1, loops=3), _pairs(13, 0.25, 3, both=False, loops=1)
    weighted = _pairs(12, 0.3, 2, loops=2)
    low, high = weighted.min(0).values, weighted.max(0).values
    weights = 0.2 + ((3 * low + 7 * high) % 11).double() / 4
    karate = networkx.karate_club_graph()
    pairs = torch.tensor(list(karate.edges())).T
    return {
        "isolated": (plain, None, 13),
        "weighted": (weighted, weights, 12),
        "directed": (directed, None, 13),
        "karate": (torch.cat([pairs, pairs.flip(0)], 1), None, karate.number_of_nodes()),
    }


def dense(edge_index, weights, nodes):
    """D^-1/2 (W + I) D^-1/2 with the edge (s, t) in row t; loops in the data keep their weight."""
    w = torch.zeros(nodes, nodes, dtype=torch.float64)
    w[edge_index[1], edge_index[0]] = 1.0 if weights is None else weights
    w += torch.diag((w.diagonal() == 0).double())
    scale = w.sum(1).rsqrt()
    return scale[:, None] * w * scale


def graphs():
    """Every graph as (Graph, dense A)."""
    small = us.testing.small_graph()
    made = {"small": (small, small.to_dense())}
    for name, (index, weights, nodes) in edge_lists().items():
        graph = us.Graph.from_edges(index, nodes=nodes, weights=weights, directed=True).to(torch.float64)
        made[name] = (graph, dense(index, weights, nodes))
    named = us.Graph.from_networkx(networkx.karate_club_graph(), weight="none").to(torch.float64)
    made["networkx"] = (named, dense(*edge_lists()["karate"]))
    return made


def close(a, b, tolerance=1e-10):
    """Equal to a relative tolerance, element by element."""
    return bool(torch.isfinite(a).all()) and torch.allclose(a, b, rtol=tolerance, atol=tolerance)


def trainable(model):
    return [p for p in model.parameters() if p.requires_grad]


def slopes(output, model):
    """The gradient of a loss that treats every entry of the output differently."""
    weight = torch.cos(torch.arange(output.numel(), dtype=output.dtype)).view(output.shape)
    return torch.autograd.grad((output * weight).sum() + output.square().sum() / 2, trainable(model))
