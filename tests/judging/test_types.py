"""Records that people write, and arithmetic on labels at its edges."""

import math
import shlex
from typing import Any

import pytest
from pydantic import ValidationError

from judging.errors import CustosError, FieldError, InvalidRequest, Unparsed
from judging.labels import (
    best_label,
    labels_option,
    likely_label,
    log_probabilities,
    normalise,
    score_logprobs,
)
from judging.tasks import get_task, task_names
from judging.types import MAX_TEXT_CHARS, JudgeRequest, LabelledExample, Verdict, parse_record
from tests.judging.tasks.made_up import declare


def test_responses_and_references_under_any_name() -> None:
    for given in ({"response": "a"}, {"responses": ["a"]}, {"responses": ("a",)}):
        row = {"question": "?", **given}
        request = JudgeRequest.model_validate(row)
        assert row == {"question": "?", **given}, "the caller's row is left alone"
        assert request.responses == ("a",)
        assert request.response == "a"
        assert "reasoning" not in request.model_dump(), "rows and keys stay as they were"
    for pair in ({"response_a": "a", "response_b": "b"}, {"responses": ["a", "b"]}):
        request = JudgeRequest.model_validate({"question": "?", **pair})
        assert request.responses == ("a", "b")
    for references, read in (("Mary Shelley", ("Mary Shelley",)), ("", ())):
        one = {"question": "?", "response": "a", "references": references}
        assert JudgeRequest.model_validate(one).references == read


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "responses"),
        ({"responses": []}, "at least 1 item"),
        ({"responses": ["a", "b", "c"]}, "at most 2 items"),
        ({"response_a": "a"}, "a pair needs both"),
        ({"response_b": "b"}, "a pair needs both"),
        ({"response": "a", "responses": ["a"]}, "give only one of"),
        ({"response": "a", "response_a": "a", "response_b": "b"}, "give only one of"),
        ({"response": "a", "reference_mode": "some"}, "'all', 'any' or 'any-partial'"),
        ({"response": "a" * (MAX_TEXT_CHARS + 1)}, "at most 200000 characters"),
        ({"response": 3}, "valid string"),
    ],
)
def test_bad_requests(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        JudgeRequest.model_validate({"question": "?", **given})


def test_an_example_gives_away_only_its_request() -> None:
    example = LabelledExample(
        question="?", responses=("a",), label="Wrong", critique="no", metadata={"answerer": "ant"}
    )
    request = example.request()
    assert type(request) is JudgeRequest
    assert request == JudgeRequest(question="?", responses=("a",), metadata={"answerer": "ant"})
    assert not hasattr(request, "label")


@pytest.mark.parametrize(
    ("field", "value"),
    [("weight", -1), ("confidence", 1.1), ("split", "x"), ("seed", 2**64), ("seed", -(2**63) - 1)],
)
def test_example_ranges(field: str, value: object) -> None:
    row = {"question": "?", "response": "a", "label": "Wrong", field: value}
    with pytest.raises(CustosError, match=f"^rows.jsonl row 3: field '{field}': "):
        parse_record(LabelledExample, row, "rows.jsonl row 3")


def test_a_verdict_decides_nothing_by_default() -> None:
    verdict = Verdict(status="unparsed")
    assert (verdict.label, verdict.confidence, verdict.score) == (None, None, None)
    with pytest.raises(ValidationError, match="status"):
        Verdict.model_validate({"status": "fine"})


@pytest.mark.parametrize(
    ("error", "status", "field"),
    [
        (FieldError("images", "not readable"), "invalid", "images"),
        (FieldError("images", "not readable", "a.jsonl row 3"), "invalid", "images"),
        (InvalidRequest("the server answered 400"), "invalid", None),
        (Unparsed("the reply is none of the labels"), "unparsed", None),
        (CustosError("field 'images': said a server"), "judge_error", None),
    ],
)
def test_a_verdict_knows_which_field_was_wrong(
    error: CustosError, status: str, field: str | None
) -> None:
    request = JudgeRequest(id="7", question="q", responses=("r",))
    verdict = Verdict.from_error(error, request, judge_name="qs", judge="fingerprint")
    assert (verdict.id, verdict.status, verdict.label) == ("7", status, None)
    assert (verdict.message, verdict.judge_name) == (str(error), "qs")
    assert verdict.judge == "fingerprint"
    assert "rubric" not in verdict.model_dump_json(exclude_unset=True), "files leave it out"
    fault = verdict.model_copy(update={"id": "8"}).field_error
    assert (fault.field if fault else None) == field
    assert fault is None or fault.message == "not readable"
    # The field is not part of the file format.
    read = Verdict.model_validate_json(verdict.model_dump_json())
    assert (read.message, read.field_error) == (verdict.message, None)


@pytest.mark.parametrize(
    ("row", "field", "message"),
    [
        ({"response": "a", "qestion": "?"}, "qestion", "unknown field; the nearest is 'question'"),
        ({"response": "a", "zzz": "?"}, "zzz", "unknown field"),
        ({}, "responses", "Field required"),
        ({"response": "a", "references": None}, "references", 'expected a list, such as ["text"]'),
        ({"response": "a", "references": ["x", None]}, "references.1", "expected a text, got null"),
        ({"response": "a", "references": None}, "references", ", got null"),
        ({"response": "a", "seed": None}, "seed", ", got null"),
        ({"response": "a", "order": None}, "order", ", got null"),
        (["not", "an", "object"], "", "expected a JSON object"),
        ({"response": "a", "responses": ["a"]}, "", "give only one of 'responses'"),
        ({"answer_a": "a", "response_b": "b"}, "", "a pair needs both"),
    ],
)
def test_mistakes_are_named_for_users(row: Any, field: str, message: str) -> None:
    row = {"question": "?"} | row if isinstance(row, dict) else row
    with pytest.raises(CustosError, match=r"^a\.jsonl row 7: ") as caught:
        parse_record(JudgeRequest, row, "a.jsonl row 7")
    assert getattr(caught.value, "field", "") == field
    assert message in str(caught.value)


@pytest.mark.parametrize("field", ["task", "variant"])
def test_a_verdict_holds_the_error_on_the_longest_of_texts(field: str) -> None:
    fields = {"question": "?", "response": "a", field: "x" * MAX_TEXT_CHARS}
    request = JudgeRequest.model_validate(fields)
    with pytest.raises(FieldError) as caught:
        get_task(request.task).check(request)
    message = Verdict.from_error(caught.value, request).message or ""
    assert message.startswith(f"field '{field}': 'xxx")
    assert " [...] x" in message and " is not one of " in message[-2000:]
    assert len(message) < 11_000


GRADES = ("Correct", "Partial", "Wrong")


EA = get_task("hieval-ea").labels("plain/all")


@pytest.mark.parametrize(
    ("text", "labels", "meant"),
    [
        ("correct", GRADES, "Correct"),
        ("RIGHT", GRADES, "Correct"),
        (" true. ", GRADES, "Correct"),
        ("1", GRADES, None),
        ("0.5", GRADES, None),
        ("positive", GRADES, None),
        ("partly", GRADES, "Partial"),
        ("partly", ("Correct", "Wrong"), None),
        ("wrong", ("Named", "Missed"), None),
        ("no", GRADES, "Wrong"),
        ("sort of", GRADES, None),
        ("", GRADES, None),
        ("first", ("A", "B", "None"), None),  # a place is no response of a pair
        ("2", ("A", "B", "None"), None),
        ("wrong;reasoning_error", EA, "Wrong; Reasoning Error"),
        ("wrong", EA, None),
    ],
)
def test_words_for_labels(text: str, labels: tuple[str, ...], meant: str | None) -> None:
    assert likely_label(text, labels) == meant


@pytest.mark.parametrize(
    ("text", "task", "meant"),
    [
        ("half", "grounded", "Partly grounded"),
        ("Partly", "grounded", "Partly grounded"),
        ("partially grounded", "grounded", "Partly grounded"),
        ("Not grounded", "grounded", "Ungrounded"),
        ("un-grounded", "grounded", "Ungrounded"),
        ("fully grounded", "grounded", "Grounded"),
        ("wrong", "grounded", "Ungrounded"),
        ("ok", "grounded", "Grounded"),
        ("sort of", "grounded", None),
        ("underground", "grounded", None),
        ("half", "politeness", None),
        ("impolite", "politeness", "Rude"),
        ("good", "politeness", "Polite"),
        ("half", "simplevqa", None),
        ("wrong", "simplevqa", "Incorrect"),
        ("not correct", "simplevqa", None),
        ("half", "truthful-critique-score", None),
        ("good", "truthful-pair", None),
        ("not met", "criterion", "Fail"),
        ("yes", "charthal", None),
    ],
)
def test_words_for_labels_by_place(
    text: str, task: str, meant: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(monkeypatch)
    known = get_task(task)
    [rubric, *_] = known.rows_by_rubric()
    assert likely_label(text, known.labels(rubric), worth=known.worth(rubric)) == meant


@pytest.mark.parametrize(
    ("labels", "column", "option"),
    [
        (GRADES, "is_correct", "--labels true=Correct,no=Wrong"),
        (GRADES, "verdict", "--labels true=Correct,no=Wrong"),
        (GRADES, "is_wrong", "--labels 'true=?,no=?'"),
        (("Faithful", "Hallucinated"), "verdict", "--labels 'true=?,no=?'"),
    ],
)
def test_truth_values_of_columns(labels: tuple[str, ...], column: str, option: str) -> None:
    """A column that asks for the fault, or a task about one, leaves open what "true" means."""
    assert labels_option(dict.fromkeys(("true", "no"), labels), column) == option


@pytest.mark.parametrize("name", task_names())
def test_every_declared_label_is_found_in_lower_case(name: str) -> None:
    task = get_task(name)
    for rubric in ("plain/all", "plain/any") if "hieval" in name else task.variants:
        for label in task.labels(rubric):
            assert likely_label(label.lower(), task.labels(rubric)) == label


def test_the_option_can_be_copied_into_a_shell() -> None:
    option = labels_option(dict.fromkeys(("it's so-so", "fine; $(rm)"), GRADES))
    assert shlex.split(option or "") == ["--labels", "it's so-so=?,fine; $(rm)=?"]
    for label in ("a,b", "a=b", "two\nlines", "\x1b[31m"):
        assert labels_option({label: GRADES}) is None


def test_normalised_probabilities_sum_to_one_however_small_they_are() -> None:
    found = normalise({"A": -4000.0, "B": -4000.0 + math.log(3), "C": -math.inf})
    assert found == pytest.approx({"A": 0.25, "B": 0.75, "C": 0.0})
    logprobs = log_probabilities({"A": 1.0, "B": 0.0})
    assert logprobs["A"] == 0
    assert -1000 < logprobs["B"] < -500, "the logarithm of zero is finite"


def test_a_score_has_the_probability_of_all_its_types_and_is_decided_before_them() -> None:
    typed = {"Correct": 0.2, "Wrong; A": 0.3, "Wrong; B": 0.5}
    found = score_logprobs({label: math.log(p) for label, p in typed.items()})
    assert found == pytest.approx({"Correct": math.log(0.2), "Wrong": math.log(0.8)})
    assert best_label({"Correct": 0.4, "Wrong; A": 0.25, "Wrong; B": 0.35}) == "Wrong; B"
    assert best_label({"Correct": 0.3, "Wrong": 0.7}) == "Wrong"
