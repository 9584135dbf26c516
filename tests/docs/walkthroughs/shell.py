"""Commands of a page, run as a reader would run them."""

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.markdown_pages import ROOT


def environment() -> dict[str, str]:
    """Return the variables of an activated environment, without a GPU."""
    path = f"{Path(sys.executable).parent}:{Path(sys.prefix, 'bin')}:{os.environ['PATH']}"
    python_path = f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"
    return os.environ | {"PATH": path, "PYTHONPATH": python_path, "CUDA_VISIBLE_DEVICES": ""}


def run(text: str, folder: Path) -> str:
    """Run a piece of shell in a folder; return what it prints."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, f"{text}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout
