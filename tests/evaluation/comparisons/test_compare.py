"""Two evaluations compared, the gate for a new judge, and the paired figures of both."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm
from typer.testing import CliRunner

from cli.main import app
from evaluation.comparisons.compare import compare_evaluations, gate
from evaluation.estimate import lowest_difference, newcombe_interval, paired_accuracies
from evaluation.outcomes import save_evaluation
from judging.errors import CustosError
from judging.types import LabelledExample, Verdict
from tests.evaluation.made_up import evaluation, scored, unscored


def save(folder: Path, examples: Sequence[LabelledExample], verdicts: Sequence[Verdict]) -> Path:
    save_evaluation(folder, examples, verdicts)
    return folder


def test_better_judge_is_better_and_signs_turn(tmp_path: Path) -> None:
    poor = save(tmp_path / "poor", *evaluation(accuracy=0.6, seed=1))
    good = save(tmp_path / "good", *evaluation(accuracy=0.9, seed=2))
    forth, back = compare_evaluations(poor, good), compare_evaluations(good, poor)
    for name, sign in (("accuracy", 1), ("kappa", 1), ("mcc", 1), ("fpr", -1), ("brier", -1)):
        difference = forth["metrics"][name]["difference"]
        assert all(sign * difference[end] > 0 for end in ("value", "low", "high"))
        reverse = back["metrics"][name]["difference"]
        assert reverse["value"] == pytest.approx(-difference["value"])
        assert reverse["low"] == pytest.approx(-difference["high"])
    assert forth["p"] == back["p"] < 0.001


def test_counts_and_ids_both_ways(tmp_path: Path) -> None:
    examples, _ = evaluation(questions=20)
    right = [scored(item.label, id=item.id) for item in examples]
    other = {"Correct": "Wrong", "Wrong": "Correct"}
    a = [scored(other[v.label or ""], id=v.id) if n < 5 else v for n, v in enumerate(right)]
    b = [scored(other[v.label or ""], id=v.id) if 3 <= n < 6 else v for n, v in enumerate(right)]
    b[-1] = unscored(b[-1].id)
    made = compare_evaluations(save(tmp_path / "a", examples, a), save(tmp_path / "b", examples, b))
    assert (made["n_common"], made["n_both_scored"]) == (60, 59)
    assert (made["n_scored_a"], made["n_scored_b"]) == (60, 59)
    assert made["only_b_right"] == ["0", "1", "2"]
    assert made["only_a_right"] == ["5"]
    assert (made["n_only_a_right"], made["n_only_b_right"]) == (1, 3)
    assert (made["n_both_right"], made["n_neither_right"]) == (53, 2)
    assert made["n_labels_differ"] == 4
    # Rows 0 to 2 are on one question and row 5 on another: two signs, of which all give 2 or 4.
    assert made["p"] == 1
    difference = made["metrics"]["accuracy"]["difference"]
    assert difference["value"] == pytest.approx(2 / 59)
    assert made["metrics"]["brier"]["difference"] == {"value": None, "low": None, "high": None}
    assert json.loads(json.dumps(made, allow_nan=False)) == made


def test_interval_is_paired_and_over_questions(tmp_path: Path) -> None:
    """A hundred judges' worth of agreement must not widen the interval of a few differences."""
    examples, verdicts = evaluation(questions=100, accuracy=0.7)
    changed = [
        scored(item.label, id=item.id) if n % 8 == 0 else verdict
        for n, (item, verdict) in enumerate(zip(examples, verdicts, strict=True))
    ]
    folders = save(tmp_path / "a", examples, verdicts), save(tmp_path / "b", examples, changed)
    made = compare_evaluations(*folders)["metrics"]["accuracy"]["difference"]
    gains = np.array(
        [
            sum(
                (after.label == item.label) - (before.label == item.label)
                for item, before, after in list(zip(examples, verdicts, changed, strict=True))[
                    3 * question : 3 * question + 3
                ]
            )
            for question in range(100)
        ]
    )
    drawn = gains[np.random.default_rng(7).integers(100, size=(4000, 100))]
    with np.errstate(divide="ignore"):
        scaled = (drawn.mean(axis=1) - gains.mean()) / drawn.std(axis=1)
    below, above = np.quantile(scaled, [0.025, 0.975])
    plain = np.array([gains.mean() - q * gains.std() for q in (above, below)]) / 3
    assert (made["low"], made["high"]) == pytest.approx(plain, abs=0.0034)  # one item in 300


def test_a_judge_against_itself_differs_in_nothing(tmp_path: Path) -> None:
    """There is no interval: rows without a difference do not prove that there is none."""
    run = save(tmp_path / "a", *evaluation())
    made = compare_evaluations(run, run)
    assert made["p"] == 1
    assert made["n_labels_differ"] == 0
    for metric in made["metrics"].values():
        assert metric["difference"] == {"value": 0, "low": None, "high": None}


def test_too_few_common_items_are_refused(tmp_path: Path) -> None:
    examples, verdicts = evaluation()
    a = save(tmp_path / "a", examples[:100], verdicts[:100])
    b = save(tmp_path / "b", examples[90:], verdicts[90:])
    with pytest.raises(CustosError, match="share 10 ids, fewer than 20: evaluate both"):
        compare_evaluations(a, b)
    assert compare_evaluations(a, b, min_common=10)["n_common"] == 10
    silent = save(tmp_path / "c", examples, [unscored(item.id) for item in examples])
    with pytest.raises(CustosError, match="only 0 shared items have a label from both"):
        compare_evaluations(a, silent)


def test_ids_must_name_one_item(tmp_path: Path) -> None:
    examples, verdicts = evaluation()
    a = save(tmp_path / "a", examples, verdicts)
    relabelled = [item.model_copy(update={"label": "Correct"}) for item in examples]
    b = save(tmp_path / "b", relabelled, verdicts)
    with pytest.raises(CustosError, match="is not the same item in both folders"):
        compare_evaluations(a, b)
    twice = save(tmp_path / "c", examples[:1] * 2, verdicts[:1] * 2)
    with pytest.raises(CustosError, match="row 2: field 'id': '0' occurs twice"):
        compare_evaluations(a, twice)
    nameless = save(
        tmp_path / "d",
        [examples[0].model_copy(update={"id": ""})],
        [verdicts[0].model_copy(update={"id": ""})],
    )
    with pytest.raises(CustosError, match="row 1: field .id.: is missing"):
        compare_evaluations(nameless, a)


def test_a_loss_that_is_not_rejected_by_hand() -> None:
    """Without a difference in n items the score test leaves -d where n d / (1 - d) is z squared."""
    z2 = norm.ppf(0.95) ** 2
    for n in (100, 150, 10_000):
        lowest, _ = lowest_difference(np.zeros(n), np.arange(n))
        assert lowest == pytest.approx(-z2 / (n + z2), rel=0.05)  # Student's in place of z
    assert lowest_difference(np.zeros(100), np.arange(100))[0] < -0.02
    assert lowest_difference(np.zeros(150), np.arange(150))[0] > -0.02


def folders(
    tmp_path: Path, changed: list[Verdict], examples: list[LabelledExample], old: list[Verdict]
) -> tuple[Path, Path]:
    save_evaluation(tmp_path / "a", examples, old)
    save_evaluation(tmp_path / "b", examples, changed)
    return tmp_path / "a", tmp_path / "b"


def spoiled(
    examples: list[LabelledExample], verdicts: list[Verdict], answerer: str
) -> list[Verdict]:
    """Verdicts that are all wrong on one answerer."""
    other = {"Correct": "Wrong", "Wrong": "Correct"}
    return [
        verdict.model_copy(update={"label": other[example.label]})
        if example.metadata["answerer"] == answerer
        else verdict
        for example, verdict in zip(examples, verdicts, strict=True)
    ]


def test_a_loss_on_one_slice_is_refused(tmp_path: Path) -> None:
    examples, old = evaluation(accuracy=0.8)
    checks = gate(*folders(tmp_path, spoiled(examples, old, "bee"), examples, old))
    worse = {check.name for check in checks if check.outcome == "worse"}
    assert "answerer bee" in worse and "answerer ant" not in worse
    assert (checks[0].name, checks[0].n) == ("all", 180)
    arguments = ["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--gate"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 1
    assert f"B is significantly worse in {len(worse)} of {len(checks)} checks" in result.stderr
    [line] = [line for line in result.stdout.splitlines() if "answerer bee: A 0." in line]
    assert line.startswith("worse")


def test_a_better_judge_passes_and_an_equal_one_where_there_are_rows(tmp_path: Path) -> None:
    examples, old = evaluation(accuracy=0.6, seed=1)
    _, new = evaluation(accuracy=0.9, seed=2)
    a, b = folders(tmp_path, new, examples, old)
    for folder, margin, status in ((b, "0.02", 0), (a, "0.02", 3), (a, "0.05", 0)):
        arguments = ["compare", str(a), str(folder), "--gate", "--margin", margin]
        result = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert result.exit_code == status


@pytest.mark.parametrize(
    ("first", "second", "n", "low", "high"),
    [(9, 3, 10, 0.1705, 0.8090), (6, 2, 7, 0.0582, 0.8062), (10, 0, 10, 0.6075, 1.0000)],
)
def test_newcombe_as_published(first: int, second: int, n: int, low: float, high: float) -> None:
    """Newcombe 1998, table II, method 10, where both rates are over as many items."""
    assert newcombe_interval(first / n, second / n, n) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("movers", [1, 2, 3, 4])
def test_an_interval_of_a_sparse_difference_leaves_out_zero_only_where_the_test_does(
    movers: int,
) -> None:
    second = np.arange(300) >= movers
    paired = paired_accuracies([True] * 300, second.tolist(), np.arange(300))
    assert paired["p"] == pytest.approx(2.0 ** (1 - movers))
    assert paired["difference"]["low"] <= 0 < paired["difference"]["high"]
