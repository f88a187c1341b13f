"""Commands that cannot be carried out: what is wrong with each, and the sentence that it gets."""

import errno
import importlib.util
import os
import sys

from cli.people import own
from unspool import models
from unspool.models.pretrained import read_card, save_pretrained, write_card
from unspool.train import Trial


def want(p, *more, model="GCN"):
    """Train on the people."""
    return ["train", model, "--epochs", "3", "--quiet", "--no-report", "--out", p / "out", *own(p), *more]


def team(p, *more, model="GCN"):
    return want(p, "--label-column", "team", *more, model=model)


def continued(p, *more, job="classes"):
    """Train into a folder that holds a finished job, or one that was cut off."""
    small = ["train", "GCN", "--epochs", "15", "--setting", "hidden=8", "--quiet", "--no-report"]
    return [*small, "--out", p / job, "--resume", *own(p), "--label-column", "team", *more]


def changed(p, old, new, file="people.csv"):
    """Change a file of the people, and train."""
    text = (p / file).read_text()
    assert old in text
    (p / file).write_text(text.replace(old, new, 1))
    return team(p)


def table(p, text, *more, file="t.csv", model="GCN"):
    """Train on a table of features of its own."""
    (p / file).write_text(text)
    named = ["--edges", p / "e.csv", "--features", p / file]
    (p / "e.csv").write_text("source,target\n0,1\n1,2\n2,3\n3,4\n4,5\n5,0\n0,3\n")
    return ["train", model, "--epochs", "3", "--quiet", "--no-report", "--out", p / "out", *named, *more]


X = "a,b,label\n1,2,x\n1,3,x\n1,4,x\n2,2,y\n2,3,y\n2,4,y\n"


def card(p, change, job="classes/seed0"):
    """Change the card of a model, and predict with it."""
    held = read_card(p / job)
    write_card(p / job, change(held) or held)
    return predict(p, job)


def predict(p, job="classes/seed0", *more):
    return ["predict", p / job, "--out", p / "out.csv", *more]


def pairs(p, text):
    """Score the pairs of a file."""
    (p / "pairs.csv").write_text(text)
    return predict(p, "links", "--pairs", p / "pairs.csv")


def explain(p, node, *more, job="classes/seed0"):
    return ["explain", p / job, "--node", node, *more]


def clean(p, *more, edges="friends.csv", features="signals.csv"):
    return ["denoise", "--edges", p / edges, "--features", p / features, "--out", p / "out.csv", *more]


def spectrum(p, job, *more):
    return ["spectrum", p / job, "--out", p / "out.png", *more]


def write(p, name, text=""):
    (p / name).write_text(text)
    return p / name


#: (what is wrong, the command line in a folder, the sentence); {} stands for the folder.
COMMANDS = [
    # train: what is trained
    ("an unknown model", lambda p: want(p, model="GNC"), "MODEL GNC: expected the name of a model (SGC, PPNP, APPNP, JKNet, GPRGNN, GCN, GCNII, AirGNN, DAGNN, UGDGNN, MLP, ElasticGNN, PGNN, TWIRLS, GNNLF, GNNHF, GRAFF, FairGNN, SignedGNN, TrustGNN, StableGNN, GraphFirstGPRGNN, GraphFirstUGDGNN, SIGN), or package.module:Class for one of your own; did you mean SGC or GCN?"),
    ("a class of a file", lambda p: want(p, model="my_models.py:Net"), "MODEL my_models.py:Net: expected package.module:Class of something that can be imported; write it without .py: my_models:Net"),
    ("a class of a module that is not there", lambda p: want(p, model="no_such_module:Net"), "MODEL no_such_module:Net: expected package.module:Class of something that can be imported; there is no module no_such_module here or among the installed packages"),
    ("a class that is not in its module", lambda p: want(p, model="torch.nn:Nett"), "MODEL torch.nn:Nett: expected package.module:Class, and torch.nn has no Nett"),
    ("a function in the place of a class", lambda p: want(p, model="torch.nn.functional:relu"), "MODEL torch.nn.functional:relu: expected a class of models, that is, a subclass of torch.nn.Module"),
    ("a name of a class without its module", lambda p: want(p, model=":Net"), "MODEL :Net: expected package.module:Class, with the name of a module before the colon"),
    ("an unknown data set", lambda p: ["train", "--dataset", "koraa", "--out", p / "out"], "--dataset koraa: expected the name of a data set; did you mean cora? Your own files: --edges"),
    ("a function of a module that is not there", lambda p: ["train", "--dataset", "no_such_module:roads", "--out", p / "out"], "--dataset no_such_module:roads: expected package.module:function of something that can be imported; there is no module no_such_module here or among the installed packages"),
    ("a function that gives no data set", lambda p: ["train", "--dataset", "os:getcwd", "--out", p / "out"], "--dataset os:getcwd: expected a function that gives an unspool.datasets.Dataset, and it gives a str"),
    ("a preset of a named set for your own files", lambda p: team(p, "--preset", "paper"), "--preset paper: expected default or stable for your own files; the others belong to named data sets"),
    ("a preset that nobody published", lambda p: ["train", "GCNII", "--dataset", "cs", "--preset", "official", "--out", p / "out"], "GCNII has no official setting on cs: its authors publish none for this model that we know (for ogbn-arxiv some run a different network); use the preset paper"),
    ("a preset for a set that has none", lambda p: ["train", "--dataset", "grid", "--preset", "paper", "--out", p / "out"], "--preset paper: expected a dataset of the paper (cora, citeseer, pubmed, cs, physics, photo, arxiv), and this is grid; take the preset default, which fits any"),
    ("an unknown setting", lambda p: team(p, "--setting", "hiden=4"), "--setting hiden: expected a setting of GCN, which takes hidden, depth, dropout, bias, batch_norm; did you mean hidden?"),
    ("a setting without a value", lambda p: team(p, "--setting", "hidden"), "--setting hidden: write --setting NAME=VALUE"),
    ("a setting said twice", lambda p: team(p, "--dropout", "0.1", "--setting", "dropout=0.2"), "--setting dropout=0.2: dropout is given twice; give it once"),
    ("training as a setting of the model", lambda p: team(p, "--setting", "weight-decay=0.1"), "--setting weight-decay=0.1: weight_decay belongs to training, not to the model; write --weight-decay 0.1"),
    ("a setting that is not a number", lambda p: team(p, "--setting", "hidden=many"), "--setting hidden=many: expected a whole number of at least 1"),
    ("a setting that is neither true nor false", lambda p: team(p, "--setting", "bias=perhaps"), "--setting bias=perhaps: expected true or false"),
    ("a setting that is not one of its choices", lambda p: team(p, "--setting", "combine=loudest", model="JKNet"), "--setting combine=loudest: expected one of sum, concatenate, max"),
    ("no hidden channels", lambda p: team(p, "--setting", "hidden=0"), "--setting hidden=0: expected a whole number of at least 1"),
    ("a million layers", lambda p: team(p, "--setting", "depth=1000000", model="APPNP"), "--setting depth=1000000: expected a whole number from 1 to 10000; to solve the problem exactly take PPNP, or --lower-level exact"),
    ("a dropout rate of two", lambda p: team(p, "--setting", "dropout=2"), "--setting dropout=2: expected a number in [0, 1)"),
    ("an exact solution where there is none", lambda p: team(p, "--lower-level", "exact", model="UGDGNN"), "UGDGNN cannot be solved exactly: its layers do not share one problem with a minimiser; take APPNP or PPNP, or keep the unrolled steps"),
    ("an exact solution with masks for each hop", lambda p: team(p, "--lower-level", "exact", "--setting", "masks=each_hop", model="APPNP"), "APPNP cannot be solved exactly: a minimiser has no hops that masks could differ on; build it with --setting masks=once"),
    ("masks for each hop where there are none", lambda p: team(p, "--setting", "masks=each_hop", "--setting", "layers=general", model="UGDGNN"), "--setting masks=each_hop: the K steps of --setting layers=general have no hops to mask one by one; take --setting layers=reduced or --setting masks=once"),
    ("coefficients to begin with that are not asked for", lambda p: team(p, "--setting", "warm=0.5/0.5", "--depth", "1", model="GPRGNN"), "warm= is given, but --setting start=ppr does not take it; take --setting start=warm"),
    ("too few coefficients to begin with", lambda p: team(p, "--setting", "warm=0.5/0.5", "--setting", "start=warm", "--depth", "3", model="GPRGNN"), "--setting start=warm needs warm= with 4 numbers, γ₀ to γ_3"),
    ("classes that are joined from hidden layers", lambda p: team(p, "--setting", "combine=max", "--setting", "channels=classes", model="JKNet"), "--setting channels=classes: --setting combine=max joins hidden layers; take --setting channels=hidden or --setting combine=sum"),
    # train: how
    ("an unknown optimiser", lambda p: team(p, "--optimiser", "adem"), "--optimiser adem: expected the name of a class of torch.optim, such as adamw, sgd, rmsprop or lbfgs"),
    ("an optimiser that needs sparse gradients", lambda p: team(p, "--optimiser", "sparseadam"), "--optimiser sparseadam: expected the name of a class of torch.optim, such as adamw, sgd, rmsprop or lbfgs"),
    ("an optimiser that has no decay by group", lambda p: team(p, "--optimiser", "lbfgs", model="GPRGNN"), "--optimiser lbfgs cannot decay some parameters and not others; add --weight-decay 0"),
    ("an optimiser that has no decay at all", lambda p: team(p, "--optimiser", "lbfgs"), "LBFGS has no weight decay; give --weight-decay 0, or another optimiser"),
    ("a negative learning rate", lambda p: team(p, "--lr", "-1"), "--lr -1: expected a finite number above 0"),
    ("a learning rate that is not a number", lambda p: team(p, "--lr", "nan"), "--lr nan: expected a finite number above 0"),
    ("a learning rate under which training diverges", lambda p: team(p, "--lr", "1e30"), "the validation loss is not finite in epoch 1: the learning rate 1e+30 is probably too large (or a feature is huge); lower it or scale the features"),
    ("a negative decay", lambda p: team(p, "--weight-decay", "-1"), "--weight-decay -1: expected a number of at least 0, or one for each group of parameters"),
    ("a decay of a group that is not a number", lambda p: team(p, "--weight-decay", "first=much"), "--weight-decay first=much: expected a number of at least 0, or one for each group of parameters"),
    ("a decay of a group that is not there", lambda p: team(p, "--weight-decay", "frist=0.1"), "--weight-decay frist=0.1: expected names of groups of parameters, which are first, convolution"),
    ("an unknown monitor", lambda p: team(p, "--monitor", "test_score"), "--monitor test_score: expected one of valid_loss, valid_score, train_loss, last_epoch"),
    ("an unknown rule for stopping", lambda p: team(p, "--stop", "soon"), "--stop soon: expected one of never, patience, above_mean"),
    ("no patience", lambda p: team(p, "--patience", "0"), "--patience 0: expected a whole number of at least 1"),
    ("a negative number of epochs", lambda p: team(p, "--min-epochs", "-1"), "--min-epochs -1: expected a whole number of at least 0"),
    ("no epochs", lambda p: team(p, "--epochs", "0"), "--epochs 0: expected a whole number of at least 1"),
    ("an unknown precision", lambda p: team(p, "--precision", "half"), "--precision half: expected one of full, bfloat16"),
    ("an unknown lower level", lambda p: team(p, "--lower-level", "implicit"), "--lower-level implicit: expected one of unrolled, exact"),
    ("a GPU where there is none", lambda p: team(p, "--device", "cuda"), "--device cuda: expected a device that can be used here; take 'cpu', or a torch that supports it"),
    ("an unknown device", lambda p: team(p, "--device", "gpu"), "--device gpu: expected a device that can be used here; take 'cpu', or a torch that supports it"),
    # train: losses
    ("yes and no for three classes", lambda p: team(p, "--loss", "binary"), "--loss binary: expected two classes to tell apart, and friends has 3"),
    ("numbers without their column", lambda p: want(p, "--loss", "numbers"), "--target-column: expected a column of numbers, which the loss numbers learns from"),
    ("ranking without numbers", lambda p: team(p, "--loss", "ranking"), "--target-column: expected a column of numbers, which the loss ranking learns from"),
    ("ranking by two numbers", lambda p: want(p, "--target-column", "price", "--target-column", "size", "--loss", "ranking"), "--loss ranking: expected one column of numbers to order nodes by; give one --target-column"),
    ("classes out of numbers", lambda p: want(p, "--target-column", "price", "--loss", "classes"), "--label-column: expected a column of classes, as friends has no labels to learn from; or give them with --labels"),
    ("a class without a weight", lambda p: team(p, "--class-weight", "red=1"), "--class-weight: expected a weight for each class, and 'blue' has none; give it 1 to let it count as it is"),
    ("a weight without a class", lambda p: team(p, "--class-weight", "red"), "--class-weight red: expected balanced alone, or CLASS=WEIGHT once for each class, such as yes=5"),
    ("a weight of an unknown class", lambda p: team(p, "--class-weight", "pink=1"), "--class-weight: expected weights of blue, green, red, and 'pink' is not one of them"),
    ("a negative weight of a class", lambda p: team(p, "--class-weight", "red=-2"), "--class-weight: expected finite numbers of at least 0, and the weight of 'red' is -2.0"),
    ("weights of classes for numbers", lambda p: want(p, "--target-column", "price", "--class-weight", "balanced"), "--class-weight: expected none with the loss numbers, which has no classes; nodes are weighed with --sample-weight-column"),
    ("a column of weights that holds words", lambda p: team(p, "--sample-weight-column", "part"), "people.csv, line 3, column 'part': 'train' is not a weight: weights are finite numbers of at least 0; correct the line"),
    ("weights without an answer", lambda p: want(p, "--sample-weight-column", "size"), "--sample-weight-column size: expected labels or numbers as well; name them with --labels or --label-column"),
    ("an order that names do not tell", lambda p: team(p, "--loss", "ordinal"), "--class-order: expected the classes from the lowest to the highest, as names do not tell: blue, green, red; give them in their order, with commas between"),
    ("an order of some classes", lambda p: team(p, "--class-order", "red,green"), "--class-order red, green: expected every class once, and friends has blue, green, red"),
    ("several labels in one column", lambda p: team(p, "--loss", "multilabel"), "--label-column: expected several columns of 1 (yes) and 0 (no), each named by itself; name two or more"),
    ("several labels that are classes", lambda p: team(p, "--label-column", "vip"), "people.csv, line 3, column 'team': 'green' is not yes or no: of several labels, each is 1 or 0, yes or no, true or false; leave the cell empty where it is not known"),
    ("counts that are fractions", lambda p: want(p, "--target-column", "price", "--loss", "counts"), "friends: the count of node 1 is 68.764, and counts are 0, 1, 2, ...; for other numbers use the loss numbers"),
    ("no labels at all", want, "--label-column: expected a column of classes, as friends has no labels to learn from; or give them with --labels"),
    ("links of a graph that has few", lambda p: table(p, X, "--loss", "links", "--label-column", "label"), "7 links are too few to hold 0.05 and 0.1 of them back; give a graph with more edges, or larger shares"),
    # train: which data
    ("your own files and a named set", lambda p: team(p, "--dataset", "cora"), "--dataset names a set and --edges your own files; give one of them"),
    ("features without edges", lambda p: ["train", "--features", p / "people.csv", "--out", p / "out"], "--features belongs to your own files; name the graph with --edges"),
    ("an id column without edges", lambda p: ["train", "--id-column", "id", "--out", p / "out"], "--id-column belongs to your own files; name the graph with --edges"),
    ("a target column without edges", lambda p: ["train", "--target-column", "price", "--out", p / "out"], "--target-column belongs to your own files; name the graph with --edges"),
    ("an edge file that is not there", lambda p: ["train", "--edges", p / "no.csv", "--out", p / "out"], "{}/no.csv does not exist; check the path"),
    ("a feature that is NaN", lambda p: table(p, X.replace("1,4,x", "1,nan,x"), "--label-column", "label"), "t.csv, line 4, column 'b': nan is not a finite number; fill or drop it"),
    ("a label that is not named as such", lambda p: table(p, X.replace("1,4,x", "1,4,")), "t.csv, line 2, column 'label': 'x' is not a number; leave the column out with --drop-column label, or give each category a column with --one-hot label, or is it the label? then --label-column NAME"),
    ("a feature that is missing", lambda p: table(p, X.replace("1,4,x", "1,,x"), "--label-column", "label"), "t.csv, line 4, column 'b': the cell is empty; fill it or drop the row"),
    ("a feature file with one row too few", lambda p: table(p, X.replace("2,4,y\n", ""), "--label-column", "label"), "e.csv, line 7: node '5' is not among the 5 nodes of t.csv; add it there, or drop the line"),
    ("an edge to an unknown node", lambda p: changed(p, "source,target\n", "source,target\np0,eve\n", "friends.csv"), "friends.csv, line 2: node 'eve' is not among the 60 nodes of people.csv; add it there, or drop the line"),
    ("a negative weight", lambda p: (write(p, "friends.csv", "source,target,weight\np0,p1,1\np1,p2,-2\n"), team(p))[1], "friends.csv, line 3: the weight is -2, but weights must not be negative; for dissimilar neighbours give signed weights to EdgeSmoothness instead"),
    ("a header of edges with other names", lambda p: (write(p, "friends.csv", "person,friend\np0,p1\n"), team(p))[1], "friends.csv, line 1: node 'person' is not among the 60 nodes of people.csv; add it there, or drop the line; if the line is a header, name its columns: --edge-columns"),
    ("a node twice", lambda p: changed(p, "p7,", "p6,"), "people.csv, line 9: node 'p6' is in line 8 already; keep one"),
    ("a class with one example", lambda p: table(p, X + "3,3,z\n", "--label-column", "label"), "class 'z' has only one example, so train, valid and test cannot each have one; merge it with another class, remove its labels, or pass a split of your own"),
    ("labels that are fractions", lambda p: want(p, "--label-column", "price"), "people.csv, line 3, column 'price': 68.764 is not a class: labels are whole numbers or names; numbers to predict are named with --target-column"),
    ("targets that are words", lambda p: want(p, "--target-column", "vip"), "people.csv, line 2, column 'vip': 'yes' is not a number to predict; for classes use --label-column"),
    ("a target of a training node that is missing", lambda p: want(p, "--target-column", "price", "--split-column", "part"), "node 28 is in the train set but has no number; take it out of the split"),
    ("a label column that is not there", lambda p: want(p, "--label-column", "club"), "{}/people.csv has no column 'club'; it has id, a, b, c, team, price, size, vip, part"),
    ("a feature column that is not there", lambda p: team(p, "--feature-column", "d"), "{}/people.csv has no column 'd'; it has id, a, b, c, team, price, size, vip, part"),
    ("a label column and no table", lambda p: ["train", "--edges", p / "friends.csv", "--label-column", "team", "--out", p / "out"], "--label-column team: expected a column of a table, and there is none; give one with --labels or --features"),
    ("a table of labels with two columns that may be meant", lambda p: want(p, "--labels", write(p, "y.csv", "id,team,town\np0,red,x\n")), "{}/y.csv: it has the columns id, team, town, and it is not clear which is the label; name it with --label-column"),
    # train: splits
    ("an unknown split", lambda p: team(p, "--split", "half"), "--split half: expected one of per-class, per-class:20/30, legacy, random, random:0.6/0.2/0.2 for friends"),
    ("a split that asks for too many", lambda p: team(p, "--split", "per-class:20/30"), "class 0 has 18 labelled nodes, fewer than the 20 + 30 asked for; ask for fewer, or merge the class with another"),
    ("shares above one", lambda p: team(p, "--split", "random:0.6/0.6/0.2"), "--split random:0.6/0.6/0.2: expected three positive shares with a sum of at most 1"),
    ("a split and a split column", lambda p: team(p, "--split", "random", "--split-column", "part"), "--split and --split-column both say which nodes train; give one of them"),
    ("a split column without labels", lambda p: want(p, "--split-column", "part"), "--split-column part: expected labels or numbers as well; name them with --labels or --label-column"),
    ("an empty part of a split", lambda p: table(p, "a,label,part\n1,x,train\n2,y,train\n3,x,valid\n4,y,\n5,x,\n6,y,\n", "--label-column", "label", "--split-column", "part"), "the split is empty: it has no test nodes; every part needs at least one"),
    ("a word that is not a part of a split", lambda p: table(p, "a,label,part\n1,x,train\n2,y,dev\n", "--label-column", "label", "--split-column", "part"), "t.csv, line 3, column 'part': 'dev' is not a part; use train, valid, test or nothing"),
    # train: where to
    ("a file in the place of the folder", lambda p: [*team(p), "--out", write(p, "taken")], "cannot write into {}/taken: File exists; choose another place with --out"),
    ("a folder below a file", lambda p: [*team(p), "--out", write(p, "taken") / "out"], "cannot write into {}/taken/out: Not a directory; choose another place with --out"),
    ("a file in the place of a seed", lambda p: ((p / "out").mkdir(), write(p, "out/seed0"), team(p))[2], "{}/out/seed0 cannot be used: File exists; check the path, or move it away"),
    ("--resume in a folder of another model", lambda p: [part if part != "GCN" else "MLP" for part in continued(p)], "{}/classes/seed0 was trained with the model GCN, not MLP; choose another --out, or leave --resume out"),
    ("--resume with another setting", lambda p: continued(p, "--setting", "depth=3"), "{}/classes/seed0 was trained with depth 2, not 3; choose another --out, or leave --resume out"),
    ("--resume with another rate", lambda p: continued(p, "--lr", "0.5"), "{}/classes/seed0 was trained with lr 0.01, not 0.5; choose another --out, or leave --resume out"),
    ("--resume with more epochs than were trained", lambda p: continued(p, "--epochs", "20"), "{}/classes/seed0 was trained with epochs 15, not 20; choose another --out, or leave --resume out"),
    ("--resume with another loss", lambda p: continued(p, "--loss", "links"), "{}/classes/seed0 was trained with the loss classes, not links; choose another --out, or leave --resume out"),
    ("--resume under another split", lambda p: continued(p, "--split", "random:0.5/0.25/0.25"), "{}/classes/seed0 was trained with another split; choose another --out, or leave --resume out"),
    ("--resume on other data", lambda p: continued(p, "--normalise-rows"), "{}/classes/seed0 was trained with other rows of features (scaled or not); choose another --out, or leave --resume out"),
    ("--resume of a model whose code has changed", lambda p: (card(p, lambda c: c.update(key="0" * 24)), continued(p))[1], "{}/classes/seed0 was trained with other code of the model; choose another --out, or leave --resume out"),
    ("--resume of a folder whose card is damaged", lambda p: (write(p, "classes/seed0/model.json", "{"), continued(p))[1], "{}/classes/seed0/model.json is damaged; train again or restore it"),
    ("--resume of a run that was cut off, with another model", lambda p: [part if part != "GCN" else "MLP" for part in continued(p, job="cut")], "{}/cut/seed0/run.pt began with model GCN, not MLP; continue it as it began, or remove it to start again"),
    ("--resume of a run that was cut off, with another rate", lambda p: continued(p, "--lr", "0.5", job="cut"), "{}/cut/seed0/run.pt began with lr 0.01, not 0.5; continue it as it began, or remove it to start again"),
    ("--resume of a run that was cut off, on other labels", lambda p: continued(p, "--split", "random:0.5/0.25/0.25", job="cut"), "{}/cut/seed0/run.pt began on other data; continue it as it began, or remove it to start again"),
    ("--resume of a snapshot that is empty", lambda p: (write(p, "cut/seed0/run.pt"), continued(p, job="cut"))[1], "{}/cut/seed0/run.pt cannot be continued (it carries no checksum: it belongs to another model, another version, or is damaged); remove it to start again"),
    # predict
    ("a model that is not there", lambda p: predict(p, "no"), "there is no model {}/no; give the folder that it was saved to"),
    ("a folder without a finished model", lambda p: ((p / "empty").mkdir(), predict(p, "empty"))[1], "{}/empty holds no finished model: model.json is missing; give the folder that a model was saved to"),
    ("a card that is cut off", lambda p: (write(p, "classes/seed0/model.json", "{"), predict(p))[1], "{}/classes/seed0/model.json is damaged; train again or restore it"),
    ("a card whose data are not a record", lambda p: card(p, lambda c: c.update(data="mine")), "{}/classes/seed0/model.json is damaged: data is 'mine', expected a record; train again or restore it"),
    ("a card that names an unknown source", lambda p: card(p, lambda c: c["data"]["source"].update(cloud="far")), "{}/classes/seed0/model.json is damaged: data.source has the unknown entry 'cloud'; train again or restore it"),
    ("a card whose data set is not text", lambda p: card(p, lambda c: c["data"].update(source={"dataset": 5})), "{}/classes/seed0/model.json is damaged: data.source.dataset is 5, expected text; train again or restore it"),
    ("a card that was edited", lambda p: (write(p, "classes/seed0/model.json", (p / "classes/seed0/model.json").read_text().replace("red", "rot")), predict(p))[1], "{}/classes/seed0/model.json is damaged: its checksum does not match; train again or restore it"),
    ("a card of an older version", lambda p: (write(p, "classes/seed0/model.json", "{}"), predict(p))[1], "{}/classes/seed0/model.json carries no checksum: it is damaged, or an older version wrote it; train again or restore it"),
    ("a card that names another file than was trained on", lambda p: card(p, lambda c: c["data"]["source"].update(features=str(write(p, "secret.csv", "id,a,b,c\nx,9,9,9\n")), edges=str(p / "friends.csv"))), "{}/friends.csv, {}/secret.csv: not what the model was trained on, or not readable; give the data with --edges and --features to use them as they are"),
    ("a card of a newer format", lambda p: card(p, lambda c: c.update(format=9)), "{}/classes/seed0 has format 9, this version of unspool reads 2; train again, or use the other version"),
    ("a card of an unknown model", lambda p: card(p, lambda c: c.update(model="XNet")), "the file holds a model XNet, which is not imported just because a file names it; update unspool, or give the class with --model"),
    ("a card that names a class", lambda p: card(p, lambda c: c.update(model="os:system")), "the file holds a model os:system, which is not imported just because a file names it; if you trust it, give the class with --model"),
    ("a card of another class than the one that is named", lambda p: predict(p, "classes/seed0", "--model", "torch.nn:Linear"), "the file holds a model GCN, and not torch.nn.modules.linear:Linear; name that one"),
    ("a class for a model that is not there", lambda p: predict(p, "classes/seed0", "--model", "torch.nn:Nett"), "--model torch.nn:Nett: expected package.module:Class, and torch.nn has no Nett"),
    ("a card that names a function for its data", lambda p: card(p, lambda c: c["data"].update(source={"dataset": "os:getcwd"})), "the model was trained on os:getcwd, which is not imported just because a file names it; name it with --dataset"),
    ("a card with a transform of a newer version", lambda p: card(p, lambda c: c["data"].update(transforms=["whitened"])), "the model was trained on data after 'whitened', which this version does not know; update unspool, or apply it yourself and give --edges and --features"),
    ("a card that says nothing about data", lambda p: card(p, lambda c: c.pop("data") and None), "{}/classes/seed0 does not say which data it was trained on; give them with --edges and --features"),
    ("weights that are missing", lambda p: card(p, lambda c: c.update(weights="weights.safetensors")), "{}/classes/seed0 holds no weights: weights.safetensors is missing"),
    ("weights that are cut off", lambda p: (card(p, lambda c: c.update(weights="w.safetensors")), write(p, "classes/seed0/w.safetensors", "xy"), predict(p))[2], "{}/classes/seed0/w.safetensors is damaged: its checksum does not match; train again or restore it"),
    ("a file in the place of a folder", lambda p: (write(p, "junk.pt"), predict(p, "junk.pt"))[1], "{}/junk.pt holds no finished model: model.json is missing; give the folder that a model was saved to"),
    ("files of the training that are gone", lambda p: card(p, lambda c: c["data"]["source"].update(edges="gone.csv")), "the model was trained on gone.csv, which is not here; give the data with --edges and --features"),
    ("seeds of different models", lambda p: (save_pretrained(models.SGC(3, 3), p / "classes" / "seed7"), predict(p, "classes"))[1], "{}/classes holds seeds of different models; give one of them, such as {}/classes/seed0"),
    ("pairs for a model of classes", lambda p: predict(p, "classes/seed0", "--pairs", p / "friends.csv"), "--pairs is for models of links, and {}/classes/seed0 was trained on classes; train one with --loss links"),
    ("recommendations by a model of classes", lambda p: predict(p, "classes/seed0", "--top", "3"), "--top is for models of links, and {}/classes/seed0 was trained on classes; train one with --loss links"),
    ("a pair with an unknown node", lambda p: pairs(p, "p1,p2\np1,p99\n"), "pairs.csv, line 2: no node is called 'p99'; the nearest names are 'p9', 'p59', 'p49'"),
    ("a pair of a node with itself", lambda p: pairs(p, "source,target\np1,p2\np3,p3\n"), "pairs.csv, line 3: 'p3' is paired with itself; drop the line: a node is not linked with itself"),
    ("a pair without its second node", lambda p: pairs(p, "source,target\np1,\n"), "pairs.csv, line 2: a node is missing; a pair has two"),
    ("pairs in one column", lambda p: pairs(p, "p1\np2\n"), "{}/pairs.csv: it has one column, and a pair has two; is the separator right?"),
    ("pairs in three columns without names", lambda p: pairs(p, "p1,p2,0.5\n"), "{}/pairs.csv: it has 3 columns, and a pair has two; call them source and target in the first line"),
    ("pairs of an unknown ending", lambda p: predict(p, "links", "--pairs", write(p, "pairs.json")), "--pairs {}/pairs.json: expected a table that ends in .csv, .tsv, .txt or .parquet"),
    ("pairs that are not there", lambda p: predict(p, "links", "--pairs", p / "none.csv"), "{}/none.csv does not exist; check the path"),
    ("pairs and recommendations at once", lambda p: [*pairs(p, "p1,p2\n"), "--top", "3"], "--top: expected nothing beside --pairs, which says what is scored; leave one out"),
    ("more recommendations than nodes", lambda p: predict(p, "links", "--top", "60"), "--top 60: expected at most 59, as friends has 60 nodes"),
    ("recommendations for an unknown node", lambda p: predict(p, "links", "--nodes", "p1,q7"), "no node is called 'q7'; the nearest name is 'p7'"),
    ("recommendations for a node twice", lambda p: predict(p, "links", "--nodes", "p1,p2,p1"), "--nodes p1,p2,p1: expected every node once, and p1 is there twice"),
    ("recommendations for nobody", lambda p: predict(p, "links", "--nodes", "p1,,p2"), "--nodes p1,,p2: expected names of nodes with commas between"),
    ("test nodes of a model of links", lambda p: predict(p, "links", "--only", "test"), "--only test: expected all or unlabelled: a model of links was tested on pairs, not on nodes"),
    ("links of a directed graph", lambda p: predict(p, "links", *own(p), "--directed"), "--directed or --undirected: expected links without a direction: hᵤ · hᵥ says the same of both, and friends is directed; let its edges run both ways"),
    ("test nodes of seeds with splits of their own", lambda p: predict(p, "classes", "--only", "test"), "every seed of {}/classes has a test set of its own; give one of them, such as {}/classes/seed0"),
    ("test nodes of data without a split", lambda p: predict(p, "classes/seed0", *own(p), "--only", "test"), "friends has no nodes in a test set; leave --only out"),
    ("unlabelled nodes where all have labels", lambda p: predict(p, "binary/seed0", "--only", "unlabelled"), "friends has no nodes without a label; leave --only out"),
    ("an unknown split of new data", lambda p: predict(p, "classes/seed0", *own(p), "--label-column", "team", "--split", "half"), "--split half: expected one of per-class, per-class:20/30, legacy, random, random:0.6/0.2/0.2 for friends"),
    ("data of another width", lambda p: predict(p, "classes/seed0", "--dataset", "grid"), "{}/classes/seed0 was trained on 3 features, and grid 20×20 has 4; give the same columns (--feature-column names them)"),
    ("one column where three were trained on", lambda p: predict(p, "classes/seed0", "--edges", p / "friends.csv", "--features", p / "people.csv", "--feature-column", "a"), "{}/classes/seed0 was trained on 3 features, and friends has 1; give the same columns (--feature-column names them)"),
    ("a column that is gone", lambda p: predict(p, "classes/seed0", "--edges", p / "friends.csv", "--features", p / "signals.csv"), "{}/signals.csv has no column 'c'; it has id, a, b"),
    ("new features without edges", lambda p: predict(p, "classes/seed0", "--features", p / "people.csv"), "--features belongs to your own files; name the graph with --edges"),
    ("a table of unknown ending", lambda p: [*predict(p), "--out", p / "out.xlsx"], "--out {}/out.xlsx: tables are written as .csv, .tsv or .parquet; choose one of these endings"),
    ("a table below a file", lambda p: [*predict(p), "--out", write(p, "taken") / "out.csv"], "cannot write into {}/taken: File exists; choose another place with --out"),
    # explain
    ("a node of an unknown name", lambda p: explain(p, "p61"), "no node is called 'p61'; the nearest names are 'p6', 'p1', 'p56'"),
    ("a node that is not among the numbers", lambda p: explain(p, "60"), "there is no node 60: nodes are counted from 0 to 59"),
    ("a name where nodes have numbers", lambda p: explain(p, "ada", job="grid/seed0"), "no node is called 'ada': nodes have no names here, only numbers from 0 to 399"),
    ("an unknown class", lambda p: explain(p, "p3", "--target", "pink"), "--target pink: expected one of the classes blue, green, red"),
    ("a class beyond the last", lambda p: explain(p, "p3", "--target", "3"), "--target 3: expected the number of an output, counted from 0 to 2"),
    ("a class against itself", lambda p: explain(p, "p3", "--target", "red", "--against", "red"), "--against 2: expected another class than the one that is explained; for example the runner-up"),
    ("the runner-up as target", lambda p: explain(p, "p3", "--target", "runner-up"), "--target runner-up: the runner-up is what to compare with; give it as --against"),
    ("a comparison where there is one output", lambda p: explain(p, "p3", "--against", "no", job="binary/seed0"), "--against: expected nothing: the model has one output, so there is no other to choose or compare with; leave it out"),
    ("one node of a model of links", lambda p: explain(p, "p3", job="links/seed0"), "--other: expected the other node of the pair, as the model was trained on links; unspool predict with --top 10 names some that are probable"),
    ("a class of a model of links", lambda p: explain(p, "p3", "--other", "p4", "--against", "runner-up", job="links/seed0"), "--against runner-up: expected nothing for a model of links, which has no classes; leave it out"),
    ("a pair of one node", lambda p: explain(p, "p3", "--other", "p3", job="links/seed0"), "--other p3: expected another node than --node; a node is not linked with itself"),
    ("a pair for a model of classes", lambda p: explain(p, "p3", "--other", "p4"), "--other p4: expected a model that was trained on links, and this one was not; train one with --loss links, or leave it out"),
    ("several seeds at once", lambda p: explain(p, "p3", job="classes"), "{}/classes holds 2 models; take one of them, such as {}/classes/seed0"),
    ("a picture of unknown ending", lambda p: explain(p, "p3", "--out", p / "why.gif"), "--out {}/why.gif: pictures are written as .png, .svg or .pdf; choose one of these endings"),
    ("data that the model does not fit", lambda p: explain(p, "3", "--dataset", "grid"), "{}/classes/seed0 was trained on 3 features, and grid 20×20 has 4; give the same columns (--feature-column names them)"),
    # denoise
    ("a weight and a rule for it", lambda p: clean(p, "--weight", "0.5", "--choose", "gcv"), "--weight gives the weight and --choose a rule for it; give one of them"),
    ("a noise level that nobody uses", lambda p: clean(p, "--noise", "1", "--choose", "gcv"), "--noise is used by --choose sure; the others estimate it, or need none"),
    ("a rule for white noise where values are far off", lambda p: clean(p, "--problem", "robust", "--choose", "gcv"), "--choose sure and gcv and --noise take values that are far off for signal, and --problem robust is there to leave them out; choose its weight with --choose held-out, or give it with --weight"),
    ("a noise level where values are far off", lambda p: clean(p, "--problem", "robust", "--noise", "1"), "--choose sure and gcv and --noise take values that are far off for signal, and --problem robust is there to leave them out; choose its weight with --choose held-out, or give it with --weight"),
    ("a rule of whole signals for one with gaps", lambda p: clean(p, "--fill", "--choose", "sure", features=write(p, "gaps.csv", "id,t\np0,\n" + "".join(f"p{i},{i % 7}\n" for i in range(1, 60))).name), "--choose sure and gcv and --noise need signals without gaps; use --choose held-out or --weight with --fill"),
    ("a part of the graph without any value", lambda p: clean(p, "--fill", edges=write(p, "pairs.csv", "source,target\na,b\nc,d\n").name, features=write(p, "lost.csv", "id,t\na,1\nb,2\nc,\nd,\n").name), "the signal has no value at the 2 nodes that hang together with node c, so there is nothing to fill it in from; give one value there, or remove these nodes"),
    ("values that cannot be hidden", lambda p: clean(p, "--problem", "tv", edges=write(p, "loops.csv", "source,target\np0,p0\n").name), "no value can be hidden, as every component of the graph needs the one it has; give the weight with --weight"),
    ("two signals of one name", lambda p: clean(p, features=write(p, "twice.csv", "id,t,t\np0,1,2\n").name), "{}/twice.csv has two columns called 't'; rename one"),
    ("signals whose columns are counted", lambda p: clean(p, edges=write(p, "ring.csv", "source,target\n0,1\n1,2\n2,0\n").name, features=write(p, "counted.csv", "0,1\n0.5,1\n1,2\n2,0\n").name), "counted.csv, line 1: 0, 1 may be the names of the columns (pandas numbers them like this) or the first node; say which with --header or --no-header"),
    ("signals that are words", lambda p: clean(p, "--feature-column", "vip", features="people.csv"), "people.csv, line 2, column 'vip': 'yes' is not a number; leave the column out with --drop-column vip"),
    ("a signal that is missing", lambda p: clean(p, "--feature-column", "price", features="people.csv"), "people.csv: column 'price' has no value at node p0, and 8 more are missing; --fill fills them in from their neighbours"),
    ("a signal that is not there", lambda p: clean(p, "--feature-column", "d"), "{}/signals.csv has no column 'd'; it has id, a, b"),
    ("a graph without edges", lambda p: clean(p, edges=write(p, "loops.csv", "source,target\np0,p0\n").name), "the graph has no edges, so there is nothing to smooth and no weight to choose; give one with --weight"),
    ("denoised signals of unknown ending", lambda p: [*clean(p), "--out", p / "out.mat"], "--out {}/out.mat: tables are written as .csv, .tsv, .parquet or .npy; choose one of these endings"),
    # spectrum
    ("the spectrum of no model", lambda p: spectrum(p, "no"), "there is no model {}/no; give the folder that it was saved to"),
    ("the spectrum on two graphs", lambda p: spectrum(p, "classes/seed0", "--edges", p / "friends.csv", "--dataset", "citeseer"), "--dataset names a set and --edges your own files; give one of them"),
    ("the spectrum of several seeds", lambda p: spectrum(p, "classes"), "{}/classes holds 2 models; take one of them, such as {}/classes/seed0"),
    ("the spectrum on edges that are not there", lambda p: spectrum(p, "classes/seed0", "--edges", p / "no.csv"), "there is no file of edges {}/no.csv; check the path"),
    ("the spectrum on a line that is not an edge", lambda p: spectrum(p, "classes/seed0", "--edges", write(p, "e.csv", "0,1\n1,b\n")), "{}/e.csv, line 2: expected two node ids (0, 1, 2, ...) and perhaps a weight, the same in every line; found '1 b'"),
    ("the spectrum on an empty file", lambda p: spectrum(p, "classes/seed0", "--edges", write(p, "e.csv")), "{}/e.csv holds no edges; is it complete?"),
    # lists, and the demonstration
    ("the settings of an unknown model", lambda p: ["models", "GNC"], "NAME GNC: expected the name of a model (SGC, PPNP, APPNP, JKNet, GPRGNN, GCN, GCNII, AirGNN, DAGNN, UGDGNN, MLP, ElasticGNN, PGNN, TWIRLS, GNNLF, GNNHF, GRAFF, FairGNN, SignedGNN, TrustGNN, StableGNN, GraphFirstGPRGNN, GraphFirstUGDGNN, SIGN), or package.module:Class for one of your own; did you mean SGC or GCN?"),
    ("the statistics of an unknown set", lambda p: ["datasets", "koraa"], "NAME koraa: expected the name of a data set; did you mean cora? Your own files: --edges"),
    ("a demonstration drawn below a file", lambda p: ["demo", "--out", write(p, "taken") / "demo.png"], "cannot write into {}/taken: File exists; choose another place with --out"),
]  # fmt: skip


def full_disk(p, patch, arguments, after=0):
    """From some write on, nothing fits any more."""
    calls = []

    def refuse(handle):
        calls.append(handle)
        if len(calls) > after:
            raise OSError(errno.ENOSPC, "No space left on device")

    patch.setattr(os, "fsync", refuse)
    return arguments


def no_memory(p, patch, problem):
    def build(self, *widths):
        raise problem

    patch.setattr(Trial, "build", build)
    return team(p)


def without(patch, name, arguments):
    """As if a package were not installed."""
    seen = importlib.util.find_spec
    patch.setitem(sys.modules, name, None)
    patch.setattr(importlib.util, "find_spec", lambda asked, *more: None if asked == name else seen(asked, *more))
    return arguments


def locked(patch, arguments):
    def refuse(*how):
        raise PermissionError(errno.EACCES, "Permission denied")

    patch.setattr(os, "open", refuse)
    return arguments


ALLOCATOR = "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."

#: The same, where the machine is at fault: how gets a monkeypatch too.
DISTURBED = [
    ("a full disk while a table is written", lambda p, patch: full_disk(p, patch, predict(p), after=1), "the disk is full (No space left on device): make room, or choose another place with --out; no file is half-written"),
    ("a full disk while a model is written", lambda p, patch: full_disk(p, patch, team(p), after=2), "the disk is full (No space left on device): make room, or choose another place with --out; no file is half-written"),
    ("a full disk before training begins", lambda p, patch: full_disk(p, patch, team(p)), "cannot write into {}/out: No space left on device; choose another place with --out"),
    ("a folder that may not be written", lambda p, patch: locked(patch, team(p)), "cannot write into {}/out: Permission denied; choose another place with --out"),
    ("too little memory for the model", lambda p, patch: no_memory(p, patch, MemoryError()), "there is not enough memory for this; use less (--setting hidden=..., depth=...), or take a smaller graph"),
    ("too little memory for a tensor", lambda p, patch: no_memory(p, patch, RuntimeError(ALLOCATOR)), "there is not enough memory for this; use less (--setting hidden=..., depth=...), or take a smaller graph"),
    ("a Parquet table without pyarrow", lambda p, patch: without(patch, "pyarrow", [*predict(p), "--out", p / "out.parquet"]), "writing Parquet needs pyarrow: pip install 'unspool[parquet]', or choose .csv"),
    ("Parquet features without pyarrow", lambda p, patch: without(patch, "pyarrow", clean(p, features=write(p, "x.parquet", "PAR1").name)), "reading x.parquet needs pyarrow: pip install 'unspool[parquet]', or save the table as CSV"),
    ("a picture without matplotlib", lambda p, patch: without(patch, "matplotlib", explain(p, "p3", "--out", p / "why.png")), "drawing needs matplotlib: pip install 'unspool[plot]'"),
]  # fmt: skip
