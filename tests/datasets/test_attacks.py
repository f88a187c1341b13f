"""Generated files: what says the same is read the same, mistakes are refused in a sentence, damage never ends in a traceback."""

from dataclasses import replace

import pytest

from datasets import attacks


@pytest.mark.long
@pytest.mark.parametrize("kind", attacks.KINDS)
@pytest.mark.parametrize("start", range(0, 40, 10))
def test_generated_files(tmp_path, kind, start):
    pytest.importorskip("pyarrow")
    for seed in range(start, start + 10):
        place = tmp_path / str(seed)
        place.mkdir()
        assert attacks.judge(kind, seed, place) is None, f"{kind}, seed {seed}"


def test_the_judge_can_fail(tmp_path, monkeypatch):
    """A reader that shifts the features by a node, and one that says nothing of use, are both caught."""
    read = attacks.datasets.from_files
    shifted = lambda data: replace(data, features=data.features.roll(1, 0))  # noqa: E731
    monkeypatch.setattr(attacks.datasets, "from_files", lambda *a, **how: shifted(read(*a, **how)))
    assert attacks.judge("faithful", 0, tmp_path) == "features"
    assert not attacks.sentence(ValueError("could not convert string to float: 'x'"))
    assert not attacks.sentence(KeyError("x"))
