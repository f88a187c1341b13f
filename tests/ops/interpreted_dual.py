"""Dual steps in Triton's interpreter; run by test_dual_step.py."""

from ops.dual_cases import cases, op_of
from ops.op_laws import interpret, laws


def main() -> None:
    interpret()
    for name, graph, cut, inputs in cases():
        for law, gap in laws(op_of(graph, cut), inputs, twice=inputs[0].shape[1] == 3):
            print(name, law, gap, flush=True)


if __name__ == "__main__":
    main()
