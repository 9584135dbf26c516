"""The start of a run, graded with the model that training leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from judging.errors import CustosError
from judging.judge import Judge
from judging.judge.card import JudgeCard
from judging.models.adapters import add_adapter
from judging.models.backbones import load_backbone
from tests.train.made_up import example, examples, recipe, trainer
from train.finish import grading as start
from train.finish.grading import KeptGrades, Processes, affordable_rows, grade_start


def run_folder(backbone: str, folder: Path) -> Path:
    """A judge whose adapter does something, though it was not trained."""
    loaded = load_backbone(backbone, dtype="float32", device="cpu")
    adapted = add_adapter(loaded.model, r=4, alpha=8, seed=3)
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            parameter.data.normal_(std=0.05)
    adapted.save_pretrained(str(folder))
    card = JudgeCard.for_rubrics(loaded, {"hieval-qs": ("plain/any",)}, response_budget=1024)
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


def test_a_rubric_that_the_start_does_not_know_is_graded(small: str, tmp_path: Path) -> None:
    init = run_folder(small, tmp_path / "init")
    settings = recipe(tmp_path / "run", small, adapter__init=str(init), run__select="last")
    learner = trainer(settings, small, examples(16))
    learner.fit()
    rows = [example(i, reference_mode="all", references=("a", "b")) for i in range(3)]
    verdicts = grade_start(learner, rows, KeptGrades(tmp_path, Processes()))
    assert [verdict.status for verdict in verdicts.values()] == ["scored"] * 3


def test_a_damaged_calibration_of_the_start_is_named(small: str, tmp_path: Path) -> None:
    init = run_folder(small, tmp_path / "init")
    (init / "calibration.json").write_text("{}", encoding="utf-8")
    settings = recipe(tmp_path / "run", small, adapter__init=str(init), run__select="last")
    learner = trainer(settings, small, examples(16))
    learner.fit()
    with pytest.raises(CustosError, match=r"init/calibration\.json: field '"):
        grade_start(learner, examples(3), KeptGrades(tmp_path, Processes()))


def test_nothing_is_graded_where_nothing_is_to_be_compared(small: str, tmp_path: Path) -> None:
    learner = trainer(recipe(tmp_path), small, examples(16))
    learner.progress.chosen = {"step": 0, "val_nll": 1.0}
    assert grade_start(learner, examples(3), KeptGrades(tmp_path, Processes())) == {}


def test_whole_questions_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [example(i, group=f"g{i // 3}") for i in range(30)]
    assert affordable_rows(rows, 0) == list(range(30))
    monkeypatch.setattr(start, "MOST_SCORED", 10)
    drawn = affordable_rows(rows, 0)
    assert drawn == sorted(drawn)
    assert len(drawn) == 9
    assert {i // 3 * 3 + k for i in drawn for k in range(3)} == set(drawn)
    assert drawn != affordable_rows(rows, 1)
    one_question = [example(i, group="g") for i in range(11)]
    assert affordable_rows(one_question, 0) == list(range(10))
