"""A user's table becomes records, whatever kind of file it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_prep.tables.examples import read_examples
from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import BadRow, parse_table, read_table
from judging.errors import CustosError
from judging.types import JudgeRequest, LabelledExample
from tests.data_prep.tables.made_up import KINDS, LABELS, MAP, SHEET, save, save_table

MAPPING = TableMapping(columns=MAP, labels=LABELS)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
FILLED = TEXT.filter(lambda text: bool(text.strip()))
ELEMENT = FILLED.map(str.strip).filter(lambda text: "|" not in text and text[0] != "[")
ROW = st.fixed_dictionaries(
    {
        "Frage": FILLED,
        "gold": st.lists(ELEMENT, min_size=1, max_size=3).map(" | ".join),
        "model_answer": TEXT,
        "human_label": st.sampled_from(["right", "Wrong", " partly", "RIGHT"]),
        "model": TEXT,
    }
)


def examples(path: Path, **mapping: Any) -> list[LabelledExample]:
    return [example for _, example in read_examples(path, TableMapping(**mapping))]


def test_the_sheet_of_a_new_user(tmp_path: Path) -> None:
    path = save(tmp_path / "labels.csv", SHEET)
    first, second, third = [example for _, example in read_examples(path, MAPPING)]
    assert first == LabelledExample(
        question="Who wrote Emma?",
        references=("Jane Austen",),
        responses=("It is by Jane Austen.",),
        label="Correct",
        metadata={"model": "m1"},
    )
    assert (second.references, second.label) == (("2", "3"), "Partial")
    assert third.references == ("carbon dioxide", "CO2")


@given(rows=st.lists(ROW, min_size=1, max_size=4))
def test_every_kind_of_file_gives_the_same_records(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("kinds")
    mapping = TableMapping(
        columns={**MAP, "question": "Frage", "metadata.answerer": "model"},
        labels=LABELS,
        separator="|",
    )
    by_kind = [
        list(
            read_table(
                save_table(folder / f"a.{kind}", rows, list(rows[0])), LabelledExample, mapping
            )
        )
        for kind in KINDS
    ]
    assert all(records == by_kind[0] for records in by_kind)
    assert [number for number, _ in by_kind[0]] == list(range(1, len(rows) + 1))
    for (_, example), row in zip(by_kind[0], rows, strict=True):
        assert example.references == tuple(part.strip() for part in row["gold"].split("|"))
        assert example.question == row["Frage"]
        assert example.response == (row["model_answer"] if row["model_answer"].strip() else "")
        filled = bool(row["model"].strip())
        assert example.metadata == ({"answerer": row["model"]} if filled else {})


def test_an_empty_response_is_a_response(tmp_path: Path) -> None:
    path = save(tmp_path / "a.csv", "question,references,response_a,response_b\n?,x,,b\n")
    [(_, request)] = read_table(path, JudgeRequest)
    assert request.responses == ("", "b")
    path = save(tmp_path / "b.jsonl", '{"q": "?", "references": ["x"], "answer": null}')
    mapping = TableMapping(columns={"question": "q", "response": "answer"})
    [(_, request)] = read_table(path, JudgeRequest, mapping)
    assert request.response == ""


@pytest.mark.parametrize(
    ("cell", "separator", "references"),
    [
        ("a; b;", None, ("a", "b")),
        ("a|b;c", "|", ("a", "b;c")),
        ('["a; b", "c"]', None, ("a; b", "c")),
        ("[1, 2]", None, ("[1, 2]",)),
        ("[0.8, 1.2]; 1", None, ("[0.8, 1.2]", "1")),
        # As pandas writes a column of lists, and of arrays.
        ("""['a; b', "it's", 'c"d', 'e\\nf']""", None, ("a; b", "it's", 'c"d', "e\nf")),
        ("['a' 'b c'\n 'd']", None, ("a", "b c", "d")),
        ("['a', None, nan, '']", None, ("a",)),
        ('["a", null]', None, ("a",)),
        ("[None]", None, ("[None]",)),
        ("['a', 1]", None, ("['a', 1]",)),
        (r"['\d']", None, (r"['\d']",)),
        (r"['\x']", None, (r"['\x']",)),
    ],
)
def test_lists_in_a_cell(
    tmp_path: Path, cell: str, separator: str | None, references: tuple[str, ...]
) -> None:
    row = {"question": "?", "references": cell, "response": "x", "label": "Wrong"}
    path = save_table(tmp_path / "a.csv", [row], list(row))
    assert examples(path, separator=separator)[0].references == references


def test_texts_of_json_files_are_one_element_without_a_separator(tmp_path: Path) -> None:
    row = {"question": "?", "references": "a;b", "response": "x", "label": "Wrong"}
    path = save_table(tmp_path / "a.jsonl", [row], list(row))
    assert examples(path)[0].references == ("a;b",)
    assert examples(path, separator=";")[0].references == ("a", "b")


@pytest.mark.parametrize("mapped", [{}, {"group": "question"}])
def test_numbers_in_json_rows_are_texts(tmp_path: Path, mapped: dict[str, str]) -> None:
    row = {"id": 7, "question": "?", "references": 4, "response": 4.5, "label": 1}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")
    [example] = examples(path, columns=mapped, labels={"1": "Wrong"})
    assert (example.id, example.references, example.response) == ("7", ("4",), "4.5")
    assert example.label == "Wrong"
    path.write_text(json.dumps({**row, "label": True}), encoding="utf-8")
    with pytest.raises(CustosError, match=r"'true' \(1 row, .*\) is not among them"):
        examples(path, columns=mapped)


def test_numbers_and_truth_values_are_texts(tmp_path: Path) -> None:
    row = {"question": "When?", "gold": [1989, None], "model_answer": 1991.5, "human_label": False}
    path = save(tmp_path / "a.json", json.dumps([row]))
    [example] = examples(path, columns=MAP, labels={"false": "Wrong"})
    assert (example.references, example.response, example.label) == (("1989",), "1991.5", "Wrong")


def test_one_column_may_fill_two_fields(tmp_path: Path) -> None:
    path = save(tmp_path / "a.csv", SHEET)
    [first, *_] = examples(
        path, columns={**MAP, "group": "question", "metadata.model": "model"}, labels=LABELS
    )
    assert (first.group, first.question) == ("Who wrote Emma?", "Who wrote Emma?")
    assert first.metadata == {"model": "m1"}


def test_an_error_type_completes_the_label(tmp_path: Path) -> None:
    text = "question,references,response,label,why\n?,x,y,wrong,overthinking\n?,x,x,Correct,\n"
    path = save(tmp_path / "a.csv", text)
    wrong, right = examples(path, columns={"error_type": "why"}, task="hieval-ea")
    assert (wrong.label, wrong.error_type) == ("Wrong; Overthinking", "Overthinking")
    assert (right.label, right.error_type) == ("Correct", None)


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
    text = f"question,references,response,label,why\n?,x,y,{label},{error_type}\n"
    path = save(tmp_path / "a.csv", text)
    mapping = TableMapping(
        columns={"error_type": "why"}, labels={"logic": "Reasoning Error"}, task="hieval-ea"
    )
    if agrees:
        [(_, row)] = read_table(path, LabelledExample, mapping)
        assert (row.label, row.error_type) == (label, label.partition("; ")[2] or None)
        return
    with pytest.raises(CustosError) as error:
        list(read_table(path, LabelledExample, mapping))
    assert str(error.value) == (
        f"{path} row 1 below the header: field 'error_type': column 'why': '{error_type}' "
        f"contradicts the label '{label}'"
    )


def test_an_error_type_is_no_contradiction_where_a_task_names_none(tmp_path: Path) -> None:
    text = "question,references,response,label,error_type\n?,x,y,Wrong,Other\n"
    [row] = examples(save(tmp_path / "a.csv", text), task="hieval-qs")
    assert (row.label, row.error_type) == ("Wrong", None)


def test_an_error_type_does_not_complete_the_label_of_a_second_person(tmp_path: Path) -> None:
    text = "question,references,response,label,second_label,error_type\n?,x,y,Wrong,{},Other\n"
    path = save(tmp_path / "a.csv", text.format("Wrong; Overthinking"))
    [row] = examples(path, task="hieval-ea")
    assert (row.label, row.second_label) == ("Wrong; Other", "Wrong; Overthinking")
    path = save(tmp_path / "b.csv", text.format("Wrong"))
    with pytest.raises(CustosError, match="the labels are Correct, .* 'Wrong' .* is not among"):
        examples(path, task="hieval-ea")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {},
            "no column for references, response, label; the columns are question, gold, "
            "model_answer, human_label, model; say which ones hold them: --map references=gold "
            "--map response=model_answer --map label=human_label",
        ),
        ({**MAP, "references": "golden"}, "'golden' for 'references'; the nearest is 'gold'"),
        ({**MAP, "references": "Gold"}, "no column 'Gold' for 'references'; the nearest is 'gold'"),
    ],
)
def test_columns_that_are_missing(tmp_path: Path, columns: dict[str, str], message: str) -> None:
    path = save(tmp_path / "labels.csv", SHEET)
    with pytest.raises(CustosError) as error:
        examples(path, columns=columns)
    assert message in str(error.value)


def test_missing_columns_and_nearly_named_ones_are_one_error(tmp_path: Path) -> None:
    path = save(tmp_path / "a.csv", "ID,Prompt,gold,answer,label\n1,?,x,y,Correct\n")
    with pytest.raises(CustosError) as error:
        examples(path)
    options = str(error.value).partition("say which ones hold them: ")[2]
    assert (
        options == "--map question=Prompt --map references=gold --map response=answer --map id=ID"
    )


def test_a_column_that_is_nearly_ours(tmp_path: Path) -> None:
    path = save(
        tmp_path / "a.csv", "question,references,response,Images,question_id\n?,x,y,a.png,7\n"
    )
    with pytest.raises(CustosError, match="'Images' is nearly our field 'images'.*--map images=Im"):
        list(read_table(path, JudgeRequest))
    mapping = TableMapping(columns={"metadata.Images": "Images"})
    [(_, request)] = read_table(path, JudgeRequest, mapping)
    assert request.metadata == {"question_id": "7", "Images": "a.png"}


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
    with pytest.raises(CustosError, match="'Partial' is a label with --reference-mode all only"):
        examples(path, columns=MAP, labels={"right": "Correct"}, reference_mode="any")


def test_rows_can_be_left_out(tmp_path: Path) -> None:
    path = save(tmp_path / "a.csv", SHEET + "Where?,,x,wrong,m1\n")
    bad_rows: dict[int, BadRow] = {}
    rows = read_examples(path, MAPPING, bad_rows, allow_dropped=True)
    assert [number for number, _ in rows] == [1, 2, 3]
    assert bad_rows[4].label == "wrong"
    assert "row 4 below the header: field 'references': column 'gold'" in str(bad_rows[4].error)
    with pytest.raises(CustosError, match=r"1 of 4 rows .* the first is row 4.*wrong \(1\).*allow"):
        read_examples(path, MAPPING)


def test_a_task_that_the_row_contradicts(tmp_path: Path) -> None:
    row = {"question": "?", "references": ["x"], "response": "y", "task": "hieval-ea"}
    path = save(tmp_path / "a.jsonl", json.dumps(row))
    with pytest.raises(CustosError, match=r"row 1: field 'task': the row has 'hieval-ea', --task"):
        list(read_table(path, JudgeRequest, TableMapping(task="hieval-qs")))


def test_a_row_of_another_task_with_the_same_labels(tmp_path: Path) -> None:
    """A row for judges that write a critique suits judges that write none."""
    row = {"question": "?", "responses": ["x", "y"], "label": "A", "task": "truthful-pair"}
    path = save(tmp_path / "a.jsonl", json.dumps(row | {"critique": "x is.", "mode": "critique"}))
    [example] = examples(path, task="truthful-pure-label")
    assert (example.task, example.mode) == ("truthful-pure-label", "score")
    [(_, request)] = read_table(path, JudgeRequest, TableMapping(task="truthful-pure-label"))
    assert (type(request), request.task) == (JudgeRequest, "truthful-pure-label")
    with pytest.raises(CustosError, match="field 'mode': .* writes no critiques"):
        examples(path, task="truthful-pure-label", mode="critique")
    with pytest.raises(CustosError, match="'truthful-pair', --task is 'truthful-reward'"):
        examples(path, task="truthful-reward")


def test_jsonl_stays_strict_without_mapped_columns(tmp_path: Path) -> None:
    row = {"question": "?", "gold": ["x"], "model_answer": "y", "note": "z"}
    path = save(tmp_path / "a.jsonl", json.dumps(row))
    with pytest.raises(CustosError, match="row 1: field 'gold': not one of our fields; with --map"):
        list(read_table(path, JudgeRequest))
    mapping = TableMapping(columns={"references": "gold", "response": "model_answer"})
    [(_, request)] = read_table(path, JudgeRequest, mapping)
    assert request.metadata == {"note": "z"}


def test_labels_are_not_needed_for_requests(tmp_path: Path) -> None:
    path = save(tmp_path / "a.csv", SHEET)
    requests = [request for _, request in read_table(path, JudgeRequest, MAPPING)]
    assert type(requests[0]) is JudgeRequest
    assert requests[0].metadata == {"model": "m1"}
    labelled = {"question": "?", "references": ["x"], "response": "y", "label": "right", "tags": []}
    path = save(tmp_path / "a.jsonl", json.dumps(labelled))
    [(_, request)] = read_table(path, JudgeRequest)
    assert type(request) is JudgeRequest


def test_half_of_a_pair_is_refused_from_the_header(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("question,first,answer_2,winner\n?,x,y,A\n", encoding="utf-8")
    for name, column, other, suggested in (
        ("response_a", "first", "response_b", "answer_2"),
        ("response_b", "answer_2", "response_a", "COLUMN"),
    ):
        columns = {name: column, "label": "winner"}
        mapping = TableMapping(columns=columns, task="truthful-pair")
        wanted = (
            f"no column for {other}; the columns are question, first, answer_2, winner; say which "
            f"ones hold them: --map {other}={suggested}"
        )
        with pytest.raises(CustosError, match=re.escape(wanted)):
            next(parse_table(path, LabelledExample, mapping))


def test_one_response_of_a_pair_may_keep_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("question,first,response_b\n?,x,y\n", encoding="utf-8")
    mapping = TableMapping(columns={"response_a": "first"}, task="truthful-pair")
    ((_, row),) = read_table(path, JudgeRequest, mapping)
    assert row.responses == ("x", "y")


def test_an_empty_cell_of_a_mapped_column_is_named(tmp_path: Path) -> None:
    table = "prompt,gold,said\n,Paris,Paris\nWhere?,,Paris\n"
    columns = {"question": "prompt", "references": "gold", "response": "said"}
    bad: dict[int, BadRow] = {}
    path = save(tmp_path / "rows.csv", table)
    rows = list(read_table(path, JudgeRequest, TableMapping(columns=columns), bad))
    assert [number for number, _ in rows] == [2], "references are the task's to ask for"
    assert str(bad[1].error).endswith(": field 'question': column 'prompt' is empty")
    labelled = save(tmp_path / "labelled.csv", table.replace("\n", ",label\n", 1))
    labelled.write_text(labelled.read_text().replace(",Paris\n", ",Paris,Correct\n"))
    bad.clear()
    assert not list(read_table(labelled, LabelledExample, TableMapping(columns=columns), bad))
    assert str(bad[2].error).endswith(
        ": field 'references': column 'gold' is empty; task 'hieval-qs' needs it"
    )


def test_a_misspelt_label_of_the_mapping_is_named(tmp_path: Path) -> None:
    path = save(tmp_path / "sheet.csv", SHEET)
    labels = {**LABELS, "partly": "Partialy"}
    with pytest.raises(CustosError, match=r"'partly' mapped to 'Partialy' \(1 row, the f.*is not"):
        read_examples(path, TableMapping(columns=MAP, labels=labels))
