"""TruthfulVQA's published figures.

The paper prints no table of models: their accuracies are on its project's page. What its text and
figures state of models is here. Table 3 is a rubric, and Table 4 lists models.
"""

from __future__ import annotations

from benchmarks.framework.base import PublishedTable
from clients.messages import Decoding

CATEGORIES = (
    *("Eye Illusion", "Perspective Restriction", "Contextual Bias", "Information Hiding"),
    *("Feature Forgery", "Fictional Information", "Imitative Falsehood", "Information Forgery"),
)

BY_LEVEL = "Figure 3b (%): accuracy by level"
OVER_LEVELS = "Figure 3c: mean and variance of accuracy over the levels"
BY_CATEGORY = "Figure 3d (%): accuracy by category"
BY_CELL = "Figure 3d (%): accuracy by category (S1 to S8) and level (L1 to L3)"
CALIBRATION = "Figure 4a: calibration error of stated confidence"

_RANGE = "1440.7 to 1368.8"
"""The paper gives this range for four models together."""

PUBLISHED = (
    PublishedTable(
        BY_LEVEL,
        ("overall", "level 1", "level 2", "level 3"),
        {"mean of more than 50 models": (None, 81.85, 55.37, 44.96)},
        ranked_by="overall",
        note="Share of right options. Questions mislead more from level to level. The paper states "
        "no accuracy over all levels.",
    ),
    PublishedTable(
        OVER_LEVELS,
        ("mean", "variance"),
        {"most models": ("0.68 to 0.79", "0.01 to 0.03")},
        ranked_by="mean",
        note="Mean and variance of the three accuracies at levels 1 to 3, as shares.",
    ),
    PublishedTable(
        BY_CATEGORY,
        CATEGORIES,
        {},
        radar=CATEGORIES,
        note="The paper's text has no figures of its heat map: all rows are measured here.",
    ),
    PublishedTable(
        BY_CELL,
        (
            "overall",
            *(
                f"S{number} L{level}"
                for number in range(1, len(CATEGORIES) + 1)
                for level in (1, 2, 3)
            ),
        ),
        {},
        ranked_by="overall",
        note="; ".join(f"S{number}: {name}" for number, name in enumerate(CATEGORIES, 1))
        + ". All rows are measured here.",
    ),
    PublishedTable(
        CALIBRATION,
        ("ECE",),
        {
            "Qwen2.5-VL-72B": (0.188,),
            "QVQ-72B": (0.325,),
            "chat models": ("0.16 to 0.25",),
        },
        note="Expected calibration error: how far stated confidence is from accuracy, in bins of "
        "equal width. The lower, the better.",
    ),
    PublishedTable(
        "Figure 4b: points of accuracy that step-by-step prompts cost",
        ("points",),
        {"five chat models": ("2.8 to 8.3",)},
    ),
    PublishedTable(
        "Section 4.2, normalised LAL over the levels",
        ("LAL",),
        {
            "QVQ-72B": (0.89,),
            "Mulberry-Qwen2-VL-7B": (0.71,),
            "Kimi-VL-A3B-Thinking": (0.53,),
        },
        note="LAL: logit advantage loss from an easier level to a harder one.",
    ),
    PublishedTable(
        "Table 1: judges of pairs",
        ("accuracy (%)", "kappa", "FPR", "self-consistency", "ECE"),
        {
            "GPT-4o-Vision": (57.0, 0.32, 0.52, 0.20, 0.26),
            "Gemini-1.5-Pro-Vision": (63.8, 0.37, 0.36, 0.10, 0.21),
            "Claude-3-5-Sonnet-Vision": (59.5, 0.35, 0.41, 0.13, 0.28),
            "Qwen2.5-VL-72B-Instruct": (52.2, 0.23, 0.48, 0.15, 0.25),
            "TruthfulJudge (ours)": (88.4, 0.79, 0.12, 0.19, 0.11),
        },
        ranked_by="accuracy (%)",
        note="Kappa: agreement with people beyond chance. FPR: false-positive rate. ECE: expected "
        "calibration error.",
    ),
    PublishedTable(
        "Table 2 (%): accuracy of kinds of judges",
        ("BT", "Critique-S", "Pure-L", "Critique-L"),
        {
            "Original": (47.8, 43.7, 54.9, 54.2),
            "Fine-tuned": (72.1, 55.8, 57.5, 88.4),
        },
        note="BT: a reward (Bradley-Terry). Critique-S: a critique, then a score. Pure-L: a label "
        "alone. Critique-L: a critique, then a label.",
    ),
    PublishedTable(
        "Figure 5 (%): wins of GPT-4o over Qwen2.5-VL-72B",
        ("GPT-4o", "Qwen2.5-VL-72B"),
        {
            "Gemini-1.5-Pro": (40.4, 59.6),
            "people": (51.4, 48.6),
            "TruthfulJudge": ("ahead by 0.6", None),
        },
    ),
    PublishedTable(
        "Section 5.4: agreement with people on wins",
        ("agreement",),
        {"TruthfulJudge": ("0.89 to 0.91",)},
    ),
    PublishedTable(
        "Appendix E.4: open-ended answers",
        ("Elo",),
        {
            "Claude-3.5-Sonnet": (1618.5,),
            "Qwen2.5-VL-72B-Instruct": (1613.3,),
            "GPT-4o": (1581.2,),
            "Qwen2-VL-7B-GRPO": (1531.0,),
            "LLaVA-Mistral-7B": (1512.1,),
            "LLaVA-1.5": (_RANGE,),
            "Gemini-2.5-Pro-Exp": (_RANGE,),
            "InternVL2.5-38B": (_RANGE,),
            "QVQ-72B": (_RANGE,),
        },
    ),
)

DECODINGS = {
    "chat": Decoding(temperature=0.0, top_p=1.0, max_tokens=4096),
    "api": Decoding(temperature=0.0, top_p=1.0, max_tokens=4096),
    "skywork-r1v": Decoding(temperature=0.0, top_p=0.95, max_tokens=8192),
    "kimi-vl-thinking": Decoding(temperature=0.6, top_p=1.0, max_tokens=8192),
    "kimi-vl-instruct": Decoding(temperature=0.2, top_p=1.0, max_tokens=4096),
    "llama-cot": Decoding(temperature=0.1, top_p=1.0, max_tokens=8192),
    "mulberry": Decoding(temperature=0.6, top_p=0.9, max_tokens=8192),
}
"""Table 5: sampling by group of models. ``chat`` are the open models without long reasoning, and
``llama-cot`` also LlamaV-o1 and VisualThinker-R1-Zero."""
