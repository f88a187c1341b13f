"""Every test has a cache folder of its own, and none sees the data of the machine it runs on."""

import pytest


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.delenv("UNSPOOL_DATA", raising=False)
