"""What commands that read a study share: lists that keep their digits."""

import io

from rich.console import Console

from unspool.cli.study.open_study import columns


def test_a_narrow_terminal_cuts_no_digits_off():
    printed, text = columns("dropout", "validation"), io.StringIO()
    printed.add_row("0.29891234", "82.00 ± 12.73 %")
    Console(file=text, width=12).print(printed)
    assert sorted(text.getvalue().replace("\n", " ").replace(" ", "")) == sorted(
        "dropoutvalidation0.2989123482.00±12.73%"
    )
