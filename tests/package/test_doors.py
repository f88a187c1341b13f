"""One run, all doors: the same files or tensors, settings, split and seed give the same numbers wherever one comes in.

The doors are ``unspool train``, ``unspool study run``, ``study.run``, ``train.run_seed`` on ``datasets.from_files``, and the
estimators on plain arrays.
"""

import csv
from dataclasses import dataclass

import numpy as np
import pytest
from click.testing import CliRunner

from unspool import datasets, models, study, train
from unspool.cli.main import cli
from unspool.estimator import NodeClassifier, NodeRegressor
from unspool.models.folder import load_folder
from unspool.study import Study

pytestmark = pytest.mark.filterwarnings("ignore::unspool.graph.EdgeDirectionWarning")

NODES = 72
EPOCHS = 25
TEAMS = ("blue", "green", "red")
#: Where arithmetic is the same, so are the bits; a stack of trials rounds differently.
EXACT, STACKED = 1e-9, 2e-4


@dataclass(frozen=True)
class Ended:
    """What a door says of a run."""

    epoch: int
    epochs: int
    train_loss: float
    valid_loss: float
    valid_score: float
    test_score: float

    def near(self, other, tolerance):
        """The same epochs, and numbers as near as asked for."""
        assert (self.epoch, self.epochs) == (other.epoch, other.epochs)
        for name in ("train_loss", "valid_loss", "valid_score", "test_score"):
            assert getattr(self, name) == pytest.approx(getattr(other, name), rel=tolerance, abs=tolerance), name


# -- the data ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """People in three teams whose friends are listed once, in one direction; a price to predict, and two kinds of split."""
    place, chance = tmp_path_factory.mktemp("doors"), np.random.default_rng(0)
    team = np.arange(NODES) % 3
    pairs = set()
    while len(pairs) < 3 * NODES:
        a, b = (int(v) for v in chance.integers(0, NODES, 2))
        if a != b and (b, a) not in pairs and (team[a] == team[b] or chance.random() < 0.2):
            pairs.add((a, b))
    edges = ["source,target", *(f"p{a},p{b}" for a, b in sorted(pairs))]
    x = np.eye(3)[team] + chance.normal(0, 0.8, (NODES, 3))
    price = 1000 + 300 * team + 200 * chance.normal(0, 1, NODES)
    part = np.array(["train", "valid", "test"])[chance.permutation(NODES) % 3]
    (place / "friends.csv").write_text("\n".join(edges) + "\n")
    rows = [
        f"p{i},{','.join(f'{v:.4f}' for v in x[i])},{TEAMS[team[i]]},{price[i]:.2f},{part[i]}" for i in range(NODES)
    ]
    (place / "people.csv").write_text("\n".join(["id,a,b,c,team,price,part", *rows]) + "\n")
    return place


@dataclass(frozen=True)
class Wish:
    """A run that can be had at every door."""

    kind: str = "classes"
    model: type = models.UGDGNN
    seed: int = 0
    decay: float | None = None
    drawn: bool = False
    settings: tuple = (("depth", 3), ("hidden", 8), ("dropout", 0.3))
    stops: bool = False

    @property
    def columns(self):
        """What is read from the tables."""
        what = {"label_column": "team"} if self.kind == "classes" else {"target_columns": ["price"]}
        return {"feature_columns": ["a", "b", "c"], **what, **({} if self.drawn else {"split_column": "part"})}

    def typed(self, folder):
        """The same as options."""
        said = ["--edges", folder / "friends.csv", "--features", folder / "people.csv"]
        for name, value in self.columns.items():
            for one in value if isinstance(value, list) else [value]:
                said += [f"--{name.removesuffix('s').replace('_', '-')}", one]
        said += [part for name, value in self.settings for part in ("--set", f"{name}={value}")]
        said += ["--epochs", EPOCHS, "--seeds", 1, "--first-seed", self.seed, "--device", "cpu", "--quiet"]
        return [*map(str, said), *([] if self.decay is None else ["--decay", str(self.decay)])]

    @property
    def plan(self):
        """What is said about the plan, and nothing else."""
        return {"epochs": EPOCHS, **({} if self.decay is None else {"decay": self.decay})}


# -- the doors ---------------------------------------------------------------------------------------------------------


def through_train(wish, folder, out):
    """``unspool train``."""
    _type(["train", wish.model.__name__, *wish.typed(folder), "--no-report", "--out", str(out)])
    place = out / f"seed{wish.seed}"
    held = load_folder(place)[1]["metrics"]
    return _of_metrics(held)


def through_study_run(wish, folder, out):
    """``unspool study run``."""
    _type(["study", "run", wish.model.__name__, *wish.typed(folder), "--out", str(out / "study.db")])
    (row,) = Study.open(out / "study.db").rows
    return _of_metrics(vars(row.result))


def through_study(wish, folder, out):
    """``study.run`` in Python, beside other seeds: the trials are stacked."""
    seeds = [wish.seed, wish.seed + 1, wish.seed + 2]
    space = study.grid(wish.model, seed=seeds, preset="default", **dict(wish.settings), **wish.plan)
    rows = study.run(space, _read(wish, folder), device="cpu").rows
    return _of_metrics(vars(next(row.result for row in rows if row.described["seed"] == wish.seed)))


def through_fit(wish, folder, out):
    """``datasets.from_files``, ``train.Task`` and ``train.run_seed``."""
    data = _read(wish, folder)
    data = data.with_split(datasets.splits.repetition(data, wish.seed))
    outputs = len(data.classes) if data.targets is None else data.targets.shape[1]
    build = lambda: wish.model(data.features.shape[1], outputs, **dict(wish.settings))  # noqa: E731
    _, run = train.run_seed(build, wish.seed, train.Task.of(data), train.Plan(**wish.plan))
    return _of_metrics({**vars(run.best), "epochs": len(run.history)})


def through_preset(wish, folder, out):
    """The preset ``default`` in Python, and ``train.repeat``."""
    data = _read(wish, folder)
    data = data.with_split(datasets.splits.repetition(data, wish.seed))
    how = models.preset(wish.model, "own data", "default")
    outputs = len(data.classes) if data.targets is None else data.targets.shape[1]
    build = lambda: how.build(data.features.shape[1], outputs, **dict(wish.settings))  # noqa: E731
    runs = train.repeat(build, train.Task.of(data), how.plan(**wish.plan), seeds=[wish.seed])
    return _of_metrics({**vars(runs.runs[0].best), "epochs": len(runs.runs[0].history)})


def through_estimator(wish, folder, out):
    """``NodeClassifier`` and ``NodeRegressor`` on arrays that were read by hand."""
    with (folder / "people.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    with (folder / "friends.csv").open(newline="") as file:
        friends = np.array([[int(r["source"][1:]), int(r["target"][1:])] for r in csv.DictReader(file)]).T
    x = np.array([[float(row[c]) for c in "abc"] for row in rows], dtype=np.float32)
    split = datasets.splits.repetition(_read(wish, folder), wish.seed)
    seen = np.concatenate([split.train.numpy(), split.valid.numpy()])
    if wish.kind == "classes":
        y = np.array([row["team"] for row in rows], dtype=object)
        known = np.full(NODES, None, dtype=object)
        make = NodeClassifier
    else:
        y = np.array([np.float32(row["price"]) for row in rows], dtype=np.float64)
        known = np.full(NODES, np.nan)
        make = NodeRegressor
    known[seen] = y[seen]
    said = {**dict(wish.settings), **wish.plan, "seed": wish.seed, "device": "cpu"}
    made = make(wish.model, **said).fit(x, known, graph=friends, valid=split.valid.numpy())
    test = split.test.numpy()
    found = made.predict()
    score = np.mean(found[test] == y[test]) if wish.kind == "classes" else _r2(y[test], found[test])
    return _of_metrics({**vars(made.run_.best), "epochs": len(made.run_.history), "test_score": score})


DOORS = {
    "unspool train": (through_train, EXACT),
    "unspool study run": (through_study_run, STACKED),
    "study.run": (through_study, STACKED),
    "train.repeat": (through_preset, EXACT),
    "estimator": (through_estimator, STACKED),  # the score is counted by hand
}


def _type(arguments):
    done = CliRunner().invoke(cli, [str(part) for part in arguments])
    assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"


def _read(wish, folder):
    return datasets.from_files(folder / "friends.csv", folder / "people.csv", **wish.columns)


def _r2(truth, found):
    return 1 - np.sum((truth - found) ** 2) / np.sum((truth - truth.mean()) ** 2)


def _of_metrics(held):
    return Ended(**{name: held[name] for name in Ended.__dataclass_fields__})


# -- the law -----------------------------------------------------------------------------------------------------------

WISHES = {
    "classes": Wish(),
    "classes, decay said": Wish(decay=0.05),
    "classes, learnt hops": Wish(model=models.GPRGNN, decay=0.05, settings=(("depth", 3), ("dropout", 0.0))),
    "classes, fixed hops": Wish(model=models.APPNP, settings=(("depth", 4), ("hidden", 8))),
    "classes, drawn split": Wish(drawn=True, seed=2),
    "numbers": Wish(kind="numbers"),
    "numbers, decay said": Wish(kind="numbers", decay=0.05),
    "numbers, drawn split": Wish(kind="numbers", drawn=True, seed=2),
}


@pytest.fixture(scope="module", params=WISHES)
def wish(request):
    return WISHES[request.param]


@pytest.fixture(scope="module")
def expected(wish, folder):
    return through_fit(wish, folder, None)


@pytest.mark.parametrize("door", DOORS)
def test_the_same_run_gives_the_same_numbers_at_every_door(door, wish, expected, folder, tmp_path):
    go, tolerance = DOORS[door]
    go(wish, folder, tmp_path).near(expected, tolerance)
