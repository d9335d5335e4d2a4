# Two commands for everyone: `make audit` and `make test`. Either may come first.
# PYTHON chooses the interpreter (3.11 or newer): make test PYTHON=python3.13

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin

.PHONY: audit test check clean

audit: .venv/installed
	$(BIN)/dpaudit run configs/quickstart.yaml

test: .venv/installed-test
	$(BIN)/python -m pytest -n auto

check: .venv/installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf .venv

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "dpaudit needs Python 3.11 or newer; name one with make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv .venv || { echo "could not make .venv with $(PYTHON); on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }

# Editable, so that the command audits with the code that is here; again when the dependencies change.
.venv/installed: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/installed-test: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@ .venv/installed

.venv/installed-dev: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ .venv/installed .venv/installed-test
