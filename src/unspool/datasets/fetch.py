"""Fetching the field's data sets: over https alone, and kept only if they are what they should be."""

from __future__ import annotations

import hashlib
import re
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
from unspool.files import write_whole

_LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")


#: Where the checksums of fetched files are kept, in the form that ``sha256sum -c`` reads.
SUMS = "SHA256SUMS"


def fetch_set(source: Source, folder: Path) -> None:
    """Fetch the files of a set that ``folder`` lacks; they appear there when all have come and their content is right.

    Their checksums are kept beside them, and a file that was fetched before must have the same again.
    """
    known = read_sums(folder)
    for file in known:
        if (folder / file).is_file():
            _check_sum(folder / file, known[file], f"{folder / file} has changed since it was fetched", "remove it")
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
        for file in missing:
            if file in known:
                said = f"{file} as fetched from {source.addresses.get(file, 'its address')} is not the file that was fetched before"
                _check_sum(stage / file, known[file], said, f"if you trust it, remove its line from {folder / SUMS}")
        _check(source, _read(source, stage, folder), folder)
        sums = {**known, **{file: _sum(stage / file) for file in missing}}
        for file in missing:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.move(stage / file, folder / file)
        text = "".join(f"{digest}  {file}\n" for file, digest in sorted(sums.items()))
        write_whole(folder / SUMS, lambda out: out.write(text.encode()))


def read_sums(folder: Path) -> dict[str, str]:
    """The checksums of the files that were fetched into a folder; a file of them that cannot be read is refused.

    Example:
        >>> import tempfile
        >>> place = Path(tempfile.mkdtemp())
        >>> _ = (place / SUMS).write_text(f"{'0' * 64}  raw/x.npz\\n")
        >>> list(read_sums(place))
        ['raw/x.npz']
    """
    file = folder / SUMS
    if not file.is_file():
        return {}
    lines = [line for line in file.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    found = [_LINE.fullmatch(line) for line in lines]
    if any(match is None for match in found):
        raise ValueError(f"{file} is damaged; remove it to fetch without comparing")
    return {match[2]: match[1] for match in found if match is not None}


def _sum(file: Path) -> str:
    with file.open("rb") as held:
        return hashlib.file_digest(held, "sha256").hexdigest()


def _check_sum(file: Path, wanted: str, what: str, way: str) -> None:
    found = _sum(file)
    if found != wanted:
        raise ValueError(f"{what} (sha256 {found[:12]}, not {wanted[:12]}); {way}")


def fetch(address: str, target: Path, place: Path) -> None:
    """Download one file, no more of it than files may unpack to; ``place`` is where it would lie in the end."""
    if not is_safe(address):
        raise ValueError(f"{address} is not an https address; put the file at {place} yourself")
    try:
        with _answer(address) as answer, target.open("wb") as file:
            size = 0
            while piece := answer.read(1 << 20):
                size += len(piece)
                if size > largest():
                    raise TooLarge(f"{address} sends more than the {largest() / 2**30:g} GB allowed")
                file.write(piece)
            promised = getattr(answer, "headers", {}).get("Content-Length")
            if (
                promised is not None and int(promised) != size
            ):  # Trap: http.client says nothing when a connection breaks off
                raise OSError(f"{size} of {promised} bytes came")
    except TooLarge:
        raise
    except (OSError, ValueError, urllib.error.URLError) as problem:
        raise ConnectionError(f"could not fetch {address} ({problem}); put the file at {place} yourself") from None


def is_safe(address: str) -> bool:
    """Whether nobody on the way can change what an address sends: https, or this very machine.

    Example:
        >>> [is_safe(f"{start}/x") for start in ("https://example.org", "http://example.org", "http://127.0.0.1:8000", "file:///etc")]
        [True, False, True, False]
    """
    parts = urlsplit(address)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname == "127.0.0.1")


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
            f"what was fetched ({', '.join(Path(file).name for file in source.files[:3])}) is not the {source.title} that this version knows ({found}), and was not kept; "
            f"if you trust it, put its files at {folder} yourself"
        )
