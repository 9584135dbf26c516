"""Items of CHARTOM's kind with responses, made by us: what ``custos bench example`` writes."""

from benchmarks.framework.files import Row

EXAMPLE: tuple[Row, ...] = (
    {
        "id": "G2_Q1_1",
        "kind": "bar",
        "question": "Which shop sold more in May?",
        "question_type": "choice",
        "choices": ["North", "South"],
        "answer": "South",
        "hmi": 0.1,
        "fact_response": "2",
        "mind_response": "0.1",
    },
    {
        "id": "G1_Q1_2",
        "kind": "bar",
        "question": "How many were sold in May?",
        "question_type": "number",
        "answer": 40,
        "hmi": 0.3,
        "fact_response": "40",
        "mind_response": "0.2",
    },
)
