"""Examples about pictures on disk: JSONL files, one folder of pictures and a manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data_prep.splits.manifest import check_replaceable, write_with_manifest
from data_prep.synthetic.charts.generate import ChartRow
from data_prep.synthetic.pictures import save_picture
from judging.files.records import write_records
from judging.fingerprint import file_sha256
from judging.types import LabelledExample


@dataclass
class _Tally:
    """Counts of what has been written so far."""

    kinds: Counter[str] = field(default_factory=Counter)
    images: set[str] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    twins: set[str] = field(default_factory=set)

    def add(self, example: LabelledExample) -> None:
        """Count an example."""
        self.kinds[example.metadata["kind"]] += 1
        self.images.update(example.images)
        self.groups.add(example.group)
        if "twin" in example.metadata:
            self.twins.add(example.metadata["twin"])


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

    Raises:
        CustosError: If files of these names lie there that did not come with a manifest.
    """
    check_replaceable(out, files)
    tally = _Tally()
    with write_with_manifest(out, source=source, command=command) as manifest:
        outputs, counts = {}, {}
        for name, rows in files.items():
            labels: Counter[str] = Counter()
            num_rows = write_records(out / name, _counted(_saved(rows, out), tally, labels))
            outputs[name] = {"rows": num_rows, "sha256": file_sha256(out / name)}
            counts[name] = dict(sorted(labels.items()))
        manifest.update(
            outputs=outputs,
            images=len(tally.images),
            counts=counts,
            kinds=dict(sorted(tally.kinds.items())),
            groups=len(tally.groups),
            twins=len(tally.twins),
        )
    return manifest


def _saved(rows: Iterable[ChartRow], out: Path) -> Iterator[LabelledExample]:
    for row in rows:
        if row.png:
            save_picture(row.png, out)
        yield row.example


def _counted(
    examples: Iterable[LabelledExample], tally: _Tally, labels: Counter[str]
) -> Iterator[LabelledExample]:
    for example in examples:
        tally.add(example)
        labels[example.label] += 1
        yield example
