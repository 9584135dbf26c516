"""A user's own wording of a benchmark's questions, such as the exact text of a paper."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from string import ascii_lowercase

import yaml

from benchmarks.framework.files import Row
from judging.errors import CustosError
from judging.files.yaml_text import load_yaml

_SLOT = re.compile(r"\{(\w+)\}")


def read_wording(path: Path) -> dict[str, str]:
    """Read a wording.

    Args:
        path: YAML file: field of a response (``response``), or field and language as the items
            spell it (``response/CN``), to a text.

    Raises:
        CustosError: If the file cannot be read or holds something else.
    """
    try:
        wording = load_yaml(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise CustosError(f"{path}: {' '.join(str(error).split())}") from None
    if not isinstance(wording, dict) or not all(isinstance(t, str) for t in wording.values()):
        raise CustosError(f"{path}: expected fields of responses, each with a text")
    return {str(field): text for field, text in wording.items()}


def worded(wording: Mapping[str, str], field: str, row: Row, prompts: Mapping[str, str]) -> str:
    """Return a wording for an item.

    ``{question}`` and other fields of the item in braces stand for what the item holds,
    ``{option_a}`` and so on for its options, and the field of a response for our own text of the
    question behind it. Other braces stay as they are.

    Args:
        wording: Result of ``read_wording``.
        field: Field that the answer goes into.
        row: The item.
        prompts: Our own texts by field.

    Raises:
        CustosError: If there is no text for the field.
    """
    text = wording.get(f"{field}/{row.get('language')}", wording.get(field))
    if text is None:
        raise CustosError(f"the wording has no text for '{field}'")
    options = row.get("options")
    letters = zip(ascii_lowercase, options if isinstance(options, list) else (), strict=False)
    values = {**row, **prompts, **{f"option_{letter}": option for letter, option in letters}}
    by_name = {name.casefold(): value for name, value in values.items()}
    return _SLOT.sub(lambda slot: str(by_name.get(slot[1].casefold(), slot[0])), text)
