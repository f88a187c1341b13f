"""unspool study plot: pictures of what varies."""

from cli.people import ask


def test_pictures(file, tmp_path):
    text = ask("study", "plot", file, "--out", tmp_path / "a")
    assert text.split() == [
        str(tmp_path / "a" / f"{name}.png") for name in ("leaders", "choices", "importance", "grid")
    ]
    assert all((tmp_path / "a" / f"{name}.png").read_bytes()[1:4] == b"PNG" for name in ("leaders", "grid"))


def test_what_does_not_vary_is_not_drawn_and_an_old_picture_of_it_goes(file, tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "choices.svg").write_text("of another study")
    ask("study", "plot", file, "--out", tmp_path / "b", "--format", "svg", "--where", "GCN", "--where", "dropout=0.2")
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["leaders.svg"]
