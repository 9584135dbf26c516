"""What a run grades and calibrates at its end: on every process, and kept if it is stopped."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from cli.main import app
from judging.files.records import write_records
from judging.judge import Judge
from judging.judge.card import JudgeCard
from judging.models.adapters import add_adapter
from judging.models.backbones import load_backbone
from judging.types import LabelledExample
from judging.verdicts.calibration import NO_THRESHOLD, HeldOutVerdicts
from tests.forks import run_together
from tests.train.finish import graded_together
from tests.train.made_up import example, examples, labelled_pair, recipe, torchrun, trainer
from train.finish import grading
from train.finish.grading import (
    FOLDER,
    TOGETHER,
    KeptChunk,
    KeptGrades,
    Processes,
    affordable_rows,
    calibrate,
    grade_start,
    share_rows,
)


def run_folder(backbone: str, folder: Path, task: str = "hieval-qs", std: float = 0.05) -> Path:
    """A judge whose adapter does something unless ``std`` is 0, though it was not trained."""
    loaded = load_backbone(backbone, dtype="float32", device="cpu")
    adapted = add_adapter(loaded.model, r=4, alpha=8, seed=3)
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            parameter.data.normal_(std=std)
    adapted.save_pretrained(str(folder))
    card = JudgeCard.for_rubrics(loaded, {task: ("plain/any",)}, response_budget=1024)
    (folder / "judge.json").write_text(card.model_dump_json(), encoding="utf-8")
    return folder


@pytest.mark.parametrize("continued", [False, True])
def test_it_is_the_judge_that_the_run_started_from(
    small: str, tmp_path: Path, continued: bool
) -> None:
    init = run_folder(small, tmp_path / "init") if continued else None
    settings = recipe(
        tmp_path / "run",
        small,
        adapter__init=str(init) if init else None,
        optim__lr=5e-2,
        run__select="last",
    )
    learner = trainer(settings, small, examples(24))
    learner.fit()
    rows = [example(i, id=str(i)) for i in range(7)]
    verdicts = grade_start(learner, rows, KeptGrades(tmp_path, Processes()))
    judge = Judge.load(str(init or small), device="cpu", dtype="float32")
    expected = list(judge.grade([row.request() for row in rows]))
    assert list(verdicts) == list(range(7))
    for verdict, of_judge in zip(verdicts.values(), expected, strict=True):
        assert verdict.id == of_judge.id
        assert verdict.probabilities == pytest.approx(of_judge.probabilities, abs=1e-4)


def test_it_grades_in_the_modes_that_are_learnt(small: str, tmp_path: Path) -> None:
    """A judge writes critiques of pairs, unless it learns their labels at once, as here."""
    pairs = [labelled_pair(number) for number in range(8)]
    settings = recipe(tmp_path / "run", small, run__select="last", optim__max_steps=1)
    learner = trainer(settings, small, pairs, pairs)
    learner.fit()
    verdicts = grade_start(learner, pairs[:2], KeptGrades(tmp_path, Processes()))
    assert [verdict.critique for verdict in verdicts.values()] == [None, None]


def test_whole_questions_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [example(i, group=f"g{i // 3}") for i in range(30)]
    assert affordable_rows(rows, 0) == list(range(30))
    monkeypatch.setattr(grading, "MOST_SCORED", 10)
    drawn = affordable_rows(rows, 0)
    assert drawn == sorted(drawn)
    assert len(drawn) == 9
    assert {i // 3 * 3 + k for i in drawn for k in range(3)} == set(drawn)
    assert drawn != affordable_rows(rows, 1)
    one_question = [example(i, group="g") for i in range(11)]
    assert affordable_rows(one_question, 0) == list(range(10))


Grade = Callable[[Sequence[LabelledExample]], list[list[float]]]


@pytest.fixture
def chunks_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grading, "CHUNK", 3)


def grade_with(calls: list[list[str]], stopped_at: int | None = None) -> Grade:
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
        "scoring", judge, rows, grade, KeptChunk[list[float]]
    )


@pytest.mark.usefixtures("chunks_of_three")
def test_whole_chunks_are_kept_and_only_the_rest_is_graded(small: str, tmp_path: Path) -> None:
    judge = Judge.load(small, device="cpu")
    calls: list[list[str]] = []
    later: list[list[str]] = []
    again: list[list[str]] = []
    uninterrupted = graded(tmp_path / "other", judge, ROWS, grade_with([]))
    with pytest.raises(KeyboardInterrupt):
        graded(tmp_path, judge, ROWS, grade_with(calls, stopped_at=2))
    assert [len(rows) for rows in calls] == [3, 3]
    assert graded(tmp_path, judge, ROWS, grade_with(later)) == uninterrupted
    assert [len(rows) for rows in later] == [2]
    assert sorted(sum(calls + later, [])) == [str(i) for i in range(8)]

    [file] = (tmp_path / FOLDER).iterdir()
    file.write_bytes(file.read_bytes()[:-7])  # as a kill may cut off a line
    assert graded(tmp_path, judge, ROWS, grade_with(again)) == uninterrupted
    assert [len(rows) for rows in again] == [2]
    assert graded(tmp_path, judge, ROWS, grade_with([], stopped_at=0)) == uninterrupted


@pytest.mark.usefixtures("chunks_of_three")
def test_other_rows_and_another_judge_are_graded_anew(small: str, tmp_path: Path) -> None:
    judge = Judge.load(small, device="cpu")
    calls: list[list[str]] = []
    graded(tmp_path, judge, ROWS, grade_with([]))
    changed = [*ROWS[:7], ROWS[7].model_copy(update={"references": ("other",)})]
    graded(tmp_path, judge, changed, grade_with(calls))
    assert len(calls) == 1
    judge.adapter = {"adapter_sha256": "0" * 64}
    graded(tmp_path, judge, changed, grade_with(calls))
    assert len(calls) == 1 + 3


@pytest.mark.parametrize(("processes", "rows"), [(2, 9), (3, 2)], ids=["shared", "one is idle"])
def test_processes_give_the_verdicts_of_one(
    small: str, tmp_path: Path, processes: int, rows: int
) -> None:
    """Only the first process has the run folder; the others get it sent."""
    run = run_folder(small, tmp_path / "run")
    one, several = tmp_path / "one", tmp_path / "several"
    one.mkdir()
    several.mkdir()
    graded_together.run(run, one, rows)
    run_together(processes, graded_together.run, run, several, rows)
    expected, found = (
        json.loads((folder / "verdicts.json").read_text()) for folder in (one, several)
    )
    assert found["ids"] == expected["ids"] == [str(i) for i in range(rows)]
    for left, right in zip(found["probabilities"], expected["probabilities"], strict=True):
        assert left == pytest.approx(right, abs=2e-2)  # bfloat16, in other batches
    assert found["fitted"] == expected["fitted"]


@pytest.mark.usefixtures("forking_python")
def test_a_failing_process_ends_all_with_one_line(small: str, tmp_path: Path) -> None:
    """Under torchrun itself, which ends the other one."""
    run = run_folder(small, tmp_path / "run")
    arguments = (str(run), str(tmp_path), "6", "1")
    done = torchrun(2, "tests.train.finish.graded_together", *arguments)
    assert done.returncode != 0
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert errors == ["error: a row cannot be scored"]


@given(
    lengths=st.lists(st.integers(0, 400), max_size=40),
    questions=st.integers(1, 40),
    count=st.integers(1, 9),
)
def test_every_row_has_one_process_and_loads_are_balanced(
    lengths: list[int], questions: int, count: int
) -> None:
    rows = [
        example(i, question=f"q{i % questions}", responses=("x" * n,))
        for i, n in enumerate(lengths)
    ]
    shares = share_rows(rows, count)
    assert len(shares) == count
    assert sorted(index for share in shares for index in share) == list(range(len(rows)))
    loads = [sum(lengths[index] + 10 for index in share) for share in shares]
    assert max(loads) - min(loads) <= TOGETHER * 412


def test_scores_are_calibrated_where_a_type_is_missing(
    small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge = Judge.load(str(run_folder(small, tmp_path, "hieval-ea", std=0)))
    labels = (("Correct", None), ("Wrong; Other", "Other"))
    rows = [
        example(i, task="hieval-ea", label=labels[i % 2][0], error_type=labels[i % 2][1])
        for i in range(8)
    ]
    calibration = calibrate(judge, rows, KeptGrades(tmp_path, Processes()))
    assert calibration is not None
    assert set(calibration.rubrics) == {"hieval-ea/plain/any"} and not calibration.error_types
    assert "hieval-ea/plain/any: error types stay uncalibrated" in capsys.readouterr().err


def test_a_stated_risk_decides_what_needs_review(small: str, tmp_path: Path) -> None:
    judge = Judge.load(str(run_folder(small, tmp_path, std=0)))
    key, stated = "hieval-qs/plain/any", example(1).request().model_copy(update={"risk": 0.1})
    [uncalibrated] = judge.grade([stated])
    assert uncalibrated.label and uncalibrated.needs_review, "it has no rows to show a level on"
    assert NO_THRESHOLD in str(uncalibrated.message)

    rows = tmp_path / "cal.jsonl"
    write_records(rows, [example(i) for i in range(40)])
    result = CliRunner().invoke(
        app, ["calibrate", str(tmp_path), "--data", str(rows)], catch_exceptions=False
    )
    assert f"{key}: 40 rows, 4 questions;" in result.stdout
    judge.calibration = Judge.load(str(tmp_path)).calibration
    assert judge.calibration is not None
    assert len(judge.calibration.held_out[key].confidence) == 4, "one row of each question"

    [plain] = judge.grade([example(1).request()])
    assert not plain.needs_review
    [unknown] = judge.grade([stated])
    assert unknown.needs_review, "four questions show no level"
    assert unknown.label == plain.label
    for held_out, needs_review in (([0.2] * 60, False), ([0.9999] * 60 + [0.98] * 60, True)):
        right = tuple(confidence != 0.98 for confidence in held_out)
        verdicts = HeldOutVerdicts(confidence=tuple(held_out), right=right)
        judge.calibration = judge.calibration.model_copy(update={"held_out": {key: verdicts}})
        [verdict] = judge.grade([stated])
        assert verdict.needs_review == needs_review
