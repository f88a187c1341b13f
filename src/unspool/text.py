"""Text that came from files or was typed: numbers read alike everywhere, and nothing that steers a terminal."""

from __future__ import annotations

import re
import unicodedata

#: Characters that change the order in which a terminal shows text, so that a name can pretend to be another.
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
#: Control characters, separators of lines and paragraphs, and halves of characters (a file name that is not UTF-8).
_HIDDEN = frozenset({"Cc", "Zl", "Zp", "Cs"})


def printable(text: str) -> str:
    r"""The same text with everything that would steer a terminal written out; line feeds and tabs stay.

    The escapes are those of JSON, so that JSON lines stay JSON.

    Example:
        >>> print(printable("age\x1b[2J, α‖H−X‖²"))
        age\u001b[2J, α‖H−X‖²
    """
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(sign if _plain(sign) else f"\\u{ord(sign):04x}" for sign in text)


def _plain(sign: str) -> bool:
    return sign in "\n\t" or (unicodedata.category(sign) not in _HIDDEN and sign not in _TURNING)


def plain_number(text: str) -> str:
    """A number as text, unless it is one for Python alone, which reads 10 in 1_0 and 3 in ٣.

    Example:
        >>> float(plain_number("1e-3"))
        0.001
        >>> int(plain_number("1_0"))
        Traceback (most recent call last):
            ...
        ValueError: 1_0 is not a plain number
    """
    if "_" in text or not text.isascii():
        raise ValueError(f"{text} is not a plain number")
    return text


#: What stands in quotes of either kind, as it is: nothing is escaped.
QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


def split_list(text: str) -> list[str]:
    """What stands between commas, those in quotes aside.

    Example:
        >>> split_list('0.1, "a,b"')
        ['0.1', '"a,b"']
    """
    hidden = QUOTED.sub(lambda found: "_" * len(found[0]), text)
    ends = [place for place, letter in enumerate(hidden) if letter == ","]
    return [text[start:end].strip() for start, end in zip([0, *(e + 1 for e in ends)], [*ends, len(text)], strict=True)]
