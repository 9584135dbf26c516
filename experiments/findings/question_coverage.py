"""Intervals and tests on rows that share questions: how often each keeps its promise.

Part of ``python -m experiments interval_coverage``. Rows of a question take, each with the square
root of the correlation as its chance, one draw that the question shares.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from rich.table import Table
from scipy.special import expit, log_softmax

from evaluation.attacks.rows import measure_share
from evaluation.calibration_error import calibration_error
from evaluation.correction.label_plan import sampling_probabilities, systematic_sample
from evaluation.correction.scores import corrected_rate
from evaluation.estimate import loss_within_p, lowest_difference, paired_accuracies, share
from evaluation.intervals import Floats, Ints, sign_flip_p
from evaluation.measure import METRICS, TallyDraws
from evaluation.metrics import UNSCORED
from evaluation.outcomes import Outcomes
from evaluation.people.agreement import PeoplesLabels, krippendorff_alpha
from evaluation.ranking.favour import differences_from_others
from judging.labels import worth_by_place
from judging.verdicts.calibration import HeldOutVerdicts
from judging.verdicts.calibration_fit import draw_rows, fit_calibration

SIZES: dict[str, Callable[[int], Ints]] = {
    "1": lambda questions: np.ones(questions, dtype=np.int64),
    "5": lambda questions: np.full(questions, 5),
    "6": lambda questions: np.full(questions, 6),
    "10": lambda questions: np.full(questions, 10),
    "200 or 5": lambda questions: np.where(np.arange(questions) == 0, 200, 5),
    "5 or 40": lambda questions: np.where(np.arange(questions) % 5 == 0, 40, 5),
}
"""Numbers of rows of the questions, by name. One question has 200, one in five 40."""

Row = dict[str, Any]


def alike(clusters: Ints, correlation: float, rng: np.random.Generator) -> Floats:
    """Draw uniform numbers that are alike within clusters. Shape ``[n]``."""
    shared = rng.random(int(clusters.max()) + 1)[clusters]
    takes_shared = rng.random(len(clusters)) < np.sqrt(correlation)
    return np.where(takes_shared, shared, rng.random(len(clusters)))


def simulate_questions(draws: int, seed: int, parts: Sequence[str] = ()) -> list[Row]:
    """Simulate promises, so many draws per setting; all :data:`PARTS` by default.

    Rows of the table have ``promise``, ``setting``, ``wanted`` and ``kept``.
    """
    return [
        row
        for name in parts or PARTS
        for row in PARTS[name](draws * (4 if name in RARE else 1), stream(seed, name))
    ]


def stream(seed: int, part: str) -> np.random.Generator:
    """Return the draws of one part, which no change of another one moves."""
    return np.random.default_rng([seed, zlib.crc32(part.encode())])


def question_tables(rows: list[Row]) -> Iterator[Table]:
    """Yield the table of :func:`simulate_questions`."""
    table = Table("promise", "setting", "wanted", "kept", title="Rows that share questions")
    for row in rows:
        table.add_row(row["promise"], row["setting"], row["wanted"], f"{row['kept']:.3f}")
    yield table


def promise_row(promise: str, setting: str, wanted: str, kept: Sequence[bool]) -> Row:
    """Make a row of the table: how often a promise is kept."""
    return {
        "promise": promise,
        "setting": setting,
        "wanted": wanted,
        "kept": float(np.mean(kept)),
    }


def _clusters(questions: int, size: str) -> Ints:
    return np.repeat(np.arange(questions), SIZES[size](questions))


def _tests(draws: int, rng: np.random.Generator) -> Iterator[Row]:
    for questions, size, correlation in (
        (89, "1", 0.0),
        *((89, size, correlation) for size in ("5", "10", "5 or 40") for correlation in (0.1, 0.3)),
        (20, "10", 0.3),
    ):
        clusters = _clusters(questions, size)
        shown = []
        for _ in range(draws):
            drawn = alike(clusters, correlation, rng)
            difference = np.select([drawn < 0.08, drawn > 0.92], [1.0, -1.0], 0.0)
            shown.append(sign_flip_p(difference, clusters) <= 0.05)
        setting = f"{questions} questions, {size} rows, correlation {correlation:g}"
        yield promise_row("p <= .05 for equal judges", setting, "<= .05", shown)


def _accuracies(draws: int, rng: np.random.Generator) -> Iterator[Row]:
    for questions in (5, 10, 20, 30, 89):
        for size, correlation, rate in (("5", 0.1, 0.9), ("10", 0.3, 0.8), ("5 or 40", 0.3, 0.97)):
            clusters = _clusters(questions, size)
            held = []
            for _ in range(draws):
                found = share(alike(clusters, correlation, rng) < rate, None, clusters)
                held.append(found["low"] <= rate <= found["high"])
            setting = f"{questions} questions, {size} rows, rate {rate:g}"
            yield promise_row("interval of an accuracy", setting, ".95", held)


def _gains(draws: int, rng: np.random.Generator) -> Iterator[Row]:
    """Simulate two equal judges where one question has most rows."""
    for questions, size in ((10, "5"), (10, "200 or 5"), (30, "200 or 5"), (89, "5")):
        clusters = _clusters(questions, size)
        held = []
        for number in range(draws):
            drawn = alike(clusters, 0.2, rng)
            first, second = (drawn > 0.1).tolist(), (drawn < 0.9).tolist()
            gain = paired_accuracies(first, second, clusters, number % 4)["difference"]
            held.append(gain["low"] <= 0 <= gain["high"])
        setting = f"{questions} questions, {size} rows"
        yield promise_row("interval of a gain", setting, ".95", held)


def _judged(
    clusters: Ints, correlation: float, rng: np.random.Generator, accuracy: float = 0.88
) -> Outcomes:
    """Draw verdicts of two labels with calibrated confidences."""
    human = (rng.random(len(clusters)) < 0.3).astype(np.int64)
    confidence = expit(rng.normal(np.log(accuracy / (1 - accuracy)) + 0.8, 1.5, len(clusters)))
    confidence = np.maximum(confidence, 0.5)
    right = alike(clusters, correlation, rng) < confidence
    predicted = np.where(right, human, 1 - human)
    probabilities = np.stack([1 - confidence, confidence], axis=1)
    probabilities[predicted == 0] = probabilities[predicted == 0][:, ::-1]
    return Outcomes(("Correct", "Wrong"), human, predicted, probabilities, confidence, clusters)


def _metrics(draws: int, rng: np.random.Generator) -> Iterator[Row]:
    names = ("kappa", "macro_f1", "nll")
    large = TallyDraws.of(_judged(_clusters(6000, "5"), 0.2, rng)).total
    truth = {name: float(METRICS[name].value(large)) for name in names}
    for questions in (5, 10, 20, 30, 89):
        held: dict[str, list[bool]] = {name: [] for name in names}
        for number in range(draws):
            tally = TallyDraws.of(_judged(_clusters(questions, "5"), 0.2, rng), number % 4)
            for name in names:
                found = tally.estimate(METRICS[name])
                held[name].append(found["low"] <= truth[name] <= found["high"])
        for name in names:
            setting = f"{questions} questions, 5 rows"
            yield promise_row(f"interval of {name}", setting, ".95", held[name])


def _calibration(draws: int, rng: np.random.Generator) -> Iterator[Row]:
    for questions in (30, 89, 300):
        called = []
        for _ in range(draws):
            judged = _judged(_clusters(questions, "5"), 0.2, rng)
            found = calibration_error(judged.confidence, judged.right, judged.clusters)
            called.append(found["value"] > found["chance"]["high"])
        setting = f"{questions} questions, 5 rows"
        promise = "ECE: a calibrated judge is called uncalibrated"
        yield promise_row(promise, setting, "<= .05", called)


def _risk(draws: int, rng: np.random.Generator) -> Iterator[Row]:
    kept = []
    for _ in range(draws):
        hard = rng.random(1200) < 0.2
        questions = np.repeat(np.arange(1200), np.where(hard, 5, 1))
        wrong = rng.random(len(questions)) < np.where(hard, 0.086, 0.02)[questions]
        rows = draw_rows(questions, rng)
        right = tuple((~wrong[rows]).tolist())
        verdicts = HeldOutVerdicts(confidence=(0.9,) * len(rows), right=right)
        kept.append(verdicts.threshold(0.05) is not None)
    yield promise_row("--risk .05 keeps verdicts", "error .057; hard: 5 rows", "<= .05", kept)
    clusters = _clusters(40, "1")
    held = [share(rng.random(40) < 0.08, None, clusters)["high"] < 0.05 for _ in range(draws)]
    yield promise_row("--risk .05 is called held", "error .08, 40 verdicts kept", "<= .05", held)


def _gate(draws: int, rng: np.random.Generator) -> Iterator[Row]:
    for questions, size, loss in ((100, "1", 0.05), (89, "5", 0.05), (89, "5", 0.02)):
        clusters = _clusters(questions, size)
        passes = []
        for _ in range(draws):
            drawn = alike(clusters, 0.2, rng)
            difference = np.select([drawn < 0.04 + loss, drawn > 0.96], [-1.0, 1.0], 0.0)
            passes.append(lowest_difference(difference, clusters)[0] > -0.02)
        setting = f"{questions} questions, {size} rows, {loss:g} worse"
        yield promise_row("--gate passes a worse judge", setting, "<= .05", passes)


def _fits(draws: int, rng: np.random.Generator) -> Iterator[Row]:
    labels = ("Correct", "Partial", "Wrong")
    questions = np.repeat(np.arange(15), 20)
    biased = []
    for _ in range(max(1, draws // 10)):
        scores = rng.normal(scale=2, size=(300, 3))
        shift = rng.normal(size=(15, 3))[questions]
        chances = np.exp(log_softmax(scores + shift, axis=1)).cumsum(axis=1)
        targets = np.minimum((chances < rng.random((300, 1))).sum(axis=1), 2)
        logprobs = log_softmax(scores, axis=1)
        biased.append(any(fit_calibration(logprobs, targets, labels, questions).bias.values()))
    yield promise_row("calibration fits a bias that is not there", "20 rows", "rarely", biased)


def _wordings(draws: int, rng: np.random.Generator) -> Iterator[Row]:
    for wordings in (6, 12, 24):
        of_row = np.arange(60) % wordings
        held = []
        for _ in range(draws):
            hits = (rng.random(60) < rng.beta(1.5, 3.5, wordings)[of_row]).tolist()
            found = measure_share(hits, range(60), of_row.tolist())
            held.append((found.low or 0) <= 0.3 <= (found.high or 0))
        yield promise_row("interval of an attack", f"60 rows, {wordings} wordings", ".95", held)


REVIEWED_RATE, REVIEWED_AGREEMENT = 0.5521, 0.8065
"""Rate of people's labels in :func:`_reviewed`, and agreement of the judge with them, measured on
eight million rows."""


def _reviewed(draws: int, rng: np.random.Generator) -> Iterator[Row]:
    """Yield how a rate of people's labels is estimated from rows that were reviewed.

    The judge is too sure, and leans to one label.
    """
    for questions, rows, labels in ((2000, 1, 200), (400, 5, 200), (400, 5, 60), (100, 10, 100)):
        clusters = np.repeat(np.arange(questions), rows)
        held: dict[str, list[bool]] = {"rate": [], "accuracy": []}
        for _ in range(draws):
            score = rng.normal(0.8, 2.5, len(clusters))
            called = (score > 0).astype(np.float64)
            human = (alike(clusters, 0.2, rng) < expit(score - 0.4)).astype(np.float64)
            confidence = expit(np.abs(score))
            chances = sampling_probabilities(confidence, confidence < 0.6, labels)
            drawn = systematic_sample(chances, confidence[:, None], rng)
            for name, judge, truth, value in (
                ("rate", called, human, REVIEWED_RATE),
                ("accuracy", confidence, (human == called) * 1.0, REVIEWED_AGREEMENT),
            ):
                labelled = np.full(len(clusters), np.nan)
                labelled[drawn] = truth[drawn]
                found = corrected_rate(
                    judge, labelled, random_sample=True, probabilities=chances, groups=clusters
                ).corrected
                held[name].append(found.low <= value <= found.high)
        setting = f"{labels} of {len(clusters)} rows, {rows} a question"
        for name, of_name in held.items():
            yield promise_row(f"{name} from reviewed rows", setting, ".95", of_name)


def _people_of(questions: int, rng: np.random.Generator) -> PeoplesLabels:
    """Draw labels of four people on 6 rows a question; a third of the questions are hard."""
    clusters = _clusters(questions, "6")
    truth = rng.integers(3, size=len(clusters))[:, None]
    guesses = np.where(rng.random(questions) < 1 / 3, 0.5, 0.1)[clusters, None]
    given = np.where(
        rng.random((len(clusters), 4)) < guesses, rng.integers(3, size=(len(clusters), 4)), truth
    )
    given[rng.random(given.shape) > 0.7] = UNSCORED
    labels = ("Correct", "Partial", "Wrong")
    return PeoplesLabels(tuple("abcd"), labels, given, clusters, worth_by_place(labels))


def _people(draws: int, rng: np.random.Generator) -> Iterator[Row]:
    for questions, size, epsilon in ((50, "1", 0.1), (30, "5", 0.1), (30, "10", 0.2)):
        clusters = _clusters(questions, size)
        wins = []
        for _ in range(draws):
            drawn = alike(clusters, 0.3, rng)
            gain = np.select([drawn < 0.02 + epsilon, drawn > 0.98], [-1.0, 1.0], 0.0)
            wins.append(loss_within_p(gain, clusters, epsilon) <= 0.05)
        setting = f"{questions} questions, {size} rows, epsilon {epsilon:g}"
        yield promise_row("a judge that loses epsilon wins", setting, "<= .05", wins)
    truth = krippendorff_alpha(_people_of(3000, rng))
    for questions in (10, 30):
        held: dict[str, list[bool]] = {name: [] for name in truth}
        for number in range(draws):
            for name, found in krippendorff_alpha(_people_of(questions, rng), number % 4).items():
                held[name].append(found["low"] <= truth[name]["value"] <= found["high"])
        for name in truth:
            setting = f"{name}, {questions} questions, 6 rows"
            yield promise_row("interval of alpha", setting, ".95", held[name])


def _favours(draws: int, rng: np.random.Generator) -> Iterator[Row]:
    """Simulate five systems, the last with fewer rows, and a judge that errs alike on all."""
    false_alarm, miss = 0.12, 0.05
    for questions, answered in ((89, 1.0), (89, 0.4), (30, 1.0)):
        shown, holds = list[bool](), list[bool]()
        for _ in range(draws):
            clusters, system = np.repeat(np.arange(questions), 5), np.tile(np.arange(5), questions)
            given = (system < 4) | (rng.random(len(system)) < answered)
            clusters, system = clusters[given], system[given]
            right = alike(clusters, 0.2, rng) < 0.7
            error = alike(clusters, 0.2, rng)
            called = np.where(right, error >= miss, error < false_alarm)
            groups = {str(one): system == one for one in range(5)}
            found = differences_from_others(called, right, groups, clusters).values()
            shown.append(any(each["finding"] != "not shown" for each in found))
            biases = [each["difference"] for each in found]
            holds += [bias["low"] <= 0 <= bias["high"] for bias in biases]
        setting = f"{questions} questions, 5 systems, the last on {answered:.0%}"
        yield promise_row("a system is called favoured or harmed", setting, "<= .05", shown)
        yield promise_row("interval of a system's bias less the others'", setting, ".95", holds)


PARTS: Mapping[str, Callable[[int, np.random.Generator], Iterator[Row]]] = {
    "tests": _tests,
    "accuracies": _accuracies,
    "gains": _gains,
    "metrics": _metrics,
    "calibration": _calibration,
    "risk": _risk,
    "gate": _gate,
    "fits": _fits,
    "wordings": _wordings,
    "reviewed": _reviewed,
    "people": _people,
    "favours": _favours,
}
"""Parts of the simulation by name."""
RARE = ("calibration", "favours")
"""Parts that count what is rare, with four times the draws."""
