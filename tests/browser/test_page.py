"""The page in a real browser: it loads alone, sorts, follows light and dark, and fits a phone."""

from pathlib import Path

import pytest

from browser.chromium import Tab, browser
from unspool import datasets, theory
from unspool.reproduce.report_page import Findings, report_page
from unspool.reproduce.results import read

pytestmark = pytest.mark.long


EXAMPLE = Path(__file__).parents[1] / "reproduce" / "example_results"
TABLE = "document.querySelector('table.sortable')"
HEAD = f"{TABLE}.tHead.rows[0].cells"
# What was not run has no number, and stays at the end either way.
COLUMN = f"[...{TABLE}.tBodies[0].rows].map(r => parseFloat(r.cells[1].dataset.order))"


def ordered(values, falling=False):
    known = [v for v in values if v is not None]
    return sorted(known, reverse=falling) + [None] * (len(values) - len(known))


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    browser()
    certificates = [claim.certify(trials=1) for claim in theory.CLAIMS[:4]]
    found = Findings(read(EXAMPLE), certificates, datasets.table3(root="/nowhere", cache="/nowhere"), (), 1)
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(report_page(found).html(), encoding="utf-8")
    with Tab() as opened:
        opened.open(file)
        opened.file = file
        yield opened


@pytest.fixture(autouse=True)
def _fresh(tab):
    tab.look(1200, dark=False)
    tab.open(tab.file)


def test_folded_it_is_short_and_a_summary_fills_the_first_screen(tab):
    tab.look(1280, dark=False)
    assert tab.run("document.documentElement.scrollHeight") < 12_000
    assert tab.run("document.querySelector('.headline').getBoundingClientRect().bottom") < 900
    open_ones = "[...document.querySelectorAll('details.part')].filter(d => d.open).length"
    assert tab.run(open_ones) == 0
    tab.click("document.querySelector('details.part > summary h2')")
    assert tab.run(open_ones) == 1


def test_panels_that_are_compared_leave_none_alone(tab):
    tab.look(1280, dark=False)
    tab.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    rows = """[...document.querySelectorAll('.panels.pairs')].map(p => {
      const tops = [...p.querySelectorAll(':scope > svg')].map(s => Math.round(s.getBoundingClientRect().top));
      return Object.values(tops.reduce((n, t) => ({...n, [t]: (n[t] ?? 0) + 1}), {}));
    }).flat()"""
    assert set(tab.run(rows)) <= {2}


def test_it_loads_alone_and_without_complaint(tab):
    asked = {e["params"]["request"]["url"] for e in tab.told("Network.requestWillBeSent")}
    assert asked == {tab.file.as_uri()}
    assert tab.told("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled") == []
    assert tab.run("document.fonts.size") == 0


def test_a_click_sorts_and_another_turns_it_round(tab):
    before = tab.run(COLUMN)
    assert len({v for v in before if v is not None}) > 1
    for way, order in (("ascending", ordered(before)), ("descending", ordered(before, falling=True))):
        tab.click(f"{HEAD}[1].querySelector('button')")
        assert tab.run(COLUMN) == order
        assert tab.run(f"{HEAD}[1].getAttribute('aria-sort')") == way
    assert tab.run(f"[...{HEAD}].filter(h => h.getAttribute('aria-sort') !== 'none').length") == 1


def test_a_keyboard_reaches_everything(tab):
    tab.press("Tab", 9)
    assert tab.run("document.activeElement.className") == "skip"
    assert tab.run("document.activeElement.getBoundingClientRect().left >= 0")  # it comes into sight
    tab.press("Enter", 13, "\r")
    assert tab.run("location.hash") == "#start"
    tab.run(f"{HEAD}[0].querySelector('button').focus()")
    tab.press("Tab", 9)
    assert tab.run(f"document.activeElement === {HEAD}[1].querySelector('button')")
    assert tab.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    before = tab.run(COLUMN)
    tab.press("Enter", 13, "\r")
    assert tab.run(COLUMN) == ordered(before)
    tab.press(" ", 32, " ")
    assert tab.run(COLUMN) == ordered(before, falling=True)


def test_a_fold_opens_with_a_key(tab):
    tab.run("document.querySelector('summary').focus()")
    tab.press("Enter", 13, "\r")
    assert tab.run("document.querySelector('details').open")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_letters_stand_out_in_light_and_dark(tab, dark):
    """WCAG's contrast of every text with what is behind it: 4.5 for all, tinted cells included."""
    tab.look(1200, dark=dark)
    script = """
    (() => {
      const parse = c => c.match(/[\\d.]+/g).map(Number);
      const light = c => { const [r, g, b] = parse(c).map(v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; };
      const back = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; const p = parse(c); if (p.length < 4 || p[3] > 0) return c; } return "rgb(255, 255, 255)"; };
      const kinds = "p, td, th, small, h1, h2, h3, a:not(.skip), li, caption, figcaption, summary, button, code, svg text";
      let worst = 99;
      for (const e of document.querySelectorAll(kinds)) {
        const style = getComputedStyle(e), own = light(e.closest("svg") ? style.fill : style.color), behind = light(back(e));
        worst = Math.min(worst, (Math.max(own, behind) + .05) / (Math.min(own, behind) + .05));
      }
      return worst;
    })()"""
    assert tab.run(script) >= 4.5
    paper = tab.run("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") is not dark


@pytest.mark.parametrize("width", [320, 360, 768])
def test_a_phone_scrolls_tables_and_not_the_page(tab, width):
    tab.look(width, dark=False)
    for opened in ("false", "true"):
        tab.run(f"document.querySelectorAll('details').forEach(d => d.open = {opened})")
        assert tab.run("document.documentElement.scrollWidth") <= width
    wide = "[...document.querySelectorAll('.scroll')].filter(b => b.scrollWidth > b.clientWidth)"
    assert tab.run(f"{wide}.length") > 0
    assert tab.run(f"{wide}.every(b => getComputedStyle(b).overflowX === 'auto' && b.tabIndex === 0)")


def test_paper_shows_what_is_folded(tab):
    seen = "[...document.querySelectorAll('details table')].filter(t => t.checkVisibility()).length"
    assert tab.run(seen) == 0
    tab("Emulation.setEmulatedMedia", media="print")
    assert tab.run(seen) == tab.run("document.querySelectorAll('details table').length") > 0
    assert tab.run("getComputedStyle(document.querySelector('.skip')).display") == "none"
    tab("Emulation.setEmulatedMedia", media="screen")
