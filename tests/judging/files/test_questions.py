"""Hashes of the questions that a judge was trained on."""

from __future__ import annotations

import base64
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from judging.errors import CustosError
from judging.files.questions import (
    HASHES_FILE,
    count_trained_on,
    question_hash,
    read_question_hashes,
    write_question_hashes,
)
from judging.types import JudgeRequest
from tests.tiny import save_picture


def ask(question: str, **fields: Any) -> JudgeRequest:
    return JudgeRequest(question=question, responses=("x",), **fields)


def test_spelling_does_not_matter_and_what_is_shown_does(tmp_path: Path) -> None:
    picture = save_picture(tmp_path / "a.png", 40, 40)
    content = base64.b64encode(Path(picture).read_bytes()).decode()
    same = {
        question_hash(ask("Who wrote the Iliad?", images=(picture,))),
        question_hash(ask("who wrote Iliad", images=(f"data:image/png;base64,{content}",))),
    }
    assert len(same) == 1
    others = {
        question_hash(ask("Who wrote the Iliad?")),
        question_hash(ask("Who wrote the Iliad?", choices=("Homer",))),
        question_hash(ask("Who wrote the Aeneid?", images=(picture,))),
    }
    assert len(others | same) == 4


def test_pictures_in_requests_are_not_kept() -> None:
    megabyte = "A" * 2**20
    question_hash(ask("Which?"))  # what a first call loads is no picture
    tracemalloc.start()
    for number in range(20):
        question_hash(ask("Which?", images=(f"data:image/png;base64,{number:04d}{megabyte}",)))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 5 * 2**20


def test_a_judge_knows_its_questions_and_those_of_its_start(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    assert count_trained_on(first, [ask("Why?")]) is None, "it does not say"
    write_question_hashes(first, [ask("Why?"), ask("why"), ask("Who?")])
    assert (first / HASHES_FILE).stat().st_size == 16
    write_question_hashes(second, [ask("When?")], first)
    assert count_trained_on(second, [ask("WHY"), ask("Why?"), ask("When?"), ask("Where?")]) == 3
    assert count_trained_on(first, [ask("When?")]) == 0
    (first / HASHES_FILE).write_bytes(b"1234567")
    with pytest.raises(CustosError, match=r"question_hashes\.bin: damaged: 7 bytes"):
        read_question_hashes(first)
