"""The page about tables works as it stands, and ``measure.md`` prints what it shows."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from data_prep.tables.mapping import TableMapping, read_mapping
from judging.files.csv_rows import CsvFile
from tests.docs.markdown_pages import DOCS, blocks, spans
from tests.docs.walkthroughs.shell import run

PAGE = DOCS / "tables.md"
ROWS = 6


@pytest.mark.usefixtures("forking_python")
def test_every_command_of_the_page(small: str, tmp_path: Path) -> None:
    """As it stands, but for the judge."""
    outputs = []
    for block in blocks(PAGE):
        if block.title:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "sh":
            outputs.append(run(block.text.replace("embedded-qs", small), tmp_path))
    assert "row 1: hieval-qs/plain/any, labelled Correct" in outputs[0]
    assert len((tmp_path / "data/answers/test.jsonl").read_text().splitlines()) == ROWS
    verdicts = (tmp_path / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["status"] for line in verdicts] == ["scored"] * ROWS
    report = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert report["n"] == ROWS


def test_the_table_names_every_key(tmp_path: Path) -> None:
    assert set(TableMapping.model_fields) <= set(spans(PAGE))
    [shown] = [block for block in blocks(PAGE) if block.language == "yaml"]
    (tmp_path / "mapping.yaml").write_text(shown.text, encoding="utf-8")
    mapping = read_mapping(tmp_path / "mapping.yaml").model_dump(exclude_defaults=True)
    assert mapping == yaml.safe_load(shown.text)


PEOPLE_PAGE = DOCS / "measure.md"


def printed(command: str) -> tuple[str, str]:
    """The block of commands of the page that holds a text, and the output that is shown below."""
    found = blocks(PEOPLE_PAGE)
    [index] = [n for n, b in enumerate(found) if b.language == "sh" and command in b.text]
    assert found[index + 1].language == "text"
    return found[index].text, found[index + 1].text


def write_graded(folder: Path) -> dict[str, str]:
    """Write 1,000 made answers to 250 questions with verdicts; return what people would say.

    The judge leans to Correct.
    """
    rng = np.random.default_rng(1)
    truth, rows, lines = {}, [], []
    for number in range(1, 1001):
        score = rng.normal(1, 2.5)
        label = "Correct" if score > 0 else "Wrong"
        confidence = round(float(1 / (1 + np.exp(-abs(score)))), 3)
        rows.append({"id": number, "question": f"Question {(number - 1) // 4 + 1}?"})
        rows[-1] |= {"gold": "yes", "answer": f"Answer {number}", "model": "abcd"[number % 4]}
        verdict = {"id": str(number), "row": number, "status": "scored", "label": label}
        verdict |= {"confidence": confidence, "judge_name": "mine"}
        if confidence < 0.7:
            verdict |= {"needs_review": True, "message": f"the confidence {confidence} is below .7"}
        lines.append(json.dumps(verdict) + "\n")
        is_right = rng.random() < 1 / (1 + np.exp(-(score - 0.8)))
        truth[str(number)] = "Correct" if is_right else "Wrong"
    with (folder / "answers.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    mapping = "columns: {references: gold, response: answer}\nreference_mode: any\n"
    (folder / "mapping.yaml").write_text(mapping)
    (folder / "verdicts.jsonl").write_text("".join(lines))
    return truth


@pytest.mark.usefixtures("forking_python")
def test_rows_are_drawn_labelled_and_speak_for_all(tmp_path: Path) -> None:
    truth = write_graded(tmp_path)
    command, shown = printed("--rows 200")
    assert run(command, tmp_path) == shown
    file = CsvFile(tmp_path / "review.csv")
    rows = [dict(row) for _, row in file.rows() if isinstance(row, dict)]
    with (tmp_path / "review.csv").open("w", newline="") as out:
        writer = csv.DictWriter(out, file.columns)
        writer.writeheader()
        writer.writerows(row | {"label": truth[str(row["id"])]} for row in rows)
    command, shown = printed("--estimate")
    assert run(command, tmp_path) == shown
    share = np.mean([label == "Correct" for label in truth.values()])
    assert f"{share:.3f} of the 1,000" in PEOPLE_PAGE.read_text(encoding="utf-8")


@pytest.mark.usefixtures("forking_python")
def test_the_plans_are_what_is_printed(tmp_path: Path) -> None:
    for options in ("--rows-per-question 5", "--items 2000"):
        command, shown = printed(f"custos plan labels {options}")
        assert run(command, tmp_path) == shown
