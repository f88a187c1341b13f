"""The page of a study in a real browser: one screen first, no sideways scrolling, readable in the dark."""

import pytest

from browser.chromium import Tab, browser
from unspool.study import write_report
from unspool.study.results.trial_table import example_table

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    browser()
    file = write_report(example_table(seeds=6), tmp_path_factory.mktemp("page") / "study.html")
    with Tab() as opened:
        opened.open(file)
        yield opened


def test_the_summary_fits_one_screen(tab):
    tab.look(1280, dark=False)
    assert tab.run("document.documentElement.scrollHeight") <= 900
    assert tab.told("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled") == []


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_only_boxes_scroll_sideways(tab, width):
    tab.look(width, dark=True)
    for opened in ("false", "true"):
        tab.run(f"document.querySelectorAll('details').forEach(d => d.open = {opened})")
        assert tab.run("document.documentElement.scrollWidth") <= width


def test_letters_of_the_wide_picture_can_be_read_on_a_phone(tab):
    tab.look(380, dark=False)
    tab.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    sizes = "[...document.querySelectorAll('.wide svg text')].map(t => t.getBoundingClientRect().height)"
    assert min(tab.run(sizes)) >= 9
