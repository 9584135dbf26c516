"""The gate for a new judge: exact tests, Holm's correction, and planted losses."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from typer.testing import CliRunner

from cli.main import app
from evaluation.comparisons.gate import gate, holm, sign_flip_p
from evaluation.folder import save_evaluation
from judging.types import LabelledExample, Verdict
from tests.evaluation.made_up import evaluation


def test_single_items_are_tested_as_mcnemar_does() -> None:
    differences = np.array([-1.0] * 14 + [1.0] * 5 + [0.0] * 40)
    expected = binomtest(5, 19, alternative="less").pvalue
    assert sign_flip_p(differences, np.arange(59)) == pytest.approx(expected, rel=1e-12)
    assert sign_flip_p(-np.ones(60), np.arange(60)) == pytest.approx(0.5**60, rel=1e-12)
    assert sign_flip_p(np.zeros(3), np.arange(3)) == 1


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_all_signs_of_questions_are_weighed(sums: list[int]) -> None:
    clusters = np.repeat(np.arange(len(sums)), np.abs(sums))
    differences = np.repeat(np.sign(sums).astype(float), np.abs(sums))
    flipped = [np.dot(signs, sums) for signs in itertools.product((-1, 1), repeat=len(sums))]
    expected = np.mean(np.array(flipped) <= sum(sums))
    assert sign_flip_p(differences, clusters) == pytest.approx(expected, abs=1e-12)


def test_items_of_one_question_are_no_proof_of_each_other() -> None:
    """Twenty losses on two questions are two losses."""
    differences, questions = np.array([-1.0] * 20), np.arange(20)
    assert sign_flip_p(differences, questions) < 0.001
    assert sign_flip_p(differences, questions // 10) == pytest.approx(0.25)


def test_holm_by_hand() -> None:
    assert holm([0.04, 0.01, 0.03, 0.9]) == pytest.approx([0.09, 0.04, 0.09, 0.9])
    assert holm([0.5, 0.6]) == [1.0, 1.0]


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
    worse = {check.name for check in checks if check.is_worse}
    assert "answerer bee" in worse and "answerer ant" not in worse
    assert (checks[0].name, checks[0].n) == ("all", 180)
    arguments = ["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--gate"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 1
    assert f"B is significantly worse in {len(worse)} of {len(checks)} checks" in result.stderr
    assert "worse  answerer bee: A 0." in result.stdout


def test_many_slices_do_not_hide_a_loss(tmp_path: Path) -> None:
    """Holm's correction for 1,201 tests leaves a small probability small."""
    examples, old = evaluation(questions=400, accuracy=0.9)
    examples = [
        item.model_copy(update={"metadata": {"domain": item.id, "answerer": "one"}})
        for item in examples
    ]
    checks = gate(*folders(tmp_path, spoiled(examples, old, "one"), examples, old))
    assert len(checks) > 1200
    assert checks[0].is_worse


def test_rows_that_lost_their_label_count(tmp_path: Path) -> None:
    examples, old = evaluation(accuracy=0.9)
    new = [
        Verdict(id=verdict.id, status="unparsed", message="no label") if number % 2 else verdict
        for number, verdict in enumerate(old)
    ]
    assert gate(*folders(tmp_path, new, examples, old))[0].is_worse


def test_a_better_judge_and_an_equal_one_pass(tmp_path: Path) -> None:
    examples, old = evaluation(accuracy=0.6, seed=1)
    _, new = evaluation(accuracy=0.9, seed=2)
    a, b = folders(tmp_path, new, examples, old)
    for first, second in ((a, b), (a, a)):
        result = CliRunner().invoke(
            app, ["compare", str(first), str(second), "--gate"], catch_exceptions=False
        )
        assert result.exit_code == 0
        assert "B is nowhere significantly worse" in result.stdout
