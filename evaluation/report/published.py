"""HiEval's Tables 4 and 5, which a report sets beside a judge that names error types.

``benchmarks.hieval`` shows the same tables whole.
"""

from __future__ import annotations

from collections.abc import Mapping

from judging.tasks.hieval_ea import ERROR_TYPES

TABLE_4: Mapping[str, tuple[float, str, float, float]] = {
    "Gemini-2.0": (3367, "$0.1 + $0.4", 33.50, 70.40),
    "GPT-4o": (3194, "$2.5 + $10", 33.00, 81.30),
    "GPT-5-Mini": (16638, "$0.25 + $2", 45.20, 85.30),
    "GPT-5": (13899, "$1.25 + $10", 57.80, 90.40),
    "Kimi-VL-A3B": (630, "free", 8.00, 47.90),
    "Mimo-VL-7B": (10234, "free", 37.40, 80.90),
    "Qwen3-VL-4B": (757, "free", 43.80, 84.30),
    "HiEval-EA": (501, "free", 85.50, 93.80),
}
"""Judge to seconds, cost, A-Acc and S-Acc; accuracies in per cent."""

TABLE_5: Mapping[str, tuple[float, ...]] = {
    "Kimi-VL-A3B": (1.15, 10.19, 1.00, 0.00, 29.70, 8.00),
    "GPT-4o": (56.15, 64.53, 3.00, 4.76, 0.00, 33.00),
    "Gemini-2.0": (55.77, 21.89, 17.00, 54.29, 0.61, 33.50),
    "Mimo-RL-7B": (56.25, 50.22, 48.99, 35.18, 16.95, 41.77),
    "Qwen3-VL-4B": (60.38, 81.89, 62.00, 0.48, 0.61, 43.80),
    "GPT-5-mini": (55.00, 72.83, 47.00, 32.38, 0.61, 45.20),
    "GPT-5": (73.08, 67.55, 74.00, 64.29, 0.00, 57.80),
    "HiEval-EA": (73.85, 81.89, 98.00, 99.05, 84.85, 85.50),
}
"""Judge to A-Acc in per cent, for each of ``ERROR_TYPES`` and for all together, on the paper's test
of 1,000 responses with errors."""

JUDGES_IN_REPORTS = ("Qwen3-VL-4B", "GPT-5", "HiEval-EA")


def published_shares(judge: str) -> dict[str, float]:
    """Return a judge's published figures as shares, under the names that a report gives them."""
    *by_type, type_accuracy, score_accuracy = (
        round(value / 100, 4) for value in (*TABLE_5[judge], TABLE_4[judge][-1])
    )
    return {
        **dict(zip(ERROR_TYPES, by_type, strict=True)),
        "type_accuracy": type_accuracy,
        "score_accuracy": score_accuracy,
    }
