"""unspool spectrum: what every model does to each frequency, drawn, printed and as JSON."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import unspool as us
from cli.people import own, train, write_people
from unspool.cli.main import cli, main
from unspool.cli.spectrum import read_graph

pytestmark = pytest.mark.long


PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def edges(tmp_path):
    """A grid of 4 × 4 nodes as a CSV file with a heading."""
    index = us.graph.edge_list(us.graph.grid(4, 4))
    file = tmp_path / "edges.csv"
    file.write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in index.T.tolist()))
    return file


def saved(model, folder):
    return str(us.save(model, folder / "model"))


def run(*arguments):
    return CliRunner().invoke(cli, ["spectrum", *map(str, arguments)])


@pytest.fixture
def failed(monkeypatch, capsys):
    """Run the whole door, main() included, and give back the exit status and the one sentence."""

    def go(*arguments):
        monkeypatch.setattr(sys, "argv", ["unspool", "spectrum", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        message = capsys.readouterr().err
        assert len(message.strip().splitlines()) == 1
        return left.value.code, message

    return go


def test_a_network_whose_edges_depend_on_features_has_none(failed, tmp_path, edges):
    code, message = failed(saved(us.models.TrustGNN(5, 3), tmp_path), "--edges", edges)
    assert code == 2
    assert "features" in message


@pytest.mark.parametrize("kind", [m for m in us.models.MODELS if m is not us.models.TrustGNN], ids=lambda m: m.__name__)
def test_every_model_has_a_spectrum(kind, tmp_path, edges):
    out = tmp_path / "new" / "a.png"
    done = run(saved(kind(5, 3), tmp_path), "--edges", edges, "--out", out)
    assert done.exit_code == 0, done.output
    assert f"{kind.__name__} minimises" in done.output
    assert "λ" in done.output
    assert out.read_bytes()[:8] == PNG
    assert [f.name for f in out.parent.iterdir()] == ["a.png"]


def test_linear_models_need_no_graph(tmp_path):
    model = us.models.APPNP(5, 3, teleport=0.2, depth=4)
    done = run(saved(model, tmp_path), "--out", tmp_path / "a.svg")
    assert done.exit_code == 0, done.output
    assert "0.2 ‖H − X‖²  +  0.8 ‖B H‖²" in done.output
    assert "degree 4 in powers of A; coefficients are numbers" in done.output
    for c in model.propagation.hops(us.graph.ring(3)):
        assert f"{float(c):.4g}" in done.output


def test_json_holds_what_is_printed(tmp_path):
    out = tmp_path / "a.png"
    done = run(saved(us.models.SGC(5, 3, depth=3), tmp_path), "--out", out, "--json")
    found = json.loads(done.output)
    assert found["model"] == "SGC"
    assert found["degree"] == 3
    assert found["exact"] is True
    assert [h["coefficient"] for h in found["hops"]] == [0, 0, 0, 1]
    for row in found["response"]:
        assert row["response"] == pytest.approx((1 - row["frequency"]) ** 3, abs=1e-12)
    assert out.read_bytes()[:8] == PNG


def test_json_of_matrices_gives_their_size(tmp_path):
    model = us.models.UGDGNN(5, 3, depth=3)
    found = json.loads(run(saved(model, tmp_path), "--out", tmp_path / "a.png", "--json").output)
    norms = torch.linalg.matrix_norm(model.propagation.hops().detach(), ord=2)
    assert [h["spectral norm"] for h in found["hops"]] == pytest.approx(norms.tolist(), rel=1e-5)


def test_models_that_are_not_linear_ask_for_a_graph(tmp_path, failed):
    code, message = failed(saved(us.models.AirGNN(5, 3), tmp_path), "--out", tmp_path / "a.png")
    assert code == 2
    assert message.startswith("unspool: RowSparseFidelity is not quadratic")
    assert "--edges" in message


def test_what_is_missing_or_broken_is_named(tmp_path, failed):
    code, message = failed(tmp_path / "no", "--out", tmp_path / "a.png")
    assert code == 2
    assert "there is no model" in message
    broken = tmp_path / "broken"
    broken.write_text("not a model")
    code, message = failed(broken, "--out", tmp_path / "a.png")
    assert code == 2
    assert "holds no finished model" in message
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "model.json").write_text("{")
    code, message = failed(tmp_path / "half", "--out", tmp_path / "a.png")
    assert code == 2
    assert "model.json is damaged" in message
    assert not (tmp_path / "a.png").exists()
    code, message = failed(broken, "--out", broken / "a.png")
    assert code == 2
    assert message.startswith("unspool: cannot write into")


FORMS = {
    "commas": ("a.csv", "0,1\n1,2\n"),
    "a heading": ("a.csv", "source;target\n0;1\n1;2\n"),
    "tabs": ("a.tsv", "0\t1\n1\t2\n"),
    "spaces and comments": ("a.txt", "# edges\n\n  0  1\n1 2\n"),
    "a mark at the start": ("a.csv", "\ufeff0, 1\n1, 2\n"),
}


@pytest.mark.parametrize("form", list(FORMS))
def test_edges_are_read_in_many_forms(form, tmp_path):
    name, text = FORMS[form]
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    assert torch.equal(read_graph(file).to_dense(), us.graph.path(3).to_dense())


def test_weights_and_arrays(tmp_path):
    text, arrays = tmp_path / "a.csv", tmp_path / "a.npz"
    text.write_text("0,1,2.5\n1,2,0.5\n")
    np.savez(arrays, edge_index=np.array([[0, 1], [1, 2]]), edge_weight=np.array([2.5, 0.5]))
    expected = us.Graph.from_edges([[0, 1], [1, 2]], weights=[2.5, 0.5], directed=False).to_dense()
    assert torch.equal(read_graph(text).to_dense(), expected)
    assert torch.equal(read_graph(arrays).to_dense(), expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no edges"),
        ("from,to\n", "holds no edges"),
        ("0,1\n2\n", r"line 2: expected two node ids .* found '2'"),
        ("0,1\n1,b\n", "line 2"),
        ("0,1,2,3\n", "line 1"),
        ("0,-1\n", "line 1"),
        ("0.5,1\n", "line 1"),
        ("0,1,x\n", "line 1"),
        ("0,1,1.0\n1,2\n", "line 2"),
    ],
)
def test_bad_edges_are_one_sentence(text, message, tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_graph(file)


def test_bad_files_are_one_sentence(tmp_path):
    with pytest.raises(OSError, match="there is no file of edges"):
        read_graph(tmp_path / "no.csv")
    np.savez(tmp_path / "a.npz", x=np.ones(3))
    with pytest.raises(ValueError, match="holds x, but no edge_index"):
        read_graph(tmp_path / "a.npz")
    (tmp_path / "b.npz").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"is not an \.npz file"):
        read_graph(tmp_path / "b.npz")
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(ValueError, match="is not text"):
        read_graph(tmp_path / "b.csv")


def test_repeated_edges_are_noted_not_warned_about(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("0,1\n0,1\n1,2\n")
    done = run(saved(us.models.SGC(5, 3), tmp_path), "--edges", file, "--out", tmp_path / "a.png")
    assert done.exit_code == 0, done.output
    assert "note: " in done.output


def test_the_graph_of_the_training_is_taken_and_edges_without_some_nodes_are_told(tmp_path, monkeypatch):
    monkeypatch.chdir(write_people(tmp_path))
    lines = Path("people.csv").read_text().splitlines()
    alone = [line.replace("p7,", f"alone{k},", 1) for k in range(2) for line in lines if line.startswith("p7,")]
    Path("people.csv").write_text("\n".join([*lines, *alone]) + "\n")
    train("job", *own(tmp_path, "--label-column", "team", "--seeds", "1"), epochs=3)
    done = run("job/seed0", "--out", "a.png")
    assert done.exit_code == 0, done.output
    assert "62 nodes" in done.output
    done = run("job/seed0", "--edges", "friends.csv", "--out", "a.png")
    assert (
        "note: these edges name 60 nodes, and the model was trained on 62; nodes without edges are not in"
        in done.output
    )
    text = Path("friends.csv").read_text()
    Path("friends.csv").write_text(text + "p1,p59\n")
    done = run("job/seed0", "--out", "a.png")
    assert "not what the model was trained on" in str(done.exception)


def test_a_data_set_may_be_named(tmp_path):
    place = saved(us.models.GCN(16, 4), tmp_path)
    done = run(place, "--dataset", "contextual_sbm", "--out", tmp_path / "a.png")
    assert done.exit_code == 0, done.output
    assert "1000 nodes" in done.output


def test_without_matplotlib_the_text_is_printed(tmp_path, monkeypatch):
    monkeypatch.setattr("unspool.cli.spectrum.can_draw", lambda: False)
    done = run(saved(us.models.SGC(5, 3), tmp_path), "--out", tmp_path / "new" / "a.png")
    assert done.exit_code == 0, done.output
    assert "SGC minimises" in done.output
    assert "pip install 'unspool[plot]'" in done.output
    assert not (tmp_path / "new").exists()


def test_help_teaches():
    assert "Example: unspool spectrum" in run("--help").output
