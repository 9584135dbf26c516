"""A run that was stopped while it graded at its end goes on where it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from judging.judge import Judge
from judging.types import LabelledExample
from tests.train.made_up import example
from train.finish import grading as kept_grades
from train.finish.grading import FOLDER, KeptGrades, KeptWindow, Processes

Grade = Callable[[Sequence[LabelledExample]], list[list[float]]]


@pytest.fixture(autouse=True)
def windows_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_grades, "WINDOW", 3)


def grading(calls: list[list[str]], stopped_at: int | None = None) -> Grade:
    """Return numbers that no float32 holds; stop at a call, counted from 0."""

    def grade(rows: Sequence[LabelledExample]) -> list[list[float]]:
        if len(calls) == stopped_at:
            raise KeyboardInterrupt
        calls.append([row.id or "" for row in rows])
        return [[int(row.id or 0) / 3, -1e-300] for row in rows]

    return grade


ROWS = [example(i, id=str(i), question=f"question {i}") for i in range(8)]


def graded(
    folder: Path, judge: Judge, rows: Sequence[LabelledExample], grade: Grade
) -> list[list[float]]:
    return KeptGrades(folder, Processes()).grade(
        "scoring", judge, rows, grade, KeptWindow[list[float]]
    )


def test_whole_windows_are_kept_and_only_the_rest_is_graded(small: str, tmp_path: Path) -> None:
    judge = Judge.load(small, device="cpu")
    calls: list[list[str]] = []
    later: list[list[str]] = []
    uninterrupted = graded(tmp_path / "other", judge, ROWS, grading([]))
    with pytest.raises(KeyboardInterrupt):
        graded(tmp_path, judge, ROWS, grading(calls, stopped_at=2))
    assert [len(rows) for rows in calls] == [3, 3]
    assert graded(tmp_path, judge, ROWS, grading(later)) == uninterrupted
    assert [len(rows) for rows in later] == [2]
    assert sorted(sum(calls + later, [])) == [str(i) for i in range(8)]


def test_a_line_that_was_cut_off_is_graded_again(small: str, tmp_path: Path) -> None:
    judge = Judge.load(small, device="cpu")
    later: list[list[str]] = []
    expected = graded(tmp_path, judge, ROWS, grading([]))
    [file] = (tmp_path / FOLDER).iterdir()
    file.write_bytes(file.read_bytes()[:-7])
    assert graded(tmp_path, judge, ROWS, grading(later)) == expected
    assert [len(rows) for rows in later] == [2]
    assert graded(tmp_path, judge, ROWS, grading([], stopped_at=0)) == expected


def test_other_rows_and_another_judge_are_graded_anew(small: str, tmp_path: Path) -> None:
    judge = Judge.load(small, device="cpu")
    calls: list[list[str]] = []
    graded(tmp_path, judge, ROWS, grading([]))
    changed = [*ROWS[:7], ROWS[7].model_copy(update={"references": ("other",)})]
    graded(tmp_path, judge, changed, grading(calls))
    assert len(calls) == 1
    judge.adapter_sha256 = "0" * 64
    calls.clear()
    graded(tmp_path, judge, changed, grading(calls))
    assert len(calls) == 3


def test_nothing_stays_of_a_finished_run(small: str, tmp_path: Path) -> None:
    graded(tmp_path, Judge.load(small, device="cpu"), ROWS, grading([]))
    KeptGrades(tmp_path, Processes()).delete()
    assert list(tmp_path.iterdir()) == []
