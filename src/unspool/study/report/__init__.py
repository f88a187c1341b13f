"""The report of a study: one page with the result on top and everything behind it folded away."""

from unspool.study.report.advice import Advice
from unspool.study.report.findings import Findings
from unspool.study.report.page import report_page, write_report

__all__ = ["Advice", "Findings", "report_page", "write_report"]
