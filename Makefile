# Needs make and Python 3.11 or newer; everything else is installed into $(VENV).
#
#   make run          show the project at work on its own files
#   make test         run the tests; TESTS=tests/sandbox runs some of them
#   make check        ruff, mypy, import contracts
#   make bench        every benchmark beside other systems: tables, JSON and a picture; PEERS= leaves them out
#   make bench-check  compare the ratios with the committed ones
#
# PYTHON=python3.13 chooses the interpreter; VENV=... another place for the virtual environment.

VENV ?= .venv
PYTHON ?=
TESTS ?= tests
PEERS ?= yes
RESULTS ?= benchmarks/results

.PHONY: run test check bench bench-check venv
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

# A quiet machine, please: what else runs is measured along.
bench: venv
	$(VENV)/bin/python benchmarks/suite.py $(if $(PEERS),--peers) --one-core-too \
	  --json $(RESULTS)/latest.json --plot $(RESULTS)/latest.svg

bench-check: venv
	$(VENV)/bin/python benchmarks/suite.py --check benchmarks/baseline.json
