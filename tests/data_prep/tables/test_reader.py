"""A user's table becomes records, whatever kind of file it is; labels of several people."""

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.tables.examples import read_examples, show_row
from data_prep.tables.labels import UnknownLabel
from data_prep.tables.mapping import (
    TABLE_FIELDS,
    TableMapping,
    read_mapping,
    suggest_columns,
    write_mapping,
)
from data_prep.tables.reader import BadRow, parse_table, read_table
from judging.errors import CustosError, FieldError
from judging.files.csv_rows import write_spreadsheet
from judging.types import JudgeRequest, LabelledExample
from tests.data_prep.tables.made_up import (
    HEAD,
    KINDS,
    LABELS,
    MAP,
    ROW,
    SHEET,
    examples,
    lines,
    requests,
    save,
    save_table,
)

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
FILLED = TEXT.filter(lambda text: bool(text.strip()))
ELEMENT = FILLED.map(str.strip).filter(lambda text: "|" not in text and text[0] != "[")
SHEET_ROW = st.fixed_dictionaries(
    {
        "Frage": FILLED,
        "gold": st.lists(ELEMENT, min_size=1, max_size=3).map(" | ".join),
        "model_answer": TEXT,
        "human_label": st.sampled_from(["right", "Wrong", " partly", "RIGHT"]),
        "model": TEXT,
    }
)


def test_the_sheet_of_a_new_user(tmp_path: Path) -> None:
    path = save(tmp_path / "labels.csv", SHEET)
    first, second, third = examples(path, columns=MAP, labels=LABELS)
    assert first == LabelledExample(
        question="Who wrote Emma?",
        references=("Jane Austen",),
        responses=("It is by Jane Austen.",),
        label="Correct",
        metadata={"model": "m1"},
    )
    assert (second.references, second.label) == (("2", "3"), "Partial")
    assert third.references == ("carbon dioxide", "CO2")
    # One column may fill two fields.
    columns = {**MAP, "group": "question", "metadata.model": "model"}
    [first, *_] = examples(path, columns=columns, labels=LABELS)
    assert first.group == first.question == "Who wrote Emma?"
    assert first.metadata == {"model": "m1"}


@settings(max_examples=30)
@given(rows=st.lists(SHEET_ROW, min_size=1, max_size=4))
def test_every_kind_of_file_gives_the_same_records(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("kinds")
    mapping = TableMapping(
        columns={**MAP, "question": "Frage", "metadata.answerer": "model"},
        labels=LABELS,
        separator="|",
    )
    paths = [save_table(folder / f"a.{kind}", rows, list(rows[0])) for kind in KINDS]
    first, *others = [list(read_table(path, LabelledExample, mapping)) for path in paths]
    assert all(records == first for records in others)
    assert [number for number, _ in first] == list(range(1, len(rows) + 1))
    for (_, example), row in zip(first, rows, strict=True):
        assert example.references == tuple(part.strip() for part in row["gold"].split("|"))
        assert example.question == row["Frage"]
        assert example.response == (row["model_answer"] if row["model_answer"].strip() else "")
        filled = bool(row["model"].strip())
        assert example.metadata == ({"answerer": row["model"]} if filled else {})


def test_an_empty_response_is_one_of_the_rows_own_task(tmp_path: Path) -> None:
    [request] = requests(
        save(tmp_path / "a.csv", "question,references,response_a,response_b\n?,x,,b\n")
    )
    assert request.responses == ("", "b")
    path = lines(tmp_path / "b.jsonl", {"q": "?", "references": ["x"], "answer": None})
    [request] = requests(path, columns={"question": "q", "response": "answer"})
    assert request.response == ""
    path = lines(
        tmp_path / "c.jsonl",
        {"question": "?", "references": ["r"], "response": None, "response_a": None},
        {"task": "truthful-pair", "question": "?", "response_a": "x", "response_b": None},
        {"task": "truthful-pair", "question": "?", "responses": ["x", float("nan")]},
    )
    assert [request.responses for request in requests(path)] == [("",), ("x", ""), ("x", "")]
    with pytest.raises(CustosError):  # a file without responses is none of empty ones
        requests(lines(tmp_path / "d.jsonl", {"question": "?", "references": ["r"]}))


def test_an_error_type_completes_the_label_and_no_second_persons(tmp_path: Path) -> None:
    path = save(tmp_path / "a.csv", f"{HEAD},label,why\n?,x,y,wrong,overthinking\n?,x,x,Correct,\n")
    wrong, right = examples(path, columns={"error_type": "why"}, task="hieval-ea")
    assert (wrong.label, wrong.error_type) == ("Wrong; Overthinking", "Overthinking")
    assert (right.label, right.error_type) == ("Correct", None)
    text = f"{HEAD},label,second_label,error_type\n?,x,y,Wrong,{{}},Other\n"
    [row] = examples(save(tmp_path / "b.csv", text.format("Wrong; Overthinking")), task="hieval-ea")
    assert (row.label, row.second_label) == ("Wrong; Other", "Wrong; Overthinking")
    with pytest.raises(CustosError, match="'Wrong' .* is not among"):
        examples(save(tmp_path / "c.csv", text.format("Wrong")), task="hieval-ea")
    # Where a task names no types, one is no contradiction.
    text = f"{HEAD},label,error_type\n?,x,y,Wrong,Other\n"
    [row] = examples(save(tmp_path / "d.csv", text), task="hieval-qs")
    assert (row.label, row.error_type) == ("Wrong", None)


@pytest.mark.parametrize(
    ("label", "error_type", "agrees"),
    [
        ("Wrong; Reasoning Error", "reasoning  error", True),
        ("Wrong; Reasoning Error", "logic", True),  # translated
        ("Wrong; Reasoning Error", "Other", False),
        ("Wrong; Reasoning Error", "none", False),
        ("Correct", "none", True),
        ("Correct", "Other", False),
    ],
)
def test_an_error_type_that_contradicts_the_label(
    tmp_path: Path, label: str, error_type: str, agrees: bool
) -> None:
    path = save(tmp_path / "a.csv", f"{HEAD},label,why\n?,x,y,{label},{error_type}\n")
    mapping = TableMapping(
        columns={"error_type": "why"}, labels={"logic": "Reasoning Error"}, task="hieval-ea"
    )
    [(_, row)] = parse_table(path, LabelledExample, mapping)
    if agrees:
        assert isinstance(row, LabelledExample)
        assert (row.label, row.error_type) == (label, label.partition("; ")[2] or None)
    else:
        assert isinstance(row, BadRow)
        assert isinstance(row.error, FieldError)
        assert row.error.field == "error_type"
        assert f"column 'why': '{error_type}'" in row.error.message


@pytest.mark.parametrize(
    ("header", "columns", "advice"),
    [
        (SHEET, {}, "--map references=gold --map response=model_answer --map label=human_label"),
        (SHEET, {**MAP, "references": "golden"}, "the nearest is 'gold'"),
        (SHEET, {**MAP, "references": "Gold"}, "the nearest is 'gold'"),
        (  # those that are missing and those that would be the next error
            "ID,Prompt,gold,answer,label\n",
            {},
            "--map question=Prompt --map references=gold --map response=answer --map id=ID",
        ),
        (f"{HEAD},label,Images\n", {}, "--map images=Images"),
        (
            "question,first,answer_2,label\n",
            {"task": "truthful-pair", "response_a": "first"},
            "no column for response_b; the columns are question, first, answer_2, label; say which "
            "ones hold them: --map response_b=answer_2",
        ),
        (
            "question,first,answer_2,label\n",
            {"task": "truthful-pair", "response_b": "answer_2"},
            "--map response_a=COLUMN",
        ),
    ],
)
def test_columns_that_do_not_suit(
    tmp_path: Path, header: str, columns: dict[str, str], advice: str
) -> None:
    task = columns.get("task")
    path = save(tmp_path / "labels.csv", header)
    with pytest.raises(CustosError) as error:
        examples(path, columns={k: v for k, v in columns.items() if k != "task"}, task=task)
    assert advice in str(error.value)


def test_columns_of_long_names_are_looked_through_in_time() -> None:
    columns = [letter * 100_000 for letter in "aeinorstu"]
    started = time.process_time()
    assert suggest_columns(TABLE_FIELDS, columns) == {}
    assert time.process_time() - started < 2


def test_labels_that_the_task_does_not_have(tmp_path: Path) -> None:
    path = save(tmp_path / "labels.csv", SHEET)
    with pytest.raises(CustosError) as error:
        examples(path, columns=MAP)
    text = str(error.value)
    assert "2 of 3 rows cannot be used; the labels are Correct, Partial and Wrong; " in text
    assert (
        "; 'right' (1 row, the first is row 1) and 'partly' (1 row, the first is row 2) are not "
        "among them; add --labels right=Correct,partly=Partial" in text
    )
    with pytest.raises(CustosError, match="1 of 3 rows .* add --labels partly=Partial"):
        examples(path, columns=MAP, labels={"right": "Correct"}, reference_mode="any")
    with pytest.raises(CustosError, match="'partly' mapped to 'Partialy'"):
        examples(path, columns=MAP, labels={**LABELS, "partly": "Partialy"})


@pytest.mark.parametrize("kind", KINDS)
def test_alternatives_have_three_levels_where_people_gave_three(tmp_path: Path, kind: str) -> None:
    """Every row of mode any is read so, also those before the first Partial one."""
    words = {"gut": "Correct", "zum Teil": "Partial", "schlecht": "Wrong"}
    rows = [
        {**dict.fromkeys(("question", "response"), text), "references": "a|b", "note": label}
        for text, label in (("one", "gut"), ("two", " Zum Teil"), ("three", "schlecht"))
    ]
    columns = {"label": "note"}
    given: dict[str, Any] = {"columns": columns, "separator": "|", "labels": words}
    given["reference_mode"] = "any"
    path = save_table(tmp_path / f"a.{kind}", rows, list(rows[0]))
    read = examples(path, **given)
    assert [row.reference_mode for row in read] == ["any-partial"] * 3
    assert [row.label for row in read] == ["Correct", "Partial", "Wrong"]
    two = save_table(tmp_path / f"two.{kind}", [rows[0], rows[2]], list(rows[0]))
    # A table that is read without its labels, or has none of that word, is read as the others.
    assert {row.reference_mode for row in examples(two, **given)} == {"any-partial"}
    assert {row.reference_mode for row in requests(path, None, **given)} == {"any-partial"}
    # A word that means Wrong, and rows that are answer sets, ask for no third level.
    for changes in ({"labels": {**words, "zum Teil": "Wrong"}}, {"reference_mode": "all"}):
        mode = changes.get("reference_mode", "any")
        assert {row.reference_mode for row in examples(path, **given | changes)} == {mode}


def test_people_and_error_types_bring_the_third_level(tmp_path: Path) -> None:
    row = {**ROW, "reference_mode": "any", "label": "Wrong"}
    people = {**row, "annotator_labels": {"anna": "Wrong", "ben": "Partial"}}
    read = examples(lines(tmp_path / "a.jsonl", row, people))
    assert [each.reference_mode for each in read] == ["any-partial"] * 2
    sets = {**ROW, "label": "Partial", "reference_mode": "all"}
    first, second = examples(lines(tmp_path / "b.jsonl", row, sets))
    assert (first.reference_mode, second.reference_mode) == ("any", "all")
    typed = {**row, "task": "hieval-ea", "label": "Partial", "error_type": "Other"}
    [read_typed] = examples(lines(tmp_path / "c.jsonl", typed))
    assert (read_typed.reference_mode, read_typed.label) == ("any-partial", "Partial; Other")


def test_previews_number_references_and_say_how_they_are_meant() -> None:
    row = LabelledExample(
        question="q",
        references=("x; y", "z"),
        responses=("x",),
        label="Wrong",
        reference_mode="any",
    )
    shown = show_row(3, row)
    assert "2 references, each is enough: (1) x; y  (2) z" in shown
    assert "(1)" not in show_row(3, row.model_copy(update={"references": ("x; y",)}))


def test_a_row_of_another_task_needs_the_same_labels(tmp_path: Path) -> None:
    """A row for judges that write a critique suits judges that write none."""
    with pytest.raises(FieldError) as error:
        requests(lines(tmp_path / "a.jsonl", {**ROW, "task": "hieval-ea"}), task="hieval-qs")
    assert error.value.field == "task"
    row = {"question": "?", "responses": ["x", "y"], "label": "A", "task": "truthful-pair"}
    path = lines(tmp_path / "b.jsonl", row | {"critique": "x is.", "mode": "critique"})
    [example] = examples(path, task="truthful-pure-label")
    assert (example.task, example.mode) == ("truthful-pure-label", "score")
    [request] = requests(path, task="truthful-pure-label")
    assert (type(request), request.task) == (JudgeRequest, "truthful-pure-label")
    with pytest.raises(CustosError, match="field 'mode'"):
        examples(path, task="truthful-pure-label", mode="critique")
    with pytest.raises(CustosError, match="field 'task'"):
        examples(path, task="truthful-reward")


def test_jsonl_stays_strict_without_mapped_columns(tmp_path: Path) -> None:
    row = {"question": "?", "gold": ["x"], "model_answer": "y", "note": "z"}
    path = lines(tmp_path / "a.jsonl", row)
    with pytest.raises(FieldError) as error:
        requests(path)
    assert error.value.field == "gold"
    [request] = requests(path, columns={"references": "gold", "response": "model_answer"})
    assert request.metadata == {"note": "z"}


@pytest.mark.parametrize("kind", KINDS)
def test_reasoning_is_a_field_or_a_column_of_thoughts(tmp_path: Path, kind: str) -> None:
    """Data sets of reasoning models hold thoughts in a column called ``reasoning``."""
    plain = {"question": "?", "references": "x", "response": "<think>y</think>x"}

    def read(*rows: dict[str, str], **mapping: Any) -> list[Any]:
        path = save_table(
            tmp_path / f"a.{kind}", rows, [*plain, *(["reasoning"] * (rows != (plain,)))]
        )
        parsed = parse_table(path, JudgeRequest, TableMapping(**mapping))
        return [row for _, row in parsed]

    keep, drop = {**plain, "reasoning": "keep"}, {**plain, "reasoning": "drop"}
    found = read(keep, drop)
    assert [each.answers for each in found] == [(plain["response"],), ("x",)]
    assert [each.responses for each in found] == [(plain["response"],)] * 2
    [kept] = read(plain, reasoning="keep")
    assert kept.answers == kept.responses
    assert [isinstance(each, BadRow) for each in read(keep, drop, reasoning="keep")] == [
        *(False, True)
    ]
    [thoughts] = read({**plain, "reasoning": "Is it y? No."}, reasoning="keep")
    assert (thoughts.metadata, thoughts.reasoning) == ({"reasoning": "Is it y? No."}, "keep")
    [nearly] = requests(save(tmp_path / "b.csv", f"{HEAD},Reasoning\n?,x,y,Is it?\n"))
    assert (nearly.metadata, nearly.reasoning) == ({"Reasoning": "Is it?"}, "drop")


PEOPLE = TableMapping.model_validate({"annotators": ["anna", "ben"]})
WORDS = {"right": "Correct", "partly": "Partial", "wrong": "Wrong", "skip": ""}


def test_columns_of_single_people(tmp_path: Path) -> None:
    text = f"{HEAD},anna,ben,carla,note\n?,x,y,right,WRONG,Right,n\n?,x,z,,wrong,skip,\n"
    path = save(tmp_path / "labels.csv", text)
    first, second = examples(path, annotators=["anna", "ben", "carla"], labels=WORDS)
    assert first.annotator_labels == {"anna": "Correct", "ben": "Wrong", "carla": "Correct"}
    assert (first.label, first.metadata) == ("Correct", {"note": "n"})
    assert (second.label, second.annotator_labels) == ("Wrong", {"ben": "Wrong"})


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"anna": "Correct", "ben": "wrong", "carla": None}, {"anna": "Correct", "ben": "Wrong"}),
        (["Wrong", None, "Wrong"], {"person 1": "Wrong", "person 3": "Wrong"}),
        (
            [{"annotator": 7, "label": "Wrong"}, {"annotator": "z", "label": "Correct"}],
            {"7": "Wrong", "z": "Correct"},
        ),
    ],
)
def test_cells_that_hold_several(tmp_path: Path, given: Any, wanted: dict[str, str]) -> None:
    [row] = examples(lines(tmp_path / "rows.jsonl", {**ROW, "annotator_labels": given}))
    assert row.annotator_labels == wanted
    path = lines(tmp_path / "nested.jsonl", {**ROW, "metadata": {"votes": given}})
    [row] = examples(path, columns={"annotator_labels": "metadata.votes"})
    assert row.annotator_labels == wanted
    cell = json.dumps(given).replace('"', '""')
    path = save(tmp_path / "cells.csv", f'{HEAD},annotator_labels\n?,x,y,"{cell}"\n')
    [row] = examples(path)
    assert row.annotator_labels == wanted


@pytest.mark.parametrize(
    "given", [[{"who": "anna"}], 7.5, [{"annotator": "a", "label": "Wrong"}] + [
        {"annotator": "a", "label": "Correct"}], {"anna": ["Wrong"]}],
)  # fmt: skip
def test_cells_that_hold_no_labels_of_people(tmp_path: Path, given: Any) -> None:
    path = lines(tmp_path / "rows.jsonl", {**ROW, "annotator_labels": given})
    with pytest.raises(FieldError) as error:
        list(read_table(path, LabelledExample))
    assert error.value.field.startswith("annotator_labels")


def test_a_column_of_labels_fills_no_field_of_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("question,references,response,score\n?,x,x,right\n")
    mapping = TableMapping(columns={"label": "score"}, labels={"right": "Correct"})
    [(_, row)] = read_examples(tmp_path / "rows.csv", mapping)
    assert (row.label, row.score) == ("Correct", None)


@pytest.mark.parametrize("ours", ["label", "custos_label"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_verdict_beside_a_label_of_people_says_nothing_of_it(
    ours: str, suffix: str, tmp_path: Path
) -> None:
    """Its error type would complete their label."""
    people = "label" if ours == "custos_label" else "human"
    verdict = {"status": "scored", ours: "Wrong", "error_type": "Other", "confidence": "0.9"}
    verdict |= {"critique": "So.", "judge_name": "j", "rubric": "hieval-ea/plain/all"}
    row = {"question": "?", "references": "x", "response": "y", people: "Wrong; Unanswerable"}
    table, columns = tmp_path / f"graded{suffix}", {"label": people}
    if suffix == ".csv":
        write_spreadsheet(table, [*row, *verdict], [[*row.values(), *verdict.values()]])
    else:
        pq.write_table(pa.Table.from_pylist([row | verdict]), table)
    [(_, read)] = read_examples(table, TableMapping(columns=columns, task="hieval-ea"))
    assert (read.label, read.confidence, read.critique) == ("Wrong; Unanswerable", None, None)
    assert read.metadata["error_type"] == "Other"


def test_an_unknown_label_names_the_column(tmp_path: Path) -> None:
    path = save(tmp_path / "rows.csv", f"{HEAD},anna,ben\n?,x,y,Correct,so-so\n")
    with pytest.raises(UnknownLabel) as error:
        list(read_table(path, LabelledExample, PEOPLE))
    assert (error.value.column, error.value.label) == ("ben", "so-so")


def test_rows_of_one_person_each(tmp_path: Path) -> None:
    """Long form, as most tools export it: a row for each label."""
    table = [f"id,{HEAD},who,label,seconds,domain"]
    for id, person, label, seconds in (
        *(("1", "anna", "Correct", 3), ("1", "ben", "Wrong", 4), ("1", "carla", "Wrong", 5)),
        *(("2", "anna", "Wrong", 6), ("3", "ben", "Correct", 7), ("3", "anna", "Correct", 7)),
    ):
        table.append(f"{id},Which {id}?,x,y,{person},{label},{seconds},law")
    path = save(tmp_path / "long.csv", "\n".join(table))
    rows = read_examples(path, TableMapping(columns={"annotators": "who"}))
    assert [number for number, _ in rows] == [1, 4, 5]
    first, second, third = [row for _, row in rows]
    assert first.annotator_labels == {"anna": "Correct", "ben": "Wrong", "carla": "Wrong"}
    assert (first.label, first.annotators) == ("Wrong", ("anna", "ben", "carla"))
    assert first.metadata == {"domain": "law"}, "what people do not share is left out"
    assert (second.annotator_labels, second.metadata["seconds"]) == ({"anna": "Wrong"}, "6")
    assert third.metadata["seconds"] == "7"


def test_rows_that_are_not_of_one_person_stay(tmp_path: Path) -> None:
    rows = [
        {**ROW, "label": "Wrong", "annotators": ["a", "b"]},
        {**ROW, "label": "Wrong", "annotators": ["a", "b"]},
        {**ROW, "label": "Correct", "annotators": ["a"], "metadata": {"answerer": "m1"}},
        {**ROW, "label": "Correct", "annotators": ["b"], "metadata": {"answerer": "m2"}},
    ]
    read = examples(lines(tmp_path / "rows.jsonl", *rows))
    assert len(read) == 4
    assert not any(row.annotator_labels for row in read)


def test_annotators_of_a_mapping_are_columns(tmp_path: Path) -> None:
    path = save(tmp_path / "mapping.yaml", "annotators: [anna, ben]\ncolumns: {response: answer}\n")
    mapping = read_mapping(path)
    assert mapping.columns == {
        **{"annotator_labels.anna": "anna", "annotator_labels.ben": "ben"},
        "response": "answer",
    }
    write_mapping(tmp_path / "again.yaml", mapping)
    assert read_mapping(tmp_path / "again.yaml") == mapping
    for wrong in ("annotators: anna", "annotators: {a: b}", "columns: {annotator_labels.: x}"):
        with pytest.raises(CustosError):
            read_mapping(save(tmp_path / "wrong.yaml", wrong))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_number_may_stand_as_a_text(tmp_path: Path, suffix: str) -> None:
    """With spaces around it, and a probability with a comma, as spreadsheets write them."""
    cells = {"question": "?", "references": "x", "response": "x", "seed": " 3 ", "risk": "0,05"}
    path = save(tmp_path / f"rows{suffix}", json.dumps(cells))
    if suffix == ".csv":
        quoted = (f'"{cell}"' for cell in cells.values())
        save(path, f"{','.join(cells)}\n{','.join(quoted)}\n")
    [row] = requests(path)
    assert (row.seed, row.risk) == (3, 0.05)
