"""Reports: pages, tables and figures in one file, and the report of a training job.

>>> import tempfile, unspool as us
>>> from unspool import report
>>> from unspool.models.pretrained import save_pretrained
>>> out = tempfile.mkdtemp()
>>> place = save_pretrained(us.models.GPRGNN(5, 3), out + "/seed0", metrics={"test_score": 0.7})
>>> report.training(out).name
'report.html'
"""

from unspool.report.figure import Figure, Panel, Stroke
from unspool.report.hardware import machine
from unspool.report.page import Block, Code, Contents, Folded, Heading, Maths, Notes, Page, Paragraph, Section, Shown
from unspool.report.table import Cell, Column, Rows, Table, facts, text_columns
from unspool.report.text import Mark, Tone, counted, shown, signed
from unspool.report.training_report import training

__all__ = [
    "Block", "Cell", "Code", "Column", "Contents", "Figure", "Folded", "Heading", "Mark", "Maths", "Notes", "Page", "Panel", "Paragraph", "Rows",
    "Section", "Shown", "Stroke", "Table", "Tone", "counted", "facts", "machine", "shown", "signed", "text_columns", "training",
]  # fmt: skip
