# Two commands do everything: `make demo` and `make test`. Both make .venv on first use.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test quick release-check docs lint types imports kernels clean

demo: $(STAMP)
	$(BIN)/unspool train --seeds 10 --out out/citeseer
	$(BIN)/unspool train UGDGNN --seeds 5 --out out/paper
	$(BIN)/unspool reproduce table2 --quick
	$(BIN)/unspool reproduce networks --quick --models UGDGNN,GPRGNN,APPNP
	$(BIN)/unspool report out/quick/results --out out/report.html --trials 1

test: $(STAMP) lint types imports
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# For the minute between two edits: everything that is neither long nor slow.
quick: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not long" tests

# The site, then the slow checks, whole: thousands of generated cases where `make test` runs some.
release-check: $(STAMP) docs
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e ".[release]"
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m slow tests

# The site, from nothing, with warnings as errors: out/docs/index.html. Examples that have not changed are not run again.
docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e ".[docs]"
	OMP_NUM_THREADS=1 MPLBACKEND=Agg $(BIN)/python -m sphinx --fail-on-warning --keep-going -q -b html docs out/docs -d out/doctrees

# One thread per process: two processes with two threads each on two cores spend their time waiting for one another.
lint: $(STAMP)
	$(BIN)/ruff check src tests examples benchmarks tools docs
	$(BIN)/ruff format --check src tests examples benchmarks tools docs

types: $(STAMP)
	$(BIN)/pyright --pythonpath $(BIN)/python

imports: $(STAMP)
	$(BIN)/lint-imports

# Installing without byte-compiling takes a third of the time; Python compiles what it imports.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -c "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))" \
		|| { echo "unspool needs Python 3.11 to 3.13; run: make PYTHON=python3.12 $(MAKECMDGOALS)"; rm -rf $(VENV); exit 1; }
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $(STAMP)

# The GPU kernels without a GPU, in Triton's interpreter. Triton takes 1 GB, so it is installed for this alone.
kernels: $(STAMP)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt triton
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/ops -m "" -k "kernels or dense_features"

clean:
	rm -rf $(VENV) out build dist .pytest_cache .ruff_cache .import_linter_cache
