"""The public format of judge training data, in and out."""

import json
from pathlib import Path
from typing import Any

import pytest

from data_prep.errors import UnusableText
from data_prep.sources.conversations import (
    Headings,
    load_conversations,
    parse_judgement,
    to_conversation,
)
from judging.errors import CustosError
from judging.types import LabelledExample

JUDGED = (
    "<critique>A counts three boats; there are two.</critique>\n"
    "<label>B</label>\n<confidence>0.85</confidence>"
)
ASKED = "<image>[[Question]]\nHow many boats?[[Response A]]\nThree.[[Response B]]\nTwo."


def row(user: str = ASKED, assistant: str = JUDGED, **fields: Any) -> dict[str, Any]:
    turns = (("system", "You judge."), ("user", user), ("assistant", assistant))
    messages = [{"role": role, "content": content} for role, content in turns]
    return {"messages": messages, "images": ["images/0.png"], **fields}


def load(tmp_path: Path, *rows: Any, **options: Any) -> list[LabelledExample]:
    path = tmp_path / "public.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return load_conversations(path, **options)


def test_a_row(tmp_path: Path) -> None:
    [example] = load(tmp_path, row())
    assert (example.id, example.source) == ("public-1", "public")
    assert (example.task, example.mode, example.label) == ("truthful-pair", "critique", "B")
    assert (example.question, example.responses) == ("How many boats?", ("Three.", "Two."))
    assert example.references == ()
    assert example.critique == "A counts three boats; there are two."
    assert example.confidence == 0.85
    assert example.images == (str(tmp_path.resolve() / "images/0.png"),)


def test_a_reference_and_other_headings(tmp_path: Path) -> None:
    user = "<image>\nQ> What?\nR> This.\n1> That.\n2> this, surely"
    headings = Headings(question="Q>", reference="r>", response_a="1>", response_b="2>")
    [example] = load(tmp_path, row(user), headings=headings)
    assert (example.question, example.references) == ("What?", ("This.",))
    assert example.responses == ("That.", "this, surely")


@pytest.mark.parametrize(
    "bad",
    [
        row("<image>[[Question]] What?"),
        row(ASKED + "[[response b]]"),
        row("<image>" + ASKED),
        row("Look: " + ASKED),
        row(images=[]),
        row(assistant="A"),
        row(assistant=JUDGED.replace("B</label>", "C</label>")),
        {"messages": row()["messages"][:2], "images": []},
        {"messages": "hello"},
        [1],
    ],
)
def test_bad_rows_are_reported_by_number(tmp_path: Path, bad: Any) -> None:
    field = "" if isinstance(bad, list) else ": field 'messages'"
    with pytest.raises(CustosError, match=rf"public\.json row 2{field}"):
        load(tmp_path, row(), bad)
    bad_rows: list[str] = []
    assert len(load(tmp_path, row(), bad, row(), bad_rows=bad_rows)) == 2
    assert len(bad_rows) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "unparsable"),
        ("B", "unparsable"),
        (JUDGED.replace("0.85", "85%"), "unparsable"),
        (JUDGED.replace("0.85", ""), "unparsable"),
        ("</critique>" + JUDGED.partition("</critique>")[2], "unparsable"),
        (JUDGED.replace("0.85", "1.2"), "confidence out of range"),
        (JUDGED.replace("0.85", "nan"), "confidence out of range"),
        ("<critique> </critique><label>A</label><confidence>1</confidence>", "empty critique"),
    ],
)
def test_texts_that_are_no_judgement(text: str, reason: str) -> None:
    with pytest.raises(UnusableText) as caught:
        parse_judgement(text)
    assert caught.value.reason == reason


def test_there_and_back(tmp_path: Path) -> None:
    example = LabelledExample(
        task="truthful-pair",
        mode="critique",
        question="Where is\nthe dog?",
        references=("Behind the tree",),
        responses=("Behind it.", "«Up» the tree."),
        images=("/a/0.png", "/a/1.png"),
        label="None",
        critique="Both are vague.",
        confidence=0.31,
    )
    written = to_conversation(example)
    assert [turn["role"] for turn in written["messages"]] == ["system", "user", "assistant"]
    assert "reference answer" in written["messages"][0]["content"]
    [read] = load(tmp_path, written)
    same = read.model_copy(update={"id": "", "source": ""})
    assert same.model_dump() == example.model_dump()
    with pytest.raises(CustosError):
        to_conversation(example.model_copy(update={"confidence": None}))
