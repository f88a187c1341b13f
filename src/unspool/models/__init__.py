"""Named networks, one file each: what each minimises, how, and which coefficients it learns.

>>> import torch, unspool as us
>>> model = us.models.UGDGNN(1433, 7, depth=5, hidden=64, dropout=0.8)
>>> print(model.objective)
αₖ ‖H − X‖²_Tαₖ  +  βₖ ‖B H‖²_Tβₖ
"""

# ruff: noqa: I001 - the paper's models stand in its order, later ones after them, which is the order of MODELS
from unspool.models.model import Model as Model

from unspool.models.sgc import SGC as SGC
from unspool.models.ppnp import PPNP as PPNP
from unspool.models.appnp import APPNP as APPNP
from unspool.models.jknet import JKNet as JKNet
from unspool.models.gprgnn import GPRGNN as GPRGNN
from unspool.models.gcn import GCN as GCN
from unspool.models.gcnii import GCNII as GCNII
from unspool.models.airgnn import AirGNN as AirGNN
from unspool.models.dagnn import DAGNN as DAGNN
from unspool.models.ugdgnn import UGDGNN as UGDGNN
from unspool.models.mlp import MLP as MLP

from unspool.models.elasticgnn import ElasticGNN as ElasticGNN
from unspool.models.pgnn import PGNN as PGNN
from unspool.models.twirls import TWIRLS as TWIRLS
from unspool.models.gnnlf import GNNLF as GNNLF
from unspool.models.gnnhf import GNNHF as GNNHF
from unspool.models.graff import GRAFF as GRAFF
from unspool.models.fairgnn import FairGNN as FairGNN
from unspool.models.signedgnn import SignedGNN as SignedGNN
from unspool.models.trustgnn import TrustGNN as TrustGNN
from unspool.models.stablegnn import StableGNN as StableGNN
from unspool.models.graph_first_gprgnn import GraphFirstGPRGNN as GraphFirstGPRGNN
from unspool.models.graph_first_ugdgnn import GraphFirstUGDGNN as GraphFirstUGDGNN
from unspool.models.sign import SIGN as SIGN

from unspool.models.channels import Channels as Channels
from unspool.models.gcnii import IdentityMapping as IdentityMapping
from unspool.models.hop_start import HopStart as HopStart
from unspool.models.jknet import Combine as Combine
from unspool.models.known_labels import correct_and_smooth as correct_and_smooth
from unspool.models.known_labels import label_propagation as label_propagation
from unspool.models.masks import Masks as Masks
from unspool.models.pretrained import BuiltFrom as BuiltFrom
from unspool.models.pretrained import load_pretrained as load_pretrained
from unspool.models.pretrained import save_pretrained as save_pretrained
from unspool.models.registry import find_model as find_model
from unspool.models.sgc import Side as Side
from unspool.models.stablegnn import Signal as Signal
from unspool.models.stablegnn import Steps as Steps
from unspool.models.twirls import Robust as Robust
from unspool.models.ugdgnn import Layers as Layers
from unspool.models.ugdgnn import Mixing as Mixing

#: Every named model, in the order in which they are imported above.
MODELS: tuple[type[Model], ...] = tuple(
    one for one in list(vars().values()) if isinstance(one, type) and issubclass(one, Model) and one is not Model
)

#: Those of the paper's experiments: the ten that it derives or compares with, and the MLP.
PAPER_MODELS: tuple[type[Model], ...] = (SGC, PPNP, APPNP, JKNet, GPRGNN, GCN, GCNII, AirGNN, DAGNN, UGDGNN, MLP)
