"""Products with patterns in Triton's interpreter; run by test_pattern.py."""

from ops.op_laws import interpret
from ops.pattern_cases import gaps
from unspool.ops import pattern


def main() -> None:
    interpret()
    from unspool.ops.kernels import pattern_cuda

    pattern._gathered = pattern_cuda.product
    for name, gap in gaps("cpu"):
        print(name, max(gap, 0.0), flush=True)


if __name__ == "__main__":
    main()
