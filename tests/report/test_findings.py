"""Findings follow from numbers: the graph, the features, unbalanced classes, calibration, and what to do next."""

import numpy as np
import pytest

import unspool as us
from report.jobs import edit, make_job
from unspool.evaluate import Calibration, Uncalibrated, score_classes, score_numbers, score_probabilities
from unspool.evaluate.plain import to_plain
from unspool.report.evidence import Evidence
from unspool.report.findings import Topic, compare, findings, next_steps, unbalanced
from unspool.report.score import Score
from unspool.report.seeds import read_job
from unspool.report.text import Tone
from unspool.train.baselines import Baseline, Baselines, BaselineScore, Skipped, write_baselines
from unspool.train.evaluation import Evaluation, Miss, Mistake

pytestmark = pytest.mark.long


def evaluation(accuracy=0.7, share=0.5, nodes=1000, temperature=1.5, reason=None):
    """What a classifier of two classes would be evaluated to."""
    truth = (np.arange(nodes) >= share * nodes).astype(int)
    right = np.zeros(nodes, dtype=bool)
    right[np.random.default_rng(0).permutation(nodes)[: round(accuracy * nodes)]] = True
    chances = np.where((truth == 1) == right, 0.8, 0.2)
    both = np.stack([1 - chances, chances], 1)
    return Evaluation(
        items=nodes,
        classes=score_classes(both, truth),
        train_support=(40, 4),
        raw=score_probabilities(both, truth),
        calibrated=None if temperature is None else score_probabilities(both, truth),
        calibration=Calibration(temperature, 50, reason, 0.2, 0.1, 0.25, 0.05),
        mistakes=(Mistake(3, "<b>ada</b>", "cat", "dog", 0.93),),
    )


def job(folder, ours=0.7, features=0.6, graph=0.5, constant=0.5, seeds=2, score="accuracy", kind="classes", **more):
    """A job with evaluations and baselines, made without training."""
    made, _ = make_job(folder, seeds=seeds)
    found = more.pop("found", None)
    found = evaluation(ours, **more) if found is None else found
    for k in range(seeds):
        edit(made / f"seed{k}", lambda card: (
            card.update(evaluation=to_plain(found)), card["metrics"].update(test_score=ours), card["data"].update(fingerprint="f"),
            card["task"].update(score=score, kind=kind),
        ))  # fmt: skip
    values = {Baseline.CONSTANT: constant, Baseline.FEATURES: features, Baseline.GRAPH: graph}
    entries = tuple(
        BaselineScore(b, skipped=Skipped.LARGE) if v is None else BaselineScore(b, (v, v)) for b, v in values.items()
    )
    write_baselines(made, Baselines("k", "f", score, (0, 1), entries))
    return made


def read(folder):
    held = read_job(folder)
    return Evidence.of(held, Score.of(held, None))


def by_topic(found):
    return {one.topic: one for one in findings(found)}


@pytest.mark.parametrize(
    ("features", "tone"), [(0.6, Tone.BETTER), (0.69, Tone.NEAR), (0.71, Tone.NEAR), (0.8, Tone.WORSE)]
)
def test_the_graph_helps_where_it_beats_the_features_alone_by_more_than_chance(features, tone, tmp_path):
    found = read(job(tmp_path, features=features))
    said = by_topic(found)[Topic.GRAPH]
    assert said.tone is tone
    assert said.gap == pytest.approx(0.7 - features)
    chance = compare(found, Baseline.FEATURES).chance
    assert chance == pytest.approx(2 * np.sqrt((0.7 * 0.3 + features * (1 - features)) / 1000))


def test_few_nodes_decide_less(tmp_path):
    assert by_topic(read(job(tmp_path / "many", features=0.6)))[Topic.GRAPH].tone is Tone.BETTER
    small = read(job(tmp_path / "few", features=0.6, nodes=60))
    assert by_topic(small)[Topic.GRAPH].tone is Tone.NEAR
    assert any("--seeds 10" in step.text for step in next_steps(small))


def test_unbalanced_classes_are_remarked(tmp_path):
    found = read(job(tmp_path, ours=0.8, constant=0.8, features=0.8, graph=0.8, share=0.8))
    assert unbalanced(found) == pytest.approx(0.8)
    said = by_topic(found)[Topic.UNBALANCED]
    assert said.tone is Tone.WORSE
    assert (
        "80.0 % of the test nodes are one class (cat), so accuracy 80.00 is what always answering that class gives"
        in said.text
    )
    assert "--class-weight balanced" in next_steps(found)[0].text
    assert unbalanced(read(job(tmp_path / "even", share=0.5))) is None


def test_weighted_classes_are_not_weighted_again_and_their_probabilities_are_not_risks(tmp_path):
    place = job(tmp_path, ours=0.8, constant=0.8, share=0.8)
    for seed in ("seed0", "seed1"):
        edit(place / seed, lambda card: card["task"].update(class_weight="balanced"))
    found = read(place)
    assert not any("--class-weight" in step.text for step in next_steps(found))
    assert by_topic(found)[Topic.CALIBRATION].tone is Tone.WORSE


def test_the_features_alone_are_not_advised_where_the_graph_alone_is_best(tmp_path):
    steps = next_steps(read(job(tmp_path, ours=0.7, features=0.7, graph=0.9)))
    assert not any("MLP" in step.text for step in steps)


def test_calibration_says_which_way_or_why_not(tmp_path):
    sure = by_topic(read(job(tmp_path / "a", temperature=1.5)))[Topic.CALIBRATION]
    assert "too sure" in sure.text
    assert sure.gap == pytest.approx(0.25)
    assert "more often than it says" in by_topic(read(job(tmp_path / "b", temperature=0.5)))[Topic.CALIBRATION].text
    assert by_topic(read(job(tmp_path / "c", temperature=1.01)))[Topic.CALIBRATION].tone is Tone.BETTER
    none = by_topic(read(job(tmp_path / "d", temperature=None, reason=Uncalibrated.FEW_NODES)))[Topic.CALIBRATION]
    assert Uncalibrated.FEW_NODES.value in none.text


def test_steps_follow_from_numbers(tmp_path):
    steps = [one.text for one in next_steps(read(job(tmp_path / "a", features=0.9, graph=0.9)))]
    assert "unspool train MLP" in steps[0]
    assert "features" in steps[1]
    good = read(job(tmp_path / "b", seeds=3))
    assert len(next_steps(good)) == 1
    for k in range(3):
        edit(tmp_path / "b" / f"seed{k}", lambda card: card["metrics"].update(epoch=20, epochs=20))
    assert "--epochs 40" in next_steps(read(tmp_path / "b"))[0].text
    assert "--seeds 10" in next_steps(read(job(tmp_path / "c", seeds=1)))[-1].text


def test_baselines_of_other_data_do_not_count(tmp_path):
    made = job(tmp_path)
    assert read(made).baselines is not None
    for k in range(2):
        edit(made / f"seed{k}", lambda card: card["data"].update(fingerprint="other"))
    assert read(made).baselines is None
    assert Topic.GRAPH not in by_topic(read(made))


@pytest.mark.parametrize(
    "junk", [3, "x", {"items": "x"}, {"classes": {"nodes": 3}}, {"mistakes": [{"node": 1}]}, {"raw": {"bins": 1}}]
)
def test_evaluations_may_be_anything(junk, tmp_path):
    made = job(tmp_path)
    for k in range(2):
        edit(made / f"seed{k}", lambda card: card.update(evaluation=junk))
    assert read(made).evaluations == ()
    assert us.report.training(made).is_file()


def test_lists_of_different_lengths_are_not_an_evaluation(tmp_path):
    made = job(tmp_path)
    for k in range(2):
        edit(made / f"seed{k}", lambda card: card["evaluation"]["classes"].update(recall=[0.5]))
    assert read(made).classes == []


def test_numbers_have_an_rmse_and_misses(tmp_path):
    truth, said = np.arange(50.0), np.arange(50.0) + 2
    found = Evaluation(
        items=50, numbers=(score_numbers(said, truth, 20.0),), points=tuple(zip(truth.tolist(), said.tolist(), strict=True)),
        misses=(Miss(4, "sensor4", 4.0, 6.0),),
    )  # fmt: skip
    made = job(tmp_path, ours=0.98, features=0.5, graph=0.2, constant=-0.1, score="R²", kind="numbers", found=found)
    text = us.report.training(made).with_suffix(".md").read_text(encoding="utf-8")
    assert "RMSE 2 (always the training mean: " in text
    assert "| sensor4 | 4 | 6 | +2 |" in text
    assert "The graph helps: 0.4800 in R² above an MLP on the features alone (0.5000)" in text
    assert "Scatter plot of predicted against true numbers of 50 test nodes" in text


def test_a_kind_of_a_later_version_has_fewer_entries(tmp_path):
    made = job(tmp_path, kind="hypergraphs", found=Evaluation(items=7), graph=None)
    found = read(made)
    assert set(by_topic(found)) <= {Topic.GRAPH, Topic.CONSTANT}
    assert "Skipped" not in us.report.training(made).read_text(encoding="utf-8")
