"""Published data sets and papers, which are not part of the repository.

Tests that read them are skipped unless the environment variable ``CUSTOS_TEST_DATA`` names a folder
that holds them: ``evouna/NQ.json``, ``charthal/`` with the official files, and the text of each
benchmark's paper as ``charthal.txt``, ``chartom.txt``, ``hieval.txt``, ``simplevqa.txt`` and
``truthfulvqa.txt``.
"""

import os
from pathlib import Path

import pytest


def published(name: str) -> Path:
    """Return the path of a published file or folder, which need not exist."""
    return Path(os.environ.get("CUSTOS_TEST_DATA", "no-published-data"), name)


def needs_published(name: str) -> pytest.MarkDecorator:
    """Return a mark that skips a test without a published file or folder."""
    reason = f"needs {name}; see tests/published_files.py"
    return pytest.mark.skipif(not published(name).exists(), reason=reason)
