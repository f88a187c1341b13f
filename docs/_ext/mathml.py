"""Formulas as MathML, which browsers set by themselves: no script, no network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml

_SIZES = re.compile(r"\\(?:textstyle|displaystyle|[bB]ig+[lrm]?)(?![a-zA-Z])")


def mathml(text: str, as_block: bool = False) -> str:
    """A formula in LaTeX as MathML; commands that change sizes only are left out, as not all are known there."""
    return latex2mathml.tex2mathml(_SIZES.sub("", text), as_block=as_block)


def inline(self: Any, node: Any) -> None:
    """A formula inside a sentence."""
    self.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def block(self: Any, node: Any) -> None:
    """A formula in a line of its own."""
    self.body.append(f'<div class="math">{mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
