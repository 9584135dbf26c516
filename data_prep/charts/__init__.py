"""Pictures of known data, questions about them, and responses whose error is known."""

from data_prep.charts.factory import ChartRow, FormSplit, captions, draw, generate, plan, plan_twins

__all__ = ["ChartRow", "FormSplit", "captions", "draw", "generate", "plan", "plan_twins"]
