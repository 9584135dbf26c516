"""Pictures of known data, questions about them, and responses whose error is known."""

from data_prep.synthetic.charts.generate import (
    Captioned,
    ChartRow,
    FormSplit,
    captioned,
    draw,
    generate,
    plan,
    plan_twins,
)

__all__ = [
    "Captioned",
    "ChartRow",
    "FormSplit",
    "captioned",
    "draw",
    "generate",
    "plan",
    "plan_twins",
]
