"""``python -m experiments NAME [options]``: run one of the programs that measure this toolkit."""

from __future__ import annotations

import sys
from importlib import import_module

from judging.errors import known_error

PROGRAMS = {
    "gpu_hour": "gpu_hour",
    "scoring_speed": "cost",
    "service_load": "cost",
}
"""Every program and its folder."""


def main(argv: list[str]) -> int:
    """Run a program; print one line and return 2 on any known error."""
    if not argv or argv[0] not in PROGRAMS:
        names = "\n".join(f"  {name}" for name in PROGRAMS)
        sys.stderr.write(f"usage: python -m experiments NAME [options]; NAME is one of\n{names}\n")
        return 2
    name, *options = argv
    try:
        import_module(f"experiments.{PROGRAMS[name]}.{name}").main(options)
    except Exception as error:
        if (text := known_error(error)) is None:
            raise
        sys.stderr.write(f"error: {text}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
