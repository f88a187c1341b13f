"""Pulls in Triton's interpreter; run by test_pull.py."""

from ops.op_laws import interpret, laws
from ops.pull_cases import cases


def main() -> None:
    interpret()
    for name, op, inputs, twice in cases():
        for law, gap in laws(op, inputs, twice=twice):
            print(name, law, gap, flush=True)


if __name__ == "__main__":
    main()
