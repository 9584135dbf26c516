"""The folder of an evaluation: its examples, and the judge's verdicts on them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaluation.outcomes import check_aligned
from judging.errors import CustosError
from judging.files.records import read_records, write_records
from judging.types import LabelledExample, Verdict

EXAMPLES = "examples.jsonl"
VERDICTS = "verdicts.jsonl"


def save_evaluation(
    folder: Path, examples: Sequence[LabelledExample], verdicts: Sequence[Verdict]
) -> None:
    """Write ``examples.jsonl`` and ``verdicts.jsonl``, row by row in the same order.

    Raises:
        CustosError: If there is not one verdict per example, in the same order.
    """
    check_aligned(examples, verdicts)
    write_records(folder / EXAMPLES, examples)
    write_records(folder / VERDICTS, verdicts)


def load_evaluation(folder: Path) -> tuple[list[LabelledExample], list[Verdict]]:
    """Read what ``save_evaluation`` wrote.

    Raises:
        CustosError: If a file is missing, a row is invalid, or the two files do not line up.
    """
    for name in (EXAMPLES, VERDICTS):
        if not (folder / name).is_file():
            raise CustosError(
                f"{folder}: no {name} there: give the folder that 'custos eval --out' wrote"
            )
    examples = [row for _, row in read_records(folder / EXAMPLES, LabelledExample)]
    verdicts = [row for _, row in read_records(folder / VERDICTS, Verdict)]
    try:
        check_aligned(examples, verdicts)
    except CustosError as error:
        raise CustosError(f"{folder}: {error}") from None
    return examples, verdicts
