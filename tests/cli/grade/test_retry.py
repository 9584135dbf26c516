"""``custos grade`` after rows that could not be judged, and where OUT cannot be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from judging.judge import Judge
from tests.cli.grade.test_verdicts import Run, failing_on_rome, judge, many, read, run
from tests.serve.made_up import FakeJudge

__all__ = ["judge", "run"]


def test_rows_that_failed_in_a_finished_run_can_be_tried_again(
    run: Run, judge: FakeJudge, tmp_path: Path
) -> None:
    out, partial = tmp_path / "out.jsonl", tmp_path / "out.jsonl.partial"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge, "verdict_on", failing_on_rome(judge))
        done = run(many(10), "--batch", "4")  # the last batch is short
    assert done.exit_code == 1
    assert "--retry-failed asks again for the rows with judge_error" in done.stderr
    assert partial.exists()
    first = out.read_bytes()
    judge.batches.clear()
    assert run(None, "--batch", "4").exit_code == 1
    assert (judge.batches, out.read_bytes()) == ([], first)
    done = run(None, "--batch", "4", "--retry-failed")
    assert judge.batches == [["1", "4", "7", "10"]]
    assert "--retry-failed" not in done.stderr
    assert [v["label"] for v in read(out)] == [*["Wrong", "Correct", "Correct"] * 3, "Wrong"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_a_last_batch_that_has_grown_is_graded_again(
    run: Run, judge: FakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "verdict_on", failing_on_rome(judge))
    run(many(10), "--batch", "4")
    judge.batches.clear()
    run(many(11), "--batch", "4")
    assert judge.batches == [["9", "10", "11"]]


def test_a_folder_that_cannot_be_made_is_one_line_before_a_judge_is_loaded(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Judge, "load", lambda source: pytest.fail("loaded"))
    done = run(many(1), out="in.jsonl/verdicts/out.jsonl")
    assert done.exit_code == 2
    assert f"there is no folder {tmp_path / 'in.jsonl'}; " in done.stderr
