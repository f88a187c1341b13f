"""Named networks, one file each: what each minimises, how, and which coefficients it learns.

>>> import torch, unspool as us
>>> model = us.models.UGDGNN(1433, 7, depth=5, hidden=64, dropout=0.8)
>>> print(model.objective)
αₖ ‖H − X‖²_Tαₖ  +  βₖ ‖B H‖²_Tβₖ
"""

from unspool.models.airgnn import AirGNN
from unspool.models.appnp import APPNP
from unspool.models.channels import Channels
from unspool.models.checkpoint import load, save
from unspool.models.dagnn import DAGNN
from unspool.models.gcn import GCN
from unspool.models.gcnii import GCNII, IdentityMapping
from unspool.models.gprgnn import GPRGNN
from unspool.models.hop_start import HopStart
from unspool.models.jknet import Combine, JKNet
from unspool.models.masks import Masks
from unspool.models.mlp import MLP
from unspool.models.model import Model
from unspool.models.ppnp import PPNP
from unspool.models.presets import Preset, has_preset, preset
from unspool.models.sgc import SGC, Side
from unspool.models.ugdgnn import UGDGNN, Layers, Mixing

#: Every named model, in the order of the paper.
MODELS: tuple[type[Model], ...] = (SGC, PPNP, APPNP, JKNet, GPRGNN, GCN, GCNII, AirGNN, DAGNN, UGDGNN, MLP)

__all__ = [
    "APPNP", "DAGNN", "GCN", "GCNII", "GPRGNN", "MLP", "MODELS", "PPNP", "SGC", "UGDGNN", "AirGNN", "Channels", "Combine", "HopStart",
    "IdentityMapping", "JKNet", "Layers", "Masks", "Mixing", "Model", "Preset", "Side", "has_preset", "load", "preset", "save",
]  # fmt: skip
