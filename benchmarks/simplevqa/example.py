"""Items of SimpleVQA's kind with responses, made by us: what ``custos bench example`` writes."""

from benchmarks.framework.files import Row

EXAMPLE: tuple[Row, ...] = (
    {
        "data_id": "1",
        "language": "EN",
        "question": "Who is shown?",
        "answer": "Ada Lovelace",
        "response": "That is Ada Lovelace.",
    },
    {
        "data_id": "2",
        "language": "CN",
        "question": "图中是哪座山？",
        "answer": "泰山",
        "response": "这是华山。",
    },
)
