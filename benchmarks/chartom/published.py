"""CHARTOM's published figures."""

from __future__ import annotations

from benchmarks.framework.base import PublishedTable

PUBLISHED = (
    PublishedTable(
        "Table 1",
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
    ),
)
