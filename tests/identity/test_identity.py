"""When two trials are the same: what a model computes counts, wherever it is written; what it looks like does not."""

import ast
import cmath
import copy
import functools
import itertools
import math
import os
import subprocess
import sys
import textwrap
import types
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import unspool as us
from unspool import identity, train
from unspool.train import Trial, TrialLoader

pytestmark = pytest.mark.long


MARKING = Path(__file__).with_name("marking.py")

FILES = {
    "own_model.py": '''
        """A model of one's own."""

        from dataclasses import dataclass
        from typing import Any

        import torch

        import importlib
        import operator
        import sys

        import chosen
        import constants
        import handed
        import helpers
        import kit.found
        import making
        import unspool as us
        from constants import FLOOR

        SCALE = 0.5
        TABLE = {"start": (0.3, [1, 2])}
        KNOWN = {}


        def known(make):
            KNOWN[make.__name__] = make
            return make


        @known
        def calm(x):
            return x.tanh()


        @dataclass(frozen=True, eq=False)
        class Damped(us.StencilTerm):
            """A fidelity to a damped input."""

            weight: Any

            def value(self, h, given):
                return (h - given.x * SCALE).square().sum((-2, -1)) * given[self.weight]

            def stencil(self, given):
                return us.Stencil(h=2 * given[self.weight], x=-2 * given[self.weight] * SCALE)


        @dataclass(frozen=True, eq=False)
        class Ball(us.Algorithm):
            step: Any

            def update(self, state, problem):
                (h,) = state
                return (h - self.step_size(problem) * problem.gradient(h),)


        def ask(module):
            return module.asked()


        def given():
            return handed


        READ = operator.attrgetter("read")


        def twice(x):
            """Two times."""
            return 2 * x


        class Mine(us.models.Model):
            hidden: int = us.setting(8, "how wide it is", at_least=1, search=us.study.choice([8, 16]))
            depth: int = us.setting(3, "how deep it is", hint="take three")

            def build(self):
                self.p_pre = us.nn.Perceptron([self.in_features, self.hidden], dropout=0.3, open_end=False)
                objective = Damped(us.Learnable(TABLE["start"][0])) + us.Smoothness(constants.SMOOTH)
                self.propagation = us.unroll(objective, Ball(0.1), self.depth)
                self.p_pos = us.nn.Linear(self.hidden, self.out_features)

            def forward(self, x, graph, edge_weight=None):
                from lazy import late

                return self.chosen("soft" + str(self.in_features), 4 * self.out_features) * self.plain(x, graph, edge_weight, late)

            def chosen(self, name, number):
                return getattr(chosen, name[:4])(number) + importlib.import_module("plugin").MORE + self.late() + self.listed()

            def late(self):
                from kit import tools

                return tools.SHIFT + ask(handed) + READ(handed) + making.anything

            def listed(self):
                return sys.modules["kit.found"].FOUND + given().BACK

            def plain(self, x, graph, edge_weight, late):
                bent = helpers.bend(twice(super().forward(x, graph, edge_weight)))
                return late(KNOWN["calm"](bent)) if bent is not None and (
                    bent.numel() > FLOOR or bent.isfinite().all()
                ) else bent


        if __name__ == "__main__":
            from unspool.train import Trial

            print(Trial(Mine).key("data"))
    ''',
    "helpers.py": """
        SLOPE = 3.0


        def bend(x):
            return x.clamp(min=-SLOPE)


        def unused(x):
            return x
    """,
    "constants.py": "FLOOR = 4\nSMOOTH = 0.7\nOTHER = 1\n",
    "chosen.py": "import threading\n\nLOCK = threading.Lock()\n\n\ndef soft(x):\n    return x + 1\n",
    "plugin.py": "MORE = 0\n",
    "kit/__init__.py": "",
    "kit/tools.py": "SHIFT = 0\n",
    "kit/found.py": "FOUND = 0\n",
    "handed.py": """
        BACK = 0
        START = 0
        read = 0


        def asked():
            return START
    """,
    "making.py": """
        STEP = 1


        def __getattr__(name):
            if name.startswith("__"):
                raise AttributeError(name)
            return STEP
    """,
    "lazy.py": "FACTOR = 1.0\n\n\ndef late(x):\n    return FACTOR * x\n",
}  # fmt: skip

#: File, text, and what stands there instead: each makes another model.
CHANGES = {
    "a method of a term": ("own_model.py", "h=2 * given", "h=3 * given"),
    "a value of a term": ("own_model.py", ".square().sum", ".abs().sum"),
    "a method of an algorithm": ("own_model.py", "(h - self.step_size", "(h + self.step_size"),
    "a helper": ("own_model.py", "return 2 * x", "return 4 * x"),
    "a method of the model": ("own_model.py", "hidden, self.out_features)", "hidden, self.out_features, bias=False)"),
    "a constant": ("own_model.py", "SCALE = 0.5", "SCALE = 0.25"),
    "a number inside a constant": ("own_model.py", "[1, 2]", "[1, 3]"),
    "a function that is looked up by its name": ("own_model.py", "x.tanh()", "x.sin()"),
    "a default": ("own_model.py", "us.setting(8,", "us.setting(4,"),
    "a constant of another module": ("constants.py", "SMOOTH = 0.7", "SMOOTH = 0.8"),
    "a constant that was imported by name": ("constants.py", "FLOOR = 4", "FLOOR = 5"),
    "a function of another module": ("helpers.py", "min=", "max="),
    "a constant behind a function of another module": ("helpers.py", "SLOPE = 3.0", "SLOPE = 2.0"),
    "a function that is looked up by a word made up": ("chosen.py", "x + 1", "x - 1"),
    "a constant of a module that is imported by a word": ("plugin.py", "MORE = 0", "MORE = 1"),
    "a constant of a module of a package that is imported late": ("kit/tools.py", "SHIFT = 0", "SHIFT = 1"),
    "a constant of a module that is looked up in sys.modules": ("kit/found.py", "FOUND = 0", "FOUND = 1"),
    "a constant behind a module that is handed to a function": ("handed.py", "START = 0", "START = 1"),
    "a constant of a module that a function gives back": ("handed.py", "BACK = 0", "BACK = 1"),
    "a constant that a kept attrgetter reads": ("handed.py", "read = 0", "read = 1"),
    "what a module makes when it is asked": ("making.py", "STEP = 1", "STEP = 2"),
    "a constant of a module that is imported late": ("lazy.py", "FACTOR = 1.0", "FACTOR = 2.0"),
}
#: The same, and the model stays what it is.
LOOKS = {
    "a docstring": ("own_model.py", '"""Two times."""', '"""Twice as much, in other words."""'),
    "no docstring": ("own_model.py", '"""Two times."""', ""),
    "a docstring where none was": ("own_model.py", "(h,) = state", '"""One step."""\n        (h,) = state'),
    "the docstring of a class": ("own_model.py", '"""A fidelity to a damped input."""', '"""Fidelity."""'),
    "the docstring of the file": ("own_model.py", '"""A model of one\'s own."""', "# None.\n\n"),
    "a comment": ("own_model.py", "return 2 * x", "# two\n    return 2 * x  # and two"),
    "blanks": ("own_model.py", "return 2 * x", "\n\n    return (2\n        *   x)"),
    "another layout": ("own_model.py", "(\n            bent.numel() > FLOOR or bent", "(bent.numel() > FLOOR or bent"),
    "an annotation": ("own_model.py", "def twice(x):", 'def twice(x: "torch.Tensor") -> Any:'),
    "the order of functions": ("helpers.py", "def unused(x):\n    return x\n", ""),
    "what a setting means": ("own_model.py", "how wide it is", "the width of its layers"),
    "where a setting is searched": ("own_model.py", "choice([8, 16])", "choice([4, 64])"),
    "the ends of a setting": ("own_model.py", "at_least=1", "at_least=2"),
    "the way out of a setting": ("own_model.py", "take three", "take another"),
    "something that is not used": ("constants.py", "OTHER = 1", "OTHER = 2"),
}


def written(folder, change=None):
    folder.mkdir()
    for name, given in FILES.items():
        text = textwrap.dedent(given).lstrip()
        file, old, new = (name, "", "") if change is None else change
        assert file != name or old in text
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text.replace(old, new) if old and file == name else text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """The key of every variant, each from a process that has loaded nothing else of the user's."""
    root = tmp_path_factory.mktemp("identity")
    variants = {"as it is": None, "once more": None, **CHANGES, **LOOKS}
    folders = {name: written(root / f"v{k}", change) for k, (name, change) in enumerate(variants.items())}
    found = outcome([sys.executable, MARKING], given="\n".join(map(str, folders.values())))
    return root, dict(zip(folders, found.split(), strict=True))


def outcome(command, given=None, cwd=None, **variables):
    done = subprocess.run(
        [str(word) for word in command], input=given, cwd=cwd, env={**os.environ, **variables}, capture_output=True, text=True, check=False, timeout=120
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("change", CHANGES)
def test_another_computation_has_another_key(fresh, change):
    keys = fresh[1]
    assert keys[change] != keys["as it is"]
    assert list(keys.values()).count(keys[change]) == 1


@pytest.mark.parametrize("look", ["once more", *LOOKS])
def test_looks_change_no_key(fresh, look):
    assert fresh[1][look] == fresh[1]["as it is"]


def test_a_key_is_the_same_however_python_was_started(fresh, tmp_path):
    root, keys = fresh
    script = root / "v0" / "own_model.py"
    assert outcome([sys.executable, script], cwd=tmp_path, PYTHONHASHSEED="1") == keys["as it is"]
    path = os.pathsep.join([str(script.parent), os.environ.get("PYTHONPATH", "")])
    told = outcome([sys.executable, "-m", "own_model"], cwd=tmp_path, PYTHONHASHSEED="2", PYTHONPATH=path)
    assert told == keys["as it is"]


def test_modules_that_answer_to_every_name_are_the_users(monkeypatch):
    module = types.ModuleType("answering_to_all")
    module.__getattr__ = lambda name: 1
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert identity.foreign(module.__name__) is None


# -- laws, in one process ----------------------------------------------------------------------------------------------

LAW = '''
import torch
import unspool as us
from torch import nn

WIDTHS = (3, 5)
NAMES = {"a", "b"}


def squashed(x, sharp=1.5):
    """Docstring."""
    try:
        y = torch.tanh(sharp * x)
    except ValueError:
        return x - 1
    return [y + k for k in WIDTHS if k > 2 and "a" in NAMES][0]


class Base(nn.Module):
    gain: float = 2.0

    def scaled(self, x):
        return self.gain * x


class Mine(Base):
    def __init__(self, in_features, out_features, width=4):
        super().__init__()
        self.inner, self.outer = us.nn.Linear(in_features, width), us.nn.Linear(width, out_features)

    @property
    def sign(self):
        return -1 if self.gain < 0 else 1

    def forward(self, x, graph):
        h = self.inner(x)
        for _ in range(2):
            h = graph @ squashed(h)
        return self.outer(self.scaled(h)) * self.sign
'''


def loaded(text):
    module = types.ModuleType("written_by_hand")
    exec(compile(text, "<written by hand>", "exec"), vars(module))
    return module.Mine


def mutants():
    """The tree of LAW with one constant or one operator changed, for each of them."""
    flips = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.MatMult: ast.Mult, ast.Gt: ast.Lt, ast.Lt: ast.Gt, ast.USub: ast.UAdd, ast.In: ast.NotIn}  # fmt: skip
    for place in itertools.count():
        tree = ast.parse(LAW)
        told = {id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and ast.get_docstring(node)}  # fmt: skip
        nodes = [
            node for node in ast.walk(tree)
            if (isinstance(node, ast.Constant) and id(node) not in told) or type(getattr(node, "op", None)) in flips
            or (isinstance(node, ast.Compare) and type(node.ops[0]) in flips)
        ]  # fmt: skip
        if place >= len(nodes):
            return
        node = nodes[place]
        if isinstance(node, ast.Constant):
            node.value = f"{node.value}x" if isinstance(node.value, str) else node.value + 1
        elif isinstance(node, ast.Compare):
            node.ops = [flips[type(node.ops[0])]()]
        else:
            node.op = flips[type(node.op)]()
        yield ast.unparse(tree)


def test_every_number_and_every_operator_counts():
    same = Trial(loaded(LAW)).key("")
    assert Trial(loaded(ast.unparse(ast.parse(LAW)))).key("") == same
    changed = list(mutants())
    keys = [Trial(loaded(text)).key("") for text in changed]
    assert len(changed) > 15
    assert same not in keys
    assert len(set(keys)) == len(keys)


def test_what_a_try_covers_counts():
    def one(x):
        try:
            a(x)
            b(x)
        except ValueError:
            c(x)

    def other(x):
        try:
            a(x)
        except ValueError:
            c(x)
        else:
            b(x)

    a = b = c = abs
    assert identity.digest(one, "f") != identity.digest(other, "f")


def test_what_is_loaded_counts_and_not_what_its_file_says_by_now(tmp_path):
    def key():
        return Trial(module.Mine).key("")

    file = tmp_path / "edited.py"
    file.write_text(
        "from torch import nn\n\n\nclass Mine(nn.Linear):\n    def forward(self, x, graph):\n        return x\n"
    )
    module = types.ModuleType("edited")
    exec(compile(file.read_text(), str(file), "exec"), vars(module))
    before = key()
    file.write_text(file.read_text().replace("return x", "return -x"))
    assert key() == before
    exec(compile(file.read_text(), str(file), "exec"), vars(module))
    assert key() != before


class Speed(Enum):
    SLOW = 1
    FAST = 2


class Held(nn.Module):
    """Whatever it is given."""

    def __init__(self, in_features, out_features, part=None):
        super().__init__()
        self.part, self.layer = part, us.nn.Linear(in_features, out_features)


class Bag:
    def __init__(self, content):
        self.content = content


def scaled(factor):
    return lambda x: factor * x


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Bag(1), Bag(2)),
        (Bag([1, {2: torch.ones(2)}]), Bag([1, {2: torch.zeros(2)}])),
        (Bag(torch.ones(2)), Bag(torch.ones(2).double())),
        (Bag(np.arange(3)), Bag(np.arange(1, 4))),
        (scaled(2), scaled(3)),
        (scaled(torch.ones(1)), scaled(torch.zeros(1))),
        (functools.partial(max, 1), functools.partial(max, 2)),
        (functools.partial(max, 1), functools.partial(min, 1)),
        (Speed.SLOW, Speed.FAST),
        (torch.relu, torch.tanh),
        (math.sqrt, cmath.sqrt),
        ([1].count, [2].count),
        (functools.lru_cache(scaled(2)), functools.lru_cache(scaled(3))),
        (torch.no_grad()(scaled(2)), torch.no_grad()(scaled(3))),
        (torch.compile(scaled(2)), torch.compile(scaled(3))),
        (torch.eye(2).to_sparse(), 2 * torch.eye(2).to_sparse()),
        (np.random.default_rng(0), np.random.default_rng(1)),
        (us.Fidelity(0.1), us.Fidelity(0.2)),
        (us.Fidelity(0.1), us.Ridge(0.1)),
        ({"a", "b"}, {"a", "c"}),
        (Bag, Held),
    ],
)
def test_objects_among_settings_count_by_what_they_are(one, other):
    def key(part):
        return Trial(Held, {"part": part}).key("")

    assert key(one) == key(one) != key(other)
    # Also where the model is of a package, and takes whatever it is given.
    assert Trial(nn.Linear, {"device": one}).key("") != Trial(nn.Linear, {"device": other}).key("")
    if isinstance(one, Bag | functools.partial | set | np.random.Generator):
        assert key(copy.deepcopy(one)) == key(one)


def test_what_a_constructor_finds_elsewhere_counts(tmp_path, monkeypatch):
    file = tmp_path / "prior.pt"

    class Reading(nn.Module):
        def __init__(self, in_features, out_features):
            super().__init__()
            self.layer = us.nn.Linear(in_features, out_features)
            self.prior = nn.Parameter(torch.load(file))

    def key():
        return Trial(Reading).key("")

    torch.save(torch.ones(2), file)
    first = key()
    assert key() == first
    torch.save(torch.zeros(2), file)
    assert key() != first


def test_weights_that_come_from_the_seed_do_not_count_twice():
    one, other = (Trial(Held, seed=seed) for seed in (0, 1))
    assert one.code == other.code
    assert one.key("") != other.key("")


def test_long_chains_of_calls_have_a_key():
    def made(last):
        text = "\n".join(f"def f{k}(x): return f{k + 1}(x)" for k in range(2000)) + f"\ndef f2000(x): return {last}\n"
        return loaded(
            text + "from torch import nn\nclass Mine(nn.Linear):\n    def forward(self, x, graph): return f0(x)\n"
        )

    assert Trial(made(1)).key("") == Trial(made(1)).key("") != Trial(made(2)).key("")


def test_asking_for_a_key_draws_nothing():
    torch.manual_seed(5)
    first = torch.rand(1)
    torch.manual_seed(5)
    Trial(Held).key("")
    assert torch.rand(1) == first


def test_a_model_that_does_not_like_the_stand_in_has_a_key():
    class Wide(nn.Module):
        def __init__(self, in_features, out_features):
            super().__init__()
            if in_features < 100:
                raise ValueError("too narrow")

    assert Trial(Wide).key("") == Trial(Wide).key("")


def test_what_cannot_be_compared_is_refused_by_name(tmp_path):
    log = open(tmp_path / "log", "w")  # noqa: SIM115

    class Noting(nn.Module):
        def __init__(self, in_features, out_features):
            super().__init__()

        def forward(self, x, graph):
            log.write("x")

    with log, pytest.raises(us.IncompatibleError, match=r"Noting → forward → log is a TextIOWrapper.*; make it inside"):
        Trial(Noting).key("")
    with open(tmp_path / "log") as held, pytest.raises(us.IncompatibleError, match="device is a TextIOWrapper"):
        Trial(nn.Linear, {"device": held}).key("")


@pytest.mark.parametrize("name", ["monitor", "stop", "precision", "lower_level", "lr_schedule"])
def test_rewording_a_choice_changes_no_key(name, monkeypatch):
    choice = getattr(train.TrainConfig(), name)
    key = Trial(us.models.GCN).key("")
    monkeypatch.setattr(choice, "_value_", "said in other words")
    assert Trial(us.models.GCN).key("") == key


@pytest.mark.parametrize("name", ["monitor", "stop", "precision", "lower_level", "lr_schedule"])
def test_every_choice_of_a_config_counts(name):
    keys = {
        Trial(us.models.GCN, config=train.TrainConfig(**{name: choice})).key("")
        for choice in type(getattr(train.TrainConfig(), name))
    }
    assert len(keys) == len(type(getattr(train.TrainConfig(), name)))


def test_optimisers_of_ones_own_count_by_what_they_do():
    def made(rate):
        def optimiser(groups, lr):
            return torch.optim.SGD(groups, lr=rate * lr)

        return optimiser

    one, same, other = (
        Trial(us.models.GCN, config=train.TrainConfig(optimiser=made(r))).key("") for r in (1.0, 1.0, 2.0)
    )
    assert one == same != other


def test_losses_of_ones_own_count_by_all_that_they_reach():
    data = us.datasets.contextual_sbm(nodes=60, classes=2, seed=0)
    weight = [1.0]

    def inner(x):
        return weight[0] * x

    def loss(output, target):
        return inner(nn.functional.cross_entropy(output, target))

    fingerprint = TrialLoader(data, loss=loss).fingerprint
    assert TrialLoader(data, loss=loss).fingerprint == fingerprint
    weight[0] = 2.0
    assert TrialLoader(data, loss=loss).fingerprint != fingerprint


def test_our_numbers_have_a_version(monkeypatch):
    for kind in (us.models.GCN, Held):
        before = Trial(kind).key("")
        with monkeypatch.context() as patch:
            patch.setattr(identity, "NUMERICS", identity.NUMERICS + 1)
            assert Trial(kind).key("") != before
        assert Trial(kind).key("") == before


def test_a_key_stays_while_its_trial_lives():
    seen = []

    class Counting(nn.Module):
        def __init__(self, in_features, out_features):
            super().__init__()
            seen.append(1)

    trial = Trial(Counting)
    assert trial.key("") == trial.key("")
    assert trial.with_seed(3).code == trial.code
    assert Trial(Counting).code != trial.code  # what it reads has changed meanwhile


HIDDEN = {
    "an implementation for one type": """
        @functools.singledispatch
        def f(x): return x
        @f.register(torch.Tensor)
        def _(x): return {} * x
        class Mine(nn.Linear):
            def forward(self, x, graph): return f(x)
    """,
    "a function in a class attribute": """
        def f(x): return {} * x
        class Mine(nn.Linear):
            how = staticmethod(f)
    """,
    "a method that is put in later": """
        class Mine(nn.Linear): ...
        Mine.forward = lambda self, x, graph: {} * x
    """,
    "a base that is made by a function": """
        def made(k):
            class Base(nn.Linear):
                def forward(self, x, graph): return k * x
            return Base
        class Mine(made({})): ...
    """,
    "a metaclass": """
        class Meta(type):
            def gain(cls): return {}
        class Mine(nn.Linear, metaclass=Meta): ...
    """,
    "a wrapper of a package": """
        class Mine(nn.Linear):
            @torch.no_grad()
            def forward(self, x, graph): return {} * x
    """,
    "a wrapper of one's own": """
        def times(k):
            def wrap(f):
                @functools.wraps(f)
                def inner(*a): return k * f(*a)
                return inner
            return wrap
        class Mine(nn.Linear):
            @times({})
            def forward(self, x, graph): return x
    """,
    "a cached property": """
        class Mine(nn.Linear):
            @functools.cached_property
            def gain(self): return {}
    """,
    "a class inside a function": """
        class Mine(nn.Linear):
            def forward(self, x, graph):
                class Inner:
                    gain = {}
                return Inner.gain * x
    """,
    "a comprehension": """
        class Mine(nn.Linear):
            def forward(self, x, graph): return sum(k * x for k in range({}))
    """,
    "a hook": """
        class Mine(nn.Linear):
            def __init__(self, a, b):
                super().__init__(a, b)
                self.register_forward_hook(lambda module, given, out: {} * out)
    """,
    "a gradient of one's own": """
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x
            @staticmethod
            def backward(ctx, g): return {} * g
        class Mine(nn.Linear):
            def forward(self, x, graph): return Twice.apply(x)
    """,
    "a choice of one's own": """
        class Kind(Enum):
            A = {}
        class Mine(nn.Linear):
            def forward(self, x, graph): return Kind.A.value * x
    """,
    "a named tuple": """
        Numbers = collections.namedtuple("Numbers", "a b")
        HELD = Numbers(1, {})
        class Mine(nn.Linear):
            def forward(self, x, graph): return HELD.b * x
    """,
    "the type that an implementation is for": """
        @functools.singledispatch
        def f(x): return x
        @f.register([int, torch.Tensor][{} - 2])
        def _(x): return 2 * x
        class Mine(nn.Linear):
            def forward(self, x, graph): return f(x)
    """,
    "the annotation that an implementation is for": """
        @functools.singledispatch
        def f(x): return x
        @f.register
        def _(x: [int, torch.Tensor][{} - 2]): return 2 * x
        class Mine(nn.Linear):
            def forward(self, x, graph): return f(x)
    """,
    "the type that a method is for": """
        class Mine(nn.Linear):
            @functools.singledispatchmethod
            def f(self, x): return x
            @f.register([int, torch.Tensor][{} - 2])
            def _(self, x): return 2 * x
    """,
    "a dataclass that a function makes": """
        Held = dataclasses.make_dataclass("Held", [("gain", int, {})])
        class Mine(nn.Linear):
            def forward(self, x, graph): return Held().gain * x
    """,
    "a factory of a dataclass that a function makes": """
        Held = dataclasses.make_dataclass("Held", [("gain", list, dataclasses.field(default_factory=lambda: [{}]))])
        class Mine(nn.Linear):
            def forward(self, x, graph): return Held().gain[0] * x
    """,
    "a class that a function makes": """
        Held = types.new_class("Held", (), dict(), lambda body: body.update(gain={}))
        class Mine(nn.Linear):
            def forward(self, x, graph): return Held.gain * x
    """,
    "a class that a metaclass makes": """
        Held = abc.ABCMeta("Held", (), dict(gain={}))
        class Mine(nn.Linear):
            def forward(self, x, graph): return Held.gain * x
    """,
    "what a field of a dataclass says": """
        @dataclasses.dataclass
        class Held:
            gain: int = dataclasses.field(default=1, metadata=dict(k={}))
        class Mine(nn.Linear):
            def forward(self, x, graph): return dataclasses.fields(Held)[0].metadata["k"] * x
    """,
    "a flag without a name": """
        class Kind(enum.IntFlag):
            A = 1
        kind = Kind(2 ** {})
        class Mine(nn.Linear):
            def forward(self, x, graph): return int(kind) * x
    """,
    "an attribute of a choice": """
        K = {}
        class Kind(Enum):
            A = 1
            def __init__(self, value): self.gain = K * value
        class Mine(nn.Linear):
            def forward(self, x, graph): return Kind.A.gain * x
    """,
    "an exception": """
        class Mine(nn.Linear):
            def forward(self, x, graph):
                try: return x / 0
                except ZeroDivisionError: return {} * x
    """,
}  # fmt: skip


#: What stands in the body of an enum, and what it is asked for.
IN_AN_ENUM = {
    "a cached property": ("@functools.cached_property\n    def gain(self): return {}", "Kind.A.gain"),
    "a descriptor": ("gain = Fixed()", "Kind.A.gain"),
    "a private name": ("__gain = {}", "Kind._Kind__gain"),
    "what is not a member": ("gain = enum.nonmember({})", "Kind.gain"),
    "a partial method": ("def f(self, k): return k\n    gain = functools.partialmethod(f, {})", "Kind.A.gain()"),
    "a method": ("def gain(self): return {}", "Kind.A.gain()"),
}
HIDDEN |= {
    f"{name} of an enum": f"""
class Fixed:
    def __get__(self, thing, kind=None): return {{}}
class Kind(Enum):
    A = 1
    {text}
class Mine(nn.Linear):
    def forward(self, x, graph): return {asked} * x
"""
    for name, (text, asked) in IN_AN_ENUM.items()
}
HIDDEN |= {
    f"a subclass of {kind}": f"""
class Own({kind}):
    def __get__(self, thing, owner=None): return lambda *a: {{}}
class Mine(nn.Linear):
    gain = Own(lambda *a: 1)
"""
    for kind in ("property", "functools.cached_property", "staticmethod", "classmethod")
}
HIDDEN |= {
    f"an attribute of a subclass of {kind}": f"""
class Own({kind}): ...
class Mine(nn.Linear):
    gain = Own(lambda *a: 1)
vars(Mine)["gain"].scale = {{}}
"""
    for kind in ("property", "functools.cached_property", "staticmethod", "classmethod")
}
#: Functions of the module itself, found by words that are made while the code runs.
HIDDEN |= {
    f"a name that is looked up with {text}": f"""
import inspect
def act_a(x): return {{}} * x
def plain(x): return x
class Mine(nn.Linear):
    def forward(self, x, graph): return {text}(x)
"""
    for text in (
        "globals()['act_' + chr(97)]", "eval('act_' + chr(97))", "plain.__globals__['act_' + chr(97)]",
        "inspect.currentframe().f_globals['act_' + chr(97)]",
    )
}  # fmt: skip
#: Values that are more than their entries.
HIDDEN |= {
    f"{name}, kept as a constant": f"""
class Array(np.ndarray):
    def gain(self): return {{}}
class Own(torch.Tensor):
    def gain(self): return {{}}
def with_gain(thing):
    thing.gain = {{}}
    return thing
def with_hook(thing):
    thing.register_hook(lambda g: {{}} * g)
    return thing
HELD = {text}
class Mine(nn.Linear):
    def forward(self, x, graph): return HELD
"""
    for name, text in {
        "a mask": "np.ma.array([1.0, 2.0], mask=[{} == 2, False])",
        "a value to fill with": "np.ma.array([1.0, 2.0], mask=[True, False], fill_value={})",
        "a mask that is hard": "np.ma.array([1.0, 2.0], mask=[True, False], hard_mask={} == 2)",
        "names of records": "np.array([(1, 2)], dtype=[[('a', 'i4'), ('b', 'i4')], [('b', 'i4'), ('a', 'i4')]][{} - 2])",
        "types of records": "np.zeros(1, dtype=[('a', ['i4', 'f4'][{} - 2])])",
        "a matrix": "np.ones((1, 2)).view([np.matrix, np.ndarray][{} - 2])",
        "a class of arrays": "np.zeros(3).view(Array)",
        "an attribute of an array": "with_gain(np.zeros(3).view(type('Plain', (np.ndarray,), dict())))",
        "a function made into a ufunc": "np.frompyfunc(lambda x: {} * x, 1, 1)",
        "an attribute of a tensor": "with_gain(torch.ones(1))",
        "an attribute of a parameter": "with_gain(nn.Parameter(torch.ones(1)))",
        "a class of tensors": "torch.ones(1).as_subclass(Own)",
        "a hook of a parameter": "with_hook(nn.Parameter(torch.ones(1)))",
        "axes of a vmap": "torch.vmap(lambda a, b: a @ b, in_dims=(0, {} - 2))",
        "arguments of a gradient": "torch.func.grad(lambda a, b: (a * a * b).sum(), argnums=({} - 2,))",
    }.items()
}


@pytest.mark.parametrize("place", HIDDEN)
def test_a_number_counts_wherever_it_hides(place):
    modules = "abc, collections, dataclasses, enum, functools, torch, types"
    head = f"import {modules}\nimport numpy as np\nfrom enum import Enum\nfrom torch import nn\n"
    text = head + textwrap.dedent(HIDDEN[place])
    two, same, three = (Trial(loaded(text.replace("{}", str(k)))).key("") for k in (2, 2, 3))
    assert two == same != three
