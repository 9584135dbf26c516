"""Splits that are held out of the training rows where the user gives no file for them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from data_prep.splits.manifest import MANIFEST_NAME, describe_file, write_prepared
from data_prep.splits.splits import SPLITS, HeldOut, Splits, split_examples
from judging.errors import CustosError, errors_at
from judging.models.adapters import ADAPTER_FILE
from judging.records import read_records
from judging.tasks import get_task
from judging.types import LabelledExample, Split

DATA_FOLDER = "data"
"""Folder of a run folder with the rows that the run uses."""
COMMAND = "custos train"

SHARES = {"val": 0.1, "cal": 0.1, "test": 0.2}
"""Share of the rows that each held-out split gets ..."""
FEWEST = 4
"""... but at least so many rows, or a fifth of them if that is less, ..."""
MOST = {"val": 500, "cal": 1000, "test": 2000}
"""... and at most so many: more would not make the figures much surer."""


def held_out_sizes(num_rows: int, wanted: Collection[Split]) -> HeldOut:
    """Return the sizes of the splits that are held out of so many rows; 0 for the others."""
    sizes = {
        split: min(max(round(share * num_rows), min(FEWEST, num_rows // 5)), MOST[split])
        for split, share in SHARES.items()
        if split in wanted
    }
    return HeldOut(**{split: sizes.get(split, 0) for split in SHARES})


def hold_out(rows: Sequence[LabelledExample], wanted: Collection[Split], seed: int = 0) -> Splits:
    """Divide rows by question into train and the wanted splits.

    Raises:
        CustosError: If there are too few questions for all of them.
    """
    splits = split_examples(rows, held_out_sizes(len(rows), wanted), seed)
    if empty := [split for split in ("train", *wanted) if not splits[split]]:
        questions = len({row.group for members in splits.values() for row in members})
        raise CustosError(
            f"{questions} different questions are too few to divide into train, "
            f"{', '.join(wanted)}: none is left for {', '.join(empty)}; add rows or give files"
        )
    return splits


def write_run_data(
    files: Mapping[Split, Sequence[Path]],
    wanted: Collection[Split],
    run: Path,
    *,
    seed: int,
    command: str,
) -> dict[Split, int]:
    """Write the rows of a run to ``RUN/data``: the splits of the files, and those held out.

    If the folder already holds what these files give, it stays as it is.

    Args:
        files: Files of ``train`` and of every other split that is given.
        wanted: Splits to hold out of ``train``.
        run: Run folder.
        seed: Seed of the division.
        command: Command that was typed.

    Returns:
        The number of rows in each split.

    Raises:
        CustosError: If a row is bad or has a label that its task does not declare (the message
            names file and row), or the folder belongs to a run on other rows.
    """
    folder = run / DATA_FOLDER
    source = {split: [describe_file(path) for path in paths] for split, paths in files.items()}
    division = {"files": source, "held_out": sorted(wanted), "division_seed": seed}
    _check_folder(run, files, division)
    manifest = _manifest(folder)
    if manifest.get("source") != division:
        given = {split: _read_labelled(paths) for split, paths in files.items()}
        splits = given | (hold_out(given["train"], wanted, seed) if wanted else {})
        splits |= {split: rows for split, rows in given.items() if split != "train"}
        manifest = write_prepared(
            folder,
            splits,
            source=division,
            held_out=held_out_sizes(len(given["train"]), wanted),
            seed=seed,
            command=command,
        )
    return {split: manifest["outputs"][f"{split}.jsonl"]["rows"] for split in SPLITS}


def _check_folder(
    run: Path, files: Mapping[Split, Sequence[Path]], division: Mapping[str, Any]
) -> None:
    """Refuse to replace rows that another program wrote or another run was trained on."""
    folder, manifest = run / DATA_FOLDER, _manifest(run / DATA_FOLDER)
    of_others = not str(manifest.get("command", "")).startswith(COMMAND)
    if folder.is_dir() and any(folder.iterdir()) and of_others:
        raise CustosError(f"{folder}: holds files of yours; choose another --out")
    for path in (path for paths in files.values() for path in paths):
        if path.resolve().parent == folder.resolve():
            raise CustosError(f"{path}: lies where --out {run} puts its rows; choose another --out")
    is_begun = (run / ADAPTER_FILE).is_file() or any(run.glob("checkpoint-*"))
    if is_begun and manifest and manifest["source"] != division:
        raise CustosError(f"{run}: holds a run on other rows; choose another --out")


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST_NAME).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _read_labelled(paths: Iterable[Path]) -> list[LabelledExample]:
    return [row for path in paths for row in _read_file(path)]


def _read_file(path: Path) -> Iterable[LabelledExample]:
    for number, row in read_records(path, LabelledExample):
        with errors_at(f"{path} row {number}"):
            task = get_task(row.task)
            task.check(row)
            task.target(row)
        yield row if row.id else row.model_copy(update={"id": f"{path.stem}-{number}"})
