"""HiEval's published figures."""

from __future__ import annotations

from benchmarks.framework.base import PublishedTable
from evaluation.report.published import TABLE_4, TABLE_5

TIME_AND_COST = ("seconds", "cost")
PUBLISHED = (
    PublishedTable(
        "Table 2: quick score",
        (*TIME_AND_COST, "Acc"),
        {
            "Acc": (1.31, "free", 45.30),
            "Relaxed-Acc": (1.25, "free", 48.10),
            "BEM": (269.27, "free", 54.80),
            "PEDANTS": (16.89, "free", 61.25),
            "Gemini-2.0": (2767.15, "$0.1 + $0.4", 71.10),
            "GPT-4o": (3048.24, "$2.5 + $10", 79.95),
            "GPT-5-mini": (8930.65, "$0.25 + $2", 90.00),
            "GPT-5": (10097.85, "$1.25 + $10", 93.00),
            "Kimi-VL-A3B": (701.58, "free", 58.45),
            "Mimo-VL-7B": (39290.33, "free", 62.90),
            "Qwen3-4B": (752.34, "free", 70.95),
            "Qwen3-VL-4B": (190.71, "free", 76.60),
            "HiEval-QS": (396.55, "free", 93.80),
        },
    ),
    PublishedTable(
        "Table 3: QAScore",
        (*TIME_AND_COST, "Acc"),
        {
            "Acc": (4.17, "free", 47.50),
            "Relaxed-Acc": (4.36, "free", 47.60),
            "BEM": (56.34, "free", 63.50),
            "PEDANTS": (15.89, "free", 70.20),
            "Gemini-2.0": (1172.85, "$0.1 + $0.4", 83.10),
            "GPT-4o": (1524.26, "$2.5 + $10", 83.70),
            "GPT-4o-mini": (1886.73, "$0.15 + $0.6", 84.50),
            "Kimi-VL-A3B": (701.58, "free", 58.45),
            "Qwen3-4B": (752.34, "free", 70.95),
            "Mimo-VL-7B": (16567.37, "free", 76.40),
            "Qwen3-VL-4B": (190.71, "free", 83.50),
            "HiEval-QS": (170.26, "free", 91.70),
        },
    ),
    PublishedTable(
        "Table 4: error analysis",
        (*TIME_AND_COST, "A-Acc", "S-Acc"),
        TABLE_4,
    ),
    PublishedTable(
        "Table 5: A-Acc by error type",
        ("Reasoning", "Image", "Unanswerable", "Overthinking", "Other", "overall"),
        TABLE_5,
    ),
)
