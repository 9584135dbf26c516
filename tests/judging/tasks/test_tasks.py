"""What holds of all tasks; those that read text alone, whose judges see no picture and say so."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.errors import CustosError
from judging.judge import Judge
from judging.judge.card import SHIPPED, read_card, shipped_judges
from judging.models.backbones import Backbone
from judging.scoring.prompts import Encoder
from judging.tasks import JudgeTask, get_task, task_names
from judging.tasks.base import Field
from judging.types import JudgeRequest, LabelledExample
from tests.judging.made_up import ask

QS = get_task("hieval-qs")
EA = get_task("hieval-ea")
RUBRICS = ("plain/all", "plain/any", "tolerance/all", "tolerance/any")


def test_quick_score_rubrics_and_their_criteria() -> None:
    texts = {rubric: QS.instruction(rubric) for rubric in RUBRICS}
    assert len(set(texts.values())) == 4
    for rubric, text in texts.items():
        variant, _, mode = rubric.partition("/")
        assert QS.rubric(ask(variant=variant, reference_mode=mode)) == rubric
        partial = ("Partial",) if mode == "all" else ()
        assert QS.labels(rubric) == ("Correct", *partial, "Wrong")
        assert ("5 %" in text) == (variant == "tolerance")
        assert all(label in text for label in QS.labels(rubric))
        assert ("Partial" in text) == (mode == "all")
        assert "cut off" in text


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


@pytest.mark.parametrize("response", ["", "   \n\t", "\u200b\ufeff", "<think>19</think>\u200b"])
def test_an_empty_response_is_wrong_by_rule(response: str) -> None:
    ruling = QS.rule(ask(response))
    assert ruling and (ruling.status, ruling.label) == ("scored", "Wrong")
    assert "empty" in ruling.message
    ruling = EA.rule(ask(response, task="hieval-ea"))
    assert ruling and ruling.label == "Wrong; Other"
    assert EA.rule(ask("0", task="hieval-ea")) is None


@pytest.mark.parametrize(
    ("task", "text", "label"),
    [
        (QS, "correct", "Correct"),
        (QS, " WRONG.\n", "Wrong"),
        (QS, "**Partial**", "Partial"),
        (QS, "`Correct`!", "Correct"),
        (QS, "Incorrect", None),
        (QS, "Correct or Wrong", None),
        (QS, "The response is correct", None),
        (QS, "A", None),
        (EA, "wrong;reasoning error.", "Wrong; Reasoning Error"),
        (EA, "Partial ; Other", None),
        (EA, " Correct\n", "Correct"),
        (EA, "Wrong", None),
        (EA, "Correct; Other", None),
    ],
)
def test_parsers(task: JudgeTask, text: str, label: str | None) -> None:
    assert task.parse(text, "plain/all") == label
    assert QS.parse("Partial", "plain/any") is None, "it is no label of this rubric"


def test_targets() -> None:
    row = {"question": "?", "response": "a", "references": ["b"], "label": "Partial"}
    assert QS.target(LabelledExample.model_validate(row)) == "Partial"
    with pytest.raises(CustosError, match="field 'label': 'Partial' is not one of Correct, Wrong"):
        QS.target(LabelledExample.model_validate(row | {"reference_mode": "any"}))


def test_error_analysis_labels_are_the_papers_eleven() -> None:
    types = ("Reasoning Error", "Image Misunderstanding", "Unanswerable", "Overthinking", "Other")
    expected = {
        "Correct",
        *(f"{score}; {kind}" for score in ("Partial", "Wrong") for kind in types),
    }
    assert set(EA.labels("plain/all")) == expected
    assert len(EA.labels("plain/all")) == 11
    assert set(EA.labels("tolerance/any")) == {x for x in expected if not x.startswith("Partial")}


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


@pytest.mark.parametrize("name", ["hieval-qs", "simplevqa"])
def test_prompts_hold_no_picture(name: str, tiny: Backbone, pictures: list[str]) -> None:
    variant = {"variant": "english"} if name == "simplevqa" else {}
    bare, seen = (
        (get_task(name), ask(task=name, images=images, **variant)) for images in ((), pictures)
    )
    without, left_out = Encoder(tiny).encode([bare, seen])
    assert left_out.prefix_ids + left_out.suffix_ids == without.prefix_ids + without.suffix_ids
    assert left_out.vision == {}
    assert len(set(Encoder(tiny).measure([bare, seen]))) == 1
    [shown] = Encoder(tiny, shows_all_pictures=True).encode([seen])
    assert len(shown.vision["image_grid_thw"]) == 3


def test_verdicts_are_those_without_and_say_so(
    judge: Judge, tiny: Backbone, pictures: list[str]
) -> None:
    bare, one, two = judge.grade([ask(), ask(images=pictures[:1]), ask(images=pictures[:2])])
    assert bare.message is None
    assert one.message == "the picture was left out: task 'hieval-qs' reads text alone"
    assert two.message == "the pictures were left out: task 'hieval-qs' reads text alone"
    for verdict in (one, two):
        assert verdict.probabilities == pytest.approx(bare.probabilities, abs=1e-6)
    zero_shot = Judge.load(tiny.name, dtype="float32", device="cpu")
    missing = ("missing.png",)
    quick, seen = zero_shot.grade([ask(images=missing), ask(task="hieval-ea", images=missing)])
    assert (quick.status, seen.status) == ("scored", "invalid")


def test_a_judge_that_was_trained_on_all_pictures_sees_them(
    folder: Path, judge: Judge, pictures: list[str]
) -> None:
    card = json.loads((folder / "judge.json").read_text(encoding="utf-8"))
    (folder / "judge.json").write_text(json.dumps(card | {"shows_all_pictures": True}))
    pictured_judge = Judge.load(str(folder), dtype="float32", device="cpu")
    pictured = ask(images=pictures[:1])
    bare, verdict = pictured_judge.grade([ask(), pictured])
    assert verdict.message is None
    assert verdict.probabilities != pytest.approx(bare.probabilities, abs=1e-6)
    assert pictured_judge.identity == judge.identity, "a calibration stays valid"
    assert pictured_judge.fingerprint(ask()) == judge.fingerprint(ask())
    assert pictured_judge.fingerprint(pictured) != judge.fingerprint(pictured), "a cache keeps both"
    for name in shipped_judges():
        shipped = read_card(SHIPPED / name)
        assert "hieval-qs" not in shipped.tasks or not shipped.shows_all_pictures, name
