"""Fetching the field's data sets: over https alone, and kept only if they are what they should be."""

from __future__ import annotations

import shutil
import tempfile
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from unspool.datasets.dataset import Dataset
from unspool.datasets.limits import TooLarge, check_archive, largest
from unspool.datasets.published import difference
from unspool.datasets.sources import Source


def fetch_set(source: Source, folder: Path) -> None:
    """Fetch the files of a set that ``folder`` lacks; they appear there when all have come and their content is right."""
    missing = [file for file in source.files if not (folder / file).is_file()]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetch.") as place:
        stage = Path(place) / "set"
        if source.addresses[missing[0]].endswith(".zip"):
            _unpack(source.addresses[missing[0]], Path(place), stage, folder)
            missing = [str(path.relative_to(stage)) for path in stage.rglob("*") if path.is_file()]
        else:
            for file in source.files:
                (stage / file).parent.mkdir(parents=True, exist_ok=True)
                if file not in missing:
                    shutil.copy2(folder / file, stage / file)
            for file in missing:
                fetch(source.addresses[file], stage / file, folder / file)
        _check(source, _read(source, stage, folder), folder)
        for file in missing:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.move(stage / file, folder / file)


def fetch(address: str, target: Path, place: Path) -> None:
    """Download one file, no more of it than files may unpack to; ``place`` is where it would lie in the end."""
    if urlsplit(address).scheme != "https":
        raise ValueError(f"{address} is not an https address; put the file at {place} yourself")
    try:
        with _answer(address) as answer, target.open("wb") as file:
            left = largest()
            while piece := answer.read(1 << 20):
                left -= len(piece)
                if left < 0:
                    raise TooLarge(f"{address} sends more than the {largest() / 2**30:g} GB allowed")
                file.write(piece)
    except TooLarge:
        raise
    except (OSError, ValueError, urllib.error.URLError) as problem:
        raise ConnectionError(f"could not fetch {address} ({problem}); put the file at {place} yourself") from None


class _Secure(urllib.request.HTTPRedirectHandler):
    """Follows redirections to https alone."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """Refuse to leave https."""
        if urlsplit(newurl).scheme != "https":
            raise urllib.error.URLError(f"it sends us to {newurl}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _answer(address: str) -> IO[bytes]:
    return urllib.request.build_opener(_Secure).open(address, timeout=60)


def _unpack(address: str, place: Path, stage: Path, folder: Path) -> None:
    """Fetch an archive and lay its one top folder down as ``stage``."""
    file, inside = place / "archive.zip", place / "inside"
    fetch(address, file, folder)
    try:
        with zipfile.ZipFile(file) as archive:
            check_archive(file, archive)
            archive.extractall(inside)  # zipfile refuses paths that leave the folder
    except (zipfile.BadZipFile, EOFError, NotImplementedError):
        raise ValueError(f"{address} did not answer with a zip archive; put its files at {folder} yourself") from None
    tops = [entry for entry in inside.iterdir() if entry.is_dir()]
    if len(tops) != 1:
        raise ValueError(f"{address} holds {len(tops)} folders, not one; put its files at {folder} yourself")
    tops[0].rename(stage)


def _read(source: Source, stage: Path, folder: Path) -> Dataset:
    from unspool.datasets.named_sets import read_raw

    try:
        return read_raw(source, stage)
    except (ValueError, FileNotFoundError) as problem:
        said = str(problem).replace(str(stage), str(folder))
        raise ValueError(f"what was fetched is not {source.title}, and was not kept: {said}") from None


def _check(source: Source, dataset: Dataset, folder: Path) -> None:
    found = difference(source.name, dataset)
    if found is not None:
        raise ValueError(
            f"what was fetched is not the {source.title} that this version knows ({found}), and was not kept; "
            f"if you trust it, put its files at {folder} yourself"
        )
