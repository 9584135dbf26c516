"""Responses to a question brought together: every one meets as many others as it has to."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_prep.construction.model_writer import load_rows
from data_prep.construction.responses import (
    Question,
    group_responses,
    match_ups,
    pair_responses,
)
from judging.errors import CustosError
from judging.types import JudgeRequest
from tests.cli.prep.made_up import run, write_rows
from tests.data_prep.construction.made_up import lines


def _response(question: str, model: str) -> JudgeRequest:
    return JudgeRequest(
        id=f"{question}/{model}",
        question=f"What is {question}?",
        references=("4",),
        responses=(f"{model} says 4",),
        metadata={"item": question, "answerer": model, "level": 2},
    )


@given(st.integers(2, 12), st.data())
def test_everyone_meets_enough_others_in_the_fewest_pairs(count: int, data: st.DataObject) -> None:
    least = data.draw(st.integers(1, count - 1))
    pairs = match_ups(count, least)
    assert all(a != b for a, b in pairs)
    assert len({frozenset(pair) for pair in pairs}) == len(pairs), "nobody meets the same one twice"
    met = Counter(place for pair in pairs for place in pair)
    assert min(met[place] for place in range(count)) == least
    assert len(pairs) == -(-count * least // 2)


def test_pairs_are_of_one_question_and_in_either_order() -> None:
    models = [f"m{n}" for n in range(6)]
    given = [_response(f"q{n}", model) for n in range(20) for model in models]
    pairs, too_few = pair_responses([*given, *(_response("few", m) for m in models[:3])], 3)
    assert too_few == ["few"]
    assert len(pairs) == 20 * 9
    first = pairs[0]
    (a, b), question = first["metadata"]["answerers"], first["metadata"]["item"]
    assert first["id"] == f"{question}/{a}/{b}"
    assert first["responses"] == [f"{a} says 4", f"{b} says 4"]
    assert (first["task"], first["references"]) == ("truthful-pair", ["4"])
    assert first["metadata"] == {"item": question, "level": 2, "answerers": [a, b]}
    met = Counter(
        (row["metadata"]["item"], model) for row in pairs for model in row["metadata"]["answerers"]
    )
    assert set(met.values()) == {3}
    firsts = Counter(row["metadata"]["answerers"][0] for row in pairs)
    assert all(10 < firsts[model] < 50 for model in models)
    assert len({frozenset(row["metadata"]["answerers"]) for row in pairs}) == 15
    assert pair_responses(given, 3) == pair_responses(given, 3)


@pytest.mark.parametrize(("count", "sizes"), [(3, [3]), (4, [4]), (5, [3, 2]), (9, [3, 3, 3])])
def test_up_to_four_responses_are_scored_together(count: int, sizes: list[int]) -> None:
    rows = group_responses([_response("q", f"m{n}") for n in range(count)])
    assert [len(row["responses"]) for row in rows] == sizes
    names = [name for row in rows for name in row["metadata"]["answerers"]]
    assert sorted(names) == [f"m{n}" for n in range(count)]
    for row in rows:
        said = [f"{name} says 4" for name in row["metadata"]["answerers"]]
        assert row["responses"] == said


def test_pairs_say_what_holds_of_both_responses() -> None:
    responses = [_response("q", f"m{n}") for n in range(2)]
    for response, more in zip(responses, ({"cut_off": "yes"}, {}), strict=True):
        response.metadata.update(domain="art", **more)
    for seed in range(4):
        [pair], _ = pair_responses(responses, 1, seed)
        assert pair["metadata"].keys() == {"item", "domain", "level", "answerers"}


def test_questions_of_a_spreadsheet_hold_references_in_one_cell(tmp_path: Path) -> None:
    table = tmp_path / "questions.csv"
    table.write_text("id,question,references,answer\n1,Who?,Ann;Ben,\n2,Who?,,a; b\n")
    assert [row.references for row in load_rows(table, Question)] == [("Ann", "Ben"), ("a; b",)]
    lines = tmp_path / "questions.jsonl"
    lines.write_text('{"id": "1", "question": "Who?", "references": "Ann; Ben"}\n')
    assert [row.references for row in load_rows(lines, Question)] == [("Ann; Ben",)]


def test_the_verb_writes_pairs_for_sheets(tmp_path: Path) -> None:
    rows = [_response("q", f"m{n}").model_dump(mode="json", exclude_unset=True) for n in range(5)]
    source, out = write_rows(tmp_path / "rows.jsonl", rows), tmp_path / "pairs.jsonl"
    shown = run("construct", "pair", "--in", source, "--out", out).stdout
    assert "8 pairs, 0 questions with too few responses" in shown
    run("construct", "sheet", "truthful-pair", "--in", out, "--out", tmp_path / "anna.csv")
    sheet = (tmp_path / "anna.csv").read_text(encoding="utf-8-sig")
    assert sheet.count("says 4") == 16
    assert len(lines(out)) == 8
    scores = tmp_path / "scores.jsonl"
    shown = run("construct", "pair", "--in", source, "--out", out, "--scores", scores).stdout
    assert "5 responses to score, in 2 rows" in shown
    run("construct", "sheet", "truthful-scores", "--in", scores, "--out", tmp_path / "ben.csv")
    assert (tmp_path / "ben.csv").read_text(encoding="utf-8-sig").count("says 4") == 5
    with pytest.raises(CustosError, match="no question has the responses of 6 models"):
        run("construct", "pair", "--in", source, "--match-ups", 5, "--out", out)
