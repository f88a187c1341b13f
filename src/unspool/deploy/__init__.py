"""Trained networks put to use elsewhere: as a program of torch alone, as one file of NumPy alone, for a few nodes, and for new ones.

>>> import tempfile, pathlib, torch, unspool as us
>>> from unspool import datasets, deploy
>>> data = datasets.contextual_sbm(nodes=60, classes=3, seed=0)
>>> model = us.models.APPNP(data.features.shape[1], 3, depth=2).eval()
>>> place = pathlib.Path(tempfile.mkdtemp())
>>> deploy.export_numpy(model, data.graph, place / "appnp.py").name
'appnp.py'
>>> found = deploy.predict_nodes(model, data.features, data.graph, [4, 7])
>>> found.output.shape, found.nodes_read < data.nodes
(torch.Size([2, 3]), True)
"""

from unspool.deploy.answer import Answer, Meaning
from unspool.deploy.few_nodes import NodePredictions, Reach, predict_nodes, receptive_hops
from unspool.deploy.new_nodes import predict_new_nodes
from unspool.deploy.numpy_file import export_numpy
from unspool.deploy.torch_program import export_torch

__all__ = [
    "Answer", "Meaning", "NodePredictions", "Reach", "export_numpy", "export_torch", "predict_new_nodes", "predict_nodes", "receptive_hops",
]  # fmt: skip
