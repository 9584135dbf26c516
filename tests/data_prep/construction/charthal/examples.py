"""Hand-made charts and questions."""

from typing import Any

from data_prep.construction.charthal import Chart, ChartQuestion


def chart(number: int, num_subplots: int, discipline: str, chart_type: str) -> Chart:
    return Chart(
        id=str(number),
        images=(f"{number}.png",),
        num_subplots=num_subplots,
        discipline=discipline,
        chart_type=chart_type,
    )


def question(number: int = 0, **fields: Any) -> ChartQuestion:
    given = {
        "id": f"7_{number}", "figure_id": "7", "figure_path": "images/7.png", "subq_idx": number,
        "q_type": "desc", "q_relation": "normal", "question": f"How many, {number}?",
        "ref_answer": "About 5.",
    }  # fmt: skip
    return ChartQuestion.model_validate(given | fields)
