# The commands that people and CI call. Each does its own set-up first.
#
#   make run            measure this machine's file systems, print the digest, write the dashboard
#   make setup          install only iobands and ReFrame, into .venv
#   make demo           write a made-up site and its dashboard to demo/, for a first look
#   make check          run the fast tests, without MPI and ReFrame; needs no root
#   make test           run every test
#   make test-faults    inject each fault that docs/faults.md lists, and write that page
#   make soak           measure a made-up year with faults, read a made-up decade, and kill pushes
#   make minisite       start a real site on this machine: Slurm, CephFS, a slow disk
#   make minisite-run   measure the minisite, as a site does every day
#   make minisite-down  stop and remove the minisite
#   make store          start PostgreSQL in a scratch directory and print its URL; Ctrl-C stops it
#   make bench          compare benchio with IOR and fio, and measure the overhead of a session
#   make bench-reading  measure the cost of reading perflogs, and write docs/reading-costs.md
#   make bench-report   measure the cost of the dashboard, and write docs/dashboard-costs.md
#   make bench-stores   measure a store of ten clusters and ten years, and write docs/store-costs.md
#   make bench-alarms   measure the error rates of the alerts, and write docs/error-rates.md
#   make docs           write the documentation site to build/docs, and the man pages to build/man
#   make install PREFIX=DIR   install iobands, its man pages and benchio into a new directory
#   make release VERSION=1.2.3   test a clean clone, write the release to dist/, upload nothing
#   make lint           check the Python, Fortran and shell sources
#   make format         put the sources into their standard form
#   make clean          remove the files that these commands made, but never the perflogs

PYTHON ?= python3
# The amount of random bytes for each reader in make soak.
EXAMPLES ?= 2500
VENV := .venv
EXTRAS := all
BIN := $(VENV)/bin
DASHBOARD := dashboard

FORTRAN_SOURCES = $(wildcard src/benchio/*/*.f90 src/benchio/*/*.F90)
SHELL_SCRIPTS := setup/system-packages .ci/run tests/programs/cmake $(shell find checks src -name '*.sh')

export PYTHON

.PHONY: help run demo check test test-faults soak minisite minisite-run minisite-down store bench bench-reading bench-report bench-stores bench-alarms docs install release lint format setup clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#  *\(make .*\)/\1/p' Makefile

run: $(VENV)/.installed-run
	@echo "Measuring this machine's file systems, which takes about half a minute"
	@$(BIN)/iobands run --report $(DASHBOARD)

# This needs no compiler and no MPI.
demo: $(VENV)/.installed
	@$(BIN)/iobands demo demo

# Tests that need a missing program are skipped with the reason, if it cannot be installed.
check: $(VENV)/.installed-check
	@$(BIN)/python -m pytest --numprocesses=2 --dist=loadgroup --no-loadscope-reorder -m "not machine"

# Python caches its bytecode, as it does for a user, even if the environment says otherwise.
check test test-faults bench bench-reading bench-report bench-stores: \
	export PYTHONDONTWRITEBYTECODE =

# Eight processes on two cores, because most tests spend at least half of their time waiting.
test: $(VENV)/.installed-test
	@$(BIN)/python -m pytest --numprocesses=8 --dist=loadgroup --no-loadscope-reorder

# If a fault is skipped, no table is written; some faults need the minisite.
test-faults: $(VENV)/.installed-test
	@setup/system-packages minisite
	@$(BIN)/python -m pytest --numprocesses=2 --dist=loadgroup --no-loadscope-reorder \
		-m fault --fault-table=docs/faults.md $(TEST_ARGUMENTS)

# Shorter, or with other faults: SOAK_ARGUMENTS="--minutes=1 --seed=7".
soak: $(VENV)/.installed-test
	@$(BIN)/python -m tests.soak $(SOAK_ARGUMENTS)
	@$(BIN)/python -m tests.soak.decade
	@$(BIN)/python -m tests.soak.stores
	@IOBANDS_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest tests/contracts/test_hostile_input.py \
		tests/contracts/test_no_datum_ends_a_command.py

minisite:
	@setup/system-packages minisite
	@minisite/up

minisite-run: $(VENV)/.installed-run
	@echo "Measuring the minisite, which takes some five minutes"
	@minisite/run $(BIN)/iobands run --system minisite --report $(DASHBOARD)

minisite-down:
	@minisite/down

# Further options, such as BENCH_ARGUMENTS="--volume=8G --directory=/scratch/me".
bench: $(VENV)/.installed-run
	@setup/system-packages bench
	@cmake -S src/benchio -B build/benchio >/dev/null
	@cmake --build build/benchio >/dev/null
	@echo "Measuring benchio, which takes some twenty minutes"
	@$(BIN)/python -m benchmarks --report docs/benchmarks.md $(BENCH_ARGUMENTS)
	@$(BIN)/python -m benchmarks.session --report docs/session-costs.md

store: $(VENV)/.installed-test
	@$(BIN)/python -m tests.source.engines

bench-reading: $(VENV)/.installed-run
	@echo "Measuring what reading costs, which takes some five minutes"
	@$(BIN)/python -m benchmarks.reading --report docs/reading-costs.md $(BENCH_ARGUMENTS)

bench-report: $(VENV)/.installed-test
	@echo "Measuring what the dashboard costs, which takes some five minutes"
	@$(BIN)/python -m benchmarks.reading.dashboard --report docs/dashboard-costs.md $(BENCH_ARGUMENTS)

bench-stores: $(VENV)/.installed-test
	@echo "Measuring what a store costs, which takes some ten minutes"
	@$(BIN)/python -m benchmarks.reading.stores --report docs/store-costs.md $(BENCH_ARGUMENTS)

# Writes docs/real-data.md too if IOBANDS_REAL_DATA names the published table of a real year,
# which benchmarks/alarms/tokio.py describes.
# Quicker or longer: BENCH_ARGUMENTS="--effort=full --processes=8"; with --effort=brief, and one
# section of the page: BENCH_ARGUMENTS='--effort=brief --section="Targets and nodes"'.
bench-alarms: $(VENV)-bench/.installed
	@echo "Measuring the alerts, which takes a quarter of an hour"
	@$(VENV)-bench/bin/python -m benchmarks.alarms --report docs $(BENCH_ARGUMENTS)

# NO_MKDOCS_2_WARNING: a newer major version of mkdocs has no hooks; setup.cfg pins this one.
docs: $(VENV)/.installed-test
	@$(BIN)/python setup/man_pages.py build/man
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Documentation: $(CURDIR)/build/docs/index.html"

# PREFIX becomes a virtual environment, with man pages. benchio is built if there is MPI.
install:
	@test -n "$(PREFIX)" || { echo "Where to? make install PREFIX=DIR"; exit 1; }
	@test -e "$(PREFIX)/pyvenv.cfg" || test ! -e "$(PREFIX)/bin" || \
		{ echo "$(PREFIX) has other programs: name a directory for iobands alone"; exit 1; }
	@setup/system-packages python
	@echo "Installing to $(PREFIX), which takes a minute or two"
	@$(PYTHON) -m venv "$(PREFIX)"
	@"$(PREFIX)/bin/python" -m pip install --quiet --disable-pip-version-check '.[all]'
	@if command -v mpifort >/dev/null 2>&1; then \
		cmake -S src/benchio -B build/benchio >/dev/null && \
		cmake --build build/benchio >/dev/null && \
		cmake --install build/benchio --prefix "$(PREFIX)" >/dev/null; \
	else echo "benchio was not built: there is no mpifort"; fi
	@echo "Installed: PATH=$(PREFIX)/bin:\$$PATH"

# Needs root, to try the wheel in bare systems.
# For a rehearsal: RELEASE_ARGUMENTS="--skip tests faults".
release: $(VENV)/.installed-test
	@test -n "$(VERSION)" || { echo "Which one? make release VERSION=1.2.3"; exit 1; }
	@setup/system-packages release
	@$(BIN)/python setup/release.py $(VERSION) $(RELEASE_ARGUMENTS)

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/fortitude check src/benchio
	@# fprettify always exits with 0, so fail if it prints anything.
	@test -z "$$($(BIN)/fprettify --diff $(FORTRAN_SOURCES) | tee /dev/stderr)"
	shellcheck -x $(SHELL_SCRIPTS)

format: $(VENV)/.installed-test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/fprettify $(FORTRAN_SOURCES)

# For a login node: the site file names the compilers and MPI.
setup: $(VENV)/.installed

# A virtual environment contains its own path, so a moved clone gets a new one, and so does a clone
# with an incomplete one, as `activate` is written last.
VENV_IS_HERE = grep -qsF "$(CURDIR)/$(VENV)" $(BIN)/activate
$(shell $(VENV_IS_HERE) || rm -f $(VENV)/.installed*)

# One stamp for each set of packages, so that a second call does nothing. The system's packages are
# not checked again: the build reports a module that is not loaded.
$(VENV)/.installed: setup.cfg src/iobands/version.py
	@setup/system-packages python
	@echo "Python packages, in $(VENV), which takes a minute or two"
	@test -x $(BIN)/python && $(VENV_IS_HERE) || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]'
	@touch $@

$(VENV)/.installed-run: setup.cfg src/iobands/version.py setup/system-packages
	@echo "System packages"
	@setup/system-packages run
	@$(MAKE) --silent $(VENV)/.installed
	@touch $@

$(VENV)/.installed-test: setup.cfg src/iobands/version.py setup/system-packages
	@echo "System packages for the tests"
	@setup/system-packages run
	@setup/system-packages test
	@$(MAKE) --silent $(VENV)/.installed-check
	@touch $(VENV)/.installed-run $@

# All packages at once, as pip takes a minute to find which versions fit together.
$(VENV)/.installed-check: setup.cfg src/iobands/version.py setup/system-packages
	@setup/system-packages test || echo "Going on without: make check skips what needs them"
	@rm -f $(VENV)/.installed
	@$(MAKE) --silent EXTRAS=all,test,lint,docs $(VENV)/.installed
	@touch $@

# The compared detectors pin versions of packages that iobands also needs, so they get a virtual
# environment of their own.
$(VENV)-bench/.installed: setup.cfg
	@echo "Python packages for the benchmark, in $(VENV)-bench"
	@test -x $(VENV)-bench/bin/python || $(PYTHON) -m venv $(VENV)-bench
	@$(VENV)-bench/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[all,bench]'
	@touch $@

clean:
	rm -rf -- $(VENV) $(VENV)-bench $(DASHBOARD) demo build builds dist stage output
