"""A judge that is measured on rows which it takes under another reference mode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

from evaluation.evaluate import grade_examples, report_verdicts, resolve_examples
from judging.errors import CustosError, FieldError
from judging.judge import Judge
from judging.judge.card import JudgeCard
from judging.types import JudgeRequest, LabelledExample, Pass, Verdict


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


def example(number: int, response: str, label: str, *references: str) -> LabelledExample:
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
    options: dict[str, Any] = {"is_calibrated": False, "seen": None, "references": {}}
    report = report_verdicts(resolved, verdicts, seconds=1, command="x", **options)
    return report, verdicts


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
    options: dict[str, Any] = {"is_calibrated": True, "seen": None, "references": {}}
    report = report_verdicts(
        [example(1, "Oslo", "Wrong")], [verdict], seconds=1, command="x", **options
    )
    assert report["metrics"]["accuracy"]["value"] == 0
    assert report["calibration"]["before"]["accuracy"]["value"] == 1


def test_one_reference_is_measured_under_the_rubric_that_the_judge_knows() -> None:
    examples = [example(1, "Rome", "Correct"), example(2, "Oslo", "Wrong")]
    report, verdicts = measure(examples)
    assert [verdict.rubric for verdict in verdicts] == ["plain/any"] * 2
    assert report["metrics"]["accuracy"]["value"] == 1
    assert set(report["per_class"]) == {"Correct", "Wrong"}


def test_a_label_that_this_rubric_does_not_have_is_refused() -> None:
    examples = [example(1, "Rome", "Correct"), example(2, "Rome or Oslo", "Partial")]
    with pytest.raises(CustosError, match="judge 'alternatives'.*Partial"):
        measure(examples)


def test_several_references_stay_an_answer_set() -> None:
    examples = [example(1, "Rome", "Correct"), example(2, "Oslo", "Partial", "Oslo", "Rome")]
    report, verdicts = measure(examples)
    assert "judge 'alternatives' was trained for hieval-qs under plain/any" in str(
        verdicts[1].message
    )
    assert report["coverage"] == 0.5
