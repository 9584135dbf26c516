"""Items of ChartHal's kind with responses, made by us: what ``custos bench example`` writes."""

from benchmarks.framework.files import Row

EXAMPLE: tuple[Row, ...] = (
    {
        "id": "7_0",
        "figure_id": "7",
        "q_type": "desc",
        "q_relation": "irrel",
        "question": "Which line is red?",
        "ref_answer": "There is no red line.",
        "response": "No line is red.",
    },
    {
        "id": "7_1",
        "figure_id": "7",
        "q_type": "reason",
        "q_relation": "normal",
        "question": "In which year do the lines cross?",
        "ref_answer": "In 2012.",
        "response": "They cross in 2015.",
    },
)
