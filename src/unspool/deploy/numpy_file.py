"""A trained network with a linear propagation as one Python file that needs nothing but NumPy."""

from __future__ import annotations

import base64
import copy
import importlib.resources
import io
import json
import os
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unspool.deploy.answer import Answer, Meaning, answer_of
from unspool.deploy.layers import OTHER_WAY, layers_of
from unspool.deploy.plain_ops import resolvent_terms
from unspool.deploy.torch_program import check_same
from unspool.errors import IncompatibleError
from unspool.files import write_whole
from unspool.graph import Graph, Normalisation
from unspool.models import MLP, Model
from unspool.models.mlp import Still
from unspool.objective import Stencil
from unspool.ops import Basis, Operator
from unspool.spectral.linear_form import Hops, Minimiser, graph_for, read
from unspool.unrolling import Unrolled

Array = np.ndarray[Any, Any]


def export_numpy(model: nn.Module, graph: Graph, path: str | os.PathLike[str], *, answer: Answer | None = None) -> Path:
    """Write a trained network whose propagation is linear as one Python file with NumPy alone: ``from FILE import predict``.

    The file holds weights, hop coefficients and the normalised graph, computes in float64, and takes new features and, where the graph
    was undirected and normalised symmetrically, new edges. It is run once and compared with the network before it is written.

    Args:
        model: an :class:`unspool.models.Model`: encoder, linear propagation, decoder (SGC, PPNP, APPNP, JKNet, GPRGNN, UGDGNN, GNNLF,
            GNNHF, GRAFF, MLP, or one of yours).
        graph: the graph, whose nodes keep their order.
        path: of the file, ``.py``.
        answer: what comes out; as the model's card says when omitted, else the raw output.

    Returns:
        The path.

    Example:
        >>> import tempfile, pathlib, runpy, torch, unspool as us
        >>> graph, x = us.graph.ring(6), torch.eye(6)
        >>> model = us.models.GPRGNN(6, 3).eval()
        >>> file = export_numpy(model, graph, pathlib.Path(tempfile.mkdtemp()) / "gprgnn.py")
        >>> predict = runpy.run_path(str(file))["predict"]
        >>> bool(abs(predict(x.numpy()) - model(x, graph).detach().numpy()).max() < 1e-6)
        True
    """
    if not isinstance(model, Model) or type(model).forward not in (Model.forward, MLP.forward):
        raise IncompatibleError(
            f"{type(model).__name__} cannot be written with NumPy alone: its parts are not an encoder, a propagation and a decoder; "
            f"{OTHER_WAY}"
        )
    said = answer_of(model, answer)
    place = graph_for(model, graph.to("cpu").to(torch.float64))
    hops, basis = _linear(model, place)
    arrays = {"hops": hops, **_matrix(model, place, hops)}
    about: dict[str, Any] = {
        "model": type(model).__name__,
        "objective": str(model.objective),
        "nodes": graph.nodes,
        "features": model.in_features,
        "basis": basis.value,
        "meaning": said.meaning.value,
        "temperature": said.temperature,
        "classes": list(said.classes),
        "columns": columns_of(said, model.out_features),
        "normalise_rows": said.normalise_rows,
        "other_graphs": graph.normalisation is Normalisation.SYMMETRIC and graph.undirected,
    }
    for part, module in (("pre", model.p_pre), ("pos", model.p_pos)):
        layers = layers_of(module, type(model).__name__)
        about[part] = [layer.positive for layer in layers]
        for i, layer in enumerate(layers):
            held = {"weight": layer.weight, "bias": layer.bias}
            arrays.update({f"{part}{i}_{name}": value for name, value in held.items() if value is not None})
    if said.meaning in (Meaning.NUMBERS, Meaning.COUNTS) and said.scale:
        arrays.update(scale=np.array(said.scale), centre=np.array(said.centre))
    text = _filled(about, arrays)
    _check(text, model, graph.to("cpu"), said)
    write_whole(path, lambda file: file.write(text.encode()))
    return Path(path)


def columns_of(answer: Answer, outputs: int) -> list[str]:
    """Names for what comes out.

    Example:
        >>> columns_of(Answer(Meaning.YES, ("stays", "leaves")), 1), columns_of(Answer(), 2)
        (['p_leaves'], ['h0', 'h1'])
    """
    if answer.meaning is Meaning.YES and len(answer.classes) == 2:
        return [f"p_{answer.classes[1]}"]
    if answer.meaning is Meaning.ORDERED and len(answer.classes) == outputs + 1:
        return [f"p_{name}" for name in answer.classes]
    if answer.meaning in (Meaning.CLASSES, Meaning.LABELS) and len(answer.classes) == outputs:
        return [f"p_{name}" for name in answer.classes]
    numbers = answer.meaning in (Meaning.NUMBERS, Meaning.COUNTS)
    return [f"{'predicted_' if numbers else 'h'}{c}" for c in range(outputs)]


def _linear(model: Model, place: Graph) -> tuple[Array, Basis]:
    """The propagation as a polynomial of the graph."""
    if isinstance(model.propagation, Still):
        return np.ones(1), Basis.POWERS
    found = read(model, place)
    if isinstance(found, Hops):
        return found.coefficients.numpy(), found.basis
    reason = "its minimiser is not that of one number for all channels"
    if isinstance(found, Minimiser):
        terms = _resolvent(found.stencil, found.scale)
        if terms is not None:
            return np.array(terms), Basis.CHEBYSHEV
    else:
        reason = found.reason
    raise IncompatibleError(
        f"{type(model).__name__} cannot be written with NumPy alone, which is for linear propagations: {reason}; {OTHER_WAY}"
    )


def _resolvent(stencil: Stencil, scale: float) -> list[float] | None:
    """H = −R (P + Q L)⁻¹ X with L = scale · (I − S), as a series in S, where P, Q and R are numbers."""
    maps = [torch.as_tensor(m, dtype=torch.float64) for m in (stencil.h, stencil.lh, stencil.x)]
    if not stencil.plain or any(m.numel() != 1 for m in maps):
        return None
    p, q, r = (float(m) for m in maps)
    return [-r * c for c in resolvent_terms(p + q * scale, q * scale)]


def _matrix(model: Model, place: Graph, hops: Array) -> dict[str, Array]:
    # As Unrolled does: a single hop needs no Laplacian.
    smooth = isinstance(model.propagation, Unrolled) and len(hops) > 1
    operator: Operator = place.require_laplacian() if smooth else place.operator
    crow, col, val = (part.numpy() for part in operator.forward[:3])
    return {"crow": crow, "col": col, "val": val}


def _filled(about: dict[str, Any], arrays: dict[str, Array]) -> str:
    """The file's text: the template with facts and arrays in it."""
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)  # pyright: ignore[reportArgumentType]
    coded = "\n".join(textwrap.wrap(base64.b64encode(packed.getvalue()).decode(), 120))
    template = importlib.resources.files("unspool.deploy").joinpath("standalone.py").read_text(encoding="utf-8")
    facts = f"json.loads({json.dumps(about)!r})"
    head, _, tail = template.partition('\nARRAYS = ""\n')
    filled = head.replace('json.loads("{}")', facts)
    return f'{filled}\nARRAYS = """\n{coded}\n"""\n{tail}'


def _check(text: str, model: Model, graph: Graph, answer: Answer) -> None:
    """Run the file as it will be run, and compare."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(graph.nodes, model.in_features, dtype=torch.float64, generator=generator)
    exact = copy.deepcopy(model).cpu().double().eval()
    with torch.no_grad():
        wanted: Tensor = answer.read(exact(answer.prepare(x), graph.to(torch.float64)))
    space: dict[str, Any] = {"__name__": "exported"}
    exec(compile(text, "exported", "exec"), space)
    check_same(space["predict"](x.numpy()), wanted, type(model).__name__)
