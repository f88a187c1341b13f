"""The report of a job: the numbers of its cards, for every model, whole, alone, and the same every time."""

import errno
import os
import re
import shutil
import statistics
import subprocess
import sys

import numpy as np
import pytest
import torch

import unspool as us
from report.jobs import edit, make_job, write_history
from report.reading import read, rows
from unspool import datasets, report, train
from unspool.models.pretrained import load_pretrained, save_pretrained
from unspool.report.score import Score, against
from unspool.report.seeds import read_job
from unspool.report.spectra import GRID, learnt

pytestmark = pytest.mark.long


MODELS = us.models.MODELS


def write(folder, **given):
    """The page as a tree, and its Markdown."""
    file = report.training(folder, **given)
    return read(file.read_text(encoding="utf-8")), file.with_suffix(".md").read_text(encoding="utf-8")


def table(tree, words):
    return next(t for t in tree.all("table") if words in next(t.all("caption")).text())


def test_the_headline_is_the_mean_of_the_cards(tmp_path):
    folder, _ = make_job(tmp_path, seeds=4)
    scores = [100 * load_pretrained(folder / f"seed{k}").card["metrics"]["test_score"] for k in range(4)]
    tree, text = write(folder)
    wanted = f"{statistics.fmean(scores):.2f} ± {statistics.stdev(scores):.2f} %"
    assert next(p.text() for p in tree.all("p") if p.attributes.get("class") == "headline") == wanted
    assert wanted in text
    assert next(tree.all("h1")).text() == "GPRGNN on Toy"
    assert table(tree, "4 seeds") is not None
    assert rows(table(tree, "4 seeds"))[-1][5] == wanted.removesuffix(" %")


def test_the_table_of_seeds_is_the_cards(tmp_path):
    folder, kept = make_job(tmp_path, seeds=3)
    found = rows(table(write(folder)[0], "3 seeds"))
    for seed, (row, epochs) in enumerate(zip(found, kept, strict=False)):
        best = min(epochs, key=lambda e: e[2])
        assert row == [str(seed), str(best[0]), "20", f"{best[2]:.4f}", f"{100 * best[3]:.2f}", f"{100 * best[4]:.2f}", "1.2", "all epochs"]  # fmt: skip
    assert found[-1][6] == "3.8 in all"


@pytest.mark.parametrize(
    ("ours", "paper", "words", "tone"),
    [
        (72.0, (71.1, 0.5), "+0.90 points, above it by more than its standard deviation", "better"),
        (70.0, (71.1, 0.5), "−1.10 points, below it by more than its standard deviation", "worse"),
        (71.3, (71.1, 0.5), "+0.20 points, above it, within its standard deviation", "near"),
        (71.104, (71.1, 0.5), "±0.00 points, the same", "near"),
        (70.0, (71.1, None), "−1.10 points, below it", "worse"),
    ],
)
def test_the_difference_is_said_in_words_and_in_a_colour(ours, paper, words, tone):
    mark = against(ours, paper, Score("accuracy", percent=True))[1]
    assert (mark.text, mark.tone.value) == (words, tone)


def test_the_paper_stands_beside_ours(tmp_path):
    folder, _ = make_job(tmp_path)
    tree, text = write(folder, paper=(10.0, 0.5))
    assert "The paper prints 10.00 ± 0.50 %" in text
    assert [s.attributes["class"] for s in tree.all("span") if "points" in s.text()] == ["better"]


@pytest.mark.parametrize("kind", MODELS, ids=lambda m: m.__name__)
def test_every_model_has_a_report(kind, tmp_path):
    settings = {} if kind is us.models.SGC else {"hidden": 4}
    folder, _ = make_job(tmp_path, seeds=2, epochs=5, kind=kind, **settings)
    tree, _ = write(folder)
    problem = next(p.text() for p in tree.all("p") if p.attributes.get("class") == "maths")
    signs = re.sub(r"[_()]", "", read_job(folder).first.card["objective"])
    assert re.sub(r"[()]", "", problem) == signs
    titles = [f.text() for f in tree.all("text")]
    nonlinear = {
        "GCN",
        "GCNII",
        "AirGNN",
        "DAGNN",
        "MLP",
        "ElasticGNN",
        "PGNN",
        "TWIRLS",
        "SignedGNN",
        "TrustGNN",
        "FairGNN",
    }
    exact = kind.__name__ not in nonlinear
    assert ("frequency response" in titles) == exact
    assert ("hop coefficients" in titles) == (exact and kind.__name__ != "PPNP")


@pytest.mark.parametrize("kind", [us.models.GPRGNN, us.models.UGDGNN, us.models.APPNP], ids=lambda m: m.__name__)
def test_responses_are_what_the_propagation_does_to_eigenvectors(kind, tmp_path):
    folder, _ = make_job(tmp_path, seeds=3, epochs=2, kind=kind, classes=3, depth=4)
    found = learnt(read_job(folder).seeds)
    graph = us.graph.path(7).to(torch.float64)
    value, mode = np.linalg.eigh(np.eye(7) - graph.to_dense().numpy())
    for seed in range(3):
        net = load_pretrained(folder / f"seed{seed}").double().propagation
        gains = []
        for k in range(7):
            pair = [net(torch.tensor(np.outer(mode[:, k], unit)), graph).detach().numpy() for unit in np.eye(3)]
            h = np.stack([mode[:, k] @ out for out in pair])  # the map of channels at this frequency
            gains.append(h[0, 0] if kind is not us.models.UGDGNN else np.median(np.linalg.svd(h, compute_uv=False)))
        # The grid is fine and h smooth: compare where the eigenvalues lie between its points.
        drawn = np.interp(value, GRID.numpy(), found.gain.values[seed].numpy())
        np.testing.assert_allclose(drawn, gains, atol=2e-3)


def test_hop_coefficients_are_the_parameters(tmp_path):
    folder, _ = make_job(tmp_path, seeds=3, epochs=2, depth=4)
    gamma = np.stack([load_pretrained(folder / f"seed{k}").propagation.coefficients.detach().numpy() for k in range(3)])
    tree, text = write(folder)
    found = rows(table(tree, "Hop coefficients"))
    wanted = [[str(k), *(f"{v:.4f}".replace("-", "−") for v in (c.mean(), c.min(), c.max()))] for k, c in enumerate(gamma.T.astype(float))]  # fmt: skip
    assert found == wanted
    assert all("| " + " | ".join(row) + " |" in text for row in wanted)


def test_the_page_is_whole_and_alone(tmp_path):
    folder, _ = make_job(tmp_path, kind=us.models.UGDGNN, depth=3)
    data = datasets.grid(5, 5)
    tree, _ = write(folder, dataset=data, paper=(71.1, 0.5), command="unspool train UGDGNN")
    html = next(tree.all("html"))
    assert html.attributes["lang"] == "en"
    assert len(list(tree.all("main"))) == len(list(tree.all("h1"))) == len(list(tree.all("title"))) == 1
    everything = list(tree.all("*"))
    ids = [e.attributes["id"] for e in everything if "id" in e.attributes]
    assert len(set(ids)) == len(ids)
    for e in everything:
        assert "src" not in e.attributes
        assert e.attributes.get("href", "#").startswith("#")
        assert not any(name.startswith("on") for name in e.attributes)
    levels = [int(e.tag[1]) for e in everything if re.fullmatch(r"h\d", e.tag)]
    assert levels == [1] + [2] * (len(levels) - 1)
    assert len(list(tree.all("svg"))) == 4
    for svg in tree.all("svg"):
        assert svg.attributes["role"] == "img"
        assert re.search(r"\d", svg.attributes["aria-label"])
    assert all(next(f.all("figcaption")).text() for f in tree.all("figure"))
    assert all(next(t.all("caption")).text() for t in tree.all("table"))
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://|@import|url\((?!#)", text)
    assert str(tmp_path) not in text
    assert "density of the graph's λ" in text


def test_words_from_cards_are_words(tmp_path):
    evil = "<script>alert(1)</script>\x07\ud800$x^2$"

    def poison(value):
        if isinstance(value, dict):
            return {name: poison(part) for name, part in value.items()}
        if isinstance(value, list):
            return [poison(part) for part in value]
        return evil if isinstance(value, str) else value

    folder, _ = make_job(tmp_path)
    for k in range(3):
        edit(folder / f"seed{k}", lambda card: card.update(poison({n: v for n, v in card.items() if n not in ("format", "model", "weights", "settings")})))  # fmt: skip
    tree, text = write(folder)
    assert len(list(tree.all("script"))) == 1
    main = next(tree.all("main")).text()
    assert main.count("<script>alert(1)</script>") >= 15
    assert "<script" not in re.sub(r"```+\n.*?\n```+", "", text, flags=re.S)
    edit(folder / "seed0", lambda card: card.update(model=evil))
    tree, _ = write(folder)
    assert next(tree.all("h1")).text().startswith("<script>alert(1)</script>")
    assert len(list(tree.all("script"))) == 1


def test_the_same_folder_gives_the_same_bytes(tmp_path):
    folder, _ = make_job(tmp_path / "a", kind=us.models.UGDGNN, depth=3)
    file = report.training(folder)
    once = file.read_bytes(), file.with_suffix(".md").read_bytes()
    other = shutil.copytree(folder, tmp_path / "elsewhere" / "b")
    (tmp_path / "matplotlibrc").write_text(
        "font.size: 22\naxes.linewidth: 5\nxtick.major.size: 20\nsvg.fonttype: path\n"
    )
    code = (
        "import sys, torch; torch.set_num_threads(1); from unspool import report;"
        "assert not {'matplotlib', 'rich', 'click', 'scipy.stats', 'scipy.optimize'} & set(sys.modules);"
        f"report.training({str(other)!r}, {str(other / 'c.html')!r}); assert 'matplotlib.pyplot' not in sys.modules"
    )
    around = {**os.environ, "PYTHONHASHSEED": "7", "MATPLOTLIBRC": str(tmp_path / "matplotlibrc")}
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, env=around)
    assert ((other / "c.html").read_bytes(), (other / "c.md").read_bytes()) == once


def test_ten_long_seeds_stay_small(tmp_path):
    folder, _ = make_job(tmp_path, seeds=10, epochs=1000, kind=us.models.UGDGNN, depth=10)
    assert report.training(folder, dataset=datasets.grid(5, 5)).stat().st_size < 300_000


def test_without_matplotlib_it_says_so_and_keeps_its_tables(tmp_path, monkeypatch):
    folder, _ = make_job(tmp_path)
    full = write(folder)[1]
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    tree, text = write(folder)
    assert list(tree.all("svg")) == []
    assert "Figures are left out because matplotlib is not installed" in text
    count = [t.count("\n|") for t in (full, text)]
    assert count[0] == count[1]


def test_a_card_that_says_nothing_has_a_report(tmp_path):
    save_pretrained(us.models.SGC(4, 2), tmp_path / "seed0")
    tree, text = write(tmp_path)
    assert next(tree.all("h1")).text() == "SGC"
    for words in ("No score is recorded", "No epochs were kept", "does not say what it was trained on", "not recorded"):
        assert words in text


@pytest.mark.parametrize(
    "junk", ["x", None, {"epoch": "x", "test_score": [], "ending": 4, "seconds": {}, "config": {"lr": "x"}}]
)
def test_parts_of_cards_may_be_anything(junk, tmp_path):
    folder, _ = make_job(tmp_path, seeds=2)
    for name in ("seed0", "seed1"):
        parts = ("metrics", "trial", "data", "task", "versions", "derivation", "hardware")
        edit(folder / name, lambda card, parts=parts: card.update(dict.fromkeys(parts, junk)))
    assert "No score is recorded" in write(folder)[1]


def test_one_seed_has_no_spread(tmp_path):
    folder, _ = make_job(tmp_path, seeds=1)
    tree, _ = write(folder)
    words = next(tree.all("main")).text()
    assert "±" not in words
    assert "over 1 seed" not in words
    assert "One seed." in words


def test_a_job_without_test_nodes_shows_its_validation_score(tmp_path):
    folder, kept = make_job(tmp_path, seeds=2)
    for k, epochs in enumerate(kept):
        edit(folder / f"seed{k}", lambda card: card["metrics"].update(test_score=float("nan")))
        write_history(folder / f"seed{k}", [[*row[:4], "nan"] for row in epochs])
    tree, text = write(folder, paper=(71.1, 0.5))
    assert "validation accuracy, mean" in text
    assert "The job has no test score." in text
    assert "test score" not in [t.text() for t in tree.all("text")]


@pytest.mark.parametrize(("score", "shown"), [("−loss", "0.8000 ± 0.1414"), ("R²", "0.8000 ± 0.1414"), ("F₁ <b>", "0.8000 ± 0.1414")])  # fmt: skip
def test_other_scores_are_not_per_cent(score, shown, tmp_path):
    folder, _ = make_job(tmp_path, seeds=2)
    for k, value in enumerate((0.7, 0.9)):
        edit(folder / f"seed{k}", lambda card, value=value: (card["metrics"].update(test_score=value), card["task"].update(score=score)))  # fmt: skip
    tree, _ = write(folder, paper=(0.75, 0.01))
    words = next(tree.all("main")).text()
    assert f"{shown}\ntest {score}, mean" in words
    assert "ours is +0.0500, above it by more than its standard deviation." in words


def test_weights_that_are_gone_are_named(tmp_path):
    folder, _ = make_job(tmp_path)
    for file in (folder / "seed1").glob("*.safetensors"):
        file.unlink()
    tree, text = write(folder)
    assert "Seed 1 could not be read" in text
    assert "Hop coefficients, 2 seeds" in text
    assert len(rows(table(tree, "3 seeds"))) == 4


def test_a_seed_without_a_history_is_named(tmp_path):
    folder, _ = make_job(tmp_path)
    (folder / "seed2" / "history.csv").unlink()
    text = write(folder)[1]
    assert "not in the curves: seed 2" in text
    assert "means over 2 seeds" in text


def test_another_data_set_is_noticed_and_the_right_one_is_not(tmp_path):
    data = datasets.contextual_sbm(nodes=40, classes=2, seed=0)
    folder, _ = make_job(tmp_path, seeds=1)
    edit(folder / "seed0", lambda card: card["data"].update(hash=data.row_normalised().hash))
    assert "another one" not in write(folder, dataset=data)[1]
    assert "another one" in write(folder, dataset=datasets.grid(5, 5))[1]
    directed = us.Graph.from_edges(torch.tensor([[0, 1], [1, 2]]), directed=True)
    assert "density" not in write(folder, dataset=directed)[0].text()


def test_a_trained_job_ends_as_its_run(tmp_path):
    data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
    model = us.models.GPRGNN(data.features.shape[1], 2, hidden=8)
    run = train.fit(model, train.Task.of(data), train.TrainConfig(epochs=8))
    metrics = {"epoch": run.best.epoch, "test_score": run.best.test_score, "ending": run.ending.name.lower()}
    save_pretrained(model, tmp_path / "seed0", metrics=metrics)
    write_history(tmp_path / "seed0", [e.to_list() for e in run.history])
    tree, _ = write(tmp_path, dataset=data)
    row = rows(table(tree, "1 seed"))[0]
    assert row[:3] == ["0", str(run.best.epoch), "8"]
    assert row[5] == f"{run.best.test_score:.4f}"


def test_the_configuration_is_said_in_words(tmp_path):
    folder, _ = make_job(tmp_path, seeds=1, epochs=2)
    changes = {"stop": "above_mean", "patience": 7, "min_epochs": 200, "monitor": "valid_score"}
    edit(folder / "seed0", lambda card: card["trial"]["config"].update(changes))
    tree, text = write(folder)
    found = dict(rows(table(tree, "How it was trained")))
    assert found["preset"] == "paper"
    assert found["weight decay"] == "first 0.0005"
    assert found["ends early"] == train.TrainConfig(stop=train.Stop.ABOVE_MEAN, patience=7, min_epochs=200).stop_words()
    assert found["epoch kept"] == train.Monitor.VALID_SCORE.value
    assert not {"patience", "min_epochs", "stop"} & set(found)
    assert "chosen on the validation set: highest validation score" in text


def test_a_configuration_of_another_version_is_shown_as_it_is(tmp_path):
    folder, _ = make_job(tmp_path, seeds=1, epochs=2)
    edit(folder / "seed0", lambda card: card["trial"].update(config={"momentum": 0.9}))
    assert dict(rows(table(write(folder)[0], "How it was trained"))) == {"momentum": "0.9"}


# -- models of others --------------------------------------------------------------------------------------------------


class Elsewhere(us.models.Model):
    """A model that is not of this package."""

    def build(self):
        self.p_pre = us.nn.Linear(self.in_features, self.out_features)
        problem = us.Fidelity(0.2) + us.Smoothness(0.8)
        self.propagation = us.unroll(problem, us.GradientDescent(step=0.5), 3)


def test_a_model_of_ones_own_has_a_report_and_its_responses_where_the_class_is_given(tmp_path):
    folder, _ = make_job(tmp_path, seeds=2, epochs=5, kind=Elsewhere)
    tree, text = write(folder)
    assert next(tree.all("h1")).text().startswith(f"{Elsewhere.__module__}:Elsewhere on Toy")
    assert text.count("What it learnt is not shown") == 1
    assert "is not imported just because a file names it" in text
    tree, text = write(folder, model=Elsewhere)
    assert "What it learnt is not shown" not in text
    assert "frequency response" in [found.text() for found in tree.all("text")]


def test_nothing_is_imported_because_a_card_names_it(tmp_path):
    folder, _ = make_job(tmp_path / "job", seeds=1, epochs=2)
    (tmp_path / "trap_module.py").write_text("raise SystemExit('imported')")
    edit(folder / "seed0", lambda card: card.update(model="trap_module:Net"))
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from unspool import report; report.training({str(folder)!r})"
    subprocess.run([sys.executable, "-c", code], check=True)


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("paper", [71.1, (71.1,), (71.1, 0.5, 1), ("a", 0.5), (float("nan"), 1.0), (71.1, -1.0), "71"])
def test_a_paper_is_a_mean_and_a_deviation(paper, tmp_path):
    folder, _ = make_job(tmp_path, seeds=1, epochs=2)
    with pytest.raises(ValueError, match="expected \\(mean, standard deviation\\) as printed"):
        report.training(folder, paper=paper)


def test_a_paper_is_in_the_unit_of_the_score(tmp_path):
    folder, _ = make_job(tmp_path, seeds=1, epochs=2)
    for name in ("accuracy", "AUC"):
        edit(folder / "seed0", lambda card, name=name: card["task"].update(score=name))
        with pytest.raises(ValueError, match=f"{name} is compared in per cent"):
            report.training(folder, paper=(0.711, 0.005))
    edit(folder / "seed0", lambda card: card["task"].update(score="R²"))
    with pytest.raises(ValueError, match="R² is at most 1"):
        report.training(folder, paper=(71.1, 0.5))


def test_a_data_set_is_an_object(tmp_path):
    folder, _ = make_job(tmp_path, seeds=1, epochs=2)
    with pytest.raises(TypeError, match="dataset is str: expected a Dataset or a Graph"):
        report.training(folder, dataset="citeseer")


def test_files_that_cannot_be_written_are_one_sentence_and_leave_nothing(tmp_path, monkeypatch):
    folder, _ = make_job(tmp_path / "job", seeds=1, epochs=2)
    before = sorted(p.name for p in folder.iterdir())
    with pytest.raises(ValueError, match=r"report\.pdf: a report is a \.html file"):
        report.training(folder, folder / "report.pdf")
    with pytest.raises(FileNotFoundError, match="does not exist; make it first"):
        report.training(folder, tmp_path / "nowhere" / "r.html")
    (tmp_path / "r.html").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder; give the name of a file"):
        report.training(folder, tmp_path / "r.html")

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(PermissionError, match=r"cannot write .*report\.html: Permission denied"):
            report.training(folder)
    assert sorted(p.name for p in folder.iterdir()) == before
