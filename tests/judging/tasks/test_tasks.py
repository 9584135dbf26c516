from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.errors import CustosError
from judging.tasks import base, get_task, judge_task, task_names
from judging.tasks.base import Field, JudgeTask
from judging.tasks.hieval_qs import HiEvalQuickScore
from judging.types import JudgeRequest, LabelledExample
from tests.judging.made_up import ask

QS = get_task("hieval-qs")
EA = get_task("hieval-ea")
RUBRICS = ("plain/all", "plain/any", "tolerance/all", "tolerance/any")


def test_registered_names() -> None:
    assert "hieval-qs" in task_names()
    assert list(task_names()) == sorted(task_names())
    assert all(get_task(name).name == name for name in task_names())


def test_an_unknown_task_lists_the_known() -> None:
    with pytest.raises(CustosError, match=r"field 'task': 'hieval' is not one of .*hieval-qs"):
        get_task("hieval")


def test_a_name_is_registered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base.TASKS, "entries", dict(base.TASKS.entries))

    class Mine(HiEvalQuickScore):
        name = "mine"

    judge_task(Mine)
    assert isinstance(get_task("mine"), JudgeTask)
    with pytest.raises(ValueError, match="task 'mine' is already declared"):
        judge_task(Mine)


@pytest.mark.parametrize("variant", ["plain", "tolerance"])
@pytest.mark.parametrize("mode", ["all", "any"])
def test_quick_score_rubrics(variant: str, mode: str) -> None:
    request = ask(variant=variant, reference_mode=mode)
    rubric = QS.rubric(request)
    assert rubric == f"{variant}/{mode}"
    expected = ("Correct", "Partial", "Wrong") if mode == "all" else ("Correct", "Wrong")
    assert QS.labels(rubric) == expected


def test_quick_score_instructions_hold_every_criterion() -> None:
    texts = {rubric: QS.instruction(rubric) for rubric in RUBRICS}
    assert len(set(texts.values())) == 4
    for rubric, text in texts.items():
        assert ("5 %" in text) == rubric.startswith("tolerance")
        assert all(label in text for label in QS.labels(rubric))
        assert ("Partial" in text) == rubric.endswith("all")
        assert "cut off" in text


def test_quick_score_depends_on_the_rubric_alone() -> None:
    """Requests of a rubric share a prefilled instruction, so nothing of them may leak into it."""
    assert QS.rubric(ask("a", question="x")) == QS.rubric(ask("b", references=("y", "z")))


def test_quick_score_item() -> None:
    fields = QS.item(ask("19", references=("19", "nineteen"), choices=("18", "19")))
    assert [(field.heading, field.text) for field in fields] == [
        ("Question", "How many apples are left?"),
        ("Options", "(A) 18  (B) 19"),
        ("Ground truth", "(B) 19; nineteen"),
        ("Response", "19"),
    ]
    assert [field.is_response for field in fields] == [False, False, False, True]
    with_convention = QS.item(ask("19", criteria=("Lists must be complete.",)))
    assert [(field.heading, field.text) for field in with_convention][2:] == [
        ("Further criterion", "Lists must be complete."),
        ("Response", "19"),
    ]
    alternatives = QS.item(ask("19", references=("19", "nineteen"), reference_mode="any"))
    assert ("References", "19 / nineteen") in [(f.heading, f.text) for f in alternatives]


@pytest.mark.parametrize(
    "response", ["", "   ", "\n\t", "\u200b", "\u200f \ufeff", "<think>19</think>\u200b"]
)
def test_an_empty_response_is_wrong_by_rule(response: str) -> None:
    ruling = QS.rule(ask(response))
    assert ruling is not None
    assert (ruling.status, ruling.label) == ("scored", "Wrong")
    assert "empty" in ruling.message


def test_any_other_response_needs_the_model() -> None:
    assert QS.rule(ask("0")) is None


@pytest.mark.parametrize(
    ("text", "rubric", "label"),
    [
        ("Correct", "plain/all", "Correct"),
        ("correct", "plain/all", "Correct"),
        (" WRONG.\n", "plain/all", "Wrong"),
        ("**Partial**", "plain/all", "Partial"),
        ('"Wrong"', "plain/any", "Wrong"),
        ("`Correct`!", "plain/any", "Correct"),
        ("Partial", "plain/any", None),  # not a label of this rubric
        ("Incorrect", "plain/all", None),
        ("Not correct", "plain/all", None),
        ("Correct or Wrong", "plain/all", None),
        ("The response is correct", "plain/all", None),
        ("", "plain/all", None),
        ("A", "plain/all", None),
    ],
)
def test_quick_score_parser(text: str, rubric: str, label: str | None) -> None:
    assert QS.parse(text, rubric) == label


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"variant": "strict"}, "field 'variant': 'strict' is not one of plain, tolerance"),
        ({"question": ""}, "field 'question': task 'hieval-qs' needs it"),
        ({"references": ()}, "field 'references': task 'hieval-qs' needs it"),
    ],
)
def test_requests_it_cannot_take(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(CustosError) as caught:
        QS.check(ask(**fields))
    assert str(caught.value) == message


def test_targets() -> None:
    row = {"question": "?", "response": "a", "references": ["b"], "label": "Partial"}
    assert QS.target(LabelledExample.model_validate(row)) == "Partial"
    with pytest.raises(CustosError, match="field 'label': 'Partial' is not one of Correct, Wrong"):
        QS.target(LabelledExample.model_validate(row | {"reference_mode": "any"}))


def test_error_analysis_labels_are_the_papers_eleven() -> None:
    types = (
        "Reasoning Error",
        "Image Misunderstanding",
        "Unanswerable",
        "Overthinking",
        "Other",
    )
    expected = {
        "Correct",
        *(f"{score}; {kind}" for score in ("Partial", "Wrong") for kind in types),
    }
    assert set(EA.labels("plain/all")) == expected
    assert len(EA.labels("plain/all")) == 11
    assert set(EA.labels("tolerance/any")) == {x for x in expected if not x.startswith("Partial")}


@pytest.mark.parametrize("rubric", RUBRICS)
def test_error_analysis_instructions_hold_every_criterion(rubric: str) -> None:
    text = EA.instruction(rubric)
    assert ("5 %" in text) == rubric.startswith("tolerance")
    assert ("Partial" in text) == rubric.endswith("all")
    for label in EA.labels(rubric):
        assert label.partition("; ")[2] in text
    for criterion in (
        ("logic", "computation", "condition in the text", "beside the question"),
        ("misread", "overlooked", "invented"),
        ("missing", "incomplete", "incorrect", "no answer"),
        ("circles", "abruptly", "unfinished", "closing mark"),
        ("bare letter", "formatting", "cannot be told"),
    ):
        assert all(words in text for words in criterion), criterion
    assert "main cause" in text


def test_error_analysis_of_an_empty_response() -> None:
    ruling = EA.rule(ask("  ", task="hieval-ea"))
    assert ruling is not None
    assert ruling.label == "Wrong; Other"
    assert EA.rule(ask("0", task="hieval-ea")) is None


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("wrong;reasoning error.", "Wrong; Reasoning Error"),
        ("Partial ; Other", None),
        (" Correct\n", "Correct"),
        ("Wrong", None),
        ("Correct; Other", None),
        ("Reasoning Error", None),
    ],
)
def test_error_analysis_parser(text: str, label: str | None) -> None:
    assert EA.parse(text, "plain/all") == label


def test_every_task_keeps_the_contract() -> None:
    request = JudgeRequest(question="?", references=("a",), responses=("b", "c"))
    for name in task_names():
        task = get_task(name)
        assert task.variants, name
        assert set(task.required) <= set(JudgeRequest.model_fields), name
        rubric = task.rubric(request.model_copy(update={"variant": task.variants[0]}))
        labels = task.labels(rubric)
        assert len(set(labels)) == len(labels) > 0, name
        assert task.instruction(rubric).strip(), name
        assert all(task.parse(label, rubric) == label for label in labels), name


@pytest.mark.parametrize(
    ("task", "fields"),
    [
        ("hieval-qs", {"references": ("",)}),
        ("hieval-ea", {"references": (" ", "\n")}),
        ("simplevqa", {"references": ("\u3000",), "variant": "english"}),
        ("hieval-qs", {"question": " "}),
        ("charthal", {"references": (" ",), "variant": "normal-closed"}),
    ],
)
def test_a_blank_field_is_none(task: str, fields: dict[str, Any]) -> None:
    """A judge would compare the response with nothing."""
    name = "question" if "question" in fields else "references"
    with pytest.raises(CustosError, match=f"^field '{name}': .* needs it"):
        get_task(task).check(ask(task=task, **fields))


def test_one_reference_with_text_is_enough() -> None:
    QS.check(ask(references=("", "19")))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Ｃａｎｂｅｒｒａ", "Canberra"),
        ("Ｎｅｗ　Ｙｏｒｋ", "New York"),
        ("－１，０００．５％", "-1,000.5%"),
        ("＋．５　１／２", "+.5 1/2"),
        ("答案：（Ａ），１，２。", "答案：（A），1，2。"),
        ("10² ½ ① ㎏", "10² ½ ① ㎏"),
        ("他说：“是的，没错。”！？", "他说：“是的，没错。”！？"),
        ("－答案　是／否", "－答案　是／否"),
        (" plain  text\n", "plain  text"),
    ],
)
def test_judges_see_full_width_text_as_plain(text: str, shown: str) -> None:
    """Letters, digits and the marks of a number; other characters have no plain form."""
    assert Field("Response", text).shown == shown


@given(text=st.text(st.characters(max_codepoint=0x2FFF)))
def test_text_without_full_width_characters_is_shown_as_it_is(text: str) -> None:
    assert Field("Response", text).shown == text.strip()
