"""The page of a study: chosen by validation, tested on test data, and honest about what chance explains."""

import math
from dataclasses import replace

import pytest

import unspool as us
from report.reading import read as parse
from unspool.report import Shown, Table
from unspool.study.report.advice import Diverged, Edge, End, Failed, Idle, MoreSeeds, Tied, Unfinished, edges
from unspool.study.report.findings import Findings
from unspool.study.report.page import report_page, write_report
from unspool.study.results.trial_table import TrialTable, example_table
from unspool.study.store import Status
from unspool.train import DataRecord, Ending

EVIL = "<img src=x onerror=alert(1)>"


def changed(table, change):
    return TrialTable.of([change(row) for row in table.rows])


def kinds(found):
    return [type(one) for one in found.advice()]


def scored(row, valid, test):
    return replace(row, result=replace(row.result, valid_score=valid, test_score=test))


def test_test_scores_play_no_part_in_the_choice():
    table = example_table(seeds=6)
    turned = changed(table, lambda row: scored(row, row.result.valid_score, 1 - row.result.test_score))
    plain, other = (Findings.of(one) for one in (table, turned))
    assert [best.settings for best in plain.leaders] == [best.settings for best in other.leaders]
    assert plain.lead_is_real is True
    assert other.lead_is_real is False
    assert other.lead.difference < 0
    assert "the runner-up is better" in report_page(turned).markdown()


def test_a_lead_that_seeds_explain_is_not_called_real():
    noise = [0.02, -0.03, 0.01, -0.015, 0.025, -0.01]
    table = changed(
        example_table(seeds=6),
        lambda row: scored(row, row.result.valid_score, 0.8 + noise[(row.trial["seed"] + row.number) % 6]),
    )
    found = Findings.of(table)
    assert found.lead_is_real is False
    assert Tied in kinds(found)
    assert "not more than chance" in report_page(table).markdown()


def test_the_lead_is_that_over_the_runner_up():
    found = Findings.of(example_table(seeds=6))
    assert found.lead.b is found.leaders[1] is found.runner_up
    assert found.lead.p_value == us.study.compare(found.table, found.best, found.runner_up).p_value
    assert [one.b for one in found.rivals] == list(found.leaders[1:])
    assert all(one.corrected >= one.p_value for one in found.rivals)


def test_one_seed_or_one_setting_is_said_and_not_tested():
    lonely = example_table(seeds=1)
    found = Findings.of(lonely)
    assert (found.lead, found.lead_is_real) == (None, None)
    assert kinds(found)[0] is MoreSeeds
    assert "cannot be tested with so few seeds" in report_page(lonely).markdown()
    single = example_table(seeds=3).filter(model="GCN", dropout=0.5)
    assert "one setting alone" in report_page(single).markdown()
    assert Findings.of(single).importance is None


def test_a_best_value_at_the_end_is_followed_beyond_it():
    table = example_table(seeds=5).filter(model="GCN", dropout=[0.5, 0.8])
    (edge,) = edges(table.best(), table.groups())
    assert edge == Edge("dropout", 0.5, End.LOWEST, (0.2,))
    upper = example_table(seeds=5).filter(model="GCN", dropout=[0.2, 0.5])
    assert edges(upper.best(), upper.groups()) == [Edge("dropout", 0.5, End.HIGHEST, (0.8,))]  # 1.1 is not a rate
    inside = example_table(seeds=5).filter(model="GCN")
    assert edges(inside.best(), inside.groups()) == []
    assert edges(upper.best(), upper.groups(), idle=("dropout",)) == []


@pytest.mark.parametrize(
    ("values", "best", "beyond"), [((0.001, 0.01), 0.01, (0.02, 0.04)), ((0.001, 0.01), 0.001, (0.0005, 0.00025))]
)
def test_rates_go_on_by_factors(values, best, beyond):
    def rated(row):
        lr = values[row.number % 2]
        trial = {**row.trial, "config": {**row.trial["config"], "lr": lr}}
        return scored(replace(row, trial=trial), 0.9 if lr == best else 0.8, 0.8)

    table = changed(example_table(seeds=4).filter(model="GCN", dropout=0.5), rated)
    table = TrialTable.of(
        [replace(row, key=f"k{k}", trial={**row.trial, "seed": k // 2}) for k, row in enumerate(table.rows)]
    )
    assert [edge.beyond for edge in edges(table.best(), table.groups())] == [beyond]


def test_failures_and_what_waits_are_named():
    def broken(row):
        if row.number == 0:
            return replace(row, status=Status.FAILED, result=None, message=f"out of memory {EVIL}")
        if row.number == 1:
            return replace(row, status=Status.WAITING, result=None)
        if row.number == 2:
            bad = replace(row.result, valid_score=math.nan, test_score=math.nan, ending=Ending.DIVERGED)
            trial = {**row.trial, "config": {**row.trial["config"], "lr": 5.0}}
            return replace(row, result=bad, trial=trial)
        return row

    table = changed(example_table(seeds=6), broken)
    found = Findings.of(table)
    assert (len(found.failed), len(found.diverged), found.waiting) == (1, 1, 1)
    assert kinds(found)[:3] == [Unfinished, Failed, Diverged]
    assert found.advice()[2].lr == 5.0
    page = report_page(table)
    section = next(one for one in page.sections if one.heading.startswith("Trials that failed"))
    assert section.gist == "1 failed, 1 diverged"
    assert "out of memory" in page.markdown()
    assert "<img" not in page.html()


def test_settings_that_do_nothing_are_named_as_such():
    def flat(row):
        luck = ((7 * row.number) % 11 - 5) / 1000
        return scored(row, 0.8 + luck, 0.8)

    found = Findings.of(changed(example_table(seeds=6), flat))
    assert set(found.importance.noise) == {"model", "dropout"}
    assert Idle in kinds(found)


def test_the_page_is_whole_and_folded_but_for_the_summary():
    page = report_page(example_table(seeds=6))
    assert {one.shown for one in page.sections} == {Shown.FOLDED}
    tree = parse(page.html())
    assert [e.text() for e in tree.all("h2")] == [one.heading for one in page.sections]
    for picture in (e for e in tree.all("svg") if e.attributes.get("role") == "img"):
        assert picture.attributes["aria-label"].endswith(".")
    ids = [e.attributes["id"] for e in tree.all("*") if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    tables = [block for block in page.blocks() if isinstance(block, Table)]
    assert any(table.caption == "The best settings of each model" for table in tables)


def test_several_sets_have_parts_of_their_own():
    first = example_table(seeds=3)
    other = [replace(row, key=f"b{row.key}", number=100 + row.number, data=DataRecord(EVIL, "f")) for row in first.rows]
    page = report_page(TrialTable.of([*first.rows, *other]))
    headings = [one.heading for one in page.sections]
    assert headings[0] == "cora: best settings"
    assert f"{EVIL}: best settings" in headings
    assert "<img" not in page.html()


def test_files_and_places(tmp_path):
    out = write_report(example_table(), tmp_path / "page.html", markdown=tmp_path / "page.md", file="out/study.db")
    assert "unspool study model out/study.db" in out.read_text(encoding="utf-8")
    assert (tmp_path / "page.md").read_text(encoding="utf-8").startswith("# Study on cora")
    with pytest.raises(us.InputError) as refused:
        write_report(example_table(), tmp_path / "page.pdf")
    assert refused.value.argument == "out"
    with pytest.raises(us.IncompatibleError):
        report_page(TrialTable.of([]))
