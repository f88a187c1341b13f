"""Final evaluations: made once, kept whole, refused where they cannot be right."""

from dataclasses import replace
from pathlib import Path

import pytest

import unspool
import unspool as us
from unspool.errors import DataError
from unspool.reproduce.lead.finals import ALONE, AVERAGED, WHOLE, Final, append, evaluate, read
from unspool.reproduce.lead.plan import Plan
from unspool.reproduce.lead.run import LeadRun, commit_of
from unspool.reproduce.lead.search import Choice
from unspool.reproduce.lead.table import current, lines, pairs
from unspool.train import TrainConfig, Trial, TrialLoader, train_trial

ONE = Final(
    "2026-11-19",
    "abc",
    "s1",
    "cora",
    "public 1234",
    "StableGNN",
    WHOLE,
    0,
    3,
    0.8,
    (0.8, 0.81, 0.82),
    ({"model": "GCN"},),
)


@pytest.mark.long
def test_search_finals_and_ablation_run_in_order_and_only_once(space, small, out, monkeypatch):
    told: list[str] = []
    LeadRun(out, commit="c0ffee", say=told.append).run()
    rows = read(out / "finals.csv")
    assert {(row.entry, row.variant) for row in rows} >= {
        ("StableGNN", WHOLE), ("GRAND", WHOLE), ("StableGNN", "without consistency"), ("StableGNN", "without both"),
    }  # fmt: skip
    assert {(row.entry, row.variant, len(row.trials)) for row in rows} >= {
        ("StableGNN", WHOLE, 2), ("StableGNN", ALONE, 1), ("GRAND", WHOLE, 1), ("GRAND", AVERAGED, 2), ("StableGNN", "without both", 1),
    }  # fmt: skip
    assert {row.entry for row in rows if row.variant.startswith("with")} == {"StableGNN"}
    assert {row.first_seed for row in rows} == {30}
    assert {(row.commit, row.seeds, row.split.split()[0]) for row in rows} == {("c0ffee", 2, "fixed")}
    assert any("small, GRAND, as chosen" in line for line in told)
    before = (out / "finals.csv").read_bytes()
    monkeypatch.setattr("unspool.reproduce.lead.run.evaluate", lambda *_: pytest.fail("evaluated twice"))
    monkeypatch.setattr("unspool.reproduce.lead.run.search", lambda *_: pytest.fail("searched twice"))
    LeadRun(out, commit="another").run()
    assert (out / "finals.csv").read_bytes() == before


def test_a_final_score_is_that_of_the_mean_of_what_networks_trained_one_by_one_say(small, tmp_path):
    loader = TrialLoader(small["data"])
    members = [
        Trial(us.models.StableGNN, {"hidden": 8, "depth": depth}, TrainConfig(epochs=20, lr=0.05))
        for depth in (1, 2, 4)
    ]
    choice = Choice("StableGNN", "small", "s1", (), (0.9, 0.8, 0.7), 3, 3, 0, 1)
    rows = evaluate(choice, {WHOLE: members, ALONE: members[:1]}, loader, "c0ffee", range(40, 43), tmp_path)
    for row, many in zip(rows, (3, 1), strict=True):
        assert (row.first_seed, row.seeds, len(row.trials)) == (40, 3, many)
        for seed, score in zip(range(40, 43), row.scores, strict=True):
            task = loader.task(seed)
            said = [train_trial(one.with_seed(seed), loader)[0].eval()(task.x, task.graph) for one in members[:many]]
            mean = sum(output.softmax(-1) for output in said)
            right = (mean[task.test].argmax(-1) == task.target[task.test]).double().mean()
            assert score == pytest.approx(float(right), abs=1e-9)
    assert rows[0].valid_score == pytest.approx(0.8)
    assert rows[1].valid_score == 0.9
    assert len(list(tmp_path.iterdir())) == 9  # what two variants share is trained once


def test_finals_without_a_choice_are_refused(space, small, out):
    with pytest.raises(DataError, match="no choice for StableGNN on small under this space; run the part search first"):
        LeadRun(out, commit="c0ffee").run(parts=["finals"])


@pytest.mark.long
def test_what_time_did_not_suffice_for_is_evaluated_by_the_next_call(space, small, out):
    told: list[str] = []
    job = LeadRun(out, commit="c0ffee", final_seconds=1e-9, say=told.append)
    job.run()
    assert "no time was left" in told[-1]
    assert len(read(out / "finals.csv")) < 2
    replace(job, final_seconds=None).run()
    rows = read(out / "finals.csv")
    assert len({row.place for row in rows}) == len(rows) >= 5


@pytest.mark.long
def test_a_final_trial_that_fails_is_not_written(space, small, out, monkeypatch):
    job = LeadRun(out, commit="c0ffee")
    job.run(parts=["search"], entries=["GRAND"])

    def broken(*_, **__):
        raise RuntimeError("out of memory")

    with monkeypatch.context() as here:
        here.setattr("unspool.models.StableGNN.build", broken)
        with pytest.raises(
            DataError,
            match=r"GRAND on small: a final trial has no score: StableGNN.* has no prediction: .*out of memory",
        ):
            job.run(parts=["finals"], entries=["GRAND"])
    assert not (out / "finals.csv").exists()
    job.run(parts=["finals"], entries=["GRAND"])  # what failed once is tried again
    assert [row.variant for row in read(out / "finals.csv")] == [WHOLE, AVERAGED]


def test_the_first_evaluation_counts(tmp_path):
    file = tmp_path / "finals.csv"
    assert append(file, [ONE]) == [ONE]
    assert append(file, [replace(ONE, scores=(0.9, 0.9, 0.9), commit="later")]) == []
    other = replace(ONE, space="s2", scores=(0.7, 0.7, 0.7))
    assert append(file, [other]) == [other]
    assert read(file) == [ONE, other]


@pytest.mark.parametrize(
    "torn",
    [
        lambda text: text[:40],
        lambda text: "",
        lambda text: text[:-30],
        lambda text: text[: text.rindex(",") - 20],
        lambda text: text.replace("[0.8, 0.81, 0.82]", "[0.8, 0.81]"),
        lambda text: text.replace("[0.8, 0.81, 0.82]", "[0.8, NaN, 0.82]"),
        lambda text: text.replace("0.81", "high"),
        lambda text: text.replace("variant,", ""),
        lambda text: text + "\x00",
        lambda text: text + "2026\n",
    ],
)
def test_a_torn_file_is_refused_and_stays(tmp_path, torn):
    file = tmp_path / "finals.csv"
    append(file, [ONE])
    text = torn(file.read_text(encoding="utf-8"))
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"finals\.csv line \d: is not a final evaluation as it was written"):
        append(file, [replace(ONE, dataset="citeseer")])
    assert file.read_text(encoding="utf-8") == text


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "finals.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="is not a final evaluation"):
        read(tmp_path / "finals.csv")


def test_pairs_are_of_one_space_and_one_split():
    grand = replace(ONE, entry="GRAND", scores=(0.79, 0.79, 0.8))
    (pair,) = pairs([ONE, grand], ("StableGNN", WHOLE), ("GRAND", WHOLE))
    assert pair.gap == pytest.approx(100 * (0.01 + 0.02 + 0.02) / 3)
    newer = replace(ONE, space="s2")
    assert current([ONE, grand, newer]) == [newer]
    assert pairs([ONE, grand, newer], ("StableGNN", WHOLE), ("GRAND", WHOLE)) == []  # GRAND was not run there
    with pytest.raises(
        DataError, match="cora: StableGNN was evaluated on public 1234 from seed 0 and GRAND on public 9"
    ):
        pairs([ONE, replace(grand, split="public 9")], ("StableGNN", WHOLE), ("GRAND", WHOLE))
    with pytest.raises(DataError, match="and GRAND on public 1234 from seed 10, which are no pairs"):
        pairs([ONE, replace(grand, first_seed=10)], ("StableGNN", WHOLE), ("GRAND", WHOLE))
    assert len(lines([ONE, grand], Plan.read())) == 2
    assert lines([replace(ONE, dataset="elsewhere")], Plan.read()) == ["nothing has been evaluated yet"]


def test_the_commit_is_that_of_the_project_alone(tmp_path):
    with pytest.raises(DataError, match=r"this is no git repository of the project; say it with commit="):
        commit_of(tmp_path)
    assert commit_of(Path(unspool.__file__).parent).removesuffix("-dirty").isalnum()
