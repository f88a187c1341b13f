"""What a person should know about data before they are trained on."""

from __future__ import annotations

from typing import Any


def column_lines(data: Any) -> list[str]:
    """Which columns are features, and a remark where their sizes are far apart."""
    from unspool.datasets.checking.feature_columns import scale_findings

    names = data.feature_names
    if names is None:
        return []
    shown = ", ".join(names[:12]) + (f", ... ({len(names)})" if len(names) > 12 else "")
    return [f"features: {shown}", *(f"note: {finding}" for finding in scale_findings(data))]


def weight_lines(loader: Any) -> list[str]:
    """How much nodes and classes count in training, where they do not all count the same.

    Example:
        >>> from unspool import datasets, train
        >>> weight_lines(train.TrialLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0), class_weight={"0": 1, "1": 4}))
        ['training and validation losses are weighted: class 0 by 1, class 1 by 4']
    """
    rule, told = loader.class_weight, list[str]()
    if loader.data.sample_weight is not None:
        source = {} if loader.source is None else loader.source
        told.append(
            f"nodes by the column {source['sample_weight_column']}"
            if "sample_weight_column" in source
            else "nodes by their own"
        )
    if isinstance(rule, tuple):
        told += [f"class {name} by {weight:g}" for name, weight in zip(loader.data.classes, rule, strict=True)]
    elif rule is not None:
        told.append("classes balanced by their numbers of training nodes")
    return [f"training and validation losses are weighted: {', '.join(told)}"] if told else []
