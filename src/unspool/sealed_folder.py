"""A folder of large files that counts when its card is there: written last, with the sizes and checksums of all the others."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unspool.errors import DataError, mention
from unspool.files import Unsound, alone_in, no_empty_folder, read_sealed, write_sealed

#: How far unfinished work has come; without it nothing can go on.
PROGRESS = "progress.json"


@dataclass(frozen=True)
class FolderKind:
    """What a folder holds, and how that is said.

    Attributes:
        what: the word for it in the card.
        card: the name of the card.
        format: the number of its format.
        work: the folder inside where unfinished work lies.
        absent, unfinished, foreign: what is wrong with a folder that holds none, one that is not finished, and another card.
        make, again, go_on: the way out where there is no folder, where it is of no use, and where it is not finished.
    """

    what: str
    card: str
    format: int
    work: str
    absent: str
    unfinished: str
    foreign: str
    make: str
    again: str
    go_on: str

    @contextmanager
    def being_made(self, folder: Path, tell: Callable[[str], None]) -> Generator[Path]:
        """Be alone in a folder while it is made; gives where unfinished work goes.

        Work that ends early stays where it can be gone on with, and ``tell`` is told so; else nothing stays that was not there.
        """
        with no_empty_folder(folder):
            folder.mkdir(parents=True, exist_ok=True)
            with alone_in(folder):
                work = folder / self.work
                try:
                    yield work
                except (Exception, KeyboardInterrupt):
                    if (work / PROGRESS).is_file():
                        tell(f"{folder} keeps what was done so far: {self.go_on}, or remove the folder")
                    else:
                        shutil.rmtree(work, ignore_errors=True)
                    raise

    def begin(self, folder: Path, names: Iterable[str], tell: Callable[[str], None]) -> Path:
        """Make room for work from the beginning, once nothing speaks against it; gives where it goes.

        What earlier work left is removed. A file of anybody else's that has the name of one of ours is not written over.
        """
        work = folder / self.work
        if work.exists():
            if (work / PROGRESS).is_file():
                tell(f"what was begun in {folder} was asked for otherwise: beginning anew")
            shutil.rmtree(work)
            for name in names:
                file_of(folder, name).unlink(missing_ok=True)
        strange = next((file for name in names if (file := file_of(folder, name)).exists()), None)
        if strange is not None:
            way = f"choose another folder with {mention('path')}, or remove it"
            raise DataError(str(folder), f"it holds a {strange.name}, which would be written over", way)
        work.mkdir()
        return work

    def seal(self, folder: Path, names: Iterable[str], **facts: Any) -> None:
        """Write the card of a folder whose files are in place."""
        files = {
            name: {"bytes": file_of(folder, name).stat().st_size, "sha256": digest(file_of(folder, name))}
            for name in names
        }
        card = {"format": self.format, "what": self.what, **facts, "arrays": files}
        write_sealed(folder / self.card, lambda file: file.write(json.dumps(card, indent=1).encode()))

    def opened(self, folder: Path, check: bool) -> Mapping[str, Any]:
        """The card of a folder whose files are as they were written; ``check`` compares checksums, reading everything once."""
        card = self._card(folder)
        for name, known in card["arrays"].items():
            self._check_file(folder, name, known, check)
        return card

    def _card(self, place: Path) -> Mapping[str, Any]:
        if not place.is_dir():
            what = "is a file, not a folder" if place.is_file() else "does not exist"
            raise FileNotFoundError(f"{place} {what}; check the path, or {self.make}")
        if not (place / self.card).is_file():
            unfinished = (place / self.work).is_dir()
            raise DataError(
                str(place),
                self.unfinished if unfinished else self.absent,
                self.go_on if unfinished else self.again,
            )
        try:
            card = json.loads(read_sealed(place / self.card).read())
        except (Unsound, ValueError) as problem:
            raise DataError(str(place / self.card), f"it is damaged ({problem})", self.again) from None
        if not isinstance(card, dict) or card.get("what") != self.what:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DataError(str(place / self.card), self.foreign, self.again)
        if card.get("format") != self.format:
            raise DataError(
                str(place / self.card),
                f"it has format {card.get('format')}, and this version reads {self.format}",
                self.again,
            )
        if not _is_well_formed(card):
            raise DataError(str(place / self.card), "it does not say which files belong to it", self.again)
        return card

    def _check_file(self, place: Path, name: str, known: Mapping[str, Any], check: bool) -> None:
        file = file_of(place, name)
        if not file.is_file():
            raise DataError(str(place), f"its file {file.name} is missing", self.again)
        if file.stat().st_size != known["bytes"]:
            raise DataError(
                str(file),
                f"it has {file.stat().st_size} bytes, not the {known['bytes']} that were written",
                self.again,
            )
        if check and digest(file) != known["sha256"]:
            raise DataError(str(file), "it has changed since it was written: its checksum does not match", self.again)


def _is_well_formed(card: Mapping[str, Any]) -> bool:
    """Whether a card lists files of its own folder, each with a size and a checksum."""
    listed = card.get("arrays")
    return isinstance(listed, dict) and all(
        isinstance(known, dict) and {"bytes", "sha256"} <= set(known) and Path(name).name == name  # pyright: ignore
        for name, known in listed.items()  # pyright: ignore
    )


def file_of(folder: Path, name: str) -> Path:
    """Where a file lies; arrays are plain numbers without a header, in ``NAME.bin``.

    Example:
        >>> file_of(Path("graph"), "col").name, file_of(Path("hops"), "facts.npz").name
        ('col.bin', 'facts.npz')
    """
    return folder / (name if "." in name else f"{name}.bin")


def digest(file: Path) -> str:
    """The SHA-256 sum of a file."""
    with file.open("rb") as held:
        return hashlib.file_digest(held, "sha256").hexdigest()
