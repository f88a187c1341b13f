"""What builds the site, where it can be tested without building it."""

import importlib.util
from pathlib import Path

EXTENSIONS = Path(__file__).parents[2] / "docs" / "_ext"


def extension(name):
    made = importlib.util.spec_from_file_location(name, EXTENSIONS / f"{name}.py")
    module = importlib.util.module_from_spec(made)
    made.loader.exec_module(module)
    return module


def test_links_that_lead_nowhere_are_found(tmp_path):
    (tmp_path / "api").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="api/one.html#here">a</a> <a href="api/one.html#gone">b</a> <a href="api/two.html">c</a> <a href="#top">d</a>'
        '<img src="none.png"> <a href="https://example.org/x">e</a> <a href="mailto:a@b">f</a> <h1 id="top"></h1>'
    )
    (tmp_path / "api" / "one.html").write_text(
        '<p id="here"></p><a href="../index.html#top">up</a><a href="../b%20c.txt">file</a>'
    )
    (tmp_path / "b c.txt").write_text("")
    assert sorted(extension("site_links").broken_links(tmp_path)) == [
        "index.html -> api/one.html#gone",
        "index.html -> api/two.html",
        "index.html -> none.png",
    ]


def test_every_page_is_in_the_navigation():
    """A page that no toctree names would be built and never found."""
    docs = EXTENSIONS.parent
    index = (docs / "index.md").read_text(encoding="utf-8").splitlines()
    pages = {page.stem for page in docs.glob("*.md")} - {"index", "changelog"}
    assert pages <= set(index), pages - set(index)
