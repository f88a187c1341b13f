"""Upper levels as text: ``ce + 2*warm_up(100)*consistency(views=4, temperature=0.5) under drop_nodes(0.5)``, or a TOML file."""

from __future__ import annotations

import ast
import difflib
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from unspool.errors import IncompatibleError, InputError
from unspool.settings.kinds import Kind, Mismatch
from unspool.text import QUOTED
from unspool.train.loss import CrossEntropy, Loss
from unspool.train.summand import Summand
from unspool.train.upper.agreement import Consistency, Neighbours
from unspool.train.upper.confidence import Entropy, PseudoLabels
from unspool.train.upper.labels import ClassMass, Labels
from unspool.train.upper.perturbation import DropEdges, DropEntries, DropNodes
from unspool.train.upper.sum import Upper, as_upper
from unspool.train.upper.teacher import Distil
from unspool.train.upper.term import WarmUp

TERMS: dict[str, Callable[..., Any]] = {
    "ce": lambda: Labels(CrossEntropy()), "loss": lambda: Labels(),  # noqa: PLW0108 - with nothing in brackets
    **{one.name: one for one in (ClassMass, Consistency, Neighbours, Entropy, PseudoLabels, Distil)},
}  # fmt: skip
PERTURBATIONS: dict[str, Callable[..., Any]] = {one.name: one for one in (DropNodes, DropEntries, DropEdges)}
_FORM = "a sum such as ce + 2*consistency(views=4, temperature=0.5) under drop_nodes(0.5), or a TOML file"


class Unread(Exception):
    """What was typed is not an upper level; the message says where, if there is more to say than that."""

    @property
    def hint(self) -> str | None:
        """Where."""
        return None if self.args[0] is None else str(self.args[0])


def read(text: str) -> Upper:
    """An upper level from what was typed, or from the TOML file that it names; arguments have commas or semicolons between them.

    Example:
        >>> print(read("ce + 0.5*warm_up(100)*pseudo_labels(confidence=0.8)"))
        CE(Y, pʳ)  +  0.5·min(1, e/100) CE(class of p̄, pʳ) [max p̄ ≥ 0.8]   (mean over nodes)
        >>> read("ce + 2*consistensy")
        Traceback (most recent call last):
            ...
        unspool.errors.InputError: upper='ce + 2*consistensy': expected a sum such as ...; consistensy is not one of ce, ...: did you mean consistency?
    """
    try:
        return _read(text)
    except Unread as problem:
        raise InputError("upper", text, _FORM, problem.hint) from None


def _read(text: str) -> Upper:
    if _is_file(text):
        return _read_file(Path(text.strip()))
    # Names of folders may hold anything that means something outside of quotes, so they are spelt in digits meanwhile.
    spelt = QUOTED.sub(lambda found: f'"{found[0][1:-1].encode("utf-8", "surrogatepass").hex()}"', text)
    total, word, lost = spelt.partition(" under ")
    found = _evaluated(total, TERMS | {"warm_up": WarmUp})
    if not isinstance(found, Summand):
        raise Unread(None)
    upper = as_upper(found)
    for one in lost.split(" and ") if word else ():
        upper = upper.under(_evaluated(one, PERTURBATIONS))
    return upper


def _read_file(path: Path) -> Upper:
    try:
        held = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise Unread(f"{path} cannot be read ({problem.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise Unread(f"{path.name} is not a TOML file ({problem})") from None
    terms, lost = held.pop("term", None), held.pop("under", [])
    if held or not _tables(terms) or not terms or not _tables(lost):
        what = f"{next(iter(held))} is not known in {path.name}" if held else f"{path.name} has no [[term]]"
        raise Unread(f'{what}; write [[term]] tables with name = "...", and [[under]] tables')
    parts = [_part(table) for table in terms]
    upper = as_upper(parts[0])
    for part in parts[1:]:
        upper = upper.plus(part)
    return upper.under(*(_made(PERTURBATIONS, dict(table)) for table in lost))


def _is_file(text: str) -> bool:
    return text.strip().lower().endswith(".toml")


def _tables(held: Any) -> bool:
    return isinstance(held, list) and all(isinstance(one, Mapping) for one in held)


def _part(table: Mapping[str, Any]) -> Upper:
    """One ``[[term]]``: its name, its weight and warm-up, its numbers."""
    held = dict(table)
    weight, grows = held.pop("weight", 1.0), held.pop("warm_up", 0.0)
    return as_upper(_made(TERMS, held)).times(weight).times(WarmUp(grows))


def _made(known: Mapping[str, Callable[..., Any]], held: dict[str, Any]) -> Any:
    name = held.pop("name", None)
    if name is None:
        raise Unread(f'a table has no name; write name = "..." in it, one of {", ".join(known)}')
    return _called(known, str(name), [], held)


def _evaluated(text: str, known: Mapping[str, Callable[..., Any]]) -> Any:
    try:
        tree = ast.parse(text.strip().replace(";", ","), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Unread(None) from None
    return _value(tree.body, known)


def _value(node: ast.AST, known: Mapping[str, Callable[..., Any]]) -> Any:
    """Sums, products, calls of known names and numbers; nothing else is looked at, and nothing is run."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult):
        left, right = _value(node.left, known), _value(node.right, known)
        try:
            return left + right if isinstance(node.op, ast.Add) else left * right
        except (InputError, IncompatibleError) as problem:
            raise Unread(str(problem)) from None
        except TypeError:
            raise Unread(None) from None
    if isinstance(node, ast.BinOp):
        raise Unread("terms are added with + and weighed with *, as all are made small together; write 0.5*ce for ce/2")
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return -_value(node.operand, known)
    if isinstance(node, ast.Name):
        return _called(known, node.id, [], {})
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and all(k.arg for k in node.keywords):
        _check_known(known, node.func.id)
        named = {str(k.arg): k.value for k in node.keywords}
        if len(named) < len(node.keywords):
            twice = next(name for name, count in Counter(k.arg for k in node.keywords).items() if count > 1)
            raise Unread(f"{node.func.id} is given {twice} twice; keep one of them")
        given = [_argument(one) for one in node.args]
        return _called(known, node.func.id, given, {name: _argument(one) for name, one in named.items()})
    raise Unread(None)


def _argument(node: ast.AST) -> Any:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return -_argument(node.operand)
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _name(node.value)
    what = node.id if isinstance(node, ast.Name) else str(node.value) if isinstance(node, ast.Constant) else None
    if what is None:
        raise Unread(None)
    raise Unread(f"{what} stands in brackets, where numbers stand, and names in quotes; leave out what is not set")


def _name(spelt: str) -> str:
    try:
        return bytes.fromhex(spelt).decode("utf-8", "surrogatepass")
    except ValueError:
        raise Unread(None) from None


def _check_known(known: Mapping[str, Any], name: str) -> None:
    near = difflib.get_close_matches(name.lower(), known, n=1)
    if name.lower() not in known:
        meant = f": did you mean {near[0]}?" if near else ""
        raise Unread(f"{name} is not one of {', '.join(known)}{meant}")


def _called(known: Mapping[str, Callable[..., Any]], name: str, given: list[Any], named: dict[str, Any]) -> Any:
    _check_known(known, name)
    make = known[name.lower()]
    takes = [f.name for f in fields(make)] if isinstance(make, type) else []  # type: ignore[arg-type]
    takes = [one for one in takes if one != "factor"]
    wrong = next((one for one in named if one not in takes), None)
    if wrong is not None or len(given) > len(takes):
        what = wrong if wrong is not None else str(given[-1])
        raise Unread(f"{name}({what}): {name} takes {', '.join(takes) or 'nothing in brackets'}")
    twice = next((one for one in takes[: len(given)] if one in named), None)
    if twice is not None:
        raise Unread(f"{name} is given {twice} twice; keep one of them")
    try:
        return make(*given, **named)
    except InputError as problem:
        raise Unread(str(problem)) from None
    except TypeError:
        raise Unread(f"{name} needs {takes[0]}") from None


@dataclass(frozen=True)
class UpperKind(Kind):
    """An upper level: a sum of terms, a loss, or the text of one."""

    @property
    def expected(self) -> str:
        """What fits, in words."""
        return _FORM

    def accept(self, value: Any) -> Upper:
        """A sum; terms, losses and texts become one."""
        if isinstance(value, str):
            return self.parse(value)
        if not isinstance(value, Summand | Loss):
            raise Mismatch
        return as_upper(value)

    def parse(self, text: str) -> Upper:
        """As it is typed."""
        try:
            return _read(text)
        except Unread as problem:
            raise Mismatch(*([] if problem.hint is None else [problem.hint])) from None

    def to_plain(self, value: Any) -> str:
        """Its text."""
        return value.text()

    def from_plain(self, plain: Any) -> Upper:
        """Back from its text; a function or a tensor of one's own is known to files by name only."""
        if not isinstance(plain, str) or _is_file(plain):  # no file reads another one that it names
            raise Mismatch
        return self.parse(plain)

    def shown(self, value: Any) -> str:
        """As it would be typed in a list of several, where commas lie between them."""
        return re.sub(f"{QUOTED.pattern}|,", lambda found: ";" if found[0] == "," else found[0], value.text())
