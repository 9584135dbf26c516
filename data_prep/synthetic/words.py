"""The words of made data: one YAML file a maker, in the folder ``words``."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from judging.files.yaml_text import load_yaml

_FOLDER = Path(__file__).with_name("words")


@cache
def words_of(maker: str) -> dict[str, Any]:
    """Return what the file of a maker holds, such as ``hard``.

    The tables are long, so libyaml reads them where PyYAML was built with it.
    """
    text = (_FOLDER / f"{maker}.yaml").read_text(encoding="utf-8")
    content: dict[str, Any] = load_yaml(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return content


def texts(written: str | list[str]) -> tuple[str, ...]:
    """Return the texts of a table: the lines of a block, or the items of a list."""
    return tuple(written.splitlines() if isinstance(written, str) else written)
