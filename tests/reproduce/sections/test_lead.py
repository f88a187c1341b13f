"""The section of the upper level: what stands beside a score, and that a later space takes the place of an earlier one."""

from dataclasses import replace

import pytest

from unspool.reproduce.lead.finals import ALONE, AVERAGED, WHOLE, Final, append
from unspool.reproduce.report_page import Findings, report_page
from unspool.reproduce.results import example_record, read, write
from unspool.reproduce.sections.lead import lead_blocks
from unspool.reproduce.sections.not_run import NotRun

OURS = Final(
    "2026-11-19",
    "c0ffee",
    "5e1f",
    "cs",
    "per-class 20/30 1a2b",
    "StableGNN",
    WHOLE,
    0,
    3,
    0.9,
    (0.93, 0.94, 0.95),
    ({},),
)
GRAND = replace(OURS, entry="GRAND", scores=(0.92, 0.92, 0.95))


def cells(block):
    return [[one if isinstance(one, str) else one.text for one in row] for row in block.rows]


def test_a_score_stands_beside_its_split_and_the_published_number_beside_its_protocol():
    _, against, *rest = lead_blocks([OURS, GRAND])
    (row,) = cells(against)
    assert row[:4] == ["CS", "94.00 ± 1.00", "93.00 ± 1.73", "+1.00"]
    assert row[5:] == [
        "92.9",
        "GRAND, from memory; DAGNN 92.8; 20 training and 30 validation nodes a class, drawn at random; draws of others are not ours",
        "per-class 20/30 1a2b",
        "1",
        "3",
        "5e1f",
        "c0ffee",
    ]
    assert rest == []


def test_the_parts_that_were_left_out_are_compared_with_the_whole():
    less = replace(OURS, variant="without consistency", scores=(0.92, 0.93, 0.94))
    ablation = lead_blocks([OURS, GRAND, less])[2]
    assert cells(ablation)[0][:6] == ["CS", "StableGNN", "without consistency", "93.00 ± 1.00", WHOLE, "−1.00"]


def test_parts_of_one_network_are_compared_with_that_network_and_it_with_the_average():
    eight = replace(OURS, trials=({},) * 8)
    alone = replace(OURS, variant=ALONE, scores=(0.92, 0.93, 0.94))
    less = replace(OURS, variant="without consistency", scores=(0.90, 0.91, 0.92))
    grand = replace(GRAND, variant=AVERAGED, scores=(0.93, 0.93, 0.96), trials=({},) * 8)
    _, against, ablation = lead_blocks([eight, GRAND, alone, less, grand])
    assert cells(against)[0][8] == "8"
    assert [row[1:6] for row in cells(ablation)] == [
        ["StableGNN", ALONE, "93.00 ± 1.00", WHOLE, "−1.00"],
        ["StableGNN", "without consistency", "91.00 ± 1.00", ALONE, "−2.00"],
        ["GRAND", AVERAGED, "94.00 ± 1.73", WHOLE, "+1.00"],
    ]


def test_a_later_space_takes_the_place_of_an_earlier_one_and_other_sets_have_a_section_of_their_own():
    later = replace(OURS, space="a11e", scores=(0.9, 0.9, 0.9))
    (row,) = cells(lead_blocks([OURS, GRAND, later])[1])
    assert row[1:4] == ["90.00 ± 0.00", "–", "–"]
    assert isinstance(lead_blocks([OURS], "upper_heterophily")[0], NotRun)


@pytest.mark.long
@pytest.mark.parametrize("place", ["results", ""])
def test_the_report_finds_final_evaluations_in_the_folder_of_results_or_beside_it(tmp_path, place, monkeypatch):
    (tmp_path / "results").mkdir()
    write(tmp_path / "results", "table2", [example_record()])
    append(tmp_path / place / "finals.csv", [OURS, GRAND])
    monkeypatch.setattr("unspool.reproduce.report_page.theory.verify", lambda **_: [])
    found = Findings.of(tmp_path / "results", trials=1)
    assert [one.entry for one in found.finals] == ["StableGNN", "GRAND"]
    assert "The upper level: StableGNN and GRAND in one space" in [one.heading for one in report_page(found).sections]
    assert Findings(read(tmp_path / "results")).finals == ()
