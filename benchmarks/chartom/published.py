"""CHARTOM's published figures."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.framework.base import PublishedTable

MODELS = "Section 2.3: models"
HMI = "Table 1"

ANSWERS: Mapping[str, Mapping[float, int]] = {
    "G7_Q1_1": {
        **{1: 5, 1.01: 1, 1.1: 5, 1.15: 1, 1.16: 1, 1.2: 24, 1.25: 5},
        **{1.3: 5, 1.5: 6, 2: 3, 3: 2, 250: 1, 300: 8, 345: 1},
    },
    "G7_Q1_2": {
        **{1: 4, 1.1: 2, 1.13: 1, 1.1666: 1, 1.2: 22, 1.25: 4, 1.26: 1},
        **{1.3: 2, 1.5: 11, 5: 4, 6: 7, 30: 1, 56: 1, 300: 7},
    },
}
"""Table 2: how many people answered what to the FACT question about a pair of charts."""

PUBLISHED = (
    PublishedTable(
        HMI,
        ("kind", "original HMI", "manipulation", "manipulated HMI"),
        {
            "G4_Q1": ("line", 0.03, "inconsistent x-axis", 0.97),
            "G3_Q1": ("line", 0.03, "inverted y-axis", 0.81),
            "G9_Q1": ("line", 0.06, "dual axes", 0.74),
            "G1_Q1": ("line", 0.14, "truncated y-axis", 0.40),
            "G2_Q1": ("line", 0.07, "compressed y-axis", 0.04),
            "G12_Q1": ("bar", 0.28, "3D effect", 0.96),
            "G7_Q1": ("bar", 0.18, "truncated y-axis", 0.29),
            "G8_Q1": ("bar", 0.09, "compressed y-axis", 0.06),
            "G10_Q1": ("bar", 0.02, "pictorial bars", 0.06),
            "G6_Q1": ("scatter", 0.03, "swapped axis", 0.71),
            "G5_Q1": ("scatter", 0.02, "logarithmic y-axis", 0.63),
            "G15_Q1": ("map", 0.01, "inverted color scale", 0.10),
            "G13_Q1": ("pie", 0.26, "3D effect", 0.90),
            "G14_Q1": ("pie", 0.66, "3D effect + pop out", 0.99),
        },
        note="HMI, the human misleadingness index: the share of people who did not give an "
        "acceptable answer to the question about a chart. A pair is an original and a manipulated "
        "chart of the same data.",
    ),
    PublishedTable(
        "Table 2: people's answers to G7_Q1 (million bags)",
        ("answers",),
        {
            name: (", ".join(f"{answer:g} ({count})" for answer, count in counts.items()),)
            for name, counts in ANSWERS.items()
        },
        note="Each answer with the number of people who gave it.",
    ),
    PublishedTable(
        MODELS,
        (
            *("FACT accuracy (%)", "on originals (%)", "on manipulated charts (%)"),
            *("MIND squared error", "manipulation named (%)"),
        ),
        {},
        ranked_by="FACT accuracy (%)",
        corrected="FACT accuracy (%)",
        note="The paper measures no model: all rows are measured here. FACT asks what a chart "
        "shows. MIND asks what share of people the chart misleads; the lower its "
        "squared error, the better. Whether reasons name the manipulation counts on manipulated "
        "charts that mislead at least half of the people.",
    ),
)
