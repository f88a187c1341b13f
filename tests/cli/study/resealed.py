"""Studies as somebody could write them who knows how rows are sealed."""

import json
import shutil
import sqlite3

from unspool.study.store.row import sealed

_SEALED = ("key", "number", "data", "fingerprint", "score", "kind", "source", "trial")


def resealed(target, file, number=1, **changes):
    """A copy of a study in which a trial says something else; a dictionary changes parts of what is stored as JSON."""
    shutil.copy(file, target)
    with sqlite3.connect(target) as link:
        found = link.execute(f"SELECT {', '.join(_SEALED)} FROM trial WHERE number = ?", [number]).fetchone()
        held = dict(zip(_SEALED, found, strict=True))
        for name, change in changes.items():
            held[name] = json.dumps({**json.loads(held[name]), **change}) if isinstance(change, dict) else change
        said = ", ".join(f"{name} = ?" for name in held)
        link.execute(
            f"UPDATE trial SET {said}, made = ? WHERE number = ?", [*held.values(), sealed(*held.values()), number]
        )
    link.close()
    return target
