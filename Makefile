# A course. `make book` builds the site, `make test` runs the tests; both set up what they need.

PYTHON ?= python3
CONSTRAINTS ?= constraints.txt
TORCH_INDEX ?=
PYODIDE ?=
SOLUTIONS ?= shown
PORT ?= 8000
PAGE ?=
EXERCISE ?=

export PYODIDE SOLUTIONS
export OPENBLAS_NUM_THREADS ?= 1

VENV := .venv
BIN := $(VENV)/bin
SITE := _build/html

.DEFAULT_GOAL := help
.PHONY: help book page serve lab exercises grade quick test test-all bench peers gpu-pages clean lint system preview
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

help:
	@echo "make book       build the site            make quick     what an author tests after each change"
	@echo "make serve      open the site             make test      run the tests"
	@echo "make lab        solve in work/            make test-all  the slow ones too"
	@echo "make exercises  write the notebooks       make bench     measure"
	@echo "make grade      grade submitted/          make peers     record what other libraries compute"
	@echo "make lint       read the code             make clean     remove what was built"
	@echo "make gpu-pages  run the notebooks of the GPU pages at every size, for hours, and keep what they measure"
	@echo "make page       build again what has changed on the pages, in seconds"
	@echo "make preview PAGE=book/<page>  for authors: one page, and what its exercises lack"

# What pip says goes to a file, which ends on the screen where pip stops: with --quiet it keeps its reasons to itself.
define pip
	@echo "pip install $(1)"
	@$(BIN)/python -m pip install --progress-bar off $(1) >$(VENV)/pip.log 2>&1 || { \
		tail -n 40 $(VENV)/pip.log >&2; \
		echo "make: \"pip install $(1)\" failed, for the reason above (all that pip said: $(VENV)/pip.log)." \
			"Without network or room on the disk: mend that and run make again. Where a package wants another Python" \
			"than $$($(BIN)/python --version): rm -r $(VENV), then name one that is installed, as in make PYTHON=python3.12" >&2; \
		exit 1; }
endef

# The environment: made once, renewed when a requirement changes. One without pip was left by a venv that failed.
$(VENV)/.ready: requirements.txt constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed; name one with: make PYTHON=python3.12")'
	@test -x $(BIN)/pip || { echo "$(PYTHON) -m venv $(VENV)"; $(PYTHON) -m venv $(VENV); }
	$(call pip,--upgrade pip)
	$(if $(TORCH_INDEX),$(call pip,--no-deps -c $(CONSTRAINTS) --index-url $(TORCH_INDEX) torch))
	$(call pip,-r requirements.txt -c $(CONSTRAINTS))
	@touch $@

# System packages: installed where that is possible, else named. Without bubblewrap and a browser the tests fail;
# without the others a few are skipped, so these are only tried.
system:
	@needed=""; useful=""; \
	command -v bwrap >/dev/null || needed="$$needed bubblewrap"; \
	command -v "$${CHROMIUM:-chromium}" >/dev/null || command -v google-chrome >/dev/null || needed="$$needed chromium"; \
	command -v initdb >/dev/null || ls -d /usr/lib/postgresql/*/bin >/dev/null 2>&1 || useful="$$useful postgresql"; \
	test -d "$${FASHION_MNIST:-/usr/share/datasets/fashion-mnist}" || useful="$$useful dataset-fashion-mnist"; \
	left=""; \
	if [ -n "$$needed$$useful" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq || true; \
		for package in $$needed $$useful; do \
			DEBIAN_FRONTEND=noninteractive apt-get install -qq -y $$package >/dev/null 2>&1 || left="$$left $$package"; \
		done; \
	else \
		left="$$needed$$useful"; \
	fi; \
	status=0; \
	for package in $$left; do \
		case $$package in \
			chromium) how="sudo apt-get install chromium; on Ubuntu, where it is a snap that does not see the tests' folders, Chrome as a .deb, or CHROMIUM=<its path>";; \
			*) how="sudo apt-get install $$package";; \
		esac; \
		case " $$needed " in \
			*" $$package "*) echo "$$package is needed and not here: $$how" >&2; status=1;; \
			*) echo "$$package is not here, its tests are skipped: $$how" >&2;; \
		esac; \
	done; \
	exit $$status

exercises: $(VENV)/.ready
	$(BIN)/python -m autograder.notebooks.generate

book: $(VENV)/.ready exercises
	mkdir -p _build
	$(BIN)/python book/build.py build . --all -n -W --keep-going 2>&1 | tee _build/book.log
	@echo "The site is in $(SITE). Open it with: make serve"

preview: $(VENV)/.ready
	@$(BIN)/python -m autograder.authoring.preview $(PAGE) $(EXERCISE)

# Only pages that have changed since `make book`; their cells run only where code has changed. The tests build it whole.
page: $(VENV)/.ready
	$(BIN)/python book/build.py build . -n -W --keep-going -q

serve: $(VENV)/.ready
	@test -f $(SITE)/index.html || { echo "There is no site yet: make book" >&2; exit 1; }
	@echo "http://localhost:$(PORT)  (Ctrl-C stops)"
	@$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory $(SITE)

# On copies, which are the learner's: `make exercises` writes over the originals.
lab: $(VENV)/.ready exercises
	@for notebook in exercises/*/*.ipynb; do \
		copy=$${notebook#exercises/}; \
		test "$${copy%/*}.ipynb" != "$${copy##*/}" || copy=$${copy##*/}; \
		mkdir -p "work/$$(dirname "$$copy")"; \
		test -e "work/$$copy" || cp "$$notebook" "work/$$copy"; \
	done
	$(BIN)/jupyter lab --notebook-dir work

grade: $(VENV)/.ready
	$(BIN)/python -m autograder grade

# Two workers for each core; a file's tests stay together, for they share what is slow to make. conftest.py orders them.
PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder
# What an author breaks first: exercises, their cases, the functions, notebooks. No site, no browser, no training.
LONG := $(addprefix tests/chapters/,test_training.py test_colour.py test_gpu_pages.py test_gpu_benchmark.py)
QUICK := $(addprefix tests/,test_cells.py test_exercises.py test_generate.py test_golden.py test_judge.py oddities) \
	$(filter-out $(LONG),$(wildcard tests/chapters/*.py))

test: $(VENV)/.ready system
	$(PYTEST)

test-all: $(VENV)/.ready system
	$(PYTEST) -m ''

quick: $(VENV)/.ready
	$(PYTEST) $(QUICK)

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy

bench: $(VENV)/.ready system
	for script in $(filter-out %/peers.py %/training.py %/gpu.py,$(wildcard benchmarks/*.py)); do echo "== $$script"; $(BIN)/python $$script; done
	@if [ -x _build/peers/bin/python ]; then PYTHONPATH=. _build/peers/bin/python benchmarks/training.py; \
	else echo "benchmarks/training.py is left out: it needs make peers"; fi

# The notebooks of the GPU pages, run whole at each size: hours, written down run by run, so that it can be cut off.
gpu-pages: $(VENV)/.ready system exercises
	PYTHONPATH=. $(BIN)/python benchmarks/runs/notebooks.py

peers:
	bash benchmarks/peers.sh $(PYTHON)

clean:
	rm -rf _build .pytest_cache .ruff_cache .hypothesis
