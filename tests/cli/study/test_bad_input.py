"""What cannot be done with studies: one sentence, exit code 2, nothing written."""

import shutil
import sqlite3
import sys

import pytest

from cli.bad_input import locked, without
from cli.people import ask, own, write_people
from cli.study.resealed import resealed
from unspool import __version__
from unspool.cli.main import main

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = write_people(tmp_path_factory.mktemp("studies"))
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
    resealed(folder / "named.db", folder / "one.db", trial={"model": "os:system"})
    resealed(folder / "sourced.db", folder / "one.db", source={"dataset": "os:getcwd"})
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


TAKES = "expected a setting of GCN, which takes hidden, depth, dropout, bias, batch_norm; did you mean depth?"
COLUMNS = "model, data, hidden, depth, dropout, bias, batch_norm, lr, epochs, monitor, stop, patience, min_epochs, optimiser, precision, lower_level, lr_schedule, lr_epochs, clip, upper, batch_size, weight_decay, seed, normalise_rows, preset"

OLDER = f"{{}}/older.db has format 1 and this version reads format 3, where trials have other keys; run the study again in another file, or read it with the unspool that wrote it ({__version__})"
BENT = "trial 2 in {}/bent.db is damaged; restore a copy, or move it away to start again"

#: (what is wrong, the command line in a folder, the sentence); {} stands for the folder.
STUDIES = [
    ("an unknown model", lambda p: ["study", "run", "GNC"], "MODEL GNC: expected the name of a model (SGC, PPNP, APPNP, JKNet, GPRGNN, GCN, GCNII, AirGNN, DAGNN, UGDGNN, MLP, ElasticGNN, PGNN, TWIRLS, GNNLF, GNNHF, GRAFF, FairGNN, SignedGNN, TrustGNN, StableGNN, GraphFirstGPRGNN, GraphFirstUGDGNN, SIGN), or package.module:Class for one of your own; did you mean SGC or GCN?"),
    ("an unknown set", lambda p: go(p, "--dataset", "koraa"), "--dataset koraa: expected the name of a data set; did you mean cora? Your own files: --edges"),
    ("an unknown setting", lambda p: go(p, "--setting", "detph=3"), f"--setting detph: {TAKES}"),
    ("a setting that none of the models has", lambda p: [*go(p, "--setting", "detph=3"), "SGC"], "--setting detph: expected a setting of one of the models: GCN takes hidden, depth, dropout, bias, batch_norm; SGC takes depth, bias, weights; did you mean depth?"),
    ("a setting without values", lambda p: go(p, "--setting", "dropout"), "--setting dropout: write --setting NAME=VALUE"),
    ("words in the place of numbers", lambda p: go(p, "--dropout", "much,little"), "--setting dropout=much: expected a number in [0, 1)"),
    ("half a layer", lambda p: go(p, "--depth", "2.5"), "--setting depth=2.5: expected a whole number from 1 to 10000; to solve the problem exactly take PPNP, or --lower-level exact"),
    ("a rate of dropout above one", lambda p: go(p, "--dropout", "0.5,2"), "--setting dropout=2: expected a number in [0, 1)"),
    ("a negative rate", lambda p: go(p, "--lr", "-1"), "--lr -1: expected a finite number above 0"),
    ("a setting said twice", lambda p: go(p, "--lr", "0.1", "--setting", "lr=0.2"), "--setting lr=0.2: lr is given twice; give all its values in one list, --lr V1,V2,..."),
    ("seeds as a setting", lambda p: go(p, "--setting", "seed=1,2"), "--setting seed=1,2: seed is set with --seeds and --first-seed"),
    ("an unknown choice", lambda p: go(p, "--setting", "monitor=best"), "--monitor best: expected one of valid_loss, valid_score, train_loss, last_epoch"),
    ("an unknown rule for stopping", lambda p: go(p, "--stop", "soon,never"), "--stop soon: expected one of never, patience, above_mean"),
    ("a decay of a group that is not there", lambda p: go(p, "--weight-decay", "first=0.1,last=0.1"), "--weight-decay last=0.1: expected names of groups of parameters, which are first, convolution"),
    ("an exact solution where there is none", lambda p: [*go(p, "--lower-level", "unrolled,exact"), "APPNP"], "GCN() cannot be built: GCN cannot be solved exactly: its layers do not share one problem with a minimiser; take APPNP or PPNP, or keep the unrolled steps"),
    ("an optimiser that has no decay", lambda p: go(p, "--optimiser", "lbfgs"), "LBFGS has no weight decay; give --weight-decay 0, or another optimiser"),
    ("a setting that does not fit another", lambda p: [*go(p, "--setting", "warm=0.5"), "GPRGNN"], "GPRGNN(warm=0.5) cannot be built: warm= is given, but --setting start=ppr does not take it; take --setting start=warm"),
    ("a range without a draw", lambda p: go(p, "--range", "lr=0.1:0.2"), "--range is for random draws; give their number with --random N, or give a list of values"),
    ("a range that runs backwards", lambda p: draw(p, "--range", "lr=0.2:0.1"), "--range lr=0.2:0.1: expected two finite ends, the lower one first"),
    ("factors from zero", lambda p: draw(p, "--range", "lr=0:0.1:log"), "--range lr=0:0.1:log: expected a low end above 0 for a log range; otherwise leave :log out"),
    ("half a range", lambda p: draw(p, "--range", "lr=0.1"), "--range lr=0.1: write LOW:HIGH, LOW:HIGH:log for a log range, or LOW..HIGH for whole numbers"),
    ("a range of fractions for a depth", lambda p: draw(p, "--range", "depth=2:4"), "--range depth=2:4: depth is a whole number; write --range depth=LOW..HIGH"),
    ("a range of choices", lambda p: draw(p, "--range", "bias=0:1"), "--range bias=0:1: bias is not a number; give a list with --setting bias=V1,V2,..."),
    ("a range of an unknown setting", lambda p: draw(p, "--range", "detph=2..3"), f"--range detph=2..3: {TAKES}"),
    ("a range and a list", lambda p: draw(p, "--range", "lr=0.1:0.2", "--lr", "0.1"), "--range lr=0.1:0.2: lr is given twice; give one range, or one list"),
    ("the paper's grid and another", lambda p: go(p, "--paper-grid"), "--paper-grid is a fixed grid; leave the settings out, or give lists of values"),
    ("the paper's preset for one's own files", lambda p: ["study", "run", *own(p, "--label-column", "team"), "--preset", "paper"], "--preset paper: expected default or stable for your own files; the others belong to named data sets"),
    ("own files without labels", lambda p: ["study", "run", *own(p)], "--label-column: expected a column of classes, as friends has no labels to learn from; or give them with --labels"),
    ("numbers without their column", lambda p: ["study", "run", *own(p, "--label-column", "team"), "--loss", "numbers"], "--target-column: expected a column of numbers, which the loss numbers learns from"),
    ("yes and no for four classes", lambda p: go(p, "--loss", "binary"), "--loss binary: expected two classes to tell apart, and grid 20×20 has 4"),
    ("more trials than fit", lambda p: go(p, "--seeds", "100000", "--dropout", "0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,0.95"), "11 settings × 100,000 seeds are more than 1,000,000 trials; give fewer values, or draw some at random"),
    ("a device that is not there", lambda p: go(p, "--device", "nope"), "--device nope: expected a device that can be used here; take 'cpu', or a torch that supports it"),
    ("a study in a text", lambda p: go(p, "--out", p / "notes.txt"), "{}/notes.txt is not a study, or a damaged one; choose another file, or move it away to start again"),
    ("a study in another program's file", lambda p: go(p, "--out", p / "other.db"), "{}/other.db belongs to another program; choose another file"),
    ("a study in a folder", lambda p: go(p, "--out", p), "{} is a folder; give the name of a file in it"),
    ("a study below a file", lambda p: go(p, "--out", p / "notes.txt" / "study.db"), "cannot write into {}/notes.txt: File exists; choose another place with --out"),
    ("the state of no study", lambda p: ["study", "status", p / "no.db"], "there is no study at {}/no.db; check the path, or run the study first"),
    ("the state of a text", lambda p: ["study", "status", p / "notes.txt"], "{}/notes.txt is not a study, or a damaged one; choose another file, or move it away to start again"),
    ("the best of a damaged study", lambda p: ["study", "best", p / "bent.db"], BENT),
    ("the state of a damaged study", lambda p: ["study", "status", p / "bent.db"], BENT),
    ("a damaged study as a table", lambda p: ["study", "export", p / "bent.db", p / "new.csv"], BENT),
    ("more of a damaged study", lambda p: go(p, "--out", p / "bent.db"), BENT),
    ("the best of an older study", lambda p: ["study", "best", p / "older.db"], OLDER),
    ("the state of an empty file", lambda p: ["study", "status", p / "empty.db"], "{}/empty.db is empty; run the study first"),
    ("the best of nothing finished", lambda p: ["study", "best", p / "waiting.db"], "no trial of {}/waiting.db has finished yet; see unspool study status {}/waiting.db"),
    ("the best on a set that is not there", lambda p: ["study", "best", p / "one.db", "--dataset", "cora"], "--dataset cora: {}/one.db has no trials on it; it has grid"),
    ("the best for each of an unknown setting", lambda p: ["study", "best", p / "one.db", "--each", "detph"], f"--each detph: there is no such setting; the settings are {COLUMNS}"),
    ("the best where nothing is", lambda p: ["study", "best", p / "one.db", "--where", "lr=7"], "--where lr=7: no finished trial has lr 7; the values are 0.01"),
    ("a trial that is not there", lambda p: ["study", "show", p / "one.db", "99"], "{}/one.db has no trial 99; they are numbered 1 to 2, and unspool study export writes all keys"),
    ("the network of a trial that is not there", lambda p: ["study", "model", p / "one.db", "99", "--out", p / "new"], "{}/one.db has no trial 99; they are numbered 1 to 2, and unspool study export writes all keys"),
    ("the network of a trial that waits", lambda p: ["study", "model", p / "waiting.db", "1", "--out", p / "new"], "trial 1 of {}/waiting.db has no trained network: it is waiting; run the study again to train it"),
    ("the network of a trial under another class", lambda p: ["study", "model", p / "one.db", "1", "--model", "torch.nn:Linear", "--out", p / "new"], "the file holds a model GCN, and not torch.nn.modules.linear:Linear; name that one"),
    ("the network of a trial on other data", lambda p: ["study", "model", p / "one.db", "1", "--dataset", "contextual_sbm", "--out", p / "new"], "trial 1 was trained on grid with the fingerprint 7a7f06c803f43d43-8dde33a3, and these data have 08478fc1d6e96d28-33b4dbce; give the data, the split and the loss that it was trained with"),
    ("the network of a trial of a class that the file names", lambda p: ["study", "model", p / "named.db", "1", "--out", p / "new"], "the file holds a model os:system, which is not imported just because a file names it; if you trust it, give the class with --model"),
    ("the network of a trial on data that the file names", lambda p: ["study", "model", p / "sourced.db", "1", "--out", p / "new"], "the study was run on os:getcwd, which is not imported just because a file names it; name it with --dataset"),
    ("a network below a file", lambda p: ["study", "model", p / "one.db", "1", "--out", p / "notes.txt" / "x"], "cannot write into {}/notes.txt/x: Not a directory; choose another place with --out"),
    ("one side of a comparison", lambda p: ["study", "compare", p / "one.db", "GCN"], "compare takes two sides, such as GCN UGDGNN or dropout=0.2 dropout=0.5; or --all alone"),
    ("a comparison with a model that is not there", lambda p: ["study", "compare", p / "one.db", "GCN", "SGC"], "side SGC: no finished trial has model SGC; the values are GCN"),
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
def test_the_sentence_of_a_command(place, monkeypatch, capsys, how, sentence):
    assert said(how(place), monkeypatch, capsys) == sentence.replace("{}", str(place))
    assert not (place / "new.db").exists()


@pytest.mark.parametrize(("how", "sentence"), [case[1:] for case in DISTURBED], ids=[case[0] for case in DISTURBED])
def test_a_machine_at_fault(place, monkeypatch, capsys, how, sentence):
    assert said(how(place, monkeypatch), monkeypatch, capsys) == sentence.replace("{}", str(place))
