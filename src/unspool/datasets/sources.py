"""The named data sets: what each is, where its files lie, who reads them, and its usual split."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from unspool.datasets import generate, readers, splits
from unspool.datasets.contents import Contents
from unspool.datasets.dataset import Dataset
from unspool.datasets.readers.attacked import STRENGTHS
from unspool.datasets.readers.ogb import ARXIV_CLASSES
from unspool.datasets.split import Split
from unspool.errors import InputError, mention

_PLANETOID = "https://github.com/kimiyoung/planetoid/raw/master/data"
_BENCHMARK = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
_GEOM = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn/master"
_PLATONOV = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data"
_OGB = "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"


@dataclass(frozen=True)
class Source:
    """Where a named data set comes from.

    Attributes:
        name: what :func:`~unspool.datasets.load` calls it.
        title: how it is printed.
        about: one line for people.
        folders: where it may lie under the data root, the usual place first.
        files: the files it needs, relative to its folder.
        extras: files that are read where they are there.
        addresses: per needed file, where it is published; empty where it is not.
        read: a function from (folder, title) to contents.
        standard: the split of the literature.
    """

    name: str
    title: str
    about: str
    folders: tuple[str, ...]
    files: tuple[str, ...]
    extras: tuple[str, ...]
    addresses: dict[str, str]
    read: Callable[[Path, str], Contents]
    standard: Callable[[Dataset], Split]


def _ten(prefix: str) -> tuple[str, ...]:
    return tuple(f"{prefix}_split_0.6_0.2_{number}.npz" for number in range(10))


def _planetoid(title: str) -> Source:
    name = title.lower()
    files = tuple(f"raw/ind.{name}.{part}" for part in ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index"))
    return Source(
        name, title, "papers and citations, words as features (Planetoid)", (f"Planetoid/{title}", title), files,
        tuple(f"geom-gcn/raw/{split}" for split in _ten(name)),
        {file: f"{_PLANETOID}/{file.removeprefix('raw/')}" for file in files}, readers.read_planetoid, splits.public,
    )  # fmt: skip


def _per_class(dataset: Dataset) -> Split:
    return splits.per_class(dataset.labels, train=20, valid=30, seed=0)


def _benchmark(family: str, title: str, stem: str, about: str) -> Source:
    file = f"raw/{stem}.npz"
    return Source(
        title.lower(), title, f"{about} (gnn-benchmark)", (f"{family}/{title}", title), (file,), (),
        {file: f"{_BENCHMARK}/{stem}.npz"}, lambda folder, name: readers.read_gnn_benchmark(folder / file, name), _per_class,
    )  # fmt: skip


def _geom(
    title: str, folders: tuple[str, ...], prefix: str, about: str, read: Callable[[Path, str], Contents]
) -> Source:
    texts = ("out1_node_feature_label.txt", "out1_graph_edges.txt")
    addresses = {f"raw/{text}": f"{_GEOM}/new_data/{prefix}/{text}" for text in texts}
    addresses |= {f"raw/{split}": f"{_GEOM}/splits/{split}" for split in _ten(prefix)}
    standard = partial(splits.geom_gcn, number=0)
    return Source(title.lower(), title, f"{about} (Geom-GCN)", folders, tuple(addresses), (), addresses, read, standard)


def _platonov(title: str, about: str) -> Source:
    stem = title.lower().replace("-", "_").replace(" ", "_")
    file = f"raw/{stem}.npz"
    return Source(
        stem, title, f"{about} (Platonov et al.)", (f"HeterophilousGraphDataset/{stem}", stem), (file,), (),
        {file: f"{_PLATONOV}/{stem}.npz"}, lambda folder, name: readers.read_platonov(folder / file, name),
        partial(splits.fold, number=0),
    )  # fmt: skip


def _arxiv() -> Source:
    raw = tuple(f"raw/{stem}.csv.gz" for stem in ("edge", "node-feat", "node-label"))
    parts = tuple(f"split/time/{part}.csv.gz" for part in ("train", "valid", "test"))
    return Source(
        "arxiv", "ogbn-arxiv", "papers of computer science and citations (OGB)",
        ("ogbn_arxiv", "ogbn-arxiv", "arxiv", "OGB/ogbn_arxiv"), raw + parts,
        ("raw/node_year.csv.gz", f"mapping/{ARXIV_CLASSES}"), dict.fromkeys(raw + parts, _OGB), readers.read_arxiv, splits.ogb,
    )  # fmt: skip


def _arxiv_graph() -> Source:
    return Source(
        "arxiv_graph", "ogbn-arxiv, graph only", "ogbn-arxiv without its features, for speed and scale",
        ("ogbn_arxiv_nofeat",), ("ogbn_arxiv_nofeat.npz",), (ARXIV_CLASSES,), {}, readers.read_arxiv_graph, splits.ogb,
    )  # fmt: skip


def _attacked(title: str, strength: str) -> Source:
    """One strength of an attack; all strengths of a set lie in one file."""
    stem = f"{title.lower()}_metattack"
    file, share = f"{stem}.npz", f"{float(strength):.0%}".replace("%", " %")
    whole = strength == "0"
    return Source(
        stem if whole else f"{stem}_{strength}", f"{title}, {'before the attack' if whole else f'{share} attacked'}",
        f"the largest component of {title}" + ("" if whole else f", {share} of its edges changed by Metattack") + " (Pro-GNN)",
        ("Attacked", "."), (file,), (), {}, lambda folder, name: readers.read_attacked(folder / file, name, strength),
        partial(splits.recorded, name="attacked"),
    )  # fmt: skip


_PAGES = "pages of a university and links, heterophilic"

SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        _planetoid("Cora"),
        _planetoid("CiteSeer"),
        _planetoid("PubMed"),
        _benchmark("Coauthor", "CS", "ms_academic_cs", "authors who wrote together"),
        _benchmark("Coauthor", "Physics", "ms_academic_phy", "authors who wrote together"),
        _benchmark("Amazon", "Photo", "amazon_electronics_photo", "goods bought together"),
        _benchmark("Amazon", "Computers", "amazon_electronics_computers", "goods bought together"),
        _arxiv(),
        _arxiv_graph(),
        *(_geom(n, (f"WebKB/{n.lower()}", n.lower()), n.lower(), _PAGES, readers.read_webkb) for n in ("Texas", "Wisconsin", "Cornell")),
        _geom("Actor", ("Actor", "."), "film", "actors on the same pages, heterophilic", readers.read_actor),
        _platonov("chameleon filtered", "pages of Wikipedia and links, without duplicates, heterophilic"),
        _platonov("squirrel filtered", "pages of Wikipedia and links, without duplicates, heterophilic"),
        _platonov("Roman-empire", "words of an article and their syntax, heterophilic"),
        _platonov("Amazon-ratings", "goods bought together and their ratings, heterophilic"),
        _platonov("Minesweeper", "a board of the game, heterophilic"),
        _platonov("Tolokers", "crowd workers and shared tasks, heterophilic"),
        _platonov("Questions", "users who answered each other, heterophilic"),
        *(_attacked(title, strength) for title in ("Cora", "CiteSeer") for strength in STRENGTHS),
    )
}  # fmt: skip

GENERATORS: dict[str, Callable[[], Dataset]] = {
    "contextual_sbm": generate.contextual_sbm,
    "grid": generate.grid,
    "sensor": generate.sensor,
}

_ALIASES = {"ogbn_arxiv": "arxiv", "amazon_photo": "photo", "amazon_computers": "computers", "coauthor_cs": "cs",
            "coauthor_physics": "physics", "film": "actor", "csbm": "contextual_sbm", "ogbn_arxiv_nofeat": "arxiv_graph",
            "chameleon": "chameleon_filtered", "squirrel": "squirrel_filtered"}  # fmt: skip


def key_of(name: str) -> str:
    """The key of a data set, whatever the case and the hyphens; or a sentence with the names that come closest.

    Example:
        >>> key_of("Roman-Empire")
        'roman_empire'
        >>> key_of("pub-med")
        Traceback (most recent call last):
            ...
        unspool.errors.InputError: dataset='pub-med': expected the name of a data set; did you mean pubmed? Your own files: edges=...
    """
    found, known = key_named(name), [*SOURCES, *GENERATORS]
    if found is None:
        key = _plain(name)
        close = difflib.get_close_matches(key, known, n=2)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(known)}."
        raise InputError("dataset", name, "the name of a data set", f"{hint} Your own files: {mention('edges')}")
    return found


def key_named(name: str) -> str | None:
    """The same; None where no data set of this package has the name.

    Example:
        >>> key_named("film"), key_named("roads")
        ('actor', None)
    """
    key = _ALIASES.get(_plain(name), _plain(name))
    return key if key in SOURCES or key in GENERATORS else None


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")
