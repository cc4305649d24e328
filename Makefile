# Needs make and Python 3.11 or newer; everything else is installed into $(VENV).
#
#   make run      show the project at work on its own files
#   make test     run the tests; TESTS=tests/sandbox runs some of them
#   make check    ruff, mypy, import contracts
#   make bench    run the benchmarks
#
# PYTHON=python3.13 chooses the interpreter; VENV=... another place for the virtual environment.

VENV ?= .venv
PYTHON ?=
TESTS ?= tests

.PHONY: run test check bench venv
.DEFAULT_GOAL := test

# Looks every time, which takes a tenth of a second, and installs only when something has changed.
# Without PYTHON an environment that is there is kept whatever its interpreter.
venv:
	@python=$$(sh scripts/find-python "$(PYTHON)") && \
	"$$python" scripts/make_venv.py "$(VENV)" $(if $(PYTHON),,--keep-interpreter)

run: venv
	@sh scripts/demo "$(VENV)"

test: venv
	$(VENV)/bin/python -m pytest $(TESTS)

check: venv
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

bench: venv
	@for file in benchmarks/bench_*.py; do echo "== $$file"; $(VENV)/bin/python "$$file" || exit 1; done
