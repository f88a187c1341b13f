"""Errors are values: fields that a caller can read, sentences made of them, the same in every process."""

import pickle

import pytest

from unspool.errors import UNSHOWN, DataError, IncompatibleError, InputError, Worded, mention


def test_fields_are_what_was_said():
    one = InputError("depth", 0, "at least 1", "take 3", owner="GCN")
    assert (one.argument, one.value, one.expected, one.hint, one.owner) == ("depth", 0, "at least 1", "take 3", "GCN")
    other = DataError("y.csv", "two columns", "name one")
    assert (other.where, other.problem, other.hint) == ("y.csv", "two columns", "name one")


@pytest.mark.parametrize("kind", [InputError, DataError, IncompatibleError])
def test_whoever_expects_a_value_error_catches_all(kind):
    assert issubclass(kind, Worded)
    assert issubclass(kind, ValueError)
    assert issubclass(kind, TypeError) is (kind is InputError)


def test_arguments_are_called_as_the_reader_calls_them():
    """The command line writes options; the rest of its wording is in cli/test_errors.py."""
    problem = DataError("", f"{mention('a')} and {mention('b', 2)}", mention("c"))
    assert str(problem) == "a=... and b=2; c=..."
    assert problem.worded(lambda name, value: f"<{name}|{value}>") == "<a|None> and <b|2>; <c|None>"


def test_a_value_that_is_not_worth_showing_is_itself_in_every_process():
    again = pickle.loads(pickle.dumps(InputError("labels", UNSHOWN, "a file", owner="GCN")))
    assert again.value is UNSHOWN
    assert (again.argument, again.owner, str(again)) == ("labels", "GCN", "labels: expected a file")


class Shy:
    def __repr__(self):
        raise KeyError("shy")


@pytest.mark.parametrize(("value", "shown"), [(10**5000, "<int>"), (Shy(), "<Shy>")], ids=["int", "Shy"])
def test_values_that_cannot_be_written_are_named_by_their_class(value, shown):
    assert str(InputError("depth", value, "small")) == f"depth={shown}: expected small"
