# Two commands for everyone: `make audit` and `make test`. Either may come first.
# PYTHON chooses the interpreter (3.11 or newer): make test PYTHON=python3.13

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin

.PHONY: audit test system validity check generated browser package libraries all-libraries lowest docs pages site docs-links pictures \
	benchmarks gallery watch clean
# Two targets would install into one environment at the same time.
.NOTPARALLEL:

audit: .venv/installed
	$(BIN)/dpaudit run configs/quickstart.yaml

# The suite to run at each change; .ci/run and .ci/environments run the targets below. worksteal: a worker that is
# done takes over tests that others have not begun.
test: .venv/installed-test
	$(BIN)/python -m pytest -n auto --dist worksteal

# Whole programs, processes and audits, from beginning to end.
system: .venv/installed-test
	$(BIN)/python -m pytest -n auto --dist worksteal tests/system

# Simulations of whole audits: false alarms, planted invalid twins, power.
validity: .venv/installed-test
	$(BIN)/python -m pytest -n auto --dist worksteal tests/validity

check: .venv/installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[0-9]*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml

# The files that tests compare with the code: docs/options.md, tests/house/surface.txt, tests/unit/reports/golden/.
generated: .venv/installed-test
	$(BIN)/python -m tests.house.test_options_page
	$(BIN)/python -m tests.house.test_surface
	$(BIN)/python -m tests.unit.reports.test_golden

# What would be published, on its own.
package: .venv/installed-dev
	$(BIN)/python -m pytest tests/package

# `test` and `system` with the oldest versions that pyproject.toml allows. From 0.39 on, check-jsonschema needs
# a newer click than it says.
lowest: .venv/installed-dev
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python build/lowest
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --extra dask --extra figures \
		--extra html --extra learned --extra parquet --output-file build/lowest.txt pyproject.toml
	$(BIN)/uv pip install --quiet --python build/lowest/bin/python --requirement build/lowest.txt \
		--editable '.[test]' 'check-jsonschema<0.39'
	build/lowest/bin/python -m pytest -n auto --dist worksteal
	build/lowest/bin/python -m pytest -n auto --dist worksteal tests/system

# The commands that the pages show, and the site, in build/site. What nitpicks find is an error; no page may fetch anything from elsewhere.
# Every page is read again, since Sphinx warns only of those that it reads.
SPHINX = $(BIN)/sphinx-build --fresh-env --fail-on-warning --keep-going --nitpicky --quiet \
	--doctree-dir build/doctrees docs

docs: pages site

pages: .venv/installed-dev
	$(BIN)/python -m pytest -n auto --dist worksteal tests/pages

site: .venv/installed-dev
	$(SPHINX) build/site
	@! grep -rE '<(script|link|img)[^>]+(src|href)="(https?:)?//|url\((https?:)?//' build/site \
		--include='*.html' --include='*.css'

# Needs the network, so it gates nothing.
docs-links: .venv/installed-dev
	$(SPHINX) build/links --builder linkcheck

# The pages of --report html in Chromium, whose driver is a program of its own.
browser: .venv/installed-browser
	@for program in chromium chromedriver; do command -v $$program >/dev/null || { \
		echo "make browser needs $$program, which is not installed; on Debian:" \
		"apt-get install chromium chromium-driver" >&2; exit 1; }; done
	$(BIN)/python -m pytest tests/browser

# The pictures of README.md and docs, taken in Chromium; each is below 120 kB.
pictures: .venv/installed-browser
	$(BIN)/python -m docs.site.pictures

benchmarks: .venv/installed-test
	@echo 'Run one with .venv/bin/python -m benchmarks.NAME; its figures go into benchmarks/RESULTS.md:'
	@grep -l __main__ benchmarks/*.py | sed 's|^benchmarks/\(.*\)\.py|  \1|'

# Released libraries in environments of their own, one for each list of pinned packages.
GALLERY := $(patsubst configs/gallery/%.txt,.gallery/%/installed,$(wildcard configs/gallery/*.txt))

gallery: .venv/installed $(GALLERY)
	$(BIN)/dpaudit run configs/gallery/*.yaml --quiet --json .gallery/results.json

# What is tested with libraries that are too large for every environment, or do not fit this one.
LIBRARIES := $(patsubst configs/libraries/%.txt,.libraries/%/installed,$(wildcard configs/libraries/*.txt))

# Of these, two small environments gate a change; the others take 3 GB, and are tested weekly.
libraries: .venv/installed-test .libraries/diffprivlib-0.6.6/installed .libraries/torch-2.13.0/installed
	$(BIN)/python -m pytest tests/libraries/test_diffprivlib.py tests/libraries/test_torch.py

all-libraries: .venv/installed-test $(LIBRARIES)
	$(BIN)/python -m pytest tests/libraries

# Mechanisms of libraries with the claims of these libraries, each file in the environment of its name.
# An audit that fails (3) or is under-powered (4) has its row, too.
WATCHED := $(patsubst configs/watch/%.yaml,%,$(wildcard configs/watch/*.yaml))

watch: .venv/installed $(WATCHED:%=.libraries/%/installed)
	mkdir -p .watch
	for name in $(WATCHED); do \
		.libraries/$$name/bin/dpaudit run configs/watch/$$name.yaml --quiet --workers 1 \
			--json .watch/$$name.json; \
		code=$$?; case $$code in 0|1|3|4) ;; *) exit $$code;; esac; done
	$(BIN)/python -m benchmarks.watch

clean:
	rm -rf .venv .gallery .libraries .watch build

# A virtual environment without pip would look finished to the next call, so it does not stay.
.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "dpaudit needs Python 3.11 or newer, and none was found;" \
		"name one: make PYTHON=/path/to/python" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "PYTHON=$(PYTHON) is not a Python 3.11 or newer that runs" >&2; exit 1; }
	"$(PYTHON)" -m venv .venv || { rm -rf .venv; echo "$(PYTHON) cannot make a virtual environment;" \
		"on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }

# Editable, so that the command audits with the code that is here; again when the dependencies change.
.venv/installed: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/installed-test: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@ .venv/installed

.venv/installed-browser: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[browser,test]'
	@touch $@ .venv/installed .venv/installed-test

.venv/installed-dev: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ .venv/installed .venv/installed-test .venv/installed-browser

.gallery/%/installed: configs/gallery/%.txt | .venv/bin/python
	rm -rf $(@D)
	$(BIN)/python -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

.libraries/%/installed: configs/libraries/%.txt pyproject.toml | .venv/bin/python
	rm -rf $(@D)
	$(BIN)/python -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $< --editable .
	@touch $@
