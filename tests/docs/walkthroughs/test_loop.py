"""The page about a round of corrections works as it stands, on a tiny model."""

import csv
import json
from pathlib import Path

import pytest

from judging.files.csv_rows import CsvFile
from judging.files.records import read_records
from judging.types import LabelledExample
from tests.docs.markdown_pages import DOCS, blocks
from tests.docs.walkthroughs.shell import run

PAGE = DOCS / "loop.md"
CORRECTED = {"Spanien.": "teilweise", "Neil Gaiman wrote it.": "teilweise"}
"""What a person sees: half of an answer is not right."""


def label(folder: Path) -> int:
    """Fill the review file in as a person would, and return how many labels are new."""
    file = CsvFile(folder / "review.csv")
    rows = [row for _, row in file.rows() if isinstance(row, dict)]
    for row in rows:
        row["Urteil"] = CORRECTED.get(row["Antwort"], row["own_Urteil"])
    with (folder / "done.csv").open("w", encoding="utf-8", newline="") as target:
        writer = csv.DictWriter(target, file.columns, delimiter=file.delimiter)
        writer.writeheader()
        writer.writerows(rows[::-1])
    return sum(row["Urteil"] != row["own_Urteil"] for row in rows)


@pytest.mark.usefixtures("forking_python")
def test_every_command_of_the_page(small: str, tmp_path: Path) -> None:
    """As it stands, but for the model and the length of training."""
    fresh = f"custos train hieval-qs backbone={small} adapter.init=null optim.max_steps=2"
    num_new, outputs = 0, {}
    for block in blocks(PAGE):
        if block.title:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "sh":
            text = block.text.replace("custos train hieval-qs", fresh)
            if "--from" in text:
                text = f"{text.strip()} || test $? = 3\n"
            outputs[text.split()[1]] = run(text, tmp_path)
            if "custos review verdicts" in text:
                num_new = label(tmp_path)
    assert outputs["review"].startswith(
        f"12 of 20 rows have a label of the corrections, {num_new} of them another one than before"
    )
    merged = CsvFile(tmp_path / "antworten-2.csv")
    assert (
        merged.delimiter == ";"
        and merged.columns[:5] == CsvFile(tmp_path / "antworten.csv").columns
    )
    decision = json.loads((tmp_path / "runs/mine-2/comparison.json").read_text(encoding="utf-8"))
    assert decision["judge"] == "runs/mine"
    assert f"{decision['accuracy']['n']} items in common" in outputs["compare"]
    first, second = (
        {
            row.question
            for _, row in read_records(tmp_path / run / "data/test.jsonl", LabelledExample)
        }
        for run in ("runs/mine", "runs/mine-2")
    )
    assert first == second
