"""What an hour of labelling buys, on made rows whose truth is known."""

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from experiments.findings.labelling_hour import (
    PICKS,
    SIZES,
    Rows,
    accuracy_intervals,
    draw,
    labels_until,
    learnt,
    log_odds_gradients,
    pick,
    rounds,
    simulate,
    tables,
)
from judging.types import LabelledExample
from tests.judging.conftest import run_folder

__all__ = ["run_folder"]


def made_rows(questions: int = 250, each: int = 5) -> Rows:
    """Features say what people say; the judge only knows half of it, and doubts where it errs."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(questions * each, 6))
    seen, unseen = features[:, 0], features[:, 1]
    right = seen + unseen + 0.3 * rng.normal(size=len(seen)) > 0
    return Rows(2 * seen, features, right, np.repeat(np.arange(questions), each))


def test_learning_minimises_a_penalised_loss_that_starts_at_the_judge() -> None:
    rows = made_rows(20)
    design = np.column_stack([rows.odds, np.ones(len(rows.odds)), rows.features])

    def loss(weights: np.ndarray) -> float:
        signed = np.where(rows.right, 1, -1) * (design @ weights)
        away = weights - np.eye(1, 8)[0]
        return float(np.logaddexp(0, -signed).sum() + 1.5 * away @ away)

    expected = design @ minimize(loss, np.zeros(8), tol=1e-9).x
    assert learnt(rows, rows.right, 3.0)(rows) == pytest.approx(expected, abs=1e-3)
    assert learnt(rows, rows.right, 1e9)(rows) == pytest.approx(rows.odds, abs=1e-4)


def test_rows_are_picked() -> None:
    odds = np.linspace(-4, 4, 401)
    rng = np.random.default_rng(1)
    picked, _ = pick("doubtful", odds, 21, rng)
    assert sorted(picked) == list(range(190, 211))
    for how in ("random", "drawn"):
        counts = np.zeros(len(odds))
        for _ in range(2000):
            picked, chances = pick(how, odds, 40, rng)
            counts[picked] += 1
        assert len(set(picked)) == 40
        assert counts / 2000 == pytest.approx(chances, abs=0.05)
    assert chances[200] > 2 * chances[0]


def test_labels_until_a_level() -> None:
    rising = np.array([0.5, *(0.5 + 0.4 * size / SIZES[-1] for size in SIZES)])
    assert labels_until(rising, 0.7) == pytest.approx(SIZES[-1] / 2)
    assert labels_until(rising, 0.4) == 0
    assert labels_until(rising, 0.95) == np.inf
    lucky = np.array([0.5, 0.8, *([0.6] * (len(SIZES) - 2)), 0.9])
    assert labels_until(lucky, 0.7) > SIZES[-2], "one lucky round is no level"


def test_agreement_rises_with_labels_and_falls_with_errors() -> None:
    rows = made_rows()
    found = {error: rounds(rows, "random", error, np.random.default_rng(0)) for error in (0.0, 0.3)}
    assert found[0.0][0] == found[0.3][0] < 0.8
    assert found[0.0][-1] > 0.9
    assert found[0.0][3] > found[0.3][3]


def test_only_labels_of_known_chance_say_how_good_the_judge_is() -> None:
    rng = np.random.default_rng(0)
    coverage = {}
    for how in PICKS:
        found = list(accuracy_intervals(made_rows(), how, 40, rng))
        coverage[how] = np.mean([holds for _, _, holds in found])
        widths = [width for _, width, _ in found]
        assert widths[-1] < widths[0] / 2
    assert min(coverage["random"], coverage["drawn"]) > 0.88 > 0.5 > coverage["doubtful"]


def test_figures_are_shown(tmp_path: Path) -> None:
    figures = simulate(made_rows(), [0.1], [0.8, 0.999], repetitions=2, seed=0)
    draw(figures, tmp_path / "hour.png")
    assert (tmp_path / "hour.png").stat().st_size > 10_000
    text = tables(figures)
    assert "| 0.1 | doubtful |" in text and "more (more to more)" in text


def test_gradients_tell_responses_apart(run_folder: Path) -> None:
    fields = {"task": "hieval-qs", "references": ["nine"], "reference_mode": "any"}
    said = ["nine boats", "sixteen boats", "nine boats"]
    examples = [
        LabelledExample.model_validate(
            {"id": str(n), "question": "How many?", "response": text, "label": "Wrong", **fields}
        )
        for n, text in enumerate(said)
    ]
    first, second, third = log_odds_gradients(str(run_folder), examples)
    assert first == pytest.approx(third, rel=1e-3)
    assert np.linalg.norm(first - second) > 0.1 * np.linalg.norm(first) > 0
