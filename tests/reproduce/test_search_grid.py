"""The grid of the paper: as many settings as it prints, and among them those that it chose."""

import pickle

import pytest
from torch import nn

import unspool as us
from unspool.errors import InputError
from unspool.reproduce.presets import PAPER
from unspool.reproduce.search_grid import paper_grid
from unspool.study import grid
from unspool.theory import printed_tables as tables
from unspool.train import Stop

pytestmark = pytest.mark.long


class Own(nn.Module):
    def __init__(self, features, classes, width=8):
        super().__init__()


class Mine(us.models.Model):
    """A model that inherits from none of ours."""


class Again:  # a class of the user's may have the name of one of ours
    class UGDGNN(Mine):
        pass


@pytest.mark.parametrize(
    ("model", "settings"),
    [("UGDGNN", 81), ("APPNP", 324), ("GPRGNN", 324), ("SGC", 9), ("GCN", 27), ("JKNet", 81), ("GCNII", 81), ("DAGNN", 81),
     ("AirGNN", 81), ("PPNP", 108), ("MLP", 27)],
)  # fmt: skip
def test_the_paper_grid_is_counted_as_printed(model, settings):
    kind = getattr(us.models, model)
    space = paper_grid(kind, seed=range(2))
    assert str(space) == f"{model}: {settings} settings × 2 seeds"
    for dataset in ("cora", "texas"):
        trials = space.trials(dataset)
        assert len(trials) == len(space) == 2 * settings
        assert {(t.config.epochs, t.config.stop) for t in trials} == {(1000, Stop.NEVER)}
        assert {t.normalise_rows for t in trials} == {dataset == "cora"}  # on other data features stay as they are


def chosen_cells():
    """Every model on every data set of the paper; two sets of each in `make test`."""
    for number, model in enumerate(sorted(tables.PAPER)):
        for place, dataset in enumerate(tables.DATASETS):
            here = (place - number) % len(tables.DATASETS) < 2
            yield pytest.param(model, dataset, marks=[] if here else pytest.mark.slow)


@pytest.mark.parametrize(("model", "dataset"), list(chosen_cells()))
def test_the_paper_grid_contains_what_the_paper_chose(model, dataset):
    kind = getattr(us.models, model)
    for chosen in grid(kind, seed=0, preset=PAPER).trials(dataset):
        alike = [trial for trial in paper_grid(kind, seed=0).trials(dataset) if trial.config == chosen.config]
        assert chosen.key("") in {trial.key("") for trial in alike}


@pytest.mark.parametrize("dataset", ["cora", "texas"])
def test_gprgnn_has_one_dropout_for_both_places(dataset):
    for trial in paper_grid(us.models.GPRGNN, seed=0).trials(dataset)[::40]:
        model = trial.build(4, 2)
        assert (
            float(model.p_pre.after.rate) == float(model.p_pre.dropout.rate) == pytest.approx(trial.settings["dropout"])
        )


def test_a_paper_grid_has_every_combination_once():
    trials = paper_grid(us.models.UGDGNN).trials("cora")
    assert len(trials) == len({trial.key("") for trial in trials}) == 810


def test_a_paper_grid_can_be_sent_to_other_processes():
    trials = paper_grid(us.models.SGC).trials("cora")
    assert [t.key("") for t in pickle.loads(pickle.dumps(trials))] == [t.key("") for t in trials]


@pytest.mark.parametrize("kind", [Own, Mine, Again.UGDGNN], ids=lambda kind: kind.__qualname__)
def test_the_paper_has_no_grid_for_others(kind):
    with pytest.raises(InputError) as caught:
        paper_grid(kind)
    assert (caught.value.argument, caught.value.value) == ("model", kind.__name__)


def test_what_is_no_class_is_one_sentence():
    with pytest.raises(TypeError, match="'GCN' is not a model class"):
        paper_grid("GCN")
