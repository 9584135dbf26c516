"""Data sets on disk: a folder of files with a manifest that says where they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from data_prep.splits.overlap import without_overlap
from data_prep.splits.splits import SPLITS, HeldOut, Splits, shuffled
from judging.errors import CustosError
from judging.files.questions import normalise_question
from judging.files.records import known_object, read_records, write_json, write_records
from judging.fingerprint import file_sha256, package_versions
from judging.types import LabelledExample, Split

MANIFEST_NAME = "manifest.json"
_BEGUN = ".manifest.json.begun"
"""Stands for the manifest while files are being replaced: these are ours and may be again."""
_KEYS = {"source", "version", "command"}
"""Keys of every manifest, by which ours are told from those of other programs."""

STRICTEST_FIRST: tuple[Split, ...] = ("test", "cal", "val", "train")
"""A question that data sets have in different splits stays in the first of these."""


def check_replaceable(out: Path, names: Iterable[str]) -> None:
    """Refuse to replace files, by name, that did not come with our manifest.

    The ``CustosError`` names them; it is also raised for a manifest of another program.
    """
    existing = [name for name in (*names, MANIFEST_NAME) if (out / name).exists()]
    if not existing or (out / _BEGUN).exists():
        return
    if not known_object(out / MANIFEST_NAME).keys() >= _KEYS:
        raise CustosError(
            f"--out '{out}': the folder holds files of yours that would be replaced "
            f"({', '.join(existing)}); name a new folder"
        )


@contextmanager
def write_with_manifest(
    out: Path, *, source: Mapping[str, Any], command: str
) -> Iterator[dict[str, Any]]:
    """Remove a folder's manifest, let the block write the files, then write the new manifest.

    While files are being replaced there is no manifest, so a manifest always fits its files; if the
    block raises, none is written. Nothing in a manifest depends on the time or the machine. The
    block gets the manifest to describe its files in: it begins with ``source``, what the files are
    made from; ``version`` and ``command`` are added at the end.
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
    that the folder can be moved. A split that is missing is written empty. ``left_out`` counts, by
    reason, the rows of the source that are in no split. Return the manifest. Errors are those of
    :func:`check_replaceable`.
    """
    check_replaceable(out, [f"{split}.jsonl" for split in SPLITS])
    prefix = f"{out.resolve()}/"

    def with_relative_images(row: LabelledExample) -> LabelledExample:
        images = tuple(name.removeprefix(prefix) for name in row.images)
        return row.model_copy(update={"images": images})

    with write_with_manifest(out, source=source, command=command) as manifest:
        outputs = {}
        for split in SPLITS:
            path = out / f"{split}.jsonl"
            num_rows = write_records(path, map(with_relative_images, splits.get(split, ())))
            outputs[path.name] = {"rows": num_rows, "sha256": file_sha256(path)}
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


def describe_file(path: Path) -> dict[str, str]:
    """Describe a source file by its name and content hash."""
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
        questions.setdefault(example.group, set()).add(normalise_question(example.asked))
    return sum(len(spellings) > 1 for spellings in questions.values())


def load_generic(path: Path | str, bad_rows: list[str] | None = None) -> list[LabelledExample]:
    """Read labelled examples in our shape from a JSONL, JSON or Parquet file.

    An example without an id is named after the file and its row; one without a source is given the
    file's name. Image paths become absolute. Errors are those of :func:`read_records`.
    """
    path = Path(path)
    examples = []
    for number, example in read_records(path, LabelledExample, bad_rows):
        name = example.id or f"{path.stem}-{number}"
        named = {"id": name, "source": example.source or path.stem}
        examples.append(example.model_copy(update=named))
    return examples


def mix(
    ingredients: Sequence[tuple[Path, int | None]], seed: int
) -> tuple[Splits, list[dict[str, int]], int]:
    """Take a number of training rows of each data set, and the same share of its other splits.

    An ingredient is the folder of a prepared data set, and the number; ``None``: all. Give the
    splits, the number of rows of each ingredient by split, and how many rows were left out because
    their question is in a stricter split of another one.
    What is taken depends on the seed and the rows; of the rows of a split those with the smallest
    hashes come first, so a larger limit adds rows to those of a smaller one. Raise ``CustosError``
    if a folder holds no training split or too few rows of it, or a row is bad.
    """
    read: list[Splits] = []
    for folder, _ in ingredients:
        paths = {split: folder / f"{split}.jsonl" for split in SPLITS}
        if not paths["train"].is_file():
            raise CustosError(f"{folder}: holds no train.jsonl; make it with 'custos prep'")
        read.append({s: load_generic(path) if path.is_file() else [] for s, path in paths.items()})
    kept: list[Splits] = [{} for _ in ingredients]
    known: list[LabelledExample] = []
    num_overlapping = 0
    for split in STRICTEST_FIRST:
        rows_of = [without_overlap(splits[split], known) for splits in read]
        num_overlapping += sum(len(splits[split]) for splits in read) - sum(map(len, rows_of))
        for splits, rows in zip(kept, rows_of, strict=True):
            splits[split] = shuffled(rows, seed)
        known += [row for rows in rows_of for row in rows]
    taken: list[Splits] = []
    for (folder, limit), splits in zip(ingredients, kept, strict=True):
        num_train = len(splits["train"])
        if limit is not None and limit > num_train:
            raise CustosError(
                f"--source {folder}={limit}: there are {num_train} training rows whose "
                "question is in no other split; ask for at most so many"
            )
        share = 1.0 if limit is None else limit / num_train
        taken.append({split: rows[: round(share * len(rows))] for split, rows in splits.items()})
    return (
        {split: shuffled((r for part in taken for r in part[split]), seed) for split in SPLITS},
        [{split: len(part[split]) for split in SPLITS} for part in taken],
        num_overlapping,
    )
