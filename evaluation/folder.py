"""An evaluation's folder: the items, and what the judge said of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaluation.outcomes import check_aligned
from judging.errors import CustosError
from judging.records import read_records, write_records
from judging.types import LabelledExample, Verdict

EXAMPLES = "examples.jsonl"
VERDICTS = "verdicts.jsonl"


def save_evaluation(
    out_dir: Path, examples: Sequence[LabelledExample], verdicts: Sequence[Verdict]
) -> None:
    """Write ``examples.jsonl`` and ``verdicts.jsonl``, row by row in the same order.

    Raises:
        CustosError: If there is not one verdict per example, in the same order.
    """
    check_aligned(examples, verdicts)
    write_records(out_dir / EXAMPLES, examples)
    write_records(out_dir / VERDICTS, verdicts)


def load_evaluation(out_dir: Path) -> tuple[list[LabelledExample], list[Verdict]]:
    """Read what ``save_evaluation`` wrote.

    Raises:
        CustosError: If a file is missing, a row is invalid, or the two files do not line up.
    """
    for name in (EXAMPLES, VERDICTS):
        if not (out_dir / name).is_file():
            raise CustosError(
                f"{out_dir}: no {name} there: give the folder that 'custos eval --out' wrote"
            )
    examples = [row for _, row in read_records(out_dir / EXAMPLES, LabelledExample)]
    verdicts = [row for _, row in read_records(out_dir / VERDICTS, Verdict)]
    try:
        check_aligned(examples, verdicts)
    except CustosError as error:
        raise CustosError(f"{out_dir}: {error}") from None
    return examples, verdicts
