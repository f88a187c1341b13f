"""Products with small matrices in Triton's interpreter; run by test_stacked_product.py and test_mapped_hop.py."""

import sys

from ops.op_laws import interpret, laws
from ops.product_cases import hops, products


def main() -> None:
    interpret()
    for name, op, inputs, twice in {"products": products, "hops": hops}[sys.argv[1]]():
        for law, gap in laws(op, inputs, twice=twice):
            print(name, law, gap, flush=True)


if __name__ == "__main__":
    main()
