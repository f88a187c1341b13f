"""What is in a data set, and what looks wrong in it: before anything is trained on it."""

from unspool.datasets.checking.dataset_check import DataCheck, check
from unspool.datasets.checking.file_check import FileCheck, check_files
from unspool.datasets.checking.finding import Finding, Kind, Severity

__all__ = ["DataCheck", "FileCheck", "Finding", "Kind", "Severity", "check", "check_files"]
