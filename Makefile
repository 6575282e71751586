# Each target sets up .venv by itself; nothing else has to be installed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# small matrices are faster on one thread, and sums are the same to the bit on every machine
export OPENBLAS_NUM_THREADS := 1

.PHONY: run test check bench docs sbom clean

run: $(VENV)/installed  ## the main job: anonymised federations of Adult and RAND HIE, tables and tour.png
	$(BIN)/fedanon tour

test: check  ## lint, types, import rules and all tests

check: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n auto

docs: $(VENV)/installed-docs  ## build/site, with warnings as errors; then run everything the documentation shows
	$(BIN)/python docs/tools/figures.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	$(BIN)/python docs/tools/check_site.py
	$(BIN)/codespell
	$(BIN)/python docs/tools/run_blocks.py
	$(BIN)/python docs/tools/notebooks.py --check

sbom: $(VENV)/installed-docs  ## build/sbom: bill of materials (CycloneDX) and licenses of what `fedanon[all]` brings
	$(BIN)/python docs/tools/materials.py

bench: $(VENV)/installed-bench  ## speed and memory, measured side by side in one run
	$(BIN)/python experiments/benchmarks/speed.py
	$(BIN)/python experiments/benchmarks/federation.py
	$(BIN)/python experiments/benchmarks/sdc.py
	$(BIN)/python experiments/benchmarks/suda.py
	$(BIN)/python experiments/benchmarks/parquet.py
	$(BIN)/python experiments/benchmarks/streams.py speed gateway memory

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

$(VENV)/installed-docs: $(VENV)/installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,docs]'
	touch $@

$(VENV)/installed-bench: $(VENV)/installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,bench]'
	touch $@

clean:
	rm -rf $(VENV) build tour.png
