# Everything a person types. `make` lists it.
STACK ?= dev
PLUGINS ?= auto
PYTHON ?= python3
ARGS ?=
CLEAN ?=
NODES ?=
POLICIES ?= on
TOOLS ?= auto
DIR ?=
MONITORING ?=
BASE ?= origin/main

export PLUGINS NODES POLICIES TOOLS MONITORING
# Images often set it. Without bytecode each of the hundreds of Python processes compiles all that it imports again.
unexport PYTHONDONTWRITEBYTECODE
LOCAL = .venv/bin/python -m local
# In the order of files and lines; `make test ORDER=` shuffles (docs/testing.md).
ORDER ?= -p no:randomly
PYTEST = .venv/bin/python -m pytest $(ORDER)

# The tests by what they need (docs/testing.md). Each process of the engine tests has a control plane or more. Tests with
# real pods wait half of the time, so a process runs others beside them, about as long.
unit = tests/unit --numprocesses auto --dist worksteal
by_file = --numprocesses logical --maxprocesses 6 --dist loadfile --no-loadscope-reorder
clusters = tests/pods tests --ignore tests/unit --verbose $(by_file)
beside = tests/unit tests/differential $(patsubst %,tests/engine/test_%.py,gangs kueue manifests rehearse)
engine = tests $(patsubst %,--ignore %,tests/pods $(beside)) --verbose $(by_file)
pods = tests/pods --verbose --numprocesses 2 --dist loadscope --no-loadscope-reorder --durations=25

.DEFAULT_GOAL := help
.PHONY: help up down status page kubeconfig env preview refresh destroy pulumi review rehearse mirror wheel docs test test-all test-quick test-rest test-differential test-pods test-llm test-failover bench-failover lint format requirements

help: ## List these commands.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  Settings: STACK=dev  PLUGINS=auto|real|stand-in  NODES=simulated|real (with up)  POLICIES=on|off (with up, preview, rehearse)  MONITORING=1 (with up)  BASE=main (with review)  CLEAN=1 (with down)"
	@echo "  Where programs that are missing come from: TOOLS=auto|build|FOLDER|URL (docs/tools.md)"

up: .venv/installed ## Start the rehearsal cluster and run `pulumi up` of STACK; recovers one that was killed.
	@$(LOCAL) up --stack $(STACK)

# A run folder without .venv still has processes or data, so .venv is installed again.
down: $(if $(wildcard .venv/installed),,$(if $(wildcard .rehearsal .rehearsal-*),.venv/installed)) ## Stop it. CLEAN=1 also removes data of all rehearsals, .venv, dist, site and caches; only the tool cache stays.
	@if [ -e .venv/installed ]; then $(LOCAL) down $(if $(filter 1,$(CLEAN)),--clean); else echo "Nothing to stop."; fi
ifeq ($(CLEAN),1)
	@rm -rf .venv dist site .mypy_cache .ruff_cache .pytest_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
endif

status: .venv/installed ## Show what runs, the nodes and the RayClusters with their state.
	@$(LOCAL) status

page: .venv/installed ## Serve a page of STACK with its nodes and what waits, until Ctrl-C. ARGS="--port N".
	@$(LOCAL) page --stack $(STACK) $(ARGS)

kubeconfig: .venv/installed ## Print the path of the cluster's kubeconfig.
	@$(LOCAL) kubeconfig

env: .venv/installed ## For a shell of your own: eval "$$(make -s env)", then ray-platform, pulumi and kubectl use the rehearsal.
	@$(LOCAL) env --stack $(STACK)

preview: .venv/installed ## Show what `pulumi up` would do; each field with ARGS=--diff.
	@$(LOCAL) environment --stack $(STACK) -- preview $(if $(filter on,$(POLICIES)),--policy-pack policies) $(ARGS)

refresh: .venv/installed ## Show what has changed in the cluster behind Pulumi's back, and take it into the state.
	@$(LOCAL) environment --stack $(STACK) -- refresh --yes $(ARGS)

destroy: .venv/installed ## Remove everything that the stack made from the cluster.
	@$(LOCAL) environment --stack $(STACK) -- destroy --yes $(ARGS)

pulumi: .venv/installed ## Any other command, for example: make pulumi ARGS="stack output --json"
	@$(LOCAL) pulumi --stack $(STACK) -- $(ARGS)

review: .venv/installed ## The comment on a pull request: what differs from BASE does to each stack (docs/pull-requests.md).
	@bin/ray-platform review --base $(BASE) $(ARGS)

rehearse: .venv/installed ## STACK at its real size on a cluster of its own, compared with its plan (docs/rehearse.md).
	@$(LOCAL) rehearse --stack $(STACK) $(ARGS)

mirror: .venv/installed ## Archives of the tools for DIR=FOLDER, which TOOLS=FOLDER or its URL takes them from (docs/tools.md).
	@$(if $(DIR),,$(error DIR is empty: make mirror DIR=FOLDER))$(LOCAL) mirror "$(DIR)"

wheel: .venv/installed ## Build the Python package for other Pulumi programs into dist/ (docs/package.md).
	@.venv/bin/python -m hatchling build --target wheel

docs: .venv/installed ## Build the pages as a site into site/; fails for a link that leads nowhere.
	@.venv/bin/python -m local.site

ifeq ($(ARGS),)
test: test-quick quick-clusters ## Five minutes: the parts of the program, one set with the real engine, one test with real pods. ARGS="FILE": that, whatever it takes.
	@echo "Passed. Left out: the tests with the marker thorough. make test-rest runs them, make test-all everything (docs/testing.md)."
else
test: build
	@$(PYTEST) -m "not pods" $(by_file) $(ARGS)
endif

test-all: test test-rest ## All tests: about 45 minutes on two cores.

test-rest: thorough-engine thorough-pods ## What `make test` leaves out.

test-quick: quick-unit ## Most unit tests: no server, a minute.

.NOTPARALLEL:
.PHONY: build real-node
build: .venv/installed
	@$(LOCAL) build --tests

real-node: .venv/installed
	@$(LOCAL) build --nodes real

quick-clusters thorough-pods: real-node
thorough-pods: pods += $(beside) --numprocesses 3

quick-%: build
	@$(PYTEST) $($*) -m "not thorough" $(ARGS)

thorough-%: build
	@$(PYTEST) $($*) -m thorough $(ARGS)

test-differential: build ## Our rules and the real thing judge thousands of generated cases; prints how many, and the differences.
	@$(PYTEST) tests -m differential --numprocesses logical --dist loadfile --hypothesis-profile many $(ARGS)

test-pods: real-node ## Tests with real Ray in real pods, where they can run: Linux and root. With CI=true they have to.
	@$(PYTEST) $(pods) $(ARGS)

test-llm: build ## A real vLLM without GPUs, in pods and on Cloudera ML. Downloads 1.1 GB once; neither CI nor test-all runs it.
	@$(PYTEST) tests -m llm --verbose --numprocesses 0 $(ARGS)

test-failover: real-node ## The same for Redis and what keeps its tables there: 5 masters are lost, or FAILOVERS=N.
	@$(PYTEST) tests/pods/failover --verbose $(ARGS)

bench-failover: .venv/installed ## As root: lose 100 masters of Redis with the gateway and 100 without; two hours. ARGS="--losses 20 --without 0".
	@$(LOCAL) build --nodes real
	@.venv/bin/python -m benchmarks.failover $(ARGS)

lint: .venv/installed ## ruff (format and rules) and mypy --strict.
	@.venv/bin/ruff format --check .
	@.venv/bin/ruff check .
	@.venv/bin/mypy .

format: .venv/installed ## Write the code as `make lint` wants it.
	@.venv/bin/ruff format .
	@.venv/bin/ruff check --fix .

requirements: .venv/installed ## Pin the packages of requirements*.in again.
	@.venv/bin/uv pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 --no-emit-index-url \
	  --no-emit-find-links --custom-compile-command "make requirements" requirements.in -o requirements.txt
	@.venv/bin/uv pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 --no-emit-index-url \
	  --no-emit-find-links --custom-compile-command "make requirements" requirements-dev.in -o requirements-dev.txt
	@.venv/bin/uv pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 --no-emit-index-url \
	  --no-emit-find-links --custom-compile-command "make requirements" local/images/ray.in -o local/images/ray.txt
	@.venv/bin/uv pip compile --quiet --upgrade --generate-hashes --python-platform x86_64-manylinux_2_28 \
	  --python-version 3.11 --no-emit-index-url --no-emit-find-links --custom-compile-command "make requirements" \
	  --override local/images/ray-llm-overrides.txt local/images/ray-llm.in -o local/images/ray-llm.txt
	@.venv/bin/uv pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 --no-emit-index-url \
	  --no-emit-find-links --custom-compile-command "make requirements" benchmarks/checkers/requirements.in \
	  -o benchmarks/checkers/requirements.txt

.venv/installed: requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, $(PYTHON) is " + sys.version.split()[0] + ": set PYTHON=")'
	@[ -w . ] || { echo "The checkout cannot be written: copy it to a folder of yours, and run make there" >&2; exit 1; }
	@echo "Installing the Python packages into .venv (once)" >&2
	@$(PYTHON) -m venv .venv
	@awk '/^uv==/ {found = 1} found {print} found && !/\\$$/ {exit}' requirements-dev.txt > .venv/uv.txt
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .venv/uv.txt
	@.venv/bin/uv pip install --quiet --require-hashes -r requirements-dev.txt 2> .venv/uv.log || \
	  .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@
