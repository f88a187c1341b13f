"""The page and the model card of a job that was trained: what lies behind the score, in folds, and the same everywhere."""

import re

import pytest
import torch

import unspool as us
from report.reading import read, rows
from unspool import datasets, report, train
from unspool.report.problem import Problem
from unspool.train.baselines import measure_baselines, write_baselines
from unspool.train.run_folder import RunFolder

pytestmark = pytest.mark.long

DATA = datasets.contextual_sbm(nodes=240, classes=3, seed=0)


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """Two seeds of a GCN, with baselines."""
    out = tmp_path_factory.mktemp("job")
    trial = train.Trial(us.models.GCN, {"hidden": 8}, train.TrainConfig(epochs=60))
    loader = train.TrialLoader(DATA)
    folder = RunFolder(out, trial, loader)
    for seed in (0, 1):
        folder.train(seed)
    write_baselines(out, measure_baselines(trial, loader, [0, 1]))
    return out


@pytest.fixture(scope="module")
def page(job):
    file = report.training(job, dataset=DATA)
    return read(file.read_text(encoding="utf-8")), file.with_suffix(".md").read_text(encoding="utf-8")


def table(tree, words):
    return next(t for t in tree.all("table") if words in next(t.all("caption")).text())


def outputs(job, seed):
    """What a seed says about the test nodes of its split, and the truth."""
    model = us.load(job / f"seed{seed}")
    test = datasets.splits.repetition(DATA, seed).test
    with torch.no_grad():
        return model(DATA.features, DATA.graph)[test], DATA.labels[test], test


def test_the_confusion_matrix_counts_test_nodes(job, page):
    wanted = torch.zeros(3, 3, dtype=torch.int64)
    for seed in (0, 1):
        said, truth, _ = outputs(job, seed)
        wanted.index_put_((truth, said.argmax(-1)), torch.ones_like(truth), accumulate=True)
    found = [[int(cell) for cell in row[1:]] for row in rows(table(page[0], "True class (rows)"))]
    assert found == wanted.tolist()


def test_the_summary_comes_first_and_details_are_folded(page):
    tree, _ = page
    main = next(tree.all("main"))
    assert [e.tag for e in main.children if not isinstance(e, str)].index("section") > 5
    sections = [next(s.all("h2")).text() for s in tree.all("section")]
    assert sections == [
        "Scores in detail", "How far its probabilities can be trusted", "Errors worth a look", "How it was trained", "Seeds",
        "The denoising problem", "What it learnt", "Data", "To repeat it",
    ]  # fmt: skip
    assert all(next(s.all("details")).attributes.get("open") is None for s in tree.all("section"))
    before = main.text()[: main.text().index("Scores in detail")]
    for words in ("Beside it", "The graph ", "The features ", "calibrated", "What to do next"):
        assert words in before


def test_baselines_stand_beside_the_model(page):
    found = rows(table(page[0], "Beside it"))
    assert [row[0] for row in found] == [
        "GCN (this model)", "always the most common class", "MLP (the features alone)", "label propagation (the graph alone)",
    ]  # fmt: skip


def test_mistakes_are_the_most_confident_ones_and_are_explained(job, page):
    said, truth, test = outputs(job, 0)
    wrong = said.argmax(-1) != truth
    sure = said.softmax(-1).max(-1).values
    found = rows(table(page[0], "that it is most sure of"))
    assert len(found) == min(10, int(wrong.sum()))
    assert int(found[0][0]) == int(test[wrong][sure[wrong].argmax()])
    assert len(re.findall(r"- Node \d+, .* instead of .* other nodes [+−]\d", page[1])) == min(3, len(found))


def test_without_the_data_nothing_is_explained_and_nothing_else_is_missing(job, page, tmp_path):
    file = report.training(job, tmp_path / "bare.html")
    text = file.with_suffix(".md").read_text(encoding="utf-8")
    assert "instead of" not in text
    assert "that it is most sure of" in text
    assert not (tmp_path / "MODEL_CARD.md").exists()


def test_a_problem_that_the_network_does_not_solve_is_not_called_its_own(page):
    _, text = page
    assert "This network does not minimise it: a layer has a bias" in text
    assert "The problem behind its propagation" not in text
    square = us.models.GCN(8, 8, hidden=8, bias=False)
    told = {"objective": str(square.objective), "derivation": square.derivation}
    assert Problem.of(told, square).obstacle is None
    assert Problem.of(told, us.models.GCN(8, 8, hidden=8, batch_norm=True, bias=False)).obstacle is not None
    assert Problem.of(told, None).obstacle is None


def test_the_model_card_says_what_one_has_to_know(job, page):
    text = (job / "MODEL_CARD.md").read_text(encoding="utf-8")
    split = us.load(job / "seed0").card["data"]["split"]
    for words in (
        "# Model card: GCN",
        split,
        "balanced accuracy",
        "label propagation",
        "temperature",
        "## Limits",
        'us.load("seed0")',
    ):
        assert words in text
    assert "how well it does on other graphs is not known" in text
    assert str(job) not in text


def test_curves_end_some_time_after_the_chosen_epoch(tmp_path):
    from report.jobs import edit, make_job

    folder, _ = make_job(tmp_path, seeds=2, epochs=300)
    for k in range(2):
        edit(folder / f"seed{k}", lambda card: card["metrics"].update(epoch=20))
    text = report.training(folder).with_suffix(".md").read_text(encoding="utf-8")
    assert "over 50 epochs" in text
    assert "Epochs 51 to 300 were run, too" in text
