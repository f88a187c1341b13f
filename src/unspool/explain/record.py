"""An explanation as plain values, for JSON."""

from __future__ import annotations

from typing import Any

from unspool.explain.explanation import Explanation
from unspool.explain.score import Outputs
from unspool.explain.text import edge_rows, hop_rows


def record(found: Explanation, top: int | None = None) -> dict[str, Any]:
    """Everything as numbers, text and lists."""
    score, split, parts, change = found.score, found.split, found.parts, found.change
    chances = score.probabilities
    places = found.largest(top)
    return {
        "model": found.model,
        "objective": found.objective,
        "node": found.node,
        "name": found.name,
        "neighbours": found.degree,
        "label": None if found.labels is None else int(found.labels[found.place]),
        "kind": score.kind.value,
        "classes": list(score.names),
        "outputs": score.outputs.tolist(),
        "probabilities": None if chances is None else chances.tolist(),
        "predicted": None if chances is None else score.predicted,
        "target": score.target,
        "against": score.against,
        "score": score.value,
        "method": split.method.value,
        "note": split.note,
        "parts": {
            "own": parts.own, "neighbours": parts.neighbours, "bias": parts.bias, "remainder": parts.remainder,
            "fidelity": parts.fidelity, "smoothness": parts.smoothness,
        },
        "hops": None if split.by_hop is None else [{"hop": k, "contribution": v} for k, v in hop_rows(found)],
        "distances": [{"edges": d, "contribution": v} for d, v in found.by_distance.items()],
        "nodes": [_node_record(found, p) for p in [found.place, *places]],
        "all_other_nodes": parts.neighbours - float(split.total[places].sum()),
        "edge_weights": None if found.edges is None else [{"name": n, "weight": w} for n, w in edge_rows(found)],
        "change": {
            "before": change.before.tolist(), "after": change.after.tolist(), "distance": change.distance,
            "cosine": change.cosine, "outputs_without_neighbours": None if change.alone is None else change.alone.tolist(),
        },
        "terms": [{"term": t.term, "before": t.before, "after": t.after} for t in found.terms],
        "features": _feature_records(found, top),
        "bands": found.bands,
        "response": None if found.response is None else found.response.rows(41),
        "steps": None if found.layers is None else [layer.alpha for layer in found.layers.layers],
        "steps_beta": None if found.layers is None else [layer.beta for layer in found.layers.layers],
        "steps_note": found.layers_note,
    }  # fmt: skip


def _node_record(found: Explanation, p: int) -> dict[str, Any]:
    split, node = found.split, int(found.split.nodes[p])
    return {
        "node": node,
        "name": found.name_of(node),
        "edges": int(found.distance[p]),
        "contribution": float(split.total[p]),
        "by_hop": None if split.by_hop is None else split.by_hop[:, p].tolist(),
        "predicted": int(found.predicted[p]) if found.score.kind is Outputs.CLASSES else None,
        "label": None if found.labels is None else int(found.labels[p]),
    }


def _feature_records(found: Explanation, top: int | None) -> list[dict[str, Any]] | None:
    features = found.features
    if features is None:
        return None
    return [
        {
            "feature": int(features.columns[p]),
            "name": features.names[p],
            "value": float(features.values[p]),
            "contribution": float(features.shares[p]),
        }
        for p in features.largest(features.columns.numel() if top is None else top)
    ]
