"""``custos calibrate`` that is stopped and given again, and rows that it refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from judging.files.records import write_records
from judging.judge import Judge
from judging.judge.card import JudgeCard
from judging.models.adapters import add_adapter
from judging.models.backbones import load_backbone
from judging.types import JudgeRequest
from tests.train.made_up import example

BATCH = 4
NUM_ROWS = 15
KEPT = "calibration.json.partial"


@pytest.fixture
def judge(small: str, tmp_path: Path) -> Path:
    """Folder of a judge of hieval-qs that knows one rubric."""
    folder = tmp_path / "judge"
    backbone = load_backbone(small, dtype="float32", device="cpu")
    add_adapter(backbone.model, r=2, alpha=2).save_pretrained(str(folder))
    card = JudgeCard.for_rubrics(backbone, {"hieval-qs": ("plain/any",)}, response_budget=50)
    (folder / "judge.json").write_text(card.model_dump_json(), encoding="utf-8")
    return folder


class Scored:
    """Record of the rows that judges scored, a list for each call."""

    def __init__(self) -> None:
        self.calls: list[list[str | None]] = []
        self.stop_at: int | None = None

    def counting(self, logprobs: Callable[..., Any]) -> Callable[..., Any]:
        def count(judge: Judge, requests: Sequence[JudgeRequest]) -> Any:
            if self.stop_at == len(self.calls):
                raise KeyboardInterrupt
            self.calls.append([request.id for request in requests])
            return logprobs(judge, requests)

        return count


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> Scored:
    scored = Scored()
    monkeypatch.setattr(Judge, "logprobs", scored.counting(Judge.logprobs))
    monkeypatch.setattr("cli.eval.WINDOW", BATCH)
    return scored


def run(judge: Path, data: Path) -> Any:
    arguments = ["calibrate", str(judge), "--data", str(data)]
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_it_goes_on_and_ends_with_the_same_file(
    judge: Path, scored: Scored, tmp_path: Path
) -> None:
    data = tmp_path / "cal.jsonl"
    write_records(data, [example(number) for number in range(NUM_ROWS)])
    result = run(judge, data)
    assert result.exit_code == 0, result.stderr
    assert f"{NUM_ROWS}/{NUM_ROWS}" in result.stderr, "a progress bar"
    whole = (judge / "calibration.json").read_bytes()
    in_one_run, scored.calls = scored.calls, []
    assert len(in_one_run) == 4

    scored.stop_at = 2
    assert run(judge, data).exit_code == 130
    with (judge / KEPT).open("ab") as file:
        file.write(b'{"row": 3, "ke')  # killed while it wrote
    scored.stop_at = None
    assert run(judge, data).exit_code == 0
    assert scored.calls == in_one_run, "nothing is scored twice"
    assert (judge / "calibration.json").read_bytes() == whole
    assert not (judge / KEPT).exists()


def test_scores_of_other_rows_are_not_mixed_in(judge: Path, scored: Scored, tmp_path: Path) -> None:
    data = tmp_path / "cal.jsonl"
    write_records(data, [example(number) for number in range(NUM_ROWS)])
    scored.stop_at = 1
    assert run(judge, data).exit_code == 130
    scored.stop_at = None
    write_records(data, [example(number, references=("red",)) for number in range(NUM_ROWS)])
    result = run(judge, data)
    assert result.exit_code == 2
    assert f"{judge / KEPT}: line 1 is a result on something else" in result.stderr
    assert not (judge / "calibration.json").exists()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"task": "truthful-pair", "responses": ("green", "brown"), "label": "A"},
            "field 'task': judge 'judge' was trained for hieval-qs, not 'truthful-pair'",
        ),
        (
            {"references": ("green", "red"), "reference_mode": "all"},
            "field 'reference_mode': judge 'judge' was trained for hieval-qs under plain/any",
        ),
        ({"references": ("green " * 5000,)}, "field 'references': the prompt has "),
    ],
)
def test_a_row_that_the_judge_cannot_take_is_named_before_any_is_scored(
    judge: Path, scored: Scored, tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    data = tmp_path / "cal.jsonl"
    write_records(data, [*map(example, range(9)), example(9, **fields)])
    result = run(judge, data)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {data}: row '9': {message}")
    assert scored.calls == []


def test_nothing_is_scored_where_all_rows_have_one_label(
    judge: Path, scored: Scored, tmp_path: Path
) -> None:
    data = tmp_path / "cal.jsonl"
    write_records(data, [example(3 * number) for number in range(9)])
    result = run(judge, data)
    assert result.exit_code == 2
    assert "all calibration rows are labelled 'Correct'" in result.stderr
    assert scored.calls == []
