"""What the field's data sets hold, by fingerprint, so that a changed file is not taken for the set it is named after."""

from __future__ import annotations

from unspool.datasets.dataset import Dataset
from unspool.datasets.fingerprint import fingerprint

#: Of content and splits, as read from the published files; Planetoid's sets with and without Geom-GCN's splits beside them.
#: Sets that are not listed were not at hand when this was written.
PUBLISHED: dict[str, tuple[str, ...]] = {
    "cora": ("48a4659326926ac5354e38c309dcea5e", "af9917908a54ef312e5367093d437f19"),
    "citeseer": ("00798276cecc0550951e4bd5d11ac561", "4980f0c77243c9f533155046934df496"),
    "pubmed": ("fbdbd875f4000f686a044992305556e8", "111c4016fdff0b0e04b1d539d9cd0a28"),
    "cs": ("715174433a24ec9751e587eb2e7b5856",),
    "physics": ("1c34bd701f3b97623e9b68a56af39407",),
    "photo": ("efe09ede1c90cda757702749a36ea2a4",),
    "texas": ("ebad2b6602cd7ac02a829c169d77986c",),
    "wisconsin": ("0d9eacd2cdd4aa7f468e2d8b99415ca6",),
    "cornell": ("20e57e3abc0601e503ebff75e155ab1f",),
    "actor": ("149ffbbafdf2b043f7850844bb375261",),
    "chameleon_filtered": ("ca304aabbcac149d65d44a6a879e99dd",),
    "squirrel_filtered": ("43a259c120c9bebefa4a8dbe5e15212f",),
}


def mark(dataset: Dataset) -> str:
    """The fingerprint of a data set's content and of the splits that came with it.

    Example:
        >>> from unspool import datasets
        >>> mark(datasets.load("citeseer")) in PUBLISHED["citeseer"]
        True
    """
    names = sorted(dataset.recorded)
    return fingerprint(dataset.hash, names, [dataset.recorded[name].numpy() for name in names])


def difference(name: str, dataset: Dataset) -> str | None:
    """How the content differs from what was published, in a few words; None where it does not, or where nobody knows."""
    known, found = PUBLISHED.get(name), mark(dataset)
    if known is None or found in known:
        return None
    return f"its content is {found[:8]}, not {known[0][:8]}"
