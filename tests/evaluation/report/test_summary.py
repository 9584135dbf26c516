import pytest

from evaluation.report.disagreements import find_disagreements
from evaluation.report.report import build_report
from evaluation.report.summary import WIDTH, summary_lines
from judging.types import Verdict
from tests.evaluation.made_up import evaluation, typed_records
from tests.evaluation.people.made_up import several
from tests.evaluation.people.test_second_annotator import with_second


@pytest.mark.parametrize("make", [evaluation, typed_records, with_second, several])
@pytest.mark.parametrize("name", ["qs", "a-judge-with-a-very-long-name" * 5, "[red]x\n\x1b[31m"])
def test_every_line_fits_80_columns(make: object, name: str) -> None:
    assert callable(make)
    examples, verdicts = make()
    seen = {"file": "trained on", "rows": 3}
    report = build_report(examples, verdicts, seconds=1, command="", seen=seen)
    lines = summary_lines(name, report, find_disagreements(examples, verdicts))
    assert max(map(len, lines)) <= WIDTH
    assert all(line.isprintable() for line in lines)
    assert any("trained on this very file" in line for line in lines)


def test_figures_have_an_interval_and_their_number() -> None:
    examples, verdicts = evaluation(unscored_every=9)
    report = build_report(examples, verdicts, seconds=1, command="")
    lines = summary_lines("qs", report, find_disagreements(examples, verdicts))
    accuracy = report["metrics"]["accuracy"]
    figure = f"{accuracy['value']:.3f} [{accuracy['low']:.3f}, {accuracy['high']:.3f}]"
    assert any(line.startswith("qs ") and f"89% 160 {figure}" in line for line in lines)
    assert any(line.startswith("calibration error 0.") and "160 rows" in line for line in lines)
    assert "no label: 20 rows: no label in the text" in " ".join(lines)


def test_every_person_stands_beside_the_judge() -> None:
    examples, verdicts = several()
    report = build_report(examples, verdicts, seconds=1, command="")
    lines = summary_lines("qs", report, find_disagreements(examples, verdicts))
    for name, measured in report["annotators"]["each"].items():
        [line] = [line for line in lines if line.startswith(f"{name} ")]
        for side in ("person", "judge"):
            assert f"{measured[side]['agreement']['value']:.3f} [" in line
        assert line.endswith("wins") == measured["wins"]
    text = " ".join(line.strip() for line in lines)
    test = report["annotators"]["alternative"]
    assert f"than {test['wins']} of {test['tested']} people" in text


@pytest.mark.parametrize(("questions", "is_wide"), [(8, True), (200, False)])
def test_too_few_rows_are_said_to_be_too_few(questions: int, is_wide: bool) -> None:
    report = build_report(*evaluation(questions=questions), seconds=1, command="")
    assert any("too few to conclude" in text for text in report["cautions"]) == is_wide
    accuracy = report["metrics"]["accuracy"]
    assert (accuracy["high"] - accuracy["low"] > 0.2) == is_wide


def test_one_question_has_no_interval_to_conclude_from() -> None:
    report = build_report(*evaluation(questions=1), seconds=1, command="")
    assert any("o interval can be given" in t or "too few" in t for t in report["cautions"])


def test_no_id_or_message_commands_the_terminal() -> None:
    examples, verdicts = evaluation(questions=8)
    id = "7\x1b[2J"
    examples[0] = examples[0].model_copy(update={"id": id})
    verdicts[0] = Verdict(id=id, status="unparsed", message="the text '\x1b]0;x\x07' has no label")
    report = build_report(examples, verdicts, seconds=1, command="")
    lines = summary_lines("qs", report, find_disagreements(examples, verdicts))
    assert any("has no label (id 7 [2J)" in line for line in lines)
    assert all(line.isprintable() for line in lines)
