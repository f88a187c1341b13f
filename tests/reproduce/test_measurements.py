"""Single numbers: what is written is read again, groups are replaced alone, wrong files are named, tables say what files hold."""

import pytest

from unspool.reproduce.conditions import Condition, Factor, Nodes, Phase
from unspool.reproduce.records import MEASURED, Quantity, Results, example_measurement
from unspool.reproduce.results import keep_measurements, read, read_measurements
from unspool.reproduce.sections.measurements import (
    damage_blocks,
    damage_tables,
    identity_blocks,
    nonlinearity_blocks,
    signal_blocks,
)
from unspool.reproduce.sections.not_run import NotRun

COLUMNS = "experiment,dataset,model,factor,amount,phase,seed,quantity,nodes,value,settings"


def test_what_is_kept_is_read_again_and_other_cells_stay(tmp_path):
    first = [example_measurement(seed, model=model) for model in ("rows", "squares") for seed in range(3)]
    keep_measurements(tmp_path, "signals", first)
    assert read_measurements(tmp_path, "signals") == first
    again = [example_measurement(seed, model="rows", value=0.5) for seed in range(2)]
    keep_measurements(tmp_path, "signals", again)
    assert read_measurements(tmp_path, "signals") == [*first[3:], *again]
    assert read(tmp_path).measurements == [*first[3:], *again]  # a folder that holds nothing else


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,b\n1,2\n", "has no column 'experiment'"),
        (f"{COLUMNS}\nsignals,sensor,rows,outliers,10,always,x,error,all,0.1,{{}}\n", "row 2 cannot be read"),
        (f"{COLUMNS}\nsignals,sensor,rows,outliers,10,never,0,error,all,0.1,{{}}\n", "row 2 cannot be read"),
        (f"{COLUMNS}\nsignals,sensor,rows,outliers,10,always,0,error,all,nan,{{}}\n", "row 2 cannot be read"),
        (f"{COLUMNS}\nsignals,sensor\n", "row 2 is cut off"),
    ],
)
def test_a_file_that_is_not_one_of_ours_is_named(tmp_path, text, told):
    (tmp_path / "signals.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=told) as caught:
        read_measurements(tmp_path, "signals")
    assert "signals.csv" in str(caught.value)
    assert "unspool reproduce robust" in str(caught.value)


def test_an_unknown_experiment_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no experiment called 'table2' measures anything"):
        keep_measurements(tmp_path, "table2", [])


def test_tables_have_damaged_and_clean_nodes_apart():
    values = {
        (Quantity.ACCURACY, Nodes.ALL): 0.7,
        (Quantity.ACCURACY, Nodes.DAMAGED): 0.3,
        (Quantity.ACCURACY, Nodes.CLEAN): 0.8,
        (Quantity.LOST, Nodes.ALL): 0.1,
        (Quantity.LOST, Nodes.DAMAGED): 0.5,
        (Quantity.LOST, Nodes.CLEAN): 0.0,
    }
    condition = Condition(Factor.ENCODED_ROWS, 30.0, Phase.AFTER_TRAINING)
    common = {"experiment": "damage", "dataset": "cora", "model": "AirGNN", "condition": condition}
    found = [
        example_measurement(seed, quantity=quantity, nodes=nodes, value=value, **common)
        for seed in range(3)
        for (quantity, nodes), value in values.items()
    ]
    (table,) = damage_tables(found, condition.factor, condition.phase)
    assert [column.name for column in table.heads] == ["model", "nodes", "before", "length 30"]
    assert table.texts == [
        ("AirGNN", "all", "80.00", "70.00"),
        ("AirGNN", "damaged", "80.00", "30.00"),
        ("AirGNN", "clean", "80.00", "80.00"),
    ]


@pytest.mark.parametrize("blocks", [signal_blocks, damage_blocks, nonlinearity_blocks, identity_blocks])
def test_nothing_measured_names_the_command(blocks):
    assert [type(block) for block in blocks(Results([]))] == [NotRun]
    assert len(MEASURED) == 4
