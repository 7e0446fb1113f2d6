# Each target works as the first command in a fresh clone: it makes .venv and installs what it needs, once.
PYTHON ?= python3
BIN := .venv/bin
# Programs in an environment name its place, so one that was moved with its folder is made anew.
MOVED := $(shell [ ! -f .venv/.place ] || [ "$$(cat .venv/.place)" = "$(CURDIR)" ] || { rm -rf .venv; echo moved; })
PORTABLE = KNAPPER_SANDBOX_LEVEL=portable $(SUITE)
SAMPLE := tests/sandbox/test_calls_and_their_outcomes.py tests/sandbox/test_what_honest_functions_need.py tests/debugging/test_stops.py
SUITE := $(BIN)/python -m pytest -q -m "not slow and not model and not page"
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# What is made at the prompt is kept in a folder that git ignores. A clone that was used as a workspace goes on as one,
# whatever the program was called then.
WORKSPACE ?= $(if $(wildcard .*/state.db),.,workspace)
READY = [ "$(origin WORKSPACE)" != file ] || [ -e "$(WORKSPACE)/knapper.toml" ] || { $(BIN)/knapper init --json "$(WORKSPACE)" >/dev/null && echo "What you make is kept in $(WORKSPACE)/." >&2; }

# Where no level of the machine's own holds, functions run in the extra [portable], as soon as there is one.
FUNCTIONS = ! grep -q '^portable = ' pyproject.toml || $(BIN)/python -c 'import asyncio, sandbox; asyncio.run(sandbox.Sandbox.start(packages=()))' 2>/dev/null || { echo "No level of the sandbox holds here: installing the extra [portable]." >&2; $(PIP) --editable '.[portable]' >&2 || echo 'It could not be installed: functions do not run until `$(BIN)/knapper doctor` names a level. To try again: rm .venv/.run' >&2; }

.PHONY: run serve demo test test-page soak arm64 check check-platforms format bench bench-peers bench-groups bench-compare conformance fuzz recording page-walk guide cluster soak-cluster clean
.DELETE_ON_ERROR:

# `make run MODEL=local` fetches the local model if it is not here; `make run WORKSPACE=FOLDER` works in that folder.
run: .venv/.run
	@$(READY)
	@cd "$(WORKSPACE)" && exec "$(CURDIR)/$(BIN)/knapper" run $(if $(MODEL),--model '$(MODEL)')

serve: .venv/.serve
	@$(READY)
	@$(BIN)/knapper --workspace "$(WORKSPACE)" serve $(if $(MODEL),--model '$(MODEL)')

# In a workspace of its own, which is gone afterwards. Without a terminal it plays by itself.
demo: .venv/.run
	@[ -t 0 ] && [ -t 1 ] || exec </dev/null 2>&1; \
	echo "The demo has a folder of its own, which is removed with all that was made in it when you leave."; \
	there=$$(mktemp -d) && trap 'rm -rf "$$there"' EXIT && $(BIN)/knapper init "$$there" >/dev/null 2>&1 && $(BIN)/knapper -C "$$there" run --model tour

# A part of what is tried, on two cores; `soak` tries all of it. Bytecode first, and kept even where the environment
# says otherwise: what starts anew in a test, as sandboxes do, and each worker would compile every module again.
# A test that fails only beside others is told, and counts if it fails by itself, too.
test: export PYTHONDONTWRITEBYTECODE =
test: .venv/.dev
	@$(BIN)/python -m compileall -q agent_core knapper knapper_ext meta_functions sandbox tests
	@rm -rf .pytest_cache
	$(SUITE) -n 3 --dist worksteal || { echo "Once more, alone, what failed beside all others:"; $(SUITE) --last-failed --last-failed-no-failures none; }
	$(PORTABLE) -n 3 $(SAMPLE) || $(PORTABLE) --last-failed --last-failed-no-failures none

# The long tests, every case of those of which the suite runs a sample, and properties with new examples.
soak: .venv/.dev
	$(BIN)/python -m pytest -q -m "(slow or hypothesis or sampled) and not model" --hypothesis-profile searching
	$(PORTABLE) -n 2 tests/sandbox tests/debugging tests/gate tests/attacks

# The level portable and a sample of the attacks on arm64, which qemu emulates: as root, on Debian.
arm64:
	@sh tests/kit/arm64.sh tests/knapper_ext/portable/test_the_portable_level.py $(SAMPLE) tests/attacks/test_every_row.py

# Workers and their database under faults at random, for an hour: `make soak-cluster MINUTES=10` for less.
soak-cluster: .venv/.dev
	$(BIN)/python -m benchmarks.soak --minutes $(or $(MINUTES),60)

# The page in a browser: Chromium as the system has it, playwright in this environment, axe-core below the cache folder.
test-page: .venv/.dev
	$(PIP) playwright
	$(BIN)/python -m tests.kit.npm
	$(BIN)/python -m pytest -q -n 2 -m page tests/knapper_ext/server

check: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tests.kit.tracked
	$(BIN)/python -m tests.kit.house

# The same types for systems on which nothing of this can be run here, without what runs on Linux or in the component.
ON_LINUX := confine/(calls|kernel|landlock|limits|namespaces|seccomp)|inside/|portable/(guest|memory_files)|processes/(cgroup|launch|zygote)
check-platforms: .venv/.dev
	@for platform in darwin win32; do $(BIN)/mypy --platform $$platform --cache-dir .mypy_cache/$$platform --no-warn-unreachable --follow-imports silent --exclude '^(sandbox|knapper_ext)/($(ON_LINUX))' agent_core knapper knapper_ext meta_functions sandbox || exit 1; done

format: .venv/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# A database, three workers and a folder for the prompt, gone afterwards: `make cluster MODEL=tour` needs no model.
cluster: .venv/.dev
	@$(BIN)/python -m benchmarks.cluster $(if $(MODEL),--model $(MODEL))

bench: .venv/.dev
	$(BIN)/python -m benchmarks

# Other frameworks, each installed into an environment of its own below the cache folder, at the first time.
bench-peers: .venv/.dev
	$(BIN)/python -m benchmarks.peers

# Real clients of the server, each installed into an environment of its own below the cache folder, at the first time.
conformance: .venv/.dev
	$(BIN)/python -m benchmarks.conformance

# Requests made from the API's own description, by schemathesis in an environment of its own.
fuzz: .venv/.dev
	$(BIN)/python -m benchmarks.conformance.fuzz

# Who speaks next in a group, beside the same frameworks.
bench-groups: .venv/.dev
	$(BIN)/python -m benchmarks.peers.groups

# What is here beside another commit: `make bench-compare BASE=main`, or of some benches: `… NAMES="turn startup"`.
bench-compare: .venv/.dev
	$(BIN)/python -m benchmarks.compare $(or $(BASE),$(error Say which commit: make bench-compare BASE=…)) $(NAMES)

# What is shown of the program is played in a pseudo-terminal, from the program as it is.
recording: .venv/.dev
	$(BIN)/python -m benchmarks.recording docs/recording.svg

# From a new workspace to the first grown function in the page, as pictures.
page-walk: .venv/.dev
	$(PIP) playwright
	$(BIN)/python -m benchmarks.page_walk

guide: .venv/.dev
	$(BIN)/python -m benchmarks.guide_walk

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("Knapper needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + ". Say which to use: make PYTHON=python3.12 …") if sys.version_info < (3, 11) else None'
	@echo "Installing into .venv: about a minute, once." >&2
	@$(PYTHON) -m venv .venv && echo "$(CURDIR)" > .venv/.place

# The local model's engine has no wheel for every platform: without it everything else still works.
.venv/.run: .venv/bin/python pyproject.toml constraints.txt
	@$(PIP) --editable '.[local]' >&2 || { echo "The engine of the local model (xllamacpp) is not available here: installing without it." >&2; $(PIP) --editable . >&2; }
	@$(FUNCTIONS)
	@$(BIN)/python -m compileall -q agent_core knapper knapper_ext meta_functions sandbox
	@touch $@

.venv/.serve: .venv/.run
	@$(PIP) --editable '.[server]' >&2
	@touch $@

.venv/.dev: .venv/.run
	@$(PIP) --editable '.[dev,embeddings]'
	@touch $@
