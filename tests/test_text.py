"""Text of files and of people: shown whole, obeyed never; numbers as everybody writes them."""

import json
import unicodedata

import pytest

from unspool.text import plain_number, printable

NASTY = "x\x1b[2J\x1b]0;owned\x07\x9b31m\x7f\x00\r\u202eb\u2028\udcff"


def test_nothing_that_steers_is_left():
    shown = printable(NASTY)
    assert not [sign for sign in shown if unicodedata.category(sign).startswith(("C", "Zl", "Zp"))]
    assert shown.encode()  # halves of characters cannot be encoded


def test_what_steers_nothing_stays():
    assert printable("α‖H−X‖² naïve\tμ\n") == "α‖H−X‖² naïve\tμ\n"


def test_json_stays_json():
    assert json.loads(printable(json.dumps({NASTY: 1}, ensure_ascii=False))) == {NASTY: 1}


@pytest.mark.parametrize("text", ["1", "-2.5", "1e-3", "inf"])
def test_plain_numbers_stay_as_they_are(text):
    assert plain_number(text) == text


@pytest.mark.parametrize("text", ["1_0", "٣", "１", "1e\u2212\u0033"])
def test_numbers_for_python_alone_are_refused(text):
    with pytest.raises(ValueError, match=text):
        plain_number(text)
