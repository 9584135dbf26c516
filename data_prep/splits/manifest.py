"""A prepared data set on disk: four JSONL files and a manifest that says where they come from."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from data_prep.splits.near_duplicates import normalise_question
from data_prep.splits.splits import SPLITS, HeldOut
from judging.records import write_json, write_records
from judging.types import LabelledExample, Split

MANIFEST_NAME = "manifest.json"


def write_prepared(
    out: Path,
    splits: Mapping[Split, Sequence[LabelledExample]],
    *,
    source: Mapping[str, Any],
    held_out: HeldOut,
    seed: int,
    command: str,
    left_out: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Write ``train|val|cal|test.jsonl`` and, last, ``manifest.json``; each appears whole or not.

    While the files are being replaced there is no manifest, so a manifest always fits its files.
    Equal input gives equal bytes: nothing depends on the time or the machine. Pictures that lie in
    ``out`` are named relative to the file, so that the folder can be moved.

    Args:
        out: Folder to write to; made if it is missing.
        splits: Examples of every split; one that is missing is written empty.
        source: What the examples were made from, e.g. ``describe_file`` of a path.
        held_out: Sizes that were asked for.
        seed: Seed of the split.
        command: Command line that can repeat this.
        left_out: Reason to number of rows, for rows of the source that are in no split.

    Returns:
        The manifest.
    """
    out.mkdir(parents=True, exist_ok=True)
    (out / MANIFEST_NAME).unlink(missing_ok=True)
    outputs = {}
    for split in SPLITS:
        path = out / f"{split}.jsonl"
        num_rows = write_records(path, (_movable(row, out) for row in splits.get(split, ())))
        outputs[path.name] = {"rows": num_rows, "sha256": file_sha256(path)}

    examples = [example for split in SPLITS for example in splits.get(split, ())]
    manifest = {
        "source": dict(source),
        "outputs": outputs,
        "counts": {split: count_labels(splits.get(split, ())) for split in SPLITS},
        "groups": len({example.group for example in examples}),
        "near_duplicate_clusters": count_near_duplicate_clusters(examples),
        "left_out": dict(left_out or {}),
        "seed": seed,
        "held_out": held_out.model_dump(),
        "version": version("custos"),
        "command": command,
    }
    write_json(out / MANIFEST_NAME, manifest)
    return manifest


def _movable(example: LabelledExample, out: Path) -> LabelledExample:
    """The example with the names of pictures under ``out`` relative to it."""
    within = f"{out.resolve()}/"
    return example.model_copy(
        update={"images": tuple(name.removeprefix(within) for name in example.images)}
    )


def describe_file(path: Path) -> dict[str, str]:
    """Name and content hash of a source file."""
    return {"name": path.name, "sha256": file_sha256(path)}


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's content, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def count_labels(examples: Iterable[LabelledExample]) -> dict[str, dict[str, int]]:
    """Number of examples by label and, within it, by ``metadata["answerer"]`` (``""``: none)."""
    counts: dict[str, Counter[str]] = {}
    for example in examples:
        answerer = str(example.metadata.get("answerer", ""))
        counts.setdefault(example.label, Counter())[answerer] += 1
    return {label: dict(sorted(counts[label].items())) for label in sorted(counts)}


def count_near_duplicate_clusters(examples: Iterable[LabelledExample]) -> int:
    """Number of groups that hold more than one question, spelling habits aside."""
    questions: dict[str, set[str]] = {}
    for example in examples:
        questions.setdefault(example.group, set()).add(normalise_question(example.question))
    return sum(len(alike) > 1 for alike in questions.values())
