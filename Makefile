# rsi: `make` alone says what there is.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Bytecode halves every start; some machines turn it off.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/stamp-$(shell sha256sum pyproject.toml | cut -c1-12)
GEN ?=

.PHONY: help setup cycle nightly test check lint bench-sandbox soak-sandbox study-expansion up down discovery expansion update gate report clean-state

help: ## this list
	@echo "rsi: a model-harness pair that gets better every night, and proves it"
	@echo
	@awk -F ':.*## ' '/^[a-z -]+:.*## / { printf "  make %-16s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "Start with: make cycle"

$(STAMP): pyproject.toml
	@.ci/make_venv.sh $(VENV) $(STAMP)

setup: $(STAMP) ## everything that this machine needs (the other targets do it themselves)
	@$(PY) -m flows.cycle setup

cycle: $(STAMP) ## one generation on this machine, from nothing to a verdict
	@$(PY) -m flows.cycle cycle

nightly: $(STAMP) ## one generation every night, until it is stopped
	@$(PY) -m flows.cycle nightly

test: $(STAMP) ## every test, on real parts
	@$(PY) -m flows.cycle setup
	@$(PY) -m pytest

check: $(STAMP) lint test ## what CI runs: ruff, mypy, import rules, schema drift, tests

lint: $(STAMP) ## ruff, mypy and the import rules
	@$(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

bench-sandbox: $(STAMP) ## what a trial and a call cost here, in plain Docker, and in other harnesses
	@$(PY) -m flows.cycle setup
	@$(PY) -m benchmarks.sandbox

study-expansion: $(STAMP) ## who covers tasks that the model fails, in how many attempts (about two hours)
	@$(PY) -m flows.cycle setup
	@$(PY) -m pip install -q --disable-pip-version-check --root-user-action=ignore $(RSI_PIP_ARGS) -e '.[study]'
	@$(PY) -m benchmarks.expansion

soak-sandbox: $(STAMP) ## 1,000 trials whose runner is killed ten times, and what they leave: nothing
	@$(PY) -m flows.cycle setup
	@$(PY) -m benchmarks.soak docker 1000 10
	@$(PY) -m benchmarks.soak namespaces 1000 10

up: $(STAMP) ## keep the Prefect server and the database running
	@$(PY) -m flows.cycle up

down: ## stop all that rsi has started
	@[ ! -x $(PY) ] || $(PY) -m flows.cycle down

discovery expansion update gate: $(STAMP) ## one stage of a recorded generation: GEN=<n>
	@[ -n "$(GEN)" ] || { echo "say which generation: make $@ GEN=<n>" >&2; exit 2; }
	@$(PY) -m flows.cycle $@ $(GEN)

report: $(STAMP) ## the report of a generation as one page: GEN=<n>
	@[ -n "$(GEN)" ] || { echo "say which generation: make report GEN=<n>" >&2; exit 2; }
	@$(VENV)/bin/rsi report $(GEN)

clean-state: down ## delete all that rsi keeps here (asks first)
	@state="$${RSI_STATE_DIR:-.rsi}"; answer=; \
	read -r -p "Delete $$state with every generation in it? [y/N] " answer || true; \
	if [ "$$answer" = y ]; then rm -rf "$$state"; echo "deleted"; else echo "kept"; fi
