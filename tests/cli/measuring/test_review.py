"""``custos review``: which rows it writes, and that the file is read back as labelled rows."""

import json
import re
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.shared.review_file import draw_review_rows, read_review_rows
from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import read_table
from evaluation.correction.scores import corrected_rate
from judging.files.csv_rows import CsvFile, unguarded
from judging.judge import Judge
from judging.types import JudgeRequest, LabelledExample
from tests.cli.made_up import custos, read_lines, succeed, write_csv, write_lines
from tests.serve.made_up import FakeJudge

ROWS = [
    {"id": "a", "gold": "Paris; Lutetia", "answer": "It is Paris", "model": "ant"},
    {"id": "b", "gold": "Paris", "answer": "=Rome", "model": "bee"},
    {"id": "c", "gold": "Paris", "answer": "Lyon, or Paris", "model": "cat"},
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = [{"question": "The capital?", **row} for row in ROWS]
    return write_csv(tmp_path / "answers.csv", rows)


def verdicts(path: Path, labels: list[str | None], name: str = "judge", **last: Any) -> Path:
    rows: list[dict[str, Any]] = []
    for number, label in enumerate(labels, 1):
        rows.append({"id": "abc"[number - 1], "row": number, "judge_name": name})
        rows[-1] |= {"status": "scored", "label": label, "confidence": 0.6}
        rows[-1] |= {} if label else {"status": "judge_error", "message": "no server"}
    rows[-1] |= last
    return write_lines(path, rows)


MAPPING = TableMapping(columns={"references": "gold", "response": "answer"}, reference_mode="any")
OPTIONS = ["--map", "references=gold", "--map", "response=answer", "--reference-mode", "any"]


def review(table: Path, out: Path, *files: Path | str) -> Any:
    return custos("review", *files, "--in", table, "--out", out, *OPTIONS)


def cells(path: Path) -> list[dict[str, str]]:
    file = CsvFile(path)
    rows = (row if isinstance(row, dict) else {} for _, row in file.rows())
    return [{name: row.get(name, "") for name in file.columns} for row in rows]


def test_the_rows_are_labelled_and_read_back(table: Path, tmp_path: Path) -> None:
    why = "the confidence 0.600 is below 0.9"
    files = verdicts(
        tmp_path / "v.jsonl", ["Correct", None, "Correct"], needs_review=True, message=why
    )
    out = tmp_path / "review.csv"
    result = review(table, out, files)
    counts = "1 below the risk, 1 without a verdict"
    assert result.stdout == (
        f"2 of 3 rows are for people: {counts}; written to {out}\n"
        "fill in column 'label' with Correct or Wrong\n"
    )
    rows = cells(out)
    assert list(rows[0])[:5] == list(cells(table)[0]), "the columns of the table come first"
    assert [(row["id"], row["judge_label"], row["reason"], row["label"]) for row in rows] == [
        ("b", "(judge_error)", "no server", ""),
        ("c", "Correct", why, ""),
    ]
    assert rows[1]["model"] == "cat"
    for row, label in zip(rows, ("Wrong", "Correct"), strict=True):
        row["label"] = label
    write_csv(out, rows)
    examples = [row for _, row in read_table(out, LabelledExample, MAPPING, {})]
    assert [(e.id, e.label, e.references, e.reference_mode, e.confidence) for e in examples] == [
        ("b", "Wrong", ("Paris",), "any", None),
        ("c", "Correct", ("Paris",), "any", None),
    ]
    assert examples[1].response == "Lyon, or Paris"
    result = review(table, out, files)
    assert result.exit_code == 2, "labels of people are never replaced"
    assert f"--out '{out}': exists with 2 labels; name a new file" in result.stderr


def test_a_page_saves_what_the_table_holds(table: Path, tmp_path: Path) -> None:
    files = verdicts(tmp_path / "v.jsonl", ["Wrong", None, "Wrong"], needs_review=True)
    page, out = tmp_path / "review.html", tmp_path / "review.csv"
    assert review(table, out, files).exit_code == review(table, page, files).exit_code == 0
    text = page.read_text(encoding="utf-8")
    [content] = re.findall(r'<script type="application/json" id="content">(.*?)</script>', text)
    held = json.loads(content)
    file = CsvFile(out)
    assert held["columns"] == list(file.columns)
    assert "~'=Rome" in held["items"][0]["cells"], "guarded as in the table"
    for item, (_, row) in zip(held["items"], file.rows(), strict=True):
        empty = [n for n, cell in zip(held["columns"], item["cells"], strict=True) if cell is None]
        assert empty == ["label", "corrected_by", "corrected_at"]
        assert isinstance(row, dict)
        given = [cell for cell in item["cells"] if cell is not None]
        assert set(row.values()) == {unguarded(cell) for cell in given if cell}
        assert item["options"] == ["Correct", "Wrong"]
        assert ["judge_label", row["judge_label"]] in item["asides"]
    assert review(table, page, files).exit_code == 2, "it may be filled in"


def test_criteria_go_to_people_and_come_back(tmp_path: Path) -> None:
    """Rows without a question are told apart by their responses."""
    said = ["No.", "Certainly not, sir.", "No, thanks."]
    rows = [
        {"id": "abc"[i], "criteria": "is short; is polite", "response": said[i]} for i in (0, 1, 2)
    ]
    table, out = write_csv(tmp_path / "rows.csv", rows), tmp_path / "people.csv"
    file = verdicts(tmp_path / "v.jsonl", [None] * 3, rubric="criterion/plain")
    succeed("review", file, "--in", table, "--csv", out, "--task", "criterion")
    written = cells(out)
    assert {row["criteria"] for row in written} == {"is short; is polite"}
    assert sorted(row["response"] for row in written) == sorted(said)


def test_rows_on_which_judges_differ(table: Path, tmp_path: Path) -> None:
    first = verdicts(tmp_path / "1.jsonl", ["Correct", "Wrong", "Correct"], "one")
    second = verdicts(tmp_path / "2.jsonl", ["Wrong", "Wrong", "Correct"], "two")
    assert review(table, tmp_path / "out.csv", first, second).exit_code == 0
    [row] = cells(tmp_path / "out.csv")
    assert (row["id"], row["reason"]) == ("a", "the judges differ")
    assert row["judge_label"] == "one: Correct; two: Wrong"
    assert row["gold"] == "Paris; Lutetia"


def test_verdicts_of_another_table_are_refused(table: Path, tmp_path: Path) -> None:
    files = verdicts(tmp_path / "v.jsonl", ["Correct"])
    result = review(table, tmp_path / "out.csv", files)
    assert result.exit_code == 2
    assert "no verdict on row 2" in result.stderr and not (tmp_path / "out.csv").exists()
    assert review(table, table, files).exit_code == 2


def test_rows_that_are_read_otherwise_than_they_were_graded_are_refused(
    table: Path, tmp_path: Path
) -> None:
    for rubric in ("hieval-qs/plain/all", "hieval-qs/tolerance/any", "simplevqa/english"):
        files = verdicts(tmp_path / "v.jsonl", ["Wrong"] * 3)
        first, *others = read_lines(files)
        write_lines(files, [first | {"rubric": rubric}, *others])
        result = review(table, tmp_path / "review.csv", files)
        assert result.exit_code == 2
        assert (
            f"the verdict on row 1 is under {rubric}, and the row is read under " in result.stderr
        )


def test_verdicts_under_the_mode_that_a_judge_takes_a_row_in_are_read(
    table: Path, tmp_path: Path
) -> None:
    """One reference in any mode, alternatives in three levels of a judge with no others."""
    for several, single in (("any", "all"), ("any-partial", "any"), ("any-partial", "any-partial")):
        files = verdicts(tmp_path / "v.jsonl", ["Wrong"] * 3)
        read = read_lines(files)
        for verdict, mode in zip(read, (several, single, single), strict=True):
            verdict["rubric"] = f"hieval-qs/plain/{mode}"
        out = tmp_path / f"{several}-{single}.csv"
        assert review(table, out, write_lines(files, read)).exit_code == 0


def test_columns_of_the_users_own_that_are_called_as_ours_are_kept(tmp_path: Path) -> None:
    """Keep labels of earlier people too: they and other columns were left out without a word."""
    row = {"question": "?", "gold": "x", "answer": "y", "label": "Wrong", "error_type": "Other"}
    row |= {"reason": "odd", "own_reason": "mine", "needs_review": "yes", "weight": "2"}
    source, out = tmp_path / "answers.csv", tmp_path / "review.csv"
    write_csv(source, [row, row | {"gold": ""}])
    files = verdicts(tmp_path / "v.jsonl", [None, None])
    files.write_text(files.read_text().replace('"id": "a"', '"id": "1"').replace('"b"', '"2"'))
    result = review(source, out, files)
    assert result.stdout.endswith(
        "what your columns held is kept under other names: label as own_label, error_type as "
        "own_error_type, reason as own_own_reason\n"
    )
    names = ("label", "own_label", "own_error_type", "own_own_reason", "own_reason")
    for written in cells(out):
        assert [written[name] for name in names] == ["", "Wrong", "Other", "odd", "mine"]
        assert (written["needs_review"], written["weight"]) == ("yes", "2")
        assert written["reason"] != "odd"


def test_a_mapped_column_of_labels_and_a_date_of_a_parquet_file_are_kept(tmp_path: Path) -> None:
    """Write the date as text; it ended the command with a traceback."""
    row = {"id": "a", "question": "?", "gold": "x", "answer": "y", "person": "bad"}
    source, out = tmp_path / "answers.parquet", tmp_path / "review.csv"
    pq.write_table(pa.Table.from_pylist([row | {"day": date(2026, 1, 2)}]), source)
    files = verdicts(tmp_path / "v.jsonl", [None])
    assert review(source, out, files, "--map", "label=person").exit_code == 0
    [written] = cells(out)
    assert (written["person"], written["own_person"], written["day"]) == ("", "bad", "2026-01-02")
    assert "label" not in written


def test_other_files_are_refused(table: Path, tmp_path: Path) -> None:
    files, out = verdicts(tmp_path / "v.jsonl", ["Correct"] * 3), tmp_path / "out.csv"
    for content, message in (("my,notes\n", "is no earlier output"), ("", "")):
        out.write_text(content)
        result = review(table, out, files)
        assert message in result.stderr and result.exit_code == (2 if content else 0)
    graded = tmp_path / "v.csv"
    graded.write_text("status,label\nscored,Correct\n")
    result = review(table, tmp_path / "new.csv", graded)
    assert result.exit_code == 2
    assert f"{graded}: has not the columns that custos grade writes" in result.stderr
    result = review(table, tmp_path / "new.csv", tmp_path / "v.json")
    assert "v.json: expected a file of custos grade, ending in .jsonl, .csv" in result.stderr
    result = review(table, tmp_path / "new.csv", tmp_path / "gone.csv")
    assert f"error: {tmp_path / 'gone.csv'}: no such file" in result.stderr


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".tsv", ".xlsx", ".parquet"])
@pytest.mark.parametrize("ids", [("id", "a", "=b", "7"), None], ids=["ids", "no ids"])
def test_every_kind_of_file_that_grade_writes_is_read(
    suffix: str, ids: tuple[str, ...] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table has columns called as those of verdicts, and a row without text in its middle."""
    monkeypatch.setattr(Judge, "load", lambda source: FakeJudge())
    source, graded = tmp_path / "answers.csv", tmp_path / f"graded{suffix}"
    rows = ["question,gold,answer,label,status", "Q?,Paris,Paris,old,x", "Q?,,Rome,old,x"]
    rows += ["Q?,,Lyon,old,x"]
    if ids is not None:
        rows = [f"{name},{row}" for name, row in zip(ids, rows, strict=True)]
    blank = "," * rows[0].count(",")
    source.write_text("\n".join([*rows[:2], blank, *rows[2:]]) + "\n")
    custos("grade", "--judge", "j", "--in", source, "--out", graded, *OPTIONS, "--allow-failed")
    result = review(source, tmp_path / "review.csv", graded)
    assert "2 of 3 rows are for people: 2 without a verdict" in result.stdout, result.stderr
    shown = cells(tmp_path / "review.csv")
    assert [row.get("id") for row in shown] == (list(ids[2:]) if ids else [None, None])
    assert [row["custos_row"].partition("-")[0] for row in shown] == ["r3", "r4"]
    assert [row["judge_label"] for row in shown] == ["(invalid)"] * 2
    assert "column 'gold' is empty" in shown[1]["reason"]
    source.write_text(source.read_text().replace("7,Q?", "8,Q?"))
    result = review(source, tmp_path / "again.csv", graded)
    assert ("no verdict on row 4" in result.stderr) == (ids is not None)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_verdicts_are_found_by_an_id_in_a_nested_cell(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Judge, "load", lambda source: FakeJudge())
    row = {"meta": {"id": "x"}, "question": "Q?", "references": ["Paris"], "response": "Paris"}
    table, graded = write_lines(tmp_path / "rows.jsonl", [row]), tmp_path / f"graded{suffix}"
    words = ("--in", table, "--map", "id=meta.id", "--out")
    succeed("grade", "--judge", "j", *words, graded)
    succeed("review", graded, *words, tmp_path / "review.csv")


def test_verdicts_on_more_rows_than_the_table_has_are_refused(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refuse those on a longer table whose ids are the numbers of its rows, too."""
    monkeypatch.setattr(Judge, "load", lambda source: FakeJudge())
    table.write_text("question,gold,answer\n" + "Q?,Paris,Paris\n" * 3)
    graded = [tmp_path / "v.jsonl", tmp_path / "v.csv"]
    for out in graded:
        succeed("grade", "--judge", "j", "--in", table, "--out", out, *OPTIONS)
    table.write_text("question,gold,answer\nQ?,Paris,Paris\n\nQ?,Paris,Paris\n")
    for out in graded:
        result = review(table, tmp_path / "out.csv", out)
        assert result.exit_code == 2
        assert str(out) in result.stderr and "give the table that was graded" in result.stderr
    twice = tmp_path / "twice.jsonl"
    twice.write_bytes(graded[0].read_bytes() * 2)
    result = review(table, tmp_path / "out.csv", twice)
    assert f"{twice} row 4: a second verdict on row 1" in result.stderr
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx"])
def test_every_text_of_a_review_file_is_read_as_it_was(tmp_path: Path, suffix: str) -> None:
    texts = ["- Ann", "'=1", "=A1", "~'=1", "x;=1+1", "\n- a\t=b", 'say "x"', "'tis", '["a"]']
    rows = [
        {"id": text, "question": text, "references": [text], "response": text} for text in texts
    ]
    source, out = write_lines(tmp_path / "a.jsonl", rows), tmp_path / f"r{suffix}"
    verdict = {"status": "judge_error", "message": "no server"}
    lines = [{"id": text, "row": number, **verdict} for number, text in enumerate(texts, 1)]
    files = write_lines(tmp_path / "v.jsonl", lines)
    succeed("review", files, "--in", source, "--csv", out)
    read = [row for _, row in read_table(out, JudgeRequest, TableMapping())]
    assert [(r.id, r.question, r.references, r.response) for r in read] == [
        (text, text, (text,), text) for text in texts
    ]


@pytest.fixture
def graded(tmp_path: Path) -> tuple[Path, Path, dict[str, str]]:
    """A table of 400 answers by four models, verdicts, and what people would say by id."""
    rng = np.random.default_rng(3)
    rows, verdicts, truth = [], [], {}
    for number in range(1, 401):
        chance = float(rng.beta(0.6, 0.4))
        label = "Correct" if chance > 0.5 else "Wrong"
        rows.append({"question": f"Question {number // 4}?", "gold": "x", "answer": f"y{number}"})
        rows[-1]["model"] = "abcd"[number % 4]
        verdict = {"id": str(number), "row": number, "status": "scored", "label": label}
        verdict |= {"confidence": max(chance, 1 - chance), "judge_name": "one"}
        verdicts.append(verdict | {"needs_review": 0.4 < chance < 0.6})
        truth[str(number)] = "Correct" if rng.random() < 0.9 * chance else "Wrong"
    source = write_csv(tmp_path / "many.csv", rows)
    return source, write_lines(tmp_path / "many.jsonl", verdicts), truth


def number_of(row: dict[str, str]) -> str:
    """The number in the table of a row of a review file."""
    return row["custos_row"].partition("-")[0].removeprefix("r")


def labelled(path: Path, truth: dict[str, str], first: int | None = None) -> Path:
    """The same review file as people have labelled it, all or its first rows."""
    rows = cells(path)
    for row in rows[:first]:
        row["label"] = truth[number_of(row)]
    out = path.with_name("labelled.csv")
    write_csv(out, rows)
    return out


def estimate(source: Path, files: Path, path: Path, *options: str) -> Any:
    return custos("review", files, "--in", source, "--estimate", path, *OPTIONS, *options)


def figures(output: str) -> dict[str, list[float]]:
    """The figures of a printed table by the name of the row: value, low and high of each column."""
    rows = [re.split(r" {2,}", line) for line in output.splitlines() if "[" in line]
    return {name: [float(x) for x in re.findall(r"[\d.]+", " ".join(rest))]
            for name, *rest in rows}  # fmt: skip


def test_drawn_rows_are_labelled_and_speak_for_all(
    graded: tuple[Path, Path, dict[str, str]], tmp_path: Path
) -> None:
    source, files, truth = graded
    out = tmp_path / "review.csv"
    assert review(source, out, files, "--rows", "120", "--by", "model").exit_code == 0
    rows = cells(out)
    assert len(rows) == 120
    assert Counter(row["model"] for row in rows) == dict.fromkeys("abcd", 30)
    chances = {number_of(row): float(row["sampling_probability"]) for row in rows}
    read = read_table(labelled(out, truth), LabelledExample, MAPPING, {})
    probabilities = [example.sampling_probability for _, example in read]
    assert probabilities == list(chances.values()), "read as it was written"
    verdicts = {str(verdict["id"]): verdict for verdict in read_lines(files)}
    result = estimate(source, files, labelled(out, truth))
    shown = figures(result.stdout)
    numbers = [str(number) for number in range(1, 401)]
    expected = corrected_rate(
        np.array([float(verdicts[number]["label"] == "Correct") for number in numbers]),
        np.array([float(truth[n] == "Correct") if n in chances else np.nan for n in numbers]),
        probabilities=np.array([chances.get(number, np.nan) for number in numbers]),
        groups=np.array([int(number) // 4 for number in numbers]),
    )
    of_columns = (expected.corrected, expected.labelled, expected.raw)
    assert shown["Correct"] == pytest.approx([x for r in of_columns for x in r[:3]], abs=6e-4)
    right = np.mean([truth[number] == verdicts[number]["label"] for number in numbers])
    assert shown["judge is right"][1] <= right <= shown["judge is right"][2]


def test_labels_that_say_nothing_of_other_rows_are_refused(
    graded: tuple[Path, Path, dict[str, str]], tmp_path: Path
) -> None:
    source, files, truth = graded
    out = tmp_path / "review.csv"
    assert review(source, out, files).exit_code == 0
    assert "sampling_probability" not in cells(out)[0]
    result = estimate(source, files, labelled(out, truth))
    assert result.exit_code == 2 and "custos review --rows" in result.stderr
    review(source, out, files, "--rows", "50")
    assert "no row has a label" in estimate(source, files, out).stderr
    done = labelled(out, truth)
    done.write_text(done.read_text().replace("Correct,", "Perhaps,"))
    assert estimate(source, files, done).exit_code == 2
    both = review(source, out, files, "--estimate", str(done))
    assert both.exit_code == 2 and "--estimate" in both.stderr
    assert "--by 'size'" in review(source, out, files, "--rows", "9", "--by", "size").stderr


def test_a_row_that_is_labelled_twice_or_without_its_chance_is_named(
    graded: tuple[Path, Path, dict[str, str]], tmp_path: Path
) -> None:
    source, files, truth = graded
    review(source, tmp_path / "review.csv", files, "--rows", "50")
    done = labelled(tmp_path / "review.csv", truth)
    whole, rows = done.read_text(), cells(done)

    def refused(rows: list[dict[str, str]]) -> str:
        write_csv(done, rows)
        result = estimate(source, files, done)
        assert result.exit_code == 2
        return str(result.stderr)

    assert f"row {number_of(rows[7])} of " in refused([*rows, rows[7]])
    rows[7]["sampling_probability"] = ""
    error = refused(rows)
    assert "row 8 below the header" in error and "sampling_probability" in error
    done.write_text(whole)
    assert estimate(source, files, done).exit_code == 0


@pytest.mark.parametrize("column", ["group", "topic"])
def test_the_share_as_judged_is_one_figure(
    graded: tuple[Path, Path, dict[str, str]], tmp_path: Path, column: str
) -> None:
    """Rows of a group count together in what is printed of all rows, and in what is estimated."""
    source, files, truth = graded
    rows = cells(source)
    for number, row in enumerate(rows):
        row[column] = str(number // 20)
    write_csv(source, rows)
    mapped = ("--map", f"group={column}")
    rubric = {"rubric": "hieval-qs/plain/any"}
    write_lines(files, [verdict | rubric for verdict in read_lines(files)])
    drawn = review(source, tmp_path / "review.csv", files, "--rows", "50", *mapped)
    as_judged = re.findall(r"[\d.]+", drawn.stdout.partition("as judged")[2])[:3]
    output = estimate(source, files, labelled(tmp_path / "review.csv", truth), *mapped).stdout
    assert "of 400 rows on 20 questions" in output
    shown = figures(output)
    assert shown["Correct"][-3:] == [float(figure) for figure in as_judged]


def test_a_group_may_be_the_number_0_and_may_be_missing(tmp_path: Path) -> None:
    groups = [0, 0, float("nan"), None]
    rows = [
        {"question": f"{n}?", "references": ["x"], "response": "y", "group": group}
        for n, group in enumerate(groups)
    ]
    table = write_lines(tmp_path / "rows.jsonl", rows)
    scored = {"status": "scored", "label": "Wrong"}
    files = write_lines(
        tmp_path / "v.jsonl", [{"id": f"{n}", "row": n} | scored for n in range(1, 5)]
    )
    read = read_review_rows([files], table, TableMapping())
    assert [row.question for row in read] == ["0", "0", "2?", "3?"]


def test_rows_are_drawn_by_a_mapped_column_under_either_name(tmp_path: Path) -> None:
    mapping = TableMapping(columns={"metadata.answerer": "model"})
    rows = [
        {"question": f"{n}?", "references": ["x"][: n % 9], "response": "y", "model": "ab"[n > 5]}
        for n in range(20)
    ]
    table = write_lines(tmp_path / "rows.jsonl", rows)
    lines = [{"id": f"{n}", "row": n, "status": "scored", "label": "Wrong"} for n in range(1, 21)]
    read = list(read_review_rows([write_lines(tmp_path / "v.jsonl", lines)], table, mapping))
    for name in ("model", "answerer"):
        drawn = Counter(str(row.table_cells["model"]) for row in draw_review_rows(read, 8, name, 0))
        assert drawn == {"a": 4, "b": 4}
