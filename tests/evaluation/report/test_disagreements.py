import csv
from pathlib import Path

import pytest

from data_prep.tables.examples import read_examples
from evaluation.report.disagreements import FILE, find_disagreements, write_disagreements
from judging.types import Verdict
from tests.evaluation.made_up import example, scored, unscored
from tests.evaluation.pairs.made_up import pair


def read(folder: Path) -> list[dict[str, str]]:
    with (folder / FILE).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_the_most_confident_come_first_and_those_without_confidence_last() -> None:
    examples = [example("Wrong", id=str(i)) for i in range(6)]
    verdicts = [
        scored("Correct", 0.6, id="0"),
        Verdict(id="1", status="scored", label="Correct"),
        scored("Correct", 0.6, id="2", confidence=0.9),
        scored("Wrong", 0.99, id="3"),
        unscored("4"),
        scored("Correct", 0.6, id="5"),
    ]
    rows = find_disagreements(examples, verdicts)
    assert [row.example.id for row in rows] == ["2", "0", "5", "1"]
    assert [row.confidence for row in rows] == [0.9, 0.6, 0.6, None]
    assert rows[0].pair == "people Wrong, judge Correct"


def test_a_second_person_who_differs_from_the_judge_is_a_disagreement() -> None:
    examples = [example("Correct", id="0", second_label="Wrong"), example("Correct", id="1")]
    [row] = find_disagreements(examples, [scored("Correct", id="0"), scored("Correct", id="1")])
    assert (row.pair, row.sides_with) == (
        "first person Correct, second person Wrong, judge Correct",
        "first",
    )


@pytest.mark.parametrize(
    ("labels", "decided", "judge", "pair"),
    [
        ("CCW", "Correct", "Wrong", "2 people Correct, 1 Wrong, judge Wrong"),
        ("CCW", "Wrong", "Correct", "2 people Correct, 1 Wrong, decided Wrong, judge Correct"),
        ("CW", "Correct", "Correct", "1 person Correct, 1 Wrong, judge Correct"),
        ("CCC", "Correct", "Wrong", "people Correct, judge Wrong"),
        ("CCW", "Correct", "Correct", None),
    ],
)
def test_several_people(labels: str, decided: str, judge: str, pair: str | None) -> None:
    """One who differs from most is no disagreement of the judge with people; a tie is one."""
    words = {"C": "Correct", "W": "Wrong"}
    given = {f"p{number}": words[letter] for number, letter in enumerate(labels)}
    rows = find_disagreements([example(decided, annotator_labels=given)], [scored(judge)])
    assert [row.pair for row in rows] == ([] if pair is None else [pair])


def test_labels_of_people_are_columns_that_are_read_again(tmp_path: Path) -> None:
    examples = [
        example("Wrong", id="0", annotator_labels={"anna": "Wrong", "ben": "Wrong"}),
        example("Wrong", id="1", annotator_labels={"ben": "Wrong", "carla": "Correct"}),
    ]
    verdicts = [scored("Correct", 0.9, id="0"), scored("Correct", 0.8, id="1")]
    write_disagreements(tmp_path, find_disagreements(examples, verdicts))
    again = [row for _, row in read_examples(tmp_path / FILE)]
    assert [row.annotator_labels for row in again] == [row.annotator_labels for row in examples]


def test_the_table_holds_the_callers_columns_and_no_formula(tmp_path: Path) -> None:
    given = {"answerer": "ant", "note": "=HYPERLINK(0)", "label": "mine", "list": [1, "é"], "n": 2}
    examples = [
        example("Wrong", id="0", responses=("-1+1\n|x",), metadata=given),
        example("Wrong", id="1", metadata={"late": True}),
    ]
    verdicts = [scored("Correct", 0.75, id="0", critique="@fine"), scored("Correct", 0.7, id="1")]
    write_disagreements(tmp_path, find_disagreements(examples, verdicts))
    first, second = read(tmp_path)
    assert list(first) == [
        *("id", "question", "references", "response", "label", "judge_label", "confidence"),
        *("critique", "answerer", "note", "metadata.label", "list", "n", "late"),
    ]
    assert first["response"] == "~'-1+1\n|x"
    assert first["critique"] == "~'@fine"
    assert first["note"] == "~'=HYPERLINK(0)"
    assert (first["metadata.label"], first["label"], first["judge_label"]) == (
        "mine",
        "Wrong",
        "Correct",
    )
    assert (first["list"], first["n"], float(first["confidence"])) == ('[1, "é"]', "2", 0.75)
    assert (second["late"], second["note"]) == ("True", "")


def test_pairs_have_two_responses_and_pictures_are_not_pasted_into_cells(tmp_path: Path) -> None:
    row = pair("A", "1", task="truthful-pair", images=("data:image/png;base64,AAAA", "/x/y.png"))
    write_disagreements(tmp_path, find_disagreements([row], [scored("B", 0.8, "A")]))
    [cells] = read(tmp_path)
    assert (cells["response_a"], cells["response_b"]) == ("red", "blue")
    assert cells["images"] == "data:image/png;base64; /x/y.png"
