# `make demo` and `make test` set everything up themselves, once.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test longrun lint docs wheel oldest fuzz bench scoreboard recompile clean

demo: $(READY)
	$(BIN)/normalmesh demo --output demo

test: $(READY)
	$(BIN)/python -m pytest

longrun: $(READY)
	NORMALMESH_LONG_RUN=200 $(BIN)/python -m pytest -s tests/robustness/test_long_run.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

wheel: $(READY)
	$(BIN)/python .ci/wheel.py

oldest: $(READY)
	$(BIN)/python .ci/oldest.py

# BOUNDSCHECK=1: kernels that raise where an index leaves its array.
MINUTES ?= 10
fuzz: $(READY)
	$(BIN)/python tests/robustness/fuzz.py --minutes $(MINUTES) $(if $(BOUNDSCHECK),--boundscheck)

bench: $(READY)
	$(BIN)/python -m benchmarks

# KEEP=1: add the figures to benchmarks/scoreboard/runs.json.
scoreboard: $(READY)
	$(BIN)/python -m benchmarks.scoreboard $(if $(KEEP),--keep)

# The stamp depends on the file that lists the dependencies: a second call installs nothing.
$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "normalmesh needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $(READY)

recompile:
	find src -name '*.nb[ic]' -delete

clean:
	rm -rf $(VENV) demo dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis
