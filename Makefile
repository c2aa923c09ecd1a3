# Two commands: `make` builds everything and says where to look; `make test` checks everything.
# `make help` lists the rest.

NEW_ENOUGH := 'import sys; sys.exit(sys.version_info < (3, 11))'
# The first one that is new enough, preferably one that can create virtual environments; `make PYTHON=...` overrides it.
# The system's comes first: distributions compile it with optimisations that pyenv leaves out, so everything is faster.
PYTHONS := /usr/bin/python3 python3 python3.11 python3.12 python3.13
PYTHON ?= $(shell for module in ensurepip sys; do for p in $(PYTHONS); do \
	$$p -c "import $$module" 2>/dev/null && $$p -c $(NEW_ENOUGH) 2>/dev/null && echo $$p && exit; done; done)

SAMPLED := 02-self-attention
# What is installed grows in steps. Each is a dependency group of pyproject.toml, and includes the one before it.
STUDENT := .venv/.student
PYTORCH := .venv/.torch
READY := .venv/.book
TESTING := .venv/.test
BENCHING := .venv/.bench
# Later steps that are sure to follow. The first step installs them, too, because pip takes as long for one as for all.
MORE_STEPS :=
BOOK := _build/html/index.html
LITE := _build/html/lite/jupyter-lite.json
PDF := _build/attention.pdf
PAGES := $(wildcard book/*.md book/teaching/*.md)
BOOKTOOL := PYTHONPATH="$(CURDIR)/book$(addprefix :,$(PYTHONPATH))" python -m _tools
HELPERS := $(addprefix book/_tools/,ask_for_fork.py forked_python.py kernel_modules.py notebook_helpers.py elements.py explorer.py date_translator.py decoder.py minilm.py packing.py tiles.py residual.py) $(wildcard book/_figures/*.py)
SAMPLE := _build/sample
GRADES := $(SAMPLE)/reports/$(SAMPLED)/grades.html
REPORT := $(SAMPLE)/report.txt
SOLUTIONS := $(wildcard solutions/*/*.ipynb)
# A copy of the course without solutions/ has what the list of digests names, and no class to grade.
LISTED = $(or $(addprefix exercises/,$(shell cut -c 67- exercises/SHA256SUMS)),$(wildcard exercises/*/*.ipynb))
EXERCISES := $(if $(SOLUTIONS),$(SOLUTIONS:solutions/%=exercises/%),$(LISTED))
RELEASED := $(EXERCISES:exercises/%=_build/released/%)
LOST := $(filter-out $(wildcard $(RELEASED)),$(RELEASED))
GRADED := $(if $(SOLUTIONS),$(GRADES) $(REPORT))
GRADING := $(shell find grading -type f -not -name '*.pyc') nbgrader_config.py
LIBRARY := $(shell find attnlib -name '*.py' -o -name '*.txt')
NAMES := $(sort $(patsubst %/,%,$(dir $(EXERCISES:exercises/%=%))))
# Reject an unknown assignment name before anything is installed. Shell completion may have added a slash.
# What came on make's own command line as ID, in quotation marks for the shell. The environment may hold another ID.
GIVEN_ID = $(if $(filter command,$(origin ID)),--student='$(subst ','\'',$(value ID))')
UNKNOWN := $(if $(filter work,$(MAKECMDGOALS)),$(filter-out $(NAMES),$(ASSIGNMENT:/=)))
$(if $(UNKNOWN),$(error There is no assignment $(UNKNOWN). The assignments are: $(NAMES)))
export PATH := $(CURDIR)/.venv/bin:$(PATH)
SHELL := bash
export PYTHONHASHSEED := 0
# What is made here is made up, and has no place in the gradebook of a real class.
unexport ATTENTION_DB

.DEFAULT_GOAL := all
.PHONY: all made test check fast lint library help book lite pdf serve exercises work torch grade bench lock clean again chromium bubblewrap selftest
.PHONY: test-library test-grading test-book test-rest together-library together-grading together-book together-rest
.DELETE_ON_ERROR:
.PRECIOUS: $(EXERCISES) $(BOOK) $(LITE)

# make TORCH=cpu or TORCH=cuda chooses the build of PyTorch; otherwise install.py does.
export TORCH ?=

# Thousands of processes import what is here, so its modules are compiled once, and not by each of them.
unexport PYTHONDONTWRITEBYTECODE

# One thread each: the tests and the grading run side by side, and more threads than cores are slower than fewer.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

all: ## set up, build the book, generate the exercises, grade a sample class
	@$(MAKE) -s --no-print-directory $(STUDENT) MORE_STEPS="torch book"
	@$(MAKE) --no-print-directory -j 2 made
	@$(if $(GRADED),cat $(REPORT) && echo)
	@echo "Look here:"
	@echo "  the book                $(CURDIR)/$(BOOK)   (or: make serve)"
ifneq ($(SOLUTIONS),)
	@echo "  the grades of a class   $(CURDIR)/$(GRADES)"
	@echo "  a student's feedback    $(CURDIR)/$(SAMPLE)/feedback/dmitri/$(SAMPLED)/self-attention.html"
endif
	@echo "  the exercises           make work   (copies them into work/ and never overwrites what you have done there)"
	@echo "  all other commands      make help"

# The class is graded while pages are executed and written, which takes longest.
made: $(BOOK) $(LITE) $(RELEASED) $(GRADED)
	@:

test: ## set up and check everything: lint, types, tests, notebooks, book
	@$(MAKE) -s --no-print-directory -j 2 $(STUDENT) chromium MORE_STEPS="torch book test"
	@$(MAKE) --no-print-directory exercises
	@$(MAKE) --no-print-directory -j 4 together-book together-grading together-library together-rest

# These parts run in parallel, because the book and grading tests spend a lot of time waiting for pages and processes.
together-book together-grading together-library together-rest: together-%:
	@set -o pipefail; $(MAKE) --no-print-directory test-$* 2>&1 | sed -u 's/^/$*: /'

check: ## lint, types and the fast tests of every part, before each commit
	@$(MAKE) --no-print-directory -j 2 lint fast

fast: $(TESTING) | bubblewrap
	pytest -n auto --dist worksteal --cases 3 -m "not slow and not browser and not attack"

lint: $(TESTING)
	ruff check
	ruff format --check
	mypy
	cd book && deno check --quiet _explorer _static/*.js && deno lint --quiet && deno fmt --check

# The tests that take longest come first, so that none of them is left running alone at the end.
LIBRARY_TESTS := pytest -n auto --dist worksteal --first tests/attnlib/test_types.py --first tests/checks/test_report.py
library: $(TESTING) ## test the library and its checks alone
	$(LIBRARY_TESTS) tests/checks tests/attnlib tests/training

# When the other parts run at the same time, one process is enough: handing most of these tests to a worker would take
# longer than running them.
test-library: LIBRARY_TESTS := pytest
test-library: library

test-grading: $(TESTING) $(RELEASED) | bubblewrap
	pytest tests/grading $(SLOWEST:%=--deselect %)

# The slowest tests of the grading engine run in this part, because test-grading would otherwise be the last to end.
SLOWEST := $(addprefix tests/grading/,test_attacks.py test_faults.py test_whole_course.py)
test-rest: lint $(RELEASED) | bubblewrap
	pytest tests/house tests/exercises $(SLOWEST)

# The tests in a file share fixtures that are slow to build, so each file stays on one process. The slowest come first.
# All of them have a lower priority than the other parts, which run in one process each: otherwise one of those parts
# might be left running alone at the end.
test-book: book $(TESTING)
	nice -n 3 pytest -n logical --dist loadfile --no-loadscope-reorder --first tests/book/test_browser.py --first tests/book/test_explorer.py --first tests/book/test_word_watch.py tests/book

help: ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

book: $(BOOK) $(LITE) ## build the book into _build/html, warnings as errors, with the exercises for a browser

lite: $(BOOK) ## build the exercises for a browser once more; PYODIDE=ARCHIVE lets the site carry its own Python
	$(BOOKTOOL).lite $(dir $(LITE)) $(if $(PYODIDE),--pyodide "$(PYODIDE)")
	@touch $(LITE)

pdf: chromium $(PDF) ## print the book into _build/attention.pdf

serve: $(READY) ## show the book at http://localhost:8000; if the build fails, show the last version that succeeded
	@$(MAKE) --no-print-directory book || { test -f $(BOOK) && echo && \
		echo "The book could not be built (see above). Here is the last version that was built:"; }
	python -m http.server --bind 127.0.0.1 --directory _build/html 8000

exercises: $(RELEASED) ## generate exercises/ from solutions/

work: $(STUDENT) ## copy the exercises into work/ without overwriting any file there; ASSIGNMENT=NAME copies one, ID=YOURS puts your id into it
	@python -m grading work $(ASSIGNMENT) $(GIVEN_ID)
	@echo "Open a notebook from this folder, so that its links into the book work:" \
		".venv/bin/jupyter lab --notebook-dir=. work/ASSIGNMENT/NOTEBOOK.ipynb"

torch: $(PYTORCH) ## install PyTorch for the exercises: without it, what needs it is left out of them

grade: $(GRADES) ## make a sample class and grade it
	@python -m grading report $(SAMPLED) --course $(SAMPLE)

selftest: $(READY) bubblewrap ## probe the sandbox that student code runs in
	@python -m grading selftest

bench: $(BENCHING) ## measure attnlib against its peers
	env -u OMP_NUM_THREADS -u OPENBLAS_NUM_THREADS python benchmarks/attention.py
	env -u OMP_NUM_THREADS -u OPENBLAS_NUM_THREADS python benchmarks/minilm.py

lock: $(TESTING) ## renew requirements.txt from the dependency groups of pyproject.toml
	uv pip compile pyproject.toml --group bench --universal --python-version 3.11 --upgrade \
		--custom-compile-command "make lock" --output-file requirements.txt

clean: ## remove everything that make made, the environment too (a class in class/ stays)
	rm -rf _build .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Matplotlib takes a while to find all fonts. It stores the list here, so that no sandbox has to look for them.
# A sandbox that root starts runs as another user, who has to be able to read all of .venv.
FINISH_SETUP = env -u XDG_DATA_HOME HOME=/nonexistent MPLCONFIGDIR=.venv/share/matplotlib .venv/bin/python -c \
	"import matplotlib.font_manager" && chmod -R go+rX .venv

$(STUDENT): requirements.txt pyproject.toml install.py
	@.venv/bin/python -c $(NEW_ENOUGH) 2>/dev/null || rm -rf .venv
	@test -x .venv/bin/python || $(PYTHON) -c $(NEW_ENOUGH) 2>/dev/null || { \
		echo "Python 3.11 or newer is needed, but $(if $(PYTHON),'$(PYTHON)' is not one,none was found)." \
			"Install it, or say where it is: make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv || { rm -rf .venv; \
		echo "$(PYTHON) cannot make virtual environments. On Debian and Ubuntu: sudo apt-get install python3-venv"; exit 1; }
	@.venv/bin/python install.py $(lastword student $(MORE_STEPS))
	$(if $(MORE_STEPS),@$(FINISH_SETUP))
	@touch $@ $(MORE_STEPS:%=.venv/.%)

$(PYTORCH): $(STUDENT) $(wildcard model/*.toml model/stdlib_lm/*)
$(READY): $(PYTORCH)
$(TESTING): $(READY)
$(BENCHING): $(TESTING)
$(PYTORCH) $(READY) $(TESTING) $(BENCHING):
	@.venv/bin/python install.py $(@F:.%=%)
	@$(FINISH_SETUP)
	@touch $@

# These change every page. Otherwise a page is built again when it changed, or what it imports (book/_ext/execution.py).
_build/.fresh: $(READY) _config.yml _toc.yml $(wildcard book/*.bib book/_static/* book/_explorer/* book/_extra/* \
		book/_templates/* model/stdlib_lm/*) $(wildcard book/_ext/*.py book/_ext/*.js book/_vendor/*) $(addprefix book/_tools/,build.py decoder.py font_subset.py minilm.py packing.py reading_time.py svg_minify.py theme_subset.py)
	@mkdir -p _build && rm -rf _build/book/html _build/book/.doctrees && touch $@

$(BOOK): _build/.fresh $(PAGES) $(wildcard deploy/* deploy/*/*) $(RELEASED) $(LIBRARY) $(GRADING) $(HELPERS) $(wildcard training/*.py training/*.csv training/held_out/*) | bubblewrap
	@$(BOOKTOOL).build
	@touch $@

# JupyterLite, with the exercises and attnlib in it; the pages lead there.
$(LITE): _build/.fresh $(LIBRARY) $(RELEASED) book/_tools/lite.py book/_tools/lite.html pyproject.toml | $(BOOK)
	@$(BOOKTOOL).lite $(@D)
	@touch $@

$(PDF): $(BOOK) book/_tools/pdf.py book/_tools/chromium.py
	@$(BOOKTOOL).build --builder singlehtml
	$(BOOKTOOL).pdf _build/book/singlehtml $@

# What is released goes to _build/released, from which the book is built, and to exercises/, where nobody's work is
# replaced. Files that stay the same keep their times, so that nothing that depends on them is built again.
_build/.released: $(SOLUTIONS) $(EXERCISES) $(wildcard exercises/SHA256SUMS) nbgrader_config.py \
		grading/handout.py grading/release.py grading/course.py $(READY) $(if $(LOST),again)
	@python -m grading release
	@touch $@

$(RELEASED): _build/.released
	@test -f $@

again: # where one of these is missing, all are released again

$(EXERCISES): # where one is missing, it is released again
	@:

# Where no sandbox can be had, the sample class is graded without one: its students are our own.
$(GRADES): $(READY) $(LIBRARY) $(GRADING) $(RELEASED) | bubblewrap
	@rm -rf $(SAMPLE)
	python -m grading sample $(SAMPLED) --course $(SAMPLE)
	@python -m grading run $(SAMPLED) --course $(SAMPLE) --timeout 2 >$(SAMPLE)/said || { \
		echo "Grading the made-up class without a sandbox. A real one: make selftest says what is missing"; \
		python -m grading run $(SAMPLED) --course $(SAMPLE) --timeout 2 --unsandboxed >$(SAMPLE)/said; }
	@touch $@

# What make shows of the grades, so that it need not start Python to say it again.
$(REPORT): $(GRADES)
	@python -m grading report $(SAMPLED) --course $(SAMPLE) >$@

MAY_INSTALL := [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null
APT_INSTALL := DEBIAN_FRONTEND=noninteractive apt-get install -y -qq

# Student code runs in a sandbox made by bubblewrap.
bubblewrap:
	@command -v bwrap >/dev/null && exit 0; \
	if $(MAY_INSTALL); then \
		echo "Installing bubblewrap for the sandbox"; \
		apt-get update -qq && $(APT_INSTALL) bubblewrap >/dev/null && exit 0; fi; \
	echo "No bubblewrap: student code cannot be isolated. Install it (Debian and Ubuntu: sudo apt-get install bubblewrap)"

# The tests of the built pages need a browser. Without one they are skipped, and say so. Chromium's headless shell takes
# a third of the processor time of Chromium itself, so it is installed even if another browser is there.
chromium: | bubblewrap
	@command -v chromium-headless-shell >/dev/null && exit 0; \
	test -n "$(CHROMIUM)" && exit 0; \
	if $(MAY_INSTALL); then \
		echo "Installing Chromium's headless shell for the tests of the book"; \
		$(APT_INSTALL) chromium-headless-shell >/dev/null 2>&1 && exit 0; fi; \
	for b in chromium chromium-browser google-chrome; do command -v $$b >/dev/null && exit 0; done; \
	if $(MAY_INSTALL) && apt-get update -qq; then \
		for b in chromium-headless-shell chromium; do $(APT_INSTALL) $$b >/dev/null 2>&1 && exit 0; done; fi; \
	echo "No Chromium: the browser tests will be skipped. Install it (Debian: sudo apt-get install chromium-headless-shell) or set CHROMIUM=/path/to/it"
