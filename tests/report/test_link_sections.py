"""The parts of a report about links: the numbers of the cards, whatever the cards hold."""

import pytest

from report.jobs import edit, make_job
from unspool.report.link_sections import LinkNumbers, comparison, link_lead, link_sections, protocol_words
from unspool.report.seeds import read_job
from unspool.train import LinkBaseline


def metrics(auc, mrr):
    return {"auc": auc, "average_precision": auc, "mrr": mrr, "hits@1": 0.1, "hits@10": 0.5, "hits@50": 0.9}


def links(seed, **more):
    return {
        "protocol": {"seed": seed, "train": 80, "valid": 5, "test": 15, "ranked": 15, "rivals": 40},
        "network": metrics(0.8 + seed / 10, 0.4),
        "baselines": {"common_neighbours": metrics(0.7, 0.5), "adamic_adar": metrics(0.75, 0.3), "features": metrics(0.5, 0.2)},
        "histogram": {"bars": [-1.0, 0.0, 2.0], "links": [3, 12], "others": [10, 5]},
        **more,
    }  # fmt: skip


def change(folder, seed, **parts):
    edit(folder / f"seed{seed}", lambda card: card.update(parts))


@pytest.fixture
def folder(tmp_path):
    made, _ = make_job(tmp_path, seeds=2)
    for seed in range(2):
        change(made, seed, task={"kind": "links", "score": "AUC"}, links=links(seed))
    return made


def markdown(blocks):
    return "\n".join(block.markdown() for block in blocks)


def test_numbers_are_means_over_seeds(folder):
    found = LinkNumbers.of(read_job(folder))
    assert found.values(None, "auc") == [0.8, 0.9]
    assert found.mean(None, "auc") == pytest.approx(0.85)
    assert found.best_baseline("auc") is LinkBaseline.ADAMIC_ADAR
    assert found.best_baseline("mrr") is LinkBaseline.COMMON_NEIGHBOURS
    assert comparison(found) == [
        "AUC 85.00 %; the best score without training, Adamic–Adar, has 75.00 %.",
        "MRR 0.4000; the best score without training, common neighbours, has 0.5000: the network gains nothing over it.",
    ]


def test_sections_hold_table_protocol_and_commands(folder):
    job = read_job(folder)
    well, how, more = link_sections(job)
    assert "| the network | 85.00 ± 7.07 |" in markdown(well.blocks)
    assert "15 links around" in markdown(well.blocks)
    assert "Of 100 links, 5 (5.0 %) were held back to choose the epoch and 15 (15.0 %)" in markdown(how.blocks)
    assert "more than 40 rivals" in markdown(how.blocks)
    assert f"unspool predict {folder} --top 10" in markdown(more.blocks)
    assert "does as well" not in markdown(more.blocks)
    assert "50.00 % are among the first ten" in markdown(link_lead(job))


def test_a_network_that_gains_nothing_is_told_so(folder):
    for seed in range(2):
        change(folder, seed, links=links(seed, network=metrics(0.6, 0.1)))
    assert "Adamic–Adar does as well without training" in markdown(link_sections(read_job(folder))[-1].blocks)


def test_other_jobs_have_none_of_it(tmp_path):
    made, _ = make_job(tmp_path, seeds=1)
    assert link_sections(read_job(made)) == []
    assert link_lead(read_job(made)) == []


@pytest.mark.parametrize(
    "broken",
    [
        {}, {"network": 5, "baselines": [1], "histogram": "x", "protocol": None},
        {"network": {"auc": "high"}, "baselines": {"features": 1}, "histogram": {"bars": [1, 0], "links": [1], "others": [2]}},
        {"histogram": {"bars": [0, 1], "links": ["a"], "others": [2]}, "protocol": {"train": 1}},
    ],
)  # fmt: skip
def test_damaged_cards_break_nothing(folder, broken):
    for seed in range(2):
        change(folder, seed, links=broken)
    job = read_job(folder)
    assert markdown([block for section in link_sections(job) for block in section.blocks])
    assert markdown(link_lead(job))
    if broken:
        assert protocol_words(LinkNumbers.of(job).seeds[0]) == ["The card does not say how it was measured."]
