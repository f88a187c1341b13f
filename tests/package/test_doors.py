"""One run, all doors: the same files or tensors, settings, split and seed give the same numbers wherever one comes in.

The doors are ``unspool train``, ``unspool study run``, ``study.run``, ``train.train_trial``, ``train.repeat``, and the estimators on plain
arrays; all are compared with ``train.fit`` on a task that is put together by hand.
"""

import csv
import importlib.util
import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from sklearn.metrics import cohen_kappa_score, d2_tweedie_score, f1_score, roc_auc_score
from sklearn.utils.class_weight import compute_class_weight

from unspool import datasets, links, models, study, train
from unspool.cli.main import cli
from unspool.estimator import LinkPredictor, NodeClassifier, NodeRegressor
from unspool.models.pretrained import load_with_card
from unspool.study import Study
from unspool.train import Monitor, TaskKind, TrainConfig, Trial, TrialLoader

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::unspool.graph.EdgeDirectionWarning")]

ROOT = Path(__file__).parents[2]
NODES = 72
TEAMS, SIZES = ("blue", "green", "red"), ("small", "medium", "large")
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
    """People in three teams whose friends are listed once, in one direction; all that can be asked of them, and two kinds of split."""
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
    likes = [[str(int(v)) for v in row] for row in chance.random((NODES, 2)) < 0.3 + 0.3 * (team[:, None] == [0, 1])]
    for i in range(0, NODES, 7):
        likes[i][i % 2] = ""
    visits, counted = chance.poisson(2 + 5 * team), 0.5 * chance.integers(1, 7, NODES)
    rows = [
        f"p{i},{','.join(f'{v:.4f}' for v in x[i])},{TEAMS[team[i]]},{price[i]:.2f},{part[i]},{'yes' if team[i] else 'no'},"
        f"{','.join(likes[i])},{visits[i]},{counted[i]},{SIZES[team[i]]}"
        for i in range(NODES)
    ]
    (place / "people.csv").write_text(
        "\n".join(["id,a,b,c,team,price,part,vip,sport,music,visits,counted,size", *rows]) + "\n"
    )
    return place


#: The columns that each kind learns from, and the options that say more.
COLUMNS = {
    TaskKind.CLASSES: {"label_column": "team"}, TaskKind.BINARY: {"label_column": "vip"}, TaskKind.LINKS: {},
    TaskKind.NUMBERS: {"target_columns": ["price"]}, TaskKind.RANKING: {"target_columns": ["price"]},
    TaskKind.MULTILABEL: {"label_columns": ["sport", "music"]}, TaskKind.COUNTS: {"target_columns": ["visits"]},
    TaskKind.ORDINAL: {"label_column": "size", "class_order": list(SIZES)},
}  # fmt: skip
#: How many outputs a model has, and the loss of a task that is put together by hand.
BY_HAND = {
    TaskKind.CLASSES: (3, train.CrossEntropy), TaskKind.BINARY: (1, train.Binary), TaskKind.NUMBERS: (1, train.Regression),
    TaskKind.RANKING: (1, train.Ranking), TaskKind.MULTILABEL: (2, train.MultiLabel), TaskKind.ORDINAL: (2, train.Ordinal),
    TaskKind.COUNTS: (1, train.Counts),
}  # fmt: skip
#: What is seen from the data, and need not be said.
SEEN = (TaskKind.CLASSES, TaskKind.NUMBERS, TaskKind.MULTILABEL, TaskKind.ORDINAL)


@dataclass(frozen=True)
class Case:
    """A run that can be had at every door."""

    kind: TaskKind = TaskKind.CLASSES
    model: type = models.UGDGNN
    seed: int = 0
    drawn: bool = False
    settings: tuple = (("depth", 3), ("hidden", 8), ("dropout", 0.3))
    said: dict = field(default_factory=dict)
    class_weight: object = None
    weighed: bool = False

    @property
    def config(self):
        """What is said about training, and nothing else."""
        return {"epochs": 25, **self.said}

    @property
    def trial(self):
        """The same for Python."""
        return Trial(self.model, dict(self.settings), TrainConfig(**self.config), self.seed)

    @property
    def columns(self):
        """What is read from the tables."""
        split = {} if self.drawn or self.kind is TaskKind.LINKS else {"split_column": "part"}
        weight = {"sample_weight_column": "counted"} if self.weighed else {}
        return {"feature_columns": ["a", "b", "c"], **COLUMNS[self.kind], **split, **weight}

    def typed(self, folder):
        """The same as options."""
        said = ["--edges", folder / "friends.csv", "--features", folder / "people.csv"]
        columns = self.columns
        if "class_order" in columns:
            said += ["--class-order", ",".join(columns.pop("class_order"))]
        for name, value in columns.items():
            for one in value if isinstance(value, list) else [value]:
                said += [f"--{name.removesuffix('s').replace('_', '-')}", one]
        said += [part for name, value in self.settings for part in ("--setting", f"{name}={value}")]
        for name, value in self.config.items():
            said += [f"--{name.replace('_', '-')}", TrainConfig.schema[name].shown(value)]
        said += [] if self.kind in SEEN else ["--loss", self.kind.value]
        weights = [self.class_weight] if isinstance(self.class_weight, str) else []
        if isinstance(self.class_weight, dict):
            weights = [f"{name}={weight}" for name, weight in self.class_weight.items()]
        said += [part for weight in weights for part in ("--class-weight", weight)]
        return [*map(str, said), "--seeds", "1", "--first-seed", str(self.seed), "--device", "cpu", "--quiet"]

    def read(self, folder):
        """The data through the library."""
        return datasets.from_files(folder / "friends.csv", folder / "people.csv", **self.columns)

    def loader(self, folder):
        """The data for trials."""
        kind = None if self.kind in SEEN else self.kind
        return TrialLoader(self.read(folder), kind=kind, class_weight=self.class_weight)


# -- the doors ---------------------------------------------------------------------------------------------------------


def through_fit(case, folder, out=None):
    """``datasets.from_files``, a task and a model by hand, ``train.fit``."""
    data = case.read(folder)
    if case.kind is TaskKind.LINKS:
        task, outputs = train.link_task(data, seed=case.seed), 64
    else:
        data = data.with_split(datasets.splits.repetition(data, case.seed))
        outputs, loss = BY_HAND[case.kind]
        task = train.Task.of(data, loss())
        task = replace(task, weight=_weight(case, data, task.train.numpy(), folder))
    with train.seeded(case.seed):
        model = case.model(data.features.shape[1], outputs, **dict(case.settings))
        run = train.fit(model, task, TrainConfig(**case.config))
    return _of_run(run)


def through_train(case, folder, out):
    """``unspool train``."""
    _type(["train", case.model.__name__, *case.typed(folder), "--no-report", "--out", out])
    return _of(load_with_card(out / f"seed{case.seed}")[1]["metrics"])


def through_study_run(case, folder, out):
    """``unspool study run``."""
    _type(["study", "run", case.model.__name__, *case.typed(folder), "--out", out / "study.db"])
    (row,) = Study.open(out / "study.db").rows
    return _of(vars(row.result))


def through_study(case, folder, out):
    """``study.run`` in Python, beside other seeds: the trials are stacked where they can be."""
    seeds = [case.seed, case.seed + 1, case.seed + 2]
    space = study.grid(case.model, seed=seeds, **dict(case.settings), **case.config)
    rows = study.run(space, case.loader(folder)).rows
    return _of(vars(next(row.result for row in rows if row.trial["seed"] == case.seed)))


def through_trial(case, folder, out):
    """``train.train_trial``."""
    return _of_run(train.train_trial(case.trial, case.loader(folder))[1])


def through_repeat(case, folder, out):
    """The preset ``DEFAULT`` in Python, and ``train.repeat``."""
    start = train.DEFAULT.trial(case.model, "own data")
    trial = Trial(start.model, {**start.settings, **dict(case.settings)}, start.config.replace(**case.config))
    return _of_run(train.repeat(trial, case.loader(folder), seeds=[case.seed]).runs[0])


def through_estimator(case, folder, out):
    """``NodeClassifier``, ``NodeRegressor`` and ``LinkPredictor`` on arrays that were read by hand."""
    with (folder / "people.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    with (folder / "friends.csv").open(newline="") as file:
        friends = np.array([[int(r["source"][1:]), int(r["target"][1:])] for r in csv.DictReader(file)]).T
    x = np.array([[float(row[c]) for c in "abc"] for row in rows], dtype=np.float32)
    if case.kind is TaskKind.LINKS:
        made = LinkPredictor(case.model, **dict(case.settings), **case.config, seed=case.seed, device="cpu")
        return _of_run(made.fit(x, graph=friends).run_)
    split = datasets.splits.repetition(case.read(folder), case.seed)
    seen, test = np.concatenate([split.train.numpy(), split.valid.numpy()]), split.test.numpy()
    y, known = _answers(case, rows)
    known[seen] = y[seen]
    said = {**dict(case.settings), **case.config, "seed": case.seed, "device": "cpu"}
    said |= {} if case.kind in SEEN else {"loss": case.kind.value}
    said |= {"loss": "ordinal", "class_order": SIZES} if case.kind is TaskKind.ORDINAL else {}
    if case.kind not in (TaskKind.NUMBERS, TaskKind.COUNTS):
        said["class_weight"] = case.class_weight
    counted = np.array([float(row["counted"]) for row in rows]) if case.weighed else None
    make = NodeRegressor if case.kind in (TaskKind.NUMBERS, TaskKind.COUNTS) else NodeClassifier
    made = make(case.model, **said).fit(x, known, graph=friends, valid=split.valid.numpy(), sample_weight=counted)
    score = _score(case.kind, y[test], made, test)
    return _of({**vars(made.run_.best), "epochs": len(made.run_.history), "test_score": score})


def _answers(case, rows):
    """What is true of all, and of nobody."""
    if case.kind in (TaskKind.NUMBERS, TaskKind.COUNTS):
        column = COLUMNS[case.kind]["target_columns"][0]
        return np.array([np.float32(row[column]) for row in rows], dtype=np.float64), np.full(NODES, np.nan)
    if case.kind is TaskKind.MULTILABEL:
        told = [[float(row[c]) if row[c] else np.nan for c in ("sport", "music")] for row in rows]
        return np.array(told), np.full((NODES, 2), np.nan)
    column = COLUMNS[case.kind]["label_column"]
    return np.array([row[column] for row in rows], dtype=object), np.full(NODES, None, dtype=object)


def _score(kind, truth, made, test):
    """Counted by scikit-learn, or by hand."""
    found = made.predict()[test]
    if kind is TaskKind.CLASSES:
        return np.mean(found == truth)
    if kind is TaskKind.BINARY:
        return roc_auc_score(truth == "yes", made.predict_proba()[test, 1])
    if kind is TaskKind.MULTILABEL:
        known = ~np.isnan(truth)
        return f1_score(truth[known], found[known])
    if kind is TaskKind.ORDINAL:
        return cohen_kappa_score(truth.astype(str), found.astype(str), labels=list(SIZES), weights="quadratic")
    return d2_tweedie_score(truth, found, power=1) if kind is TaskKind.COUNTS else _r2(truth, found)


def _weight(case, data, learnt, folder):
    """How much each node counts, as scikit-learn counts it."""
    with (folder / "people.csv").open(newline="") as file:
        each = np.array([float(row["counted"]) if case.weighed else 1.0 for row in csv.DictReader(file)])
    if case.class_weight is None:
        return torch.tensor(each, dtype=torch.float32) if case.weighed else None
    columns = data.targets.T.numpy() if data.multilabel else [data.labels.numpy()]
    found = []
    for y in columns:
        known = learnt[~np.isnan(y[learnt])]
        rule = case.class_weight
        if isinstance(rule, dict):
            rule = {data.classes.index(name): weight for name, weight in rule.items()}
        by_class = compute_class_weight(rule, classes=np.unique(y[known]), y=y[known])
        found.append(each * by_class[np.nan_to_num(y).astype(int)])
    weight = torch.tensor(np.array(found).T, dtype=torch.float32)
    return weight if data.multilabel else weight[:, 0]


DOORS = {
    "unspool train": (through_train, EXACT),
    "unspool study run": (through_study_run, STACKED),
    "study.run": (through_study, STACKED),
    "train.train_trial": (through_trial, EXACT),
    "train.repeat": (through_repeat, EXACT),
    "estimator": (through_estimator, STACKED),  # the score is counted by hand
}


def _type(arguments):
    done = CliRunner().invoke(cli, [str(part) for part in arguments])
    assert done.exit_code == 0, f"{done.output}\n{done.exception!r}"


def _r2(truth, found):
    return 1 - np.sum((truth - found) ** 2) / np.sum((truth - truth.mean()) ** 2)


def _of_run(run):
    return _of({**vars(run.best), "epochs": len(run.history)})


def _of(held):
    return Ended(**{name: held[name] for name in Ended.__dataclass_fields__})


# -- the law -----------------------------------------------------------------------------------------------------------

_GROUPS = {"first": 0.05, "linear": 0.001}
CASES = {
    "classes": Case(),
    "classes, decay said": Case(said={"weight_decay": 0.05}),
    "classes, decay by group": Case(said={"weight_decay": _GROUPS, "lr": 0.03}),
    "classes, learnt hops": Case(
        model=models.GPRGNN, said={"weight_decay": 0.05}, settings=(("depth", 3), ("dropout", 0.0))
    ),
    "classes, fixed hops": Case(model=models.APPNP, settings=(("depth", 4), ("hidden", 8))),
    "classes, drawn split": Case(drawn=True, seed=2),
    "classes, stopped by the score": Case(said={"epochs": 60, "patience": 4, "monitor": Monitor.VALID_SCORE}),
    "classes, the last epoch": Case(model=models.GCN, said={"monitor": Monitor.LAST_EPOCH}),
    "numbers": Case(kind=TaskKind.NUMBERS),
    "numbers, decay said": Case(kind=TaskKind.NUMBERS, said={"weight_decay": 0.05}),
    "numbers, drawn split": Case(kind=TaskKind.NUMBERS, drawn=True, seed=2),
    "binary": Case(kind=TaskKind.BINARY),
    "binary, drawn split": Case(kind=TaskKind.BINARY, drawn=True, seed=2, model=models.APPNP),
    "binary, weights": Case(kind=TaskKind.BINARY, class_weight={"yes": 1.0, "no": 2.5}, weighed=True),
    "classes, balanced": Case(class_weight="balanced", drawn=True, seed=1, model=models.GCN),
    "classes, weights of nodes": Case(weighed=True),
    "classes, all weights": Case(class_weight={"blue": 3.0, "green": 0.5, "red": 1.0}, weighed=True),
    "numbers, weights of nodes": Case(kind=TaskKind.NUMBERS, weighed=True),
    "several labels": Case(kind=TaskKind.MULTILABEL),
    "several labels, drawn split": Case(kind=TaskKind.MULTILABEL, drawn=True, seed=2),
    "several labels, weights": Case(kind=TaskKind.MULTILABEL, class_weight="balanced", weighed=True),
    "ordered classes": Case(kind=TaskKind.ORDINAL),
    "ordered classes, drawn split": Case(kind=TaskKind.ORDINAL, drawn=True, seed=2, model=models.GCN),
    "ordered classes, weights": Case(kind=TaskKind.ORDINAL, class_weight="balanced", weighed=True),
    "counts": Case(kind=TaskKind.COUNTS),
    "counts, drawn split": Case(kind=TaskKind.COUNTS, drawn=True, seed=2),
    "counts, weights of nodes": Case(kind=TaskKind.COUNTS, weighed=True),
    "ranking": Case(kind=TaskKind.RANKING),
    "links": Case(kind=TaskKind.LINKS),
    "links, another seed": Case(kind=TaskKind.LINKS, seed=2, model=models.APPNP, said={"weight_decay": 0.05}),
}
#: Cases that go through every door in `make test`; each other case goes through two, each pair of neighbours in turn.
PLAIN = ("classes", "classes, all weights", "links")


def _pairs():
    for number, case in enumerate(CASES):
        for place, door in enumerate(DOORS):
            if door == "estimator" and CASES[case].kind is TaskKind.RANKING:
                continue  # estimators do not put nodes in order
            here = case in PLAIN or (place - number) % len(DOORS) < 2
            yield pytest.param(case, door, marks=[] if here else pytest.mark.slow, id=f"{case}-{door}")


@pytest.fixture(scope="module")
def expected(folder):
    """The run of a case, put together by hand, once."""
    kept = {}

    def find(name):
        if name not in kept:
            kept[name] = through_fit(CASES[name], folder)
        return kept[name]

    return find


@pytest.mark.parametrize(("name", "door"), list(_pairs()))
def test_the_same_run_gives_the_same_numbers_at_every_door(name, door, expected, folder, tmp_path):
    go, tolerance = DOORS[door]
    go(CASES[name], folder, tmp_path).near(expected(name), tolerance)


def test_pairs_score_the_same_at_every_door(folder, tmp_path):
    """``unspool predict --pairs``, ``links.score_pairs``, ``LinkPredictor``, and a network that a study returns."""
    case, wanted = CASES["links"], [(0, 5), (7, 70), (33, 2)]
    data = case.read(folder)
    _type(["train", case.model.__name__, *case.typed(folder), "--no-report", "--out", tmp_path / "job"])
    (tmp_path / "pairs.csv").write_text("".join(f"p{u},p{v}\n" for u, v in wanted))
    _type(["predict", tmp_path / "job", "--pairs", tmp_path / "pairs.csv", "--out", tmp_path / "scores.csv"])
    with (tmp_path / "scores.csv").open(newline="") as file:
        typed = [float(row["score"]) for row in csv.DictReader(file)]
    place = {name: k for k, name in enumerate(data.names)}
    pairs = np.array([[place[f"p{u}"], place[f"p{v}"]] for u, v in wanted])
    model, _ = train.train_trial(case.trial, case.loader(folder))
    plain = links.score_pairs(model, data.features, data.graph, pairs).score.tolist()
    said = {**dict(case.settings), **case.config, "seed": case.seed, "device": "cpu"}
    made = LinkPredictor(case.model, **said).fit(data.features, graph=data.edge_index)
    found = study.run(
        study.grid(case.model, seed=[case.seed], **dict(case.settings), **case.config), case.loader(folder)
    )
    again = links.score_pairs(found.model(found.rows[0]), data.features, data.graph, pairs).score.tolist()
    assert typed == pytest.approx(plain, rel=1e-6)
    assert made.decision_function(pairs).tolist() == pytest.approx(plain, rel=1e-6)
    assert again == pytest.approx(plain, rel=1e-3, abs=1e-4)


def test_the_cases_differ(expected):
    """What is said is heard: no two cases end alike, in epochs or numbers."""
    assert len({expected(name) for name in CASES}) == len(CASES)
    assert expected("classes, stopped by the score").epochs < 60
    assert expected("classes, the last epoch").epoch == 25


# -- the numbers of another day ----------------------------------------------------------------------------------------


def tool():
    place = importlib.util.spec_from_file_location("door_table", ROOT / "tools" / "door_table.py")
    made = importlib.util.module_from_spec(place)
    place.loader.exec_module(made)
    return made


#: Of CiteSeer's thousand test nodes; libraries of other days and machines round sums in another order.
ONE_NODE = 1.001e-3


def is_wild(row):
    """Sixteen layers of GCNII: a sum that is rounded in another order moves nothing for five epochs, and 3e-4 of a loss after sixteen."""
    return (row["model"], row["data"]) == ("GCNII", "citeseer")


@pytest.mark.slow
def test_numbers_are_those_of_before(tmp_path):
    """Forty-four runs, written by the code of before the settings were declared once."""
    made = tool()
    before = json.loads((ROOT / "tests" / "package" / "doors.json").read_text(encoding="utf-8"))
    now = list(made.table(tmp_path))
    assert len(now) == len(before) == 44
    for wild, most in ((False, 1e-5), (True, 1e-3)):
        some = [[row for row in rows if is_wild(row) is wild] for rows in (before, now)]
        other, far, where = made.differences(*some, {"citeseer": ONE_NODE})
        assert other == []
        assert far < most, where


def test_differences_are_seen():
    made = tool()
    row = {"door": "a", "data": "b", "model": "c", "seed": 0, "epoch": 3, **dict.fromkeys(made.NUMBERS[1:], 2.0)}
    assert made.differences([row], [row]) == ([], 0.0, "none")
    assert made.differences([row], [{**row, "epoch": 4}])[0] == ["a, b, c, 0: epoch 4 instead of 3"]
    assert made.differences([row], [{**row, "seed": 1}])[0] != []
    assert made.differences([row], [{**row, "test_score": 2.001}], {"b": ONE_NODE})[1] == 0.0
    assert made.differences([row], [{**row, "test_score": 2.002}], {"b": ONE_NODE})[1] > 0.0
    assert made.differences([row], [{**row, "valid_loss": 2.001}], {"b": ONE_NODE})[1] > 0.0
    assert made.differences([row], [{**row, "valid_loss": 2.1}])[1:] == (pytest.approx(0.05), "a, b, c, 0: valid_loss")
    for lost in (float("nan"), float("inf")):
        told = ([], float("inf"), "a, b, c, 0: train_loss")
        assert made.differences([row], [{**row, "train_loss": lost, "valid_loss": 2.1}]) == told
        assert made.differences([{**row, "train_loss": lost, "valid_loss": 2.1}], [row]) == told
