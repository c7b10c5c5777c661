# Everything a person does with this project, one target each.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help setup run test check fmt proto docs lock bench bench-queue bench-pages bench-dedup bench-scale bench-media contact-sheet image clean tools

python := .venv/bin/python
# Running needs less than developing; both live in the same .venv.
run_stamp := .venv/.run-stamp
dev_stamp := .venv/.dev-stamp
bench_stamp := .venv-bench/.stamp
deploy_stamp := .venv-deploy/.stamp
node := tests/wire/node
node_stamp := $(node)/node_modules/.stamp
sharp_stamp := bench/node/node_modules/.stamp

help: ## list the targets
	@echo "usage: make <target>"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-11s %s\n", $$1, $$2}' Makefile

setup: $(dev_stamp) ## make .venv with the mediaplane command and every development tool
	@echo "ready: .venv/bin/mediaplane"

$(run_stamp): requirements.txt pyproject.toml tools/setup.sh
	@tools/setup.sh requirements.txt
	@touch $@

$(dev_stamp): requirements.txt requirements-dev.txt pyproject.toml tools/setup.sh
	@tools/setup.sh requirements-dev.txt
	@touch $(run_stamp) $@

# Values come from the command line and may hold spaces or quotes, so the shell reads them from
# the environment instead of seeing them as program text. ARGS is split into words on purpose.
run: override export LIBRARY := $(value LIBRARY)
run: $(run_stamp) ## start both planes on a library: make run LIBRARY=/path/to/photos [ARGS=...]
	@if [ -z "$$LIBRARY" ]; then \
	  echo "Which library? make run LIBRARY=/path/to/photos" >&2; exit 2; \
	fi
	@# Not every shell expands ~ in LIBRARY=~/Pictures.
	@exec .venv/bin/mediaplane up "$${LIBRARY/#\~\//$$HOME/}" $(ARGS)

test: setup tools check ## everything needed on a fresh machine, then check

tools: ## install the Debian packages that tests use, where permitted
	@tools/debian_tools.sh

check: $(dev_stamp) $(node_stamp) $(deploy_stamp) ## lint, types, contracts, drift and tests; PYTEST='-k name' narrows the tests
	@$(python) tools/check.py $(PYTEST)

# Install scripts are not needed, and what is not run cannot do harm.
$(node_stamp): $(node)/package-lock.json
	@if command -v npm >/dev/null; then \
	  npm ci --prefix $(node) --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null && touch $@; \
	else \
	  echo "npm is missing: the tests of the second-language client will skip" >&2; \
	fi

fmt: $(dev_stamp) ## format and fix what can be fixed
	@.venv/bin/ruff check --fix --quiet || true
	@.venv/bin/ruff format --quiet

proto: $(dev_stamp) ## generate mediaplane/v1 from proto/
	@$(python) tools/generate_proto.py

docs: $(dev_stamp) ## generate the tables in docs/
	@$(python) -m mediaplane.protocol.docs

lock: $(dev_stamp) ## pin every dependency again; LOCK=--upgrade takes the newest
	@tools/lock.sh $(LOCK)

bench: $(dev_stamp) ## measure the promises, each against a peer or a limit in the same run
	@$(python) -m bench.startup

bench-queue: $(dev_stamp) $(bench_stamp) ## measure the job engine beside other queues; ROUNDS=n, QUICK=1
	@$(python) -u -m bench.queue

bench-dedup: $(dev_stamp) ## measure the duplicate search beside jdupes, rdfind and b3sum; as root; QUICK=1
	@for tool in jdupes rdfind b3sum; do command -v $$tool >/dev/null || tools/debian_tools.sh $$tool; done
	@$(python) -u -m bench.dedup

bench-pages: $(dev_stamp) ## measure pages of listings among up to 10 million rows; QUICK=1
	@$(python) -u -m bench.pages

bench-scale: $(dev_stamp) ## measure memory, shared work and purges with a million files; BENCH_DIR=, QUICK=1
	@$(python) -u -m bench.scale

bench-media: $(dev_stamp) $(sharp_stamp) ## measure pictures beside sharp, videos beside ffmpeg, and thumbnail requests; QUICK=1
	@command -v ffmpeg >/dev/null || tools/debian_tools.sh ffmpeg
	@status=0; for part in media_pictures media_videos admission; do \
	  $(python) -u -m bench.$$part || status=1; done; exit $$status

$(sharp_stamp): bench/node/package-lock.json
	@command -v npm >/dev/null || tools/debian_tools.sh npm
	@npm ci --prefix bench/node --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null && touch $@

contact-sheet: $(dev_stamp) ## draw real pictures and videos of every sort, to be looked at: build/contact-sheet.jpg
	@$(python) -m tools.contact_sheet build/contact-sheet.jpg

# Another base than the registry's: make image BASE=localhost/python BUILD='buildah build'
BUILD ?= podman build
image: ## build the container image of both planes: localhost/mediaplane
	@$(BUILD) $(if $(BASE),--build-arg BASE=$(BASE)) --tag localhost/mediaplane --file deploy/Dockerfile .

# uv is one of the development tools, so it is at hand whatever made .venv.
$(bench_stamp) $(deploy_stamp): .venv-%/.stamp: requirements-%.txt | $(dev_stamp)
	@rm -rf $(@D)
	@.venv/bin/uv venv --quiet --no-python-downloads --python $(python) $(@D)
	@.venv/bin/uv pip install --quiet --compile-bytecode --python $(@D)/bin/python \
	  --require-hashes -r $<
	@touch $@

clean: ## remove everything that can be made again
	rm -rf .venv .venv-bench .venv-deploy $(node)/node_modules bench/node/node_modules build *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
