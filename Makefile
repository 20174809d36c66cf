# Everything lives in .venv; `make help` lists what there is.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOJO := $(VENV)/.agentdojo
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: help install agentdojo routing mcp-servers weights models minilm demo tmux chromium console-tests test recordings mutants lint types check explore prices schemas docs wheel lock clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Bicameral needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --require-hashes -r requirements.lock
	$(PIP) install --quiet --no-build-isolation --no-deps --editable .
	@touch $@

install: $(READY) ## the locked dependencies and the package, into .venv

$(DOJO): $(READY) requirements-agentdojo.lock
	$(PIP) install --quiet --require-hashes -r requirements-agentdojo.lock
	@touch $@

agentdojo: $(DOJO) ## what benchmarks/agentdojo needs (46 packages, 131 MB), into .venv

routing: $(READY) ## what benchmarks/routing compares with (LiteLLM; 16 packages, 92 MB), into .venv
	$(PIP) install --quiet --require-hashes -r requirements-routing.lock

# Exact versions; their own dependencies are those that the registries have on the day. SQLite's server needs an older
# protocol library, so that it has an environment of its own.
MCP_SERVERS := $(VENV)/mcp-servers
MCP_NPM := @modelcontextprotocol/server-filesystem@2026.8.31 @modelcontextprotocol/server-everything@2026.8.31 \
	@modelcontextprotocol/server-memory@2026.8.31

mcp-servers: $(READY) ## the MCP servers of benchmarks/mcp that no lock file has, into .venv (124 MB; needs npm)
	@command -v npm >/dev/null || { echo "mcp-servers needs npm"; exit 1; }
	@mkdir -p $(MCP_SERVERS)/npm
	npm install --no-save --no-package-lock --no-audit --no-fund --silent --prefix $(MCP_SERVERS)/npm $(MCP_NPM)
	$(PYTHON) -m venv $(MCP_SERVERS)/sqlite
	$(MCP_SERVERS)/sqlite/bin/python -m pip --disable-pip-version-check install --quiet mcp==1.30.0 mcp-server-sqlite==2025.4.25

weights: $(READY)
	$(BIN)/bicameral models pull --no-prepare 0.5b 1.5b

models: weights ## fetch and verify the two embedded models (1.6 GB, once), and let them read the tools
	cd examples/world && ../../$(BIN)/bicameral models prepare --config bicameral.toml

demo: models ## say it, see the plan, check it, run it, on a small world
	cd examples/world && ../../$(BIN)/bicameral run --config bicameral.toml "Remove duplicates from mail.txt and find lines mentioning invoices"

minilm: weights
	$(BIN)/bicameral models pull --no-prepare minilm

# The tests of a real terminal use tmux where it is, and a small terminal of their own elsewhere.
tmux:
	@command -v tmux >/dev/null || ! command -v apt-get >/dev/null || [ "$$(id -u)" != 0 ] \
		|| { apt-get update -qq && apt-get install -y -qq tmux; } >/dev/null 2>&1 || echo "no tmux: the tests use their own terminal"

# Debian's browser; playwright drives it and downloads none. Without one the tests of the console in a browser are skipped.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome-stable >/dev/null \
		|| { command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && { apt-get update -qq && apt-get install -y -qq chromium; } >/dev/null 2>&1; } \
		|| echo "there is no Chromium, and it cannot be installed here: the tests of the console in a browser are skipped"

console-tests: $(READY) chromium ## the console in a real Chromium, which is installed if it can be (Debian, as root)
	$(BIN)/python -m pytest -rs tests/console/test_console_browser.py || [ $$? = 5 ]

test: minilm agentdojo tmux ## the whole test suite, with recorded replies of the models
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m "not slow"

recordings: minilm agentdojo ## record the replies of the models anew, for the test suite
	$(BIN)/python -m pytest --record -m model

mutants: $(READY) ## change load-bearing functions, one by one in a copy of src, and see that a test fails each time
	$(BIN)/python -m scripts.mutants

lint: $(READY) ## style, and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-cache

types: $(READY) ## pyright, strict
	$(BIN)/basedpyright

check: lint types docs minilm agentdojo tmux ## what a change must pass: the suite asks the models, and tries thousands of examples
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --live --hypothesis-profile explore --hypothesis-seed 1 --timeout 3600

explore: minilm agentdojo ## the properties of the suite with examples that were never tried; what fails is a finding
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not model" --hypothesis-profile explore --timeout 3600

prices: $(READY) ## hold the table of prices against genai-prices (`python -m scripts.prices --write` brings it up to date)
	$(BIN)/python -m scripts.prices

schemas: $(READY) ## write the published JSON Schemas again
	$(BIN)/python -m scripts.schemas

docs: $(READY) ## the documentation as a site, into site/; a dead link fails the build
	$(BIN)/python -m scripts.links
	$(BIN)/zensical build --config-file mkdocs.yml --clean --strict

wheel: $(READY) ## the package as a wheel (93 MB: it holds the adapters) and as sources, into dist/
	$(BIN)/python -m hatchling build -d dist

lock: ## resolve the dependencies again (needs uv)
	uv pip compile --no-strip-extras --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--group dev --group docs --extra standard --extra telemetry --extra server --extra retrieval --extra documents --extra mcp --extra openapi pyproject.toml -o requirements.lock --quiet
	uv pip compile --no-strip-extras --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--group agentdojo --constraints requirements.lock -o requirements-agentdojo.lock --quiet
	uv pip compile --no-strip-extras --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--group routing --constraints requirements.lock -o requirements-routing.lock --quiet

clean: ## remove what make made
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis site .cache dist
