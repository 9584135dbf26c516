"""What tests of checkpoints share."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judging.errors import CustosError
from judging.models.backbones import load_backbone


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the object in a JSON file."""
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def error_of(name: str) -> str:
    """Return the one line that loading a backbone ends with."""
    with pytest.raises(CustosError) as caught:
        load_backbone(name, device="cpu")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def error_in(folder: Path) -> str:
    """Return the line for a folder, which it names."""
    message = error_of(str(folder))
    assert str(folder) in message
    return message
