"""Links between the paper's statements and the API, in both directions.

``equations.md`` and ``notation.md`` name things of the package as code; on the site these names are links. And the entry of such a
thing in the API names the rows of ``equations.md`` that it belongs to.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref

_NAME = re.compile(r"^unspool(\.\w+)+$")


def statements(folder: Path) -> dict[str, list[str]]:
    """For each name in the column *code* of ``equations.md``, the statements of the paper in the first column."""
    found: dict[str, list[str]] = {}
    for line in (folder / "equations.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 4:
            for name in re.findall(r"`(unspool(?:\.\w+)+)`", cells[3]):
                found.setdefault(name.rpartition(".")[2], []).append(cells[1])
    return found


def link_names(app: Any, tree: Any, docname: str) -> None:
    """Names of the package that are written as code become links, where there is something to link to."""
    if docname.startswith(("api/", "gallery/")):
        return
    for literal in list(tree.findall(nodes.literal)):
        text = literal.astext()
        if not _NAME.match(text) or isinstance(literal.parent, nodes.reference | pending_xref):
            continue
        link = pending_xref(
            "", refdomain="py", reftype="obj", reftarget=text, refexplicit=False, refwarn=False, refdoc=docname
        )
        literal.parent.replace(literal, link)
        link += literal


def add_statements(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """The statements of the paper that a thing of the API belongs to, at the end of its description."""
    if what not in ("class", "function"):
        return
    rows = app.paper_statements.get(name.rpartition(".")[2])
    if rows:
        lines += ["", f"*In the paper:* {'; '.join(dict.fromkeys(rows))} (:doc:`/equations`).", ""]


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.paper_statements = statements(Path(app.srcdir))
    app.connect("doctree-read", lambda app, tree: link_names(app, tree, app.env.docname))
    app.connect("autodoc-process-docstring", add_statements)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
