"""Labelled examples of a user's table, for the verbs that measure a judge."""

from __future__ import annotations

import random
from pathlib import Path

from cli.shared.bad_rows import show_dropped
from data_prep.tables import dropped
from data_prep.tables.mapping import TableMapping
from data_prep.tables.pictures import check_row_pictures
from data_prep.tables.reader import BadRow
from evaluation.declared_labels import check_labels
from judging.types import LabelledExample


def read_examples(
    data: Path,
    mapping: TableMapping,
    allow_dropped: bool,
    limit: int | None,
    seed: int,
    *,
    check_pictures: bool,
) -> list[LabelledExample]:
    """Read labelled examples, all or a random few in file order; a missing id is the row number.

    With ``check_pictures`` a picture that cannot be read is an error now, not after the grading.

    Raises:
        CustosError: If a row cannot be used: an evaluation leaves out nothing unless it is allowed.
    """
    bad_rows: dict[int, BadRow] = {}
    rows = dropped.read_examples(data, mapping, bad_rows, allow_dropped=allow_dropped)
    show_dropped(bad_rows)
    if check_pictures:
        check_row_pictures(data, rows)
    examples = [
        example if example.id else example.model_copy(update={"id": str(row)})
        for row, example in rows
    ]
    check_labels(examples, str(data), lambda index: f"row {rows[index][0]}")
    if limit is None or limit >= len(examples):
        return examples
    return [examples[i] for i in sorted(random.Random(seed).sample(range(len(examples)), limit))]
