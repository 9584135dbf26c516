VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DATA ?=

.PHONY: demo test check setup clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || python3 -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

# Train a judge from nothing on the embedded backbone, measure it, serve it.
# make demo DATA=path/to/NQ.json adds a human-labelled test.
demo: $(READY)
	PATH="$(abspath $(BIN)):$$PATH" bash recipes/embedded/demo.sh $(DATA)

test: $(READY)
	$(BIN)/pytest -q -m "not slow and not cuda and not vllm"

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf build *.egg-info .mypy_cache .ruff_cache .pytest_cache
