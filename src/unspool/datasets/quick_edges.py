"""Large lists of numbered edges in text files, read without a text for every cell; whatever is odd about a file is left to the reader of tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from unspool.datasets.edge_chunks import quickly
from unspool.datasets.numbers import Numbers

#: Files of fewer bytes are read as tables: they take no time.
LEAST = 1 << 20


class QuickEdges(NamedTuple):
    """Two columns of whole numbers, and the cells of the line above them if there is one."""

    columns: tuple[Numbers, Numbers]
    header: tuple[str, str] | None


def quick_edges(path: Path, separator: str | None) -> QuickEdges | None:
    """The two columns of a file in which every line holds two whole numbers, the first perhaps two words; None of any other file.

    Comments, blank lines, quotes, blanks, leading zeros, weights and packed files are other files, too.
    """
    if path.suffix.lower() == ".gz" or path.stat().st_size < LEAST:
        return None
    text = path.read_bytes()
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n")
    cut = text.find(b"\n") + 1
    sign = _sign(text[cut:], separator)
    first = text[:cut].rstrip(b"\n")
    if sign is None or first.count(sign) != 1 or not first.isascii():
        return None
    words = [cell.decode() for cell in first.split(sign)]
    named = all(re.fullmatch(r"[A-Za-z]\w*", word) for word in words)
    body = memoryview(text)[cut:].tobytes() if named else text
    lines = body.count(b"\n") + (not body.endswith(b"\n"))
    plain = not body.translate(None, b"0123456789\n" + sign) and b"\n\n" not in body and not body.startswith(b"\n")
    if not plain or body.count(sign) != lines or re.search(rb"(?:^|[\n" + sign + rb"])0[0-9]", body):
        return None
    held = quickly(body, sign.decode(), (0, 1), 2)
    if held is None or held[0].size != lines:
        return None
    return QuickEdges((Numbers(held[0]), Numbers(held[1])), (words[0], words[1]) if named else None)


def _sign(body: bytes, separator: str | None) -> bytes | None:
    """What stands between the cells of a line; where it may be any blank, the one that there is."""
    if separator is not None:
        return separator.encode()
    found = [sign for sign in (b"\t", b" ") if sign in body]
    return found[0] if len(found) == 1 else None
