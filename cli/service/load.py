"""``custos load``: the former name of ``python -m experiments service_load``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import typer

from judging import CustosError

CHECKOUT = Path(__file__).parents[2]
UNREAD = {"ignore_unknown_options": True, "allow_extra_args": True}
"""Settings that leave every option to the program."""


def load(context: typer.Context) -> None:
    """Run ``python -m experiments service_load`` of a checkout with the same options."""
    if not (CHECKOUT / "experiments").is_dir():
        raise CustosError("custos load: measures the service in a checkout of the repository only")
    path = os.pathsep.join(filter(None, (str(CHECKOUT), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "experiments", "service_load", *context.args]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=False)
    raise typer.Exit(done.returncode)
