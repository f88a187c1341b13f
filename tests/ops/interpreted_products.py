"""Products with small matrices in Triton's interpreter; run by test_stacked_product.py, test_mapped_hop.py and test_some_rows.py."""

import sys

from ops.op_laws import interpret, laws
from ops.product_cases import hops, products, rows


def main() -> None:
    interpret()
    for name, op, inputs, twice in {"products": products, "hops": hops, "rows": rows}[sys.argv[1]]():
        for law, gap in laws(op, inputs, twice=twice):
            print(name, law, gap, flush=True)


if __name__ == "__main__":
    main()
