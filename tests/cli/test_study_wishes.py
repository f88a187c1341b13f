"""Wishes about studies that cannot be granted: one sentence, exit code 2, nothing written."""

import shutil
import sqlite3
import sys

import pytest

from cli.people import ask, own, write_people
from cli.wishes import locked, without
from unspool import __version__
from unspool.cli.main import main


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = write_people(tmp_path_factory.mktemp("wishes"))
    small = [
        "study",
        "run",
        "GCN",
        "--dataset",
        "grid",
        "--epochs",
        "2",
        "--seeds",
        "2",
        "--hidden",
        "4",
        "--jobs",
        "1",
    ]
    ask(*small, "--out", folder / "one.db")
    ask(*small, "--out", folder / "waiting.db", "--seconds", "0.00001")
    (folder / "notes.txt").write_text("no study, but many words. " * 100)
    (folder / "empty.db").write_text("")
    with sqlite3.connect(folder / "other.db") as other:
        other.execute("CREATE TABLE a (b)")
    other.close()
    changed(folder / "bent.db", folder / "one.db", "UPDATE trial SET test_score = 0.999 WHERE number = 2")
    changed(folder / "older.db", folder / "one.db", "UPDATE meta SET value = '1' WHERE name = 'format'")
    return folder


def changed(target, file, change):
    shutil.copy(file, target)
    with sqlite3.connect(target) as link:
        link.execute(change)
    link.close()


def go(p, *words):
    return ["study", "run", "GCN", "--dataset", "grid", "--epochs", "2", "--jobs", "1", "--out", p / "new.db", *words]


def draw(p, *words):
    return go(p, "--random", "3", *words)


TAKES = "GCN takes hidden, depth, dropout, bias, batch_norm; the plan of all takes rate, decay, epochs, select, stop, patience, earliest, optimiser, precision"
COLUMNS = "model, data, hidden, rate, select, stop, patience, earliest, optimiser, precision, epochs, decay, seed, normalise_rows, preset"

OLDER = f"{{}}/older.db has format 1 and this version reads format 2, where trials are known by other keys; run the study again in another file, or read it with the unspool that wrote it ({__version__})"
BENT = "trial 2 in {}/bent.db is damaged; bring back a copy, or move it away to start anew"

#: (what is wrong, the command line in a folder, the sentence); {} stands for the folder.
STUDIES = [
    ("an unknown model", lambda p: ["study", "run", "GNC"], "no model called 'GNC'; did you mean SGC or GCN? There are SGC, PPNP, APPNP, JKNet, GPRGNN, GCN, GCNII, AirGNN, DAGNN, UGDGNN, MLP"),
    ("an unknown set", lambda p: go(p, "--dataset", "koraa"), "no data set 'koraa'; did you mean cora? Your own files: --edges FILE"),
    ("an unknown setting", lambda p: go(p, "--set", "detph=3"), f"--set detph=3: {TAKES}"),
    ("a setting without values", lambda p: go(p, "--set", "dropout"), "--set dropout: write --set NAME=V1,V2,..."),
    ("words in the place of numbers", lambda p: go(p, "--dropout", "much,little"), "--set dropout=much: expected numbers, with commas between them"),
    ("half a layer", lambda p: go(p, "--depth", "2.5"), "--set depth=2.5: expected whole numbers, with commas between them"),
    ("a rate of dropout above one", lambda p: go(p, "--dropout", "0.5,2"), "GCN(dropout=2.0) cannot be built: dropout rate 2.0: expected a number in [0, 1)"),
    ("a negative rate", lambda p: go(p, "--rate", "-1"), "--rate -1.0: a learning rate is a positive number"),
    ("a setting said twice", lambda p: go(p, "--rate", "0.1", "--set", "rate=0.2"), "--set rate=0.2: rate is said twice; give all its values in one list, rate=V1,V2,..."),
    ("seeds as a setting", lambda p: go(p, "--set", "seed=1,2"), "--set seed=1,2: seed is said with --seeds and --first-seed"),
    ("an unknown choice", lambda p: go(p, "--set", "select=best"), "--set select=best: choose from loss, accuracy, last"),
    ("an object as a setting", lambda p: [*go(p, "--set", "warm=0.5"), "GPRGNN"], "--set warm: warm of GPRGNN takes an object; set it in Python with study.grid(...)"),
    ("a range without a draw", lambda p: go(p, "--range", "rate=0.1:0.2"), "--range is drawn from at random; say how often with --random N, or give a list with --set"),
    ("a draw from nothing", draw, "--random has nothing to draw from; give --range NAME=LOW:HIGH, or --set NAME=V1,V2,..."),
    ("a range that runs backwards", lambda p: draw(p, "--range", "rate=0.2:0.1"), "--range rate=0.2:0.1: expected two finite ends, the lower one first"),
    ("factors from zero", lambda p: draw(p, "--range", "rate=0:0.1:log"), "--range rate=0:0.1:log: factors need a low end above 0; for 0 to 0.1 leave :log out"),
    ("half a range", lambda p: draw(p, "--range", "rate=0.1"), "--range rate=0.1: write LOW:HIGH, LOW:HIGH:log for factors, or LOW..HIGH for whole numbers"),
    ("a range of fractions for a depth", lambda p: draw(p, "--range", "depth=2:4"), "--range depth=2:4: depth is a whole number; write --range depth=LOW..HIGH"),
    ("a range of choices", lambda p: draw(p, "--range", "bias=0:1"), "--range bias=0:1: bias is no number; give a list with --set bias=V1,V2,..."),
    ("a range of an unknown setting", lambda p: draw(p, "--range", "detph=2..3"), f"--range detph=2..3: {TAKES}"),
    ("a range and a list", lambda p: draw(p, "--range", "rate=0.1:0.2", "--rate", "0.1"), "--range rate=0.1:0.2: rate is said twice; give one range, or one list"),
    ("the paper's grid and another", lambda p: go(p, "--paper-grid"), "--paper-grid is the paper's grid as it stands; leave the settings out, or write a grid with --set"),
    ("the paper's preset for one's own files", lambda p: ["study", "run", *own(p, "--label-column", "team"), "--preset", "paper"], "the preset 'paper' belongs to a named set; your own files are trained with --preset default"),
    ("own files without labels", lambda p: ["study", "run", *own(p)], "friends has no labels to learn from; give --labels FILE or --label-column NAME"),
    ("a device that is not there", lambda p: go(p, "--device", "nope"), "the device 'nope' cannot be used here; take 'cpu', or a torch that knows it"),
    ("a study in a text", lambda p: go(p, "--out", p / "notes.txt"), "{}/notes.txt is no study, or a damaged one; choose another file, or move it away to start anew"),
    ("a study in another program's file", lambda p: go(p, "--out", p / "other.db"), "{}/other.db belongs to another program; choose another file"),
    ("a study in a folder", lambda p: go(p, "--out", p), "{} is a folder; give the name of a file in it"),
    ("a study below a file", lambda p: go(p, "--out", p / "notes.txt" / "study.db"), "cannot write into {}/notes.txt: File exists; choose another place with --out"),
    ("the state of no study", lambda p: ["study", "status", p / "no.db"], "there is no study at {}/no.db; check the path, or run the study first"),
    ("the state of a text", lambda p: ["study", "status", p / "notes.txt"], "{}/notes.txt is no study, or a damaged one; choose another file, or move it away to start anew"),
    ("the best of a damaged study", lambda p: ["study", "best", p / "bent.db"], BENT),
    ("the state of a damaged study", lambda p: ["study", "status", p / "bent.db"], BENT),
    ("a damaged study as a table", lambda p: ["study", "export", p / "bent.db", p / "new.csv"], BENT),
    ("more of a damaged study", lambda p: go(p, "--out", p / "bent.db"), BENT),
    ("the best of an older study", lambda p: ["study", "best", p / "older.db"], OLDER),
    ("the state of an empty file", lambda p: ["study", "status", p / "empty.db"], "{}/empty.db is empty; run the study first"),
    ("the best of nothing finished", lambda p: ["study", "best", p / "waiting.db"], "no trial of {}/waiting.db has finished yet; see unspool study status {}/waiting.db"),
    ("the best on a set that is not there", lambda p: ["study", "best", p / "one.db", "--dataset", "cora"], "--dataset cora: {}/one.db has no trials on it; there are grid"),
    ("the best for each of an unknown setting", lambda p: ["study", "best", p / "one.db", "--each", "detph"], f"--each detph: no setting is called so; there are {COLUMNS}"),
    ("the best where nothing is", lambda p: ["study", "best", p / "one.db", "--where", "rate=7"], "--where rate=7: no finished trial has rate 7; there are 0.01"),
    ("a trial that is not there", lambda p: ["study", "show", p / "one.db", "99"], "{}/one.db has no trial 99; they are numbered 1 to 2, and unspool study export writes all keys"),
    ("one side of a comparison", lambda p: ["study", "compare", p / "one.db", "GCN"], "compare takes two sides, such as GCN UGDGNN or dropout=0.2 dropout=0.5; or --all alone"),
    ("a comparison with a model that is not there", lambda p: ["study", "compare", p / "one.db", "GCN", "SGC"], "side SGC: no finished trial has model SGC; there are GCN"),
    ("all pairs of one model", lambda p: ["study", "compare", p / "one.db", "--all"], "{}/one.db has one model; compare two settings of it, such as dropout=0.2 dropout=0.5"),
    ("what matters in one setting", lambda p: ["study", "importance", p / "one.db"], "1 finished setting: importance needs at least two that differ"),
    ("pictures below a file", lambda p: ["study", "plot", p / "one.db", "--out", p / "notes.txt" / "x"], "cannot write into {}/notes.txt/x: Not a directory; choose another place with --out"),
    ("a table of unknown ending", lambda p: ["study", "export", p / "one.db", p / "x.xlsx"], "x.xlsx: studies are written as .csv, .parquet, .json or .jsonl"),
    ("a table in a folder that is not there", lambda p: ["study", "export", p / "one.db", p / "no" / "x.csv"], "the folder {}/no does not exist; make it first"),
]  # fmt: skip

#: The same, where the machine is at fault: how gets a monkeypatch too.
DISTURBED = [
    ("a folder that may not be written", lambda p, patch: locked(patch, go(p, "--out", p / "new" / "study.db")), "cannot write into {}/new: Permission denied; choose another place with --out"),
    ("pictures without matplotlib", lambda p, patch: without(patch, "matplotlib.figure", ["study", "plot", p / "one.db", "--out", p / "pictures"]), "drawing needs matplotlib: pip install 'unspool[plot]'"),
]  # fmt: skip


def said(arguments, monkeypatch, capsys):
    """What a person reads, after a look at the exit code."""
    monkeypatch.setattr(sys, "argv", ["unspool", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    printed = capsys.readouterr()
    assert end.value.code == 2, printed.out + printed.err
    assert printed.err.startswith("unspool: ")
    assert printed.err.count("\n") == 1
    return printed.err.removeprefix("unspool: ").strip()


@pytest.mark.parametrize(("how", "sentence"), [case[1:] for case in STUDIES], ids=[case[0] for case in STUDIES])
def test_a_wish_that_cannot_be_granted(place, monkeypatch, capsys, how, sentence):
    assert said(how(place), monkeypatch, capsys) == sentence.replace("{}", str(place))
    assert not (place / "new.db").exists()


@pytest.mark.parametrize(("how", "sentence"), [case[1:] for case in DISTURBED], ids=[case[0] for case in DISTURBED])
def test_a_machine_at_fault(place, monkeypatch, capsys, how, sentence):
    assert said(how(place, monkeypatch), monkeypatch, capsys) == sentence.replace("{}", str(place))
