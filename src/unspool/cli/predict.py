"""``unspool predict``: classes, probabilities or numbers for the nodes of a graph, or links between them, as a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unspool import datasets
from unspool.cli.card import check_card
from unspool.cli.data_options import DataOptions
from unspool.cli.link_predict import LinkQuestion, check_direction
from unspool.cli.link_predict import run as answer_links
from unspool.cli.new_nodes import NewNodes, check_alone
from unspool.cli.predict_nodes import FewNodes
from unspool.cli.tables import check_table, write_table
from unspool.cli.terminal import echo
from unspool.cli.train_options import optional_model
from unspool.cli.training_data import training_data
from unspool.errors import IncompatibleError, InputError, mention
from unspool.models.pretrained import CARD, load_with_card
from unspool.ops.stored_hops import StoredHops
from unspool.train import TaskKind
from unspool.train.evaluation import temperature_of


def run(
    checkpoint: Path,
    given: DataOptions,
    model: str | None,
    changed_code: bool,
    out: Path,
    only: str,
    device: str,
    as_json: bool,
    asked: LinkQuestion,
    uncalibrated: bool = False,
    new: tuple[Path | None, Path | None] = (None, None),
) -> None:
    """Load, predict, write; ``new``: the files with new nodes and with their edges."""
    check_table(out)
    check_alone(*new, only, {"nodes": asked.nodes, "pairs": asked.pairs, "top": asked.top})
    asked.check(only)
    models = _models(checkpoint, device, optional_model(model), changed_code)
    card = models[0].card
    if _kind(card) is not TaskKind.LINKS:
        asked.refuse(_kind(card).value, checkpoint)
    elif new[0] is not None:
        raise IncompatibleError(
            f"{mention('new_nodes')} is for models that say something of a node, and {checkpoint} was trained on links"
        )
    data, notes = training_data(card, given, checkpoint)
    check_fits(models[0], data, checkpoint)
    links = _kind(card) is TaskKind.LINKS
    if links:
        check_direction(data)
    few = None if links or asked.nodes is None else FewNodes.named(asked.nodes, data, _kind(card).value)
    if new[0] is not None:
        few = NewNodes.read(new[0], new[1], card, data, given)
        notes = [*notes, *few.notes]
    chosen = _chosen(data, only, models, checkpoint) if few is None else few.ids
    for note in notes:
        echo(f"note: {note}", err=True)
    if links:
        answer_links(models, data, asked, chosen, out, device, as_json)
        return
    warm = [] if uncalibrated else temperatures(models)
    columns = _columns(_output(models, data, device, card, few, calibrate=bool(warm)), card)
    rows = chosen.numpy() if few is None else slice(None)
    # One temperature changes no class; the mean of several seeds may tip over where they disagree.
    raw = _columns(_output(models, data, device, card, few), card) if warm and len(models) > 1 else columns
    names = [str(i) for i in range(data.nodes)] if data.names is None else [str(name) for name in data.names]
    table: dict[str, Any] = {"id": few.names if isinstance(few, NewNodes) else [names[i] for i in chosen.tolist()]}
    table.update({name: values[rows] for name, values in columns.items()})
    write_table(out, list(table.items()))
    _say(out, table, data, models, as_json, chosen, only, few, warm)
    if warm and not as_json:
        echo(_calibration_line(warm, int((raw["prediction"] != columns["prediction"])[rows].sum())))


def _models(checkpoint: Path, device: str, kind: type[nn.Module] | None, changed_code: bool) -> list[Any]:
    """One model, or all the seeds of a folder."""
    seeds = sorted(checkpoint.glob(f"seed*/{CARD}"), key=lambda p: (len(p.parent.name), p.parent.name))
    if (checkpoint / CARD).is_file() or not seeds:
        return [load_checked(checkpoint, kind, changed_code, device)]
    found = [load_checked(place.parent, kind, changed_code, device) for place in seeds]
    kinds = {(m.card["model"], m.card["in_features"], m.card["out_features"]) for m in found}
    if len(kinds) > 1:
        raise ValueError(f"{checkpoint} holds seeds of different models; give one of them, such as {seeds[0].parent}")
    for model, place in zip(found, seeds, strict=True):
        if _recipe(model.card) != _recipe(found[0].card):
            raise ValueError(
                f"{place.parent} was left there by another run than {seeds[0].parent} (other settings or data); remove it, "
                "or give one seed"
            )
    return found


def load_checked(place: Path, kind: type[nn.Module] | None, changed_code: bool, device: str = "cpu") -> Any:
    """A trained model whose card has been looked through."""
    model, card = load_with_card(place, model=kind, device=device, changed_code=changed_code)
    check_card(card, place, card["out_features"])
    return model


def _recipe(card: Mapping[str, Any]) -> tuple[Any, ...]:
    trial = {name: value for name, value in (card.get("trial") or {}).items() if name != "seed"}
    return card.get("settings"), trial, (card.get("data") or {}).get("fingerprint"), card.get("solved_exactly")


def check_fits(model: Any, data: Any, checkpoint: Path) -> None:
    """Refuse data of another width than the model was trained on."""
    width, wanted = int(data.features.shape[1]), model.card["in_features"]
    if width != wanted:
        raise ValueError(
            f"{checkpoint} was trained on {wanted} features, and {data.name} has {width}; give the same columns "
            "(--feature-column names them)"
        )


@torch.no_grad()
def _output(
    models: list[Any],
    data: Any,
    device: str,
    card: Mapping[str, Any],
    few: FewNodes | NewNodes | None,
    calibrate: bool = False,
) -> Tensor:
    """Probabilities or numbers, averaged over the models."""
    x = data.features.to(device)
    graph = None if isinstance(x, StoredHops) else data.graph.to(device)
    kind = _kind(card)
    total: Any = 0.0
    for model in models:
        said: Tensor = model(x, graph) if few is None else few.say(model, x, graph)
        output = said.double().cpu()
        if not bool(torch.isfinite(output).all()):
            node = int(torch.nonzero(~torch.isfinite(output))[0, 0])
            raise ValueError(
                f"the model says {float(output[node][~torch.isfinite(output[node])][0])} about node {node}, so nothing is "
                "written: its weights are not finite, or the features are far larger than in training; train again, or scale them"
            )
        own: Mapping[str, Any] = model.card.get("task") or {}
        warm = temperature_of(model.card) if calibrate else None
        output = kind.answer(output if warm is None else output / warm)
        if "scale" in own:
            output = output * torch.tensor(own["scale"]) + torch.tensor(own["centre"])
        total = total + output
    return total / len(models)


def temperatures(models: list[Any]) -> list[float]:
    """Of the models that have one, where they give probabilities."""
    if _kind(models[0].card) not in (TaskKind.CLASSES, TaskKind.BINARY):
        return []
    return [warm for model in models if (warm := temperature_of(model.card)) is not None]


def _calibration_line(warm: list[float], moved: int) -> str:
    told = ", ".join(f"{one:.3g}" for one in warm)
    line = f"probabilities are calibrated (temperature {told}, from validation nodes); --uncalibrated writes the network's own"
    return (
        line if not moved else f"{line}, which give {moved} node{'s'[: moved > 1]} another class, as the seeds disagree"
    )


def _kind(card: Mapping[str, Any]) -> TaskKind:
    return TaskKind((card.get("task") or {}).get("kind", "classes"))


def _columns(output: Tensor, card: Mapping[str, Any]) -> dict[str, Any]:
    """The table's columns by name."""
    kind, known = _kind(card), card.get("data") or {}
    values = output.numpy()
    many = 2 if kind is TaskKind.BINARY else values.shape[1]
    classes = list(known.get("classes") or ())
    classes = classes if len(classes) == many else [str(c) for c in range(many)]
    if kind in (TaskKind.CLASSES, TaskKind.ORDINAL):
        best = np.array(classes, dtype=object)[values.argmax(1)]
        return {"prediction": best, **{f"p_{name}": values[:, c] for c, name in enumerate(classes)}}
    if kind is TaskKind.BINARY:
        best = np.array(classes, dtype=object)[(values[:, 0] > 0.5).astype(int)]
        return {"prediction": best, f"p_{classes[1]}": values[:, 0]}
    if kind is TaskKind.MULTILABEL:
        said = {f"predicted_{name}": (values[:, c] > 0.5).astype(int) for c, name in enumerate(classes)}
        return {**said, **{f"p_{name}": values[:, c] for c, name in enumerate(classes)}}
    if kind in (TaskKind.NUMBERS, TaskKind.COUNTS):
        names = known.get("targets") or []
        names = names if len(names) == values.shape[1] else [str(c) for c in range(values.shape[1])]
        return {f"predicted_{name}": values[:, c] for c, name in enumerate(names)}
    return {"rank": (-values[:, 0]).argsort().argsort() + 1, "score": values[:, 0]}


def _chosen(data: Any, only: str, models: list[Any], checkpoint: Path) -> Tensor:
    if only == "unlabelled":
        chosen = torch.nonzero(data.strata < 0).flatten()
        what = "without a label"
    elif only == "test" and _kind(models[0].card) is TaskKind.LINKS:
        raise InputError("only", only, "all or unlabelled: a model of links was tested on pairs, not on nodes")
    elif only == "test":
        chosen = _test_nodes(data, models, checkpoint)
        what = "in a test set"
    else:
        return torch.arange(data.nodes)
    if chosen.numel() == 0:
        raise ValueError(f"{data.name} has no nodes {what}; leave --only out")
    return chosen


def _test_nodes(data: Any, models: list[Any], checkpoint: Path) -> Tensor:
    """The nodes that no model was trained on: random splits were drawn anew for every seed."""
    if data.split is None:
        return torch.empty(0, dtype=torch.int64)
    seeds = [(model.card.get("metrics") or {}).get("seed", 0) for model in models]
    found = {split.hash: split for split in (datasets.splits.repetition(data, seed) for seed in seeds)}
    if len(found) > 1:
        raise ValueError(
            f"every seed of {checkpoint} has a test set of its own; give one of them, such as {checkpoint / f'seed{seeds[0]}'}"
        )
    return next(iter(found.values())).test


def _say(
    out: Path,
    table: dict[str, Any],
    data: Any,
    models: list[Any],
    as_json: bool,
    chosen: Tensor,
    only: str,
    few: FewNodes | NewNodes | None,
    warm: list[float],
) -> None:
    found: dict[str, Any] = {"nodes": len(table["id"]), "models": len(models), "out": str(out), "temperatures": warm}
    if few is not None:
        found |= few.record()
    labels = data.labels[chosen]
    known = torch.nonzero(labels >= 0).flatten()
    if "prediction" in table and known.numel() and data.classes:
        right = [table["prediction"][i] == data.classes[int(labels[i])] for i in known.tolist()]
        found["accuracy_on_known"] = sum(right) / len(right)
    if as_json:
        echo(json.dumps(found))
        return
    mean = "" if len(models) == 1 else f", averaged over {len(models)} seeds"
    echo(f"{data.name}: predicted {found['nodes']} nodes{mean}")
    if few is not None:
        echo(few.sentence(data.nodes))
    if "accuracy_on_known" in found:
        seen = " (training nodes included)" if only == "all" else ""
        echo(
            f"{100 * found['accuracy_on_known']:.1f} % of the {known.numel()} nodes with a known label are predicted as such{seen}"
        )
    echo(f"written: {out}")
