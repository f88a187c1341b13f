"""Packs on a GPU: the fast kernels against single runs, and against themselves in other company."""

from __future__ import annotations

import numpy as np
import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

from study.fast_cases import CASES, alone, kind_of, members_of, task_of
from unspool import datasets, models, study, train
from unspool.study.engine import engine, train_trials
from unspool.study.engine.ledger import Notebook
from unspool.study.pack.fast import FastPack, pack, plain
from unspool.study.pack.stacked import Stacked

EPOCHS = 20
#: Against other kernels. Adam turns the sign of a gradient that is nearly zero into a whole step, so rounding grows from epoch to epoch.
NEAR = 1e-3


@pytest.fixture(scope="module")
def provide():
    return study.Provider(datasets.load("citeseer"), "cuda")


def trials(name, count, **more):
    settings = {} if name == "PPNP" else {"depth": {"GCN": 2, "SGC": 2}.get(name, 6), **more}
    if name != "SGC":
        settings.setdefault("dropout", 0.5)
    if name.endswith("-each"):
        settings.update(masks=models.Masks.EACH_HOP, propagation_dropout=0.6)
    plan = train.Plan(rate=0.01, decay=5e-4, epochs=40)
    return [study.Trial(kind_of(name), settings, plan, seed, normalise_rows=True) for seed in range(count)]


@pytest.mark.parametrize("name", CASES)
def test_small_packs_give_what_single_runs_give(name):
    members = members_of(name, task_of(device="cuda"))
    found = FastPack(members).advance(EPOCHS)
    for slot, member in enumerate(members):
        np.testing.assert_allclose(found[:, slot, :2], alone(member, EPOCHS)[:, :2], rtol=1e-4)


@pytest.mark.parametrize("name", [n for n in CASES if n != "MLP"])
def test_real_data_gives_what_single_runs_give(name, provide):
    members = [provide(t) for t in trials(name, 3)]
    found = FastPack(members).advance(EPOCHS)
    for slot, member in enumerate(members):
        single = alone(member, EPOCHS)
        np.testing.assert_allclose(found[:10, slot, :2], single[:10, :2], rtol=1e-4)
        np.testing.assert_allclose(found[:, slot, :2], single[:, :2], rtol=NEAR)


@pytest.mark.parametrize("name", [n for n in CASES if n != "MLP"])
def test_company_changes_no_bit(name, provide):
    some = [provide(t) for t in trials(name, 7)]
    one, seven = FastPack(some[:1]).advance(EPOCHS), FastPack(some).advance(EPOCHS)
    np.testing.assert_array_equal(one[:, 0], seven[:, 0])
    many = FastPack(some[::-1] * (700 // 7 if name in ("SGC", "GCN", "UGDGNN") else 10)).advance(EPOCHS)
    np.testing.assert_array_equal(many[:, 6], seven[:, 0])
    np.testing.assert_array_equal(many[:, 0], seven[:, 6])


@pytest.mark.parametrize("name", CASES)
def test_refilled_and_smaller_packs_go_on(name):
    members = members_of(name, task_of(device="cuda"))
    fresh = FastPack(members).advance(EPOCHS)
    pack = FastPack(members)
    pack.advance(7)
    pack.put([1], [members[2]])
    after = pack.advance(EPOCHS)
    np.testing.assert_array_equal(after[:, 1], fresh[:, 2])
    np.testing.assert_array_equal(after[: EPOCHS - 7, 0], fresh[7:, 0])
    whole = FastPack(members).advance(10 + EPOCHS)
    np.testing.assert_array_equal(pack.shrunk([0]).advance(3)[:, 0], whole[-3:, 0])


@pytest.mark.parametrize("name", [n for n in CASES if n.endswith("-each")])
def test_masks_of_every_hop_are_those_of_plain_torch(name, monkeypatch):
    """The same pack in plain torch on the same GPU; depths differ, and with them the calls of an epoch."""
    members = members_of(name, task_of(device="cuda"))
    found = FastPack(members, depth=7).advance(EPOCHS)
    monkeypatch.setattr(pack, "_steps", lambda device: plain)
    monkeypatch.setattr(FastPack, "_epoch", FastPack._once)  # plain steps look at values, which no CUDA graph can
    want = FastPack(members, depth=7).advance(EPOCHS)
    np.testing.assert_allclose(found[:10, :, :2], want[:10, :, :2], rtol=1e-4)
    np.testing.assert_allclose(found[:, :, :2], want[:, :, :2], rtol=NEAR)


@pytest.mark.parametrize("name", ["GCN", "UGDGNN", "AirGNN", "UGDGNN-each", "APPNP-each"])
def test_stacks_give_what_single_runs_give(name, provide):
    members = [provide(t) for t in trials(name, 3)]
    found = Stacked(members).advance(10)
    for slot, member in enumerate(members):
        np.testing.assert_allclose(found[:, slot, :2], alone(member, 10)[:, :2], rtol=1e-4)


def _noted(advance, opened):
    def noted(self, epochs):
        opened.append(self)
        return advance(self, epochs)

    return noted


def test_packs_beside_each_other_change_no_bit(provide, monkeypatch):
    monkeypatch.setattr(engine, "room_beside", lambda device: True)  # others may hold memory
    named = [t for name in ("GCN", "UGDGNN", "AirGNN", "PPNP", "SGC", "GPRGNN") for t in trials(name, 3)]
    loose = [study.Trial(models.GCN, {"depth": 3, "dropout": 0.5}, train.Plan(epochs=40), seed) for seed in range(3)]
    deep = [study.Trial(models.APPNP, {"depth": k}, train.Plan(epochs=40 + k), 0) for k in (1, 9, 30)]
    found = {}
    for beside in (1, 8):
        notebook, seen = Notebook(), []
        train_trials([*named, *loose, *deep], provide, notebook, beside=beside, watch=seen.append)
        assert notebook.failures == {}
        assert (max(p.running for p in seen) > 6) is (beside > 1)
        found[beside] = {t: (r.epoch, r.train_loss, r.valid_loss, r.test_score) for t, r in notebook.results.items()}
    assert len(found[1]) == len(named) + len(loose) + len(deep)
    for trial, numbers in found[1].items():
        near = 1e-5 if trial in loose else 0.0  # stacks multiply with a library that promises no order of sums
        assert found[8][trial] == pytest.approx(numbers, rel=near, abs=0.0)


def test_a_whole_study_runs_on_the_gpu(tmp_path, monkeypatch):
    space = study.grid(models.UGDGNN, models.GCN, models.AirGNN, seed=range(2), dropout=[0.2, 0.5], epochs=30)
    opened = []
    monkeypatch.setattr(FastPack, "begin", _noted(FastPack.begin, opened))
    found = study.run(space, "citeseer", store=tmp_path / "s.db", device="cuda")
    assert len(found.table) == 12
    assert {pack.plan.middle.value for pack in opened} == {"series", "convolution", "rows"}
    again = study.run(space, "citeseer", store=tmp_path / "t.db", device="cuda", most=3)
    first, second = ({r.key: r.result for r in s.rows} for s in (found, again))
    for key, result in first.items():
        assert second[key].epoch == result.epoch
        assert second[key].valid_loss == pytest.approx(result.valid_loss, rel=1e-4)
