"""Models compared two by two, from files to ratings."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from benchmarks.framework.base import get_benchmark
from benchmarks.framework.matches import Tournament, pair_up, responses_by_id
from judging.errors import CustosError, FieldError
from judging.types import Verdict

TRUTHFUL = get_benchmark("truthfulvqa")
OPTIONS = ["a fish", "a bird", "a stone", "a cloud"]


def items(count: int) -> list[dict[str, Any]]:
    return [
        {"question_id": f"q{n}", "question": "What?", "options": OPTIONS, "answer": "B"}
        for n in range(count)
    ]


def responses(**said: Sequence[str]) -> dict[str, dict[str, str]]:
    return {model: {f"q{n}": text for n, text in enumerate(texts)} for model, texts in said.items()}


def verdict(label: str | None, status: str = "scored") -> Verdict:
    return Verdict.model_validate({"status": status, "label": label, "judge": "j"})


def test_every_two_models_meet_where_both_answered() -> None:
    said = responses(x=["1", "2"], y=["3", "4"], z=["5"])
    matches = pair_up(TRUTHFUL, items(3), said, task="truthful-pair", with_reference=True)
    assert [match.request.id for match in matches] == ["q0/x/y", "q0/x/z", "q0/y/z", "q1/x/y"]
    request = matches[1].request
    assert (request.responses, request.references) == (("1", "5"), ("a bird",))
    plain = pair_up(TRUTHFUL, items(1), said, task="truthful-pair")
    assert plain[0].request.references == ()
    # Results of the official code have another name for the right option.
    made = [{("ground_truth" if k == "answer" else k): v for k, v in items(1)[0].items()}]
    match, *_ = pair_up(TRUTHFUL, made, said, task="truthful-pair", with_reference=True)
    assert match.request.references == ("a bird",)


def test_what_cannot_be_paired() -> None:
    for said in (responses(x=["1"]), {"x": {"q0": "1"}, "y": {"q9": "1"}}):
        with pytest.raises(CustosError):
            pair_up(TRUTHFUL, items(1), said, task="truthful-pair")
    said = responses(x=["1"], y=["2"])
    for answer in ("", "()", "E", "AB", "yes"):
        rows = [{**items(1)[0], "answer": answer}]
        with pytest.raises(FieldError) as error:
            pair_up(TRUTHFUL, rows, said, task="truthful-pair", with_reference=True)
        assert (error.value.location, error.value.field) == ("item 'q0'", "answer")


def test_responses_need_ids_of_their_own() -> None:
    row = {"question_id": "q0", "response": "1"}
    assert responses_by_id(TRUTHFUL, [row]) == {"q0": "1"}
    for rows, field in (
        ([row, row], "question_id"),
        ([{"response": "1"}], "question_id"),
        ([{"question_id": "q0"}], "response"),
    ):
        with pytest.raises(FieldError) as error:
            responses_by_id(TRUTHFUL, rows)
        assert (error.value.location, error.value.field) == (f"row {len(rows)}", field)


def test_ties_flips_and_failures() -> None:
    matches = pair_up(TRUTHFUL, items(5), responses(x=["1"] * 5, y=["2"] * 5), task="truthful-pair")
    verdicts = [
        *(verdict("A"), verdict("A"), verdict("None")),
        *(verdict(None, "abstain"), verdict(None, "judge_error")),
    ]
    found = Tournament(matches, verdicts).table()
    assert found["models"]["x"]["points"] == 2 + 1 / 2 + 1 / 2
    assert found["win_rate"]["x"]["y"]["value"] == 3 / 4
    assert found["win_rate"]["x"]["y"]["n"] == 4
    assert found["coverage"] == 4 / 5
    assert found["statuses"] == {"scored": 3, "abstain": 1, "judge_error": 1}


def test_two_judges_rankings_agree_or_not() -> None:
    rng = np.random.default_rng(1)
    said = responses(x=["1"] * 60, y=["2"] * 60, z=["3"] * 60)
    matches = pair_up(TRUTHFUL, items(60), said, task="truthful-pair")
    labels = rng.choice(["A", "B"], len(matches), p=[0.75, 0.25])  # x over y over z
    verdicts = [verdict(str(label)) for label in labels]
    turned = [verdict("B" if label == "A" else "A") for label in labels]
    same = Tournament(matches, verdicts).compare(verdicts)
    assert (same["value"], same["low"], same["high"], same["n"]) == (1, 1, 1, 3)
    other = Tournament(matches, verdicts).compare(turned)
    assert (other["value"], other["matches"]) == (-1, 180)
    assert (same["same_outcome"]["value"], other["same_outcome"]["value"]) == (1, 0)
    tied = [verdict("None") if n % 3 == 0 else v for n, v in enumerate(verdicts)]
    agreement = Tournament(matches, verdicts).compare(tied)["same_outcome"]
    assert (agreement["value"], agreement["n"]) == (pytest.approx(2 / 3), 180)
    assert Tournament(matches, tied).compare(tied)["same_outcome"]["value"] == 1
    partly = [verdict(None, "judge_error") if n % 4 == 0 else v for n, v in enumerate(verdicts)]
    assert Tournament(matches, verdicts).compare(partly)["matches"] == 135
