"""Data sets of the Hugging Face hub: loaded by name, or from a folder laid out as the hub does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data_prep.splits.manifest import MANIFEST_NAME
from judging.errors import CustosError
from judging.files.arrow_rows import arrow_rows
from judging.files.records import ROW_SUFFIXES
from judging.models.fetched import ask_hub

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class HubOptions:
    """The part of a hub data set to load."""

    split: str = "train"
    config: str | None = None
    revision: str | None = None


def is_hub_id(source: Path | str) -> bool:
    """Tell a data set on the hub (``owner/name``) from a local file; an existing file is local."""
    name = str(source)
    is_file_name = name.endswith(ROW_SUFFIXES) or Path(name).exists()
    return not is_file_name and _HUB_ID.fullmatch(name) is not None


def hub_rows(name: str, options: HubOptions) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield rows of a hub data set with their numbers from 1; images stay undecoded.

    Raises:
        CustosError: If the data set, or that part of it, cannot be loaded.
    """
    import datasets

    answer = ask_hub(name, "README.md", revision=options.revision, repo_type="dataset")
    # Where the hub does not answer, the library reads what it has in its cache.
    offline = _no_requests() if answer.refusal else nullcontext()
    try:
        with offline:
            table = datasets.load_dataset(
                name, options.config, split=options.split, revision=options.revision
            )
    except (OSError, ValueError) as error:
        reason = answer.refusal or str(error).strip().partition("\n")[0]
        raise CustosError(
            f"{name}: no such file here, and split '{options.split}' of a hub data set of this "
            f"name cannot be loaded: {reason}"
        ) from None
    number = 0
    for batch in table.with_format("arrow").iter(batch_size=1000):
        for row in arrow_rows(batch):
            number += 1
            yield number, row


@contextmanager
def _no_requests() -> Iterator[None]:
    """Have the library work from its cache, without requests that it would repeat for long."""
    import datasets

    before = datasets.config.HF_HUB_OFFLINE
    datasets.config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        datasets.config.HF_HUB_OFFLINE = before


def split_files(folder: Path, split: str) -> list[Path]:
    """List the files of a split in a folder, or in its ``data`` folder, sorted by name.

    The hub names a split's files after it: ``test.jsonl``, ``test-00000-of-00002.parquet``. Without
    such a file, all files belong to the split.

    Args:
        folder: Folder of a data set.
        split: Name of the split.

    Raises:
        CustosError: If the folder holds no such file.
    """
    for candidate in (folder, folder / "data"):
        files = sorted(
            file
            for file in (candidate.iterdir() if candidate.is_dir() else ())
            if file.suffix in ROW_SUFFIXES and file.name != MANIFEST_NAME
        )
        if files:
            return [file for file in files if file.stem.split("-")[0] == split] or files
    raise CustosError(f"{folder}: no {', '.join(ROW_SUFFIXES)} file in this folder")
