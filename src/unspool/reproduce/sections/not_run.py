"""What stands in the place of an experiment that was not run."""

from __future__ import annotations

from unspool.report import Block, Paragraph


class NotRun(Paragraph):
    """A paragraph that names the command which would fill a section."""

    @property
    def words(self) -> str:
        """The sentence alone."""
        return "".join(piece if isinstance(piece, str) else piece.text for piece in self.pieces)


def not_run(command: str) -> list[Block]:
    """The one block of a section that has no results.

    Example:
        >>> not_run("depth")[0].markdown()
        'Not run yet: unspool reproduce depth'
    """
    return [NotRun([f"Not run yet: unspool reproduce {command}"])]
