# `make run` and `make test` install everything into .venv; they require only python3 and pip.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(VENV)/uv/bin/uv
PACKAGES := $(patsubst %/pyproject.toml,%,$(wildcard core/pyproject.toml agent/pyproject.toml libs/*/pyproject.toml plugins/*/pyproject.toml))
CONTRIB := $(patsubst %/pyproject.toml,%,$(wildcard contrib/*/pyproject.toml))
MANIFESTS := pyproject.toml $(foreach package,$(PACKAGES) $(CONTRIB),$(package)/pyproject.toml)

# Users without a writable home folder, such as service accounts, keep the cache in .venv too.
ifneq ($(shell test -w "$$HOME" && echo writable),writable)
export UV_CACHE_DIR ?= $(CURDIR)/$(VENV)/cache
endif

.PHONY: run test lint types unit check storm bench services requirements wheels clean

run: $(VENV)/run.stamp
	$(BIN)/sideband demo

test: lint types unit

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/test.stamp
	$(BIN)/python tests/check_types.py

unit: $(VENV)/test.stamp services
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --durations 20

# Check one package: `make check PACKAGE=plugins/http`.
check: $(VENV)/test.stamp services
	@test -f "$(PACKAGE)/pyproject.toml" || { echo "usage: make check PACKAGE=plugins/http" >&2; exit 2; }
	$(BIN)/ruff check $(PACKAGE)
	$(BIN)/ruff format --check $(PACKAGE)
	$(BIN)/python tests/check_types.py $(PACKAGE)
	$(BIN)/python tests/test_language.py $(PACKAGE)
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile $(PACKAGE)

# Kill more hosts than `make test` does, at different moments in each run: 1,000 in 15 to 30 minutes.
storm: $(VENV)/test.stamp
	SIDEBAND_STORM_ROUNDS=$${SIDEBAND_STORM_ROUNDS:-140} SIDEBAND_STORM_SEED=$${SIDEBAND_STORM_SEED:-$$(date +%s)} \
		$(BIN)/python -m pytest tests/security/crashes/test_crash_host.py \
		tests/agent/test_crashes.py tests/agent/test_power_failures.py \
		tests/agent/test_replay_storm.py tests/agent/test_storms.py -s

bench: $(VENV)/test.stamp $(VENV)/peers.stamp
	$(BIN)/python -m benchmarks

# The tests of sideband-secrets use a real keyring service, and those of sideband-sandbox programs that unpack archives.
services:
	@for program in gnome-keyring-daemon dbus-run-session cpio unzip; do \
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
	for name in uv run test bench; do $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-header --no-annotate --upgrade requirements/$$name.in -o requirements/$$name.txt; done

# The wheels of all packages, to install them with `pip install --find-links dist`.
wheels: $(VENV)/run.stamp
	$(UV) build --quiet --all-packages --wheel --no-build-isolation --python $(BIN)/python --out-dir dist

clean:
	rm -rf $(VENV) dist build
