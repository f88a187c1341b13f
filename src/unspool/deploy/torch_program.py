"""A trained network as a program of ``torch.export``: plain operators of torch, loaded without this package."""

from __future__ import annotations

import copy
import os
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unspool.deploy.answer import Answer, answer_of
from unspool.deploy.plain_ops import plain_ops
from unspool.errors import IncompatibleError
from unspool.files import write_whole
from unspool.graph import Graph

#: How far an exported network may be from the original, relative to the size of its output.
TOLERANCE = 1e-6


class _OnGraph(nn.Module):
    """A network on one graph, as a function of features alone."""

    def __init__(self, model: nn.Module, graph: Graph, answer: Answer) -> None:
        super().__init__()
        self.model, self.graph, self.answer = model, graph, answer

    def forward(self, x: Tensor) -> Tensor:
        return self.answer.read(self.model(self.answer.prepare(x), self.graph))


def export_torch(model: nn.Module, graph: Graph, path: str | os.PathLike[str], *, answer: Answer | None = None) -> Path:
    """Write a trained network on a graph as a program that needs nothing but torch: ``torch.export.load(path).module()(x)``.

    The graph, its normalisation and the weights are inside; features, dense and of shape (nodes, features), are the input. The
    program is run once on random features and compared with the network before anything is written.

    Args:
        model: called as ``model(x, graph)``; a named model, an unrolled network or a module of your own.
        graph: the graph, whose nodes keep their order.
        path: of the file, ``.pt2`` by custom.
        answer: what comes out; as the model's card says when omitted (probabilities, numbers on the scale of the targets), else the
            raw output.

    Returns:
        The path.

    Example:
        >>> import tempfile, pathlib, torch, unspool as us
        >>> graph, x = us.graph.ring(6), torch.eye(6)
        >>> model = us.models.GCN(6, 3).eval()
        >>> file = export_torch(model, graph, pathlib.Path(tempfile.mkdtemp()) / "gcn.pt2")
        >>> program = torch.export.load(file).module()
        >>> torch.allclose(program(x), model(x, graph), atol=1e-6)
        True
    """
    made = _OnGraph(_evaluating(model), graph.to("cpu"), answer_of(model, answer)).eval()
    x = _random_features(made.model, graph)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch's words to itself about its own format
        # Before the trace: what a graph keeps (its incidence matrix) is made at the first call.
        wanted: Tensor = made(x)
        program = _traced(made, x, type(model).__name__)
        check_same(program.module()(x), wanted, type(model).__name__)
        write_whole(path, lambda file: torch.export.save(program, file))
    return Path(path)


def _evaluating(model: nn.Module) -> nn.Module:
    """A copy on the CPU that does not drop anything, and whose parameters are numbers."""
    return copy.deepcopy(model).cpu().eval().requires_grad_(False)


def _random_features(model: nn.Module, graph: Graph) -> Tensor:
    width = getattr(model, "in_features", None)
    if not isinstance(width, int):
        raise IncompatibleError(
            f"{type(model).__name__} does not say how many features it takes; give it an attribute in_features"
        )
    like = next((p.dtype for p in model.parameters() if p.is_floating_point()), graph.dtype)
    return torch.randn(graph.nodes, width, dtype=like, generator=torch.Generator().manual_seed(0))


def _traced(made: nn.Module, x: Tensor, name: str) -> Any:
    try:
        program = torch.export.export(made, (x,), strict=False).run_decompositions(plain_ops())
    except IncompatibleError:
        raise
    except Exception as problem:
        said = str(problem).strip().split("\n")[0][:200]
        raise IncompatibleError(
            f"{name} cannot be written as a program of torch: {type(problem).__name__} ({said}); what it computes must not depend on "
            "the values of its features through Python's if, loops or lists"
        ) from problem
    left = sorted({str(node.target) for node in program.graph.nodes if "unspool" in str(node.target)})
    if left:
        raise IncompatibleError(
            f"{name} uses {', '.join(left)}, which only this package can compute; it is not exported"
        )
    _forget_where(program)
    return program


def _forget_where(program: Any) -> None:
    """Leave out what says on whose machine, and from which lines, the program was made, and the features it was traced with."""
    for node in program.graph.nodes:
        for name in ("stack_trace", "nn_module_stack", "source_fn_stack", "torch_fn", "from_node"):
            node.meta.pop(name, None)
    program._example_inputs = None


def check_same(found: Any, wanted: Tensor, name: str) -> None:
    """Refuse an export that says something else than its network."""
    size = max(1.0, float(wanted.abs().max())) if wanted.numel() else 1.0
    far = float((torch.as_tensor(found) - wanted).abs().max()) / size if wanted.numel() else 0.0
    if not far <= TOLERANCE:  # NaN is far, too
        raise IncompatibleError(
            f"what was exported of {name} is {far:.1e} from the network itself, more than {TOLERANCE:g}; it was not written"
        )
