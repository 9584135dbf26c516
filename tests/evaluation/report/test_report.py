import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.report.markdown import render_markdown
from evaluation.report.report import build_report, versions, write_report
from evaluation.slices import length_thirds
from judging.errors import CustosError
from judging.types import Verdict
from tests.evaluation.made_up import evaluation, example, scored, typed_records, unscored
from tests.evaluation.made_up_pairs import in_both_orders, pair

ARCHITECTURE_KEYS = {
    "n", "coverage", "seconds", "items_per_second", "metrics", "per_class", "confusion", "slices",
    "baselines",
}  # fmt: skip
ARCHITECTURE_METRICS = {"accuracy", "kappa", "mcc", "macro_f1", "fpr", "ece", "brier", "nll"}


def report(**options: Any) -> dict[str, Any]:
    examples, verdicts = evaluation(unscored_every=9)
    given: dict[str, Any] = {"seconds": 9.0, "command": "custos eval x", "resamples": 100}
    return build_report(examples, verdicts, **(given | options))


def test_keys_that_others_rely_on() -> None:
    made = report()
    assert made.keys() >= ARCHITECTURE_KEYS
    assert made["metrics"].keys() >= ARCHITECTURE_METRICS
    for measured in (made["metrics"], *made["baselines"].values()):
        for name in ARCHITECTURE_METRICS:
            assert measured[name].keys() >= {"value", "low", "high", "n"}
    assert all("mcnemar_p" in baseline for baseline in made["baselines"].values())
    assert json.loads(json.dumps(made, allow_nan=False)) == made


def test_counts() -> None:
    made = report()
    assert (made["n"], made["questions"]) == (180, 60)
    assert made["coverage"] == pytest.approx(160 / 180)
    assert made["items_per_second"] == pytest.approx(20)
    assert made["statuses"] == {"scored": 160, "unparsed": 20}
    assert made["judges"] == ["made-up"]
    assert np.sum(made["confusion"]["counts"]) == 160
    assert sum(made["confusion"]["unscored_per_row"]) == 20
    assert sum(row["people"] for row in made["per_class"].values()) == 160


def test_truncated_input_is_counted() -> None:
    verdicts = [scored("Correct", id="a", truncated_input=True), scored("Correct", id="b")]
    examples = [example(id="a"), example(id="b")]
    made = build_report(examples, verdicts, seconds=0, command="", resamples=10)
    assert made["truncated_input"] == 1
    assert made["items_per_second"] is None


def test_slices_divide_all_items() -> None:
    slices = report()["slices"]
    assert slices.keys() == {"answerer", "response_length", "task"}
    for parts in slices.values():
        assert sum(part["n"] for part in parts.values()) == 180
        assert all({"accuracy", "kappa"} <= part.keys() for part in parts.values())
    assert list(slices["response_length"]) == sorted(
        slices["response_length"], key=lambda part: int(part.split("(")[1].split("-")[0])
    )


def test_slices_by_language_where_it_is_known() -> None:
    examples = [
        example(id="a", metadata={"language": "en"}),
        example(id="b", metadata={"language": "zh"}),
        example(id="c"),
    ]
    verdicts = [scored("Correct", id="a"), scored("Wrong", id="b"), scored("Correct", id="c")]
    made = build_report(examples, verdicts, seconds=1, command="", resamples=10)
    language = made["slices"]["language"]
    assert {part: row["accuracy"]["value"] for part, row in language.items()} == {"en": 1, "zh": 0}


def test_baselines_are_tested_against_the_judge_on_items_both_scored() -> None:
    examples, _ = evaluation()
    right = [scored(item.label, id=item.id) for item in examples]
    wrong = [scored("Wrong" if i.label == "Correct" else "Correct", id=i.id) for i in examples]
    half = [unscored(v.id) if n % 2 else v for n, v in enumerate(wrong)]
    made = build_report(
        examples, right, seconds=1, command="", references={"other": half}, resamples=10
    )
    other = made["baselines"]["other"]
    assert (other["judge_only_right"], other["baseline_only_right"]) == (90, 0)
    assert other["n_both_scored"] == 90
    assert other["mcnemar_p"] == pytest.approx(2 * 0.5**90)
    assert other["accuracy"]["value"] == 0
    containment = made["baselines"]["containment"]
    assert containment["accuracy"]["value"] == 1
    assert containment["mcnemar_p"] == 1
    assert made["baselines"]["majority_label"]["kappa"]["value"] == 0


def test_rules_stay_away_from_labels_that_are_not_grades() -> None:
    examples = [example("A", id="a"), example("B", id="b")]
    verdicts = [scored("A", id="a"), scored("A", id="b")]
    made = build_report(examples, verdicts, seconds=1, command="", resamples=10)
    assert list(made["baselines"]) == ["majority_label"]
    assert made["metrics"]["fpr"]["value"] is None
    assert made["answerer_ranking"] is None


def test_ranking_of_answerers_is_peoples_when_judge_agrees() -> None:
    examples, verdicts = evaluation(accuracy=1.0, questions=150)
    made = build_report(examples, verdicts, seconds=1, command="", resamples=200)
    ranking = made["answerer_ranking"]
    assert list(ranking["answerers"]) == ["cat", "bee", "ant"]
    assert ranking["kendall_tau"] == {"value": 1, "low": 1, "high": 1, "n": 3}
    for row in ranking["answerers"].values():
        assert row["people"] == row["judge"]
        assert row["people"]["low"] < row["people"]["value"] < row["people"]["high"]


def test_ranking_leaves_out_what_the_judge_left_out() -> None:
    examples = [
        example(label, id=str(n), question=f"q{n}", metadata={"answerer": "ab"[n % 2]})
        for n, label in enumerate(("Correct", "Wrong", "Wrong", "Wrong", "Wrong", "Correct"))
    ]
    verdicts = [scored(item.label, id=item.id) for item in examples]
    verdicts[2] = unscored("2")
    made = build_report(examples, verdicts, seconds=1, command="", resamples=10)
    answerers = made["answerer_ranking"]["answerers"]
    assert {name: row["n"] for name, row in answerers.items()} == {"a": 2, "b": 3}
    assert answerers["a"]["people"]["value"] == answerers["a"]["judge"]["value"] == 1 / 2


def test_length_thirds_are_equal_and_keep_ties_together() -> None:
    def thirds(*lengths: int) -> list[str]:
        return length_thirds([example(responses=("x" * length,)) for length in lengths])

    short, middle, long = (
        "short (1-2 characters)",
        "middle (3-5 characters)",
        "long (8-9 characters)",
    )
    assert thirds(9, 1, 5, 3, 8, 2) == [long, short, middle, middle, long, short]
    assert thirds(4, 4, 4) == ["short (4-4 characters)"] * 3


def test_ranking_is_reversed_when_the_judge_says_the_opposite() -> None:
    examples, _ = evaluation(questions=150)
    verdicts = [scored("Wrong" if i.label == "Correct" else "Correct", id=i.id) for i in examples]
    made = build_report(examples, verdicts, seconds=1, command="", resamples=50)
    assert made["answerer_ranking"]["kendall_tau"]["value"] == -1


def test_calibration_shows_before_only_when_given() -> None:
    examples, verdicts = evaluation()
    certain = [v.model_copy(update={"confidence": 1.0}) for v in verdicts]
    made = build_report(examples, verdicts, seconds=1, command="", resamples=10)
    assert list(made["calibration"]) == ["after"]
    assert made["calibration"]["after"]["ece"] == made["metrics"]["ece"]["value"]
    assert sum(cell["n"] for cell in made["calibration"]["after"]["bins"]) == 180
    both = build_report(
        examples, verdicts, seconds=1, command="", uncalibrated=certain, resamples=10
    )
    assert list(both["calibration"]) == ["before", "after"]
    before = both["calibration"]["before"]
    accuracy = made["metrics"]["accuracy"]["value"]
    assert before["bins"] == [{"n": 180, "confidence": 1, "accuracy": pytest.approx(accuracy)}]
    assert before["ece"] == pytest.approx(1 - accuracy)


def test_a_judge_without_confidences_has_no_calibration(tmp_path: Path) -> None:
    examples, verdicts = evaluation()
    bare = [Verdict(id=v.id, status="scored", label=v.label) for v in verdicts]
    made = build_report(examples, bare, seconds=1, command="", resamples=10)
    assert made["calibration"] is None
    assert made["metrics"]["ece"] == {"value": None, "low": None, "high": None, "n": 0}
    write_report(made, tmp_path)
    assert not (tmp_path / "reliability.png").exists()
    assert "## Calibration" not in (tmp_path / "report.md").read_text()


def test_no_examples_is_an_error() -> None:
    with pytest.raises(CustosError, match="no examples to evaluate"):
        build_report([], [], seconds=1, command="")


def test_written_report_is_whole(tmp_path: Path) -> None:
    made = report(dataset_sha256="ab" * 32)
    write_report(made, tmp_path / "deep" / "out")
    out = tmp_path / "deep" / "out"
    assert json.loads((out / "report.json").read_text()) == made
    page = (out / "report.md").read_text()
    accuracy = made["metrics"]["accuracy"]
    figure = f"{accuracy['value']:.3f} [{accuracy['low']:.3f}, {accuracy['high']:.3f}]"
    assert f"| Accuracy | {figure} | 160 |" in page
    assert "    custos eval x\n" in page
    assert "180 items on 60 questions (160 scored, 20 unparsed) in 9.0 s, 20.0 items/s." in page
    assert "abab" in page
    assert "nan" not in page.lower()
    for picture in ("confusion.png", "reliability.png", "ranking.png"):
        assert (out / picture).read_bytes().startswith(b"\x89PNG")
        assert f"![{picture}]({picture})" in page
    assert {path.name for path in out.iterdir()} == {
        "report.json", "report.md", "confusion.png", "reliability.png", "ranking.png",
    }  # fmt: skip


def test_pairs_are_reported_with_what_order_and_length_do(tmp_path: Path) -> None:
    rows = [("A", "A", "A", "A"), ("B", "A", "B", "B"), ("None", "A", "B", "None")] * 5
    made = build_report(
        [
            pair(people, str(row), a="red" * (1 + row % 2), task="truthful-pair")
            for row, (people, *_) in enumerate(rows)
        ],
        [
            in_both_orders(given, swapped, label, str(row))
            for row, (_, given, swapped, label) in enumerate(rows)
        ],
        seconds=1.0,
        command="custos eval x",
        resamples=20,
    )
    assert made["pairs"]["measures"]["accuracy_ties_counted"]["value"] == 1.0
    assert made["pairs"]["order"]["flip_rate"]["value"] == pytest.approx(2 / 3)
    assert made["pairs"]["length"]["preference"]["value"] == 0.0
    write_report(made, tmp_path)
    page = (tmp_path / "report.md").read_text()
    assert "| Accuracy, both merged | 0.667 [" in page
    assert "| Pairs on which the two orders disagree | 0.667 [" in page
    assert "nan" not in page.lower()


def test_graded_answers_are_no_pairs() -> None:
    assert report()["pairs"] is None


def test_versions_name_what_is_installed() -> None:
    assert versions()["numpy"] == np.__version__


def test_error_types_are_laid_out_beside_the_published() -> None:
    examples, verdicts = typed_records()
    report = build_report(examples, verdicts, seconds=1.0, command="x", resamples=50)
    assert report["error_types"]["A"]["value"] == 0.5
    assert report["metrics"]["type_accuracy"]["value"] == pytest.approx(4 / 6)
    assert report["metrics"]["score_accuracy"]["value"] == pytest.approx(4 / 8)
    page = render_markdown(report)
    assert "## Error types" in page
    assert "HiEval-EA, published" in page
