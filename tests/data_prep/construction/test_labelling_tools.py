"""Tasks for Label Studio and Argilla, and exports in their published shapes."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from cli.shared.verdicts import VERDICT_COLUMNS
from data_prep.tables.examples import read_examples
from judging.errors import CustosError
from judging.files.csv_rows import write_spreadsheet
from judging.tasks import TASKS
from judging.types import JudgeRequest, LabelledExample
from tests.cli.prep.made_up import run, write_rows
from tests.tiny import save_picture

ANNA, BEN, CARLA = (f"00000000-0000-0000-0000-00000000000{n}" for n in (1, 2, 3))


def rows(number: int, **fields: Any) -> list[dict[str, Any]]:
    return [
        {
            **{"id": f"gpt-9/{n}", "question": f"What is {n} + {n}?", "references": [str(2 * n)]},
            **{"response": f"<b>{n}</b> & \"{n}\"", "metadata": {"answerer": "gpt-9"}},
            **fields,
        }
        for n in range(number)
    ]  # fmt: skip


def made(folder: Path, tool: str, table: Path, *options: object) -> Path:
    out = folder / tool
    run("construct", "labelling", tool, table, "--out", out, *options)
    return out


def tasks(folder: Path, table: Path, *options: object) -> list[dict[str, Any]]:
    out = made(folder, "label-studio", table, *options)
    read: list[dict[str, Any]] = json.loads((out / "tasks.json").read_text(encoding="utf-8"))
    return read


def choices(**given: str) -> list[dict[str, Any]]:
    return [
        {"from_name": name, "to_name": "response", "type": "choices", "value": {"choices": [one]}}
        for name, one in given.items()
    ]


def annotation(person: Any, minute: int = 0, **fields: Any) -> dict[str, Any]:
    given = {name: fields.pop(name) for name in ("score", "label") if name in fields}
    return {
        **{"completed_by": person, "was_cancelled": False, "ground_truth": False},
        **{"result": choices(**given), "lead_time": 3.1, "prediction": {}},
        **{"updated_at": f"2026-11-27T16:{minute:02}:00Z", **fields},
    }


def exported(
    made_tasks: list[dict[str, Any]], annotations: Mapping[int, list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    return [
        {"id": 100 + n, "data": task["data"], "annotations": annotations.get(n, []), "drafts": [],
         "predictions": [{"result": choices(score="Wrong"), "model_version": "judge"}]}
        for n, task in enumerate(made_tasks)
    ]  # fmt: skip


def brought(
    folder: Path, export: object, table: Path, *options: object, out: str = "labelled.jsonl"
) -> dict[str, LabelledExample]:
    """Bring an export back; the rows by id, as every command reads them."""
    path = folder / "export.json"
    path.write_text(json.dumps(export), encoding="utf-8")
    target = folder / out
    target.unlink(missing_ok=True)
    run("construct", "labelled", path, "--in", table, "--out", target, *options)
    return {row.id: row for _, row in read_examples(target)}


@pytest.mark.parametrize("tool", ["label-studio", "argilla"])
def test_people_see_neither_model_nor_judge(tmp_path: Path, tool: str) -> None:
    table = write_rows(tmp_path / "rows.jsonl", rows(2))
    out = made(tmp_path, tool, table)
    texts = [path.read_text(encoding="utf-8") for path in out.rglob("*") if path.is_file()]
    assert not any("gpt-9" in text or "suggestion_" in text for text in texts)
    assert '"predictions"' not in "".join(texts)


def test_every_task_has_a_configuration_that_its_own_tasks_fill(tmp_path: Path) -> None:
    """Names that an object or a control has are unique, and all that is shown is in the data."""
    for task in TASKS:
        table = write_rows(
            tmp_path / "rows.jsonl",
            [{"id": str(n), **row} for n, row in enumerate(task.rows_by_rubric().values())],
        )
        folder = tmp_path / task.name
        folder.mkdir()
        made_tasks = tasks(folder, table)
        config = ElementTree.parse(folder / "label-studio" / "labels.xml").getroot()
        names = [tag.attrib["name"] for tag in config.iter() if "name" in tag.attrib]
        assert len(names) == len(set(names))
        shown = [tag.attrib["value"][1:] for tag in config.iter("Text")]
        assert all({"item", *shown} == each["data"].keys() for each in made_tasks)
        assert all(tag.attrib["toName"] in shown for tag in config.iter("Choices"))
        labels = {
            label.partition("; ")[0]
            for row in task.rows_by_rubric().values()
            for label in task.labels(task.rubric(JudgeRequest.model_validate(row)))
        }
        offered = {tag.attrib["value"].partition("; ")[0] for tag in config.iter("Choice")}
        assert labels <= offered

        settings = json.loads(
            (made(folder, "argilla", table) / ".argilla" / "settings.json").read_text()
        )
        named = [each["name"] for each in (*settings["fields"], *settings["questions"])]
        assert len(named) == len(set(named))


def test_rules_stand_with_each_item_where_they_differ(tmp_path: Path) -> None:
    table = write_rows(tmp_path / "rows.jsonl", [
        *rows(1, task="charthal", variant="irrelevant"),
        *rows(1, task="charthal", variant="normal-open", id="other"),
    ])  # fmt: skip
    one, two = (each["data"]["what_counts"] for each in tasks(tmp_path, table))
    assert "unrelated" in one and "uncertain" in two


def test_alternatives_are_not_labelled_by_the_rules_for_whole_answers(tmp_path: Path) -> None:
    table = write_rows(tmp_path / "rows.jsonl", rows(2, reference_mode="any"))
    assert {"question", "references", "response"} < tasks(tmp_path, table)[0]["data"].keys()


def test_a_judge_is_shown_if_asked_for(tmp_path: Path) -> None:
    table = write_rows(tmp_path / "rows.jsonl", rows(2, task="hieval-ea"))
    fields = {"judge_name": "mine", "confidence": 0.75}
    verdicts = write_rows(tmp_path / "verdicts.jsonl", [
        {"id": "gpt-9/0", "row": 1, "status": "scored", "label": "Wrong", "error_type": "Other",
         **fields},
        {"id": "gpt-9/1", "row": 2, "status": "not_judgeable", "label": None},
    ])  # fmt: skip
    first, second = tasks(tmp_path, table, "--verdicts", verdicts)
    assert "predictions" not in second
    [prediction] = first["predictions"]
    assert (prediction["model_version"], prediction["score"]) == ("mine", 0.75)
    assert prediction["result"] == choices(score="Wrong", error_type="Other")

    out = made(tmp_path, "argilla", table, "--verdicts", verdicts)
    records = json.loads((out / "records.json").read_text(encoding="utf-8"))
    assert records[0]["suggestions"]["error_type"] == {
        "value": "Other", "score": 0.75, "agent": "mine"
    }  # fmt: skip
    assert records[1]["suggestions"] == {}

    others = write_rows(tmp_path / "others.jsonl", rows(2, id="another"))
    with pytest.raises(CustosError):
        run("construct", "labelling", "argilla", others, "--out", tmp_path / "no",
            "--verdicts", verdicts)  # fmt: skip


def test_a_judge_is_shown_of_a_table_with_an_empty_line(tmp_path: Path) -> None:
    """Its verdicts are a table without that line."""
    table, verdicts = tmp_path / "rows.csv", tmp_path / "verdicts.csv"
    table.write_text("question,references,response\nOne?,1,a\n,,\nTwo?,2,b\n", encoding="utf-8")
    judged = [("One?", "Wrong"), ("Two?", "Correct")]
    columns = ["question", *VERDICT_COLUMNS]
    write_spreadsheet(verdicts, columns, [[q, "scored", label, *[""] * 13] for q, label in judged])
    made_tasks = tasks(tmp_path, table, "--task", "hieval-qs", "--verdicts", verdicts)
    shown = {task["data"]["question"]: task["predictions"][0]["result"] for task in made_tasks}
    assert shown == {question: choices(score=label) for question, label in judged}


def test_pictures_are_in_the_tasks(tmp_path: Path) -> None:
    picture = save_picture(tmp_path / "a.png", 40, 30)
    table = write_rows(tmp_path / "rows.jsonl", [
        *rows(1, task="hieval-ea", images=[picture, picture]),
        *rows(1, task="hieval-ea", id="without"),
    ])  # fmt: skip
    with_two, without = (each["data"] for each in tasks(tmp_path, table))
    for name in ("picture_1", "picture_2"):
        assert with_two[name].startswith("data:image/jpeg;base64,")
        assert without[name].startswith("data:image/gif;base64,")


@pytest.mark.parametrize("out", ["labelled.jsonl", "labelled.csv", "labelled.tsv"])
def test_what_several_people_did_comes_back(tmp_path: Path, out: str) -> None:
    table = write_rows(tmp_path / "rows.jsonl", [
        {**row, "sampling_probability": 0.25, "group": "g"} for row in rows(7)
    ])  # fmt: skip
    made_tasks = tasks(tmp_path, table)
    export = exported(made_tasks, {
        0: [annotation(1, score="Correct"), annotation(2, score="Wrong"),
            annotation({"id": 3, "email": "carla@lab.org"}, score="Wrong")],
        1: [annotation(1, 5, score="Wrong"), annotation(1, 2, score="Correct")],
        2: [annotation(1, was_cancelled=True), annotation(2, score="Correct")],
        3: [annotation(1, score="Correct"), annotation(2, score="Correct"),
            annotation(3, score="Partial", ground_truth=True)],
        4: [annotation(1)],  # submitted with nothing in it
    })  # fmt: skip
    export[5]["drafts"] = [{"user": "ben@lab.org", "result": choices(score="Wrong")}]
    del export[6]  # deleted in the tool
    names = [part for each in ("1=anna", "2=ben") for part in ("--person", each)]
    labelled = brought(tmp_path, export, table, *names, out=out)
    assert {name: (row.label, row.annotator_labels) for name, row in labelled.items()} == {
        "gpt-9/0": ("Wrong", {"anna": "Correct", "ben": "Wrong", "carla@lab.org": "Wrong"}),
        "gpt-9/1": ("Wrong", {"anna": "Wrong"}),
        "gpt-9/2": ("Correct", {"ben": "Correct"}),
        "gpt-9/3": ("Partial", {"anna": "Correct", "ben": "Correct", "3": "Partial"}),
    }
    row = labelled["gpt-9/0"]
    assert row.annotators == ("anna", "ben", "carla@lab.org")
    assert (row.sampling_probability, row.group) == (0.25, "g")
    assert row.metadata == {"answerer": "gpt-9"} and row.response == rows(1)[0]["response"]


def test_minimal_json_is_read(tmp_path: Path) -> None:
    table = write_rows(tmp_path / "rows.jsonl", rows(2))
    one, two = (task["data"] for task in tasks(tmp_path, table))
    common = {"lead_time": 1.0, "created_at": "2026-11-27T16:20:00Z"}
    export = [
        {**one, "id": 1, "score": "Correct", "annotator": 1, "annotation_id": 5, **common,
         "updated_at": "2026-11-27T17:00:00Z"},
        {**one, "id": 1, "score": "Wrong", "annotator": 1, "annotation_id": 6, **common,
         "updated_at": "2026-11-27T16:30:00Z"},
        {**two, "id": 2, "score": {"choices": ["Partial"]}, "annotator": 2, "annotation_id": 7,
         **common},
    ]  # fmt: skip
    labelled = brought(tmp_path, export, table)
    assert [row.annotator_labels for row in labelled.values()] == [
        {"1": "Correct"},
        {"2": "Partial"},
    ]


def nested(item: str, **by_question: list[tuple[str, Any]]) -> dict[str, Any]:
    responses = {
        name: [{"value": value, "user_id": person} for person, value in given]
        for name, given in by_question.items()
    }
    return {"id": item, "fields": {}, "responses": responses, "suggestions": {}, "vectors": {}}


def flat(item: str, **by_question: list[tuple[str, Any, str]]) -> dict[str, Any]:
    row: dict[str, Any] = {"id": item, "status": "pending", "_server_id": None}
    for name, given in by_question.items():
        for end, index in (("", 1), (".users", 0), (".status", 2)):
            row[f"{name}.responses{end}"] = [each[index] for each in given]
    return row


def test_records_of_argilla_are_read(tmp_path: Path) -> None:
    table = write_rows(tmp_path / "rows.jsonl", rows(2, task="hieval-ea"))
    one, two = (task["data"]["item"] for task in tasks(tmp_path, table))
    export = [
        nested(one, score=[(ANNA, "Correct"), (BEN, "Wrong")], error_type=[(BEN, "Other")]),
        nested(two, score=[(ANNA, "Correct")], error_type=[(ANNA, "Other")]),  # asked of everybody
    ]
    labelled = brought(tmp_path, export, table, "--person", f"{ANNA}=anna")
    assert labelled["gpt-9/0"].annotator_labels == {"anna": "Correct", BEN: "Wrong; Other"}
    assert labelled["gpt-9/1"].label == "Correct"

    rows_of_datasets = [
        flat(one, score=[(ANNA, "Correct", "submitted"), (BEN, "Wrong", "draft"),
                         (CARLA, None, "discarded")]),
        flat(two, score=[(BEN, "Wrong", "submitted")],
             error_type=[(BEN, "Overthinking", "submitted")]),
    ]  # fmt: skip
    labelled = brought(tmp_path, rows_of_datasets, table)
    assert labelled["gpt-9/0"].annotator_labels == {ANNA: "Correct"}
    assert labelled["gpt-9/1"].error_type == "Overthinking"


@pytest.mark.parametrize(
    "change",
    [
        lambda task: task.update(annotations=[annotation(1, label="Perfect")]),
        lambda task: task.update(annotations=[annotation(2, label="Not attempted")]),
        lambda task: task["data"].update(item="0123456789ab"),
    ],
    ids=["an unknown label", "a label that the row cannot have", "a task about another row"],
)
def test_what_cannot_be_used_is_named_by_its_task(
    tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    fact = {"task": "hieval-qs", "reference_mode": "any"}
    table = write_rows(tmp_path / "rows.jsonl", [*rows(1), *rows(1, id="b", **fact)])
    labels = {0: [annotation(1, label="Correct")], 1: [annotation(1, label="Wrong")]}
    export = exported(tasks(tmp_path, table), labels)
    change(export[1])
    with pytest.raises(CustosError, match="task 101"):
        brought(tmp_path, export, table)
    assert list(brought(tmp_path, export, table, "--allow-dropped")) == ["gpt-9/0"]


def test_people_without_a_name_are_several(tmp_path: Path) -> None:
    """The tool gives nobody for those who have left."""
    table = write_rows(tmp_path / "rows.jsonl", rows(1))
    given = [annotation(None, n, score=label) for n, label in enumerate(("Wrong", "Wrong"))]
    given.append(annotation(3, 2, score="Correct"))
    row = brought(tmp_path, exported(tasks(tmp_path, table), {0: given}), table)["gpt-9/0"]
    assert row.label == "Wrong" and sorted(row.annotator_labels.values()) == [
        *("Correct", "Wrong", "Wrong")
    ]


def test_two_different_right_answers_are_no_label(tmp_path: Path) -> None:
    table = write_rows(tmp_path / "rows.jsonl", rows(2))
    right = [annotation(1, score="Wrong", ground_truth=True)]
    both = [*right, annotation(2, score="Correct", ground_truth=True)]
    export = exported(tasks(tmp_path, table), {0: right, 1: both})
    with pytest.raises(CustosError, match="task 101"):
        brought(tmp_path, export, table)
    assert list(brought(tmp_path, export, table, "--allow-dropped")) == ["gpt-9/0"]


def test_labels_that_equally_many_gave_are_counted(tmp_path: Path) -> None:
    table = write_rows(tmp_path / "rows.jsonl", rows(2))
    tied = [annotation(1, score="Wrong"), annotation(2, score="Correct")]
    settled = [*tied, annotation(3, score="Wrong")]
    export = tmp_path / "export.json"
    export.write_text(json.dumps(exported(tasks(tmp_path, table), {0: tied, 1: settled})))
    result = run("construct", "labelled", export, "--in", table, "--out", tmp_path / "out.jsonl")
    assert "(5 labels, 1 tied" in result.stdout


def test_labels_in_peoples_own_words(tmp_path: Path) -> None:
    table = write_rows(tmp_path / "rows.jsonl", rows(1))
    export = exported(tasks(tmp_path, table), {0: [annotation(1, score="richtig")]})
    labelled = brought(tmp_path, export, table, "--labels", "richtig=Correct")
    assert labelled["gpt-9/0"].label == "Correct"


def test_a_changed_row_gets_no_label(tmp_path: Path) -> None:
    table = write_rows(tmp_path / "rows.jsonl", rows(2))
    export = exported(tasks(tmp_path, table), {n: [annotation(1, score="Wrong")] for n in (0, 1)})
    changed = rows(2)
    changed[1]["response"] = "another one"
    write_rows(table, changed[::-1])
    labelled = brought(tmp_path, export, table, "--allow-dropped")
    assert list(labelled) == ["gpt-9/0"]


def test_pairs_keep_reasons_scores_and_faults(tmp_path: Path) -> None:
    pair = {"id": "p", "task": "truthful-pair", "question": "How many?", "response_a": "three",
            "response_b": "four"}  # fmt: skip
    table = write_rows(tmp_path / "rows.jsonl", [pair])
    export = exported(tasks(tmp_path, table), {0: [annotation(1)]})
    given = choices(score_a="9", score_b="2", better="A")
    reason = " ".join(["because"] * 60)
    export[0]["annotations"][0]["result"] = [
        *given, {"from_name": "rationale", "type": "textarea", "value": {"text": [reason]}}
    ]  # fmt: skip
    row = brought(tmp_path, export, table)["p"]
    assert (row.label, row.annotator_labels) == ("A", {"1": "A"})
    assert row.metadata["scores"] == {"A": 9.0, "B": 2.0}
    assert row.metadata["rationale"] == reason


def test_files_of_other_kinds_are_refused(tmp_path: Path) -> None:
    table = write_rows(tmp_path / "rows.jsonl", rows(1))
    odd: list[Any] = [
        *([], [{"id": 1}], ["text"]),
        [{"id": 1, "data": {}, "annotations": [{"result": [{"from_name": "score"}]}]}],
        [{"id": 1, "data": [], "annotations": [3]}],
        [nested("1", score=[(ANNA, {"deep": []})])],
        [{**flat("1", score=[(ANNA, "Correct", "submitted")]), "score.responses": ["a", "b"]}],
    ]
    for export in odd:
        with pytest.raises(CustosError):
            brought(tmp_path, export, table)
    criterion = rows(1, task="criterion", criteria=["short"])
    mixed = write_rows(tmp_path / "mixed.jsonl", [*rows(1), *criterion])
    with pytest.raises(CustosError, match="criterion"):
        made(tmp_path, "argilla", mixed)


def test_parts_of_nested_cells_come_back(tmp_path: Path) -> None:
    table = write_rows(tmp_path / "rows.jsonl", rows(1, about={"topic": "sums"}))
    options = ("--map", "group=about.topic")
    export = exported(tasks(tmp_path, table, *options), {0: [annotation(1, score="Wrong")]})
    assert brought(tmp_path, export, table, *options)["gpt-9/0"].group == "sums"


def test_groups_that_are_numbers_and_chances_with_a_comma_come_back(tmp_path: Path) -> None:
    drawn = {"group": 3.0, "sampling_probability": "0,5"}
    table = write_rows(tmp_path / "rows.jsonl", rows(1, **drawn))
    export = exported(tasks(tmp_path, table), {0: [annotation(1, score="Wrong")]})
    row = brought(tmp_path, export, table)["gpt-9/0"]
    assert (row.group, row.sampling_probability) == ("3", 0.5)
