"""Loading a data set by name: from the package, from our cache, or from raw files, in that order."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from unspool.datasets import contents
from unspool.datasets.dataset import Dataset
from unspool.datasets.limits import TooLarge
from unspool.datasets.places import Place, cache_folder, data_root, find_folder, stamps
from unspool.datasets.published import PUBLISHED, difference
from unspool.datasets.readers.arrays import Unreadable
from unspool.datasets.registry import is_foreign, load_foreign, registered, unnamed
from unspool.datasets.sources import GENERATORS, SOURCES, Source, key_named, key_of
from unspool.datasets.split import Split

#: Sets that ship inside the package.
EMBEDDED = Path(__file__).parent / "embedded"


def load(
    name: str,
    root: Place | None = None,
    *,
    split: Split | Callable[[Dataset], Split] | None = None,
    cache: Place | None = None,
    download: bool = False,
) -> Dataset:
    """Load a data set by name.

    CiteSeer ships inside the package. Other sets are read from raw files in PyTorch Geometric's layout under the data
    root, which may be read-only, and then kept in a cache that loads in milliseconds. Nothing is fetched from the
    network unless asked for.

    Args:
        name: in any case: cora, citeseer, pubmed, cs, physics, photo, computers, arxiv, texas, wisconsin, cornell, actor,
            chameleon_filtered, squirrel_filtered, roman-empire, amazon-ratings, minesweeper, tolokers, questions;
            cora_metattack and citeseer_metattack, with ``_0.05`` to ``_0.25`` behind them for attacked edges; or a generator with its
            defaults: contextual_sbm, grid, sensor. :func:`catalogue` lists them. A set of another package by the name that it registers, or
            as ``package.module:function``, which is imported and called.
        root: the data root; else ``UNSPOOL_DATA``, else ``data`` in the user's cache folder.
        split: another split than the one of the literature: a :class:`Split`, or a function from data sets to splits.
        cache: the folder for processed sets; else ``processed`` in the user's cache folder.
        download: fetch missing files into the data root, over https. They are kept only if they hold what the published set
            holds, where this version knows that (for five of Platonov's sets, Computers and arxiv it does not).

    Returns:
        The data set with the literature's split: public (Planetoid), 20/30 per class with seed 0 (CS, Physics, Photo,
        Computers), OGB's, or the first of the ten recorded ones. Features are as in the files; call
        ``row_normalised()`` where a paper does.

    Example:
        >>> from unspool import datasets
        >>> data = datasets.load("CiteSeer")
        >>> data.classes[int(data.labels[0])]
        'DB'
        >>> other = datasets.load("citeseer", split=lambda d: datasets.splits.random(d.labels, seed=4))
        >>> other.split.name
        'random 0.6/0.2/0.2'
    """
    if is_foreign(name):
        found = load_foreign(name)
        return found if split is None else found.with_split(split)
    key = key_of(name)
    if key in GENERATORS:
        made = GENERATORS[key]()
        return made if split is None else made.with_split(split)
    source = SOURCES[key]
    base = data_root(root)
    if download:
        _fetch_missing(source, base)
    dataset = _found(source, base, cache_folder(cache))
    return dataset.with_split(source.standard if split is None else split)


@dataclass(frozen=True)
class Entry:
    """One line of :func:`catalogue`: a name, what it is, and whether it can be loaded here and now."""

    name: str
    about: str
    where: str


def catalogue(root: Place | None = None, cache: Place | None = None) -> tuple[Entry, ...]:
    """All data sets that :func:`load` knows, and where each would come from.

    Example:
        >>> from unspool import datasets
        >>> [entry.where for entry in datasets.catalogue() if entry.name in ("citeseer", "grid")]
        ['in the package', 'generated']
    """
    base, folder = data_root(root), cache_folder(cache)

    def where(source: Source) -> str:
        if (EMBEDDED / f"{source.name}.npz").is_file():
            return "in the package"
        raw = find_folder(base, source.folders, source.files[0])
        if raw is not None:
            return str(raw)
        kept = folder / f"{source.name}.npz"
        return str(kept) if kept.is_file() else f"not here; files go to {base / source.folders[0]}"

    entries = [Entry(source.name, source.about, where(source)) for source in SOURCES.values()]
    entries += [Entry(name, (f.__doc__ or "").split("\n")[0], "generated") for name, f in GENERATORS.items()]
    entries += [Entry(name, one.value, "another package") for name, one in registered().items()]
    taken = "another package; the name that it registers, {}, is taken"
    return (*entries, *(Entry(one.value, "", taken.format(one.name)) for one in unnamed()))


def cached_copy(name: str, cache: Place | None = None) -> Path | None:
    """Where :func:`load` keeps a processed copy of a set, whether or not it is there; None of sets that need none.

    Example:
        >>> cached_copy("photo", cache="here").name, cached_copy("citeseer"), cached_copy("grid")
        ('photo.npz', None, None)
    """
    key = key_named(name)
    if key not in SOURCES or (EMBEDDED / f"{key}.npz").is_file():
        return None
    return cache_folder(cache) / f"{key}.npz"


def _found(source: Source, base: Path, folder: Path) -> Dataset:
    raw = find_folder(base, source.folders, source.files[0])
    embedded = EMBEDDED / f"{source.name}.npz"
    if embedded.is_file():
        return _with_extras(contents.read(embedded)[0], source, raw)
    present = stamps(raw, source.files + source.extras) if raw is not None else {}
    kept = folder / f"{source.name}.npz"
    known = _from_cache(kept, present)
    if known is not None:
        return known
    missing = next((file for file in source.files if file not in present), None)
    if raw is None or missing is not None:
        raise FileNotFoundError(_absent(source, raw if raw is not None else base / source.folders[0], missing))
    made = read_raw(source, raw)
    _keep(made, kept, present)
    return made


def read_raw(source: Source, raw: Path) -> Dataset:
    """The set as its raw files have it, without a split; its notes say where it is not what was published."""
    try:
        made = source.read(raw, source.title).dataset()
    except (Unreadable, TooLarge):
        raise
    except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RuntimeError) as problem:
        # Trap: RuntimeError is torch's word for most things, and a MemoryError none of these.
        raise Unreadable(
            f"the files in {raw} are not those of {source.title} ({type(problem).__name__}: {problem}); fetch them again"
        ) from None
    found = difference(source.name, made)
    if found is None:
        return made if source.name in PUBLISHED else _noted(made, "no fingerprint of this set is known: unchecked")
    return _noted(made, f"not the set as it was published: {found}")


def _noted(dataset: Dataset, note: str) -> Dataset:
    return replace(dataset, notes=(*dataset.notes, note))


def _from_cache(kept: Path, present: dict[str, list[int]]) -> Dataset | None:
    """The processed set, if it is there, sound, and made from the raw files that are there now (or none are)."""
    if not kept.is_file():
        return None
    try:
        dataset, sources = contents.read(kept)
    except contents.Corrupt as problem:
        warnings.warn(f"the cache {kept} is put aside: {problem}; it is made again from the raw files", stacklevel=4)
        return None
    return dataset if not present or sources == present else None


def _keep(dataset: Dataset, kept: Path, present: dict[str, list[int]]) -> None:
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        contents.write(dataset, kept, present)
    except OSError as problem:
        warnings.warn(
            f"cannot write the cache {kept} ({problem.strerror}), so {dataset.name} is read from its raw files each "
            "time; pass cache= or set XDG_CACHE_HOME",
            stacklevel=4,
        )


def _with_extras(dataset: Dataset, source: Source, raw: Path | None) -> Dataset:
    """The embedded set with Geom-GCN's splits, where the data root has them."""
    from unspool.datasets.readers.arrays import ten_splits

    if raw is None:
        return dataset
    import torch

    more = {name: torch.from_numpy(codes) for name, codes in ten_splits(raw / "geom-gcn" / "raw", source.name).items()}
    return replace(dataset, recorded={**dataset.recorded, **more})


def _absent(source: Source, folder: Path, missing: str | None) -> str:
    file = source.files[0] if missing is None else missing
    address = f" (published at {source.addresses[file]})" if file in source.addresses else ""
    fetching = ", or have it fetched with download=True" if source.addresses else ""
    return (
        f"{source.title}: {Path(file).name} is missing; put it at {folder / file}{address}, point UNSPOOL_DATA or root= at a "
        f"folder that has {source.folders[0]}/{file}{fetching}"
    )


def _fetch_missing(source: Source, base: Path) -> None:
    from unspool.datasets.fetch import fetch_set

    if (EMBEDDED / f"{source.name}.npz").is_file():
        return
    found = find_folder(base, source.folders, source.files[0])
    folder = found if found is not None else base / source.folders[0]
    missing = [file for file in source.files if not (folder / file).is_file()]
    if missing and not source.addresses:
        raise FileNotFoundError(_absent(source, folder, missing[0]))
    if missing:
        fetch_set(source, folder)
