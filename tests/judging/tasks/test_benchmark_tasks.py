"""The tasks that benchmarks ask for: rubrics, what the judge is shown, rules, parsers."""

from typing import Any

import pytest

from judging.errors import CustosError, FieldError
from judging.tasks import JudgeTask, get_task
from judging.tasks.charthal import WITH_REFERENCE
from judging.tasks.simplevqa import parse_conclusion
from tests.judging.made_up import ask

CHARTHAL = get_task("charthal")
SIMPLEVQA = get_task("simplevqa")
FACT = get_task("chartom-fact")
JUSTIFICATION = get_task("chartom-justification")
OPTION = get_task("truthful-option")
PREDICTION = get_task("chartom-prediction")
REST = (CHARTHAL, SIMPLEVQA, FACT, JUSTIFICATION)


@pytest.mark.parametrize("variant", CHARTHAL.variants)
def test_charthal_shows_the_reference_only_where_the_rubric_uses_it(variant: str) -> None:
    assert WITH_REFERENCE == ("contradictory-closed", "normal-closed")
    assert CHARTHAL.labels(variant) == ("1", "0")
    request = ask("No idea.", task="charthal", variant=variant, references=("forty-two",))
    shown = {field.heading: field.text for field in CHARTHAL.item(request)}
    assert ("Reference" in shown) == ("forty-two" in str(shown)) == (variant in WITH_REFERENCE)
    for references in ((), ("",)):
        bare = request.model_copy(update={"references": references})
        if variant in WITH_REFERENCE:
            with pytest.raises(CustosError, match=f"'references': variant '{variant}' needs it"):
                CHARTHAL.check(bare)
        else:
            CHARTHAL.check(bare)


@pytest.mark.parametrize(
    ("task", "variant", "label"),
    [
        *(("charthal", variant, "0") for variant in CHARTHAL.variants),
        ("simplevqa", "english", "Not attempted"),
        ("simplevqa", "chinese", "Not attempted"),
        ("chartom-fact", "number", "Incorrect"),
        ("chartom-justification", "plain", "Missed"),
    ],
)
def test_an_empty_response_is_decided_by_rule(task: str, variant: str, label: str) -> None:
    declared = get_task(task)
    ruling = declared.rule(ask(" \n", task=task, variant=variant))
    assert ruling is not None
    assert (ruling.status, ruling.label) == ("scored", label)
    assert label in declared.labels(variant)
    assert declared.rule_if_empty(ask("0", task=task, variant=variant)) is None


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("1", "1"),
        ("Score: 1", "1"),
        ("**score: 0**", "0"),
        ("Score: 10", None),
        ("10", None),
        ("Score: 1 because 0 is wrong", None),
        ("", None),
    ],
)
def test_charthal_parser(text: str, label: str | None) -> None:
    assert CHARTHAL.parse(text, "irrelevant") == label


@pytest.mark.parametrize(
    ("text", "conclusion"),
    [
        ("A", "Correct"),
        ("b", "Incorrect"),
        ("(C)", "Not attempted"),
        ("CORRECT", "Correct"),
        ("incorrect.", "Incorrect"),
        ("NOT_ATTEMPTED", "Not attempted"),
        ("正确", "Correct"),
        ("**错误**", "Incorrect"),
        ("【未尝试】", "Not attempted"),
        ("不正确", None),
        ("not correct", None),
        ("D", None),
        ("答案解析失败", None),
        ("", None),
    ],
)
def test_every_spelling_of_a_simplevqa_conclusion(text: str, conclusion: str | None) -> None:
    assert parse_conclusion(text) == conclusion
    assert SIMPLEVQA.parse(text, "english") == SIMPLEVQA.parse(text, "chinese") == conclusion


@pytest.mark.parametrize(
    ("reply", "conclusion"),
    [
        ('{"预测答案0": "正确"}', "Correct"),
        ('```json\n{"预测答案0": "【错误】"}\n```', "Incorrect"),
        ('{"预测答案0": "未尝试"', "Not attempted"),
        ('{"预测答案0": {"reasoning": "它不正确", "conclusion": "错误"}}', "Incorrect"),
        ('{"预测答案0": "正确", "预测答案1": "错误"}', "Correct"),  # one answer was asked about
        ('["正确"]', "Correct"),
        ('["正确", "正确"]', "Correct"),
        ('["正确", "错误"]', None),
        ("A: Correct", "Correct"),
        ("- B: [Incorrect]", "Incorrect"),  # as a line of the prompt has it
        ("**B**: Incorrect", "Incorrect"),
        ("A: Incorrect", None),
        ('{"预测答案0": "不正确"}', None),
        ("1", None),
        ("[" * 100_000, None),
        ("", None),
    ],
)
def test_replies_to_the_official_simplevqa_prompts(reply: str, conclusion: str | None) -> None:
    assert SIMPLEVQA.parse_official(reply, "chinese") == conclusion


@pytest.mark.parametrize(
    ("variant", "headings"),
    [("english", ["Question", "Reference", "Response"]), ("chinese", ["题目", "参考答案", "作答"])],
)
def test_simplevqa_speaks_the_language_of_its_variant(variant: str, headings: list[str]) -> None:
    fields = SIMPLEVQA.item(ask(task="simplevqa", variant=variant))
    assert [field.heading for field in fields] == headings
    assert all(label in SIMPLEVQA.instruction(variant) for label in SIMPLEVQA.labels(variant))


def test_the_answer_key_of_a_ranking_reads_as_an_order() -> None:
    request = ask("b, a", task="chartom-fact", variant="ranking", references=("a", "b"))
    assert ("Answer key", "a > b") in [(f.heading, f.text) for f in FACT.item(request)]
    choice = ask("b", task="chartom-fact", variant="choice", choices=("up", "down"))
    assert ("Options", "1. up  2. down") in [(f.heading, f.text) for f in FACT.item(choice)]


def test_a_justification_is_compared_with_the_manipulation() -> None:
    request = ask("The axis starts at 90.", references=("truncated y-axis",))
    shown = {field.heading: field.text for field in JUSTIFICATION.item(request)}
    assert shown["Manipulation"] == "truncated y-axis"
    assert JUSTIFICATION.parse("named.", "plain") == "Named"
    assert JUSTIFICATION.parse("Named or Missed", "plain") is None


@pytest.mark.parametrize("task", REST, ids=lambda task: task.name)
def test_only_the_response_may_be_shortened(task: JudgeTask) -> None:
    for variant in task.variants:
        fields = task.item(ask(variant=variant))
        assert [field.is_response for field in fields] == [False] * (len(fields) - 1) + [True]


VASES = ("a cup", "a vase")


@pytest.mark.parametrize(
    ("variant", "choices", "reference", "response", "label"),
    [
        ("stated", VASES, "A", "It is (A).", "Correct"),
        ("stated", VASES, "a cup", "B, not A", "Incorrect"),
        ("stated", VASES, "a cup", "I see a cup.", "Correct"),
        ("stated", (), "B", "The answer is B", "Correct"),
        ("stated", VASES, "A", "A? No, I doubt that", None),
        ("stated", tuple("vwxyz"), "E", "E, as A shows", None),
        ("stated", tuple("vwxyz"), "E", "(E)", "Correct"),
        ("official", VASES, "A", "B, not A", "Correct"),
        ("official", VASES, "A", "no letter", "Incorrect"),
    ],
)
def test_an_option_is_read_as_the_variant_says(
    variant: str, choices: tuple[str, ...], reference: str, response: str, label: str | None
) -> None:
    fields: dict[str, Any] = {"task": "truthful-option", "question": "What is it?"}
    request = ask(response, variant=variant, choices=choices, references=(reference,), **fields)
    ruling = OPTION.rule(request)
    assert (ruling.label if ruling else None) == label


@pytest.mark.parametrize("reference", ["0.3", "30%", "3/10"])
def test_a_prediction_is_compared_with_a_share_however_it_is_written(reference: str) -> None:
    fields: dict[str, Any] = {"question": "How many?", "responses": ("0.4: the axis.",)}
    ruling = PREDICTION.rule(ask(task="chartom-prediction", references=(reference,), **fields))
    assert ruling is not None
    assert ruling.score == 0.4
    assert "0.01 " in ruling.message
    for bad in ("3", "0.3 or so", "none", "0.3-0.4"):
        with pytest.raises(FieldError) as raised:
            PREDICTION.check(ask(task="chartom-prediction", references=(bad,), **fields))
        assert raised.value.field == "references"
