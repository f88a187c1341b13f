"""Gated sums in Triton's interpreter; run by test_gated_sum.py."""

from ops.gated_cases import model_like, sums
from ops.op_laws import interpret, laws, seeded


def main() -> None:
    interpret()
    alone = ("DAGNN", model_like, [seeded(6, 3), seeded(3, seed=1), seeded(1, seed=2)], True)
    for name, op, inputs, twice in (*sums(), alone):
        for law, gap in laws(op, inputs, twice=twice):
            print(name, law, gap, flush=True)


if __name__ == "__main__":
    main()
