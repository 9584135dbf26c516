"""``custos review --merge``: people's labels come back into the table, in its own shape."""

import csv
import json
import time
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.shared.corrections import RowsOfTable
from data_prep.tables.labels import in_own_words, with_our_labels
from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import read_table
from evaluation.outcomes import full_label
from judging.files.csv_rows import CsvFile, write_spreadsheet
from judging.files.records import read_rows
from judging.tasks import get_task
from judging.types import LabelledExample
from tests.cli.made_up import custos, succeed, write_csv, write_lines

WORDS = {"richtig": "Correct", "korrekt": "Correct", "teils": "Partial", "falsch": "Wrong"}
COLUMNS = {"question": "Frage", "references": "Lösung", "response": "Antwort", "label": "Urteil"}
MAPPING = TableMapping(columns=COLUMNS, labels=WORDS, reference_mode="all")
OPTIONS = [
    *(word for ours, theirs in COLUMNS.items() for word in ("--map", f"{ours}={theirs}")),
    *("--labels", ",".join(f"{theirs}={ours}" for theirs, ours in WORDS.items())),
    *("--reference-mode", "all"),
]
PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)
ROWS: list[dict[str, Any]] = [
    {"Frage": "Nenne zwei Farben", "Lösung": "Rot;Gold", "Antwort": "Rot", "Urteil": "richtig"},
    {"Frage": "Nenne zwei Farben", "Lösung": "Rot;Gold", "Antwort": "Blau", "Urteil": "falsch"},
    {"Frage": "Wer schrieb Faust?", "Lösung": "Goethe", "Antwort": "=Goethe", "Urteil": "falsch"},
    {"Frage": "Wer schrieb Faust?", "Lösung": "Goethe", "Antwort": "007", "Urteil": "richtig"},
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows as a table of the kind that the name says; a CSV file has semicolons."""
    lists = [{**row, "Lösung": row["Lösung"].split(";")} for row in rows]
    if path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(
                file, list(dict.fromkeys(n for r in rows for n in r)), delimiter=";"
            )
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".xlsx":
        write_spreadsheet(path, list(rows[0]), [list(row.values()) for row in rows])
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(lists), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(lists))
    else:
        write_lines(path, lists)
    return path


def review(table: Path, *more: str) -> Path:
    """Write a review file of all rows, on which there is no verdict."""
    lines = [
        {"id": str(n), "row": n, "status": "scored", "label": "Correct", "needs_review": True}
        for n in range(1, len(ROWS) + 1)
    ]
    verdicts = write_lines(table.with_name("verdicts.jsonl"), lines)
    out = table.with_name("review.csv")
    out.unlink(missing_ok=True)
    succeed("review", verdicts, "--in", table, "--out", out, *more, *OPTIONS)
    return out


def fill(path: Path, labels: dict[int, str], name: str = "done.csv", **cells: str) -> Path:
    """Label rows of a review file by their number in the table, and turn their order round."""
    file = CsvFile(path)
    rows = [row for _, row in file.rows() if isinstance(row, dict)]
    for row in rows:
        number = int(row["custos_row"].partition("-")[0].removeprefix("r"))
        if number in labels:
            row |= {"Urteil": labels[number], **cells}
    out = path.with_name(name)
    with out.open("w", encoding="utf-8", newline="") as target:
        writer = csv.DictWriter(target, file.columns, delimiter=file.delimiter)
        writer.writeheader()
        writer.writerows(rows[::-1])
    return out


def merge(table: Path, *done: Path, who: str = "", name: str = "merged") -> tuple[Any, Path]:
    out = table.with_name(f"{name}{table.suffix}")
    options = [word for path in done for word in ("--merge", str(path))]
    options += ["--who", who] if who else []
    return custos("review", "--in", table, "--out", out, *options, *OPTIONS), out


def chances(path: Path) -> dict[int, float]:
    """The probabilities that a file has, by the number of the row in the table."""
    rows = [(number, row) for number, row in CsvFile(path).rows() if isinstance(row, dict)]
    return {
        int(row.get("custos_row", f"r{number}-").partition("-")[0][1:]): float(chance)
        for number, row in rows
        if (chance := row.get("sampling_probability"))
    }


def labels(path: Path) -> list[str]:
    return [example.label for _, example in read_table(path, LabelledExample, MAPPING)]


@pytest.mark.parametrize("suffix", [".csv", ".xlsx", ".jsonl", ".json", ".parquet"])
def test_labels_come_back_into_the_table_in_its_own_shape(suffix: str, tmp_path: Path) -> None:
    table = write(tmp_path / f"antworten{suffix}", ROWS)
    before = [example for _, example in read_table(table, LabelledExample, MAPPING)]
    file = review(table)
    assert CsvFile(file).delimiter == (";" if suffix == ".csv" else ",")
    shown = [row for _, row in CsvFile(file).rows() if isinstance(row, dict)]
    assert {row["judge_label"] for row in shown} == {"richtig"}, "the first word for Correct"
    assert not any("Urteil" in row for row in shown)
    done = fill(file, {1: "teils", 3: "korrekt", 4: "Correct"})
    result, out = merge(table, done, who="anna")
    assert "3 of 4 rows have a label of the corrections, 2 of them another one" in result.stdout
    assert "row 3 has no label yet" in result.stdout
    after = [example for _, example in read_table(out, LabelledExample, MAPPING)]
    assert [row.label for row in after] == ["Partial", "Wrong", "Correct", "Correct"]
    assert [row.request().model_copy(update={"metadata": {}}) for row in after] == [
        row.request() for row in before
    ]
    stored = [row for _, row in read_rows(out)]
    assert [row["Urteil"] for row in stored] == ["teils", "falsch", "korrekt", "richtig"]
    assert [row.get("corrected_by") for row in stored] == ["anna", None, "anna", "anna"]
    assert [row.get("label_before") for row in stored] == ["richtig", None, "falsch", None]
    assert [bool(row.get("corrected_at")) for row in stored] == [True, False, True, True]
    if suffix == ".csv":
        assert CsvFile(out).delimiter == ";"


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
@pytest.mark.parametrize("metadata", [None, {"model": "a", "seed": 7}])
def test_rows_of_our_fields_alone_tell_of_a_correction_in_their_metadata(
    suffix: str, metadata: dict[str, Any] | None, tmp_path: Path
) -> None:
    names = dict(zip(ROWS[0], ("question", "references", "response", "label"), strict=True))
    table = tmp_path / f"rows{suffix}"
    rows = [{ours: row[theirs] for theirs, ours in names.items()} for row in ROWS[:2]]
    rows = [{**row, "references": [row["references"]], "label": "Wrong"} for row in rows]
    if metadata:
        rows = [{**row, "metadata": metadata} for row in rows]
    if suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), table)
    else:
        table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for number, labels in enumerate((["Correct", "Wrong"], ["Correct", "Partial"])):
        done, out = tmp_path / f"done-{number}.jsonl", tmp_path / f"{number}{suffix}"
        corrected = [{**row, "label": each} for row, each in zip(rows, labels, strict=True)]
        done.write_text("".join(json.dumps({**row, "annotators": ["ben"]}) + "\n"
                                for row in corrected))  # fmt: skip
        succeed("review", "--in", table, "--out", out, "--merge", done)
        table = out
    told = [row["metadata"] for _, row in read_rows(out)]
    assert [each["label_before"] for each in told] == ["Wrong", "Wrong"]
    assert [each["corrected_by"] for each in told] == ["ben", "ben"]
    assert {name: told[1].get(name) for name in metadata or ()} == (metadata or {})


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".parquet"])
@pytest.mark.parametrize("kind", [int, float])
def test_labels_that_are_numbers_stay_numbers(
    suffix: str, kind: Callable[[int], float], tmp_path: Path
) -> None:
    labels = (kind(1), kind(0), None, kind(1))
    rows = [{**row, "Urteil": label} for row, label in zip(ROWS, labels, strict=True)]
    table, out = write(tmp_path / f"antworten{suffix}", rows), tmp_path / f"out{suffix}"
    done = write(tmp_path / "done.csv", [{**rows[0], "Urteil": 0}])
    options = [*OPTIONS[:-4], "--labels", "1=Correct,0=Wrong", *OPTIONS[-2:]]
    succeed("review", "--in", table, "--out", out, "--merge", done, *options)
    stored = [row.get("Urteil") for _, row in read_rows(out)]
    assert stored == [0, 0, None, 1]
    assert {type(label) for label in stored} == {kind, type(None)}


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_what_a_spreadsheet_says_beside_a_label_has_the_types_of_the_table(
    suffix: str, tmp_path: Path
) -> None:
    rows = [{**row, "confidence": 0.5, "tags": ["kurz"]} for row in ROWS]
    table, out = write(tmp_path / f"antworten{suffix}", rows), tmp_path / f"out{suffix}"
    for confidence, status in (("0,75", 0), ("hoch", 2)):
        said = {**ROWS[0], "Urteil": "falsch", "confidence": confidence, "tags": "frech; lang"}
        done = write(tmp_path / "done.csv", [said])
        out.unlink(missing_ok=True)
        result = custos("review", "--in", table, "--out", out, "--merge", done, *OPTIONS)
        assert result.exit_code == status, result.output
        assert out.exists() == (not status)
        if not status:
            [row, *_] = [row for _, row in read_rows(out)]
            assert (row["confidence"], row["tags"]) == (0.75, ["frech", "lang"])
    assert f"{done} row 1" in result.stderr and "confidence" in result.stderr


@pytest.mark.parametrize(
    "picture", [PNG, {"bytes": PNG, "path": "a.png"}, [{"bytes": PNG, "path": "a.png"}], "a.png"]
)
def test_pictures_are_found_from_another_folder(picture: object, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "new").mkdir()
    rows = [{**row, "images": picture} for row in ROWS]
    table, out = write(tmp_path / "antworten.parquet", rows), tmp_path / "new" / "out.parquet"
    done = fill(review(table), {1: "falsch"})
    succeed("review", "--in", table, "--out", out, "--merge", done, *OPTIONS)
    stored = [row["images"] for _, row in read_rows(out)]
    assert stored == [str(tmp_path / "a.png") if picture == "a.png" else picture] * len(ROWS)


def test_what_stands_around_the_rows_of_a_json_file_stays(tmp_path: Path) -> None:
    table = write(tmp_path / "antworten.json", ROWS)
    table.write_text(json.dumps({"version": 2, "data": json.loads(table.read_text()), "n": []}))
    result, out = merge(table, fill(review(table), {1: "teils"}))
    content = json.loads(out.read_text())
    assert {name: content[name] for name in ("version", "n")} == {"version": 2, "n": []}
    assert [row["Urteil"] for row in content["data"]] == ["teils", "falsch", "falsch", "richtig"]


def test_rows_are_found_in_another_order_and_named_where_they_have_changed(tmp_path: Path) -> None:
    table = write(tmp_path / "antworten.csv", ROWS)
    done = fill(review(table), {1: "teils"})
    write(table, ROWS[::-1])
    result, out = merge(table, done)
    assert result.exit_code == 0 and labels(out) == ["Correct", "Wrong", "Wrong", "Partial"]
    write(table, [{**ROWS[0], "Lösung": "Rot;Grün"}, *ROWS[1:]])
    result, out = merge(table, done, name="other")
    assert result.exit_code == 2 and f"{done}: row 4 with a label" in result.stderr
    assert not out.exists()


def test_a_file_of_another_program_is_matched_by_what_it_asks(tmp_path: Path) -> None:
    """It has our fields, and no key of a review file."""
    table = write(tmp_path / "antworten.csv", ROWS)
    row = {"question": "Nenne zwei Farben", "references": ["Rot", "Gold"], "response": "Blau"}
    done = tmp_path / "export.jsonl"
    done.write_text(json.dumps({**row, "label": "Partial", "annotators": ["ben"]}))
    result, out = merge(table, done)
    assert result.exit_code == 0, result.stderr
    assert labels(out) == ["Correct", "Partial", "Wrong", "Correct"]
    stored = [row for _, row in read_rows(out)]
    assert (stored[1]["Urteil"], stored[1]["corrected_by"]) == ("teils", "ben")


def test_a_file_of_another_table_gives_no_labels_to_rows_that_are_counted_alike(
    tmp_path: Path,
) -> None:
    rows = [{"id": str(number), **row} for number, row in enumerate([*ROWS, ROWS[0]], 1)]
    table = write(tmp_path / "antworten.csv", rows)
    strangers = [{**row, "Frage": f"{row['Frage']} Und warum?"} for row in rows]
    result, out = merge(table, write(tmp_path / "other.csv", strangers))
    assert result.exit_code == 2 and "rows 1, 2, 3, 4, 5 with a label" in result.stderr
    assert not out.exists()
    equal = write(tmp_path / "equal.csv", [{**rows[4], "Urteil": "teils"}])
    result, out = merge(table, equal)
    assert result.exit_code == 0, result.stderr
    assert labels(out) == ["Correct", "Wrong", "Wrong", "Correct", "Partial"], "the id decides"
    equal.write_text("Frage;Lösung;Antwort;Urteil\n", encoding="utf-8")
    result, _ = merge(table, equal, name="again")
    assert f"{equal}: no row has a label" in result.stderr


def test_equal_rows_of_a_file_that_has_them_all_keep_their_order(tmp_path: Path) -> None:
    """As two models that answer alike, in an export or in a table with labels."""
    table = write(tmp_path / "antworten.csv", [*ROWS, ROWS[0]])
    done = [{**ROWS[0], "Urteil": "teils"}, {**ROWS[0], "Urteil": "falsch"}]
    result, out = merge(table, write(tmp_path / "done.csv", done))
    assert result.exit_code == 0, result.stderr
    assert labels(out) == ["Partial", "Wrong", "Wrong", "Correct", "Wrong"]
    result, _ = merge(table, write(tmp_path / "done.csv", done[:1]), name="one")
    assert result.exit_code == 2 and "row 1 with a label" in result.stderr


def test_many_equal_rows_are_found_in_time(tmp_path: Path) -> None:
    """Each has the id of all the others."""
    table = write(tmp_path / "antworten.csv", [{"id": "x", **ROWS[0]}] * 1_500)
    started = time.process_time()
    found = RowsOfTable(table, MAPPING).corrections([table])
    assert time.process_time() - started < 10
    given = [(number, each.label) for number, of_row in found.by_row.items() for each in of_row]
    assert given == [(number, "Correct") for number in range(1, 1_501)]


def test_a_key_of_thousands_of_digits_is_of_no_row(tmp_path: Path) -> None:
    rows = RowsOfTable(write(tmp_path / "antworten.csv", ROWS), MAPPING)
    assert rows.places(f"r{'1' * 5_000}-{'0' * 12}") == ()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_spreadsheet_may_save_the_file_in_another_format_than_the_tables(
    delimiter: str, encoding: str, tmp_path: Path
) -> None:
    table = write(tmp_path / "antworten.csv", ROWS)
    table.write_bytes(table.read_text(encoding="utf-8").encode("latin-1"))
    options = ["--delimiter", ";", "--encoding", "latin-1", "--labels", "völlig=Partial"]
    read = CsvFile(fill(review(table, *options[:4]), {1: "völlig"}))
    saved = tmp_path / "saved.csv"
    with saved.open("w", encoding=encoding, newline="") as file:
        writer = csv.DictWriter(file, read.columns, delimiter=delimiter)
        writer.writeheader()
        writer.writerows(row for _, row in read.rows() if isinstance(row, dict))
    columns = [word for word in OPTIONS if word != "--labels" and "richtig" not in word]
    out = tmp_path / "merged.csv"
    labels_of_both = "völlig=Partial," + OPTIONS[OPTIONS.index("--labels") + 1]
    options[-1] = labels_of_both
    succeed("review", "--merge", saved, "--in", table, "--out", out, *options, *columns)
    assert [row["Urteil"] for _, row in read_rows(out)] == ["völlig", "falsch", "falsch", "richtig"]


def test_a_spreadsheet_may_save_a_table_in_utf_8_as_cp1252(tmp_path: Path) -> None:
    rows = [{**row, "Modell": "größer €"} for row in ROWS]
    table = write(tmp_path / "antworten.csv", rows)
    done = fill(review(table), {1: "teils"})
    done.write_bytes(done.read_text(encoding="utf-8-sig").encode("cp1252"))
    result, out = merge(table, done)
    assert result.exit_code == 0, result.stderr
    assert [row["Modell"] for _, row in read_rows(out)] == ["größer €"] * len(rows)
    assert labels(out)[0] == "Partial"


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_the_encoding_of_a_table_reads_the_corrected_one_too(suffix: str, tmp_path: Path) -> None:
    row = {"question": "Größe?", "references": ["ä"], "response": "ä", "label": "Wrong"}
    table, out = tmp_path / f"rows{suffix}", tmp_path / f"out{suffix}"
    table.write_text(json.dumps([row] if suffix == ".json" else row, ensure_ascii=False), "cp1252")
    done = write_lines(tmp_path / "done.jsonl", [row | {"label": "Correct"}])
    succeed("review", "--merge", done, "--in", table, "--out", out, "--encoding", "cp1252")
    [(_, read)] = read_table(out, LabelledExample, TableMapping(encoding="cp1252"))
    assert (read.question, read.label) == ("Größe?", "Correct")


def test_people_may_call_an_answer_of_a_table_of_alternatives_partly_right(tmp_path: Path) -> None:
    table = write(tmp_path / "antworten.csv", ROWS)
    options = [word if word != "all" else "any" for word in OPTIONS]
    out = tmp_path / "merged.csv"
    done = write(tmp_path / "done.csv", [{**ROWS[0], "Urteil": "teils"}])
    keyed = fill(review(table), {2: "teils"}, "keyed.csv")
    files = ("--merge", done, "--merge", keyed)
    succeed("review", *files, "--in", table, "--out", out, *options)
    mapping = MAPPING.model_copy(update={"reference_mode": "any"})
    read = read_table(out, LabelledExample, mapping)
    found = [(row.label, row.reference_mode) for _, row in read]
    graded = [(label, "any-partial") for label in ("Partial", "Partial", "Wrong", "Correct")]
    assert found == graded


@pytest.mark.parametrize(
    "words",
    [
        {"gut": "Correct", "schlecht": "Wrong", "sonst": "Other"},
        {"Correct": "Wrong", "Wrong": "Correct"},
        {"Partial": "Wrong", "Other": "Overthinking"},
        {"schlecht; sonst": "Wrong; Other", "schlecht": "Partial"},
        {},
    ],
    ids=str,
)
def test_every_label_is_read_from_the_words_in_which_it_is_shown(words: dict[str, str]) -> None:
    task = get_task("hieval-ea")
    row = LabelledExample(
        task=task.name, question="Q?", references=("x",), responses=("y",), label="Correct"
    )
    for label in task.labels(task.rubric(row)):
        shown = row.model_copy(update={"label": in_own_words(label, words)})
        assert full_label(with_our_labels(shown, words, "row 1", {})) == label


def test_different_corrections_are_refused_and_equal_ones_named(tmp_path: Path) -> None:
    table = write(tmp_path / "antworten.csv", ROWS)
    file = review(table)
    first = fill(file, {1: "teils", 2: "falsch"}, "anna.csv", corrected_by="anna")
    second = fill(file, {2: "falsch"}, "ben.csv", corrected_by="ben")
    result, out = merge(table, first, second)
    assert "row 2 has the same label several times" in result.stdout
    assert [row.get("corrected_by") for _, row in read_rows(out)][1] == "anna, ben"
    third = fill(file, {1: "falsch"}, "carla.csv")
    result, out = merge(table, first, third, name="other")
    assert result.exit_code == 2 and not out.exists()
    assert all(text in result.stderr for text in ("row 1 (", "anna.csv", "carla.csv", "teils"))
    result, out = merge(table, fill(file, {1: "vielleicht"}), name="other")
    assert result.exit_code == 2 and "'vielleicht'" in result.stderr and "row 4" in result.stderr


def test_a_row_that_cannot_be_read_is_not_lost(tmp_path: Path) -> None:
    """It has no place in a table that is written again; labels of the others count all the same."""
    table = write(tmp_path / "antworten.csv", ROWS[:2])
    table.write_text(table.read_text(encoding="utf-8") + 'a;"b"c;d;e\nWas?;x;y;falsch\n')
    done = fill(review(table, "--rows", "4"), {1: "teils", 4: "falsch"})
    result, out = merge(table, done)
    assert result.exit_code == 2 and f"{table} row 3" in result.stderr and not out.exists()
    estimate = ("--in", str(table), "--estimate", str(done), *OPTIONS)
    result = custos("review", tmp_path / "verdicts.jsonl", *estimate)
    assert "2 of 4 rows" in result.stdout, result.stderr


def test_equal_rows_that_keep_another_label_are_named(tmp_path: Path) -> None:
    table = write(tmp_path / "antworten.csv", [*ROWS[:3], ROWS[0]])
    result, _ = merge(table, fill(review(table), {1: "falsch"}))
    assert "1 equal rows have different labels (row 1: Wrong; row 4: Correct)" in result.stdout


def test_the_error_type_of_the_label_before_goes_with_it(tmp_path: Path) -> None:
    rows = [{"question": f"{n}?", "references": ["x"], "response": "y"} for n in range(4)]
    rows = [row | {"label": "Wrong; Other", "critique": "So."} for row in rows]
    table = tmp_path / "rows.jsonl"
    table.write_text("".join(json.dumps(row | {"task": "hieval-ea"}) + "\n" for row in rows))
    done = tmp_path / "done.jsonl"
    done.write_text(
        json.dumps(rows[0] | {"task": "hieval-ea", "label": "Correct", "critique": None}) + "\n"
        + json.dumps(rows[1] | {"task": "hieval-ea", "critique": None}) + "\n"
    )  # fmt: skip
    succeed("review", "--merge", done, "--in", table, "--out", tmp_path / "out.jsonl")
    read = [row for _, row in read_table(tmp_path / "out.jsonl", LabelledExample)]
    assert [(row.label, row.critique) for row in read[:2]] == [
        ("Correct", None),
        ("Wrong; Other", "So."),
    ]
    assert read[0].metadata["label_before"] == "Wrong; Other", "our fields alone are keys"


def test_a_column_may_be_spelt_in_another_form_of_unicode(tmp_path: Path) -> None:
    table = write(tmp_path / "antworten.csv", ROWS)
    table.write_text(normalize("NFD", table.read_text(encoding="utf-8")), encoding="utf-8")
    file = review(table)
    shown = [row for _, row in CsvFile(file).rows() if isinstance(row, dict)]
    assert all(row.get("Lösung") for row in shown)
    result, out = merge(table, fill(file, {1: "falsch"}))
    assert result.exit_code == 0, result.stderr
    assert CsvFile(out).columns.count("Lösung") == 1 and labels(out)[0] == "Wrong"


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_labels_in_nested_cells_are_corrected_with_what_was_said_of_them(
    suffix: str, tmp_path: Path
) -> None:
    rows = [
        {"meta": {"id": f"x{n}"}, "question": f"{n}?", "references": ["x"], "response": "y"}
        | {"task": "hieval-ea", "human": {"label": "Wrong", "type": "Other"}}
        for n in range(2)
    ]
    parts = {"id": "meta.id", "label": "human.label", "error_type": "human.type"}
    options = [word for ours, part in parts.items() for word in ("--map", f"{ours}={part}")]
    table, out = tmp_path / f"rows{suffix}", tmp_path / f"out{suffix}"
    done = write_lines(tmp_path / "done.jsonl", [rows[0] | {"human": {"label": "Correct"}}])
    if suffix == ".jsonl":
        write_lines(table, rows)
    else:
        pq.write_table(pa.Table.from_pylist(rows), table)
    succeed("review", "--merge", done, "--in", table, "--out", out, *options)
    read = [row for _, row in read_table(out, LabelledExample, TableMapping(columns=parts))]
    assert [row.label for row in read] == ["Correct", "Wrong; Other"]
    assert read[0].metadata["label_before"] == "Wrong"


def test_a_table_is_read_also_without_its_last_error_type(tmp_path: Path) -> None:
    row = {"question": "?", "references": ["x"], "response": "y", "task": "hieval-ea"}
    table = write_lines(tmp_path / "rows.jsonl", [row | {"label": "Wrong", "kind": "Other"}])
    done = write_lines(tmp_path / "done.jsonl", [row | {"label": "Correct"}])
    words = ("--merge", done, "--in", table, "--out", tmp_path / "out.jsonl")
    succeed("review", *words, "--map", "error_type=kind")


def test_a_column_of_labels_may_be_called_as_another_field(tmp_path: Path) -> None:
    row = {"question": "?", "references": "x", "response": "y", "score": "Wrong"}
    table = write_csv(tmp_path / "rows.csv", [row])
    done = write_lines(tmp_path / "done.jsonl", [row | {"score": "Correct"}])
    words = ("--merge", done, "--in", table, "--out", tmp_path / "out.csv")
    succeed("review", *words, "--map", "label=score")
    [(_, corrected)] = read_rows(tmp_path / "out.csv")
    assert corrected["score"] == "Correct"


def test_probabilities_of_one_draw_stay_and_those_of_another_are_emptied(tmp_path: Path) -> None:
    table = write(tmp_path / "antworten.csv", ROWS)
    file = review(table, "--rows", "3")
    drawn = chances(file)
    numbers = list(drawn)
    first, out = merge(table, fill(file, {numbers[0]: "teils"}), name="one")
    second, both = merge(out, fill(file, {numbers[1]: "teils"}), name="two")
    assert "earlier draw" not in first.stdout + second.stdout
    assert chances(both) == {number: drawn[number] for number in sorted(numbers[:2])}
    other = review(both, "--rows", "2", "--seed", "1")
    number = next(iter(chances(other)))
    result, third = merge(both, fill(other, {number: "teils"}), name="three")
    assert "sampling probabilities of an earlier draw are emptied" in result.stdout
    assert list(chances(third)) == [number]


def test_probabilities_with_a_decimal_comma_are_read(tmp_path: Path) -> None:
    """A spreadsheet of many countries saves them so."""
    table = write(tmp_path / "antworten.csv", ROWS)
    file = review(table, "--rows", "3")
    drawn = chances(file)
    done = fill(file, dict.fromkeys(drawn, "teils"))
    _, out = merge(table, done)
    out.write_text(out.read_text(encoding="utf-8").replace(";0.", ";0,"), encoding="utf-8")
    read = read_table(out, LabelledExample, MAPPING)
    assert {n: row.sampling_probability for n, row in read if n in drawn} == drawn
    result, _ = merge(out, done, name="again")
    assert result.exit_code == 0 and "earlier draw" not in result.stdout, result.stderr


def test_labels_of_several_people_stay_beside_what_was_decided(tmp_path: Path) -> None:
    """A row that nobody has decided yet must not count as labelled by what people said before."""
    rows = [{"question": f"{n}?", "references": "x", "response": "y", "anna": "Correct",
             "ben": "Wrong", "p": "0.5"} for n in range(4)]  # fmt: skip
    table = tmp_path / "rows.csv"
    write_spreadsheet(table, list(rows[0]), [list(row.values()) for row in rows], ";")
    options = ["--annotators", "anna,ben", "--map", "sampling_probability=p"]
    verdicts, file = tmp_path / "v.jsonl", tmp_path / "review.csv"
    lines = [{"id": str(n), "row": n, "status": "scored", "label": "Wrong"} for n in range(1, 5)]
    verdicts.write_text("".join(json.dumps(line) + "\n" for line in lines))
    succeed("review", verdicts, "--in", table, "--out", file, "--rows", "2", *options)
    names = CsvFile(file).columns
    assert names.count("p") == 1 and "sampling_probability" not in names
    shown = [row for _, row in CsvFile(file).rows() if isinstance(row, dict)]
    assert [(row.get("anna"), row["own_anna"]) for row in shown] == [(None, "Correct")] * 2
    assert (
        "no row has a label"
        in custos("review", verdicts, "--in", table, "--estimate", file, *options).stderr
    )
    shown[0]["label"] = "Wrong"
    write_spreadsheet(file, names, [[row.get(name) for name in names] for row in shown], ";")
    out = tmp_path / "out.csv"
    succeed("review", "--merge", file, "--in", table, "--out", out, *options)
    mapping = TableMapping.model_validate({"annotators": ["anna", "ben"]})
    after = [row for _, row in read_table(out, LabelledExample, mapping)]
    assert sorted(row.label for row in after) == ["Correct", "Correct", "Correct", "Wrong"]
    assert {len(row.annotator_labels) for row in after} == {2}


def test_what_most_people_said_is_the_label_before(tmp_path: Path) -> None:
    names = ("anna", "ben", "carla")
    given = ("Correct Correct Wrong", "Correct Wrong Wrong", "Wrong Wrong Wrong")
    asked = {"references": "x", "response": "y"}
    rows = [
        {"question": f"{n}?", **asked, **dict(zip(names, said.split(), strict=True))}
        for n, said in enumerate(given)
    ]
    table = write_csv(tmp_path / "rows.csv", rows)
    decided = zip(rows, ("Correct", "Correct", "Wrong"), strict=True)
    done = write_csv(tmp_path / "done.csv", [{**row, "label": label} for row, label in decided])
    out = tmp_path / "out.csv"
    options = ("--in", table, "--out", out, "--annotators", ",".join(names))
    told = succeed("review", "--merge", done, *options).stdout
    assert "3 of 3 rows have a label of the corrections, 1 of them another one than before" in told
    written = [row for _, row in CsvFile(out).rows() if isinstance(row, dict)]
    assert [row["label"] for row in written] == ["Correct", "Correct", "Wrong"]
