"""Models compared two by two, from files to ratings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.framework.base import get_benchmark
from benchmarks.framework.matches import (
    compare_rankings,
    pair_up,
    responses_by_id,
    tournament_table,
)
from evaluation.ranking.bradley_terry import MatchResults, bradley_terry
from judging.errors import CustosError, FieldError
from judging.types import Verdict
from tests.cli.bench.made_up import read, run, write
from tests.clients.conftest import fake
from tests.clients.fake_server import FakeServer, Say, completion
from tests.clients.remote.test_chat_judge import better

__all__ = ["fake"]

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
    found = tournament_table(matches, verdicts)
    assert found["models"]["x"]["points"] == 2 + 1 / 2 + 1 / 2
    assert found["win_rate"]["x"]["y"]["value"] == 3 / 4
    assert found["win_rate"]["x"]["y"]["n"] == 4
    assert found["coverage"] == 4 / 5
    assert found["statuses"] == {"scored": 3, "abstain": 1, "judge_error": 1}


def test_ratings_are_those_of_the_matches_and_questions_are_resampled_whole() -> None:
    """Ten copies of a question's matches are worth what the question is worth."""
    rng = np.random.default_rng(0)
    labels = [str(label) for label in rng.choice(["A", "B", "None"], 90, p=[0.5, 0.3, 0.2])]
    said = responses(x=["1"] * 90, y=["2"] * 90)
    matches = pair_up(TRUTHFUL, items(90), said, task="truthful-pair")
    verdicts = [verdict(label) for label in labels]
    found = tournament_table(matches, verdicts)
    outcomes = {"A": "A", "B": "B", "None": "tie"}
    alone = bradley_terry(MatchResults.of(("x", "y", outcomes[label]) for label in labels))
    assert found["models"]["x"]["rating"]["value"] == pytest.approx(alone.values[0], abs=1e-6)

    def width(table: dict[str, Any]) -> float:
        rate = table["win_rate"]["x"]["y"]
        return float(rate["high"] - rate["low"])

    copied = tournament_table(matches * 10, verdicts * 10)
    assert width(copied) == pytest.approx(width(found), rel=0.1)
    assert copied["questions"] == 90


def test_two_judges_rankings_agree_or_not() -> None:
    rng = np.random.default_rng(1)
    said = responses(x=["1"] * 60, y=["2"] * 60, z=["3"] * 60)
    matches = pair_up(TRUTHFUL, items(60), said, task="truthful-pair")
    labels = rng.choice(["A", "B"], len(matches), p=[0.75, 0.25])  # x over y over z
    verdicts = [verdict(str(label)) for label in labels]
    turned = [verdict("B" if label == "A" else "A") for label in labels]
    same = compare_rankings(matches, verdicts, verdicts)
    assert (same["value"], same["low"], same["high"], same["n"]) == (1, None, None, 3)
    other = compare_rankings(matches, verdicts, turned)
    assert (other["value"], other["matches"]) == (-1, 180)
    assert (same["same_outcome"]["value"], other["same_outcome"]["value"]) == (1, 0)
    tied = [verdict("None") if n % 3 == 0 else v for n, v in enumerate(verdicts)]
    agreement = compare_rankings(matches, verdicts, tied)["same_outcome"]
    assert (agreement["value"], agreement["n"]) == (pytest.approx(2 / 3), 180)
    assert compare_rankings(matches, tied, tied)["same_outcome"]["value"] == 1
    partly = [verdict(None, "judge_error") if n % 4 == 0 else v for n, v in enumerate(verdicts)]
    assert compare_rankings(matches, verdicts, partly)["matches"] == 135


def test_from_files_to_the_win_matrix(fake: FakeServer, tmp_path: Path) -> None:
    fake.answer = lambda seen: Say(body=completion(better(seen)))
    command: list[str | Path] = ["tournament", "truthfulvqa"]
    command += ["--items", write(tmp_path / "items.json", items(3))]
    for model, texts in (("x", "917"), ("y", "571"), ("z", "333")):
        rows = [{"question_id": f"q{n}", "response": text} for n, text in enumerate(texts)]
        command += ["--responses", f"{model}={write(tmp_path / f'{model}.json', rows)}"]
    out, table = tmp_path / "matches.jsonl", tmp_path / "table.json"
    command += ["--judge", fake.url, "--model", "m", "--task", "truthful-pure-label"]
    done = run(*command, "--out", out, "--json", table)
    assert done.exit_code == 0, done.stderr
    found = read(table)
    # x 9 1 7, y 5 7 1, z 3 3 3: who says more wins
    for first, second in (("x", "y"), ("x", "z"), ("y", "z")):
        assert found["win_rate"][first][second]["value"] == pytest.approx(2 / 3)
        assert found["win_rate"][second][first]["value"] == pytest.approx(1 / 3)
    assert list(found["models"]) == ["x", "y", "z"]
    assert len(out.read_text().splitlines()) == 9
    assert len(fake.seen) == 18  # both orders
    assert "9 matches on 3 questions: 9 scored" in done.stdout

    command += ["--out", tmp_path / "again.jsonl", "--json", table, "--against", out]
    done = run(*command)
    assert f"Kendall's tau-b with {out}: 1 (" in done.stdout
    assert f"same outcome as {out}: 1 (" in done.stdout
    assert read(table)["agreement"]["matches"] == 9
