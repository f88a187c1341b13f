"""What a function does, whatever it looks like: its instructions without names of files, lines, docstrings and layout.

Instructions are those of the function that is loaded, not of the file that it came from: a file that was edited after it was
imported is not what runs. Instructions differ between versions of Python, so keys of the user's own models do, too.
"""

from __future__ import annotations

import ast
import dis
import functools
import hashlib
import inspect
import linecache
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

#: They mark lines and versions, and do nothing.
_IDLE = frozenset({"NOP", "EXTENDED_ARG", "CACHE", "RESUME", "PRECALL"})
#: What the body of a class notes down about itself.
_NOTES = frozenset({"__doc__", "__module__", "__firstlineno__", "__static_attributes__"})
#: Who calls these may look up names in modules by words that are made while the code runs.
_BY_NAME = frozenset({"getattr", "vars", "__dict__", "__getattribute__", "import_module", "__import__", "run_module"})
#: The same for names of the module that the code stands in: what is called, and attributes.
_EVERY_NAME, _SCOPES = frozenset({"globals", "locals", "eval", "exec"}), frozenset({"__globals__", "f_globals"})
_KINDS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR  # fmt: skip


@dataclass(frozen=True)
class Body:
    """What a function does, and what it looks up while doing so.

    Attributes:
        digest: of its instructions, those of functions inside it included.
        names: global names that it reads.
        attributes: names of attributes that it reads, and its words, which may become such names.
        imports: modules that it imports, each with its level (the dots before a relative name) and the names that are taken from it.
    """

    digest: str
    names: frozenset[str]
    attributes: frozenset[str]
    imports: frozenset[tuple[str, int, tuple[str, ...]]]

    @property
    def asks_by_name(self) -> bool:
        """Whether it may look up names in modules by words that are made while it runs."""
        said = self.names | self.attributes
        return bool(_BY_NAME & said) or said >= {"sys", "modules"} or self.asks_for_any_global

    @property
    def asks_for_any_global(self) -> bool:
        """Whether these may be names of its own module."""
        # Trap: eval is also what every network has as a method.
        return bool(_EVERY_NAME & self.names or _SCOPES & self.attributes)


@functools.lru_cache(maxsize=4096)
def body(code: CodeType) -> Body:
    """Read a code object.

    Example:
        >>> def plain(x): return 2 * x
        >>> def told(x):
        ...     "Twice as much."
        ...     return 2 * x  # for the second time
        >>> def other(x): return 3 * x
        >>> body(plain.__code__).digest == body(told.__code__).digest, body(plain.__code__) == body(other.__code__)
        (True, False)
    """
    laid_out = _laid_out(code)
    names: set[str] = set()
    attributes: set[str] = set()
    imports: set[tuple[str, int, tuple[str, ...]]] = set()
    lines = [repr(_shape(laid_out))]
    steps = _steps(laid_out)
    places = [step.offset for step in steps]
    for k, step in enumerate(steps):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.add(step.argval)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM"):
            attributes.add(step.argval)
        elif step.opname == "IMPORT_NAME":
            level, taken = (before.argval for before in steps[k - 2 : k])
            imports.add((step.argval, level, taken or ()))
        lines.append(f"{step.opname} {constant(_meant(step, laid_out, places))}")
    for inner in _constants(steps, laid_out):
        if isinstance(inner, CodeType):
            read = body(inner)
            names |= read.names
            attributes |= read.attributes
            imports |= read.imports
        elif isinstance(inner, str):
            attributes.add(inner)
    entries: list[Any] = getattr(dis.Bytecode(laid_out), "exception_entries", [])
    for entry in entries:
        ends = [bisect_left(places, place) for place in (entry.start, entry.end, entry.target)]
        lines.append(f"except {ends} {entry.depth} {entry.lasti}")
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return Body(digest, frozenset(names), frozenset(attributes), frozenset(imports))


def constant(value: Any) -> str:
    """A constant of some code in words that are the same in every process.

    Example:
        >>> constant((1, 1.0, frozenset({"b", "a"})))
        "(1, 1.0, {'a', 'b'})"
    """
    if isinstance(value, CodeType):
        return body(value).digest
    if isinstance(value, tuple):
        return f"({', '.join(constant(v) for v in value)})"
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(constant(v) for v in value))}}}"
    return repr(value)


def _shape(code: CodeType) -> tuple[Any, ...]:
    """How it is called."""
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
    many = code.co_argcount + code.co_kwonlyargcount
    return (*counts, code.co_varnames[:many], code.co_flags & _KINDS, code.co_freevars)


def _steps(code: CodeType) -> list[dis.Instruction]:
    """The instructions that do something."""
    steps = [step for step in dis.get_instructions(code) if step.opname not in _IDLE]
    noting = [k for k, step in enumerate(steps) if step.opname == "STORE_NAME" and step.argval in _NOTES]
    left_out = {*noting, *(k - 1 for k in noting)}  # the second loads what is noted
    return [step for k, step in enumerate(steps) if k not in left_out]


def _meant(step: dis.Instruction, code: CodeType, places: list[int]) -> Any:
    """What an instruction is about: a value, a name, or the number of another instruction."""
    if step.opcode in dis.hasconst:
        # Trap: Python 3.11 says "unknown" of the names of keywords.
        return code.co_consts[0 if step.arg is None else step.arg]
    jumps = step.opcode in dis.hasjrel or step.opcode in dis.hasjabs
    return bisect_left(places, step.argval) if jumps else step.argval


def _constants(steps: Iterable[dis.Instruction], code: CodeType) -> Iterator[Any]:
    """The constants that are used: not the docstring, which is kept among the others."""
    for step in steps:
        if step.opcode in dis.hasconst:
            value = _meant(step, code, [])
            yield from value if isinstance(value, tuple) else (value,)


# -- layout ------------------------------------------------------------------------------------------------------------


def _laid_out(code: CodeType) -> CodeType:
    """The same code as if its file had been written without comments and with one layout; as it is where no file tells.

    Python leaves out some jumps only where both ends are on one line, so instructions do depend on the layout now and then.
    """
    file = code.co_filename
    try:
        state = os.stat(file)
        mark = (state.st_mtime_ns, state.st_size)
    except OSError:
        mark = (0, len(linecache.getlines(file)))  # cells of a notebook are known to linecache alone
    return _layouts(file, mark).get(code, code)


@functools.lru_cache(maxsize=64)
def _layouts(file: str, mark: tuple[int, int]) -> dict[CodeType, CodeType]:
    """Every code object of a file, and what it is in the one layout.

    Code that is loaded is found here only if it is what the file still says: code objects are equal where instructions,
    names, constants and lines are.
    """
    del mark  # another one is another file
    linecache.checkcache(file)
    text = "".join(linecache.getlines(file))
    try:
        tree = ast.parse(text)
        pairs = zip(_codes(_compiled(text, file)), _codes(_compiled(ast.unparse(tree), file)), strict=True)
        return {given: laid_out for given, laid_out in pairs if given.co_name == laid_out.co_name}
    except (SyntaxError, ValueError, RecursionError):
        return {}


def _compiled(text: str, file: str) -> CodeType:
    # Trap: otherwise the code would be compiled under the future statements of this very file.
    return compile(text, file, "exec", dont_inherit=True)


def _codes(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from _codes(inner)
