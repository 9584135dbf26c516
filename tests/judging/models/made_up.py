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


def error_in(folder: Path) -> str:
    """Return the one line that loading a folder ends with."""
    with pytest.raises(CustosError) as caught:
        load_backbone(str(folder), device="cpu")
    message = str(caught.value)
    assert "\n" not in message
    assert str(folder) in message
    return message
