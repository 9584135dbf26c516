"""Names of judges, and suggestions for a name that belongs to none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from judging.errors import Missing
from judging.judge.card import CARD_FILE, shipped_judges
from judging.models.adapters import ADAPTER_FILE
from judging.models.embedded import EMBEDDED, EMBEDDED_2
from judging.models.gguf_files import NAMED, is_gguf

BACKBONE_FILE = "config.json"
BACKBONES = ("embedded", EMBEDDED, EMBEDDED_2, *NAMED)
"""Names of models that need no hub."""
MOST_FOLDERS = 50


def check_name(source: str) -> None:
    """Check that a name which is no trained judge can be that of a backbone.

    A backbone is a name in :data:`BACKBONES`, a folder, a GGUF file, or a model on the hub,
    ``OWNER/NAME``. Nothing is loaded
    and no network is used.

    Raises:
        Missing: If it cannot; the message names the judge that was probably meant, or what the
            folder lacks.
    """
    folder = Path(source)
    if os.path.isdir(source):  # False for a name too long for a file.
        if not (folder / BACKBONE_FILE).is_file():
            raise Missing(f"judge '{source}': {_lack_of(folder)}")
        return
    if source in BACKBONES or is_gguf(source) or _can_be_on_hub(source):
        return
    nearby = list(islice(_run_folders(folder.parent), MOST_FOLDERS))
    names = [*shipped_judges(), *BACKBONES, *nearby]
    nearest = get_close_matches(source, names, n=1)
    hint = f"did you mean '{nearest[0]}'? " if nearest else ""
    runs = f"; run folders here: {', '.join(nearby)}" if nearby else ""
    raise Missing(
        f"judge '{source}': there is no judge of this name and no such folder; {hint}"
        f"shipped judges: {', '.join(shipped_judges())}{runs}; untrained models: embedded, or "
        "OWNER/NAME on the hub"
    )


def _can_be_on_hub(source: str) -> bool:
    """Return whether a name has the form ``OWNER/NAME`` and does not look like a path here."""
    owner, separator, name = source.partition("/")
    is_path = owner.startswith((".", "~")) or os.path.isdir(owner)
    return bool(owner and separator and name) and "/" not in name and not is_path


def _run_folders(parent: Path) -> Iterator[str]:
    """Yield the run folders beside a path, in the current folder and in ``runs``."""
    folders = dict.fromkeys((parent, Path(), Path("runs")))
    for folder in folders:
        yield from sorted(str(card.parent) for card in folder.glob(f"*/{CARD_FILE}"))


def _lack_of(folder: Path) -> str:
    """Say what a folder that is neither a judge nor a backbone lacks."""
    lack = f"{CARD_FILE} is missing, so that it is no run folder"
    if any(folder.glob("checkpoint-*")):
        return f"{lack} yet: its training has not ended; start the same training again to go on"
    if (folder / ADAPTER_FILE).is_file():
        return f"{lack}; it has {ADAPTER_FILE}, so copy the whole folder that training wrote"
    inside = list(islice(_run_folders(folder), MOST_FOLDERS))
    inside = [name for name in inside if Path(name).parent == folder]
    if inside:
        return f"{lack}; it holds run folders: {', '.join(inside)}; name one of them"
    return f"{lack}, and {BACKBONE_FILE} too, so that it is no model either"
