"""A judge that is measured, what it saw before, and what its folder says of that."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.baselines import RULES_NAME
from evaluation.report.evaluate import (
    grade_examples,
    resolve_examples,
    seen_data,
    uncalibrated_verdicts,
)
from evaluation.report.reliability import measured_lines
from evaluation.report.report import build_report
from judging import JudgeRequest, LabelledExample, Verdict
from judging.errors import FieldError
from judging.files.questions import write_question_hashes
from judging.judge import Judge
from judging.judge.card import SHIPPED, JudgeCard, read_card
from judging.types import Pass
from tests.evaluation.made_up import example


class Alternatives(Judge):
    """A judge that was trained for alternatives alone, and looks for the reference."""

    def __init__(self) -> None:
        self.name = "alternatives"
        self.folder = self.calibration = None
        self.card = JudgeCard(
            backbone="b", backbone_version="b", tasks={"hieval-qs": ("plain/any",)}, instructions={}
        )

    def grade(self, requests: Iterable[JudgeRequest], **options: Any) -> Iterator[Verdict]:
        for request in requests:
            try:
                mode = self.resolve(request).reference_mode
            except FieldError as error:
                yield Verdict.from_error(error, request)
                continue
            label = "Correct" if request.references[0] in request.response else "Wrong"
            yield Verdict(id=request.id, status="scored", label=label, rubric=f"plain/{mode}")


def numbered(number: int, response: str, label: str, *references: str) -> LabelledExample:
    return LabelledExample(
        id=str(number),
        question=f"Question {number}?",
        references=references or ("Rome",),
        responses=(response,),
        label=label,
    )


def measure(examples: Sequence[LabelledExample]) -> tuple[dict[str, Any], list[Verdict]]:
    judge = Alternatives()
    resolved = resolve_examples(judge, examples)
    verdicts = grade_examples(judge, resolved)
    return build_report(resolved, verdicts, seconds=1, command="x"), verdicts


def test_labels_that_a_calibration_turned_are_reported_before_it_too() -> None:
    verdict = Verdict(
        id="1",
        status="scored",
        label="Correct",
        confidence=0.9,
        rubric="plain/any",
        label_mass=1.0,
        posterior="exact",
        passes=(Pass(posterior={"Correct": 0.4, "Wrong": 0.6}),),
    )
    rows, before = [numbered(1, "Oslo", "Wrong")], [verdict]
    before = uncalibrated_verdicts(rows, before)
    report = build_report(rows, [verdict], seconds=1, command="x", uncalibrated=before)
    assert report["metrics"]["accuracy"]["value"] == 0
    assert report["calibration"]["before"]["accuracy"]["value"] == 1


def test_one_reference_is_measured_under_the_rubric_that_the_judge_knows() -> None:
    examples = [numbered(1, "Rome", "Correct"), numbered(2, "Oslo", "Wrong")]
    report, verdicts = measure(examples)
    assert [verdict.rubric for verdict in verdicts] == ["plain/any"] * 2
    assert report["metrics"]["accuracy"]["value"] == 1
    assert set(report["per_class"]) == {"Correct", "Wrong"}


def test_several_references_stay_an_answer_set() -> None:
    examples = [numbered(1, "Rome", "Correct"), numbered(2, "Oslo", "Partial", "Oslo", "Rome")]
    report, verdicts = measure(examples)
    assert "judge 'alternatives' was trained for hieval-qs under plain/any" in str(
        verdicts[1].message
    )
    assert report["coverage"] == 0.5


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    hashes = {"a.jsonl": "aa", "v.jsonl": "bb", "c.jsonl": "cc", "t.jsonl": "dd"}
    data = {"train": ["a.jsonl"], "val": "v.jsonl", "cal": "c.jsonl", "test": "t.jsonl"}
    recipe = {"data": data, "provenance": {"sha256": hashes}}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    return tmp_path


@pytest.mark.parametrize(
    ("sha256", "use"),
    [
        ("aa", "trained on"),
        ("bb", "chosen by"),
        ("cc", "calibrated on"),
        ("dd", None),
        (None, None),
    ],
)
def test_the_very_file(folder: Path, sha256: str | None, use: str | None) -> None:
    assert seen_data(folder, sha256, [example()]) == {"file": use, "rows": None}


def test_questions(folder: Path) -> None:
    write_question_hashes(folder, [example(question="What is 6 x 7?")])
    rows = [example(question="what is  6 x 7"), example(question="Why?")]
    assert seen_data(folder, "ff", rows) == {"file": None, "rows": 1}


def test_an_untrained_judge_has_its_zero_shot_figures_beside_it() -> None:
    [line] = measured_lines("mine", None, ("charthal",), "embedded@2")
    assert "judge mine: not measured on this task (charthal)" in line
    assert "measured without training: " in line
    assert "; embedded@1 on hieval-qs/plain: accuracy 0.638 [" in line
    [stranger] = measured_lines("gpt-4o", None, ("charthal",), "")
    assert stranger == "judge gpt-4o: not measured on this task (charthal)"


def test_the_shipped_judge_of_criteria_beats_its_untrained_backbone_and_a_majority() -> None:
    folder = SHIPPED / "embedded-criterion"
    report = json.loads((folder / "report.json").read_text())
    assert set(report["tasks"]) == set(read_card(folder).tasks) == {"criterion"}
    for rival in ("zero_shot", "majority_label"):
        gain = report["baselines"][rival]["gain"]
        assert gain["low"] > 0 and gain["n"] >= 1200


def test_the_shipped_judge_of_benchmarks_beats_the_rules() -> None:
    folder = SHIPPED / "embedded-benchmarks"
    tasks = json.loads((folder / "report.json").read_text())["tasks"]
    assert set(tasks) == set(read_card(folder).tasks) == {"chartom-fact", "simplevqa"}
    for measured in tasks.values():
        gain = measured["rivals"][RULES_NAME]["gain"]
        assert gain["low"] > 0
        assert gain["n"] == measured["n"] > 190


def test_rules_on_all_rows_stand_beside_the_judge(tmp_path: Path) -> None:
    accuracy = {"value": 0.7, "low": 0.65, "high": 0.75, "n": 200}
    rules = {"accuracy": accuracy | {"n": 1220}, "gain": {"value": 0.05, "low": -0.01, "high": 0.1}}
    report = {
        "slices": {"task": {"simplevqa/english": {"n": 200, "accuracy": accuracy}}},
        "tasks": {"simplevqa": {"rivals": {"benchmark_rules": rules}}},
    }
    (tmp_path / "report.json").write_text(json.dumps(report))
    [line] = measured_lines("mine", tmp_path, ("simplevqa",), "embedded@2")
    assert line.startswith("judge mine on simplevqa: accuracy 0.700 [0.650, 0.750] on 200 rows")
    assert line.endswith(
        "0.700 [0.650, 0.750], which it is not shown to beat: consider --judge rules"
    )
