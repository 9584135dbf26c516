"""HiEval's published figures."""

from __future__ import annotations

from benchmarks.framework.base import PublishedTable
from evaluation.report.markdown import TABLE_4, TABLE_5

TIME_AND_COST = ("seconds", "cost")
TYPES = ("Reasoning", "Image", "Unanswerable", "Overthinking", "Other")
QUICK_SCORE = "Table 2: quick score"
QASCORE = "Table 3: QAScore"
ERROR_ANALYSIS = "Table 4: error analysis"
BY_ERROR_TYPE = "Table 5: A-Acc by error type"
_SPENT = (
    "Cost: dollars for a million tokens of input and of output. Seconds and cost of a measured "
    "judge are known where one run graded this task alone."
)
_ACC = (
    f"Acc: share of responses on which the judge gives the score of people, in per cent. {_SPENT}"
)
PUBLISHED = (
    PublishedTable(
        QUICK_SCORE,
        (*TIME_AND_COST, "Acc"),
        {
            "Acc": (1.31, "free", 45.30),
            "Relaxed-Acc": (1.25, "free", 48.10),
            "BEM": (269.27, "free", 54.80),
            "PEDANTS": (16.89, "free", 61.25),
            "Gemini-2.0": (2767.15, "$0.1 + $0.4", 71.10),
            "GPT-4o": (3048.24, "$2.5 + $10", 79.95),
            "GPT-5-Mini": (8930.65, "$0.25 + $2", 90.00),
            "GPT-5": (10097.85, "$1.25 + $10", 93.00),
            "Kimi-VL-A3B": (701.58, "free", 58.45),
            "Mimo-VL-7B": (39290.33, "free", 62.90),
            "Qwen3-4B": (752.34, "free", 70.95),
            "Qwen3-VL-4B": (190.71, "free", 76.60),
            "HiEval-QS": (396.55, "free", 93.80),
        },
        ranked_by="Acc",
        note=_ACC,
    ),
    PublishedTable(
        QASCORE,
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
        ranked_by="Acc",
        note=_ACC,
    ),
    PublishedTable(
        ERROR_ANALYSIS,
        (*TIME_AND_COST, "A-Acc", "S-Acc"),
        TABLE_4,
        ranked_by="A-Acc",
        note="A-Acc: share of errors whose type the judge names as people do; S-Acc: share of "
        f"responses that it scores as people do; in per cent. {_SPENT}",
    ),
    PublishedTable(
        BY_ERROR_TYPE,
        (*TYPES, "overall"),
        TABLE_5,
        ranked_by="overall",
        radar=TYPES,
        note="Share of errors of each type whose type the judge names as people do, in per cent.",
    ),
    PublishedTable(
        "Table 6: ablation",
        ("quick score Acc", "S-Acc", "A-Acc"),
        {
            "HiEval": (93.8, 93.8, 85.5),
            "w/o FL": (92.5, None, None),
            "w/o CU": (None, 91.0, 84.0),
            "w/o ER": (None, 55.2, 41.3),
        },
        note="HiEval without focal loss (FL), contrastive unlikelihood (CU) or experience replay "
        "(ER), in per cent.",
    ),
    PublishedTable(
        "Table 1: items",
        ("train", "validation", "test", "total"),
        {
            "QS-Dataset": (21996, 2000, 2000, 25996),
            "EA-Dataset": (8545, 1000, 1000, 10545),
        },
    ),
    PublishedTable(
        "Table 7: agreement of annotators",
        ("Cohen's kappa",),
        {
            "Wrong": (0.9397,),
            "Partial": (0.8665,),
            "Correct": (0.9520,),
            "Overall": (0.9424,),
            "Image Misunderstanding": (0.8083,),
            "Other": (0.8910,),
            "Overthinking": (0.9158,),
            "Reasoning Error": (0.7121,),
            "Unanswerable": (0.9661,),
            "Global Average": (0.8352,),
        },
    ),
)
