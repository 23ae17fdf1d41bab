# Nothing is needed but make and Python 3.11 or newer; everything else is set up here, once, in .venv.
#   make demo [DATA=FILE.jsonl]   see what it does
#   make test                     the tests                make test-long    with the long ones
#   make lint                     style, types, layers     make bench        the table of docs/benchmarks.md
#   make docs                     write the made pages     make wheel-check  build, install and try the wheel

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

BIN := .venv/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
DATA ?=

.PHONY: help demo test test-long lint bench docs wheel-check clean

help:
	@sed -n '2,5s/^# *//p' Makefile

# The first Python on the path that is new enough and can make environments; else a sentence that says what is missing.
.venv/pyvenv.cfg:
	@for python in python3 python3.13 python3.12 python3.11; do \
	  if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "Setting up .venv with $$($$python --version) …"; exec $$python -m venv .venv; fi; \
	done; \
	echo "Needed: Python 3.11 or newer with its venv module (on Debian: apt-get install python3 python3-venv)." >&2; \
	echo "Found: $$(python3 --version 2>&1)." >&2; exit 1

# The command line, and MCP servers as tools: what `make demo` needs.
.venv/cli.stamp: .venv/pyvenv.cfg pyproject.toml
	@echo "Installing talkfold and its command line …"
	@$(PIP) install --upgrade 'pip>=25.1'
	@$(PIP) install --editable '.[cli,mcp]'
	@touch $@

# The tools of the tests and checks on top.
.venv/dev.stamp: .venv/cli.stamp
	@echo "Installing the test tools …"
	@$(PIP) install --group dev
	@touch $@

demo: .venv/cli.stamp
	@$(BIN)/talkfold demo $(if $(DATA),'$(DATA)')

test: .venv/dev.stamp
	@$(BIN)/python -m pytest -q -m 'not long'

test-long: .venv/dev.stamp
	@TALKFOLD_LONG=1 $(BIN)/python -m pytest -q

lint: .venv/dev.stamp
	@echo "ruff";          $(BIN)/ruff check --quiet && $(BIN)/ruff format --check --quiet
	@echo "mypy";          $(BIN)/mypy --no-error-summary
	@echo "pyright";       $(BIN)/pyright >/dev/null || $(BIN)/pyright
	@echo "verifytypes";   PATH="$(CURDIR)/$(BIN):$$PATH" pyright --verifytypes talkfold --ignoreexternal >.venv/verifytypes.txt || { cat .venv/verifytypes.txt; exit 1; }
	@echo "import-linter"; $(BIN)/lint-imports --no-cache >.venv/imports.txt || { cat .venv/imports.txt; exit 1; }

bench: .venv/cli.stamp
	@benchmarks/run.sh

docs: .venv/cli.stamp
	@$(BIN)/python -m talkfold.cli.reference docs/cli.md
	@$(BIN)/python -c 'from pathlib import Path; from talkfold.machine import to_page; Path("docs/machine.md").write_text(to_page(), "utf-8")'
	@$(BIN)/python -c 'from pathlib import Path; from talkfold.audit.findings import to_page; Path("docs/findings.md").write_text(to_page(), "utf-8")'

wheel-check: .venv/dev.stamp
	@.ci/wheel-check

clean:
	@rm -rf .venv dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
