# Every target needs only python3 and make: it creates .venv and installs what it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test quick chaos lint format bench docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml constraints.txt
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	  --editable '.[cluster,data,deep,dev,explore,minari,onnx,render,serve,tensorboard]'
	@touch $@

demo: $(STAMP) ## compare RBLSPI with online LSPI on the sparse mountain car, with pictures, in two minutes
	$(BIN)/python examples/demo.py

test: $(STAMP) ## run the whole test suite
	$(BIN)/python -m pytest

quick: $(STAMP) ## run the fast tests, in about a minute
	$(BIN)/python -m pytest -m "not slow"

chaos: $(STAMP) ## disturb the commands in 500 trials: signals, full disks, damaged files, in 15 minutes
	$(BIN)/python -m pytest tests/chaos --trials 500

lint: $(STAMP) ## check style, formatting, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## format the code and apply automatic fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	  --editable '.[docs]'
	@touch $@

docs: $(VENV)/.docs ## build the documentation in docs/_build/html, with its gallery, in a few minutes
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet docs docs/_build/html
	@echo open docs/_build/html/index.html

bench: $(STAMP) ## measure speed, as ratios within one run
	$(BIN)/python -m benchmarks

clean: ## remove the virtual environment and all caches
	rm -rf $(VENV) docs/_build docs/api docs/gallery .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
