"""Run the tests on every Python that unspool supports and this machine has.

python tools/test_pythons.py              # make test on 3.11, 3.12 and 3.13, as far as they are installed
python tools/test_pythons.py quick 3.13   # another target, one version
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13")


def main(words: list[str]) -> int:
    """Run a target of the Makefile on each version, say how each ended, and return 1 where one failed."""
    root = Path(__file__).resolve().parent.parent
    target = next((word for word in words if not word[0].isdigit()), "test")
    wanted = [word for word in words if word[0].isdigit()] or list(VERSIONS)
    codes: dict[str, str] = {}
    for version in wanted:
        python = shutil.which(f"python{version}")
        if python is None:
            codes[version] = "not installed"
            continue
        venv = f".venv-{version}"
        done = subprocess.run(["make", f"PYTHON={python}", f"VENV={venv}", target], cwd=root, check=False)
        codes[version] = "passed" if done.returncode == 0 else f"failed ({done.returncode})"
    for version, code in codes.items():
        print(f"Python {version}: {code}")
    return int(any(code.startswith("failed") for code in codes.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
