"""What every way of training trials together keeps; the tests of a kind of batch inherit it and say what they train."""

import numpy as np
import pytest
import torch

from study.double_loader import DoubleLoader, alone, numbers
from unspool import datasets
from unspool.study.batch import AsyncBatch
from unspool.train import Trial

#: Epochs of the trials.
EPOCHS = 12


class BatchContract:
    """Laws of a :class:`~unspool.study.batch.TrialBatch`.

    A kind says how a batch is opened (``open``) and which trials it takes (``trials``: one more than it has slots, all of
    one signature, ``EPOCHS`` epochs, with everything different that may differ). ``wild`` is such a trial that diverges.
    """

    #: Relative differences that rounding may make.
    near = 1e-9
    #: The same between batches of one kind, where a slot should not feel its neighbours.
    same = 1e-9

    def open(self, members):
        raise NotImplementedError

    def trials(self) -> list[Trial]:
        raise NotImplementedError

    def wild(self) -> Trial:
        first = self.trials()[0]
        return Trial(first.model, first.settings, first.config.replace(lr=1e200), seed=first.seed)

    def load(self):
        """The loader of the data."""
        return DoubleLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0))

    def alone(self, trial, loader):
        """The numbers of ``train_trial``."""
        return numbers(alone(trial, loader))

    @pytest.fixture
    def loader(self):
        return self.load()

    @pytest.fixture
    def members(self, loader):
        return [loader.prepare(trial) for trial in self.trials()]

    def check_near(self, found, wanted):
        np.testing.assert_allclose(found, wanted, rtol=self.near, atol=1e-11)

    def check_bits(self, found, wanted):
        np.testing.assert_array_equal(found, wanted)

    def check_same(self, found, wanted):
        np.testing.assert_allclose(found, wanted, rtol=self.same, atol=1e-11)

    # -- the laws ------------------------------------------------------------------------------------------------------

    def test_the_numbers_are_those_of_train_trial(self, loader, members):
        many = len(members) - 1
        batch = self.open(members[:many])
        assert batch.slots == many
        found = batch.run_epochs(EPOCHS)
        assert found.shape == (EPOCHS, many, 4)
        assert found.dtype == np.float64
        for slot, member in enumerate(members[:many]):
            self.check_near(found[:, slot], self.alone(member.trial, loader))

    def test_where_pieces_end_changes_no_number(self, members):
        whole = self.open(members[:-1]).run_epochs(EPOCHS)
        batch = self.open(members[:-1])
        self.check_bits(np.concatenate([batch.run_epochs(n) for n in (1, 4, EPOCHS - 5)]), whole)

    def test_a_slot_that_is_loaded_again_starts_anew_and_the_others_go_on(self, loader, members):
        *first, late = members
        whole = self.open(first).run_epochs(EPOCHS)
        batch, slot = self.open(first), len(first) - 1
        batch.run_epochs(5)
        batch.load([], [])  # nothing happens
        batch.load([slot], [late])
        after = batch.run_epochs(EPOCHS)
        self.check_near(after[:, slot], self.alone(late.trial, loader))
        for other in range(slot):
            self.check_same(after[: EPOCHS - 5, other], whole[5:, other])

    def test_a_smaller_batch_goes_on(self, members):
        first = members[:-1]
        whole = self.open(first).run_epochs(EPOCHS)
        batch = self.open(first)
        batch.run_epochs(4)
        kept = [len(first) - 1, 0] if len(first) > 1 else [0]
        smaller = batch.compact(kept)
        assert smaller.slots == len(kept)
        rest = smaller.run_epochs(EPOCHS - 4)
        for place, slot in enumerate(kept):
            self.check_same(rest[:, place], whole[4:, slot])

    def test_a_smaller_batch_can_be_loaded_again(self, loader, members):
        *first, late = members
        batch = self.open(first)
        batch.run_epochs(2)
        smaller = batch.compact([0])
        smaller.run_epochs(1)
        smaller.load([0], [late])
        self.check_near(smaller.run_epochs(EPOCHS)[:, 0], self.alone(late.trial, loader))

    def test_members_stay_as_they_are(self, members):
        kept = [{name: value.clone() for name, value in m.model.state_dict().items()} for m in members]
        before = torch.get_rng_state()
        first = self.open(members[:-1]).run_epochs(3)
        again = self.open(members[:-1]).run_epochs(3)
        self.check_bits(first, again)
        assert torch.equal(torch.get_rng_state(), before)
        for member, values in zip(members, kept, strict=True):
            assert all(torch.equal(value, values[name]) for name, value in member.model.state_dict().items())

    def test_one_that_diverges_has_no_numbers_and_leaves_the_others_alone(self, loader, members):
        first, late = members[:-1], members[-1]
        calm = self.open(first).run_epochs(EPOCHS)
        wild = self.open([loader.prepare(self.wild()), *first[1:]])
        found = wild.run_epochs(EPOCHS)
        assert np.isnan(found[-1, 0, 0])
        self.check_bits(found[:, 1:], calm[:, 1:])
        wild.load([0], [late])  # its slot is as good as any other
        self.check_near(wild.run_epochs(EPOCHS)[:, 0], self.alone(late.trial, loader))

    def test_more_epochs_than_are_kept_at_a_time(self, members):
        found = self.open(members[:1]).run_epochs(70)
        assert found.shape == (70, 1, 4)
        assert np.isfinite(found).all()


class AsyncBatchContract(BatchContract):
    """Laws of a batch that can be sent ahead (:class:`~unspool.study.batch.AsyncBatch`)."""

    def test_halves_are_the_whole(self, members):
        batch, other = self.open(members[:-1]), self.open(members[:-1])
        assert isinstance(batch, AsyncBatch)
        whole = batch.run_epochs(70)  # more than are kept at a time
        parts = []
        for epochs in (64, 6):
            other.start_epochs(epochs)
            parts.append(other.finish_epochs())
        self.check_bits(np.concatenate(parts), whole)
        for wrong in (0, 65):
            with pytest.raises(ValueError, match=f"{wrong} epochs ahead"):
                other.start_epochs(wrong)
