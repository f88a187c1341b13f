"""Reading a job: what its seeds say, which of them count, and one sentence for what is wrong."""

import math

import numpy as np
import pytest

from report.jobs import edit, make_job, write_history
from unspool.report.curves import POINTS, curve
from unspool.report.seeds import mean_and_spread, read_job


def test_cards_and_histories_come_back(tmp_path):
    folder, kept = make_job(tmp_path, seeds=12, epochs=3)
    job = read_job(folder)
    assert [s.name for s in job.seeds] == [str(k) for k in range(12)]  # by number: 10 after 9
    for seed, rows in zip(job.seeds, kept, strict=True):
        assert [e.to_list() for e in seed.history] == rows
    assert job.warnings() == []


def test_mean_and_spread_are_numpys():
    values = np.random.default_rng(0).normal(size=7)
    mean, spread = mean_and_spread(values.tolist())
    assert math.isclose(mean, values.mean(), rel_tol=1e-12)
    assert math.isclose(spread, values.std(ddof=1), rel_tol=1e-12)


@pytest.mark.parametrize("lengths", [(5, 5, 5), (9, 4, 6), (1, 1), (3,)])
def test_curves_are_the_mean_and_range_of_those_still_training(lengths, tmp_path):
    folder, kept = make_job(tmp_path, epochs=lengths)
    for place, name in enumerate(("train_loss", "valid_loss", "valid_score", "test_score"), 1):
        table = np.full((len(lengths), max(lengths)), np.nan)
        for k, rows in enumerate(kept):
            table[k, : len(rows)] = [row[place] for row in rows]
        found = curve(read_job(folder).seeds, name, scale=100.0)
        np.testing.assert_allclose(found.mean, 100 * np.nanmean(table, 0), rtol=1e-12)
        np.testing.assert_allclose(found.low, 100 * np.nanmin(table, 0), rtol=1e-12)
        np.testing.assert_allclose(found.high, 100 * np.nanmax(table, 0), rtol=1e-12)
        assert found.shared == min(lengths)


def test_long_curves_are_thinned_to_epochs_that_were_there(tmp_path):
    folder, kept = make_job(tmp_path, seeds=1, epochs=977)
    found = curve(read_job(folder).seeds, "train_loss")
    assert found.epoch.size == POINTS
    assert (found.epoch[0], found.epoch[-1]) == (1, 977)
    assert found.mean.tolist() == [kept[0][e - 1][1] for e in found.epoch]


def test_a_quantity_that_nobody_measured_has_no_curve(tmp_path):
    folder, kept = make_job(tmp_path, seeds=1)
    write_history(folder / "seed0", [[*row[:4], float("nan")] for row in kept[0]])
    seeds = read_job(folder).seeds
    assert curve(seeds, "test_score") is None
    assert curve(seeds, "valid_score") is not None


def test_interrupted_seeds_do_not_count_unless_all_are(tmp_path):
    folder, _ = make_job(tmp_path)
    edit(folder / "seed1", lambda card: card["metrics"].update(ending="interrupted"))
    job = read_job(folder)
    assert [s.name for s in job.counted] == ["0", "2"]
    assert "Seed 1 was interrupted and does not count" in job.warnings()[0]
    for name in ("seed0", "seed2"):
        edit(folder / name, lambda card: card["metrics"].update(ending="interrupted"))
    job = read_job(folder)
    assert [s.name for s in job.counted] == ["0", "1", "2"]
    assert "No seed was trained to its end" in job.warnings()[0]


@pytest.mark.parametrize(
    "change",
    [
        lambda card: card["settings"].update(depth=3),
        lambda card: card["trial"]["config"].update(lr=0.5),
        lambda card: card["data"].update(hash="c" * 32),
        lambda card: card.update(model="SGC"),
    ],
)
def test_seeds_of_another_job_do_not_count(change, tmp_path):
    folder, _ = make_job(tmp_path)
    edit(folder / "seed2", change)
    job = read_job(folder)
    assert [s.name for s in job.counted] == ["0", "1"]
    assert "Seed 2 differs from seed 0" in job.warnings()[0]


def test_seeds_may_have_splits_of_their_own(tmp_path):
    folder, _ = make_job(tmp_path)
    edit(folder / "seed2", lambda card: (card["data"].update(split="c" * 32), card["task"].update(centre=[0.5])))
    assert len(read_job(folder).counted) == 3


def test_a_seed_without_a_model_is_mentioned(tmp_path):
    folder, _ = make_job(tmp_path)
    (folder / "seed1" / "model.json").unlink()
    (folder / "seed0.old").mkdir()
    job = read_job(folder)
    assert [s.name for s in job.seeds] == ["0", "2"]
    assert job.warnings() == ["Seed 1 holds no finished model."]


def test_a_single_model_is_a_job(tmp_path):
    make_job(tmp_path, seeds=1)
    assert [s.name for s in read_job(tmp_path / "seed0").seeds] == ["0"]
    edit(tmp_path / "seed0", lambda card: card.pop("metrics"))
    assert [s.name for s in read_job(tmp_path / "seed0").seeds] == ["seed0"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("epoch,train_loss\n1,2\n", "has no column valid_loss, valid_score, test_score"),
        ("epoch,train_loss,valid_loss,valid_score,test_score\n1,2,3,4,5\n2,x,3,4,5\n", "line 3 of history.csv cannot be read"),
        ("epoch,train_loss,valid_loss,valid_score,test_score\n1,2,3\n", "line 2 of history.csv cannot be read"),
        ("epoch,train_loss,valid_loss,valid_score,test_score\n2,2,3,4,5\n1,2,3,4,5\n", "do not rise"),
        (b"\xff\xfe\x00", "cannot be read"),
        ("", "has no column epoch"),
    ],
)  # fmt: skip
def test_a_history_that_cannot_be_read_is_named_and_left_out(text, words, tmp_path):
    folder, _ = make_job(tmp_path, seeds=2)
    (folder / "seed1" / "history.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    job = read_job(folder)
    assert job.seeds[1].history == ()
    assert len(job.warnings()) == 1
    assert words in job.warnings()[0]
    assert len(job.counted) == 2


def test_an_empty_test_column_is_not_a_number(tmp_path):
    folder, kept = make_job(tmp_path, seeds=1)
    write_history(folder / "seed0", [[*row[:4], ""] for row in kept[0]])
    assert all(math.isnan(e.test_score) for e in read_job(folder).seeds[0].history)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"model": 3}', b"\xff\xfe", "[" * 100_000])
def test_a_damaged_card_is_one_sentence(text, tmp_path):
    folder, _ = make_job(tmp_path, seeds=2)
    (folder / "seed1" / "model.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=r"seed1.model\.json (is damaged|carries no checksum)"):
        read_job(folder)


def test_no_folder_and_no_seed_are_one_sentence(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere; give the one that training wrote"):
        read_job(tmp_path / "nowhere")
    (tmp_path / "seed0").mkdir()
    with pytest.raises(FileNotFoundError, match="holds no finished seed"):
        read_job(tmp_path)
