"""The page of a reproduction tells what the files of results hold, in words, in order, and in one file."""

import re
import shutil
import statistics
from itertools import pairwise
from pathlib import Path

import pytest

from report.jobs import edit, make_job
from report.reading import read as parse
from report.reading import rows
from unspool import datasets, theory
from unspool.models.pretrained import save_pretrained
from unspool.report import Shown
from unspool.reproduce import report_page as pages
from unspool.reproduce.records import example_record
from unspool.reproduce.report_page import SECTIONS, Findings, report_page, sections_of, tables, write_report
from unspool.reproduce.results import read, write
from unspool.reproduce.sections.networks import HOW, trained_networks

pytestmark = pytest.mark.long


EXAMPLE = Path(__file__).parent / "example_results"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def findings():
    certificates = [claim.certify(trials=1) for claim in theory.CLAIMS if "Proposition" in claim.name]
    return Findings(read(EXAMPLE), certificates, datasets.table3(root="/nowhere", cache="/nowhere"), (), 1)


@pytest.fixture(scope="module")
def made(findings):
    return report_page(findings)


@pytest.fixture(scope="module")
def tree(made):
    return parse(made.html())


def test_the_file_is_whole_small_and_alone(made, tree):
    text = made.html()
    assert len(text.encode()) < 5_000_000
    assert not re.search(r'(src|href)="(?!#)|url\((?!#)|@import|<link|<img|<iframe', text)
    assert "default-src 'none'" in next(m.attributes["content"] for m in tree.all("meta") if "content" in m.attributes)


def test_headings_are_in_order_and_links_lead_somewhere(tree):
    levels = [int(e.tag[1]) for e in tree.all("*") if re.fullmatch(r"h\d", e.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    ids = [e.attributes["id"] for e in tree.all("*") if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    links = [e.attributes["href"] for e in tree.all("a")]
    assert links[0] == "#start"
    assert {link[1:] for link in links} <= set(ids)


def test_every_cell_of_table_2_is_its_trials(made, findings):
    grid = next(t for t in tables(made) if t.caption == "Table 2, preset paper")
    names = [c if isinstance(c, str) else c.name for c in grid.columns]
    checked = 0
    for row in grid.rows:
        for name, cell in list(zip(names, row, strict=True))[1:]:
            trials = [
                t
                for t in findings.results.of("table2")
                if (t.model, t.preset, t.dataset) == (row[0], "paper", name.lower())
            ]
            if trials:
                values = [100 * t.result.test_score for t in trials]
                first, *rest = cell.text.split("\n")
                assert first == f"{statistics.fmean(values):.2f} ± {statistics.stdev(values):.2f}"
                checked += 1
                if rest:
                    paper, gap = (
                        float(rest[0].split()[1]),
                        float(rest[1].split()[0].translate(str.maketrans("−±", "-+"))),
                    )
                    assert round(float(first.split()[0]) - paper, 2) == pytest.approx(gap, abs=1e-9)
    assert checked >= 4


def test_colours_say_what_words_say(tree):
    found = [
        (c.attributes["class"].split()[-1], c.text())
        for c in tree.all("td")
        if "std" in c.text() or "below" in c.text()
    ]
    words = {"near": "within 1 std", "worse": "below", "better": "above"}
    shown = [(tone, text) for tone, text in found if tone in words]
    assert shown
    assert all(words[tone] in text for tone, text in shown if "paper" in text)


def test_pictures_have_letters_and_a_sentence(tree):
    pictures = [e for e in tree.all("svg") if e.attributes.get("role") == "img"]
    assert pictures
    for picture in pictures:
        assert picture.attributes["aria-label"].endswith(".")
        assert len(list(picture.all("text"))) >= 4


def test_what_was_not_run_is_said_with_the_command(tmp_path):
    write(tmp_path, "table2", [example_record(seed) for seed in range(3)])
    text = report_page(Findings(read(tmp_path))).markdown()
    for name in ("depth", "robust", "attacked", "nonlinearity", "identity", "heterophily", "grid"):
        assert f"unspool reproduce {name}" in text
    assert "1 of the 56 cells of Table 2" in text
    assert "ArXiv's 8 need features that are not at hand; 47 were not run" in text.replace("\\", "")
    assert "no machine.json" in text.replace("\\", "")
    assert HOW.split(".")[0] in text


def test_short_runs_are_not_passed_off_as_the_experiment(tmp_path):
    for preset in ("paper", "tuned"):
        cut = [example_record(seed, preset=preset, epochs=50, settings={"epochs": 50}) for seed in range(3)]
        write(tmp_path, "table2", cut)
        assert "cut at 50 of 1000 epochs" in report_page(Findings(read(tmp_path))).markdown()
    assert "cut at" not in report_page(Findings(read(EXAMPLE))).markdown()


def test_errata_are_those_of_the_docs(made):
    printed = re.findall(r"^## (\d+)\. ", (ROOT / "docs/errata.md").read_text(encoding="utf-8"), re.M)
    table = next(t for t in tables(made) if t.caption.startswith("Errata of the paper"))
    assert [row[0].text for row in table.rows] == printed
    assert {claim.erratum for claim in theory.CLAIMS} - {None} == {int(number) for number in printed}


def test_the_same_tables_as_markdown_and_latex(findings, tmp_path, monkeypatch):
    monkeypatch.setattr(pages.Findings, "of", staticmethod(lambda folder, trials, watch: findings))
    files = [tmp_path / name for name in ("a.html", "a.md", "a.tex")]
    write_report(EXAMPLE, files[0], markdown=files[1], latex=files[2])
    html, markdown, latex = (file.read_text(encoding="utf-8") for file in files)
    many = len(list(parse(html).all("table")))
    assert many == len(list(tables(report_page(findings))))
    assert latex.count(r"\begin{table}") == latex.count(r"\end{tabular}") == many
    bare = re.sub(r"\\[{}\\]", "", latex)
    assert bare.count("{") == bare.count("}")
    body = "\n".join(line for line in latex.splitlines() if not line.startswith("%"))
    assert not re.search(r"(?<!\\)[%#_]", body)
    for caption in ("Table 2, preset paper", "Errata of the paper"):
        assert caption in markdown
        assert caption in latex
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len(lines) == sum(len(t.rows) + len(t.foot) + 2 for t in tables(report_page(findings)))


def test_trained_models_add_responses_and_objectives(findings, tmp_path):
    import unspool as us

    make_job(tmp_path / "models" / "toy", seeds=2)
    data = datasets.load("citeseer")
    for kind in (us.models.APPNP, us.models.UGDGNN, us.models.PPNP):
        place = tmp_path / "models" / kind.__name__ / "seed0"
        save_pretrained(kind(3703, 6, hidden=4), place, data={"name": "CiteSeer", "hash": data.hash})
    found = trained_networks(tmp_path)
    assert [(t.dataset, t.model) for t in found] == [
        ("citeseer", "APPNP"), ("citeseer", "UGDGNN"), ("citeseer", "PPNP"), ("toy", "GPRGNN"),
    ]  # fmt: skip
    made = report_page(Findings(findings.results, [], [], found))
    tree = parse(made.html())
    ids = [e.attributes["id"] for e in tree.all("*") if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    section = next(s for s in made.sections if s.heading.startswith("Trained"))
    assert section.blocks
    objectives = next(t for t in tables(made) if t.caption == "Objectives along depth")
    assert {row[0] for row in objectives.rows} >= {"APPNP"}
    text = made.markdown()
    assert "nothing happens along depth" in text  # PPNP
    assert "files of this dataset are not on this machine" in text  # Toy
    assert any(r[0] == "CiteSeer" and r[1] == "APPNP" for t in tree.all("table") for r in rows(t))


def test_the_terminal_and_the_page_show_the_same_sections(made, findings):
    commands = {spec.command for spec in SECTIONS if spec.command}
    assert commands >= {"table2", "interpretations", "depth", "robust", "attacked", "grid", "heterophily", "table1"}
    on_page = {section.heading: section.blocks for section in made.sections}
    for command in commands:
        for section in sections_of(command, findings):
            if section.heading in on_page:
                assert [b.markdown() for b in section.blocks] == [b.markdown() for b in on_page[section.heading]]
            else:
                assert section.heading == "Searches"


def test_a_summary_comes_first_and_the_rest_is_folded(made):
    first = made.sections[0]
    assert first.heading == "Summary"
    headline, words, subjects, folded = first.blocks
    assert headline.markdown() == "10 of 15"
    assert "preset paper" in words.markdown()
    assert {"Table 2, preset paper", "depth"} <= {row[0] for row in subjects.texts}
    assert {"GPRGNN outperforms APPNP", "depth helps UGDGNN"} <= {
        row[0] for table in folded.blocks for row in table.texts
    }
    assert [one.shown for one in made.sections] == [Shown.OPEN] + [Shown.FOLDED] * (len(made.sections) - 1)
    depth = next(one for one in made.sections if one.heading.startswith("Figure 1"))
    assert re.fullmatch(r"of \d+ comparisons \d+ hold, \d+ fail, \d+ undecided", depth.gist)


def test_what_was_not_run_is_one_section_at_the_end(tmp_path):
    write(tmp_path, "table2", [example_record(seed) for seed in range(3)])
    made = report_page(Findings(read(tmp_path)))
    assert made.sections[-1].heading == "Not run in this folder"
    assert sum("Not run yet" in one.markdown() for section in made.sections[:-1] for one in section.blocks) == 0
    assert len(made.sections[-1].blocks[0].sentences) >= 10


def test_a_report_says_how_far_it_is(tmp_path, findings, monkeypatch):
    write(tmp_path, "table2", [example_record(seed) for seed in range(3)])
    monkeypatch.setattr(theory, "CLAIMS", theory.CLAIMS[:2])
    steps = []
    write_report(tmp_path, tmp_path / "page.html", trials=1, watch=steps.append)
    assert [(one.done, one.total) for one in steps if one.stage == steps[0].stage] == [(1, 2), (2, 2)]
    drawn = [one for one in steps if one.stage != steps[0].stage]
    assert drawn[-1].done == drawn[-1].total == len(drawn)


def test_models_of_others_are_reported_and_not_imported(findings, tmp_path, monkeypatch):
    place = tmp_path / "models" / "strange" / "seed0"
    folder, _ = make_job(tmp_path / "job", seeds=1)
    shutil.copytree(folder / "seed0", place)
    edit(place, lambda card: card.update(model="os_is_not_a_model:Net"))
    monkeypatch.setattr("importlib.import_module", None)
    found = trained_networks(tmp_path)
    assert [one.model for one in found] == ["os_is_not_a_model:Net"]
    monkeypatch.undo()
    text = report_page(Findings(findings.results, networks=found)).markdown()
    assert "is not imported just because a file names it" in text.replace("\\", "")
