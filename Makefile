# `make demo` and `make test` set everything up themselves, once. On Windows: in Git Bash.
PYTHON ?= $(if $(filter Windows_NT,$(OS)),python,python3)
VENV   := .venv
BIN    := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
READY  := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test npm longrun lint ruff mypy imports codespell format docs wheel oldest fuzz bench scoreboard \
        recompile clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY)  ## make a normal map and reconstruct it, in demo/
	$(BIN)/normalmesh demo --output demo

test: $(READY)  ## run the tests
	$(BIN)/python -m pytest

npm:  ## install in build/npm the programs from npm that test 3D Tiles, which needs node
	mkdir -p build/npm
	cp tests/npm/package.json build/npm
	npm install --prefix build/npm --no-audit --no-fund

longrun: $(READY)  ## test that memory does not grow over 200 reconstructions in one process
	NORMALMESH_LONG_RUN=200 $(BIN)/python -m pytest -s tests/robustness/test_long_run.py

lint: ruff mypy imports codespell  ## check style, types, imports between rooms, and spelling

ruff: $(READY)  ## check style and layout
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

mypy: $(READY)  ## check types
	$(BIN)/mypy

imports: $(READY)  ## check that no room imports from a room above it
	$(BIN)/lint-imports

codespell: $(READY)  ## check spelling
	$(BIN)/codespell

format: $(READY)  ## fix layout, and what else ruff can fix
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

docs: $(READY)  ## build the pages as a site in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

wheel: $(READY)  ## build sdist and wheel in dist/, and try the wheel in an empty environment
	$(BIN)/python .ci/wheel.py

oldest: $(READY)  ## after `make wheel`: test it with the oldest allowed dependencies, on Python 3.11
	$(BIN)/python .ci/oldest.py

MINUTES ?= 10
fuzz: $(READY)  ## try random inputs; MINUTES=10, BOUNDSCHECK=1 to check every index
	$(BIN)/python tests/robustness/fuzz.py --minutes $(MINUTES) $(if $(BOUNDSCHECK),--boundscheck)

bench: $(READY)  ## run the benchmarks
	$(BIN)/python -m benchmarks

scoreboard: $(READY)  ## print every headline figure; KEEP=1 adds them to benchmarks/scoreboard/runs.json
	$(BIN)/python -m benchmarks.scoreboard $(if $(KEEP),--keep)

# The stamp depends on the file that lists the dependencies: a second call installs nothing.
$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "normalmesh needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary open3d --editable '.[open3d]' \
		|| echo "Open3D cannot be installed on this machine: its tests are skipped"
	touch $(READY)

recompile:  ## throw compiled kernels away
	find src -name '*.nb[ic]' -delete

clean:  ## remove everything that these targets make
	rm -rf $(VENV) demo dist build .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
