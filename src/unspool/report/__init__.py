"""Reports: pages, tables and figures in one file, and the report of a training job.

>>> import tempfile, unspool as us
>>> from unspool import report
>>> from unspool.models.folder import save_folder
>>> out = tempfile.mkdtemp()
>>> place = save_folder(us.models.GPRGNN(5, 3), out + "/seed0", metrics={"test_score": 0.7})
>>> report.training(out).name
'report.html'
"""

from unspool.report.facts import machine
from unspool.report.figure import Figure, Panel
from unspool.report.page import Block, Code, Contents, Folded, Heading, Maths, Notes, Page, Paragraph, Section
from unspool.report.table import Cell, Column, Table, facts
from unspool.report.text import Mark, Tone
from unspool.report.training import training

__all__ = [
    "Block", "Cell", "Code", "Column", "Contents", "Figure", "Folded", "Heading", "Mark", "Maths", "Notes", "Page", "Panel", "Paragraph", "Section",
    "Table", "Tone", "facts", "machine", "training",
]  # fmt: skip
