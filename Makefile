# Each target sets up what it needs in .venv, from nothing but python3 (3.11 or newer) and make.

PYTHON  ?= python3
VENV    ?= .venv
FOLDER  ?= build/streams
WORKERS ?= 2
MINUTES ?= 30

BIN    := $(VENV)/bin
# The two test processes take whole files from each other, so that fixtures of a module are made once.
PYTEST := $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

# Where runnable examples live, beside the tests.
DOCTESTS    := src/maxcosine README.md $(filter-out %/spark.md,$(wildcard docs/*.md docs/*/*.md))
# What needs Spark, and is run by `make test-spark` alone.
SPARK_TESTS := tests/distributed/spark src/maxcosine/distributed/spark $(wildcard docs/*/spark.md)
SPARK_KILLS := tests/distributed/spark/test_lost_executors.py

# A change of any of these rebuilds the core; build/ keeps what did not change.
CORE := CMakeLists.txt $(shell find core -name '*.?pp')

.DEFAULT_GOAL := help
.NOTPARALLEL: # two installations into one environment would collide; pytest runs in parallel itself
.DELETE_ON_ERROR:
.PHONY: help demo test test-all test-fuzz test-browser test-spark fuzz lint bench bench-streams bench-records gallery results-onepass docs clean

help:
	@echo "maxcosine: single-pass linear classifiers that carry a proof"
	@echo
	@echo "  make demo      the paper's experiment: a table, a verdict, and a report to open"
	@echo "  make test      the test suite; a few minutes"
	@echo "  make test-all  the slow tests, fuzzing, a real browser, Spark and the documentation, in addition"
	@echo "  make lint      style, types, import layers, docstrings"
	@echo "  make fuzz      look for bugs in the parsers and the index; MINUTES=30"
	@echo "  make bench     speed beside scikit-learn and River, both in one run; prints a table"
	@echo "  make bench-streams  from text files to models, beside Vowpal Wabbit; FOLDER=DIR for 20 GB of files"
	@echo "  make bench-records  raw records to learners, beside scikit-learn and fastText; DATA=DIR with the records"
	@echo "  make gallery   test mistakes of derived learners, and the page that shows them; DATA=DIR with the data sets"
	@echo "  make results-onepass  OnePassClassifier beside other learners, and the page; DATA=DIR with the data sets"
	@echo "  make docs      the documentation, into docs/_build/html"
	@echo "  make clean     remove what the targets wrote, except $(VENV)"
	@echo
	@echo "The first run of each installs what it needs into $(VENV), and nowhere else."
	@echo "Another interpreter:  make test PYTHON=python3.12 VENV=.venv312"
	@echo "More test processes:  make test WORKERS=8"

demo: $(VENV)/.installed-report
	@$(BIN)/maxcosine reproduce --onepass --force $(if $(DATA),--data $(DATA))

test: $(VENV)/.installed-test
	@$(PYTEST) -m "not slow and not browser and not spark" --doctest-modules --doctest-glob='*.md' \
	  $(addprefix --ignore=,$(SPARK_TESTS)) tests $(DOCTESTS)

test-all: $(VENV)/.installed-test docs test-fuzz test-browser test-spark
	@echo "== slow tests"
	@$(PYTEST) -m "slow and not spark and not browser"

# Five minutes in all, and one of threads under ThreadSanitizer.
test-fuzz: $(VENV)/.build-tools
	@echo "== fuzzing the core, with sanitizers"
	@$(BIN)/python core/fuzz/run.py --seconds 300

fuzz: $(VENV)/.build-tools
	@$(BIN)/python core/fuzz/run.py --seconds $$(($(MINUTES) * 60)) --libfuzzer

test-browser: $(VENV)/.installed-browser
	@command -v chromium || command -v chromium-browser || command -v google-chrome || { \
	  echo "installing Chromium"; { apt-get update -qq && apt-get install -qq -y chromium; } >/dev/null || { \
	  echo "error: Chromium is missing; install it, for example by: sudo apt-get install chromium" >&2; exit 1; }; }
	@echo "== the report, in Chromium"
	@$(PYTEST) -m browser

test-spark: $(VENV)/.installed-test $(VENV)/.installed-spark
	@test -x "$$JAVA_HOME/bin/java" || command -v java || { \
	  echo "installing Java"; { apt-get update -qq && apt-get install -qq -y openjdk-17-jre-headless; } >/dev/null || { \
	  echo "error: Java is missing; install it, for example by: sudo apt-get install openjdk-17-jre-headless" >&2; exit 1; }; }
	@echo "== Spark, on a cluster of two executors"
	@$(BIN)/python -m pytest -q --doctest-modules $(filter-out docs/%,$(SPARK_TESTS)) --ignore=$(SPARK_KILLS)
	@$(BIN)/python -m pytest -q $(SPARK_KILLS) # on a cluster of its own: it loses its executors
	@$(BIN)/python -m pytest -q --doctest-glob='*.md' $(filter docs/%,$(SPARK_TESTS))

lint: $(VENV)/.installed-lint
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python -m numpydoc lint $$(git ls-files 'src/maxcosine/*.py')

bench: $(VENV)/.installed-test
	@$(BIN)/python benchmarks/run.py $(if $(DATA),--data $(DATA))

bench-streams: $(VENV)/.installed-bench
	@$(BIN)/python benchmarks/streams.py --folder $(FOLDER) --json docs/results/performance.json
	@$(BIN)/python docs/generate_performance.py

# LARGE=--large measures memory with 10 GB, too; the files are in FOLDER and are deleted.
bench-records: $(VENV)/.installed-bench
	@test -n "$(DATA)" || { echo "error: name the folder of records: make bench-records DATA=DIR" >&2; exit 1; }
	@mkdir -p $(FOLDER)
	@OMP_NUM_THREADS=1 $(BIN)/python benchmarks/records.py --data $(DATA) --folder $(FOLDER) $(LARGE) \
	  --json docs/results/records.json
	@$(BIN)/python docs/generate_records.py

gallery: $(VENV)/.installed-test
	@test -n "$(DATA)" || { echo "error: name the folder of data sets: make gallery DATA=DIR" >&2; exit 1; }
	@$(BIN)/python benchmarks/gallery.py --data $(DATA) --json docs/results/gallery.json
	@$(BIN)/python docs/generate_gallery.py

results-onepass: $(VENV)/.installed-bench
	@test -n "$(DATA)" || { echo "error: name the folder of data sets: make results-onepass DATA=DIR" >&2; exit 1; }
	@$(BIN)/python benchmarks/onepass.py --data $(DATA) --json docs/results/onepass.json
	@$(BIN)/python docs/generate_onepass.py

docs: $(VENV)/.installed-docs
	@$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "documentation: docs/_build/html/index.html"

clean:
	@rm -rf docs/_build docs/reference/generated build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
	@echo "clean; to start over entirely, remove $(VENV) too"

# --- set-up ----------------------------------------------------------------------------------

$(VENV)/.created:
	@$(PYTHON) -c "" >/dev/null 2>&1 || { \
	  echo "error: $(PYTHON) not found or not working. Install Python 3.11 or newer," \
	    "or name one: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: maxcosine needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) -V 2>&1)." \
	    "Name a newer one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "error: $(PYTHON) cannot create virtual environments: its venv or ensurepip module is" \
	    "missing. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "creating $(VENV) with $$($(PYTHON) -V)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input

# What builds the core. A machine without a C++ compiler gets one from PyPI.
$(VENV)/.build-tools: packaging/backend.py $(VENV)/.created
	@$(PIP) scikit-build-core nanobind cmake ninja setuptools wheel # the last two build pyspark
	@$(PIP) $$($(BIN)/python packaging/backend.py) pip
	@touch $@

$(VENV)/.installed-%: pyproject.toml $(CORE) $(VENV)/.build-tools
	@echo "building the core and installing maxcosine[$*] into $(VENV)"
	@PATH="$(abspath $(BIN)):$$PATH" $(PIP) --no-build-isolation -Cbuild-dir='build/{wheel_tag}' -e '.[$*]'
	@touch $@
