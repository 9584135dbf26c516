"""Whom a judge favours, by hand and against scipy."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from evaluation.comparisons.compare import compare_evaluations, render_comparison
from evaluation.outcomes import Outcomes, save_evaluation
from evaluation.ranking.favour import family_of, favour, flip_p
from evaluation.report.evaluate import find_disagreements
from evaluation.report.report import build_report
from evaluation.report.screen import summary_lines
from judging.types import LabelledExample, Verdict
from tests.evaluation.made_up import example, scored

LABELS = ("Correct", "Partial", "Wrong")


def outcomes(rows: Sequence[tuple[int, int]], clusters: Sequence[int] | None = None) -> Outcomes:
    """People's labels and the judge's, as numbers in ``LABELS``; -1 is no label."""
    human, predicted = np.array(rows).T
    nothing = np.full(len(rows), np.nan)
    groups = np.arange(len(rows)) if clusters is None else np.array(clusters)
    return Outcomes(LABELS, human, predicted, nothing[:, None].repeat(3, 1), nothing, groups)


def answers(favoured: str, questions: int = 40) -> tuple[list[LabelledExample], list[Verdict]]:
    """Answers of three systems, half of them wrong; the judge calls all of one system Correct."""
    examples, verdicts = [], []
    for question, (place, system) in itertools.product(range(questions), enumerate("abc")):
        id = f"{question}{system}"
        label = "Correct" if (question + place) % 2 else "Wrong"
        fields = {"question": f"Q{question}?", "metadata": {"answerer": system}}
        examples.append(example(label, id=id, **fields))
        verdicts.append(scored("Correct" if system == favoured else label, id=id))
    return examples, verdicts


def test_figures_are_those_that_are_counted_by_hand() -> None:
    rows = [(0, 0), (0, 2), (2, 0), (1, 0), (2, 2), (0, 0), (0, 0), (2, 0), (0, 2), (0, -1)]
    found = favour(outcomes(rows), ["p"] * 5 + ["q"] * 5)
    assert found is not None
    p, q = found["systems"]["p"], found["systems"]["q"]
    assert (p["n"], q["n"]) == (5, 4)  # the last got no label
    assert p["bias"]["value"] == pytest.approx(3 / 5 - 2 / 5)
    assert q["bias"]["value"] == pytest.approx(3 / 4 - 3 / 4)
    assert p["difference"]["value"] == pytest.approx(1 / 5)
    assert (p["false_positives"]["value"], p["false_positives"]["n"]) == (pytest.approx(2 / 3), 3)
    assert (p["false_negatives"]["value"], p["false_negatives"]["n"]) == (pytest.approx(1 / 2), 2)
    # On the labels of p, the shares of q would be 2 of 3 and 1 of 1.
    assert p["like_for_like"]["value"] == pytest.approx(3 / 5 - (2 / 5 * 2 / 3 + 3 / 5))
    for figure in ("bias", "difference", "false_positives"):
        assert p[figure]["low"] <= p[figure]["value"] <= p[figure]["high"]


def test_flips_of_several_sums_are_those_of_the_largest() -> None:
    sums = np.random.default_rng(4).normal(0.4, 1, size=(8, 3))
    spread = [sum(value**2 for value in column) ** 0.5 for column in sums.T]
    largest = []
    for signs in itertools.product((1, -1), repeat=8):
        totals = [sum(s * v for s, v in zip(signs, c, strict=True)) for c in sums.T]
        largest.append(max(abs(t) / s for t, s in zip(totals, spread, strict=True)))
    for column, p in enumerate(flip_p(sums)):
        observed = abs(sum(sums[:, column])) / spread[column]
        assert p == pytest.approx(np.mean([value >= observed - 1e-9 for value in largest]))


def test_a_favoured_system_is_found_with_its_own_family() -> None:
    examples, verdicts = answers("b")
    names = {"a": "llama", "b": "Qwen3-32B", "c": "deepseek"}
    named = [
        e.model_copy(update={"metadata": {"answerer": names[e.metadata["answerer"]]}})
        for e in examples
    ]
    report = build_report(named, verdicts, seconds=1, command="", family=family_of("Qwen/Qwen3-4B"))
    found = report["favour"]
    assert {name: each["finding"] for name, each in found["systems"].items()} == {
        "Qwen3-32B": "favoured",
        "llama": "harmed",
        "deepseek": "harmed",
    }
    own, alone = found["own_family"], found["systems"]["Qwen3-32B"]
    assert (own["names"], own["finding"]) == (["Qwen3-32B"], "favoured")
    assert own["difference"] == alone["difference"]
    lines = " ".join(summary_lines("judge", report, find_disagreements(named, verdicts)))
    assert "Qwen3-32B" in lines
    assert "own family" in lines


def test_the_family_is_that_of_the_weights() -> None:
    assert family_of("embedded@2") == family_of("embedded") == "smollm"
    assert family_of("qwen2.5-coder-0.5b") == family_of("/models/mine") == "qwen"
    rows = [(0, 0), (2, 2)] * 4
    named = ["QwQ-32B", "SmolLM2-1.7B", "gpt-4o", "DeepSeek-R1-Distill-Qwen-7B"] * 2
    for family, own in (
        ("qwen", ["DeepSeek-R1-Distill-Qwen-7B", "QwQ-32B"]),
        ("smollm", ["SmolLM2-1.7B"]),
    ):
        found = favour(outcomes(rows), named, family)
        assert found is not None
        assert found["own_family"]["names"] == own
    assert (favour(outcomes(rows), named) or {})["own_family"] is None


def test_a_comparison_says_whom_the_second_judge_favours_more(tmp_path: Path) -> None:
    examples, fair = answers("")
    _, partial = answers("c")
    save_evaluation(tmp_path / "a", examples, fair)
    save_evaluation(tmp_path / "b", examples, partial)
    forth = compare_evaluations(tmp_path / "a", tmp_path / "b")
    back = compare_evaluations(tmp_path / "b", tmp_path / "a")
    forth_c, back_c = (made["favour"]["systems"]["c"] for made in (forth, back))
    assert (forth_c["finding"], back_c["finding"]) == ("favoured", "harmed")
    assert forth_c["difference"]["value"] == pytest.approx(0.5)
    assert back_c["difference"]["low"] == pytest.approx(-forth_c["difference"]["high"])
    assert "c (0.500" in render_comparison(forth)
    same = compare_evaluations(tmp_path / "a", tmp_path / "a")
    assert {each["finding"] for each in same["favour"]["systems"].values()} == {"not shown"}
