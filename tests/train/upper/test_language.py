"""Upper levels as text and as TOML; what cannot be read is told in one sentence."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch

import unspool as us
from unspool import datasets, train
from unspool.errors import IncompatibleError, InputError
from unspool.text import split_list
from unspool.train import CrossEntropy, TrainConfig, Trial
from unspool.train.upper import Consistency, Distil, DropEdges, DropNodes, Entropy, OwnTerm, Upper, WarmUp

TEXTS = [
    "ce", "loss", "ce + consistency(views=2)", "ce + 2*consistency(views=4, temperature=0.5)", "0.5*ce + 0.1*entropy + neighbours(temperature=0.7)",
    "class_mass(strength=0.5) + 2*warm_up(100)*pseudo_labels(confidence=0.8)", "ce under drop_nodes(0.5)",
    "ce + consistency(views=2) under drop_nodes(0.5) and drop_entries(0.2) and drop_edges(0.1)", 'ce + distil(teacher="out/seed0", temperature=2)',
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_text_makes_a_round_trip(text: str) -> None:
    upper = Upper.parse(text)
    if "distil" not in text:
        assert upper == Upper.parse(upper.text())
    assert upper.text() == text
    assert Upper.parse(upper.text()).numbers == upper.numbers
    assert "," not in TrainConfig.schema["upper"].shown(upper)  # which separates the values of a study
    assert Upper.parse(TrainConfig.schema["upper"].shown(upper)).text() == text


def test_names_of_folders_make_a_round_trip() -> None:
    """Whatever a name is made of: separators, words of the language, escapes, brackets, quotes of one kind, letters of any script."""
    draw, kind = random.Random(0), TrainConfig.schema["upper"]
    parts = [
        *",;\\/ '\"=+*()#",
        " under ",
        " and ",
        "\\n",
        "\\x41",
        "\n",
        ".toml",
        "{0}",
        "ce",
        "ü",
        "𝒳",
        "\udc80",
        "a",
    ]
    for _ in range(500):
        name = "".join(draw.choices(parts, k=draw.randrange(1, 8)))
        if {"'", '"'} <= set(name):
            with pytest.raises(InputError, match="both kinds of quotes"):
                Distil(name)
            continue
        upper = (CrossEntropy() + 2 * Distil(name, 0.5)).under(DropNodes(0.3), DropEdges())
        for text in (upper.text(), kind.shown(upper)):
            again = Upper.parse(text)
            assert again.text() == upper.text()
            assert isinstance(term := again.parts[1].term, Distil)
            assert (term.teacher, term.temperature) == (name, 0.5)
        one, other = split_list(f"{kind.shown(upper)}, ce")
        assert (Upper.parse(one).text(), other) == (upper.text(), "ce")


def test_text_and_objects_are_the_same() -> None:
    made = (CrossEntropy() + 2 * WarmUp(50) * Consistency(views=4, temperature=0.5) + Entropy() * 0.1).under(
        DropNodes(0.5), DropEdges()
    )
    typed = "CE + 2*warm_up(50) * consistency(4, 0.5) + 0.1*entropy() under Drop_Nodes(rate=0.5) and drop_edges"
    assert Upper.parse(typed) == made
    assert (2 * (CrossEntropy() + Entropy())).text() == "2*ce + 2*entropy"
    assert (made + Entropy()).perturbations == made.perturbations


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ce +", "expected a sum such as"),
        ("ce - entropy", r"terms are added with \+ and weighed with \*"),
        ("ce/2", r"write 0\.5\*ce for ce/2"),
        (
            "ce + consistency(temperature=None)",
            "None stands in brackets, where numbers stand, .*; leave out what is not set",
        ),
        ("ce + own(calm)", "own is not one of ce, loss"),
        (
            "warm_up(100)*(ce + warm_up(10)*consistency)",
            r"warm_up\(100\) stands before warm_up\(10\), and a weight grows once",
        ),
        ("warm_up(100)*warm_up(3)*entropy", "and a weight grows once"),
        ("ce + consistency(views=2, views=3)", "consistency is given views twice"),
        ("ce + consistency(4, views=3)", "consistency is given views twice"),
        ("__import__('os')", "__import__ is not one of ce, loss"),
        ("ce + open('x').read()", "expected a sum such as"),
        ("ce + [1]", "expected a sum such as"),
        ("2", "expected a sum such as"),
        ("ce * entropy", "expected a finite number of at least 0"),
        ("ce + consistensy", "consistensy is not one of ce, loss, .*: did you mean consistency"),
        (
            "ce + consistency(vies=2)",
            r"consistency\(vies\): consistency takes views, temperature, confidence",
        ),
        ("ce + entropy(3)", r"entropy\(3\): entropy takes nothing in brackets"),
        ("ce + distil", "distil needs teacher"),
        ("ce + consistency(views=2.5)", "views=2.5: expected a whole number from 1 to 100"),
        ("ce under drop_rows(0.5)", "drop_rows is not one of drop_nodes, drop_entries, drop_edges: did you mean drop_"),
        ("ce under drop_nodes(1)", r"rate=1: expected a number in \[0, 1\)"),
        ("-1*ce", "expected a finite number of at least 0"),
        ("missing.toml", "missing.toml cannot be read"),
        ("(" * 300 + "ce" + ")" * 300, "expected a sum such as"),
    ],
)
def test_what_cannot_be_read_is_told(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        TrainConfig.schema["upper"].parse(text)


def test_a_toml_file_says_the_same(tmp_path: Path) -> None:
    file = tmp_path / "upper.toml"
    file.write_text(
        '[[term]]\nname = "ce"\n[[term]]\nname = "consistency"\nweight = 2\nwarm_up = 100\nviews = 4\ntemperature = 0.5\n'
        '[[under]]\nname = "drop_nodes"\nrate = 0.5\n'
    )
    assert (
        Upper.parse(str(file)).text()
        == "ce + 2*warm_up(100)*consistency(views=4, temperature=0.5) under drop_nodes(0.5)"
    )
    for text, words in (
        ("x = ", "is not a TOML file"),
        ("views = 3", "views is not known in upper.toml"),
        ("", r"has no \[\[term\]\]"),
        ("[[term]]\nweight = 2", r'a table has no name; write name = "\.\.\." in it, one of ce, loss'),
        ('[[term]]\nname = "ce"\n[[under]]\nrate = 0.5', "a table has no name; .*, one of drop_nodes, drop_entries"),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=words):
            Upper.parse(str(file))


def test_a_trial_is_known_by_its_upper_level() -> None:
    def key(upper: object) -> str:
        return Trial(us.models.GCN, config=TrainConfig(upper=upper)).key("x")

    def one(outputs: torch.Tensor, labels: torch.Tensor, graph: us.Graph) -> torch.Tensor:
        return outputs.mean()

    def other(outputs: torch.Tensor, labels: torch.Tensor, graph: us.Graph) -> torch.Tensor:
        return outputs.square().mean()

    teachers = [torch.full((4, 2), 0.5), torch.full((4, 2), 0.25)]
    keys = [
        key(None), key("ce"), key("ce + entropy"), key("ce + 2*entropy"), key("ce under drop_nodes(0.5)"), key("ce under drop_nodes(0.4)"),
        *(key(CrossEntropy() + OwnTerm(f, symbol="f")) for f in (one, other)), *(key(Distil(t)) for t in teachers),
    ]  # fmt: skip
    assert len(set(keys)) == len(keys)
    assert keys[0] == Trial(us.models.GCN).key("x")
    assert key(CrossEntropy() + 2.0 * Entropy()) == keys[3]


def test_files_bring_back_what_text_says_and_refuse_the_rest() -> None:
    trial = Trial(us.models.GCN, config=TrainConfig(upper="ce + 2*consistency(views=4) under drop_nodes(0.5)"))
    assert Trial.from_plain(trial.to_plain()).config == trial.config
    own = Trial(
        us.models.GCN, config=TrainConfig(upper=CrossEntropy() + OwnTerm(lambda o, y, g: o.mean(), symbol="mine"))
    )
    assert own.to_plain()["config"]["upper"] == "ce + own(mine)"
    with pytest.raises(IncompatibleError, match="cannot be built again from a file"):
        Trial.from_plain(own.to_plain())


def test_a_folder_is_a_teacher(tmp_path: Path) -> None:
    data = datasets.contextual_sbm(nodes=60, classes=3, seed=0)
    loader = train.TrialLoader(data)
    teacher = train.train_trial(Trial(us.models.GCN, {"hidden": 8}, TrainConfig(epochs=20)), loader)[0]
    us.models.save_pretrained(teacher, tmp_path / "teacher")  # type: ignore[arg-type]
    task = loader.task()
    prepared = Distil(str(tmp_path / "teacher")).prepare(task)
    with torch.no_grad():
        assert torch.allclose(prepared.teacher, teacher(task.x, task.graph).softmax(-1), atol=1e-6)
    text = f'distil(teacher="{tmp_path / "teacher"}")'
    run = train.train_trial(Trial(us.models.SGC, {}, TrainConfig(epochs=3, upper=text)), loader)[1]
    assert run.history[0].train_loss > 0
    with pytest.raises(InputError, match="probabilities of 60 nodes"):
        Distil(torch.ones(5, 3)).prepare(task)
    with pytest.raises(InputError, match="those of node 7 are zeros"):
        Distil((torch.arange(60) != 7).float()[:, None].expand(60, 3)).prepare(task)

    (tmp_path / "out" / "seed0").parent.mkdir()
    (tmp_path / "teacher").rename(tmp_path / "out" / "seed0")  # the only seed of a run stands for it
    assert (
        Upper.parse(f'distil(teacher="{tmp_path / "out"}")').objects
        == Upper.parse(f'distil(teacher="{tmp_path / "out" / "seed0"}")').objects
    )
    with pytest.raises(FileNotFoundError, match="there is no model"):
        train.train_trial(Trial(us.models.SGC, {}, TrainConfig(epochs=1, upper='ce + distil(teacher="nope")')), loader)
    with pytest.raises(InputError, match=r"model\.json is missing there"):
        hash(Upper.parse(f'distil(teacher="{tmp_path}")').objects)


@pytest.mark.parametrize("shape", [(60, 1), (60, 2), (60, 3, 1)])
def test_a_teacher_knows_the_classes_that_are_learnt(shape: tuple[int, ...]) -> None:
    """A column would be stretched over all classes."""
    data = datasets.contextual_sbm(nodes=60, classes=3, seed=0)
    upper = CrossEntropy() + Distil(torch.ones(shape))
    with pytest.raises(InputError, match=r"probabilities of shape \(60, 3\)"):
        train.train_trial(Trial(us.models.SGC, {}, TrainConfig(epochs=1, upper=upper)), data)


def test_trials_of_two_teachers_do_not_share_a_stack(tmp_path: Path) -> None:
    texts: list[str] = []
    for seed in range(2):
        with train.seeded(seed):
            us.models.save_pretrained(us.models.SGC(4, 2), tmp_path / str(seed))
        texts.append(f'ce + distil(teacher="{tmp_path / str(seed)}")')
    one, other = (Upper.parse(text).shape for text in texts)
    assert one != other
    assert one == Upper.parse(texts[0]).shape


def test_a_sum_that_weighs_nothing_is_refused() -> None:
    data = datasets.contextual_sbm(nodes=60, classes=3, seed=0)
    with pytest.raises(IncompatibleError, match="every term of 0\\*ce has the weight 0"):
        train.train_trial(Trial(us.models.SGC, {}, TrainConfig(epochs=1, upper="0*ce")), data)


def test_a_weight_grows_once() -> None:
    with pytest.raises(IncompatibleError, match=r"warm_up\(7\) stands before warm_up\(5\)"):
        Consistency() * WarmUp(5) * WarmUp(7)  # pyright: ignore[reportUnusedExpression]
    with pytest.raises(IncompatibleError, match="a weight grows once"):
        WarmUp(5) * WarmUp(7)  # pyright: ignore[reportUnusedExpression]
    assert (WarmUp(0) * (WarmUp(5) * Entropy())).text() == "warm_up(5)*entropy"


@pytest.mark.parametrize("views", [2.5, 0, -1, True, 300, "2", None])
def test_views_are_whole_numbers(views: Any) -> None:
    for make in (lambda: OwnTerm(len, views=views), lambda: Consistency(views)):  # type: ignore[arg-type]
        with pytest.raises(InputError, match="expected a whole number from 1 to 100"):
            make()


def test_a_term_of_ones_own_that_cannot_be_learnt_from_is_named() -> None:
    data = datasets.contextual_sbm(nodes=60, classes=3, seed=0)

    def flat(outputs: torch.Tensor, labels: torch.Tensor, graph: us.Graph) -> torch.Tensor:
        return torch.tensor(1.0)

    def torn(outputs: torch.Tensor, labels: torch.Tensor, graph: us.Graph) -> torch.Tensor:
        return outputs.mean() * torch.nan

    def fit(upper: Any) -> None:
        train.train_trial(Trial(us.models.SGC, {}, TrainConfig(epochs=2, upper=upper)), data)

    with pytest.raises(IncompatibleError, match=r"nothing in own\(flat\) depends on what the network says"):
        fit(OwnTerm(flat))
    fit(CrossEntropy() + OwnTerm(flat))
    with pytest.raises(
        train.Diverged, match=r"the term own\(torn\) is not finite in epoch 1, and what the network says is"
    ):
        fit(CrossEntropy() + OwnTerm(torn))
