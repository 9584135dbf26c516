"""ChartHal's published figures.

Tables 3 to 21 of the paper are prompts.
"""

from __future__ import annotations

from benchmarks.charthal.item import RELATIONS, TYPES
from benchmarks.framework.base import PublishedTable
from benchmarks.framework.tables import OVERALL

RESULTS = "Table 2"

PUBLISHED = (
    PublishedTable(
        "Table 1: items",
        (*TYPES, "total"),
        {
            "Irrel.": (56, 99, 114, 269),
            "Inexist.": (151, 105, 88, 344),
            "Contra.": (76, 54, 80, 210),
            "Normal": (100, 64, 75, 239),
            "Total": (383, 322, 357, 1062),
        },
        note="Number of items by kind of question and by how it relates to the chart.",
    ),
    PublishedTable(
        RESULTS,
        (*TYPES, *RELATIONS, OVERALL),
        {
            "Gemini-2.5-Pro": (60.31, 50.31, 36.69, 36.80, 52.62, 49.52, 58.58, 49.34),
            "GPT-5 (high)": (43.34, 36.65, 22.97, 20.82, 29.07, 19.52, 70.71, 34.46),
            "GPT-5": (42.82, 40.06, 20.17, 23.05, 30.81, 16.67, 67.78, 34.37),
            "GPT-5-mini (high)": (33.42, 25.78, 20.45, 8.55, 15.99, 11.90, 75.73, 26.74),
            "GPT-5-mini": (34.20, 24.53, 21.57, 8.18, 15.99, 9.05, 79.92, 27.02),
            "GPT-5-nano (high)": (33.68, 20.19, 19.89, 10.41, 17.73, 5.24, 69.04, 24.95),
            "GPT-5-nano": (32.38, 16.15, 19.33, 7.81, 15.99, 5.24, 66.11, 23.07),
            "o4-mini (high)": (34.46, 23.60, 9.52, 10.78, 14.53, 3.33, 65.27, 22.79),
            "o4-mini": (32.90, 22.67, 10.92, 11.52, 12.21, 1.90, 67.36, 22.41),
            "GPT-4o-2024-11-20": (40.47, 36.02, 20.73, 27.88, 36.92, 6.67, 53.97, 32.49),
            "Llama-3.2-11B-Vision-Instruct": (
                37.60,
                20.19,
                15.69,
                29.37,
                28.49,
                0.00,
                36.82,
                24.95,
            ),
            "InternVL2.5-4B": (19.58, 9.63, 8.12, 4.83, 11.34, 0.00, 34.73, 12.71),
            "InternVL2.5-8B": (17.23, 8.39, 10.64, 3.35, 6.40, 0.00, 41.84, 12.34),
            "InternVL2.5-38B": (28.72, 18.32, 10.36, 10.04, 21.80, 0.00, 43.51, 19.40),
            "InternVL2.5-78B": (31.33, 17.08, 14.85, 13.75, 26.45, 0.00, 41.84, 21.47),
            "Qwen2.5-VL-3B-Instruct": (13.05, 4.04, 7.84, 0.74, 0.87, 0.00, 35.98, 8.57),
            "Qwen2.5-VL-7B-Instruct": (38.38, 25.47, 12.32, 25.65, 25.29, 1.90, 47.28, 25.71),
            "Qwen2.5-VL-32B-Instruct": (36.81, 25.47, 8.68, 21.56, 25.29, 1.43, 44.35, 23.92),
            "Qwen2.5-VL-72B-Instruct": (58.49, 59.63, 44.82, 65.06, 69.77, 19.05, 50.63, 54.24),
        },
        ranked_by=OVERALL,
        corrected=OVERALL,
        radar=(*TYPES, *RELATIONS),
        note="Share of responses without hallucination, in per cent. A question asks to describe "
        "(desc) or to reason (reason), or is open. It has nothing to do with the chart (irrel), "
        "asks for what the chart lacks (inexist), contradicts the chart (contra), or is normal.",
    ),
)
