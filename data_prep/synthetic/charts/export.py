"""Examples about pictures on disk: JSONL files, one folder of pictures and a manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from data_prep.sources.images import image_names
from data_prep.splits.manifest import MANIFEST_NAME, file_sha256
from data_prep.synthetic.charts.generate import ChartRow
from judging.records import write_json, write_records
from judging.types import LabelledExample

IMAGE_FOLDER = "images"


def write_charts(
    out: Path, files: Mapping[str, Iterable[ChartRow]], *, source: Mapping[str, Any], command: str
) -> dict[str, Any]:
    """Write the files, ``images/`` and, last, ``manifest.json``; equal input, equal bytes.

    Every picture is written once, under a hash of its content; rows name it relative to ``out``.

    Args:
        out: Folder to write to; made if it is missing.
        files: Examples with their pictures by file name (``train.jsonl``), taken one by one.
        source: What the rows were made from.
        command: Command line that can repeat this.

    Returns:
        The manifest.
    """
    out.mkdir(parents=True, exist_ok=True)
    (out / MANIFEST_NAME).unlink(missing_ok=True)
    outputs, counts = {}, {}
    kinds: Counter[str] = Counter()
    images: set[str] = set()
    groups: set[str] = set()
    twins: set[str] = set()

    def saved(rows: Iterable[ChartRow], labels: Counter[str]) -> Iterator[LabelledExample]:
        for row in rows:
            if row.png:
                image_names({"bytes": row.png}, out, out / IMAGE_FOLDER)
            example = row.example
            labels[example.label] += 1
            kinds[example.metadata["kind"]] += 1
            images.update(example.images)
            groups.add(example.group)
            twins.update({example.metadata["twin"]} if "twin" in example.metadata else ())
            yield example

    for name, rows in files.items():
        labels: Counter[str] = Counter()
        num_rows = write_records(out / name, saved(rows, labels))
        outputs[name] = {"rows": num_rows, "sha256": file_sha256(out / name)}
        counts[name] = dict(sorted(labels.items()))
    manifest = {
        "source": dict(source),
        "outputs": outputs,
        "images": len(images),
        "counts": counts,
        "kinds": dict(sorted(kinds.items())),
        "groups": len(groups),
        "twins": len(twins),
        "version": version("custos"),
        "command": command,
    }
    write_json(out / MANIFEST_NAME, manifest)
    return manifest
