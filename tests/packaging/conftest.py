"""The wheel, built once from a copy of the sources."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.build_context import build_context

BUILD = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel with the setuptools that is installed, so that nothing is fetched."""
    folder = tmp_path_factory.mktemp("wheel")
    sources = build_context(folder / "sources")
    built = subprocess.run(
        [sys.executable, "-c", BUILD, str(folder)],
        cwd=sources,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    [path] = folder.glob("*.whl")
    return path
