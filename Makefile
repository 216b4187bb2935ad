# Every command a person or CI needs. `make help` lists them.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
BENCH_INSTALLED := $(VENV)/.installed-bench
FUZZ_INSTALLED := $(VENV)/.installed-fuzz
PROJECTS := $(wildcard packages/*/pyproject.toml)
SOURCES := packages examples $(wildcard benchmarks)

.PHONY: help setup demo test verify simulate crash fuzz fuzz-exact bench bench-server load lint format docs clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

setup: $(INSTALLED) ## Create .venv with everything that the tests and the demo need

demo: $(INSTALLED) ## Train a model twice, undisturbed and under faults, and compare the bits
	$(BIN)/python examples/demo.py

test: $(INSTALLED) lint ## Run every test, linter and type check
	$(BIN)/pytest -n 2 --dist worksteal

verify: $(INSTALLED) ## Check by running them that the failure cases are what they claim to be
	$(BIN)/failuremap verify --all

lint: $(INSTALLED) ## Run the linters and type checks only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy packages/failuremap/src packages/onefold/src examples

format: $(INSTALLED) ## Rewrite the code in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(INSTALLED) ## Rewrite docs/commands.md from the command line's --help
	$(BIN)/python docs/commands.py > docs/commands.md

bench: $(BENCH_INSTALLED) ## Measure the kernels beside their peers, rewrite benchmarks/README.md (BENCH=--help)
	$(BIN)/python -m benchmarks.kernels $(BENCH)

simulate: $(INSTALLED) ## Run ten thousand simulated runs in which everything fails (SEEDS=10000 SEED=0)
	$(BIN)/onefold simulate --seeds $(or $(SEEDS),10000) --seed $(or $(SEED),0)

crash: $(INSTALLED) ## Cut the power of a thousand runs, kill real servers, check what was promised (RUNS=1000 SERVERS=40 SEED=)
	$(BIN)/python packages/onefold/tests/crashes/crash.py --runs $(or $(RUNS),1000) --servers $(or $(SERVERS),40) $(if $(SEED),--seed $(SEED))

fuzz: $(FUZZ_INSTALLED) ## Feed hostile input to whatever parses, and to a server, for an hour (SECONDS=3600 JOBS=2)
	$(BIN)/python tests/hostile/fuzz.py --seconds $(or $(SECONDS),3600) --jobs $(or $(JOBS),2)

bench-server: $(BENCH_INSTALLED) ## Measure the server beside raw Flight and files, rewrite benchmarks/server.md (SERVER=--help)
	$(BIN)/python -m benchmarks.server $(SERVER)

load: $(BENCH_INSTALLED) ## Load a server with 64 workers for two minutes, rewrite benchmarks/load.md (LOAD=--help)
	$(BIN)/python -m benchmarks.load $(LOAD)

fuzz-exact: $(INSTALLED) ## Compare sums of hostile numbers with exact integers (SECONDS=600 SEED=1)
	$(BIN)/python packages/onefold/tests/exact/fuzz.py $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED))

clean: ## Remove what the targets above made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

# One stamp for the whole environment: it is older than what it depends on, or nothing is installed.
$(INSTALLED): constraints.txt requirements-dev.txt $(PROJECTS)
	$(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet --upgrade pip
	PIP_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet --requirement requirements-dev.txt
	touch $@

# What only the benchmarks need, in the same environment.
$(BENCH_INSTALLED): requirements-bench.txt $(INSTALLED)
	PIP_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet --requirement requirements-bench.txt
	touch $@

# What only fuzzing needs.
$(FUZZ_INSTALLED): requirements-fuzz.txt $(INSTALLED)
	PIP_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet --requirement requirements-fuzz.txt
	touch $@
