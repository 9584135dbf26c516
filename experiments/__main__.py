"""``python -m experiments NAME [options]``: run one of the programs that measure this toolkit."""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import iter_modules

import experiments.cost
import experiments.findings
import experiments.gpu_hour
import experiments.service
import experiments.vision
from judging.errors import known_error

ROOMS = (
    experiments.cost,
    experiments.findings,
    experiments.gpu_hour,
    experiments.service,
    experiments.vision,
)
HELPERS = {
    "correction_coverage",
    "figures",
    "grading",
    "load_generator",
    "machine",
    "model",
    "pictures",
    "question_coverage",
    "subjects",
    "tower",
    "trainer",
    "training",
    "training_steps",
    "vllm_probe",
}
"""Modules that programs use."""


def programs() -> dict[str, str]:
    """Return the full module name of every program by its short name, in alphabetical order."""
    modules = {
        module.name: f"{room.__name__}.{module.name}"
        for room in ROOMS
        for module in iter_modules(room.__path__)
        if module.name not in HELPERS
    }
    return dict(sorted(modules.items()))


def main(argv: list[str]) -> int:
    """Run a program; print one line and return 2 on any known error."""
    modules = programs()
    if not argv or argv[0] not in modules:
        names = "\n".join(f"  {name}" for name in modules)
        sys.stderr.write(f"usage: python -m experiments NAME [options]; NAME is one of\n{names}\n")
        return 2
    name, *options = argv
    try:
        import_module(modules[name]).main(options)
    except Exception as error:
        if (text := known_error(error)) is None:
            raise
        sys.stderr.write(f"error: {text}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
