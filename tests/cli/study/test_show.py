"""unspool study show: everything about one trial, and the command that hands over its network."""

from cli.people import ask, refuse
from cli.study.small import lines, rows


def test_everything_about_one_trial(file):
    row = rows(file)[4]
    (told,) = lines("show", file, "5")
    assert (told["key"], told["number"], told["trial"]) == (row.key, 5, row.trial)
    assert told["data"]["source"] == {"dataset": "contextual_sbm"}
    assert told["result"] == {**vars(row.result), "ending": row.result.ending.name.lower()}
    text = ask("study", "show", file, "5")
    for name, value in {**row.trial["settings"], **row.trial["config"]}.items():
        assert [*name.split(), *str(value).split()] in [line.split() for line in text.splitlines()], name
    assert f"unspool study model {file} 5 --out out/trial5" in text


def test_a_trial_is_found_by_its_number_or_by_its_key(file):
    row = rows(file)[2]
    for wanted in ("3", row.key, row.key[:8], row.key[:8].upper()):
        assert lines("show", file, wanted)[0]["number"] == 3
    assert "has no trial" in refuse("study", "show", file, row.key[:3])  # too short a beginning
