# Each target sets up .venv by itself; nothing else has to be installed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: run test check bench clean

run: $(VENV)/installed  ## compare the methods on the bundled Adult data: a table and a plot
	$(BIN)/fedanon compare --dataset adult --methods all --k 3,5,10,20 --plot tradeoff.png

test: check  ## lint, types, import rules and all tests

check: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n auto

bench: $(VENV)/installed-bench  ## speed and memory, measured side by side in one run
	$(BIN)/python experiments/benchmarks/speed.py

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

$(VENV)/installed-bench: $(VENV)/installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,bench]'
	touch $@

clean:
	rm -rf $(VENV) tradeoff.png
