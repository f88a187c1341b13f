"""What is chosen: by labelled nodes alone, the same each time, under seeds that no final evaluation has."""

import json
from dataclasses import replace

import pytest
import torch

from unspool import datasets
from unspool.errors import DataError, InputError
from unspool.models import StableGNN, Steps
from unspool.reproduce.lead.ablation import variants
from unspool.reproduce.lead.clock import Clock
from unspool.reproduce.lead.labelled import LabelledLoader
from unspool.reproduce.lead.plan import Plan
from unspool.reproduce.lead.run import LeadRun
from unspool.reproduce.lead.search import read_choices
from unspool.reproduce.lead.search import search as search_all
from unspool.reproduce.lead.space import Space
from unspool.study import Store
from unspool.study import run as run_study
from unspool.train import TrainConfig, Trial

pytestmark = pytest.mark.long

PLANS = {name: Plan.read(name) for name in ("lead", "upper_heterophily")}
SHIPPED = [(plan, entry, name) for plan, held in PLANS.items() for entry in held.entries for name in held.datasets]


def search(space, loader, store=None, **options):
    """One entry alone."""
    (found,) = search_all([space], loader, Store(None) if store is None else store, **options)
    return found


@pytest.mark.parametrize(("plan", "entry", "name"), SHIPPED)
def test_the_spaces_that_ship_draw_the_same_settings_each_time_and_as_many_for_all_entries(plan, entry, name):
    space = Space.of(entry, name, PLANS[plan])
    rounds = space.rounds()
    drawn = [trial for one in rounds for trial in one]
    assert [trial.key("") for trial in drawn] == [
        trial.key("") for trial in Space.of(entry, name, PLANS[plan]).trials()
    ]
    assert len({trial.key("") for trial in drawn}) == len(drawn)
    assert [len(one) for one in rounds] == [space.each] * space.structures
    if entry == "cross-entropy alone":
        assert {str(trial.config.upper) for trial in drawn} == {"CE(Y, pʳ)"}
    elif plan == "upper_heterophily":
        assert all("sharpen" in str(trial.config.upper) and "DropNodes" in str(trial.config.upper) for trial in drawn)
    if entry == "GRAND":
        assert {trial.settings["steps"] for trial in drawn} == {Steps.UNIFORM}
        assert not any("class" in str(trial.config.upper).lower() for trial in drawn)


@pytest.mark.parametrize(("plan", "entry", "name"), SHIPPED)
def test_no_seed_serves_both_the_search_and_the_final_evaluations(plan, entry, name):
    space = Space.of(entry, name, PLANS[plan])
    assert set(space.seeds).isdisjoint(PLANS[plan].final_seeds)
    assert len(PLANS[plan].final_seeds) == 10
    assert len(space.seeds) == space.last


@pytest.mark.parametrize("first", [29, 30, 31])
def test_a_space_whose_seeds_meet_is_refused(space, first):
    space.write_text(space.read_text().replace("search_seed = 100", f"search_seed = {first}"))
    told = f"the search has the seeds {first} to {first + 1}, and some of them are final ones; begin it at 32"
    with pytest.raises(DataError, match=told):
        Plan.read()


@pytest.mark.parametrize("first", [28, 32])
def test_seeds_on_either_side_of_the_final_ones_are_taken(space, first):
    space.write_text(space.read_text().replace("search_seed = 100", f"search_seed = {first}"))
    assert set(Space.of("GRAND", "small").seeds).isdisjoint(Plan.read().final_seeds)


def test_as_many_settings_are_chosen_as_an_entry_averages_the_best_first(space, small):
    space.write_text(space.read_text().replace("stages = [[1, 3]]", "stages = [[1, 4]]"))
    spaces, store = [Space.of(entry, "small") for entry in ("StableGNN", "GRAND")], Store(None)
    for found in search_all(spaces, LabelledLoader(small["data"]), store):
        assert len(found.members) == len(found.valid_scores) == 2
        assert list(found.valid_scores) == sorted(found.valid_scores, reverse=True)
        loader, first = LabelledLoader(small["data"]), 100
        for valid, trial in zip(found.valid_scores, found.made(), strict=True):
            rows = {row.key: row.result for row in store.rows()}
            own = [rows[trial.with_seed(first + k).key(loader.fingerprint)].test_score for k in range(found.seeds)]
            assert valid == pytest.approx(sum(own) / len(own))
    assert (Plan.read().averaged("StableGNN"), Plan.read().averaged("GRAND"), Plan.read().members) == (2, 1, 2)
    assert Plan.read("lead").members >= 1


@pytest.mark.parametrize("cut", [{"rounds": 1}, {"numbers": 2}, {"epochs": 2}, {"seeds": 1}])
def test_a_plan_that_is_cut_is_another_space(space, cut):
    whole, short = Plan.read(), Plan.read(**cut)
    assert whole.digest != short.digest
    assert Plan.read(**cut).digest == short.digest
    small, large = (Space.of("StableGNN", "small", plan) for plan in (short, whole))
    assert (small.structures, small.each, small.epochs, small.last) != (
        large.structures,
        large.each,
        large.epochs,
        large.last,
    )
    with pytest.raises(InputError, match="expected a whole number of at least 1"):
        Plan.read(**dict.fromkeys(cut, 0))


class Watch:
    """A time that moves by a step whenever one looks."""

    def __init__(self, step):
        self.time, self.step = 0.0, step

    def __call__(self):
        self.time += self.step
        return self.time


@pytest.mark.parametrize(("seconds", "rounds", "last"), [pytest.param(1e6, 2, 3, marks=pytest.mark.slow), (1e-3, 1, 1)])
def test_whenever_time_is_up_all_entries_have_had_the_same_number_of_trials(
    space, small, monkeypatch, seconds, rounds, last
):
    monkeypatch.setattr(
        "unspool.reproduce.lead.search.Clock", lambda seconds, shares: Clock(seconds, shares, Watch(1.0))
    )
    spaces, store = [Space.of(entry, "small") for entry in ("StableGNN", "GRAND")], Store(None)
    found = search_all(spaces, LabelledLoader(small["data"]), store, seconds=seconds)
    assert [one.settings for one in found] == [3 * rounds] * 2
    assert [one.trials for one in found] == [3 * rounds + last] * 2
    assert len(store.rows()) <= sum(one.trials for one in found)  # what both have is trained once


class Hand:
    """A time that is set by hand."""

    time = 0.0

    def __call__(self):
        return self.time


def test_a_slow_stage_takes_from_later_ones_alike_and_each_has_one_slice():
    hand = Hand()
    clock = Clock(100.0, [0.5, 0.3, 0.2], now=hand)
    clock.begin()
    assert clock.another()
    hand.time = 20.0
    assert clock.another()  # would end at 40 s, of 50
    hand.time = 60.0
    assert not clock.another()
    clock.begin()  # three fifths of the 40 seconds that are left
    assert clock.end == pytest.approx(84.0)
    assert clock.another()
    hand.time = 70.0
    assert clock.another()
    hand.time = 80.0
    assert not clock.another()
    hand.time = 130.0
    clock.begin()
    assert clock.another()  # time is up, and one slice there is
    hand.time = 131.0
    assert not clock.another()


def test_where_time_is_short_a_later_stage_still_has_its_slice_of_the_best(space, small, monkeypatch):
    space.write_text(space.read_text().replace("stages = [[1, 3]]", "stages = [[1, 6]]"))
    hand = Hand()
    monkeypatch.setattr("unspool.reproduce.lead.search.Clock", lambda seconds, shares: Clock(seconds, shares, hand))
    told = []

    def say(text):
        hand.time += 60.0  # a round takes 60 of 100 seconds
        told.append(text)

    found = search(Space.of("GRAND", "small"), LabelledLoader(small["data"]), seconds=100.0, say=say)
    assert [text.partition(" s,")[0].rpartition(",")[0] for text in told] == [
        "small: 3 settings of each, 1 seeds",
        "small: 1 settings of each, 2 seeds",
    ]
    assert (found.settings, found.trials, found.seeds) == (3, 4, 2)


def test_every_second_structure_is_the_same_for_all_entries_with_the_same_numbers():
    plan = Plan.read("lead", numbers=3)
    for name in plan.datasets:
        ours, grand = (Space.of(entry, name, plan) for entry in ("StableGNN", "GRAND"))
        assert ours.shared == grand.shared
        assert ours.shared["steps"] == ["uniform"]
        pairs = list(zip(ours.rounds(), grand.rounds(), strict=True))
        same = [len({t.key("") for t in a} & {t.key("") for t in b}) for a, b in pairs]
        assert all(many >= ours.each - 1 for many in same[len(ours.known) + len(ours.known) % 2 + 1 :: 2])
        for mine, theirs in pairs[len(ours.known) :]:  # elsewhere they part in what GRAND does not have
            first, second = (
                (one.config.lr, one.config.weight_decay, one.settings["dropout"]) for one in (mine[0], theirs[0])
            )
            assert first == second


def test_shares_of_the_time_that_do_not_fit_the_stages_are_refused(space):
    space.write_text(space.read_text().replace("shares = [0.6, 0.4]", "shares = [1.0]"))
    with pytest.raises(
        DataError, match="small has 2 stages, and there are 1 shares of the time; write one share for each"
    ):
        Plan.read()


def tree(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.json")}


def with_other_labels(data, part):
    """The data with random labels in one part of the split."""
    nodes = getattr(data.split, part)
    labels = data.labels.clone()
    labels[nodes] = (
        labels[nodes] + 1 + torch.randint(0, 2, (len(nodes),), generator=torch.Generator().manual_seed(3))
    ) % 3
    assert not (labels[nodes] == data.labels[nodes]).any()
    return replace(data, labels=labels)


@pytest.mark.parametrize(
    "recorded",
    [pytest.param(False, id="one split"), pytest.param(True, id="a split for every seed", marks=pytest.mark.slow)],
)
def test_tampered_test_labels_change_no_choice(space, small, tmp_path, recorded):
    if recorded:
        small["data"] = with_folds(small["data"])

    def chosen(data, name):
        small["data"] = data
        LeadRun(tmp_path / name, Plan.read(), commit="c0ffee").run(parts=["search"])
        return tree(tmp_path / name / "choices")

    given = small["data"]
    before = chosen(given, "before")
    tampered = with_other_labels(given, "test")
    assert chosen(tampered, "after") == before
    assert sorted(before) == ["small-GRAND.json", "small-StableGNN.json"]
    assert chosen(with_other_labels(given, "valid"), "control") != before  # labels that choose do matter


def with_folds(data):
    """Ten splits, which share their test nodes."""
    split = data.split
    folds = {}
    for k in range(10):
        nodes = [*split.train.tolist(), *split.valid.tolist()]
        moved = [*nodes[k:], *nodes[:k]]
        folds[f"fold-{k}"] = datasets.Split(moved[:15], moved[15:], split.test, 90, name=f"fold-{k}").codes()
    return replace(data, recorded=folds).with_split(lambda d: datasets.splits.recorded(d, "fold-0"))


@pytest.mark.slow
def test_an_interrupted_search_goes_on_and_chooses_the_same(space, small, tmp_path):
    whole = search(Space.of("StableGNN", "small"), LabelledLoader(small["data"]))

    class Stop(Exception):
        pass

    def stop(progress):
        if progress.done >= 3:
            raise Stop

    with Store(tmp_path / "cut.db") as store:
        with pytest.raises(Stop):
            search(Space.of("StableGNN", "small"), LabelledLoader(small["data"]), store, watch=stop)
        kept = {row.key: row.finished_at for row in store.rows() if row.result is not None}
        assert kept
        assert search(Space.of("StableGNN", "small"), LabelledLoader(small["data"]), store) == whole
        assert kept.items() <= {row.key: row.finished_at for row in store.rows()}.items()  # not trained again


def test_a_stage_that_another_process_still_trains_is_not_chosen_from(space, small, monkeypatch):
    def unfinished(trials, loader, **options):
        return run_study(trials, loader, **{**options, "seconds": 1e-6})

    monkeypatch.setattr("unspool.reproduce.lead.search.study.run", unfinished)
    with pytest.raises(DataError, match=r"the search of GRAND on small: 3 of 3 trials are with another process"):
        search(Space.of("GRAND", "small"), LabelledLoader(small["data"]))


@pytest.mark.slow
def test_settings_that_diverge_are_left_out_and_counted(space, small):
    space.write_text(space.read_text().replace("lr = [0.01, 0.05]", "lr = [0.01, 1e30]"))
    found = search(Space.of("StableGNN", "small"), LabelledLoader(small["data"]))
    assert found.settings == 6
    assert 0 < found.left_out < 6
    assert {one["config"]["lr"] for one in found.members} == {0.01}
    space.write_text(space.read_text().replace("lr = [0.01, 1e30]", "lr = [1e30]"))
    with pytest.raises(DataError, match="small: no setting of GRAND ended with finite losses"):
        search(Space.of("GRAND", "small"), LabelledLoader(small["data"]))


def test_choices_of_another_space_do_not_count_and_wrong_files_are_named(space, small, out):
    digest = Plan.read().digest
    LeadRun(out, commit="c0ffee").run(parts=["search"], entries=["GRAND"])
    (kept,) = read_choices(out / "choices", digest)
    assert kept.commit == "c0ffee"
    assert [one.key("") for one in kept.made()] == [
        Trial.from_plain({**one, "seed": 0}).key("") for one in kept.members
    ]
    assert "test" not in json.dumps(json.loads((out / "choices" / "small-GRAND.json").read_text()))
    space.write_text(space.read_text() + "# frozen again\n")
    assert read_choices(out / "choices", Plan.read().digest) == []
    (out / "choices" / "small-GRAND.json").write_text("{")
    with pytest.raises(DataError, match=r"small-GRAND\.json: is not a choice that a search has written"):
        read_choices(out / "choices", digest)


def test_the_parts_that_are_left_out_one_by_one():
    upper = "class_mass + 2*warm_up(100)*consistency(views=2, temperature=0.5, confidence=0.3) under drop_nodes(0.5)"
    trial = Trial(StableGNN, {"steps": Steps.LEARNT, "batch_norm": True}, TrainConfig(upper=upper))
    found = {
        name: (str(one.config.upper), one.settings["steps"], one.settings["batch_norm"])
        for name, one in variants(trial).items()
    }
    assert list(found) == [
        "as chosen",
        "without consistency",
        "without lost nodes",
        "without both",
        "without class masses",
        "with uniform steps",
        "without normalisation",
    ]
    assert "sharpen" not in found["without consistency"][0]
    assert "DropNodes(0.5)" in found["without consistency"][0]
    assert "sharpen" in found["without lost nodes"][0]
    assert "DropNodes" not in found["without lost nodes"][0]
    assert "sharpen" not in found["without both"][0]
    assert "DropNodes" not in found["without both"][0]
    assert found["without class masses"][0] == found["as chosen"][0].replace(
        *("CE(Y, softmax(hʳ − log(π/π₀)))", "CE(Y, pʳ)")
    )
    assert found["with uniform steps"][1] is Steps.UNIFORM
    assert found["without normalisation"][2] is False
    assert len({one.key("") for one in variants(trial).values()}) == 7
    plain = Trial(StableGNN, {"steps": Steps.UNIFORM}, TrainConfig(upper="ce + consistency under drop_nodes(0.5)"))
    assert list(variants(plain)) == ["as chosen", "without consistency", "without lost nodes", "without both"]
