"""What the glue of every tool shares: the label decides, and a failure is never a verdict."""

import asyncio
import math
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from custos.integrations._core import Grader, NoLabel, text_in
from custos.integrations.lm_eval import answer_scorer
from custos.integrations.openevals import answer_evaluator, async_answer_evaluator
from custos.integrations.promptfoo import answer_assertion
from custos.integrations.pytest import assert_judged
from custos.integrations.trl import AnswerReward
from judging import CustosError, JudgeRequest, Verdict
from judging.errors import FieldError
from judging.tasks import get_task
from judging.types import Status
from tests.judging.tasks.made_up import declare
from tests.serve.made_up import FakeJudge
from tests.serve.sockets import serving_judges

QUESTION, RIGHT, WRONG, BROKEN = "Which river?", "The Elbe.", "The Oder.", "broken"
PARTIAL, CLOSE = "half", "close"


class Labels:
    """A judge that labels by the response, with probabilities of its own; keeps the requests."""

    LABELS = {RIGHT: "Correct", PARTIAL: "Partial", CLOSE: "Wrong"}

    def __init__(self, task_labels: dict[str, str] | None = None) -> None:
        self.labels = self.LABELS | (task_labels or {})
        self.seen: list[JudgeRequest] = []

    def grade(self, requests: Iterable[JudgeRequest], /) -> Iterator[Verdict]:
        for request in requests:
            self.seen.append(request)
            yield self.verdict_on(request.response)

    def verdict_on(self, response: str) -> Verdict:
        if response in (BROKEN, ""):
            status: Status = "judge_error" if response else "abstain"
            return Verdict(status=status, message="no such luck")
        label = self.labels.get(response, "Wrong")
        chances = {"Correct": 0.2, "Partial": 0.1, "Wrong": 0.1} | {label: 0.0}
        if response == CLOSE:  # less than half is wrong, and Wrong is the likeliest all the same
            chances = {"Correct": 0.45, "Partial": 0.07}
        chances[label] = 1 - sum(chances.values())
        return Verdict(status="scored", label=label, probabilities=chances, judge_name="labels")


@pytest.mark.parametrize(
    ("response", "score", "expected"),
    [
        (RIGHT, 1.0, 0.8 + 0.1 / 2),
        (PARTIAL, 0.5, 0.2 + 0.7 / 2),
        (WRONG, 0.0, 0.2 + 0.1 / 2),
        (CLOSE, 0.0, 0.45 + 0.07 / 2),
    ],
)
def test_the_label_decides_and_not_the_probabilities(
    response: str, score: float, expected: float
) -> None:
    grade = Grader(Labels()).grade(QUESTION, "The Elbe", response)
    assert grade.score == score
    assert grade.passed == (score == 1)
    assert grade.expected == pytest.approx(expected)


@pytest.mark.parametrize("label", ["Incorrect", "Not attempted", "Fail", "1", "correct", "A"])
def test_a_label_that_is_not_known_to_be_right_passes_nothing(label: str) -> None:
    assert Grader(Labels({"odd": label})).grade(QUESTION, "x", "odd").score == 0


@pytest.mark.parametrize(
    ("task", "label", "score", "expected"),
    [
        ("grounded", "Grounded", 1.0, 0.7),
        ("grounded", "Partly grounded", 0.5, 0.5),
        ("grounded", "Ungrounded", 0.0, 0.3),
        ("politeness", "Polite", 1.0, 0.6),
        ("politeness", "Rude", 0.0, 0.4),
        ("simplevqa", "Incorrect", 0.0, 0.2),
        ("simplevqa", "Not attempted", 0.0, 0.2),
        ("charthal", "1", 1.0, 0.6),
        ("truthful-critique-score", "8", 0.8, 0.6 * 0.8 + 0.04 * 4.7),
        ("of-the-service", "Fine", 1.0, 0.6),
    ],
)
def test_a_label_is_worth_its_place_in_the_task(
    task: str, label: str, score: float, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(monkeypatch)

    class Judge(Labels):
        def verdict_on(self, response: str) -> Verdict:
            labels: tuple[str, ...] = ("Fine", "Poor")
            if task != "of-the-service":
                variant = get_task(task).variants[0]
                labels = get_task(task).labels(variant)
            rest = 0.4 / (len(labels) - 1)
            chances = {each: 0.6 if each == label else rest for each in labels}
            return Verdict(status="scored", label=label, probabilities=chances)

    grade = Grader(Judge(), task=task).grade(QUESTION, "x", "y")
    assert grade.score == pytest.approx(score)
    assert grade.passed == (score == 1)
    assert grade.expected == pytest.approx(expected)


def test_an_error_type_does_not_change_what_a_label_is_worth() -> None:
    class Typed(Labels):
        def verdict_on(self, response: str) -> Verdict:
            chances = {"Correct": 0.1, "Partial; Reasoning Error": 0.6, "Wrong; Other": 0.3}
            return Verdict(
                status="scored",
                label="Partial",
                error_type="Reasoning Error",
                confidence=0.6,
                probabilities=chances,
            )

    grade = Grader(Typed()).grade(QUESTION, "x", "y")
    assert grade.score == 0.5
    assert grade.expected == pytest.approx(0.4)
    assert grade.reason == "Partial; Reasoning Error (confidence 0.60)"
    assert grade.metadata["error_type"] == "Reasoning Error"


def test_several_references_are_alternatives_unless_said_otherwise() -> None:
    judge = Labels()
    Grader(judge).grade(QUESTION, ["Elbe", "Labe"], RIGHT)
    Grader(judge).grade(QUESTION, "Elbe", RIGHT)
    Grader(judge, reference_mode="all", task="hieval-ea").grade(QUESTION, ("a", "b"), RIGHT)
    several, one, parts = judge.seen
    assert (several.references, several.reference_mode) == (("Elbe", "Labe"), "any")
    assert (one.references, one.reference_mode) == (("Elbe",), "all")
    assert (parts.references, parts.reference_mode, parts.task) == (("a", "b"), "all", "hieval-ea")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("a", "a"),
        (4.5, "4.5"),
        ({"question": "a"}, "a"),
        (
            {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
            "b",
        ),
        ([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}]}], "a"),
        ({"a": "ü", "b": 1}, '{"a": "ü", "b": 1}'),
        ({"messages": [SimpleNamespace(content="a"), SimpleNamespace(content="b")]}, "b"),
        (SimpleNamespace(content=[{"type": "text", "text": "a"}]), "a"),
        ([], "[]"),
        ({"content": None}, ""),
    ],
)
def test_texts_are_found_in_what_tools_pass(value: Any, text: str) -> None:
    assert text_in(value) == text


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        (42, ("42",)),
        (0, ("0",)),
        (3.5, ("3.5",)),
        (True, ("true",)),
        (np.int64(7), ("7",)),
        (np.array(["a", "b"]), ("a", "b")),
        (np.array([]), ()),
        ([SimpleNamespace(content="a"), SimpleNamespace(content="b")], ("b",)),
        ({"answers": ["a", "b"]}, ("a", "b")),
        ({"messages": [{"role": "user", "content": "a"}, {"role": "ai", "content": "b"}]}, ("b",)),
        (math.nan, ()),
        ([math.nan, "a"], ("a",)),
        (None, ()),
    ],
)
def test_references_of_any_column(reference: Any, found: tuple[str, ...]) -> None:
    request = Grader(Labels(), task="criterion", criteria=["x"]).request("?", reference, "y")
    assert request.references == found


def test_a_row_whose_reference_is_missing_has_no_reward() -> None:
    reward = AnswerReward(Labels())
    given = reward(["?"] * 3, [RIGHT] * 3, reference=["The Elbe.", math.nan, ""])
    assert given == [pytest.approx(0.85), None, None]


def test_without_a_label_there_is_an_error() -> None:
    grader = Grader(Labels())
    for response in (BROKEN, ""):
        with pytest.raises(NoLabel):
            grader.grade(QUESTION, "x", response)
        with pytest.raises(NoLabel):
            asyncio.run(grader.agrade(QUESTION, "x", response))
    with pytest.raises(FieldError) as error:
        grader.grade(QUESTION, "x", RIGHT, no_such_field=1)
    assert error.value.field == "no_such_field"


def test_of_a_batch_only_the_failed_rows_lack_a_grade() -> None:
    grader = Grader(Labels())
    requests = [grader.request(QUESTION, "x", text) for text in (RIGHT, BROKEN, WRONG)]
    right, broken, wrong = grader.grades(requests)
    assert right is not None and right.passed
    assert wrong is not None and not wrong.passed
    assert broken is None
    with pytest.raises(NoLabel):
        grader.grades(requests[1:2])
    assert grader.grades([]) == []


def test_a_service_is_asked_by_its_address_and_gives_the_same() -> None:
    judge = FakeJudge()
    with serving_judges({"fake": judge}) as url:
        grader = Grader(url)
        assert Grader(url).judge is grader.judge
        assert grader.grade(QUESTION, "Elbe", RIGHT).passed
        assert not grader.grade(QUESTION, "Elbe", WRONG).passed
        with pytest.raises(NoLabel):
            grader.grade(QUESTION, None, RIGHT)
    with pytest.raises(CustosError):
        Grader(f"{url}/elsewhere", task="no-such-task").grade(QUESTION, "x", RIGHT)


def test_an_evaluator_of_openevals() -> None:
    evaluate = answer_evaluator(Labels(), key="river")
    given = {"inputs": {"question": QUESTION}, "reference_outputs": {"answer": "Elbe"}}
    result = evaluate(outputs={"answer": RIGHT}, **given)
    assert (result["key"], result["score"]) == ("river", 1.0)
    assert evaluate(outputs=CLOSE, **given)["score"] == 0
    assert asyncio.run(async_answer_evaluator(Labels())(outputs=PARTIAL, **given))["score"] == 0.5
    with pytest.raises(NoLabel):
        evaluate(outputs=BROKEN, **given)


def test_an_assertion_of_promptfoo() -> None:
    judge = Labels()
    get_assert = answer_assertion(judge, question="q")
    context = {"vars": {"q": QUESTION, "reference": ["Elbe", "Labe"]}}
    assert get_assert(RIGHT, context)["pass"] is True
    for response, score in ((PARTIAL, 0.5), (CLOSE, 0)):
        result = get_assert(response, context)
        assert (result["pass"], result["score"]) == (False, score)
    assert judge.seen[0].references == ("Elbe", "Labe")
    with pytest.raises(NoLabel):
        get_assert(BROKEN, context)


def test_process_results_of_lm_eval() -> None:
    process_results = answer_scorer(Labels(), metric="river")
    doc = {"question": QUESTION, "answer": "Elbe"}
    assert process_results(doc, [RIGHT]) == {"river": 1.0}
    assert process_results(doc, [[PARTIAL]]) == {"river": 0.5}
    assert process_results(doc, [CLOSE]) == {"river": 0.0}
    assert math.isnan(process_results(doc, [BROKEN])["river"])


def test_a_reward_of_trl() -> None:
    judge = Labels()
    reward = AnswerReward(judge)
    prompts = [[{"role": "user", "content": QUESTION}]] * 4
    completions = [[{"role": "assistant", "content": text}] for text in (RIGHT, BROKEN, CLOSE, "x")]
    columns = {"reference": ["Elbe", "Elbe", ["Elbe", "Labe"], None], "completion_ids": [[1]] * 4}
    found = reward(prompts=prompts, completions=completions, trainer_state=None, **columns)
    assert found == [pytest.approx(0.85), None, pytest.approx(0.485), None]
    assert [request.question for request in judge.seen] == [QUESTION] * 3
    AnswerReward(judge)(["?"], [RIGHT], reference=["Elbe"], question=["Where?"])
    assert judge.seen[-1].question == "Where?"
    with pytest.raises(NoLabel):
        reward(["?"], [BROKEN], reference=["Elbe"])
    assert reward(["?"], [RIGHT], reference=[None]) == [None]


def test_an_assertion_of_pytest() -> None:
    judge = Labels()
    grade = assert_judged(RIGHT, question=QUESTION, reference="Elbe", judge=judge)
    assert grade.label == "Correct"
    for response in (WRONG, PARTIAL, CLOSE):
        with pytest.raises(AssertionError):
            assert_judged(response, question=QUESTION, reference="Elbe", judge=judge)
    with pytest.raises(NoLabel):
        assert_judged(BROKEN, question=QUESTION, reference="Elbe", judge=judge)
