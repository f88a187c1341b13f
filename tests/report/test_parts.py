"""Pages, tables and figures: escaped, well formed, and telling what they were given."""

import re

import numpy as np
import pytest

from report.reading import read
from unspool.report import (
    Cell,
    Code,
    Column,
    Figure,
    Maths,
    Notes,
    Page,
    Panel,
    Paragraph,
    Section,
    Stroke,
    Table,
    Tone,
    facts,
)
from unspool.report.figure import inline
from unspool.report.text import clean, number, shown, to_html, to_markdown
from unspool.spectral.drawing import BLUE

EVIL = "<script>alert('1')</script> & \"q\" | a_b *c* `d` \x00 \ud800 é ‖²"


def page():
    table = Table(EVIL, [Column(EVIL, numbers=False), "n"], [[EVIL, Cell("2", 2.0, Tone.WORSE)]], [[EVIL, ""]])
    blocks = [
        Paragraph([EVIL]),
        Maths(EVIL),
        Code(EVIL),
        Notes([EVIL]),
        table,
        facts(EVIL, [(EVIL, EVIL)]),
        Figure([], EVIL),
    ]
    return Page(EVIL, [Paragraph([EVIL], "headline")], [Section(EVIL, blocks)], EVIL)


def test_nothing_that_was_put_in_is_markup():
    text = page().html()
    text.encode()  # no lone surrogate is left
    tree = read(text)
    assert len(list(tree.all("script"))) == 1
    shown_text = "".join(e.text() for e in tree.all("main"))
    assert shown_text.count("<script>alert('1')</script>") == 16
    assert "\x00" not in text


def test_markdown_stays_in_its_cells():
    text = page().markdown()
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [len(re.findall(r"(?<!\\)\|", line)) - 1 for line in lines]
    assert cells == [2] * len(lines)
    outside = re.sub(r"```+\n.*?\n```+", "", text, flags=re.S)
    assert "<script" not in outside
    assert outside.count("&lt;script") >= 10


def test_what_follows_an_underscore_stands_lower():
    made = Maths("‖B H‖²_(θ W + (1 − θ) I)  +  ‖H‖²_(I − (θ W + (1 − θ) I))  +  ‖H‖²_Tαₖ  +  (open_").html()
    low = [e.text() for e in read(made).all("sub")]
    assert low == ["θ W + (1 − θ) I", "I − (θ W + (1 − θ) I)", "Tαₖ"]
    assert read(made).text().endswith("  +  (open_")


def test_code_cannot_close_its_own_fence():
    many = Code("\n".join(f"command {k} with many words of its own" for k in range(40)))
    assert "command 39 with" in many.html()
    assert "command 39 with" in many.markdown()
    text = Code("a\n```\nb").markdown()
    assert text.splitlines()[0] == text.splitlines()[-1] == "````"


def test_a_table_has_names_for_columns_and_rows():
    tree = read(Table("c", ["a", Column("b", numbers=False)], [["1", "x"]]).html())
    heads = list(tree.all("th"))
    assert [h.attributes["scope"] for h in heads] == ["col", "col", "row"]
    assert [h.attributes.get("aria-sort") for h in heads] == ["none", "none", None]
    assert [b.attributes["type"] for b in tree.all("button")] == ["button", "button"]
    assert [c.text() for c in tree.all("caption")] == ["c"]
    box = next(tree.all("div"))
    assert (box.attributes["tabindex"], box.attributes["role"], box.attributes["aria-label"]) == ("0", "region", "c")


def test_a_row_that_does_not_fit_is_named():
    with pytest.raises(ValueError, match="Scores: a row has 1 cells under 2 headings"):
        Table("Scores", ["a", "b"], [["1"]])


def test_a_drawn_line_is_the_data():
    x, y = np.linspace(0, 2, 150), np.cos(np.linspace(0, 9, 150))
    panel = Panel("p", "a line", lambda axis: axis.plot(x, y, color=BLUE))
    paths = [p.attributes for p in read(panel.svg).all("path")]
    line = next(p["d"] for p in paths if "stroke: var(--blue)" in p.get("style", ""))
    drawn = np.array(re.findall(r"-?\d+\.?\d*", line), dtype=float).reshape(-1, 2)
    assert drawn.shape == (150, 2)
    for data, seen in ((x, drawn[:, 0]), (y, drawn[:, 1])):
        slope, start = np.polyfit(data, seen, 1)
        assert np.abs(slope * data + start - seen).max() <= 0.06  # a tenth of a point, rounded
        assert abs(slope) > 20


def test_svg_takes_its_colours_and_letters_from_the_page():
    panel = Panel("p", EVIL, lambda axis: axis.plot([0, 1], [0, 1], "o", color="black", label="dots"))
    tree = read(panel.svg)
    picture = next(tree.all("svg"))
    assert picture.attributes["role"] == "img"
    assert picture.attributes["aria-label"] == clean(EVIL)
    assert not re.search(r"#000000|font-family|<style|<metadata|xmlns|<\?xml|DOCTYPE", panel.svg)
    assert [t.text() for t in tree.all("text")]  # letters are letters, not outlines
    assert "currentColor" in panel.svg


def test_every_reference_in_a_panel_leads_somewhere_and_panels_do_not_share_names():
    def draw(axis):
        axis.plot([0, 1], [0, 1], "o")

    panels = [Panel(name, "x", draw).svg for name in ("one", "two")]
    names = [set(re.findall(r' id="([^"]*)"', svg)) for svg in panels]
    for svg, ids in zip(panels, names, strict=True):
        assert set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', svg)) != set()
        assert {a or b for a, b in re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', svg)} == ids
    assert not names[0] & names[1]
    assert panels[0].replace("one-", "two-") == panels[1]


def test_inline_keeps_what_is_not_a_number():
    made = inline('<svg viewBox="0 0 1 1"><text x="1.26" y="2">1.23456</text></svg>', "n", "l")
    assert made == '<svg role="img" aria-label="l" viewBox="0 0 1 1"><text x="1.3" y="2">1.23456</text></svg>'


def test_the_policy_allows_this_script_and_nothing_else():
    import base64
    import hashlib

    tree = read(page().html())
    script = next(tree.all("script")).text()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(m.attributes["content"] for m in tree.all("meta") if m.attributes.get("http-equiv"))
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5, "0.5000"), (-1, "−1.0000"), (-1e-9, "0.0000"), (float("inf"), "–"), (10**400, "–"), ("1", "–"), (True, "–")],
)
def test_numbers_are_shown_or_a_dash(value, text):
    assert shown(value) == text
    assert (number(value) is None) == (text == "–")


def test_long_words_are_cut():
    assert len(to_html("a" * 10_000)) == 2000
    assert to_markdown("# no heading").startswith("\\#")


def luminance(colour):
    channel = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channel]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, two):
    high, low = sorted([luminance(one), luminance(two)], reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_colours_can_be_read_in_light_and_in_dark(scheme):
    style = next(read(page().html()).all("style")).text()
    found = re.findall(r":root \{(.*?)\}", style, flags=re.S)[scheme]
    colour = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", found))
    for words in ("ink", "quiet", "link", "better", "worse", "near"):
        assert contrast(colour[words], colour["paper"]) >= 4.5
        assert contrast(colour[words], colour["soft"]) >= 4.5
    for line in ("blue", "orange", "green", "grey"):
        assert contrast(colour[line], colour["paper"]) >= 3


def test_a_figure_shows_its_key_and_folds_its_numbers_away():
    table = Table("Numbers", ["K", "score"], [["1", "2"]])
    figure = Figure([], "A caption.", {"GCN": Stroke(BLUE, "--")}, [table])
    tree = read(figure.html())
    assert [item.text() for item in tree.all("li")] == ["GCN"]
    assert [summary.text() for summary in tree.all("summary")] == ["The numbers of this figure"]
    assert "| 1 | 2 |" in figure.markdown()


def test_panels_are_drawn_when_somebody_looks():
    drawn = []
    figure = Figure([Panel("p", "A line.", drawn.append)], "A caption.")
    assert "A line." in figure.markdown()
    assert drawn == []
    assert "<svg" in figure.html()
    assert len(drawn) == 1
