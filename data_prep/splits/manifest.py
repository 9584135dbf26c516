"""Data sets on disk: a folder of files with a manifest that says where they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from data_prep.splits.splits import SPLITS, HeldOut
from judging.errors import CustosError
from judging.files.questions import normalise_question
from judging.files.records import decode_json, write_json, write_records
from judging.fingerprint import file_sha256, package_versions
from judging.types import LabelledExample, Split

MANIFEST_NAME = "manifest.json"
_BEGUN = ".manifest.json.begun"
"""Stands for the manifest while files are being replaced: these are ours and may be again."""
_KEYS = {"source", "version", "command"}
"""Keys of every manifest, by which ours are told from those of other programs."""


def check_replaceable(out: Path, names: Iterable[str]) -> None:
    """Refuse to replace files that did not come with our manifest: they are the user's own.

    Args:
        out: Folder that is about to be written to; need not exist.
        names: Files that will be written there, beside the manifest.

    Raises:
        CustosError: Naming such files; also if there is a manifest of another program.
    """
    existing = [name for name in (*names, MANIFEST_NAME) if (out / name).exists()]
    if existing and not (_has_own_manifest(out) or (out / _BEGUN).exists()):
        raise CustosError(
            f"--out '{out}': the folder holds files of yours that would be replaced "
            f"({', '.join(existing)}); name a new folder"
        )


def _has_own_manifest(folder: Path) -> bool:
    """Return whether a folder has a manifest that :func:`write_with_manifest` wrote."""
    try:
        manifest = decode_json((folder / MANIFEST_NAME).read_bytes())
    except (OSError, CustosError):
        return False
    return isinstance(manifest, dict) and manifest.keys() >= _KEYS


@contextmanager
def write_with_manifest(
    out: Path, *, source: Mapping[str, Any], command: str
) -> Iterator[dict[str, Any]]:
    """Remove a folder's manifest, let the block write the files, then write the new manifest.

    While files are being replaced there is no manifest, so a manifest always fits its files; if the
    block raises, none is written. Nothing in a manifest depends on the time or the machine.

    Args:
        out: Folder to write to; made if it is missing.
        source: What the files are made from, e.g. ``describe_file`` of a path.
        command: Command line that can repeat this.

    Yields:
        The manifest, for the block to describe its files in. It begins with ``source``; ``version``
        and ``command`` are added at the end.
    """
    out.mkdir(parents=True, exist_ok=True)
    (out / _BEGUN).touch()
    (out / MANIFEST_NAME).unlink(missing_ok=True)
    manifest: dict[str, Any] = {"source": dict(source)}
    yield manifest
    manifest.update(version=package_versions()["custos"], command=command)
    write_json(out / MANIFEST_NAME, manifest)
    (out / _BEGUN).unlink()


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

    Equal input gives equal bytes. Pictures that lie in ``out`` are named relative to the file, so
    that the folder can be moved.

    Args:
        out: Folder to write to; made if it is missing.
        splits: Examples of every split; a split that is missing is written empty.
        source: What the examples were made from, e.g. ``describe_file`` of a path.
        held_out: Sizes that were asked for.
        seed: Seed of the split.
        command: Command line that can repeat this.
        left_out: Reason to number of rows, for rows of the source that are in no split.

    Returns:
        The manifest.

    Raises:
        CustosError: If files of these names lie there that did not come with a manifest.
    """
    check_replaceable(out, [f"{split}.jsonl" for split in SPLITS])
    with write_with_manifest(out, source=source, command=command) as manifest:
        outputs = {}
        for split in SPLITS:
            path = out / f"{split}.jsonl"
            rows = (_with_relative_images(row, out) for row in splits.get(split, ()))
            outputs[path.name] = {"rows": write_records(path, rows), "sha256": file_sha256(path)}
        examples = [example for split in SPLITS for example in splits.get(split, ())]
        manifest.update(
            outputs=outputs,
            counts={split: count_labels(splits.get(split, ())) for split in SPLITS},
            groups=len({example.group for example in examples}),
            near_duplicate_clusters=count_near_duplicate_clusters(examples),
            left_out=dict(left_out or {}),
            seed=seed,
            held_out=held_out.model_dump(),
        )
    return manifest


def _with_relative_images(example: LabelledExample, out: Path) -> LabelledExample:
    """Return an example that names the pictures under ``out`` relative to it."""
    prefix = f"{out.resolve()}/"
    return example.model_copy(
        update={"images": tuple(name.removeprefix(prefix) for name in example.images)}
    )


def describe_file(path: Path) -> dict[str, str]:
    """Return the name and the content hash of a source file."""
    return {"name": path.name, "sha256": file_sha256(path)}


def count_labels(examples: Iterable[LabelledExample]) -> dict[str, dict[str, int]]:
    """Count examples by label and, within it, by ``metadata["answerer"]`` (``""``: none)."""
    counts: dict[str, Counter[str]] = {}
    for example in examples:
        answerer = str(example.metadata.get("answerer", ""))
        counts.setdefault(example.label, Counter())[answerer] += 1
    return {label: dict(sorted(counts[label].items())) for label in sorted(counts)}


def count_near_duplicate_clusters(examples: Iterable[LabelledExample]) -> int:
    """Count the groups that hold more than one question, spelling habits aside."""
    questions: dict[str, set[str]] = {}
    for example in examples:
        questions.setdefault(example.group, set()).add(normalise_question(example.question))
    return sum(len(spellings) > 1 for spellings in questions.values())
