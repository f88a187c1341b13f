"""A digest of anything that a model is made of: classes, functions, constants, objects, tensors, and all that they reach.

Of the user's own functions the instructions count, and the values of the globals that these read; of their classes, all
attributes and bases; of objects, their class and state, as ``pickle`` would take it. Code of packages counts by its name.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib
import importlib.util
import logging
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, Flag
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch._ops import OpOverload, OpOverloadPacket

from unspool.errors import IncompatibleError
from unspool.identity import contents
from unspool.identity.bytecode import body
from unspool.identity.home import foreign, is_made_elsewhere, is_own
from unspool.identity.parts import cells, module_outside, numbered, ordered, without_caches

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented))


def digest(thing: Any, name: str) -> str:
    """A digest of a thing that is the same in every process in which it would do the same.

    Args:
        thing: a class, a function, an object, a value.
        name: what it is called, for messages.

    Example:
        >>> import functools, operator, threading
        >>> twice, thrice = (functools.partial(operator.mul, k) for k in (2, 3))
        >>> digest(twice, "twice") == digest(functools.partial(operator.mul, 2), "twice"), digest(twice, "f") == digest(thrice, "f")
        (True, False)
        >>> digest(threading.Lock(), "held")
        Traceback (most recent call last):
            ...
        unspool.errors.IncompatibleError: held is a lock, which has no content that could be compared with that of ...
    """
    return look(thing, name).digest


@dataclass(frozen=True)
class Seen:
    """What was seen of a thing: a digest of it, and whether any code of the user's own was among it."""

    digest: str
    own: bool


def look(thing: Any, name: str, drawn: Iterable[Tensor] = ()) -> Seen:
    """Go through a thing and everything that it reaches.

    Args:
        thing: a class, a function, an object, a value.
        name: what it is called, for messages.
        drawn: tensors whose values do not count, as they come from a seed.

    Example:
        >>> import torch
        >>> Mine = type("Mine", (torch.optim.Adam,), {"__module__": "my_optimisers"})
        >>> look(torch.optim.Adam, "optimiser").own, look(Mine, "optimiser").own
        (False, True)
    """
    walk = _Walk({id(tensor) for tensor in drawn}, {}, [])
    try:
        walk.begin(name, thing)
    except RecursionError:
        raise IncompatibleError(
            f"{name} is nested too deeply to be distinguished from others; build it of fewer parts"
        ) from None
    return Seen(walk.digest, walk.own)


class _Walk:
    """Goes through everything in one order, and writes down what it sees."""

    def __init__(self, drawn: set[int], seen: dict[int, tuple[int, Any]], path: list[str]) -> None:
        self._hash, self._drawn = hashlib.sha256(), drawn
        self._seen = seen  # with the things themselves: an id may be used again when its thing is gone
        self._modules: set[tuple[int, frozenset[str]]] = set()
        self._named: dict[int, tuple[types.ModuleType, list[str], set[str]]] = {}  # with what was asked of each
        self._words: set[str] = set()  # all that some code may ask of a module that it is handed
        self._path = path
        self._later: deque[tuple[list[str], bool, Any]] = deque()
        self._perhaps = False  # whether all of this is only looked at because it might be meant
        self.own = False

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def begin(self, name: str, thing: Any) -> None:
        """Take a thing, and then all code that came up: one after the other, as calls reach deeper than Python's own stack."""
        self.visit(name, thing)
        while self._later or self._asks():
            if self._later:
                self._path, self._perhaps, code = self._later.popleft()
                self.say("code", self._seen[id(code)][0])
                self.take_new(code)

    def _asks(self) -> bool:
        """Take what any code that was seen may ask of any module: modules are handed about. Whether there was any such thing."""
        before, self._perhaps, found = self._perhaps, True, False
        for module, path, asked in list(self._named.values()):
            names = sorted((self._words & set(vars(module))) - asked - contents.NOTES)
            asked.update(names)
            self._path, found = list(path), found or bool(names)
            for name in names:
                self._global(name, vars(module)[name], frozenset(), wide=False)
        self._perhaps = before
        return found

    def say(self, *words: Any) -> None:
        self._hash.update(repr(words).encode("utf-8", "surrogatepass") + b"\n")

    def visit(self, name: str, thing: Any) -> None:
        """Write down a thing under a name."""
        self.say("name", name)
        self._path.append(name)
        self.take(thing)
        self._path.pop()

    def visit_all(self, kind: str, things: Iterable[tuple[str, Any]]) -> None:
        held = list(things)
        self.say(kind, len(held))
        for name, thing in held:
            self.visit(name, thing)

    def take(self, thing: Any) -> None:
        if type(thing) in _PLAIN:
            self._words.update(contents.words(thing) if isinstance(thing, str) else ())
            return self.say(type(thing).__name__, repr(thing))
        # Trap: equal tuples may be one object or two, depending on whether Python compiled a file or found it compiled.
        if type(thing) is tuple:
            return self.visit_all("tuple", numbered(thing))
        if type(thing) in (set, frozenset):
            return self.say(type(thing).__name__, sorted(self._apart(member) for member in thing))
        if id(thing) in self._seen:
            return self.say("again", self._seen[id(thing)][0])
        self._seen[id(thing)] = (len(self._seen), thing)
        if isinstance(thing, type | types.FunctionType):
            self._later.append((list(self._path), self._perhaps, thing))
            return self.say("later", len(self._seen) - 1)
        return self.take_new(thing)

    def _apart(self, thing: Any) -> str:
        """The digest of a member of something that has no order."""
        other = _Walk(self._drawn, dict(self._seen), list(self._path))
        other._perhaps = self._perhaps
        other.begin("member", thing)
        self.own |= other.own
        self._words |= other._words
        return other.digest

    def take_new(self, thing: Any) -> None:
        for kind, method in _WAYS:
            if isinstance(thing, kind):
                return method(self, thing)
        if callable(thing) and hasattr(thing, "__wrapped__") and foreign(type(thing).__module__) is not None:
            return self.take_wrapped(thing)
        return self.take_state(thing)

    # -- code ----------------------------------------------------------------------------------------------------------

    def take_function(self, function: types.FunctionType) -> None:
        scope = function.__globals__
        package = foreign(scope.get("__name__"))
        if package is not None:
            self.say("function", package, module_outside(package, scope.get("__name__")), function.__qualname__)
            return self.take_wrapped(function)
        read = body(function.__code__)
        self.own = True
        self.say("own function", read.digest)
        self.visit_all("defaults", numbered(function.__defaults__ or ()))
        self.visit_all("keywords", sorted((function.__kwdefaults__ or {}).items()))
        self.visit_all("attributes", ordered(vars(function)))
        self.visit_all("cells", zip(function.__code__.co_freevars, cells(function), strict=True))
        self.say("globals", len(read.names))
        self._words.update(*map(contents.words, read.attributes))
        wide = read.asks_by_name
        for name in sorted(read.names):
            if name in scope and name not in contents.NOTES:
                self._global(name, scope[name], read.attributes, wide)
            else:
                self.say("built in" if hasattr(builtins, name) else "unknown", name)
        if read.asks_for_any_global:
            self._might_mean(scope, read.names, read.attributes)
        for name, level, taken in sorted(read.imports):
            self._import(name, level, scope, read.attributes, wide, taken)
        for word in sorted(read.attributes) if wide else ():
            if word.replace(".", "").isidentifier() and is_own(word):
                self._import(word, 0, scope, read.attributes, wide)
        return None

    def _global(self, name: str, value: Any, attributes: frozenset[str], wide: bool) -> None:
        if not isinstance(value, types.ModuleType):
            return self.visit(name, value)
        self._path.append(name)
        self.take_module(value, attributes, wide)
        self._path.pop()
        return None

    def _might_mean(self, scope: Mapping[str, Any], known: frozenset[str], attributes: frozenset[str]) -> None:
        """All names that some code may look up by a word that it makes while it runs; what cannot be compared is left out there."""
        before, self._perhaps = self._perhaps, True
        for name in sorted(set(scope) - known - contents.NOTES - {"__annotations__"}):
            self._global(name, scope[name], attributes, wide=False)
        self._perhaps = before

    def _import(
        self, name: str, level: int, scope: Mapping[str, Any], attributes: frozenset[str], wide: bool, taken: tuple[str, ...] = ()
    ) -> None:  # fmt: skip
        """What a function imports when it runs."""
        self.say("import", name.rpartition(".")[2])
        found: Any = None
        # What cannot be imported now is not there for the function either.
        with suppress(Exception):
            full = importlib.util.resolve_name("." * level + name, scope.get("__package__"))
            found = importlib.import_module(full) if is_own(full) else None
            for part in taken if found is not None else ():
                if part not in vars(found):  # a module of a package, which is there once it was imported
                    with suppress(Exception):
                        importlib.import_module(f"{full}.{part}")
        if found is not None:
            self._global(name, found, attributes, wide)

    def take_module(self, module: types.ModuleType, names: frozenset[str], wide: bool = False) -> None:
        """Of a module of the user's own, what is asked of it by some code; ``wide``: by words that it makes while it runs."""
        package = foreign(module.__name__)
        if package is not None:
            return self.say("module", package, module.__name__)
        if (id(module), names) in self._modules:
            return self.say("module again")
        self._modules.add((id(module), names))
        held = vars(module)
        # What the module itself answers to names that it does not have.
        wanted = sorted(name for name in names | {"__getattr__"} if name in held and name not in contents.NOTES)
        self._named.setdefault(id(module), (module, list(self._path), set()))[2].update(wanted)
        self.say("own module", len(wanted))
        for name in wanted:
            self._global(name, held[name], names, wide)
        if wide:
            self._might_mean(held, frozenset(wanted), names)
        return None

    def take_wrapped(self, thing: Any) -> None:
        """What a package's wrapper holds of the user's: lru_cache, singledispatch, torch.compile, torch.no_grad."""
        inner, registry = getattr(thing, "__wrapped__", None), getattr(thing, "registry", None)
        inside = cells(thing) if isinstance(thing, types.FunctionType) else []
        held = [("wrapped", inner)] if inner is not None else [("cell", cell) for cell in inside if callable(cell)]
        if isinstance(registry, types.MappingProxyType):
            # Trap: among the cells of a singledispatch is a count of classes that this process has registered anywhere.
            inside, held = [], [*held, ("registry", dict(registry))]
        self.visit_all("wraps", [*held, *(("cell", cell) for cell in inside if type(cell) in (*_PLAIN, tuple))])

    def take_built_in(self, thing: Any) -> None:
        owner, module = getattr(thing, "__self__", None), getattr(thing, "__module__", None)
        self.say("built in", getattr(thing, "__qualname__", ""), foreign(module))
        if isinstance(owner, types.ModuleType):
            self.say("of", owner.__name__)
        elif owner is not None:
            self.visit("of", owner)
        file = getattr(sys.modules.get(str(module)), "__file__", None)
        if file is not None and foreign(module) is None:  # compiled by the user
            self.say(hashlib.sha256(Path(file).read_bytes()).hexdigest())

    def take_class(self, kind: type) -> None:
        package = foreign(kind.__module__)
        if package is not None and not is_made_elsewhere(kind):
            return self.say("class", package, module_outside(package, kind.__module__), kind.__qualname__)
        self.own = True
        self.say("own class", kind.__qualname__)
        self.visit_all("bases", numbered((*kind.__bases__, type(kind))))
        if issubclass(kind, Enum):
            self.visit_all("choices", contents.members(kind))
        self.visit_all("fields", contents.fields(kind))
        return self.visit_all("attributes", ordered(contents.written(kind)))

    # -- values --------------------------------------------------------------------------------------------------------

    def take_tensor(self, tensor: Tensor) -> None:
        self.say("tensor", type(tensor).__name__, str(tensor.dtype), tuple(tensor.shape), str(tensor.layout), tensor.requires_grad)  # fmt: skip
        if foreign(type(tensor).__module__) is None:
            self.visit("class", type(tensor))
        self.visit_all("attributes", contents.beside_values(tensor).items())
        if id(tensor) in self._drawn:
            return self.say("drawn")
        held = tensor.detach()
        if tensor.layout is not torch.strided:
            entries = held.to_sparse_coo().coalesce()
            return self.visit_all("entries", [("indices", entries.indices()), ("values", entries.values())])
        try:
            flat = held.cpu().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)
            return self.say(hashlib.sha256(flat.numpy().tobytes()).hexdigest())
        except (RuntimeError, TypeError, NotImplementedError):  # of the device meta, quantised
            return self._refuse(tensor)

    def take_array(self, given: np.ndarray[Any, Any] | np.generic) -> None:
        array = np.asarray(given)
        self.say("array", contents.array_type(array), array.shape)
        self.visit_all("beside", contents.beside_entries(given))
        if array.dtype.hasobject:
            return self.visit("entries", array.tolist())
        return self.say(hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest())

    def take_network(self, module: nn.Module) -> None:
        self.visit("class", type(module))
        # Hooks are numbered through all modules of a process.
        held = {
            k: list(v.values()) if k.endswith("hooks") and isinstance(v, dict) else v for k, v in vars(module).items()
        }
        self.visit_all("network", ordered(without_caches(module, held)))

    def take_list(self, things: list[Any]) -> None:
        self.visit_all("list", numbered(things)) if type(things) is list else self.take_state(things)

    def take_dictionary(self, held: Mapping[Any, Any]) -> None:
        if type(held) not in (dict, types.MappingProxyType):
            return self.take_state(held)
        return self.visit_all("dictionary", numbered([part for pair in held.items() for part in pair]))

    def take_choice(self, choice: Enum) -> None:
        value = [("value", choice.value)] if isinstance(choice, Flag) else []  # not all of these have names
        self.visit_all("choice", [("class", type(choice)), ("name", choice.name), *value])

    def take_parts(self, thing: Any) -> None:
        """Methods and descriptors, by what they are made of."""
        names = next(names for kind, names in contents.DESCRIPTORS.items() if isinstance(thing, kind))
        self.visit_all(
            type(thing).__name__, [*((name, getattr(thing, name)) for name in names), *contents.of_descriptor(thing)]
        )

    def take_ufunc(self, ufunc: np.ufunc) -> None:
        self.visit_all("ufunc", [("name", ufunc.__name__), *numbered(contents.inside_ufunc(ufunc))])

    def take_named(self, thing: Any) -> None:
        """What is known to its library by its name: layouts of torch, loggers."""
        self.say(type(thing).__name__, "" if isinstance(thing, logging.Logger) else str(thing))

    def take_state(self, thing: Any) -> None:
        reduced = contents.reduced(thing)
        if reduced is None:
            return self._refuse(thing)
        if isinstance(reduced, str):
            return self.visit_all("named", [("class", type(thing)), ("name", reduced)])
        maker, given, state, items, pairs = reduced
        self.visit_all("object", [("class", type(thing)), ("maker", maker), ("given", given)])
        if isinstance(state, dict):
            self.visit_all("state", ordered(without_caches(thing, state)))
        else:
            self.visit("state", state)
        return self.visit_all(
            "content", [("items", list(items or ())), ("pairs", [tuple(pair) for pair in pairs or ()])]
        )

    def _refuse(self, thing: Any) -> None:
        if self._perhaps:
            return self.say("left out", type(thing).__name__)
        raise IncompatibleError(
            f"{' → '.join(self._path)} is a {type(thing).__name__}, which has no content that could be compared with that of another "
            "process, so results could not be found again; make it inside the function that needs it, or keep it out of the model"
        ) from None


#: How each kind of thing is taken, the first that fits.
_WAYS: tuple[tuple[Any, Callable[[_Walk, Any], None]], ...] = (
    (type, _Walk.take_class),
    (types.FunctionType, _Walk.take_function),
    (types.ModuleType, lambda walk, module: walk.take_module(module, frozenset(vars(module)))),
    (contents.COMPILED, _Walk.take_built_in),
    (tuple(contents.DESCRIPTORS), _Walk.take_parts),
    (Enum, _Walk.take_choice),
    (Tensor, _Walk.take_tensor),
    ((np.ndarray, np.generic), _Walk.take_array),
    (np.ufunc, _Walk.take_ufunc),
    (nn.Module, _Walk.take_network),
    (list, _Walk.take_list),
    ((dict, types.MappingProxyType), _Walk.take_dictionary),
    ((logging.Logger, torch.layout, OpOverload, OpOverloadPacket), _Walk.take_named),
)
