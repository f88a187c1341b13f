"""``unspool export``: a trained model as a file for machines without this package."""

from __future__ import annotations

import json
from pathlib import Path

from unspool.cli.data_options import DataOptions
from unspool.cli.paths import check_folder
from unspool.cli.predict import check_fits, load_checked
from unspool.cli.terminal import echo
from unspool.cli.train_options import optional_model
from unspool.cli.training_data import training_data
from unspool.deploy import export_numpy, export_torch
from unspool.errors import InputError
from unspool.files import no_empty_folder
from unspool.models.pretrained import find_folder

#: How a file ends, and how it is used.
_ENDINGS = {"torch": ".pt2", "numpy": ".py"}
_WAYS = {
    "torch": "use it without unspool: torch.export.load({file!r}).module()(features)",
    "numpy": "use it without unspool and torch: python {file} features.npy predictions.npy",
}


def run(
    checkpoint: Path,
    given: DataOptions,
    model: str | None,
    changed_code: bool,
    form: str,
    out: Path | None,
    as_json: bool,
) -> None:
    """Load, export, say how it is used."""
    file = Path("out/model").with_suffix(_ENDINGS[form]) if out is None else out
    if file.suffix.lower() != _ENDINGS[form]:
        raise InputError("out", str(file), f"a name that ends in {_ENDINGS[form]}, for --format {form}")
    with no_empty_folder(file.parent):
        check_folder(file.parent)
        network = load_checked(find_folder(checkpoint), optional_model(model), changed_code)
        data, notes = training_data(network.card, given, checkpoint)
        check_fits(network, data, checkpoint)
        for note in notes:
            echo(f"note: {note}", err=True)
        (export_torch if form == "torch" else export_numpy)(network, data.graph, file)
    about = {"out": str(file), "format": form, "nodes": data.nodes, "features": int(data.features.shape[1])}
    if as_json:
        echo(json.dumps(about))
        return
    echo(f"{data.name}: {type(network).__name__} for {data.nodes} nodes with {about['features']} features each")
    echo(f"written: {file}")
    echo(_WAYS[form].format(file=str(file)))
