"""One small study for all tests that only read it."""

import pytest

from cli.study.small import run


@pytest.fixture(scope="session")
def file(tmp_path_factory):
    out = tmp_path_factory.mktemp("study") / "study.db"
    run(out)
    return out
